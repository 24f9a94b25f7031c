"""Names that are imported when they are first asked for."""

import importlib
import subprocess
import sys

import pytest

from harp.lazy import FUNCTIONS, Names


@pytest.mark.parametrize(
    "namespace",
    [
        "harp",
        "harp.lax",
        "harp.numpy",
        "harp.numpy.linalg",
        "harp.scipy",
        "harp.scipy.interpolate",
        "harp.scipy.special",
        "harp.scipy.stats",
    ],
)
def test_all_names_are_there(namespace):
    module = importlib.import_module(namespace)
    for name in module._NAMES.homes:
        assert getattr(module, name) is module._NAMES[name], name
    assert module.__all__ == sorted(name for name in module._NAMES.homes if not name.startswith("_"))
    assert {*dir(module)} >= {*module._NAMES.homes, "__all__", "__doc__"}


def test_arrays_find_what_they_look_up_by_name():
    assert all(callable(FUNCTIONS[name]) for name in FUNCTIONS.homes if name != "numpy")


def test_a_name_without_a_row():
    with pytest.raises(KeyError):
        Names({"math": "pi"})["e"]


def test_operators_and_methods_work_before_the_namespace_is_imported():
    code = (
        "import sys, numpy, harp; assert 'harp.numpy.reductions' not in sys.modules; "
        "x = harp.device_put(numpy.ones(3), 'cpu'); assert float((x + x).sum()) == 6 and x.T.reshape(1, 3)[0, 1] == 1; "
        "assert harp.numpy.add.reduce(x) == 3 and harp.f32([1, 2]).dtype == 'float32'; print('done')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
