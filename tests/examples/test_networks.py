"""The networks: small runs of each, one program for all sizes, and values against NumPy in float64."""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.testing as npt
import pytest

import harp


@pytest.fixture(scope="module")
def digits_conv(load):
    return load("digits_conv")


@pytest.fixture(scope="module")
def vae(load):
    return load("vae")


@pytest.fixture(scope="module")
def char_transformer(load):
    return load("char_transformer")


@pytest.fixture(scope="module")
def encoder(load):
    return load("encoder")


def doubled(params):
    return harp.tree.map(lambda p: np.asarray(p).astype(np.float64), params)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_loss(scores, labels):
    """The mean cross-entropy of labels."""
    chances = np.take_along_axis(softmax(scores), labels[..., None], axis=-1)
    return -np.log(chances).mean()


def heads_of(x, heads):
    """(batch, n, width) to (batch, heads, n, width of a head)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


# The convolutional network --------------------------------------------------------------------------------------------


def convolved(params, x):
    for k, layer in enumerate(params["layers"]):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        x = np.maximum(np.einsum("bchwij,ocij->bohw", windows, layer["w"]) + layer["b"][:, None, None], 0)
        if k == 0:
            x = x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2).max(axis=(3, 5))
    return x.max(axis=(2, 3)) @ params["w"] + params["b"]


def test_scores_of_digits_conv(digits_conv):
    params = digits_conv.initial_params(1)
    for size, count in ((8, 3), (12, 1), (10, 5)):
        x = digits_conv.resized(digits_conv.load_data(0).test_x[:count], size)
        expected = convolved(doubled(params), x.astype(np.float64))
        npt.assert_allclose(digits_conv.logits(params, x), expected, rtol=1e-4, atol=1e-5)
        y = np.arange(count, dtype=np.int32)
        assert float(digits_conv.loss(params, x, y)) == pytest.approx(log_loss(expected, y), rel=1e-4)


@pytest.mark.slow
def test_digits_conv(digits_conv, monkeypatch, run):
    """Two epochs of few images and channels, in batches of both sizes: one program."""
    monkeypatch.setattr(digits_conv, "CHANNELS", (1, 4, 6, 5))
    few = digits_conv.Data(*(part[:70] for part in digits_conv.load_data(0)))
    monkeypatch.setattr(digits_conv, "load_data", lambda seed: few)
    assert "programs compiled: 1 for the train step, 1 for prediction" in run(digits_conv, "--epochs", "2")


@pytest.mark.slow
def test_digits_conv_learns(digits_conv, run):
    printed = run(digits_conv, "--epochs", "6")
    accuracies = re.search(r"^test accuracy: (\d+\.\d+)% at 8 x 8, (\d+\.\d+)% at 12 x 12", printed)
    assert min(map(float, accuracies.groups())) > 90


# The autoencoder ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_vae(vae, run):
    printed = run(vae, "--epochs", "4")
    trained, tested, first = map(
        float, re.search(r"loss: ([\d.]+) in.* ([\d.]+) of 397.* ([\d.]+) at", printed).groups()
    )
    assert max(trained, tested) < first - 2
    assert "programs compiled: 1 for the train step" in printed


def test_loss_of_the_vae(vae):
    """With codes that have no spread the loss is the cross-entropy of pixels, and the distance in closed form."""
    params = vae.initial_params(1)
    w, b = params["encoder"][-1]
    quiet = -20.0
    params["encoder"][-1] = (w * np.array([1, 1, 0, 0], np.float32), b + np.array([0, 0, quiet, quiet], np.float32))
    x = np.random.default_rng(0).uniform(size=(5, vae.PIXELS)).astype(np.float32)
    code = hidden = x.astype(np.float64)
    exact = doubled(params)
    for layers in (exact["encoder"], exact["decoder"]):
        for k, (w, b) in enumerate(layers):
            hidden = hidden @ w + b if k == len(layers) - 1 else np.tanh(hidden @ w + b)
        if layers is exact["encoder"]:
            code = hidden = hidden[:, :2]
    chances = 1 / (1 + np.exp(-hidden))
    pixels = -(x * np.log(chances) + (1 - x) * np.log(1 - chances)).sum(axis=1)
    distance = (code**2).sum(axis=1) / 2 + np.exp(quiet) - 1 - quiet
    assert float(vae.test_loss(params, x, harp.random.key(0))) == pytest.approx((pixels + distance).mean(), rel=1e-4)


# The transformer of letters -------------------------------------------------------------------------------------------


def scores_of_letters(module, params, text):
    def norm(x, scale):
        x = x - x.mean(axis=-1, keepdims=True)
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * scale

    def rotated(x):
        n, half = x.shape[2], x.shape[-1] // 2
        turns = np.exp(1j * np.arange(n)[:, None] * 100.0 ** (-np.arange(half) / half))
        z = (x[..., :half] + 1j * x[..., half:]) * turns
        return np.concatenate([z.real, z.imag], axis=-1)

    x = params["letters"][text]
    for layer in params["layers"]:
        q, k, v = (
            heads_of(part, module.HEADS) for part in np.split(norm(x, layer["norm1"]) @ layer["qkv"], 3, axis=-1)
        )
        scores = rotated(q) @ rotated(k).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        later = np.triu(np.ones(scores.shape[-2:], bool), 1)
        mixed = softmax(np.where(later, -np.inf, scores)) @ v
        x = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ layer["out"]
        up = norm(x, layer["norm2"]) @ layer["up"]
        x = x + 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3))) @ layer["down"]
    return norm(x, params["norm"]) @ params["letters"].T


@pytest.mark.slow
def test_char_transformer(char_transformer, monkeypatch, run):
    """A few steps of pieces of many lengths, and letters that are written from one program."""
    monkeypatch.setattr(char_transformer, "WIDTH", 16)
    monkeypatch.setattr(char_transformer, "LAYERS", 1)
    monkeypatch.setattr(char_transformer, "load_text", lambda: "the cat sat on the mat. " * 40)
    printed = run(char_transformer, "--steps", "60", "--letters", "110")
    assert "programs compiled: 1 for the train step, 1 to write" in printed
    last, first = map(float, re.search(r"each letter: ([\d.]+) of .*; ([\d.]+) at first", printed).groups())
    assert last < first - 2
    assert len(printed.split("\n\nbits")[0]) >= len("The ") + 100


def test_scores_of_letters(char_transformer):
    params = char_transformer.initial_params(0)
    for n in (2, 7):
        text = np.random.default_rng(n).integers(0, 90, size=(3, n)).astype(np.int32)
        scores = scores_of_letters(char_transformer, doubled(params), text)
        npt.assert_allclose(char_transformer.logits(params, text), scores, rtol=1e-3, atol=1e-4)
        exact = log_loss(scores[:, :-1], text[:, 1:])
        assert float(char_transformer.loss(params, text)) == pytest.approx(exact, rel=1e-4)


def test_text_of_the_transformer(char_transformer):
    text = char_transformer.load_text()
    assert len(char_transformer.numbers_of(text)) > 50_000
    assert "".join(char_transformer.LETTERS[k] for k in char_transformer.numbers_of("a\u00e9b\n")) == "ab\n"


# The encoder ----------------------------------------------------------------------------------------------------------


def encoded(params, tokens, heads):
    """The last states of one sentence, by NumPy and without a mask."""

    def linear(p, x):
        return x @ p["weight"].T + p["bias"]

    def norm(p, x):
        x = x - x.mean(axis=-1, keepdims=True)
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-12) * p["weight"] + p["bias"]

    erf = np.vectorize(math.erf)
    table = params["embeddings"]
    x = table["word_embeddings"]["weight"][tokens] + table["position_embeddings"]["weight"][: len(tokens)]
    x = norm(table["LayerNorm"], x + table["token_type_embeddings"]["weight"][0])[None]
    for k in range(len(params["encoder"]["layer"])):
        layer = params["encoder"]["layer"][str(k)]
        own, after = layer["attention"]["self"], layer["attention"]["output"]
        q, k, v = (heads_of(linear(own[name], x), heads) for name in ("query", "key", "value"))
        mixed = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
        x = norm(after["LayerNorm"], linear(after["dense"], mixed.transpose(0, 2, 1, 3).reshape(x.shape)) + x)
        up = linear(layer["intermediate"]["dense"], x)
        more = linear(layer["output"]["dense"], up * (1 + erf(up / np.sqrt(2))) / 2)
        x = norm(layer["output"]["LayerNorm"], more + x)
    return x[0]


def test_encoder(encoder, run, tmp_path):
    """Weights of a file give, in a padded batch, what NumPy makes of each sentence alone."""
    weights, path = encoder.random_weights(1, vocabulary=30, width=8), tmp_path / "weights.safetensors"
    encoder.nn.save_safetensors(path, weights)
    sentences = [[3, 7, 9], [29], [1, 2, 3, 4, 5]]
    words = [word for sentence in sentences for word in ("--tokens", *map(str, sentence))]
    printed = run(encoder, "--weights", str(path), "--heads", "2", *words)
    assert "programs compiled: 1 for 3 sentences alone, and all at once" in printed
    means = np.stack([encoded(doubled(weights), s, 2).mean(axis=0) for s in sentences])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    tokens, mask = encoder.padded(sentences)
    npt.assert_allclose(encoder.similarities(encoder.load(path), tokens, mask, 2), means @ means.T, atol=2e-5)
    assert encoder.similarities.compilations == 1
    states = encoder.encode(weights, tokens, mask, 2)
    npt.assert_allclose(states[0, :3], encoded(doubled(weights), sentences[0], 2), rtol=1e-3, atol=1e-4)


def test_encoder_without_a_file(encoder, run):
    assert "numbers in weights: 283,584" in run(encoder, "--heads", "2")


@pytest.mark.parametrize("name", ["digits_conv", "vae", "char_transformer"])
def test_needs_a_step(request, name, capsys):
    option = "--steps" if name == "char_transformer" else "--epochs"
    with pytest.raises(SystemExit):
        request.getfixturevalue(name).main([option, "0"])
    assert option in capsys.readouterr().err


def test_heads_divide_the_width(encoder, capsys):
    with pytest.raises(SystemExit):
        encoder.main(["--heads", "3"])
    assert "--heads" in capsys.readouterr().err
