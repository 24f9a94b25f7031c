"""Remove noise from an image by its Fourier transform, by how much each frequency is worth being kept.

    python examples/denoise.py --output denoise.png

Wiener's filter: a frequency is multiplied by signal/(signal + noise), where the power of the signal is a law of its
frequency, whose two parameters are found by the gradient of the likelihood of the spectrum (P. Whittle, 1953). One
program serves all sizes of images. The images are the digits that come with scikit-learn, side by side.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from tqdm.auto import tqdm

import harp
import harp.numpy as hnp

RATE = 0.2


def frequencies(shape):
    """The squared length of the frequency of each coefficient of `rfft2`."""
    return hnp.fft.fftfreq(shape[0])[:, None] ** 2 + hnp.fft.rfftfreq(shape[1])[None, :] ** 2


def power(params, shape):
    """The expected power of the signal at each frequency: flat up to a corner, then falling."""
    level, corner = hnp.exp(params[0]), hnp.exp(params[1])
    return level / (1 + frequencies(shape) / corner**2) ** 2


def loss(params, image, noise):
    """Minus the logarithm of the likelihood of the spectrum, whose coefficients are independent."""
    spectrum = hnp.abs(hnp.fft.rfft2(image, norm="ortho")) ** 2
    expected = power(params, image.shape) + noise**2
    return hnp.mean(hnp.log(expected) + spectrum / expected)


@harp.jit
def step(params, image, noise):
    """One step along the gradient: new parameters, and the loss before."""
    value, gradient = harp.value_and_grad(loss)(params, image, noise)
    return params - RATE * gradient, value


@harp.jit
def denoised(params, image, noise):
    """Wiener's filter, and the image with it."""
    signal = power(params, image.shape)
    kept = signal / (signal + noise**2)
    return kept, hnp.fft.irfft2(kept * hnp.fft.rfft2(image), s=image.shape)


def pictures(rows: int, columns: int) -> np.ndarray:
    """So many digits in rows, four times as large and smooth, about 0."""
    digits = load_digits().images[: rows * columns] / 16
    image = digits.reshape(rows, columns, 8, 8).swapaxes(1, 2).reshape(8 * rows, 8 * columns)
    spectrum = np.fft.rfft2(image)
    kept = np.zeros((32 * rows, 16 * columns + 1), complex)
    half = 4 * rows
    kept[:half, : spectrum.shape[1]], kept[-half:, : spectrum.shape[1]] = spectrum[:half], spectrum[half:]
    large = np.fft.irfft2(kept, s=(32 * rows, 32 * columns)) * 16
    return large - large.mean()


def draw(path: str, images: dict[str, np.ndarray], kept: np.ndarray) -> None:
    """The images side by side, and the filter."""
    figure, axes = plt.subplots(1, len(images) + 1, figsize=(12, 3.4), layout="constrained")
    for axis, (title, image) in zip(axes, images.items(), strict=False):
        axis.imshow(image, cmap="gray", vmin=-0.5, vmax=0.9)
        axis.set(title=title, xticks=[], yticks=[])
    shown = axes[-1].imshow(np.fft.fftshift(kept, axes=0), aspect="auto", vmin=0, vmax=1)
    axes[-1].set(
        title="share that is kept", xlabel="frequency along rows", ylabel="along columns", xticks=[], yticks=[]
    )
    figure.colorbar(shown, ax=axes[-1])
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Filter images of three sizes, report, draw the last one. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Remove noise from images with harp.")
    parser.add_argument("--noise", type=float, default=0.3, help="its standard deviation; a stroke has about 0.7")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="denoise.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.noise <= 0:
        parser.error("--noise must be above 0")

    for rows, columns in ((1, 2), (2, 3), (4, 4)):
        clean = pictures(rows, columns)
        noisy = clean + options.noise * np.random.default_rng(options.seed).standard_normal(clean.shape)
        params = np.log([1.0, 0.1])
        for _ in tqdm(range(options.steps), desc="x".join(map(str, clean.shape)), disable=None):
            params, _ = step(params, noisy, options.noise)
        kept, found = (np.asarray(a) for a in denoised(params, noisy, options.noise))
        before, after = (float(np.sqrt(np.mean((image - clean) ** 2))) for image in (noisy, found))
        print(f"{clean.shape[0]}x{clean.shape[1]}: root of the mean square error {before:.3f} -> {after:.3f}")
    draw(options.output, {"clean": clean, "with noise": noisy, "filtered": found}, kept)
    print(f"programs compiled: {step.compilations} for the steps, {denoised.compilations} for the filter")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
