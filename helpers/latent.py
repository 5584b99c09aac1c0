"""One small vector a token in place of its keys and values: latent attention (MLA).

All heads make their keys and values of it, so it alone is kept, and a part of the key that turns.
`Latent`, its sizes, is an option of a layer. DeepSeek-AI (2024), *DeepSeek-V2*, section 2.1.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from helpers.cache import KeyValueCache
from helpers.layers import MultiHeadAttention
from helpers.masks import Mask
from helpers.rotary import Rope, rotate
from helpers.shapes import check_positive, need


@dataclass(frozen=True)
class Latent:
    """The sizes of a LatentAttention. Raises ValueError for one out of its range."""

    d_latent: int  # of the small vector that all heads make their keys and values of
    d_turned: int  # features more of each query, and of the one key part that all heads share
    d_query: int | None = None  # of a small vector that queries are made of; None: of x itself

    def __post_init__(self) -> None:
        check_positive(d_latent=self.d_latent, d_turned=self.d_turned, d_query=self.d_query)
        need(self.d_turned % 2 == 0, "d_turned", self.d_turned, "even: rope turns pairs")

    def attention(self, *sizes: int, **options: Any) -> "LatentAttention":
        """The attention of a layer that has this option, sized as a MultiHeadAttention is."""
        return LatentAttention(*sizes, self, **options)


class LatentAttention(MultiHeadAttention):
    """Heads whose keys and values are made of one small vector c a token, which alone is kept.

    (B, T, d_in) → (B, T, d_out). A score is q · (W_up_k c), and besides q_turned · k_turned, where
    places count. With a cache it is (W_up_kᵀ q) · c: no key is ever made. Raises ValueError for a
    rope that is missing, and for options that it does not have. DeepSeek-AI (2024).
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, latent: Latent, *,
                 rope: float | Rope | None, d_head: int | None = None, eps: float = 1e-5,
                 dropout: float = 0.0, bias: bool = True, **others: Any) -> None:  # fmt: skip
        need(rope is not None, "rope", rope, "given beside latent: a part of each key turns")
        for name, value in others.items():
            need(not value, name, value, "left out beside latent")
        super().__init__(d_in, d_out, num_heads, d_head=d_head, dropout=dropout, bias=bias)
        del self.W_k, self.W_v  # there are W_down, W_up_k and W_up_v instead
        self.latent, d_query, width = latent, latent.d_query or d_in, num_heads * self.d_head
        rope = rope if isinstance(rope, Rope) else Rope(rope)
        self.rope = replace(rope, louder=1.0)  # for YaRN's counts for the whole score:
        self.scale = rope.louder**2 / math.sqrt(self.d_head + latent.d_turned)
        if latent.d_query:
            self.W_down_q = nn.Linear(d_in, d_query, bias=bias)
            self.norm_down_q = nn.RMSNorm(d_query, eps=eps)
        self.W_q = nn.Linear(d_query, width, bias=False)
        self.W_q_turned = nn.Linear(d_query, num_heads * latent.d_turned, bias=False)
        self.W_down = nn.Linear(d_in, latent.d_latent, bias=bias)
        self.norm_down = nn.RMSNorm(latent.d_latent, eps=eps)
        self.W_turned = nn.Linear(d_in, latent.d_turned, bias=bias)
        self.W_up_k = nn.Linear(latent.d_latent, width, bias=False)
        self.W_up_v = nn.Linear(latent.d_latent, width, bias=False)

    def forward(self, x: Tensor, mask: Mask = None, memory: Tensor | None = None,
                cache: KeyValueCache | None = None, *, causal: bool = False) -> Tensor:  # fmt: skip
        """As that of MultiHeadAttention; with a cache, in the absorbed form."""
        if cache is None:
            return super().forward(x, mask, memory, causal=causal)
        self.check_places(memory is None, causal)
        past = cache.length(self)
        kept, _ = cache.append(self, self.kept(x, past), None)  # (B, 1, Tk, d_latent + d_turned)
        context = self.absorbed(self.queries(x, past), kept, mask, causal)
        return self.W_o(context.transpose(1, 2).flatten(2))

    def queries(self, x: Tensor, past: int = 0) -> Tensor:
        """What each token asks for, the turned part last: (B, H, T, d_head + d_turned)."""
        x = self.norm_down_q(self.W_down_q(x)) if self.latent.d_query else x
        turned = self.W_q_turned(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return torch.cat([self.split_heads(self.W_q(x)), rotate(turned, self.rope, past)], dim=-1)

    def keys(self, x: Tensor, past: int = 0) -> Tensor:
        """What each token offers, the turned part last: (B, H, T, d_head + d_turned)."""
        c, turned = self.kept(x, past).split([self.latent.d_latent, self.latent.d_turned], dim=-1)
        shared = turned.expand(-1, self.num_heads, -1, -1)
        return torch.cat([self.split_heads(self.W_up_k(c[:, 0])), shared], dim=-1)

    def values(self, x: Tensor) -> Tensor:
        """What each token gives: (B, T, d_in) → (B, H, T, d_head)."""
        return self.split_heads(self.W_up_v(self.norm_down(self.W_down(x))))

    def kept(self, x: Tensor, past: int = 0) -> Tensor:
        """All that is kept of a token, c and the turned key: (B, 1, T, d_latent + d_turned)."""
        turned = rotate(self.W_turned(x), self.rope, past)
        return torch.cat([self.norm_down(self.W_down(x)), turned], dim=-1)[:, None]

    def absorbed(self, Q: Tensor, kept: Tensor, mask: Mask, causal: bool) -> Tensor:
        """Attention to what is kept, which is one key for all heads: (B, H, T, d_head).

        q · (W_up_k c) = (W_up_kᵀ q) · c, and a mix of values W_up_v c is W_up_v times a mix of c.
        """
        q, turned = Q.split([self.d_head, self.latent.d_turned], dim=-1)
        up_k, up_v = (W.weight.unflatten(0, (-1, self.d_head)) for W in (self.W_up_k, self.W_up_v))
        Q = torch.cat([q @ up_k, turned], dim=-1)  # (B, H, T, d_latent + d_turned)
        mixed = self.attend(Q, kept, kept[..., : self.latent.d_latent], mask, causal)
        return mixed @ up_v.transpose(1, 2)  # (B, H, T, d_latent) → (B, H, T, d_head)
