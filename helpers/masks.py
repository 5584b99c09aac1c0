"""Which query may read which key, and attention among those, in PyTorch.

Masks are boolean, True where attention is allowed. Those of NumPy stand in attention.py.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from helpers.shapes import check_positive

Mask = Tensor | None  # bool, True = may attend; None = all may


def causal_mask(T: int, device: torch.device | str | None = None, past: int = 0,
                window: int | None = None, keep_first: int = 0) -> Tensor:  # fmt: skip
    """Let query i see keys 0 … past + i: (T, past + T) bool.

    `past` tokens were read before these T, and all see them. With a `window`, only that many of
    the newest, itself among them, and the `keep_first` first ones. Raises ValueError unless T is
    positive. Paper, section 3.2.3; windows from Beltagy et al. (2020), first ones from Xiao et al.
    (2023).
    """
    check_positive(T=T)
    earlier = torch.ones(T, past + T, dtype=torch.bool, device=device).tril(past)
    if window is None:
        return earlier
    first = torch.arange(past + T, device=device) < keep_first  # (past + T,)
    return earlier & (first | earlier.triu(past - window + 1))


def fit(
    mask: Mask, causal: bool, Q: Tensor, K: Tensor, window: int | None = None, keep_first: int = 0
) -> tuple[Mask, bool]:
    """What scores Q Kᵀ, (B, H, T, Tk), need: a mask, or `causal` alone, which is faster.

    Raises ValueError for a mask of another shape, TypeError for one that is not boolean.
    """
    T, Tk = Q.shape[2], K.shape[2]
    if mask is not None:
        mask = _four_axes(mask, (*Q.shape[:3], Tk))
    all_in_reach = window is None or Tk <= window + keep_first
    if not causal or (T == 1 and all_in_reach):  # the newest token may read them all
        return mask, False
    if mask is None and T == Tk and all_in_reach:
        return None, True
    earlier = causal_mask(T, Q.device, Tk - T, window, keep_first)
    return earlier if mask is None else earlier & mask, False


def masked_softmax(scores: Tensor, mask: Mask, sinks: Tensor | None = None) -> Tensor:
    """Weights over the allowed keys, (B, H, T, Tk); zeros for a query that has none.

    `sinks`, (H,), are one more score in each row of a head, whose weight goes nowhere.
    """
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min  # not -inf: a row of -inf alone would give NaN
        scores = scores.masked_fill(~mask, lowest)
    if sinks is not None:
        scores = torch.cat([scores, sinks.view(-1, 1, 1).expand_as(scores[..., :1])], dim=-1)
    weights = scores.softmax(dim=-1)
    weights = weights if sinks is None else weights[..., :-1]
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def weigh(Q: Tensor, K: Tensor, mask: Mask, causal: bool, scale: float,
          sinks: Tensor | None = None) -> Tensor:  # fmt: skip
    """softmax(Q Kᵀ · scale), (B, H, T, Tk), each weight to be seen: `attend` keeps none."""
    mask = causal_mask(Q.shape[2], Q.device) if causal else mask
    scores = Q @ for_each_head(K, Q.shape[1]).transpose(-2, -1)  # (B, H, T, Tk)
    return masked_softmax(scores * scale, mask, sinks)


def for_each_head(shared: Tensor, num_heads: int) -> Tensor:
    """Keys or values once for each head that reads them: (B, num_kv_heads, …) → (B, H, …)."""
    if shared.shape[1] == num_heads:
        return shared
    return shared.repeat_interleave(num_heads // shared.shape[1], dim=1)


def attend(Q: Tensor, K: Tensor, V: Tensor, mask: Mask, causal: bool,
           sinks: Tensor | None = None, **options: float) -> Tensor:  # fmt: skip
    """softmax(Q Kᵀ · scale) V, fused: (B, H, T, d_head); zeros for a query that has no key.

    K and V may have fewer heads, H / G of them, each for G heads in a row. Ainslie et al. (2023).
    """
    B, H, T, d_head = Q.shape
    if sinks is not None:  # the fused way knows none
        weights = weigh(Q, K, mask, causal, options["scale"], sinks)
        return F.dropout(weights, options["dropout_p"]) @ for_each_head(V, H)
    if K.shape[1] < H and T == 1 and (mask is None or mask.shape[1] == 1):
        # G heads of one query are G queries of one head: nothing is copied
        grouped = Q.view(B, K.shape[1], -1, d_head)
        return attend(grouped, K, V, mask, causal, **options).view(B, H, 1, -1)
    K, V = for_each_head(K, H), for_each_head(V, H)
    if mask is None:
        return F.scaled_dot_product_attention(Q, K, V, is_causal=causal, **options)
    no_key = ~mask.any(dim=-1, keepdim=True)  # (…, T, 1): such a row is opened, or it gives NaN
    if mask.is_cpu and not no_key.any():  # on a GPU, looking would wait for all before it
        return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, **options)
    context = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask | no_key, **options)
    return context.masked_fill(no_key, 0.0)


def _four_axes(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Check a mask against scores of shape (B, H, T, Tk) and give it all four axes."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else f"type {type(mask).__name__}"
        raise TypeError(f"mask has {kind}, but must be a bool tensor, True = may attend")
    full = mask.unsqueeze(-3) if mask.ndim == 3 else mask[(None,) * (4 - mask.ndim)]
    fits = mask.ndim in (2, 3, 4) and all(
        m in (1, s) for m, s in zip(full.shape, shape, strict=True)
    )
    if not fits:
        B, H, T, Tk = shape
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}, but must be ({T}, {Tk}), ({B}, {T}, {Tk}) or "
            f"({B}, 1 or {H}, {T}, {Tk}), or broadcast to one of them"
        )
    return full
