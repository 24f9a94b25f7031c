"""Run an encoder like BERT on weights of a safetensors file: one compiled program for all batches and lengths.

    python examples/encoder.py --weights model.safetensors --heads 12 --output encoder.png --tokens 101 7592 102

Names of weights are those of Hugging Face's BERT, with or without `bert.` before them; sizes are read off the arrays.
Without a file a small one of random weights is written and read again. `--tokens`, once for each sentence, are the
numbers that a tokeniser gives. The picture shows how similar the sentences are, by the angle between the means of their
last states.

J. Devlin and others, "BERT: pre-training of deep bidirectional transformers for language understanding", 2019.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import harp
import harp.numpy as hnp
from harp import nn

EPSILON = 1e-12  # of the norms
SENTENCES = ([101, 7592, 2088, 102], [101, 7592, 2045, 102], [101, 2003, 2023, 1037, 7953, 1029, 102], [101, 102])

Params = dict[str, Any]


def linear(params, x):
    """Weights are (outputs, inputs) in the file."""
    return x @ params["weight"].T + params["bias"]


def layer_norm(params, x):
    """By the names of the file."""
    return nn.layer_norm(x, params["weight"], params["bias"], epsilon=EPSILON)


def self_attention(params, x, mask, heads):
    """The states, mixed with those of other positions. x is (batch, n, width)."""
    batch, n, width = x.shape
    own = params["self"]
    q, k, v = (linear(own[name], x).reshape(batch, n, heads, width // heads) for name in ("query", "key", "value"))
    mixed = nn.dot_product_attention(q, k, v, mask=mask[:, None, None, :]).reshape(batch, n, width)
    return layer_norm(params["output"]["LayerNorm"], linear(params["output"]["dense"], mixed) + x)


def encode(params, tokens, mask, heads):
    """The last states, (batch, n, width), of tokens (batch, n); what the mask leaves out has no influence on others."""
    table = params["embeddings"]
    x = (
        table["word_embeddings"]["weight"][tokens]
        + table["position_embeddings"]["weight"][: tokens.shape[1]]
        + table["token_type_embeddings"]["weight"][0]
    )
    x = layer_norm(table["LayerNorm"], x)
    layers = params["encoder"]["layer"]
    for k in range(len(layers)):
        layer = layers[str(k)]
        x = self_attention(layer["attention"], x, mask, heads)
        more = linear(layer["output"]["dense"], nn.gelu(linear(layer["intermediate"]["dense"], x), approximate=False))
        x = layer_norm(layer["output"]["LayerNorm"], more + x)
    return x


@harp.jit(static_argnames=("heads",))
def similarities(params, tokens, mask, heads):
    """The cosine of the angle between the means of the last states of each two sentences."""
    states = encode(params, tokens, mask, heads)
    share = mask[:, :, None].astype(states.dtype)
    means = hnp.sum(states * share, axis=1) / hnp.sum(share, axis=1)
    means = means / hnp.linalg.vector_norm(means, axis=1, keepdims=True)
    return means @ means.T


def random_weights(seed: int, vocabulary: int = 8000, width: int = 32, layers: int = 2, positions: int = 64) -> Params:
    """Weights by the names that a file has, small and random."""
    rng = np.random.default_rng(seed)

    def array(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) * 0.5).astype(np.float32)

    def dense(outputs: int, inputs: int) -> Params:
        return {"weight": array(outputs, inputs), "bias": array(outputs)}

    def norm() -> Params:
        return {"weight": 1 + 0.1 * array(width), "bias": array(width)}

    def layer() -> Params:
        return {
            "attention": {
                "self": {name: dense(width, width) for name in ("query", "key", "value")},
                "output": {"dense": dense(width, width), "LayerNorm": norm()},
            },
            "intermediate": {"dense": dense(4 * width, width)},
            "output": {"dense": dense(width, 4 * width), "LayerNorm": norm()},
        }

    sizes = {"word": vocabulary, "position": positions, "token_type": 2}
    embeddings: Params = {f"{name}_embeddings": {"weight": array(size, width)} for name, size in sizes.items()}
    return {
        "embeddings": {**embeddings, "LayerNorm": norm()},
        "encoder": {"layer": {str(k): layer() for k in range(layers)}},
    }


def load(path: str | pathlib.Path) -> Params:
    """The weights of a file, as trees."""
    tree = nn.load_safetensors(path, nested=True)
    return tree.get("bert", tree)


def padded(sentences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Sentences as rows that are as long as the longest one, and where they have tokens."""
    mask = np.arange(max(map(len, sentences))) < np.array([[len(sentence)] for sentence in sentences])
    tokens = np.zeros(mask.shape, np.int32)
    tokens[mask] = np.concatenate(sentences)
    return tokens, mask


def draw(found: np.ndarray, path: str) -> None:
    """The matrix of similarities."""
    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    image = axes.imshow(found, vmin=-1, vmax=1, cmap="RdBu_r")
    figure.colorbar(image, ax=axes)
    axes.set(xticks=range(len(found)), yticks=range(len(found)), title="Similarity of sentences")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Load, encode, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Run an encoder like BERT on weights of a safetensors file with harp.")
    parser.add_argument("--weights", help="the file; without it, small random weights are used")
    parser.add_argument("--heads", type=int, default=4, help="of attention; base BERT has 12")
    parser.add_argument("--tokens", type=int, nargs="+", action="append", help="numbers of the tokens of a sentence")
    parser.add_argument("--output", default="encoder.png", help="where the picture goes")
    options = parser.parse_args(argv)
    sentences = options.tokens or SENTENCES

    with tempfile.TemporaryDirectory() as folder:
        path = options.weights or pathlib.Path(folder) / "random.safetensors"
        if not options.weights:
            nn.save_safetensors(path, {"bert": random_weights(0)})
        params = load(path)
    if params["embeddings"]["LayerNorm"]["weight"].shape[0] % options.heads:
        parser.error("--heads must divide the width of the weights")
    start = time.perf_counter()
    alone = [float(similarities(params, *padded([sentence]), options.heads)[0, 0]) for sentence in sentences]
    found = np.asarray(similarities(params, *padded(sentences), options.heads))
    seconds = time.perf_counter() - start
    draw(found, options.output)

    print(np.array2string(found, precision=3, suppress_small=True))
    assert np.allclose(alone, 1, atol=1e-3)
    print(f"programs compiled: {similarities.compilations} for {len(sentences)} sentences alone, and all at once")
    print(f"numbers in weights: {sum(leaf.size for leaf in harp.tree.leaves(params)):,}")
    print(f"encoded in {seconds:.1f} s, compiling included")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
