"""Devices by name: those that work, and what is said of those that do not, with drivers that fail on purpose."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import harp
from harp import config, errors
from harp.__main__ import main
from harp.backends import devices
from harp.backends.toolchain import cache

pyopencl = pytest.importorskip("pyopencl")

from harp.backends.opencl import devices as found_devices  # noqa: E402
from harp.backends.opencl import trial  # noqa: E402


class FakeDevice(found_devices.OpenCLDevice):
    """A device that works, under the name of another driver; `script` is what a trial runs."""

    def __init__(self, real, number, script):
        super().__init__(real.device, number)
        self.script = script
        self.tried = 0

    @property
    def identity(self):
        return f"fake driver {self.number}"


@pytest.fixture
def real():
    try:
        found = found_devices.devices()
    except errors.DeviceError as error:
        pytest.skip(str(error))
    working = [device for device in found if trial.problem(device) is None]
    if not working:
        pytest.skip("no OpenCL device works")
    return working[0]


@pytest.fixture
def machine(monkeypatch, tmp_path, real):
    """A machine whose trials run these lines of Python in place of harp's, where there are any."""
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", [])
    try_it, script = trial._trial, trial._SCRIPT

    def tried(device):
        device.tried += 1
        monkeypatch.setattr(trial, "_SCRIPT", str(device.script))
        return try_it(device)

    def made(*scripts):
        for number, text in enumerate(scripts):
            (tmp_path / f"trial{number}.py").write_text(text or "")
        places = [tmp_path / f"trial{k}.py" if text else script for k, text in enumerate(scripts)]
        machine = tuple(FakeDevice(real, number, place) for number, place in enumerate(places))
        monkeypatch.setattr(trial, "_trial", tried)
        monkeypatch.setattr(found_devices, "devices", lambda: machine)
        monkeypatch.setattr(trial, "devices", lambda: machine)
        monkeypatch.setattr(trial, "_known", {})
        return machine

    made.script = pathlib.Path(script)
    return made


REFUSAL = r"print('its driver says FAILURE - says FAILURE - FAILURE\n\nerror: unknown target CPU\nmore')"


@pytest.mark.slow
def test_the_first_device_that_works_is_chosen(machine):
    machine(REFUSAL, None, None)
    assert devices.devices() == ("cpu", "opencl:1", "opencl:2")
    assert devices.known_device("opencl") == "opencl:1"
    assert devices.known_device("opencl:2") == "opencl:2"
    assert np.array_equal(harp.jit(lambda x: x * 2, device="opencl")(np.arange(5, dtype=np.int32)), [0, 2, 4, 6, 8])


def test_a_broken_driver_is_a_clear_error(machine):
    machine(REFUSAL, None)
    assert devices.known_device("opencl:0") == "opencl:0"  # by name it is not tried
    assert devices.devices() == ("cpu", "opencl:1")
    with pytest.raises(errors.DeviceError) as raised:
        devices.known_device("opencl:0")
    text = str(raised.value)
    for part in ("'opencl:0' cannot be used", "says FAILURE; error: unknown target CPU; update or remove", "doctor"):
        assert part in text
    assert text.count("FAILURE") == 1 and __file__ in text
    with pytest.raises(errors.DeviceError, match="there is no OpenCL device 7"):
        harp.default_device("opencl:7")


def test_where_no_device_works_the_first_says_why(machine):
    machine("print('out of licences')", "import sys; sys.exit('no memory: error 7')")
    assert devices.devices() == ("cpu",)
    with pytest.raises(errors.DeviceError, match=r"'opencl' cannot be used.*out of licences"):
        devices.known_device("opencl")
    with pytest.raises(
        errors.DeviceError, match="ends the process that runs a program, with status 1; no memory: error 7"
    ):
        devices.known_device("opencl:1")
    assert config.settings.device == "cpu"


@pytest.mark.slow
def test_drivers_that_end_the_process_or_hang_or_compute_nonsense(machine, monkeypatch):
    monkeypatch.setattr(trial, "_SECONDS", 2.0)
    found = machine("import os; os.abort()", "import time; time.sleep(60)", None, "import sys; sys.exit(3)")
    assert trial.problem(found[0]) == "its driver ends the process that runs a program, by SIGABRT"
    assert trial.problem(found[1]) == "its driver has not run a small program in 2 s"
    monkeypatch.setattr(trial, "_SECONDS", 60.0)
    assert trial.problem(found[2]) is None
    assert trial.problem(found[3]) is None  # the other process has no pyopencl: this one tries it
    monkeypatch.setattr(trial.sys, "executable", "/nonexistent")
    assert trial.examine(found[2]) is None


def test_wrong_numbers_are_a_failure(machine):
    machine(machine.script.read_text("utf-8").replace("x[i] += step", "x[i] += step + 1"))
    assert devices.devices() == ("cpu",)
    with pytest.raises(errors.DeviceError, match=r"wrong numbers on it: \[0, 4, 8, 12\] instead of"):
        devices.known_device("opencl")


@pytest.mark.slow
def test_the_trial_is_remembered_for_a_driver(machine, tmp_path, monkeypatch):
    first, second = machine("print('broken')", None)
    script = second.script
    devices.devices()
    monkeypatch.setattr(trial, "_known", {})  # another process
    devices.devices()
    assert (first.tried, second.tried) == (1, 1)
    first.script = script  # the driver was repaired
    assert trial.problem(first) is not None
    assert trial.examine(first) is None
    monkeypatch.setattr(trial, "_known", {})
    assert devices.devices() == ("cpu", "opencl:0", "opencl:1") and first.tried == 2
    for number, content in enumerate((b"", b"{", b"[1]", json.dumps(["another", ""]).encode())):
        cache.put(trial._key(first), ".json", content)
        monkeypatch.setattr(trial, "_known", {})
        assert trial.problem(first) is None and first.tried == 3 + number


def test_an_incomplete_pyopencl_is_not_remembered_as_the_fault_of_a_driver(machine, monkeypatch):
    """pyopencl imports some packages only when it builds a program."""
    script = machine.script.read_text("utf-8").replace("    context = ", "    import not_installed\n    context = ")
    (device,) = machine(script)
    with monkeypatch.context() as changed:
        changed.setattr(trial.trial_process, "_run", lambda device: __import__("not_installed"))
        assert trial.problem(device) == "pyopencl cannot be used: No module named 'not_installed'"
    device.script = machine.script
    assert trial.problem(device) is None and device.tried == 2


@pytest.mark.slow
def test_a_compiler_that_does_not_know_the_processor_is_found_out(machine):
    """It fails at fused multiply-adds of vectors, where all else may work."""
    script = machine.script.read_text("utf-8")
    wrong = script.replace("fma(x[i], x[i], x[i] + FIRST)", "x[i] * x[i] + FIRST")
    refused = script.replace("fma(x[i], x[i], x[i] + FIRST)", "no_such_function(x[i])")
    first, second = machine(wrong, refused)
    assert "wrong numbers" in trial.problem(first)
    assert "refuses a program" in trial.problem(second)


@pytest.mark.slow
def test_doctor_tries_each_device(machine, capsys, monkeypatch):
    first, second = machine("print('the driver is broken')", None)
    main(["doctor"])
    out = capsys.readouterr().out
    for text in ("opencl:0 ", "the driver is broken", "left out; update or remove driver", "opencl:1 ", "is right"):
        assert text in out
    assert "GiB" in out and "float64" in out and "work-groups of up to" in out
    first.script = second.script
    main(["doctor"])
    assert capsys.readouterr().out.count("is right") == 2
    machine()
    main(["doctor"])

    def nothing():
        raise errors.DeviceError("no OpenCL platform was found")

    monkeypatch.setattr(trial, "devices", nothing)
    main(["doctor"])
    assert "no OpenCL platform was found" in capsys.readouterr().out
    assert devices.devices() == ("cpu",)


def test_without_pyopencl(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "harp.backends.opencl.trial")
    monkeypatch.setitem(sys.modules, "harp.backends.opencl.trial", None)
    assert devices.devices() == ("cpu",)
    with pytest.raises(errors.DeviceError, match=r"pip install harp-compiler\[opencl\]"):
        devices.known_device("opencl")
    main(["doctor"])
    assert "pip install harp-compiler[opencl]" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["gpu", "", "opencl:", "opencl:x", "opencl:-1", "CPU", 3, None])
def test_other_names_are_errors(name):
    with pytest.raises(errors.DeviceError, match="this machine has cpu"):
        devices.known_device(name)


def test_the_environment_names_the_device():
    code = "import harp, numpy as np; print(harp.jit(lambda x: x + 1)(np.ones(2, np.float32)))"

    def run(device):
        environment = {**os.environ, "HARP_DEVICE": device}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    assert run("cpu").stdout == "[2. 2.]\n"
    assert "there is no device 'gpu'; this machine has cpu" in run("gpu").stderr
    assert "there is no OpenCL device 99" in run("opencl:99").stderr or "pip install" in run("opencl:99").stderr
