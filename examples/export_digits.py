"""Train a classifier of handwritten digits in C: harp writes the train step, and Python is not there when it runs.

    python examples/export_digits.py --epochs 20

`harp.export` writes `digits.c` and `digits.h` with two functions that share kernels, a train step and the prediction. A
main function in C of some sixty lines reads the digits and the first weights, trains, and prints the accuracy. Python
then does the same, and compares: all weights have the same bits. The data are the 1,797 digits of scikit-learn.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import harp
import harp.numpy as hnp
from harp import nn

FEATURES, HIDDEN, CLASSES, BATCH, TEST = 64, 48, 10, 96, 297
RATE = 0.3
FLAGS = ("-std=c11", "-O2", "-march=native", "-Wall", "-Wextra", "-pedantic", "-Werror")

MAIN = """\
#include "digits.h"
#include <stdio.h>
#include <stdlib.h>

static void *read(FILE *file, size_t count, size_t size)
{
    void *const memory = malloc(count * size);
    if (memory == NULL || fread(memory, size, count, file) != count) exit(2);
    return memory;
}

static void require(int code)
{
    if (code == 0) return;
    fprintf(stderr, "%s\\n", digits_message(code));
    exit(1);
}

int main(int count, char **arguments)
{
    enum { FEATURES = 64, HIDDEN = 48, CLASSES = 10, WEIGHTS = 4 };
    const size_t sizes[WEIGHTS] = {FEATURES * HIDDEN, HIDDEN, HIDDEN * CLASSES, CLASSES};
    if (count != 6) return 2;
    const int64_t rows = atoll(arguments[2]), tests = atoll(arguments[3]), batch = atoll(arguments[4]);
    FILE *const file = fopen(arguments[1], "rb");
    if (file == NULL) return 2;
    float *weights[WEIGHTS], *next[WEIGHTS], loss = 0;
    for (int k = 0; k < WEIGHTS; ++k) weights[k] = read(file, sizes[k], sizeof(float));
    for (int k = 0; k < WEIGHTS; ++k) next[k] = malloc(sizes[k] * sizeof(float));
    const float *const images = read(file, (size_t)((rows + tests) * FEATURES), sizeof(float));
    const int32_t *const labels = read(file, (size_t)(rows + tests), sizeof(int32_t));
    void *const scratch = malloc((size_t)digits_step_scratch(batch) + 1); /* the last batch needs less */
    for (int epoch = atoi(arguments[5]); epoch > 0; --epoch)
        for (int64_t first = 0; first < rows; first += batch) {
            const int64_t n = rows - first < batch ? rows - first : batch;
            const float *const x = images + first * FEATURES;
            require(digits_step(weights[0], weights[1], weights[2], weights[3], x, labels + first, next[0], next[1],
                                next[2], next[3], &loss, n, scratch));
            for (int k = 0; k < WEIGHTS; ++k) {
                float *const old = weights[k];
                weights[k] = next[k];
                next[k] = old;
            }
        }
    int64_t *const found = malloc((size_t)tests * sizeof *found), right = 0;
    const float *const unseen = images + rows * FEATURES;
    require(digits_predict(weights[0], weights[1], weights[2], weights[3], unseen, found, tests, NULL));
    for (int64_t k = 0; k < tests; ++k) right += found[k] == labels[rows + k];
    fprintf(stderr, "in C:      loss %.6f, accuracy %.1f%%\\n", (double)loss, 100.0 * (double)right / (double)tests);
    for (int k = 0; k < WEIGHTS; ++k) fwrite(weights[k], sizeof(float), sizes[k], stdout);
    return 0;
}
"""


def scores(weights, x):
    w1, b1, w2, b2 = weights
    return hnp.relu(x @ w1 + b1) @ w2 + b2


def loss(weights, x, y):
    return hnp.mean(nn.softmax_cross_entropy_with_integer_labels(scores(weights, x), y))


def step(weights, x, y):
    """New weights, and the loss before the step."""
    value, gradient = harp.value_and_grad(loss)(weights, x, y)
    return [w - RATE * g for w, g in zip(weights, gradient, strict=True)], value


def predict(weights, x):
    return hnp.argmax(scores(weights, x), axis=1)


def write(folder: Path) -> None:
    """`digits.c` and `digits.h`: the two functions in C."""
    f32, i32 = harp.f32, harp.i32
    weights = [f32[FEATURES, HIDDEN], f32[HIDDEN], f32[HIDDEN, CLASSES], f32[CLASSES]]
    x, y = f32["n", FEATURES], i32["n"]
    harp.export({"step": (step, weights, x, y), "predict": (predict, weights, x)}, folder, "digits")


def build(folder: Path) -> Path:
    """The program in C."""
    write(folder)
    (folder / "main.c").write_text(MAIN)
    compiler = shutil.which("gcc") or shutil.which("cc") or "cc"
    subprocess.run([compiler, *FLAGS, "main.c", "digits.c", "-lm", "-o", "digits"], check=True, cwd=folder)
    return folder / "digits"


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images of 64 numbers from 0 to 1, and labels; the last ones are for the test."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.data))
    return (data.data[order] / 16).astype(np.float32), data.target[order].astype(np.int32)


def first_weights() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
    return [(rng.normal(size=shape) * len(shape) * 0.06).astype(np.float32) for shape in shapes]


def train(epochs: int) -> tuple[list[np.ndarray], float]:
    """The same in Python: weights, and the accuracy of the test."""
    (x, y), weights, steps = digits(), first_weights(), harp.jit(step)
    rows = len(x) - TEST
    for _ in range(epochs):
        for first in range(0, rows, BATCH):
            part = slice(first, min(first + BATCH, rows))
            weights, _ = steps(weights, x[part], y[part])
    found = harp.jit(predict)(weights, x[rows:])
    return [np.asarray(w) for w in weights], float(np.mean(np.asarray(found) == y[rows:]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the files are written, by default one that is deleted")
    options = parser.parse_args(arguments)
    (x, y), weights = digits(), first_weights()
    rows = len(x) - TEST
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        program = build(folder)
        (folder / "data").write_bytes(b"".join(array.tobytes() for array in (*weights, x, y)))
        command = [program, folder / "data", rows, TEST, BATCH, options.epochs]
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True)
    weights, accuracy = train(options.epochs)
    print(f"in Python: accuracy {accuracy:.1%}")
    same = b"".join(w.tobytes() for w in weights) == done.stdout
    print(f"all weights have the same bits: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
