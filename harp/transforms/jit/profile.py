"""Profiles: the time of each kernel, the bytes and operations that it takes, and the limits of the device."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import attrs

from harp.backends.protocol import Limits, Span
from harp.trace.source_locations import Site

# The most kernels that are printed.
_MOST_LINES = 20
_HEAD = ("kernel", "line", "runs", "time", "share", "GB/s", "of copy", "GFLOP/s", "of peak")
_LEFT = 2  # columns of text
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PROCESS = 1
_CALLS, _KERNELS = 1, 2  # rows of the trace


class Round(NamedTuple):
    """One call of the program: its begin and its end in nanoseconds, and the runs of kernels in it."""

    began: int
    ended: int
    spans: tuple[Span, ...]


@attrs.frozen
class KernelProfile:
    """A kernel in one call of the function: `runs` times, in `seconds` together, the median of all rounds.

    `site` is the line of the user that it is for. `bytes` are those that it has to move, `operations` what it computes,
    together in all runs: None where they depend on how often a loop runs that data ends. `is_double` says whether its
    numbers are float64. The kernels at one line that are equal are one.
    """

    name: str
    site: Site | None
    runs: int
    seconds: float
    bytes: int | None
    operations: int | None
    is_double: bool

    @property
    def bandwidth(self) -> float:
        """Bytes in a second; 0 if they are not known."""
        return (self.bytes or 0) / self.seconds if self.seconds else 0.0

    @property
    def rate(self) -> float:
        """Operations in a second; 0 if they are not known."""
        return (self.operations or 0) / self.seconds if self.seconds else 0.0


@attrs.frozen(eq=False, repr=False)
class Profile:
    """The time of each kernel of a function, for one set of arguments: print it for a table.

    `kernels` are ordered by time. `seconds` is how long a call takes, with all that is no kernel: what the host does,
    and what is copied to the device and back. `limits` are the bandwidth of a copy and the peaks of the device.
    """

    function: str
    device: str
    kernels: tuple[KernelProfile, ...]
    seconds: float
    limits: Limits
    exact: bool
    _rounds: tuple[Round, ...]
    _calls: tuple[KernelProfile, ...]

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write all rounds in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing show.

        Raises OSError where the file cannot be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": list(self._events()), "displayTimeUnit": "ns"}, file)

    def _events(self) -> Iterator[dict[str, object]]:
        yield _event("process_name", "M", 0, {"name": f"{self.function} on {self.device}"})
        for row, title in ((_CALLS, "calls"), (_KERNELS, "kernels")):
            yield _event("thread_name", "M", row, {"name": title})
        start = self._rounds[0].began
        for number, (began, ended, spans) in enumerate(self._rounds):
            yield _event(f"call {number}", "X", _CALLS, {}) | _times(began - start, ended - start)
            for span in spans:
                kernel = self._calls[span.call]
                told: dict[str, object] = {"bytes": kernel.bytes, "operations": kernel.operations}
                told["line"] = _line(kernel.site)
                yield _event(kernel.name, "X", _KERNELS, told) | _times(span.began - start, span.ended - start)

    def __str__(self) -> str:
        together = sum(k.seconds for k in self.kernels)
        rows = [_HEAD, *(self._row(kernel) for kernel in self.kernels[:_MOST_LINES])]
        rest = self.kernels[_MOST_LINES:]
        if rest:
            seconds = sum(k.seconds for k in rest)
            rows.append(_padded(f"({len(rest)} more)", sum(k.runs for k in rest), seconds, self.seconds))
        rows.append(_padded("kernels", sum(k.runs for k in self.kernels), together, self.seconds))
        rows.append(_padded("a call", "", self.seconds, self.seconds))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.function} on {self.device}, medians of {len(self._rounds)} calls"]
        for row in rows:
            cells = (c.ljust(w) if k < _LEFT else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
            lines.append("  ".join(cells).rstrip())
        lines.append(self._what_limits())
        if any(kernel.operations is None for kernel in self.kernels):
            lines.append("bytes and operations are not known of kernels with a loop whose number of steps is data")
        elif not self.exact:
            lines.append("some bytes and operations are estimates: data decides them")
        return "\n".join(lines)

    __repr__ = __str__

    def _row(self, k: KernelProfile) -> tuple[str, ...]:
        peak = self.limits.float64 if k.is_double else self.limits.float32
        cells = _padded(k.name, k.runs, k.seconds, self.seconds)[2:5]
        speeds = (*_speed(k.bandwidth, self.limits.copy), *_speed(k.rate, peak))
        return (k.name, _line(k.site), *cells, *speeds)

    def _what_limits(self) -> str:
        doubles = self.limits.float64
        text = f"{_number(self.limits.float32 / 1e9)} GFLOP/s of float32"
        text += f", {_number(doubles / 1e9)} of float64" if doubles is not None else ""
        return f"the device copies {_number(self.limits.copy / 1e9)} GB/s, and its peak is {text}"


def profile_of(
    function: str,
    device: str,
    limits: Limits,
    calls: Sequence[tuple[int, KernelProfile]],
    rounds: Sequence[Round],
    exact: bool,
) -> Profile:
    """The profile of rounds. `calls` has, for each call of the program, the number of its kernel, and the static costs
    of the call."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, (kernel, call) in enumerate(calls):
        groups.setdefault((kernel, call.name, call.site), []).append(number)
    totals = [_times_of_calls(taken, len(calls)) for taken in rounds]
    kernels = [
        attrs.evolve(
            calls[numbers[0]][1],
            runs=sum(span.call in numbers for span in rounds[-1].spans),
            seconds=statistics.median(sum(of_round[number] for number in numbers) for of_round in totals) / 1e9,
            bytes=_sum_if_known(calls[number][1].bytes for number in numbers),
            operations=_sum_if_known(calls[number][1].operations for number in numbers),
        )
        for numbers in groups.values()
    ]
    return Profile(
        function,
        device,
        tuple(sorted(kernels, key=lambda k: -k.seconds)),
        statistics.median(taken.ended - taken.began for taken in rounds) / 1e9,
        limits,
        exact,
        tuple(rounds),
        tuple(call for _, call in calls),
    )


def _sum_if_known(quantities: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is unknown."""
    total = 0
    for quantity in quantities:
        if quantity is None:
            return None
        total += quantity
    return total


def _times_of_calls(round_: Round, calls: int) -> list[int]:
    """Nanoseconds of each call of the program."""
    times = [0] * calls
    for span in round_.spans:
        times[span.call] += span.ended - span.began
    return times


def _event(name: str, phase: str, row: int, arguments: dict[str, object]) -> dict[str, object]:
    """An event of a trace: of phase X, which has a duration, or M, which names a row."""
    return {"name": name, "cat": "harp", "ph": phase, "pid": _PROCESS, "tid": row, "args": arguments}


def _times(began: int, ended: int) -> dict[str, object]:
    """In microseconds, as the format has them."""
    return {"ts": began / 1e3, "dur": (ended - began) / 1e3}


def _padded(name: str, runs: object, seconds: float, whole: float) -> tuple[str, ...]:
    return (name, "", str(runs), _time(seconds), f"{100 * seconds / whole:.0f} %", "", "", "", "")


def _speed(speed: float, limit: float | None) -> tuple[str, str]:
    if not speed:
        return "", ""
    return _number(speed / 1e9), f"{100 * speed / limit:.0f} %" if limit else ""


def _time(seconds: float) -> str:
    """Three digits and a unit."""
    scale, unit = next((u for u in _UNITS if seconds >= u[0]), _UNITS[-1])
    return f"{_number(seconds / scale)} {unit}"


def _number(value: float) -> str:
    """Three digits.

    >>> [_number(x) for x in (0.01234, 1.234, 12.34, 1234.5)]
    ['0.012', '1.23', '12.3', '1234']
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _line(site: Site | None) -> str:
    return f"{os.path.basename(site[0])}:{site[1]}" if site else ""
