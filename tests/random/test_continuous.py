"""Functions of other numbers are so distributed, the same in programs and outside, with derivatives or an error."""

import numpy as np
import numpy.testing as npt
import pytest
from scipy import stats

import harp
import harp.numpy as hnp
from harp import errors, random
from harp.random import clone, double_sided_maxwell, key, key_data, rademacher, split, t, wald, wrap_key_data

K = key(9)
# The parameters, and the distribution function.
LAWS = {
    "laplace": ((), stats.laplace),
    "logistic": ((), stats.logistic),
    "cauchy": ((), stats.cauchy),
    "maxwell": ((), stats.maxwell),
    "lognormal": ((0.5,), stats.lognorm(0.5)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "weibull_min": ((2.0, 1.5), stats.weibull_min(1.5, scale=2)),
    "pareto": ((2.5,), stats.pareto(2.5)),
    "triangular": ((-1.0, 0.0, 3.0), stats.triang(0.25, -1, 4)),
    "wald": ((2.0,), stats.invgauss(2.0)),
    "chisquare": ((3.0,), stats.chi2(3)),
    "t": ((0.7,), stats.t(0.7)),
    "f": ((3.0, 5.0), stats.f(3, 5)),
    "generalized_normal": ((3.0,), stats.gennorm(3)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAWS)
def test_they_are_so_distributed(name, dtype):
    parameters, law = LAWS[name]
    sample = getattr(random, name)(K, *parameters, (100, 200), dtype)
    assert sample.dtype == dtype
    assert stats.kstest(np.asarray(sample, np.float64).ravel(), law.cdf).pvalue > 1e-3


def test_other_parameters():
    for mean in (1e-3, 50.0):
        assert stats.kstest(np.asarray(wald(K, mean, 20_000)), stats.invgauss(mean).cdf).pvalue > 1e-3
    assert stats.kstest(np.log(np.abs(t(K, 0.1, 20_000))), lambda x: 2 * stats.t(0.1).cdf(np.exp(x)) - 1).pvalue > 1e-3
    sample = (np.asarray(double_sided_maxwell(K, 1.0, 2.0, 20_000)) - 1) / 2
    assert stats.kstest(np.abs(sample), stats.maxwell.cdf).pvalue > 1e-3
    assert abs((sample > 0).mean() - 0.5) < 0.02
    signs = np.asarray(rademacher(K, 20_000))
    assert abs(signs.mean()) < 0.03 and set(signs.tolist()) == {-1, 1}
    assert [rademacher(K, 3, d).dtype for d in ("int8", "float16", "float32")] == ["int8", "float16", "float32"]


def test_one_program_for_all_sizes_and_the_same_numbers_outside():
    names = ("laplace", "cauchy", "triangular", "wald", "t")
    draw = harp.jit(lambda k, x: {name: getattr(random, name)(k, *LAWS[name][0], x.shape) for name in names})
    for shape in ((0, 2), (1, 1), (2, 5)):
        for name, inside in draw(K, np.zeros(shape)).items():
            npt.assert_allclose(inside, getattr(random, name)(K, *LAWS[name][0], shape), rtol=1e-11, atol=1e-14)
    assert draw.compilations == 1


def test_shapes_and_dtypes_are_those_of_the_parameters():
    for name, (parameters, _) in LAWS.items():
        draw = getattr(random, name)
        if parameters:
            given = [np.full((3, 1) if k else 2, p, np.float32) for k, p in enumerate(parameters)]
            assert draw(K, *given).shape == ((2,) if len(given) == 1 else (3, 2))
            assert draw(K, *given).dtype == np.float32
            assert draw(K, *given, dtype="float64").dtype == np.float64
            with pytest.raises(errors.ShapeError):
                draw(K, *given, shape=(4, 5))
        with pytest.raises(errors.DTypeError, match=f"{name} draws float32 or float64, not int64"):
            draw(K, *parameters, 3, int)
        keys = split(K, 2)
        batch = harp.vmap(lambda k, draw=draw, given=parameters: draw(k, *given, 3))(keys)
        npt.assert_allclose(batch, [np.asarray(draw(k, *parameters, 3)) for k in keys], rtol=1e-12)
    with pytest.raises(errors.DTypeError, match="rademacher draws signed integers or floats, not uint8"):
        rademacher(K, 3, "uint8")


DIFFERENTIABLE = ["lognormal", "rayleigh", "weibull_min", "pareto", "triangular", "double_sided_maxwell"]


def test_derivatives_flow_to_locations_scales_and_exponents():
    at = {name: np.array(LAWS[name][0] if name in LAWS else (1.0, 2.0)) for name in DIFFERENTIABLE}

    def total(point):
        return sum(hnp.sum(getattr(random, name)(K, *p, (50,)) ** 2) for name, p in point.items())

    slopes = harp.jit(harp.grad(total))(at)
    for name, point in at.items():
        for k in range(point.size):
            step = 1e-6 * np.eye(point.size)[k]
            ends = [float(total({**at, name: point + by})) for by in (step, -step)]
            npt.assert_allclose(slopes[name][k], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-4)
    edge = harp.grad(lambda p: random.triangular(K, *p))(np.array([0.0, 0.0, 1.0]))  # the mode is at an end
    assert np.isfinite(edge).all()


@pytest.mark.parametrize("name", ["wald", "chisquare", "t", "f", "generalized_normal"])
def test_other_parameters_say_that_they_have_no_derivative(name):
    with pytest.raises(errors.MissingRuleError, match="no derivative with respect to this parameter"):
        harp.grad(lambda p: hnp.sum(getattr(random, name)(K, *p)))(np.array(LAWS[name][0]))


def test_names_of_keys():
    keys = split(K, (2, 0))
    assert random.PRNGKey is key
    for same in (key_data, wrap_key_data, clone):
        npt.assert_array_equal(same(K), K)
        assert same(keys).shape == (2, 0, 2)
        with pytest.raises(errors.ArgumentError, match=r"keys are uint32 of shape \(\.\.\., 2\)"):
            same(np.zeros(3, np.uint32))
