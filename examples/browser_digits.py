"""A page that trains a classifier of handwritten digits, in a browser, with the train step that harp exported as C.

    python examples/browser_digits.py digits.html      (needs `pip install harp-compiler[zig]`)

The functions are those of `export_digits.py`. zig compiles the C to WebAssembly; the page carries that, the digits of
scikit-learn and the first weights, and needs no server. It trains, shows loss and accuracy, and says which digit you
draw; it learns from your drawing when you say which digit that is. Weights have the same bits as in Python.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np
from export_digits import BATCH, TEST, digits, first_weights, train, write

import harp

TEMPLATE = Path(__file__).with_suffix(".html")
EXPORTED = ("malloc", "digits_step", "digits_predict")
FLAGS = ("-target", "wasm32-wasi", "-mexec-model=reactor", "-msimd128", "-O2", "-std=c11", "-s")


def compiled(folder: Path) -> bytes:
    """The functions in WebAssembly."""
    write(folder)
    exports = [f"-Wl,--export={name}" for name in EXPORTED]
    command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, *exports, "digits.c", "-o", "digits.wasm"]
    subprocess.run(command, check=True, cwd=folder)
    return (folder / "digits.wasm").read_bytes()


def page(epochs: int) -> str:
    """The page, complete in itself."""
    x, y = digits()
    with tempfile.TemporaryDirectory() as folder:
        wasm = compiled(Path(folder))
    data = b"".join(array.tobytes() for array in (*first_weights(), x, y))
    texts = {name: base64.b64encode(content).decode() for name, content in (("DATA", data), ("WASM", wasm))}
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        texts, ROWS=len(x) - TEST, TESTS=TEST, BATCH=BATCH, EPOCHS=epochs
    )


def checksum(weights: Sequence[np.ndarray]) -> int:
    """The sum of the bits of all weights, which the page shows as well."""
    return int(sum(np.asarray(w).view(np.uint32).sum(dtype=np.uint64) for w in weights) % 2**32)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path, nargs="?", default=Path("digits.html"))
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args(arguments)
    text = page(options.epochs)
    options.path.write_text(text, "utf-8")
    weights, accuracy = train(options.epochs)
    harp.wait_for_compilers()
    print(f"{options.path}: {len(text):,} bytes")
    print(f"in Python: {accuracy:.1%} of unseen digits, checksum of the weights {checksum(weights)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
