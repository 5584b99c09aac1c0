"""The layers of the transformer as PyTorch modules, from one attention to a stack of them.

Vectors are (B, T, D): batch, tokens, features. Masks are boolean, True where attention is allowed,
of shape (T, Tk), (B, T, Tk) or (B, 1 or H, T, Tk); an axis of size 1 broadcasts. `causal=True`
forbids later tokens besides, as `causal_mask(T)` does, and takes no memory. Wrong shapes raise a
ValueError, and a mask that is not boolean a TypeError.
These are the layers of the paper, Vaswani et al. (2017), *Attention Is All You Need*. What has
changed since then are options of the same layers: see `helpers.modern`.
To see attention, run a model and read `.weights` of any MultiHeadAttention inside it.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from helpers.cache import KeyValueCache
from helpers.masks import Mask, attend, fit, weigh
from helpers.modern import LayerOptions, ModernHeads
from helpers.rotary import Rope
from helpers.shapes import check_positive, check_rate, need, shaped

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
}


class Attention(nn.Module):
    """softmax(Q Kᵀ / √d_head) V, scaled dot-product attention, and its weights to look at.

    Dropout acts on the weights, as in the authors' code. Raises ValueError for a rate outside
    [0, 1). Paper, section 3.2.1.
    """

    window: int | None = None  # how many of the newest keys a query sees; in the paper, all
    keep_first: int = 0  # and how many of the first

    def __init__(self, d_head: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_rate(dropout=dropout)
        self.scale = 1 / math.sqrt(d_head)
        self.dropout = nn.Dropout(dropout)
        self.watched = True  # keep what `weights` is computed from
        self.sinks: nn.Parameter | None = None  # of each head, a score that gives nothing
        self._seen: tuple[Any, ...] | Tensor | None = None

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask, causal: bool) -> Tensor:
        """The formula, for all heads at once: (B, H, T, d_head), twice (…, Tk, d_head) → like Q.

        A query whose mask leaves no key gets weights of zero.
        """
        mask, causal = fit(mask, causal, Q, K, self.window, self.keep_first)
        self._seen = None  # what the forward before this one left
        if self.watched:
            mask_and_sinks = (x if x is None else x.detach().clone() for x in (mask, self.sinks))
            self._seen = Q.detach(), K.detach(), *mask_and_sinks, causal
        dropout = self.dropout.p if self.dropout.training else 0.0
        return attend(Q, K, V, mask, causal, self.sinks, scale=self.scale, dropout_p=dropout)

    @property
    def weights(self) -> Tensor | None:
        """softmax(Q Kᵀ / √d_head) of the last forward: (B, H, T, Tk), detached, before dropout.

        Computed when it is read for the first time; None before a forward, and after one that was
        `unwatched`. With sinks a row sums to less than 1.
        """
        if isinstance(self._seen, tuple):
            Q, K, mask, sinks, causal = self._seen
            self._seen = weigh(Q, K, mask, causal, self.scale, sinks)
        return self._seen


class MultiHeadAttention(Attention, ModernHeads):
    """Several heads attend at once, each in its own d_head features; W_o mixes what they found.

    (B, T, d_in) → (B, T, d_out). Unless given, d_head is d_out / num_heads. After each forward,
    `weights` gives the attention weights of each head. Raises ValueError for heads that do not
    divide d_out, or a dropout outside [0, 1). Paper, section 3.2.2; `helpers.modern.ModernHeads`
    says what num_kv_heads, rope, window, keep_first, sinks, qk_norm and eps have added.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, *, d_head: int | None = None,
                 num_kv_heads: int | None = None, rope: float | Rope | None = None,
                 window: int | None = None, keep_first: int = 0, sinks: bool = False,
                 qk_norm: bool = False, eps: float = 1e-5, dropout: float = 0.0,
                 bias: bool = True) -> None:  # fmt: skip
        check_positive(d_in=d_in, d_out=d_out, num_heads=num_heads, d_head=d_head,
                       num_kv_heads=num_kv_heads)  # fmt: skip
        divides = d_head is not None or d_out % num_heads == 0
        need(divides, "num_heads", num_heads, f"a divisor of d_out = {d_out}")
        d_head = d_out // num_heads if d_head is None else d_head
        super().__init__(d_head, dropout)
        self.d_in, self.num_heads, self.d_head = d_in, num_heads, d_head
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        width, shared = num_heads * d_head, self.num_kv_heads * d_head  # of all heads side by side
        self.W_q = nn.Linear(d_in, width, bias=bias)
        self.W_k = nn.Linear(d_in, shared, bias=bias)
        self.W_v = nn.Linear(d_in, shared, bias=bias)
        self.W_o = nn.Linear(width, d_out, bias=bias)
        self.modernise(rope, window, keep_first, sinks, qk_norm, eps)

    @shaped(x="B T d_in", memory="B Tk d_in")
    def forward(self, x: Tensor, mask: Mask = None, memory: Tensor | None = None,
                cache: KeyValueCache | None = None, *, causal: bool = False) -> Tensor:  # fmt: skip
        """Let x attend to itself, or to `memory` (B, Tk, d_in): (B, T, d_in) → (B, T, d_out).

        With a cache, x holds the new tokens only, and Tk counts those of the cache too.
        """
        source = x if memory is None else memory
        self.check_places(source is x, causal)
        if cache is None:
            Q, K, V = self.queries(x), self.keys(source), self.values(source)
        else:  # which has keys and values of the tokens before, too
            Q, K, V, mask = cache.extend(self, x, memory, mask)
        context = self.attend(Q, K, V, mask, causal)  # softmax(Q Kᵀ / √d_head) V
        return self.W_o(context.transpose(1, 2).flatten(2))  # (B, H, T, d_head) → (B, T, d_out)

    def queries(self, x: Tensor, past: int = 0) -> Tensor:
        """What each token asks for: (B, T, d_in) → (B, H, T, d_head), read after `past` others."""
        return self.placed(self.split_heads(self.W_q(x)), self.norm_q, past)

    def keys(self, x: Tensor, past: int = 0) -> Tensor:
        """What each token offers: (B, T, d_in) → (B, num_kv_heads, T, d_head)."""
        return self.placed(self.split_heads(self.W_k(x)), self.norm_k, past)

    def values(self, x: Tensor) -> Tensor:
        """What each token gives: (B, T, d_in) → (B, num_kv_heads, T, d_head)."""
        return self.split_heads(self.W_v(x))

    def split_heads(self, x: Tensor) -> Tensor:
        """Head h owns features h·d_head …: (B, T, heads·d_head) → (B, heads, T, d_head)."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

    def extra_repr(self) -> str:
        shared = self.num_kv_heads if self.num_kv_heads != self.num_heads else None
        told = {"num_kv_heads": shared, "rope": self.rope, "window": self.window}
        more = "".join(f", {name}={value}" for name, value in told.items() if value is not None)
        return f"num_heads={self.num_heads}, d_head={self.d_head}{more}"


class PositionalEncoding(nn.Module):
    """Add to each token the sine and cosine of its position at d_model/2 wavelengths.

    PE[pos, 2i] = sin(pos / 10000^(2i/d_model)), PE[pos, 2i+1] = cos of the same angle;
    (…, T, d_model) → (…, T, d_model), then dropout. Nothing here is learned. Raises ValueError for
    an odd d_model or a dropout outside [0, 1). Paper, section 3.5.
    """

    def __init__(self, d_model: int, max_len: int = 1024, dropout: float = 0.0) -> None:
        super().__init__()
        check_positive(d_model=d_model, max_len=max_len)
        check_rate(dropout=dropout)
        need(d_model % 2 == 0, "d_model", d_model, "even: each sine has its cosine")
        self.d_model, self.max_len = d_model, max_len
        position = torch.arange(max_len, dtype=torch.float64)[:, None]  # (max_len, 1)
        even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i, (d_model/2,)
        angle = position / 10000 ** (even / d_model)  # (max_len, d_model/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # sin, cos, sin, cos …
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)
        self.dropout = nn.Dropout(dropout)

    @shaped(x="… T d_model")
    def forward(self, x: Tensor, past: int = 0) -> Tensor:
        """Add T rows of the table, from row `past` on: (…, T, d_model) → (…, T, d_model)."""
        end = past + x.shape[-2]
        most = f"at most max_len = {self.max_len}"
        need(end <= self.max_len, f"T of x {tuple(x.shape)}", end, most)
        return self.dropout(x + self.table[past:end])


class FeedForward(nn.Module):
    """Two linear maps with an activation between, for each token alike: max(0, x W1 + b1) W2 + b2.

    (…, d_model) → (…, d_ff) → (…, d_model). `activation` is "relu", "gelu", "gelu_tanh" or "silu";
    `dropout` acts on the d_ff hidden features. `gated`, the activation is that of a third map, and
    multiplies what W1 makes: with "silu" that is SwiGLU. Raises ValueError for another activation,
    or a dropout outside [0, 1). Paper, section 3.3; GELU from Hendrycks and Gimpel (2016), gates
    from Shazeer (2020).
    """

    def __init__(self, d_model: int, d_ff: int, *, dropout: float = 0.0, activation: str = "relu",
                 gated: bool = False, bias: bool = True) -> None:  # fmt: skip
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        check_rate(dropout=dropout)
        need(activation in ACTIVATIONS, "activation", repr(activation), f"one of {[*ACTIVATIONS]}")
        self.d_model = d_model
        self.W1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_gate = nn.Linear(d_model, d_ff, bias=bias) if gated else None
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)
        self.W2 = nn.Linear(d_ff, d_model, bias=bias)

    @shaped(x="… d_model")
    def forward(self, x: Tensor) -> Tensor:
        """Transform each token on its own: (…, d_model) → (…, d_model)."""
        if self.W_gate is None:
            hidden = self.activation(self.W1(x))  # (…, d_ff)
        else:
            hidden = self.activation(self.W_gate(x)) * self.W1(x)
        return self.W2(self.dropout(hidden))  # (…, d_model)


class ResidualLayer(nn.Module):
    """What encoder and decoder layers share: the path around each sub-layer."""

    def __init__(self, d_model: int, dropout: float, pre_norm: bool) -> None:
        super().__init__()
        check_rate(dropout=dropout)
        self.d_model, self.pre_norm = d_model, pre_norm
        self.dropout = nn.Dropout(dropout)
        self.stream = nn.Identity()  # each sum passes through it: a place for hooks

    def add_and_norm(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: nn.Module
    ) -> Tensor:
        """Add to x what the sub-layer makes of it and normalise, after (paper) or before it.

        (B, T, d_model) → (B, T, d_model). Paper, sections 3.1 and 5.4; pre-norm from Xiong et al.
        (2020).
        """
        if self.pre_norm:
            return self.stream(x + self.dropout(sublayer(norm(x))))
        return norm(self.stream(x + self.dropout(sublayer(x))))


class EncoderLayer(ResidualLayer):
    """Self-attention, then feed-forward, each with Add & Norm: (B, T, d_model) → (B, T, d_model).

    Without d_ff it ends after the attention. `options` are those of LayerOptions. Raises ValueError
    for heads that do not divide d_model, an unknown activation, or a dropout outside [0, 1). Paper,
    section 3.1.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int | None, **options: Any) -> None:
        like = LayerOptions(**options)
        super().__init__(d_model, like.dropout, like.pre_norm)
        self.attention = _self_attention(d_model, num_heads, like)
        self.norm1 = like.norm(d_model)
        self.feed_forward = None if d_ff is None else _feed_forward(d_model, d_ff, like)
        self.norm2 = None if d_ff is None else like.norm(d_model)

    @shaped(x="B T d_model")
    def forward(self, x: Tensor, mask: Mask = None, cache: KeyValueCache | None = None, *,
                causal: bool = False) -> Tensor:  # fmt: skip
        """Mix the tokens, then transform each one: (B, T, d_model) → (B, T, d_model)."""

        def attend(h: Tensor) -> Tensor:
            return self.attention(h, mask, cache=cache, causal=causal)

        x = self.add_and_norm(x, attend, self.norm1)
        if self.feed_forward is None:
            return x
        return self.add_and_norm(x, self.feed_forward, self.norm2)


class DecoderLayer(ResidualLayer):
    """Causal self-attention, attention to the encoder, feed-forward, each with Add & Norm.

    (B, T, d_model) and memory (B, S, d_model) → (B, T, d_model). `options` are those of
    LayerOptions. Raises ValueError for heads that do not divide d_model, an unknown activation, or
    a dropout outside [0, 1). Paper, section 3.1.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, **options: Any) -> None:
        like = LayerOptions(**options)
        super().__init__(d_model, like.dropout, like.pre_norm)
        cross_options = like.attention(places=False)
        self.self_attention = _self_attention(d_model, num_heads, like)
        self.norm1 = like.norm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, d_model, num_heads, **cross_options)
        self.norm2 = like.norm(d_model)
        self.feed_forward = _feed_forward(d_model, d_ff, like)
        self.norm3 = like.norm(d_model)

    @shaped(y="B T d_model", memory="B S d_model")
    def forward(self, y: Tensor, memory: Tensor, mask: Mask = None, memory_mask: Mask = None,
                cache: KeyValueCache | None = None) -> Tensor:  # fmt: skip
        """Read what is written so far, then the memory, then transform: (B, T, d_model).

        No token ever sees a later one; `mask` can only forbid more (padding). `memory_mask` says
        which of the S memory tokens may be read.
        """

        def read_written(h: Tensor) -> Tensor:
            return self.self_attention(h, mask, cache=cache, causal=True)

        def read_memory(h: Tensor) -> Tensor:
            return self.cross_attention(h, memory_mask, memory, cache)

        y = self.add_and_norm(y, read_written, self.norm1)
        y = self.add_and_norm(y, read_memory, self.norm2)
        return self.add_and_norm(y, self.feed_forward, self.norm3)


class Stack(nn.ModuleList):
    """Layers applied in turn; what else they need (masks, memory) goes to each of them."""

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Feed x to the first layer, its result to the second, and so on."""
        for layer in self:
            x = layer(x, *args, **kwargs)
        return x


def make_stack(layer: nn.Module, n: int) -> Stack:
    """Stack n copies of a layer: each starts from its values, and each has its own parameters.

    Raises TypeError unless `layer` is a module, ValueError unless n is positive.
    """
    if not isinstance(layer, nn.Module):
        raise TypeError(f"layer is a {type(layer).__name__}, but must be a torch.nn.Module")
    check_positive(n=n)
    return Stack(copy.deepcopy(layer) for _ in range(n))


class MixtureOfExperts(nn.Module):
    """Several feed-forward networks, of which each token asks those few that a router chooses.

    (B, T, d_model) → (B, T, d_model): Σ share · expert(x) over the top_k experts of the largest
    shares, softmax(x W_router), made to sum to 1. After each forward, `chosen` (B, T, top_k) says
    which. `options` are those of FeedForward. Raises ValueError unless 1 ≤ top_k ≤ num_experts.
    Shazeer et al. (2017); Jiang et al. (2024), section 2.1.
    """

    def __init__(
        self, d_model: int, d_ff: int, num_experts: int, top_k: int, **options: Any
    ) -> None:
        super().__init__()
        check_positive(num_experts=num_experts)
        need(1 <= top_k <= num_experts, "top_k", top_k, f"from 1 to num_experts = {num_experts}")
        self.d_model, self.top_k = d_model, top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        experts = range(num_experts)
        self.experts = nn.ModuleList(FeedForward(d_model, d_ff, **options) for _ in experts)
        self.chosen: Tensor | None = None

    @shaped(x="B T d_model")
    def forward(self, x: Tensor) -> Tensor:
        """Let each token ask its experts: (B, T, d_model) → (B, T, d_model)."""
        shares, self.chosen = self.router(x).softmax(dim=-1).topk(self.top_k)  # (B, T, top_k) each
        shares = shares / shares.sum(dim=-1, keepdim=True)
        mixed = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            b, t, k = (self.chosen == i).nonzero(as_tuple=True)  # the N tokens that ask it
            if len(b):
                mixed = mixed.index_put((b, t), shares[b, t, k, None] * expert(x[b, t]), True)
        return mixed


def _self_attention(d_model: int, num_heads: int, like: LayerOptions) -> MultiHeadAttention:
    """A layer's attention to its own text, which may keep one small vector a token."""
    known = like.latent is None or hasattr(like.latent, "attention")
    need(known, "latent", like.latent, "a helpers.latent.Latent")
    make = MultiHeadAttention if like.latent is None else like.latent.attention
    return make(d_model, d_model, num_heads, **like.attention())


def _feed_forward(d_model: int, d_ff: int, like: LayerOptions) -> FeedForward | MixtureOfExperts:
    """A layer's feed-forward network, or its mixture of several."""
    if like.num_experts is None:
        return FeedForward(d_model, d_ff, **like.feed_forward())
    return MixtureOfExperts(d_model, d_ff, like.num_experts, like.top_k, **like.feed_forward())


@contextmanager
def in_mode(model: nn.Module, training: bool) -> Iterator[None]:
    """Within this, a model is in train or eval mode; then each part is in its own mode again."""
    modes = {part: part.training for part in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


@contextmanager
def unwatched(model: nn.Module) -> Iterator[None]:
    """Within this, the attentions of a model keep nothing for `weights`, which spares memory."""
    before = {part: part.watched for part in model.modules() if isinstance(part, Attention)}
    for attention in before:
        attention.watched, attention._seen = False, None
    try:
        yield
    finally:
        for attention, watched in before.items():
            attention.watched = watched
