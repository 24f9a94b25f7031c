"""Random programs: compiled, interpreted, and by NumPy, at several sizes.

Many programs are the results of one jitted function, for most of the time of a small one is that of starting a
compiler. Most such functions are compiled without optimisation and all kernels in one run, the others as for users. A
finding is made small and saved as a script.
"""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from common import options, say
from compare import verdicts
from expressions import Expression, Memory, Values, draw, fewer
from joined import in_one_run
from test_programs import DTYPES, fill

import harp
from harp.config import settings

settings.verify = max(
    settings.verify, 2
)  # a nest that breaks an invariant is an error, and not compiled in another way

MODES = {"joined -O0": 80, "joined -O2": 12, "usual": 8}  # of a hundred
SIZES = (0, 1, 2, 3, 5, 8, 33)
LARGE = {1: (3000,), 2: (70, 300), 3: (12, 9, 40)}, {1: (500,), 2: (16, 70), 3: (3, 9, 33)}  # one of eight, others
FAMILIES, CALLS, PROGRAMS = 4, 5, 128


class Batch(NamedTuple):
    """Programs that are compiled together, each with the number of its inputs, and the inputs of each call."""

    seed: int
    mode: str
    threads: int
    programs: tuple[tuple[int, Expression], ...]
    calls: tuple[tuple[tuple[Values, Values], ...], ...]  # call, family, (tame, any values)


class Finding(NamedTuple):
    """Which program at which call, and what is wrong; the kind is the name of an exception, or "differs"."""

    program: int
    call: int
    text: str
    kind: str = "differs"


def batch(seed: int, count: int) -> Batch:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    families = [(rng.choice(DTYPES), rng.randint(1, 3)) for _ in range(FAMILIES)]
    families += [("float64", rng.randint(1, 2)), ("float32", rng.randint(1, 2))]
    shapes = [tuple(rng.choice(SIZES) for _ in range(3)) for _ in range(CALLS - 1)] + [None]
    rng.shuffle(shapes)
    large = LARGE[rng.random() < 0.875]
    calls = []
    for sizes in shapes:
        given = []
        for dtype, rank in families:
            shape = large[rank] if sizes is None else sizes[:rank]
            given.append(tuple(tuple(fill(numbers, shape, dtype, tame) for _ in "xy") for tame in (True, False)))
        calls.append(tuple(given))
    tame = [[Memory(pairs[0]) for pairs in call] for call in calls]
    programs: list[tuple[int, Expression]] = []
    for _ in range(count):
        family = rng.randrange(len(families))
        known = [made for other, made in programs if other == family]
        programs.append((family, draw(rng, [call[family] for call in tame], known)))
    mode = rng.choices([*MODES], [*MODES.values()])[0]
    return Batch(seed, mode, rng.randint(1, 3), tuple(programs), tuple(calls))


def check(given: Batch, counts: collections.Counter[str]) -> Finding | None:
    """Compiles the programs, calls them at all sizes, and compares: the first difference."""
    harp.set_threads(given.threads)

    def results(families: Sequence) -> list:
        return [made.harp(*families[family][uses_any(made, families[family])]) for family, made in given.programs]

    compiled = harp.jit(results, options=harp.CompileOptions(0 if given.mode.endswith("-O0") else 2))
    with contextlib.nullcontext() if given.mode == "usual" else in_one_run():
        for call, families in enumerate(given.calls):
            try:
                found = compiled(families)
            except Exception as error:
                return Finding(-1, call, f"{type(error).__name__}: {error}", type(error).__name__)
            number = _other_bits(given, compiled, families, found)
            if number is not None:
                return Finding(number, call, "other bits with another number of threads")
            memories = [[Memory(pair) for pair in pairs] for pairs in families]
            for number, ((family, made), result) in enumerate(zip(given.programs, found, strict=True)):
                memory = memories[family][uses_any(made, families[family])]
                interpret = (given.seed + number) % CALLS == call
                for verdict in verdicts(made, memory, np.asarray(result), interpret, given.seed):
                    counts["results compared"] += 1
                    counts["elements not settled"] += verdict.unsettled
                    if verdict.problem:
                        return Finding(number, call, verdict.problem)
    counts["programs"] += len(given.programs)
    counts["functions compiled"] += compiled.compilations
    counts.update(made.kind for _, made in given.programs)
    counts[given.mode] += len(given.programs)
    return None


def _other_bits(given: Batch, compiled: Callable, families: Sequence, found: list) -> int | None:
    """The program whose result depends on the number of threads."""
    harp.set_threads(given.threads % 3 + 1)
    again = compiled(families)
    harp.set_threads(given.threads)
    for number, (one, other) in enumerate(zip(found, again, strict=True)):
        if np.asarray(one).tobytes() != np.asarray(other).tobytes():
            return number
    return None


def uses_any(made: Expression, pairs: Sequence) -> bool:
    """Whether the program is given all values that there are: NaN, infinities, the largest integers."""
    return made.exact and pairs[0][0].dtype.kind != "c"


def found_again(given: Batch, kind: str) -> Finding | None:
    """Whether one of these programs, which all work in NumPy, is wrong in this way."""
    try:
        for families in given.calls:
            for family, made in given.programs:
                made.numpy(families[family][uses_any(made, families[family])])
    except (TypeError, ValueError, IndexError):
        return None
    finding = check(given, collections.Counter())
    return finding if finding is not None and finding.kind == kind else None


def smaller(given: Batch, finding: Finding, seconds: float = 120.0) -> Batch:
    """Fewer programs, calls and steps, as long as something is found. The program at fault is tried alone first."""
    end, shrinks = time.monotonic() + seconds, True
    alone = given._replace(programs=given.programs[finding.program :][:1])
    if finding.program >= 0 and found_again(alone, finding.kind) is not None:
        given = alone
    while shrinks and time.monotonic() < end:
        shrinks = False
        for other in _candidates(given):
            if time.monotonic() < end and found_again(other, finding.kind) is not None:
                given, shrinks = other, True
                break
    return given


def _candidates(given: Batch) -> Iterator[Batch]:
    count = len(given.programs)
    for size in (count // 2, count // 8, 1) if count > 7 else (1,) if count > 1 else ():
        for start in range(0, count, size):  # these alone, and all others
            yield given._replace(programs=given.programs[start : start + size])
        for start in range(0, count, size):
            yield given._replace(programs=given.programs[:start] + given.programs[start + size :])
    for call in range(len(given.calls) if len(given.calls) > 1 else 0):
        yield given._replace(calls=given.calls[:call] + given.calls[call + 1 :])
    if count < 3:
        for number, (family, made) in enumerate(given.programs):
            for steps in fewer(made.steps):
                changed = (family, made._replace(steps=steps))
                yield given._replace(programs=(*given.programs[:number], changed, *given.programs[number + 1 :]))


def save(given: Batch, finding: Finding, directory: pathlib.Path) -> pathlib.Path:
    """What failed as text, with the command that repeats it."""
    directory.mkdir(exist_ok=True)
    path = directory / f"programs-{given.seed}.txt"
    lines = [f"python tests/soak/programs.py --seed {given.seed} --count {PROGRAMS}", f"{given.mode}", finding.text, ""]
    for number, (family, made) in enumerate(given.programs):
        if number != finding.program and len(given.programs) > 8:
            continue
        lines.append(f"{'*' if number == finding.program else ' '} {made.kind} {made.steps}")
        for families in given.calls:
            pair = families[family][uses_any(made, families[family])]
            lines.append(f"    {pair[0].dtype}{list(pair[0].shape)}")
    if len(given.programs) == len(given.calls) == 1:
        family, made = given.programs[0]
        lines += [f"{array!r}" for array in given.calls[0][family][uses_any(made, given.calls[0][family])]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def shown(counts: collections.Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def main() -> None:
    chosen = options(__doc__, count=PROGRAMS)
    directory = pathlib.Path("soak-findings")
    counts: collections.Counter[str] = collections.Counter({"programs": 0})
    end, seed, failed = time.monotonic() + chosen.seconds, chosen.seed, 0
    told = time.monotonic()
    running = pathlib.Path(os.environ.get("HARP_CACHE_DIR", ".")) / f"programs-of-{os.getpid()}"
    running.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # NumPy's, about numbers
    while seed == chosen.seed or time.monotonic() < end:
        running.write_text(f"{seed}\n")
        given = batch(seed, chosen.count)
        finding = check(given, counts)
        if finding is not None:
            failed += 1
            small = smaller(given, finding)
            path = save(small, found_again(small, finding.kind) or finding, directory)
            print(f"programs.py --seed {seed} --count {chosen.count}: {path}\n{path.read_text()}", flush=True)
        seed += 1
        if time.monotonic() > told + 300:
            told = time.monotonic()
            say(chosen, f"so far {shown(counts)}, {failed} findings")
    running.unlink()
    say(chosen, f"{shown(counts)}, {failed} findings")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
