"""Layers beside PyTorch, where it is installed: values and gradients by all arguments, at random shapes and options."""

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional

TOLERANCE = {"float32": 2e-4, "float64": 1e-10}


def compare(ours, theirs, arrays, dtype):
    """The values of both, and their gradients for cotangents that differ at each element."""
    tensors = [torch.tensor(a.astype(dtype), requires_grad=True) for a in arrays]
    value = theirs(*tensors)
    if value.numel():
        value.sin().sum().backward()
    numbers = tuple(range(len(arrays)))
    given = [a.astype(dtype) for a in arrays]
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    npt.assert_allclose(ours(*given), value.detach().numpy(), **close)
    gradients = harp.grad(lambda *args: hnp.sum(hnp.sin(ours(*args))), numbers)(*given)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        expected = np.zeros(tensor.shape) if tensor.grad is None else tensor.grad.numpy()
        npt.assert_allclose(gradient, expected, **close)


@st.composite
def windows(draw, transposed=False):
    """Arrays, kernels and options of a convolution in one to three dimensions; the batch may be empty."""
    rank = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 1, 2]))
    small = st.integers(1, 3)

    def each(numbers):
        return tuple(draw(numbers) for _ in range(rank))

    options = {"stride": each(small), "dilation": each(st.integers(1, 2)), "groups": groups}
    pads, kernel = each(st.integers(0, 2)), each(small)
    reach = [d * (k - 1) + 1 for d, k in zip(options["dilation"], kernel, strict=True)]
    least = [1 if transposed else max(r - 2 * p, 1) for r, p in zip(reach, pads, strict=True)]
    size = [n + draw(st.integers(0, 4)) for n in least]
    if transposed:
        pads = tuple(min(p, (r - 1) // 2) for p, r in zip(pads, reach, strict=True))
    channels, results = draw(small), draw(small)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = rng.normal(size=(draw(st.integers(0, 2)), groups * channels, *size))
    own = (groups * channels, results) if transposed else (groups * results, channels)
    return x, rng.normal(size=(*own, *kernel)), pads, options, draw(st.sampled_from(sorted(TOLERANCE)))


def of_rank(name, x):
    return getattr(F, f"{name}{x.ndim - 2}d")


@given(windows())
def test_convolutions(case):
    x, w, pads, options, dtype = case
    theirs = of_rank("conv", x)
    compare(
        lambda x, w: nn.conv(x, w, padding=[(p, p) for p in pads], **options),
        lambda x, w: theirs(x, w, padding=pads, **options),
        (x, w),
        dtype,
    )


@given(windows(transposed=True))
def test_transposed_convolutions(case):
    x, w, pads, options, dtype = case
    theirs = of_rank("conv_transpose", x)
    more = tuple(max(s, d) - 1 for s, d in zip(options["stride"], options["dilation"], strict=True))
    compare(
        lambda x, w: nn.conv_transpose(x, w, padding=pads, output_padding=more, **options),
        lambda x, w: theirs(x, w, padding=pads, output_padding=more, **options),
        (x, w),
        dtype,
    )


@given(windows())
def test_pools(case):
    x, w, pads, options, dtype = case
    window, stride = w.shape[2:], options["stride"]
    pads = tuple(min(p, k // 2) for p, k in zip(pads, window, strict=True))
    assume(all(n >= k for n, k in zip(x.shape[2:], window, strict=True)))  # PyTorch refuses these
    for ours, name in ((nn.max_pool, "max_pool"), (nn.avg_pool, "avg_pool")):
        theirs = of_rank(name, x)
        compare(
            lambda x, ours=ours: ours(x, window, stride=stride, padding=[(p, p) for p in pads]),
            lambda x, theirs=theirs: theirs(x, window, stride, pads),
            (x,),
            dtype,
        )


@pytest.mark.parametrize("dtype", sorted(TOLERANCE))
@pytest.mark.parametrize("causal", [False, True])
def test_attention(dtype, causal):
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, length, 4, 8)) for length in (7, 7, 7))

    def theirs(q, k, v):
        q, k, v = (a.transpose(1, 2) for a in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    compare(lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=causal), theirs, (q, k, v), dtype)


ACTIVATIONS = {
    "relu": "relu", "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu", "selu": "selu", "celu": "celu",
    "silu": "silu", "mish": "mish", "softplus": "softplus", "log_sigmoid": "logsigmoid", "hard_tanh": "hardtanh",
    "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish", "glu": "glu",
}  # fmt: skip


@pytest.mark.parametrize("ours", sorted(ACTIVATIONS))
def test_activations(ours):
    x = np.random.default_rng(1).normal(size=(5, 8)) * 4
    dtype = "float32" if ours == "hard_sigmoid" else "float64"  # PyTorch's gradient of it has a float32 for 1/6
    compare(getattr(nn, ours), getattr(F, ACTIVATIONS[ours]), (x,), dtype)


def test_normalisations():
    rng = np.random.default_rng(2)
    x, scale, bias = rng.normal(size=(3, 6, 5)), rng.normal(size=5), rng.normal(size=5)
    compare(
        lambda x, s, b: nn.layer_norm(x, s, b),
        lambda x, s, b: F.layer_norm(x, (5,), s, b, eps=1e-5),
        (x, scale, bias),
        "float64",
    )


def test_losses():
    rng = np.random.default_rng(3)
    logits, labels = rng.normal(size=(6, 4)), rng.integers(0, 4, 6)
    compare(
        lambda x: nn.softmax_cross_entropy_with_integer_labels(x, labels),
        lambda x: F.cross_entropy(x, torch.tensor(labels), reduction="none"),
        (logits,),
        "float64",
    )
    targets = rng.uniform(size=(6, 4))
    compare(
        lambda x: nn.sigmoid_binary_cross_entropy(x, targets),
        lambda x: F.binary_cross_entropy_with_logits(x, torch.tensor(targets), reduction="none"),
        (logits,),
        "float64",
    )
