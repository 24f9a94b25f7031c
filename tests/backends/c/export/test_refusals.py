"""What cannot be exported, and how that is said; the library in one file."""

from __future__ import annotations

import re
import subprocess
from functools import partial

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.c.emit import bundle
from harp.backends.c_family.library import KERNELS
from harp.errors import ArgumentError, ExportError, InconclusiveSizeError
from tests.backends.c.export.callers import GCC, STRICT

f32, f64 = harp.f32, harp.f64


def calls_numpy(x):
    return harp.pure_callback(np.sin, x, x) + 1


def prints(x):
    harp.debug.print("{}", x.sum())
    return x


def in_a_loop(a):
    return harp.fori_loop(0, 3, lambda _, a: hnp.linalg.cholesky(a @ a.T), a)


REFUSED = {
    "calls_numpy": (calls_numpy, "pure_callback of sin is a function of Python"),
    "prints": (prints, "it calls a function of Python for what that does, such as harp.debug.print"),
    "in_a_loop": (in_a_loop, "cholesky is a function of LAPACK"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_python_and_lapack(name, tmp_path):
    function, words = REFUSED[name]
    with pytest.raises(ExportError, match=re.escape(words)) as caught:
        harp.export({name: (function, np.eye(3))}, tmp_path, "file")
    first = function.__code__.co_firstlineno
    (line,) = re.findall(rf"at {re.escape(__file__)}:(\d+)", str(caught.value))
    assert first < int(line) <= first + 2 and repr(name) in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_python_integers_that_are_checked(tmp_path):
    with pytest.raises(ExportError, match="give it a dtype"):
        harp.export({"f": (lambda x, k: x * k, np.ones(3, np.int8), 5)}, tmp_path, "file")
    harp.export({"f": (lambda x, k: x * k, np.ones(3, np.int8), np.int8(5))}, tmp_path, "file")


def test_sizes_that_are_not_decided(tmp_path):
    with pytest.raises(InconclusiveSizeError):
        harp.export({"f": (lambda x: x.reshape(2, -1), f32["n"])}, tmp_path, "file")


MISTAKES = {
    "no dict": ((lambda x: x, f32["n"]), "file", "entries is a dict"),
    "nothing": ({}, "file", "entries is a dict"),
    "no tuple": ({"f": hnp.sin}, "file", "entry 'f' is a tuple"),
    "no function": ({"f": (3, f32["n"])}, "file", "export takes a function first"),
    "both": ({"f": (hnp.add, f32["n"], np.ones(3))}, "file", "either signatures or arrays"),
    "name": ({"f": (hnp.sin, f32["n"])}, "a file", "no name of a file"),
    "taken": ({"f": (hnp.sin, f32["n"]), "f_shapes": (hnp.sin, f32["n"])}, "file", "of another function or macro"),
    "guard": ({"H": (hnp.sin, f32["n"])}, "FILE", "of another function or macro"),
    "code": ({"TOO_LARGE": (hnp.sin, f32["n"])}, "FILE", "of another function or macro"),
    "entry": ({"2f": (hnp.sin, f32["n"])}, "file", "'2f' is no name"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_arguments(mistake, tmp_path):
    entries, name, words = MISTAKES[mistake]
    with pytest.raises(ArgumentError, match=re.escape(words)):
        harp.export(entries, tmp_path, name)


def test_names(tmp_path):
    """Words of C and C++, macros of gcc, and the same name for a size and an array."""
    f = lambda n, double, linux, nullptr: {"class": n + double + linux + nullptr, "out": n}
    harp.export({"f": (f, *[f32["n"]] * 4)}, str(tmp_path), "words")
    assert (
        "(const float *n_, const float *double_, const float *linux_, const float *nullptr_, float *out_class, float "
        "*out_out, int64_t n, void *scratch);" in (tmp_path / "words.h").read_text()
    )


def test_jitted_functions_and_arrays_are_taken(tmp_path):
    """Axes that are always equal are one size, and those that a guard makes a number none."""
    f = harp.jit(lambda x, w: x @ w + np.ones(10))
    harp.export({"f": (partial(f), np.ones((4, 3)), np.ones((3, 10)))}, tmp_path, "sizes")
    assert "int64_t sizes_f_scratch(int64_t x_0, int64_t x_1);" in (tmp_path / "sizes.h").read_text()


@pytest.mark.skipif(not GCC, reason="needs gcc")
def test_whole_library_in_one_file(tmp_path):
    """All units that need no LAPACK, beside each other: no name of one is in the way of another."""
    routines = [routine for routine in KERNELS.values() if not routine.file.startswith("lapack")]
    shared = bundle.headers(['#include "generated.h"\n#include "process.h"\n', *(r.unit().text for r in routines)])
    units = [bundle.unit(routine, k) for k, routine in enumerate(routines)]
    (tmp_path / "all.c").write_text("\n".join([shared, *units]))
    flags = ["-O0", "-Wno-psabi", "-Wno-unused-const-variable", "-c"]
    subprocess.run([GCC, *STRICT, *flags, "all.c"], check=True, cwd=tmp_path)
