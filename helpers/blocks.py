"""What stands around attention: positions, Add & Norm, feed-forward, and whole layers, in NumPy.

"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from helpers.attention import attention, causal_mask, multi_head_attention
from helpers.shapes import check_positive, need, shaped


def sinusoidal_positions(T: int, D: int) -> np.ndarray:
    """Sine and cosine of each position at D/2 wavelengths: (T, D), interleaved, from position 0.

    PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos of the same angle.
    Raises ValueError unless T is positive and D even. Paper, section 3.5.
    """
    check_positive(T=T, D=D)
    need(D % 2 == 0, "D", D, "even: each sine has its cosine")
    angle = np.arange(T)[:, None] / 10000 ** (np.arange(0, D, 2) / D)  # (T, D/2)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(T, D)


@shaped(x="… T D")
def add_positions(x: np.ndarray) -> np.ndarray:
    """Add the table of positions to each sentence: (…, T, D) → (…, T, D).

    Raises ValueError for an odd D.
    """
    x = np.asarray(x)
    return x + sinusoidal_positions(x.shape[-2], x.shape[-1]).astype(np.result_type(x, np.float32))


@shaped(x="… D", gamma="D or ()", beta="D or ()")
def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Give each token mean 0 and deviation 1 over its features, then scale and shift: (…, D).

    gamma · (x - mean) / √(variance + eps) + beta, with the biased variance.
    Raises ValueError when gamma or beta do not have width D. Ba et al. (2016).
    """
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + eps) + beta


def add_and_norm(
    x: np.ndarray, sublayer_out: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-5
) -> np.ndarray:
    """Add a sub-layer's output to its input and normalise (post-norm): LayerNorm(x + sublayer(x)).

    Raises ValueError when the two shapes differ. Paper, section 3.1.
    """
    _check_like(x, "sublayer_out", sublayer_out)
    return layer_norm(x + sublayer_out, gamma, beta, eps)


def pre_norm(
    x: np.ndarray,
    sublayer: Callable[[np.ndarray], np.ndarray],
    gamma: np.ndarray,
    beta: np.ndarray,
    eps: float = 1e-5,
) -> np.ndarray:
    """Normalise first, keep the residual path clean (pre-norm): x + sublayer(LayerNorm(x)).

    Raises ValueError when the sub-layer changes the shape. Xiong et al. (2020).
    """
    out = sublayer(layer_norm(x, gamma, beta, eps))
    _check_like(x, "what sublayer returns", out)
    return x + out


@shaped(x="… D", W1="D d_ff", b1="d_ff", W2="d_ff D_out", b2="D_out")
def feed_forward(
    x: np.ndarray, W1: np.ndarray, b1: np.ndarray, W2: np.ndarray, b2: np.ndarray
) -> np.ndarray:
    """Two linear maps with a ReLU between, for each position alike: max(0, x W1 + b1) W2 + b2.

    (…, D) → (…, D) through (D, d_ff) and (d_ff, D). Raises ValueError for weights or biases that
    do not fit. Paper, equation 2.
    """
    return np.maximum(0, x @ W1 + b1) @ W2 + b2


def encoder_layer(
    x: np.ndarray, p: Mapping[str, Any], mask: np.ndarray | None = None
) -> np.ndarray:
    """Self-attention, then feed-forward, each with Add & Norm: (B, T, D) → (B, T, D).

    p = {'attn': {W_q, W_k, W_v, W_o, num_heads}, 'norm1': (gamma, beta),
    'ffn': {W1, b1, W2, b2}, 'norm2': (gamma, beta)}.
    Raises ValueError for shapes that do not fit. Paper, section 3.1.
    """
    x = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@shaped(dec="… T D", memory="… S D", W_q="D d_k", W_k="D d_k", W_v="D d_v")
def cross_attention(
    dec: np.ndarray, memory: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray
) -> np.ndarray:
    """One head that asks with the decoder and reads from the encoder: (…, T, D) → (…, T, d_v).

    Queries come from `dec` (…, T, D), keys and values from `memory` (…, S, D).
    Raises ValueError for weights of the wrong height. Paper, section 3.2.3.
    """
    return attention(dec @ W_q, memory @ W_k, memory @ W_v)


def decoder_layer(y: np.ndarray, memory: np.ndarray, p: Mapping[str, Any]) -> np.ndarray:
    """Masked self-attention, cross-attention, feed-forward, each with Add & Norm: (B, T, D).

    p = {'self': {W_q, W_k, W_v, W_o, num_heads}, 'cross': {…}, 'ffn': {W1, b1, W2, b2},
    'norm1', 'norm2', 'norm3': (gamma, beta)}; `memory` (B, S, D) is the encoder's output.
    Raises ValueError for shapes that do not fit. Paper, section 3.1.
    """
    mask = causal_mask(y.shape[-2])
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


def _check_like(x: np.ndarray, name: str, out: np.ndarray) -> None:
    shape = np.shape(out)
    if shape != np.shape(x):
        raise ValueError(f"{name} has shape {shape}, but must be {np.shape(x)}, as x is")
