"""Programs that the drivers of devices refuse."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("pyopencl")

from harp.backends.opencl import build

SOURCE = """/* library */
#line 1 "harp names of kernel wrong"
void wrong(
__global double *restrict y,
const int64_t n)
{
#line 1 "harp kernel wrong"
y[i] = 1;

y[i] += missing;
}"""


def test_positions_in_the_whole_text_are_named_as_line_directives_say():
    """NVIDIA's compiler does not heed `#line`."""
    message = "Build on <device>:\n\n<kernel>:10:9: error: no 'missing'\n<kernel>:4:27: note: y\n<kernel>:1:1: error: x"
    assert build._with_files(message, SOURCE) == (
        "Build on <device>:\n\nharp kernel wrong:3:9: error: no 'missing'\n"
        "harp names of kernel wrong:2:27: note: y\n<kernel>:1:1: error: x"
    )
    assert build._with_files("<kernel>:99999999999:1: error", SOURCE) == "harp kernel wrong:99999999992:1: error"


def test_what_is_included_under_a_condition_is_there_for_others():
    """math/erf_f32.h includes math/erf_f64.h where there is no fused multiply-add."""
    text = build.whole('#include "math/erf_f32.h"\n#include "math/erf_f64.h"\n')
    depths = [
        len(re.findall("^ *#if", before, re.MULTILINE)) - len(re.findall("^ *#endif", before, re.MULTILINE))
        for before in (text[: found.start()] for found in re.finditer(r"double harp_erf_f64\(", text))
    ]
    assert min(depths) == 1, "in its own guard only"
