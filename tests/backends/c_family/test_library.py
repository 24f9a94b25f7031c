"""Every kernel of the library: gcc and clang compile it without a warning, and it calls what the table says."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from accuracy import CLANG, LIBRARY

from harp.backends.c_family.library import KERNELS, MATRICES_USE, LibraryRoutine, linked
from harp.backends.runtime import lapack
from harp.backends.toolchain.library import included

COMPILERS = {"gcc": ("gcc",), "clang": (*CLANG, "-fno-sanitize=all")}
STRICT = ("-std=gnu11", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{LIBRARY}")
WIDE = ("-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq")
# Instructions for vectors of so many bytes; sorts use all there are.
INSTRUCTIONS = {16: (), 32: ("-mavx2", "-mfma"), 64: WIDE}

needs_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the flags are those of x86")


def instructions(kernel: LibraryRoutine) -> tuple[str, ...]:
    macros = {name: str(value) for name, value in kernel.macros}
    lanes = macros.get("HARP_LANES")
    return WIDE if lanes is None else INSTRUCTIONS[int(lanes) * int(macros["HARP_BITS"]) // 8]


@needs_x86
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("file", sorted({kernel.file for kernel in KERNELS.values()}))
def test_no_compiler_warns_and_calls_are_those_of_the_table(compiler: str, file: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None and (compiler == "gcc" or importlib.util.find_spec("ziglang") is None):
        pytest.skip("is not installed")
    for kernel in (kernel for kernel in KERNELS.values() if kernel.file == file):
        source, result = tmp_path / "unit.c", tmp_path / "unit.o"
        source.write_text(kernel.unit().text)
        command = [*COMPILERS[compiler], *STRICT, *instructions(kernel), "-O1", "-c", str(source), "-o", str(result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if shutil.which("nm"):
            symbols = subprocess.run(["nm", str(result)], capture_output=True, text=True, check=True).stdout
            of_process = MATRICES_USE | {"harp_give"} if kernel.file.startswith("lapack/") else set()
            assert set(re.findall(r" U (harp_\w+)", symbols)) - of_process == set(kernel.calls)
            assert re.findall(r" T (\w+)", symbols) == [kernel.name]


def test_the_header_and_the_table_of_pointers_list_the_same_functions_of_lapack() -> None:
    text = (LIBRARY / "lapack" / "lapack.h").read_text()
    (names,) = re.findall(r"^enum \{ (POTRF[^}]*) \};", text, re.MULTILINE)
    assert [row.split()[1][1:].upper() for row in lapack.NAMES] == names.split(", ")


def test_each_prototype_is_in_the_header() -> None:
    for kernel in KERNELS.values():
        assert kernel.header in included(kernel.unit().text), "the definition is compared with it"


def test_kernels_that_are_called_are_linked_too() -> None:
    assert [kernel.name for kernel in linked(["harp_gemm_panel_f32_x8", "harp_gemv_axpy_f32"])] == [
        "harp_gemm_panel_f32_x8",
        "harp_gemv_axpy_f32",
        "harp_transpose_32_x8",
        "harp_gemv_dot_f32_x8",
        "harp_gemm_microkernel_f32_x8",
    ]
