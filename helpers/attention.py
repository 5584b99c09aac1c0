"""Attention in NumPy, one function for each term of softmax(Q Kᵀ / √d_k) V.

Arrays are (…, tokens, features). Masks are boolean, True where attention is allowed.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import math

import numpy as np

from helpers.shapes import check_positive, check_rate, need, shaped


@shaped(X="… D", W_q="D d_q", W_k="D d_k", W_v="D d_v")
def project_qkv(
    X: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Project tokens to queries, keys and values: (…, T, D) → (…, T, d_k) twice, (…, T, d_v).

    Raises ValueError for a weight whose height is not D. Paper, section 3.2.2.
    """
    return X @ W_q, X @ W_k, X @ W_v


@shaped(Q="… Tq d", K="… Tk d")
def attention_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Dot every query with every key: (…, Tq, d), (…, Tk, d) → (…, Tq, Tk).

    Entry i, j is Q[i]·K[j]. Raises ValueError when the widths differ.
    """
    return Q @ np.swapaxes(K, -1, -2)


def scale_scores(S: np.ndarray, d_k: int) -> np.ndarray:
    """Divide scores by √d_k, so that their spread does not grow with the width of the keys.

    Raises ValueError unless d_k > 0. Paper, section 3.2.1 and footnote 4.
    """
    check_positive(d_k=d_k)
    return S / math.sqrt(d_k)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Turn numbers into positive weights that sum to 1 along an axis: exp(x) / Σ exp(x).

    The largest number is subtracted first, which changes nothing but keeps exp in range.
    """
    x = np.asarray(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@shaped(Q="… Tq d", K="… Tk d")
def attention_weights(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """How much each query reads from each key: softmax(Q Kᵀ / √d_k), (…, Tq, Tk).

    Raises ValueError when Q and K differ in width. Paper, equation 1.
    """
    return softmax(scale_scores(attention_scores(Q, K), np.shape(K)[-1]))


@shaped(Q="… Tq d", K="… Tk d", V="… Tk d_v")
def attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Average the values by the attention weights: softmax(Q Kᵀ / √d_k) V, (…, Tq, d_v).

    Raises ValueError when Q and K differ in width, or K and V in length. Paper, equation 1.
    """
    return attention_weights(Q, K) @ V


def online_softmax(x: np.ndarray, tile: int) -> np.ndarray:
    """Softmax along the last axis, reading its numbers in tiles: each once for maximum and sum.

    Whenever a tile brings a larger maximum, the sum so far is shrunk to it. Integers are allowed.
    Raises ValueError unless tile is positive. Milakov and Gimelshein (2018), algorithm 3.
    """
    check_positive(tile=tile)
    x = np.asarray(x)
    largest, total = -np.inf, 0.0  # (…, 1) after the first tile
    for start in range(0, x.shape[-1], tile):
        part = x[..., start : start + tile]
        higher = np.maximum(largest, part.max(axis=-1, keepdims=True))
        e = np.exp(part - _finite(higher))
        total = total * np.exp(largest - _finite(higher)) + e.sum(axis=-1, keepdims=True)
        largest = higher
    return np.exp(x - _finite(largest)) / total


@shaped(Q="… Tq d", K="… Tk d", V="… Tk d_v")
def tiled_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, tile: int) -> np.ndarray:
    """`attention(Q, K, V)` with the keys read in tiles: scores are never more than (…, Tq, tile).

    Sum and context of the keys so far are shrunk whenever a larger score comes. Raises ValueError
    unless tile is positive, and as `attention` does. Dao et al. (2022), section 3.1.
    """
    check_positive(tile=tile)
    largest, total, context = -np.inf, 0.0, 0.0
    for start in range(0, np.shape(K)[-2], tile):
        keys, values = K[..., start : start + tile, :], V[..., start : start + tile, :]
        scores = scale_scores(attention_scores(Q, keys), np.shape(K)[-1])  # (…, Tq, tile)
        higher = np.maximum(largest, scores.max(axis=-1, keepdims=True))
        e, shrink = np.exp(scores - higher), np.exp(largest - higher)
        total = total * shrink + e.sum(axis=-1, keepdims=True)  # (…, Tq, 1)
        context = context * shrink + e @ values  # (…, Tq, d_v)
        largest = higher
    return context / total


def causal_mask(T: int) -> np.ndarray:
    """Let query i see keys 0 … i: (T, T) bool.

    Raises ValueError unless T is positive. Paper, section 3.2.3.
    """
    check_positive(T=T)
    return np.tril(np.ones((T, T), dtype=bool))


def masked_softmax(S: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Softmax over the allowed keys of each query; the others get weight 0. (…, Tq, Tk).

    `mask` is bool and broadcasts to S. Raises ValueError for a query without any allowed key.
    """
    mask = _broadcast_mask(mask, S)
    _check_every_query_has_a_key(mask)
    return softmax(np.where(mask, S, -np.inf))


def safe_masked_softmax(S: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """As `masked_softmax`, but a query without any allowed key gets weights of zero, never NaN."""
    mask = _broadcast_mask(mask, S)
    S = np.where(mask, S, -np.inf)
    largest = S.max(axis=-1, keepdims=True)
    e = np.exp(S - np.where(np.isfinite(largest), largest, 0))  # exp(-inf) is 0
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


@shaped(ids="B T")
def padding_mask(ids: np.ndarray, pad_id: int) -> np.ndarray:
    """Allow real tokens as keys: (B, T) ids → (B, 1, T) bool, the same for every query.

    Raises ValueError for ids that are not a batch of rows.
    """
    return (np.asarray(ids) != pad_id)[:, None, :]


@shaped(S="B Tq Tk", is_real="B Tk")
def padded_weights(S: np.ndarray, is_real: np.ndarray) -> np.ndarray:
    """Attention weights that ignore padded keys: (B, Tq, Tk), (B, Tk) bool → (B, Tq, Tk).

    Raises ValueError when is_real has not one entry per sentence and key.
    """
    return safe_masked_softmax(S, np.asarray(is_real)[:, None, :])


def dropout(x: np.ndarray, p: float, training: bool, rng: np.random.Generator) -> np.ndarray:
    """Drop each number with probability p and multiply the kept ones by 1 / (1 - p).

    Returns x unchanged when not training or p = 0. Raises ValueError for p outside [0, 1).
    Srivastava et al. (2014); paper, section 5.4.
    """
    check_rate(p=p)
    if not training or p == 0:
        return x
    keep = rng.random(x.shape) >= p
    return x * keep / (1 - p)


@shaped(x="B T D")
def split_heads(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Cut the features into heads: (B, T, D) → (B, H, T, D/H); head h owns the h-th slice.

    Raises ValueError when num_heads does not divide D. Paper, section 3.2.2.
    """
    B, T, D = x.shape
    need(
        num_heads > 0 and D % num_heads == 0, "num_heads", num_heads, f"a divisor of the width {D}"
    )
    return x.reshape(B, T, num_heads, D // num_heads).transpose(0, 2, 1, 3)


@shaped(x="B H T d_head")
def merge_heads(x: np.ndarray) -> np.ndarray:
    """Lay the heads side by side again, the inverse of `split_heads`: (B, H, T, d) → (B, T, H·d).

    Raises ValueError for anything but four axes.
    """
    B, H, T, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * d_head)


@shaped(x="B T D", memory="B S D", W_q="D d", W_k="D d", W_v="D d_v", W_o="d_v D_out")
def multi_head_attention(
    x: np.ndarray,
    W_q: np.ndarray,
    W_k: np.ndarray,
    W_v: np.ndarray,
    W_o: np.ndarray,
    num_heads: int,
    mask: np.ndarray | None = None,
    memory: np.ndarray | None = None,
) -> np.ndarray:
    """Attend in several heads at once and mix their results by W_o: (B, T, D) → (B, T, D).

    `mask` is (T, Tk) or (B, T, Tk), the same for every head. With `memory` (B, S, D) keys and
    values come from there (cross-attention). Raises ValueError for weights that do not fit, heads
    that do not divide the width, or a mask of another shape. Paper, section 3.2.2.
    """
    source = x if memory is None else memory
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, source @ W_k, source @ W_v))
    scores = scale_scores(attention_scores(Q, K), K.shape[-1])  # (B, H, T, Tk)
    mask = mask[:, None] if np.ndim(mask) == 3 else mask  # (B, 1, T, Tk), for every head alike
    weights = softmax(scores) if mask is None else safe_masked_softmax(scores, mask)
    return merge_heads(weights @ V) @ W_o


def _broadcast_mask(mask: np.ndarray, S: np.ndarray) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(f"mask has dtype {mask.dtype}, but must be bool, True = may attend")
    try:
        return np.broadcast_to(mask, np.shape(S))
    except ValueError:
        raise ValueError(
            f"mask has shape {mask.shape}, but must broadcast to the scores {np.shape(S)}"
        ) from None


def _check_every_query_has_a_key(mask: np.ndarray) -> None:
    if not mask.any(axis=-1).all():
        row = tuple(int(i) for i in np.argwhere(~mask.any(axis=-1))[0])
        raise ValueError(
            f"mask allows no key for query {row}: every query needs one, or use safe_masked_softmax"
        )


def _finite(largest: np.ndarray) -> np.ndarray:
    """What to subtract: the largest number so far, or 0 where all were −∞."""
    return np.where(np.isneginf(largest), 0, largest)
