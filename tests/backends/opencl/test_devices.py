"""Devices by name, arrays that stay there, and what goes wrong."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import DeviceError, DonatedError, InterchangeError, OutOfMemoryError

pytestmark = pytest.mark.parametrize("device", ["opencl"], indirect=True)


def test_devices_have_names(device):
    assert harp.devices()[0] == "cpu" and device in harp.devices()
    for wrong in ("gpu", "opencl:77", "opencl:" + "9" * 5000, "", 3, None):
        with pytest.raises(DeviceError, match=r"there is no device|cannot be used"):
            harp.device_put(np.ones(2), wrong)
    with pytest.raises(DeviceError, match="this machine has cpu"):
        harp.jit(lambda x: x, device="tpu")


def test_the_device_of_a_function_or_of_all(device):
    here = harp.jit(lambda x: x + 1, device="cpu")
    there = harp.jit(lambda x: x + 1, device=device)
    anywhere = harp.jit(lambda x: x + 1)
    with harp.default_device("cpu"):
        assert anywhere(np.ones(2)).device == here(np.ones(2)).device == "cpu"
        assert there(np.ones(2)).device == device
        with harp.default_device(device):
            assert anywhere(np.ones(2)).device == device and here(np.ones(2)).device == "cpu"
        assert anywhere(np.ones(2)).device == "cpu"
    assert anywhere.compilations == 1  # those for the device in use


def test_arrays_stay_there(device):
    f = harp.jit(lambda x, y: (x @ y, hnp.sum(x)))
    x, y = harp.device_put((np.random.rand(30, 40), np.random.rand(40, 20)), device)
    assert x.device == device and x.shape == (30, 40) and x.dtype == np.float64 and x.ndim == 2 and x.size == 1200
    before = harp.stats()["bytes_to_devices"]
    z, total = f(x, y)
    again, _ = f(z, z.T.to_device(device))  # the eager transpose is computed here
    assert harp.stats()["bytes_to_devices"] == before + z.nbytes
    assert z.device == total.device == again.device == device
    npt.assert_allclose(np.asarray(z), np.asarray(x) @ np.asarray(y))
    npt.assert_allclose(float(total), np.asarray(x).sum())
    assert z.to_device(device) is z and z.to_device("cpu").device == "cpu"
    assert repr(z)[:6] == "Array(" and (z + 1).device == "cpu"


def test_arguments_that_are_moved_are_named_once(device, caplog):
    f = harp.jit(lambda x, weights: x * weights["w"], device="cpu")
    there = harp.device_put(np.ones(3), device)
    for _ in range(3):
        npt.assert_array_equal(f(np.ones(3), {"w": there}), np.ones(3))
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "runs on cpu" in said and f"weights['w'] on {device};" in said


def test_views_of_the_host_outlive_arrays(device):
    f = harp.jit(lambda x: x * 2)
    kept = [np.asarray(f(harp.device_put(np.full(1000, float(k)), device))) for k in range(20)]
    gc.collect()
    for k, view in enumerate(kept):
        npt.assert_array_equal(view, 2.0 * k)
    with pytest.raises(ValueError, match="read-only"):
        kept[0][0] = 1


def test_inputs_of_the_host_may_change_after_the_call(device):
    f = harp.jit(lambda x: hnp.sum(hnp.exp(hnp.sin(x))))
    x = np.ones(500_000)
    result = f(x)
    x[:] = 0
    npt.assert_allclose(float(result), np.exp(np.sin(1.0)) * 500_000)


def test_all_that_arrays_can_do(device):
    x = harp.device_put(np.arange(6.0).reshape(2, 3), device)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x[1, 2].item() == 5 and len(x) == 2
    assert [row.tolist() for row in x] == x.tolist()
    npt.assert_array_equal(np.asarray(hnp.concatenate([x, x])), np.concatenate([np.asarray(x)] * 2))
    npt.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    npt.assert_allclose(np.asarray(harp.grad(lambda x: hnp.sum(x**2))(x)), 2 * np.asarray(x))
    with pytest.raises(InterchangeError, match="streams"):
        x.to_device("cpu", stream=1)
    assert harp.jit(lambda x: x.to_device(device) + 1)(x).device == device
    weak = harp.jit(lambda x: x + 1)(2)
    assert weak.weak and (weak + np.float32(1)).dtype == np.float32


def test_donation(device):
    f = harp.jit(lambda x: x * 2 + 1, donate_argnums=0)
    for given in (harp.device_put(np.arange(5.0), device), harp.device_put(np.arange(5.0), "cpu")):
        npt.assert_array_equal(np.asarray(f(given)), [1, 3, 5, 7, 9])
        with pytest.raises(DonatedError):
            np.asarray(given)
    seen = harp.device_put(np.arange(5.0), device)
    view = np.asarray(seen)
    assert f(seen).tolist() == [1, 3, 5, 7, 9] and view.tolist() == [0, 1, 2, 3, 4]


def test_an_array_that_is_donated_and_read(device):
    """The result may not be where the other argument is read."""
    f = harp.jit(lambda x, y: x * 2 + y[::-1], donate_argnums=0)
    g = harp.jit(lambda x, y: (x + y[::-1], y), donate_argnums=(0, 1))
    numbers = np.arange(5000.0)
    for _ in range(2):  # the call that is traced looks at its arguments, and so copies them
        x = harp.device_put(numbers, device)
        npt.assert_array_equal(np.asarray(f(x, x)), numbers * 2 + numbers[::-1])
        x = harp.device_put(numbers, device)
        found = g(x, x)
        npt.assert_array_equal(np.asarray(found[0]), numbers + numbers[::-1])
        npt.assert_array_equal(np.asarray(found[1]), numbers)


def test_empty_arrays_and_numbers(device):
    f = harp.jit(lambda x, k: (x * k, hnp.sum(x), hnp.concatenate([x, x])))
    for n in (0, 1, 4):
        x = harp.device_put(np.arange(float(n)), device)
        product, total, twice = f(x, 3)
        assert product.shape == (n,) and float(total) == np.arange(n).sum() and twice.shape == (2 * n,)
    assert f.compilations == 1


def test_captured_arrays_are_sent_once(device):
    table = np.random.rand(1000)
    f = harp.jit(lambda k: hnp.asarray(table)[k])
    places = harp.device_put(np.array([3, 5]), device)
    f(places)
    before = harp.stats()["bytes_to_devices"]
    npt.assert_array_equal(np.asarray(f(places)), table[[3, 5]])
    assert harp.stats()["bytes_to_devices"] == before


def test_too_large(device):
    f = harp.jit(lambda x: hnp.broadcast_to(x, (1 << 21, 1 << 21)) + 1)
    with pytest.raises(OutOfMemoryError, match="no room"):
        f(1.0)


def test_threads_share_a_device(device):
    f = harp.jit(lambda x, k: hnp.cumsum(x) * k)
    x = harp.device_put(np.ones(1000), device)
    wrong = []

    def work(k):
        for _ in range(20):
            if not np.array_equal(np.asarray(f(x, float(k))), np.arange(1, 1001) * float(k)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_and_checks(device):
    f = harp.jit(lambda x: hnp.log(x), check=True, device=device)
    assert f(np.ones(3)).tolist() == [0, 0, 0]
    with pytest.raises(harp.errors.NotFiniteError):
        f(-np.ones(3))


def test_drivers_that_refuse_a_kernel(device, monkeypatch):
    from harp.backends.opencl import build

    monkeypatch.setattr(build, "options", lambda device, is_users: "-no-such-option")
    with pytest.raises(DeviceError, match="refuses a kernel: cl"):
        harp.jit(lambda x: x * 3.25 - 1)(np.ones(3))


@pytest.mark.parametrize("shared", [True, False])
def test_results_cannot_be_made_writable(device, shared, monkeypatch):
    from harp.backends.opencl import devices

    chosen = devices.device(int(device.partition(":")[2]))
    monkeypatch.setitem(chosen.__dict__, "shares_memory", shared)
    view = np.asarray(harp.jit(lambda x: x + 1)(np.zeros(3)))
    assert view.tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True


def test_devices_without_doubles(device, monkeypatch):
    from harp.backends.opencl import devices

    chosen = devices.device(int(device.partition(":")[2]))
    monkeypatch.setitem(chosen.__dict__, "has_doubles", False)
    f = harp.jit(lambda x: x * 1.75)
    with pytest.raises(DeviceError, match="float32"):
        f(np.ones(3))
    assert f(np.ones(3, np.float32)).tolist() == [1.75] * 3
    turned = harp.jit(lambda x: x[::-1])
    with pytest.raises(DeviceError, match=r"no floats of 64 bits.*float32"):
        turned(np.ones(3, np.complex128))
    assert turned(np.array([1, 2j], np.complex64)).tolist() == [2j, 1]
    inside = harp.jit(lambda x: hnp.sum(hnp.cos(x.astype(np.float32).astype(np.float64))).astype(np.float32))
    with pytest.raises(DeviceError, match="float32"):  # of arrays only float32
        inside(np.ones(3, np.float32))
    twice = harp.kernel("y[i] = 2 * x[i]; // the double", {"x": "f32[n]"}, {"y": "f32[n]"}, {"i": "n"})
    assert harp.jit(twice)(np.ones(3, np.float32)).tolist() == [2] * 3


_FORKED = """
import os, sys
import numpy as np
import pyopencl as cl
import harp

f = harp.jit(lambda x: x + 1, device=sys.argv[1])
resident = f(f(np.ones(3)))
own = cl.Context([cl.get_platforms()[0].get_devices()[0]])
count = sys.getrefcount(own)
child = os.fork()
if not child:
    print(sys.getrefcount(own) == count + 1)  # it is never freed here: it is the parent's
    for task in (lambda: f(np.ones(3)), lambda: np.asarray(resident), lambda: harp.device_put(np.ones(3), sys.argv[1])):
        try:
            print(task())
        except harp.errors.DeviceError as error:
            print("spawn" in str(error))
    print(harp.jit(lambda x: x + 1, device="cpu")(np.ones(3)), flush=True)
    sys.exit()
print(os.waitpid(child, 0)[1], f(resident))
"""


def test_a_child_of_a_fork_is_told_to_be_spawned(device):
    """The threads of the driver are not there: it waited for them for ever."""
    found = subprocess.run([sys.executable, "-c", _FORKED, device], capture_output=True, text=True, timeout=100)
    assert found.stdout.split("\n") == ["True"] * 4 + ["[2. 2. 2.]", "0 [4. 4. 4.]", ""], found


def test_programs_are_found_in_the_cache(device, tmp_path, monkeypatch):
    from harp.backends.opencl import build, devices

    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path))
    chosen = devices.device(int(device.partition(":")[2]))
    monkeypatch.setitem(chosen.__dict__, "gives_programs_out", True)
    results = []
    for _ in range(2):
        build.program.cache_clear()
        harp.jit(lambda x: x * 7.5 - 2)(np.ones(3))
        results.append(len(list(tmp_path.glob("*.cl"))))
        from harp.transforms.jit import programs

        programs.forget()
    assert results == [1, 1]
    for entry in tmp_path.glob("*.cl"):
        entry.write_bytes(b"damaged")
    build.program.cache_clear()
    assert harp.jit(lambda x: x * 7.5 - 2)(np.ones(3)).tolist() == [5.5] * 3


def test_a_driver_that_would_compile_again_keeps_its_programs(device, tmp_path, monkeypatch):
    from harp.backends.opencl import build, devices

    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path))
    chosen = devices.device(int(device.partition(":")[2]))
    assert chosen.gives_programs_out is (chosen.device.platform.name.strip() != "Portable Computing Language")
    monkeypatch.setitem(chosen.__dict__, "gives_programs_out", False)
    build.program.cache_clear()
    assert harp.jit(lambda x: x * 7.25 - 2)(np.ones(3)).tolist() == [5.25] * 3
    assert not list(tmp_path.glob("*.cl"))


def test_stages_are_those_of_the_device(device):
    stages = harp.jit(lambda x: hnp.tanh(x) + hnp.sum(x)).lower(np.ones((3, 4)))
    assert "void harp_launch0(" in stages.source and "def program(run" in stages.source
    assert "lines of OpenCL C" in str(stages) and "for grid" in stages.loops
    assert "harp_launch0" in stages.html()
    with harp.default_device("cpu"):
        assert "lines of C" in str(harp.jit(lambda x: x + 1).lower(np.ones(3)))


def test_the_first_call_leaves_arrays_where_they_are(device):
    """Also those that it donates, whose memory a result gets."""
    x = harp.device_put(np.arange(1000.0), device)
    place, before = x.held.memory, harp.stats()["bytes_from_devices"]
    result = harp.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert result.held.memory is place and not x.held
    y = harp.jit(lambda x, n: x * n, static_argnums=1)(result, 3)
    assert harp.stats()["bytes_from_devices"] == before
    npt.assert_array_equal(y, np.arange(1, 1001.0) * 3)


def test_an_array_that_is_donated_during_a_first_call_is_read_before(device, monkeypatch):
    """Another thread may do so at any time. What the call knows of it then is its shape, and no numbers."""
    from harp.transforms.jit import jit

    x = harp.device_put(np.arange(5.0), device)
    describe, others = jit.described, [harp.jit(lambda x: x * 0, donate_argnums=0)]

    def described(*given):
        found = describe(*given)
        while others:
            others.pop()(x)
        return found

    monkeypatch.setattr(jit, "described", described)
    npt.assert_array_equal(harp.jit(lambda x: x + 1)(x), np.arange(1, 6.0))
    assert x.held is None
    y = harp.device_put(np.arange(5.0), device)
    read = y.held  # as by a call that has not begun
    harp.jit(lambda x: x * 0, donate_argnums=0)(y)
    npt.assert_array_equal(read.host(), np.arange(5.0))


@pytest.mark.parametrize(("said", "wide"), [("1", True), ("0", False), ("", None)])
def test_the_environment_says_which_kernels_devices_get(device, said, wide):
    code = (
        "import harp, harp.numpy as hnp, numpy as np; from harp.backends.opencl import devices; "
        f"text = harp.jit(lambda x: hnp.sum(x, 1), device={device!r}).lower(np.ones((2, 3))).loops; "
        f"found = devices.device({device.partition(':')[2]}); import pyopencl as cl; "
        "print('item' in text, found.is_wide, not found.device.type & cl.device_type.CPU)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "HARP_WIDE": said}, capture_output=True, text=True
    )
    *found, own = done.stdout.split()
    assert found == [str(wide)] * 2 if said else found[1] == own, done.stderr
