"""What has changed in the layers since the paper: options, all of them off in the paper.

`LayerOptions` names them; what they do to queries and keys is in `ModernHeads`, to the feed-forward
network in `helpers.layers` (`gated`, MixtureOfExperts), and to the norm here.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from helpers.rotary import Rope, rotate
from helpers.shapes import check_positive, need


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """What an encoder or decoder layer is told besides its sizes; as in the paper if nothing."""

    d_head: int | None = None  # features of each head; None: d_model / num_heads
    num_kv_heads: int | None = None  # heads of keys and values; None: as many as of queries
    rope: float | Rope | None = None  # the speeds, or their base, at which queries and keys turn
    window: int | None = None  # how many of the newest keys a query sees; None: all
    keep_first: int = 0  # of how many first keys it sees besides
    sinks: bool = False  # a learned score of each head that takes weight and gives nothing
    qk_norm: bool = False  # RMSNorm of each query and key
    latent: Any = None  # a helpers.latent.Latent: keys and values of one small vector
    dropout: float = 0.0  # of the attention weights, and of what each sub-layer adds
    pre_norm: bool = False  # the norm before each sub-layer, not after
    rms_norm: bool = False  # RMSNorm in place of LayerNorm
    activation: str = "relu"
    gated: bool = False  # the activation multiplies a second map: SwiGLU with "silu"
    num_experts: int | None = None  # feed-forward networks, of which a token asks some
    top_k: int = 2  # how many of them
    bias: bool = True  # of the linear maps
    eps: float = 1e-5  # of the norms

    def attention(self, *, places: bool = True) -> dict[str, Any]:
        """The options of a MultiHeadAttention; one that reads a memory knows no places."""
        names = ["d_head", "num_kv_heads", "sinks", "qk_norm", "eps", "dropout", "bias"]
        return self._some(*names, *["rope", "window", "keep_first"] * places)

    def feed_forward(self) -> dict[str, Any]:
        """The options of a FeedForward; between its maps nothing is dropped."""
        return self._some("activation", "gated", "bias")

    def norm(self, d_model: int) -> nn.LayerNorm | nn.RMSNorm:
        """Make one norm. Ba et al. (2016); RMSNorm from Zhang and Sennrich (2019)."""
        return (nn.RMSNorm if self.rms_norm else nn.LayerNorm)(d_model, eps=self.eps)

    def last_norm(self, d_model: int) -> nn.Module:
        """Make what a stack ends with: a norm if its layers are pre-norm, else nothing."""
        return self.norm(d_model) if self.pre_norm else nn.Identity()

    def _some(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


def by_layer(options: dict[str, Any], num_layers: int) -> list[LayerOptions]:
    """The options of each layer: a list or tuple has one value a layer, else all are alike.

    Raises ValueError for another length, and unless num_layers is positive.
    """
    check_positive(num_layers=num_layers)
    each = {name: said for name, said in options.items() if isinstance(said, list | tuple)}
    for name, said in each.items():
        need(len(said) == num_layers, name, said, f"one value, or {num_layers}: one for each layer")
    return [LayerOptions(**options | {name: said[n] for name, said in each.items()})
            for n in range(num_layers)]  # fmt: skip


class ModernHeads:
    """The part of a MultiHeadAttention that is not in the paper.

    num_kv_heads: each group of num_heads / num_kv_heads heads shares keys and values. Ainslie et
        al. (2023).
    rope: queries and keys are turned by their places, at these speeds or at those of this base. Su
        et al. (2021).
    qk_norm: before that, RMSNorm, with `eps`, of each query and key. Henry et al. (2020).
    window: a query sees that many of the newest keys. Beltagy et al. (2020).
    keep_first: and that many of the first, at their places in the text. Xiao et al. (2023).
    sinks: a learned score of each head, from 0, joins each softmax and takes its weight away; so
        the `weights` sum to less than 1. OpenAI (2025), gpt-oss.
    """

    num_heads: int
    num_kv_heads: int
    d_head: int

    def modernise(self, rope: float | Rope | None, window: int | None, keep_first: int,
                  sinks: bool, qk_norm: bool, eps: float) -> None:  # fmt: skip
        """Take the options. Raises ValueError for one out of its range."""
        H, shared, d_head = self.num_heads, self.num_kv_heads, self.d_head
        need(H % shared == 0, "num_kv_heads", shared, f"a divisor of num_heads = {H}")
        need(rope is None or d_head % 2 == 0, "d_head", d_head, "even: rope turns pairs")
        check_positive(rope=None if isinstance(rope, Rope) else rope, window=window)
        need(keep_first >= 0, "keep_first", keep_first, "at least 0")
        self.rope, self.window, self.keep_first, self.qk_norm = rope, window, keep_first, qk_norm
        self.sinks = nn.Parameter(torch.zeros(H)) if sinks else None
        self.norm_q = nn.RMSNorm(d_head, eps=eps) if qk_norm else None
        self.norm_k = nn.RMSNorm(d_head, eps=eps) if qk_norm else None

    def placed(self, heads: Tensor, norm: nn.Module | None, past: int) -> Tensor:
        """Queries or keys, (B, heads, T, d_head), normalised, then turned by their places.

        The first token of the T has the place `past`.
        """
        heads = heads if norm is None else norm(heads)
        return heads if self.rope is None else rotate(heads, self.rope, past)

    def check_places(self, one_text: bool, causal: bool) -> None:
        """Raise ValueError for a memory, which has no places, and a window that is not causal."""
        if not one_text and (self.rope or self.window):
            raise ValueError("memory is given, but rope and window are for places in one text")
        if self.window is not None and not causal:
            raise ValueError(f"window is {self.window}, but needs causal=True")
