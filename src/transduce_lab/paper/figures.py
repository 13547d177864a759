"""Checks and plots the paper's claims about positional encodings, learning rates and the scale of dot products."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import TrainConfig
from transduce.model.embedding import sinusoids
from transduce.training.schedule import learning_rate
from transduce.wings.inspection.plots import chart

NUM_QUERIES, NUM_KEYS = 200, 64


def wavelengths(d_model: int) -> list[float]:
    """The wavelength, in positions, of each pair of channels of the positional encodings (section 3.5)."""
    return [2 * math.pi * 10000 ** (2 * pair / d_model) for pair in range(d_model // 2)]


def shift_matrix(offset: int, d_model: int) -> Tensor:
    """The rotation matrix M with PE(pos + offset) = PE(pos) M for all positions (section 3.5)."""
    angles = [2 * math.pi * offset / wavelength for wavelength in wavelengths(d_model)]
    pairs = [
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        for angle in angles
    ]
    return torch.block_diag(*torch.tensor(pairs, dtype=torch.float64))


def shift_error(offset: int, d_model: int, length: int) -> float:
    """The largest absolute error of PE(pos + offset) = PE(pos) M over `length` positions, for an `offset` from 0."""
    table = sinusoids(length + offset, d_model).double()
    shifted = table[:length] @ shift_matrix(offset, d_model)
    return (shifted - table[offset:]).abs().max().item()


class Scale(NamedTuple):
    """Statistics of dot products of random vectors of width d_k (footnote 4 of section 3.2.1)."""

    d_k: int
    variance: float  # variance of q k, for components of variance 1
    gradient: float  # norm of the derivative of softmax(q k) by the scores q k, mean over queries
    gradient_scaled: float  # the same of softmax(q k / sqrt(d_k))


def scale_of_dot_products(widths: Sequence[int], seed: int = 1) -> list[Scale]:
    """The statistics of dot products of random vectors, for each width d_k."""
    generator = torch.Generator().manual_seed(seed)
    scales = []
    for d_k in widths:
        q = torch.randn(NUM_QUERIES, 1, d_k, generator=generator)
        k = torch.randn(NUM_QUERIES, d_k, NUM_KEYS, generator=generator)
        scores = (q @ k)[:, 0]
        norms = [_softmax_gradient(scores), _softmax_gradient(scores / math.sqrt(d_k))]
        scales.append(Scale(d_k, scores.var().item(), *norms))
    return scales


def _softmax_gradient(scores: Tensor) -> float:
    """The mean Frobenius norm of diag(p) - p p^T, the Jacobian of the softmax."""
    p = scores.softmax(dim=-1)
    jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return jacobian.flatten(1).norm(dim=1).mean().item()


def draw_positions(path: Path, length: int = 100, d_model: int = 128) -> None:
    """Draw the positional encodings as an image, and the wavelength of each channel as a curve."""
    with chart(path, (9, 4.2), columns=2, width_ratios=[2, 1]) as (left, right):
        image = left.imshow(
            sinusoids(length, d_model).numpy(), aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1
        )
        left.set(xlabel="channel", ylabel="position", title="PE(pos, channel)")
        left.figure.colorbar(image, ax=left)
        right.semilogy(range(0, d_model, 2), wavelengths(d_model))
        right.set(xlabel="channel", ylabel="positions", title="wavelength")


def draw_schedules(path: Path, steps: int = 20_000) -> None:
    """Draw the learning rate (equation 3) for several widths and warm-ups."""
    with chart(path, (7, 4)) as (axes,):
        for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000), (1024, 4000)):
            train = TrainConfig(warmup=warmup)
            rates = [learning_rate(step, train, d_model) for step in range(1, steps + 1)]
            axes.plot(range(1, steps + 1), rates, label=f"d_model {d_model}, warm-up {warmup:,}")
        axes.set(xlabel="update", ylabel="learning rate", title="The learning rate (equation 3)")


def draw_scale(path: Path, scales: Sequence[Scale]) -> None:
    """Draw the variance of dot products and the gradients of their softmax against d_k."""
    widths = [scale.d_k for scale in scales]
    with chart(path, (9, 4), columns=2) as (left, right):
        left.loglog(widths, [scale.variance for scale in scales], marker="o", label="measured")
        left.loglog(widths, widths, linestyle=":", label="d_k")
        left.set(xlabel="d_k", title="variance of q k")
        right.semilogx(
            widths, [scale.gradient for scale in scales], marker="o", label="softmax(q k)"
        )
        right.semilogx(
            widths,
            [scale.gradient_scaled for scale in scales],
            marker="o",
            label="softmax(q k / √d_k)",
        )
        right.set(
            xlabel="d_k", title=f"norm of the softmax's gradient, {NUM_KEYS} keys", ylim=(0, None)
        )
