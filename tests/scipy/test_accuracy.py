"""The errors of special functions are those that docs/special.md lists, and their derivatives are right."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest
from mpmath import mp

import harp
import harp.numpy as hnp
from harp.scipy import special

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("accuracy", HERE / "accuracy.py")
accuracy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(accuracy)
PAGE = (HERE.parent.parent / "docs" / "special.md").read_text("utf-8")
LISTED = {row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (.*) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)}


@pytest.mark.parametrize("name", accuracy.ROWS)
def test_errors_are_no_larger_than_listed(name):
    ranges, double, single = LISTED[name]
    assert ranges == accuracy.ROWS[name].range
    assert accuracy.largest_error(name, "float64", 12) <= float(double)
    assert accuracy.largest_error(name, "float32", 6) <= float(single) <= 1


# Arguments for derivatives; some functions are there twice.
MIDDLE, UNIT, PAIRS = [0.7, 3.1], [0.3, 0.9], [(0.7, 1.1), (2.5, 9.0)]
POINTS = {
    **dict.fromkeys(("erfcx", "ndtr", "log_ndtr", "spence", "gamma", "i0", "i1", "j0", "j1", "expi"), MIDDLE),
    **{name: [1.2, 25.0] for name in ("exp1", "i0e", "i1e", "j0 ", "log_ndtr ", "erfcx ")},
    **dict.fromkeys(("entr", "ndtri"), UNIT),
    **dict.fromkeys(("rel_entr", "kl_div", "beta", "poch", "owens_t"), PAIRS),
    **{name: [(0.7, 1.1), (2.5, -3.0), (0.4, 1e-9), (7.0, 0.3)] for name in ("boxcox", "boxcox1p")},
    "comb": [(5.3, 2.1), (20.0, 3.0)],
    "dawsn": [0.3, 1.2, 6.0],
    "gammainc": [(0.3, 0.4), (2.5, 1.5), (3.0, 7.0), (80.0, 90.0)],
    "gammaincc": [(0.3, 0.4), (2.5, 1.5), (3.0, 7.0), (80.0, 90.0)],
    "betainc": [(0.6, 0.5, 0.7), (2.0, 1.0, 0.6), (0.7, 1.0, 0.9), (2.0, 3.0, 0.2), (9.0, 20.0, 0.4), (3.0, 0.2, 0.9)],
    "zeta": [(2.5, 0.7), (1.5, 8.0)],
    "expn": [(3.0, 0.3), (2.0, 4.0)],
    "polygamma": [(1.0, 0.3), (3.0, 4.0)],
}  # fmt: skip


@pytest.mark.parametrize("key", POINTS)
def test_first_and_second_derivatives(key):
    name = key.strip()
    points = [np.atleast_1d(p) for p in POINTS[key]]
    moving = [k for k in range(points[0].size) if k == 1 or name not in accuracy.OF_INTEGERS[:2]]
    columns = np.transpose(points)
    function = getattr(special, name)

    def slopes(*columns):
        return harp.grad(lambda *c: hnp.sum(function(*c)), argnums=tuple(moving))(*columns)

    second = harp.jacfwd(lambda *c: [hnp.sum(s) for s in slopes(*c)], argnums=tuple(moving))
    firsts, seconds = slopes(*columns), second(*columns)
    with mp.workdps(40):
        for j, point in enumerate(points):
            exact = [mp.mpf(float(p)) for p in point]
            for m, k in enumerate(moving):
                order = tuple(int(i == k) for i in range(point.size))
                expected = float(mp.diff(accuracy.ROWS[name].exact, tuple(exact), order))
                np.testing.assert_allclose(np.asarray(firsts[m])[j], expected, rtol=2e-12, atol=1e-30)
                for n, other in enumerate(moving[: m + 1]):
                    twice = tuple(a + int(i == other) for i, a in enumerate(order))
                    expected = float(mp.diff(accuracy.ROWS[name].exact, tuple(exact), twice))
                    np.testing.assert_allclose(
                        np.asarray(seconds[m][n])[j], expected, rtol=1e-9, atol=1e-15, err_msg=str(point)
                    )
