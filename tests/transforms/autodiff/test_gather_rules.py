"""Gradients of indexing by data against central differences, first and second order; conventions at ties."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.5, (5, 4))
AT = np.array([3, 0, 3, -1, 7, -9, 1])  # repeats, the end, and outside
UNIQUE = np.array([4, 0, 2])


def differences(f, x, step=1e-6):
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += step
        up = f(moved)
        moved[place] -= 2 * step
        result[place] = (up - f(moved)) / (2 * step)
    return result


def values(count, *rest):
    return np.random.default_rng(1).uniform(0.5, 1.5, (count, *rest))


READS = {
    "rows": lambda x, i: x[i],
    "filled": lambda x, i: x.at[i].get(mode="fill", fill_value=2.0),
    "columns": lambda x, i: x[:, i][::-1],
    "pairs": lambda x, i: x[i, i[::-1]],
    "one": lambda x, i: x[i[0]] * x[:, i[1]][:4],
    "of a function": lambda x, i: hnp.exp(x)[i + 1],
    "two times": lambda x, i: x[i][i],
    "along": lambda x, i: hnp.take_along_axis(x, hnp.stack([i, i - 1])[:, :4], axis=0),
    "mask": lambda x, i: x[np.arange(20).reshape(5, 4) % 3 == 0],
    "read and product": lambda x, i: x[i] @ x[:4],
}
WRITES = {
    "set": lambda x, v, i: x.at[i].set(v),
    "add": lambda x, v, i: x.at[i].add(v),
    "subtract clipped": lambda x, v, i: x.at[i].subtract(v, mode="clip"),
    "set clipped": lambda x, v, i: x.at[i].set(v, mode="clip"),
    "min": lambda x, v, i: x.at[i].min(v),
    "max clipped": lambda x, v, i: x.at[i].max(v, mode="clip"),
    "set columns": lambda x, v, i: x.at[:4, i].set(v.T),
    "set part": lambda x, v, i: x.at[1:4, i].set(v.T[:3]),
    "set pairs": lambda x, v, i: x.at[i, i[::-1]].set(v[:, 0]),
    "slice": lambda x, v, i: x.at[::2].add(v[:3]).at[1].set(v[3]).at[3:0:-2, 1:].multiply(v[:2, 1:]),
    "mask": lambda x, v, i: x.at[x > 1].set(v[0, 0]).at[x[:, 0] > 1].multiply(v[0]),
    "one": lambda x, v, i: x.at[i[1]].multiply(v[0]),
}


@pytest.mark.parametrize("name", READS)
def test_reads(name):
    places = AT if name == "filled" else np.clip(AT, -4, 3)

    def loss(x):
        return hnp.sum(hnp.sin(READS[name](x, hnp.asarray(places))) * 1.5)

    gradient = harp.grad(loss)
    np.testing.assert_allclose(
        np.asarray(gradient(X)), differences(lambda x: float(loss(hnp.asarray(x))), X), atol=1e-8
    )
    second = harp.grad(lambda x: hnp.sum(harp.grad(loss)(x) ** 2))
    expected = differences(lambda x: float(np.sum(np.asarray(gradient(x)) ** 2)), X)
    np.testing.assert_allclose(np.asarray(second(X)), expected, atol=1e-7)


@pytest.mark.parametrize("name", WRITES)
def test_writes(name):
    """With indices that the gradient does not know; both for the array and for the values."""

    def loss(x, v, i):
        return hnp.sum(hnp.sin(WRITES[name](x, v, i)) * 1.5)

    ends, jitted = (X, values(7, 4)), harp.jit(loss)
    for end in (0, 1):

        def moved(a, end=end):
            return float(jitted(*(a if k == end else b for k, b in enumerate(ends)), AT))

        found = harp.jit(harp.grad(loss, argnums=end))(*ends, AT)
        np.testing.assert_allclose(np.asarray(found), differences(moved, ends[end]), atol=1e-8)


def test_second_order_of_writes():
    v = values(3, 4)

    def inner(x, v, i):
        made = x.at[i].multiply(hnp.sin(v), unique_indices=True).at[i].set(v * v).at[i - 1].add(v)
        return hnp.sum(made**3)

    gradient = harp.jit(harp.grad(inner, argnums=1))
    second = harp.jit(harp.grad(lambda v, x, i: hnp.sum(harp.grad(inner, argnums=1)(x, v, i) ** 2)))
    expected = differences(lambda v: float(np.sum(np.asarray(gradient(X, v, UNIQUE)) ** 2)), v)
    np.testing.assert_allclose(np.asarray(second(v, X, UNIQUE)), expected, atol=1e-5, rtol=1e-6)


def test_multiply():
    """The array's gradient is the product of its factors, with zeros too; unique indices are a promise."""
    v = np.array([2.0, 0.0, 3.0, 5.0])
    i = np.array([0, 1, 0, 2])
    x = np.array([1.0, 2.0, 3.0, 4.0])
    function = harp.jit(harp.grad(lambda x, v, i: hnp.sum(x.at[i].multiply(v))))
    np.testing.assert_array_equal(np.asarray(function(x, v, i)), [6.0, 0.0, 5.0, 1.0])
    promised = harp.grad(lambda v, x, i: hnp.sum(hnp.asarray(x).at[i].multiply(v, unique_indices=True)))
    np.testing.assert_array_equal(np.asarray(promised(v[:3], x, np.array([3, 1, 0]))), [4.0, 2.0, 1.0])


def product_of_segments(x, v, i):
    return hnp.sum(hnp.sin(x.at[i].multiply(v, mode="drop")) * 1.5)


def product_by_hand(x, v, i):
    """The same with a product for each element, whose factors are picked by Python."""
    places = [k + len(x) if k < 0 else k for k in i]
    made = [x[p] * hnp.prod(v[[k for k, place in enumerate(places) if place == p]], axis=0) for p in range(len(x))]
    return hnp.sum(hnp.sin(hnp.stack(made)) * 1.5)


@pytest.mark.slow
def test_factors_of_elements_that_get_several():
    """With no zero, one and two among the factors of an element, and places outside; in both modes, and in batches."""
    i = np.array([0, 2, 0, 1, 2, 2, -1, 9, -8])
    x, v = values(4, 2), values(9, 2) - 1.2
    v[[0, 1, 4]], x[1] = 0, 0
    for end in (0, 1):
        expected = np.asarray(harp.grad(product_by_hand, argnums=end)(x, v, i.tolist()))
        for transform in (harp.grad, harp.jacfwd):
            found = harp.jit(transform(product_of_segments, argnums=end))(x, v, i)
            np.testing.assert_allclose(np.asarray(found), expected, atol=1e-13)
    batched = harp.jit(harp.vmap(harp.grad(product_of_segments, argnums=1), in_axes=(None, 0, 0)))
    found = batched(x, np.stack([v, v + 1]), np.stack([i, i[::-1]]))
    for k, (factors, places) in enumerate(((v, i), (v + 1, i[::-1]))):
        expected = harp.grad(product_by_hand, argnums=1)(x, factors, places.tolist())
        np.testing.assert_allclose(np.asarray(found)[k], np.asarray(expected), atol=1e-13)


def test_second_derivatives_of_factors_of_elements_that_get_several():
    i = np.array([0, 2, 0, 1, 2, 2])
    x, v = values(3), values(6) - 1.2
    v[[0, 1, 4]] = 0
    expected = harp.hessian(product_by_hand, argnums=(0, 1))(x, v, i.tolist())
    reverse = lambda f: harp.jacrev(harp.jacrev(f, argnums=(0, 1)), argnums=(0, 1))
    for found in (harp.hessian(product_of_segments, argnums=(0, 1))(x, v, i), reverse(product_of_segments)(x, v, i)):
        for a in (0, 1):
            for b in (0, 1):
                np.testing.assert_allclose(np.asarray(found[a][b]), np.asarray(expected[a][b]), atol=1e-13)


def test_infinite_factors_stay_with_their_element():
    v, i = np.array([np.inf, 2.0, 3.0, 0.0, 4.0, np.nan]), np.array([0, 1, 1, 2, 2, 3])
    found = harp.jit(harp.grad(lambda v, i: hnp.sum(hnp.ones(4).at[i].multiply(v))))(v, i)
    np.testing.assert_array_equal(np.asarray(found), [1.0, 3.0, 2.0, 4.0, 0.0, 1.0])


def test_of_values_that_are_set_the_last_one_counts():
    gradient = harp.jit(harp.grad(lambda v, x, i: hnp.sum(x.at[i].set(v) * hnp.arange(4.0))))
    found = gradient(np.ones(4), np.zeros(4), np.array([1, 3, 1, 9]))
    np.testing.assert_array_equal(np.asarray(found), [0.0, 3.0, 1.0, 0.0])


def test_ties_share_equally():
    """As JAX: all that are the result, the element that was there among them."""
    x, v, i = np.array([1.0, 5.0]), np.array([1.0, 1.0, 0.0, 5.0]), np.array([0, 0, 0, 1])
    for_x, for_v = (
        harp.grad(lambda x, v: hnp.sum(hnp.asarray(x).at[i].max(v) * np.array([3.0, 4.0])), n) for n in (0, 1)
    )
    np.testing.assert_allclose(np.asarray(for_x(x, v)), [1.0, 2.0])
    np.testing.assert_allclose(np.asarray(for_v(x, v)), [1.0, 1.0, 0.0, 2.0])


def test_complex_numbers():
    """By the same formulas as without indices that are data."""
    rng = np.random.default_rng(4)
    x, v = (rng.normal(size=(n, 2)) + 1j * rng.normal(size=(n, 2)) for n in (4, 2))

    def loss(made):
        return hnp.sum(hnp.real(made * made * (2 + 1j)))

    def by_data(x, v, i):
        return loss(x.at[i].multiply(v, unique_indices=True).at[i].add(v)[i])

    def by_hand(x, v):
        return loss(x[1:3] * v + v)

    for end in (0, 1):
        expected = np.asarray(harp.grad(by_hand, argnums=end)(hnp.asarray(x), hnp.asarray(v)))
        found = harp.jit(harp.grad(by_data, argnums=end))(x, v, np.array([1, 2]))
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)


def test_one_program_for_all_sizes():
    def loss(x, i):
        return hnp.sum(x[i] ** 2)

    gradient = harp.jit(harp.grad(loss))
    for rows, columns, count in ((5, 3, 7), (1, 1, 1), (4, 0, 2), (6, 2, 0), (9, 130, 30)):
        x, i = np.random.default_rng(2).random((rows, columns)), np.arange(count) * 7 % rows
        expected = np.zeros_like(x)
        np.add.at(expected, i, 2 * x[i])
        np.testing.assert_allclose(np.asarray(gradient(x, i)), expected)
    assert gradient.compilations == 1


def _both(y):
    return y.at[0].set(1.0) / 4 + y.at[hnp.arange(1)].set(2.0) / 4 + hnp.roll(hnp.roll(y.at[0].set(3.0), 1) / 2, -1)


def _rows(y):
    return harp.vmap(lambda v, k: y.at[k].set(v) / 2)(hnp.arange(2.0), hnp.zeros(2, "int64"))


OVERWRITTEN = {
    "an element": lambda x: hnp.sqrt(x).at[0].set(1.0),
    "a slice": lambda x: hnp.sqrt(x).at[:1].set(1.0),
    "an element at data": lambda x: hnp.sqrt(x).at[hnp.argmin(x)].set(1.0),
    "several at data": lambda x: hnp.sqrt(x).at[hnp.argsort(x)[:1]].set(1.0),
    "a mask": lambda x: hnp.sqrt(x).at[x < 1].set(1.0),
    "behind several operations": lambda x: (hnp.exp(hnp.log(x)) * hnp.sqrt(x)).at[0].set(1.0),
    "behind views": lambda x: hnp.sqrt(x)[::-1].reshape(1, 3).at[0, 2].set(1.0),
    "twice": lambda x: hnp.sqrt(x).at[0].set(1.0).at[hnp.argmax(x)].set(1.0).at[hnp.argmax(x)].add(hnp.sqrt(x[2])),
    "in both summands": lambda x: _both(hnp.sqrt(x)),
    "in all rows": lambda x: _rows(hnp.sqrt(x)),
    "in a loop": lambda x: harp.fori_loop(0, 1, lambda k, c: hnp.sqrt(c).at[k].set(0.0), x),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_no_derivative_counts_where_an_element_was_overwritten(name):
    x, root = np.array([0.0, 4.0, 9.0]), np.array([0.0, 1 / 4, 1 / 6])
    function = lambda x: hnp.sum(OVERWRITTEN[name](x))
    expected = 1.5 * np.sqrt(x) if name == "behind several operations" else root
    gradient = harp.grad(function)
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-14)
    np.testing.assert_allclose(harp.jit(gradient)(x), expected, rtol=1e-14)
    np.testing.assert_allclose(harp.vmap(gradient)(np.stack([x, x + 1]))[0], expected, rtol=1e-14)
    rows = harp.grad(lambda x: hnp.sum(harp.vmap(function)(x)))
    np.testing.assert_allclose(rows(np.stack([x, x + 1]))[0], expected, rtol=1e-14)
    second = np.asarray(harp.hessian(function)(x))
    assert (second[0] == 0).all() and np.isfinite(second).all()


def test_a_choice_between_two_values_multiplies_by_zero():
    """As in JAX: both sides are the user's own."""
    x = np.array([0.0, 4.0])
    np.testing.assert_array_equal(harp.grad(lambda x: hnp.sum(hnp.where(x > 0, hnp.sqrt(x), 0.0)))(x), [np.nan, 0.25])


def test_overwriting_one_element_after_the_other_costs_one_zero_each():
    def graph(count):
        def function(x):
            for k in range(count):
                x = hnp.sin(x).at[k if k % 2 else hnp.argmin(x)].set(1.0)
            return hnp.sum(x)

        return len(harp.trace(harp.grad(function), harp.f64[count]).nodes())

    assert graph(16) < 2.2 * graph(8)
