"""What each kind of step computes, in NumPy; the browser does the same in engine.js."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from helpers.blocks import layer_norm, sinusoidal_positions

_erf = np.vectorize(math.erf, otypes=[float])


def softmax(x: np.ndarray) -> np.ndarray:
    """Shares of one whole along the last axis; a row of −∞ becomes zeros, NaN stays NaN."""
    largest = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    return e / np.maximum(e.sum(axis=-1, keepdims=True), np.finfo(float).tiny)


def norm(x: np.ndarray, gain: Any = None, shift: Any = None, *, eps: float) -> np.ndarray:
    """`helpers.blocks.layer_norm` with a gain and a shift of one row each, (1, d), or none."""
    gain = np.ones(x.shape[-1]) if gain is None else gain[0]
    return layer_norm(x, gain, np.zeros_like(gain) if shift is None else shift[0], eps)


def shares(x: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Each number's part of its row's sum, x^(1 / temperature) / Σ; a row of zeros stays."""
    with np.errstate(divide="ignore"):
        return softmax(np.log(x) / temperature)


def entropy(p: np.ndarray) -> np.ndarray:
    """How undecided each row is, −Σ p log p in nats: (T, n) → (T, 1). Shannon (1948)."""
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1, keepdims=True)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """GPT-2's GELU, by tanh. Hendrycks and Gimpel (2016)."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def rms_norm(x: np.ndarray, gain: Any = 1.0, *, eps: float, width: int = 0) -> np.ndarray:
    """x / √(mean x² + eps) · gain, of each `width` features by themselves, or of all of a row.

    Zhang and Sennrich (2019), equation 4.
    """
    parts = x.reshape(len(x), -1, width or x.shape[1])  # (T, heads, width)
    size = np.sqrt((parts**2).mean(axis=-1, keepdims=True) + eps)
    return (parts / size * gain).reshape(x.shape)


def turned(x: np.ndarray, base: float, slower: Any = 1.0, louder: float = 1.0) -> np.ndarray:
    """Each pair of features (2i, 2i + 1) turned by place · base^(−2i/d). Su et al. (2021).

    `slower` is what is left of each pair's speed, (d/2,); the vectors grow by `louder`.
    """
    T, d = x.shape
    angle = np.arange(T)[:, None] / base ** (np.arange(0, d, 2) / d) * slower  # (T, d/2)
    even, odd = louder * x[:, 0::2], louder * x[:, 1::2]
    pairs = even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)
    return np.stack(pairs, axis=-1).reshape(T, d)


def routed(scores: np.ndarray, top_k: int) -> np.ndarray:
    """Shares of the top_k largest scores of each row, zeros elsewhere. Jiang et al. (2024)."""
    kept = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    chosen = np.full(scores.shape, -np.inf)
    np.put_along_axis(chosen, kept, np.take_along_axis(scores, kept, 1), 1)
    return softmax(chosen)


def hidden_later(scores: np.ndarray, window: int | None = None, keep_first: int = 0) -> np.ndarray:
    """−∞ where a key comes after its query, or is neither of the newest nor of the first ones."""
    Tq, Tk = scores.shape
    seen = np.tri(Tq, Tk, Tk - Tq, dtype=bool)
    if window is not None:
        seen &= ~np.tri(Tq, Tk, Tk - Tq - window, dtype=bool) | (np.arange(Tk) < keep_first)
    return np.where(seen, scores, -np.inf)


# Of each kind: ids of its tokens, inputs, weights, options → its matrix.
FORMULAS: dict[str, Callable[..., np.ndarray]] = {
    "one-hot": lambda ids, size: np.eye(size)[ids],
    "ids": lambda ids: np.asarray(ids, dtype=float)[:, None],
    "given": lambda ids, x: x,
    "embed": lambda ids, x, table, factor=1.0: factor * table[ids].astype(float),
    "places": lambda ids, table: table[: len(ids)],
    "waves": lambda ids, d: sinusoidal_positions(len(ids), d),
    "same": lambda ids, row: np.repeat(row, len(ids), axis=0),
    "add": lambda ids, x, y: x + y,
    "linear": lambda ids, x, W, b=0.0: x @ W + b,
    "split": lambda ids, x, start, stop: x[:, start:stop],
    "scores": lambda ids, q, k: q @ k.T,
    "scale": lambda ids, scores, by: scores / by,
    "rotate": lambda ids, x, **how: turned(x, **how),
    "mask": lambda ids, scores, **how: hidden_later(scores, **how),
    "sink": lambda ids, scores, score: np.hstack([scores, np.repeat(score, len(scores), axis=0)]),
    "softmax": lambda ids, x, temperature=1.0: softmax(x / temperature),
    "shares": lambda ids, x, temperature: shares(x, temperature),
    "entropy": lambda ids, p: entropy(p),
    "slope": lambda ids, p: p * (1 - p),
    "mix": lambda ids, weights, v: weights[:, : len(v)] @ v,  # a sink gives nothing
    "join": lambda ids, *heads: np.concatenate(heads, axis=1),
    "norm": lambda ids, x, *learned, eps: norm(x, *learned, eps=eps),
    "rms": lambda ids, x, *gain, **how: rms_norm(x, *gain, **how),
    "relu": lambda ids, x: np.maximum(x, 0),
    "gelu": lambda ids, x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda ids, x: gelu_tanh(x),
    "silu": lambda ids, x: x / (1 + np.exp(-x)),
    "times": lambda ids, gate, x: gate * x,
    "route": lambda ids, scores, top_k: routed(scores, top_k),
    "blend": lambda ids, shares, *found: np.einsum("te,etd->td", shares, np.stack(found)),
    "last": lambda ids, x: x[-1:],
    "mean": lambda ids, x, axis=0: x.mean(axis=axis, keepdims=True),
    "deviation": lambda ids, x: x.std(axis=1, keepdims=True),
    "unit": lambda ids, x: x / np.linalg.norm(x, axis=-1, keepdims=True),
}
# What is left of an operation that is switched off: what came in, nothing, or the sub-layer alone.
OFF: dict[str, Callable[..., np.ndarray]] = {
    **dict.fromkeys(("scale", "mask", "norm", "relu", "gelu", "gelu_tanh"), lambda x, *_: x),
    **dict.fromkeys(("rotate", "rms", "silu"), lambda x, *_: x),
    **dict.fromkeys(("mix", "places", "waves", "linear", "blend"), lambda *_: 0.0),
    **dict.fromkeys(("add", "times"), lambda x, alone: alone),
}
