"""`f.profile(...)`: which kernels there are, what they move and compute; their times are those of the calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import backends, errors
from harp.backends import devices
from harp.backends.protocol import Limits, Span
from harp.backends.toolchain import cache
from harp.backends.toolchain.toolchain import find_toolchain
from harp.transforms.jit import profiling
from harp.transforms.jit.profile import KernelProfile, Round, profile_of

F32 = np.float32
DEVICES = [name for name in devices.devices() if name != "cpu" or find_toolchain()][:2]
pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="no C compiler")


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def product(x, w):
    return hnp.sort(x @ w, axis=1)


def events(profile, path, row):
    profile.trace(path)
    found = json.loads(path.read_text("utf-8"))["traceEvents"]
    return [event for event in found if event["ph"] == "X" and event["tid"] == row]


def test_bytes_and_operations_are_those_of_the_function(device):
    n, m, k = 60, 30, 50
    profile = harp.jit(product, device=device).profile(np.ones((n, m), F32), np.ones((m, k), F32))
    by_line = {kernel.name: kernel for kernel in profile.kernels}
    assert len(by_line) == 2 and profile.device == device
    matmul, sort = (next(k for k in by_line.values() if k.name.startswith(stem)) for stem in ("sum", "sort"))
    assert (matmul.operations, matmul.bytes) == (2 * n * m * k, 4 * (n * m + m * k + n * k))
    assert (sort.operations, sort.bytes) == (0, 2 * 4 * n * k)
    assert {kernel.site[0] for kernel in profile.kernels} == {__file__}
    assert not matmul.is_double and matmul.rate == pytest.approx(matmul.operations / matmul.seconds)


def test_kernels_run_one_after_the_other_within_their_call(device, tmp_path):
    profile = harp.jit(product, device=device).profile(np.ones((300, 200), F32), np.ones((200, 300), F32))
    calls, kernels = (events(profile, tmp_path / "trace.json", row) for row in (1, 2))
    assert len(calls) >= 5 and len(kernels) == sum(k.runs for k in profile.kernels) * len(calls)
    for first, second in pairwise(kernels):
        assert first["ts"] + first["dur"] <= second["ts"] + 0.01
    for call in calls:
        inside = [k for k in kernels if call["ts"] <= k["ts"] and k["ts"] + k["dur"] <= call["ts"] + call["dur"] + 0.01]
        assert len(inside) == len(kernels) // len(calls)
        assert 0 < sum(k["dur"] for k in inside) <= call["dur"]
    assert profile.seconds > 0 and all(k.seconds > 0 for k in profile.kernels)


def test_arrays_on_the_device_stay_there(device):
    x = harp.device_put(np.ones((50, 40)), device)
    before = harp.stats()
    profile = harp.jit(lambda x: x * 2, device=device).profile(x)
    assert {name: n for name, n in harp.stats().items() if "bytes" in name and n != before[name]} == {}
    assert profile.kernels[0].bytes == 2 * 50 * 40 * 8


def test_limits_of_a_device_are_numbers(device):
    found = backends.get("c" if device == "cpu" else device).measure(2)
    assert found.copy > 1e7 and found.float32 > 1e7 and (found.float64 is None or found.float64 > 1e7)


def test_equal_kernels_of_a_line_are_one_row():
    def f(x):
        for _ in range(3):
            x = hnp.sort(x) * 2
        return x

    profile = harp.jit(f).profile(np.ones(100, F32))
    sorts = [k for k in profile.kernels if k.name == "sort"]
    assert [k.runs for k in sorts] == [3] and sorts[0].bytes == 3 * 2 * 400
    assert str(profile).count("\nsort ") == 1


def test_nothing_is_donated_and_callbacks_are_called(device):
    seen = []

    def f(x):
        harp.debug.callback(lambda value: seen.append(np.array(value)), hnp.sum(x))
        return x + 1

    x = hnp.asarray(np.arange(5.0))
    jitted = harp.jit(f, donate_argnums=0, device=device)
    profile = jitted.profile(x)
    assert np.array_equal(np.asarray(x), np.arange(5.0))
    assert jitted.compilations == 0 and profile.seconds > 0
    assert len(seen) >= 7 and all(value == 10.0 for value in seen)


def test_trees_many_arrays_static_values_and_empty_ones(device):
    def f(power, arrays, *, scale):
        return {name: hnp.sum(a**power) * scale for name, a in arrays.items()}

    arrays = {f"a{k}": np.ones((k, 3)) for k in range(8)}
    profile = harp.jit(f, static_argnums=0, device=device).profile(2, arrays, scale=2.0)
    assert profile.kernels and all(k.is_double for k in profile.kernels)
    assert harp.jit(lambda x: x * 2, device=device).profile(np.ones((0, 3))).seconds > 0


def test_what_a_call_refuses_a_profile_refuses():
    f = harp.jit(lambda x, n: x[: n.shape[0]] + n)
    with pytest.raises(errors.HarpError) as of_call:
        f(np.ones(3), np.ones(5))
    with pytest.raises(type(of_call.value)):
        f.profile(np.ones(3), np.ones(5))
    with pytest.raises(errors.UnsupportedDTypeError):
        f.profile(np.array(["text"]), np.ones(3))


def test_checked_programs_and_loops_that_data_ends():
    checked = harp.jit(lambda x, i: x[i], check=True).profile(np.arange(5.0), np.array([1, -1]))
    assert checked.kernels and checked.kernels[0].runs
    profile = harp.jit(lambda x: harp.while_loop(lambda s: s < 100, lambda s: s * 2, x)).profile(1.0)
    assert not profile.exact and "not known" in str(profile)
    (loop,) = (kernel for kernel in profile.kernels if kernel.name == "repeat")
    assert loop.operations is None and loop.bytes is None and loop.rate == loop.bandwidth == 0


def test_programs_of_calls_have_no_clock():
    x = np.ones(3)
    f = harp.jit(lambda x: x + 1)
    f.profile(x)
    assert "harp_now" not in f.lower(x).source and np.array_equal(f(x), x + 1)


@pytest.mark.usefixtures("processor")
def test_without_a_compiler_there_is_no_profile():
    code = "import harp, numpy as np\ntry: harp.jit(lambda x: x + 1).profile(np.ones(3))\n"
    code += (
        "except harp.errors.ToolchainError as error: print('no compiler' if 'no C compiler' in str(error) else error)"
    )
    environment = {**os.environ, "HARP_CC": "none", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "no compiler\n"


def kernel(name, moved=0, operations=0):
    return KernelProfile(name, ("file.py", 3), 0, 0.0, moved, operations, False)


def test_medians_sums_and_shares():
    calls = [(0, kernel("a", 10, 4)), (1, kernel("b", 100, 50)), (0, kernel("a", 20, 6))]
    rounds = [
        Round(0, 1000 * k, (Span(0, 0, 100 * k), Span(1, 0, 300), Span(1, 300, 400), Span(2, 0, 50))) for k in (1, 2, 9)
    ]
    profile = profile_of("f", "cpu", Limits(1e9, 1e9, None), calls, rounds, True)
    b, a = profile.kernels if profile.kernels[0].name == "b" else profile.kernels[::-1]
    assert (a.runs, a.bytes, a.operations) == (2, 30, 10) and a.seconds == pytest.approx(250e-9)
    assert (b.runs, b.bytes, b.operations) == (2, 100, 50) and b.seconds == pytest.approx(400e-9)
    assert profile.seconds == pytest.approx(2e-6)
    lines = str(profile).splitlines()
    assert lines[2].split() == ["b", "file.py:3", "2", "400", "ns", "20", "%", "0.250", "25", "%", "0.125", "12", "%"]
    assert lines[4].split()[:5] == ["kernels", "4", "650", "ns", "32"]


class Device:
    def __init__(self, *found):
        self.found, self.asked = list(found), 0

    def limits_key(self, threads):
        return f"device of {threads}"

    def measure(self, threads):
        self.asked += 1
        return self.found.pop(0)


def test_limits_are_the_best_of_a_few_processes(monkeypatch, tmp_path):
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", [])
    device = Device(*(Limits(float(k), 10.0 - k, None) for k in range(1, 8)))
    for asked in (1, 2, 3, 4, 4):
        monkeypatch.setattr(profiling, "_measured", set())  # another process
        found = profiling.limits(device, 2)
        assert found == profiling.limits(device, 2) == Limits(float(asked), 9.0, None)
        assert device.asked == asked
    [entry] = (tmp_path / "cache").glob("limits-*.json")
    key = entry.name.removesuffix(".json")
    for content in (b"[]", b"{", b"3", json.dumps([key, 9, -1.0, 2.0, None]).encode()):
        cache.put(key, ".json", content)
        again = Device(Limits(7.0, 7.0, 7.0))
        monkeypatch.setattr(profiling, "_measured", set())
        assert profiling.limits(again, 2) == Limits(7.0, 7.0, 7.0) and again.asked == 1
