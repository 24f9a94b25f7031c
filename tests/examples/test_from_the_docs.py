"""Programs as a new user writes them, from the pages of docs/ alone. NumPy says in float64 what they should find."""

import itertools

import numpy as np
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)


def test_k_means_from_random_points():
    """Lloyd's algorithm until nothing changes, from several starts at once; the best of them."""

    def fit(key, points, count):
        start = points[harp.random.permutation(key, points.shape[0])[:count]]

        def nearest(centres):
            return hnp.argmin(hnp.sum((points[:, None] - centres) ** 2, axis=-1), axis=1)

        def step(state):
            centres, _ = state
            member = (nearest(centres)[:, None] == hnp.arange(count)).astype(points.dtype)
            sizes = hnp.sum(member, axis=0)[:, None]
            return hnp.where(sizes > 0, member.T @ points / hnp.maximum(sizes, 1), centres), centres

        found, _ = harp.while_loop(lambda state: hnp.any(state[0] != state[1]), step, (start, start + 1))
        return found, hnp.sum((points - found[nearest(found)]) ** 2)

    @harp.jit(static_argnames="count")
    def best(key, points, count):
        found, costs = harp.vmap(lambda k: fit(k, points, count))(harp.random.split(key, 10))
        return found[hnp.argmin(costs)], hnp.min(costs)

    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    for each in (20, 50):
        points = np.concatenate([c + 0.3 * RNG.normal(size=(each, 2)) for c in centres])
        found, cost = best(harp.random.key(1), points, count=3)
        means = points.reshape(3, each, 2).mean(axis=1)
        order = np.lexsort(np.round(np.asarray(found)).T[::-1])
        np.testing.assert_allclose(np.asarray(found)[order], means[np.lexsort(np.round(means).T[::-1])], atol=1e-12)
        np.testing.assert_allclose(float(cost), ((points.reshape(3, each, 2) - means[:, None]) ** 2).sum())
    assert best.compilations == 1


def test_an_epidemic_fitted_by_its_gradient():
    """An SIR model, integrated by Runge and Kutta's method, and Newton's method on the residuals of its cases."""

    def flow(state, rates):
        s, i, _ = state
        infections, recoveries = rates[0] * s * i, rates[1] * i
        return hnp.stack([-infections, infections - recoveries, recoveries])

    def cases(rates, days):
        def day(state, _):
            k1 = flow(state, rates)
            k2 = flow(state + k1 / 2, rates)
            k3 = flow(state + k2 / 2, rates)
            state = state + (k1 + 2 * k2 + 2 * k3 + flow(state + k3, rates)) / 6
            return state, state[1]

        return harp.scan(day, hnp.array([0.99, 0.01, 0.0]), days)[1]

    @harp.jit
    def newton_step(logs, seen):
        def loss(logs):
            return hnp.sum((cases(hnp.exp(logs), hnp.zeros_like(seen)) - seen) ** 2)

        slope, (h0, h1) = harp.grad(loss)(logs), harp.hessian(loss)(logs)
        (a, b), (c, d) = h0, h1
        return logs - hnp.stack([d * slope[0] - b * slope[1], a * slope[1] - c * slope[0]]) / (a * d - b * c)

    def in_numpy(rates, days):
        state, found = np.array([0.99, 0.01, 0.0]), []

        def flow(s):
            return np.array([-rates[0] * s[0] * s[1], rates[0] * s[0] * s[1] - rates[1] * s[1], rates[1] * s[1]])

        for _ in range(days):
            k1 = flow(state)
            k2 = flow(state + k1 / 2)
            k3 = flow(state + k2 / 2)
            state = state + (k1 + 2 * k2 + 2 * k3 + flow(state + k3)) / 6
            found.append(state[1])
        return np.array(found)

    for days in (40, 60):
        seen = in_numpy([0.5, 0.1], days)
        logs = np.log([0.48, 0.11])
        for _ in range(8):
            logs = newton_step(logs, seen)
        np.testing.assert_allclose(np.exp(np.asarray(logs)), [0.5, 0.1], rtol=1e-8)
    assert newton_step.compilations == 1


def convolved(images, kernels):
    """Images [n, h, w, c] and kernels [k, k, c, d]: sums over the kernel, as docs/from-jax.md advises."""
    size = kernels.shape[0]
    h, w = images.shape[1] - size + 1, images.shape[2] - size + 1
    return sum(
        images[:, i : i + h, j : j + w] @ kernels[i, j] for i, j in itertools.product(range(int(size)), repeat=2)
    )


@pytest.mark.slow
def test_a_small_network_on_images_with_adam():
    """Where a bright spot is, left or right, by two layers of convolutions; batches of two sizes."""

    def scores(params, images):
        x = hnp.relu(convolved(images[..., None], params["first"]))
        count, rows, columns, channels = x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]
        x = hnp.max(x[:, : rows * 2, : columns * 2].reshape(count, rows, 2, columns, 2, channels), axis=(2, 4))
        x = hnp.relu(convolved(x, params["second"]))
        return x.reshape(x.shape[0], -1) @ params["last"]

    def loss(params, images, labels):
        log_p = hnp.log_softmax(scores(params, images), axis=-1)
        return -hnp.mean(hnp.take_along_axis(log_p, labels[:, None], axis=1))

    @harp.jit
    def step(params, state, images, labels):
        value, slope = harp.value_and_grad(loss)(params, images, labels)
        count = state["count"] + 1
        mean = harp.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], slope)
        square = harp.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["square"], slope)
        rate = 0.02 * hnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
        params = harp.tree.map(lambda p, m, v: p - rate * m / (hnp.sqrt(v) + 1e-8), params, mean, square)
        return params, {"count": count, "mean": mean, "square": square}, value

    def draw(count):
        images, labels = 0.1 * RNG.normal(size=(count, 12, 12)), RNG.integers(0, 2, count)
        for image, label in zip(images, labels, strict=True):
            image[RNG.integers(2, 9), RNG.integers(1, 4) + 7 * label] += 3
        return images, labels

    shapes = {"first": (3, 3, 1, 4), "second": (3, 3, 4, 4), "last": (36, 2)}
    params = {name: RNG.normal(size=shape) / np.sqrt(np.prod(shape[:-1])) for name, shape in shapes.items()}
    images, labels = draw(3)
    found = np.asarray(convolved(hnp.asarray(images[..., None]), hnp.asarray(params["first"])))
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2))
    np.testing.assert_allclose(found, np.einsum("nhwij,ijcd->nhwd", windows, params["first"]), atol=1e-12)

    zeros = harp.tree.map(np.zeros_like, params)
    state = {"count": np.float64(0), "mean": zeros, "square": zeros}
    for size in [32, 20] * 30:
        params, state, _ = step(params, state, *draw(size))
    assert step.compilations == 1
    images, labels = draw(200)
    assert np.mean(np.argmax(np.asarray(harp.jit(scores)(params, images)), axis=1) == labels) > 0.95


def test_the_most_likely_path_of_a_hidden_markov_model():
    """Viterbi's algorithm: a scan forwards, and one back along the choices; sequences side by side by vmap."""

    def path(start, steps, emissions, seen):
        def forwards(score, symbol):
            ways = score[:, None] + steps
            return hnp.max(ways, axis=0) + emissions[:, symbol], hnp.argmax(ways, axis=0)

        def backwards(state, choices):
            return choices[state], choices[state]

        score, choices = harp.scan(forwards, start + emissions[:, seen[0]], seen[1:])
        last = hnp.argmax(score)
        _, before = harp.scan(backwards, last, choices, reverse=True)
        return hnp.concatenate([before, last[None]]), hnp.max(score)

    found = harp.jit(harp.vmap(path, in_axes=(None, None, None, 0)))
    start, steps, emissions = (np.log(RNG.dirichlet(np.ones(n), m)) for n, m in ((3, 1), (3, 3), (4, 3)))
    for length in (1, 2, 6):
        seen = RNG.integers(0, 4, size=(5, length))
        paths, scores = found(start[0], steps, emissions, seen)
        for given, one, score in zip(seen, np.asarray(paths), np.asarray(scores), strict=True):
            all_paths = list(itertools.product(range(3), repeat=length))
            likely = [
                start[0][p[0]] + emissions[list(p), given].sum() + sum(steps[a, b] for a, b in itertools.pairwise(p))
                for p in all_paths
            ]
            assert tuple(one) == all_paths[int(np.argmax(likely))]
            assert score == pytest.approx(max(likely))
    assert found.compilations == 1


def test_an_image_blurred_and_resized():
    """Convolution along each axis with reflected borders, then bilinear interpolation at any number of points."""

    def blurred(image, kernel):
        half = kernel.shape[0] // 2
        for axis in (0, 1):
            wide = hnp.pad(hnp.moveaxis(image, axis, -1), ((0, 0), (half, half)), mode="reflect")
            rows = harp.vmap(lambda row: hnp.convolve(row, kernel, mode="valid"))(wide)
            image = hnp.moveaxis(rows, -1, axis)
        return image

    def at(image, y, x):
        """Between the four pixels round each point."""
        top = hnp.clip(hnp.floor(y).astype(int), 0, image.shape[0] - 2)
        left = hnp.clip(hnp.floor(x).astype(int), 0, image.shape[1] - 2)
        dy, dx = y - top, x - left
        upper = image[top, left] * (1 - dx) + image[top, left + 1] * dx
        return upper * (1 - dy) + (image[top + 1, left] * (1 - dx) + image[top + 1, left + 1] * dx) * dy

    @harp.jit
    def resized(image, kernel, rows, columns):
        return at(blurred(image, kernel), rows[:, None], columns[None, :])

    kernel = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16
    for shape, new in (((12, 9), (5, 7)), ((8, 20), (16, 3))):
        image = RNG.normal(size=shape)
        rows, columns = np.linspace(0, shape[0] - 1, new[0]), np.linspace(0, shape[1] - 1, new[1])
        smooth = image
        for axis in (0, 1):
            wide = np.pad(smooth, [(2, 2) if k == axis else (0, 0) for k in (0, 1)], mode="reflect")
            smooth = np.apply_along_axis(np.convolve, axis, wide, kernel, mode="valid")
        lines = np.array([np.interp(columns, np.arange(shape[1]), line) for line in smooth])
        wanted = np.array([np.interp(rows, np.arange(shape[0]), line) for line in lines.T]).T
        np.testing.assert_allclose(np.asarray(resized(image, kernel, rows, columns)), wanted, atol=1e-12)
    assert resized.compilations == 1
