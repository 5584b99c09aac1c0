"""The layers of the transformer as PyTorch modules, from one attention to a stack of them.

Vectors are (B, T, D): batch, tokens, features. Masks are boolean, True where attention is allowed,
of shape (T, Tk), (B, T, Tk) or (B, 1 or H, T, Tk); an axis of size 1 broadcasts. `causal=True`
forbids later tokens besides, as `causal_mask(T)` does, and takes no memory.
What has changed since the paper are options of the same layers: see LayerOptions.
To see attention, run a model and read `.weights` of any MultiHeadAttention inside it.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from helpers.cache import KeyValueCache
from helpers.given import check_positive, check_rate
from helpers.masks import Mask, attend, causal_mask, fit, for_each_head, masked_softmax
from helpers.rotary import rotate

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
}


class MultiHeadAttention(nn.Module):
    """Several heads attend at once, each in its own d_head features; W_o mixes what they found.

    softmax(Q Kᵀ / √d_head) V in each head, (B, T, d_in) → (B, T, d_out). Unless given, d_head is
    d_out / num_heads. After each forward, `weights` gives the attention weights of each head.
    Raises ValueError for heads that do not divide d_out, or a dropout outside [0, 1). Paper,
    section 3.2.2; dropout on the weights as in the authors' code.
    Each group of num_heads / num_kv_heads heads shares keys and values (Ainslie et al., 2023).
    With `rope`, the base of their speeds, queries and keys are turned by their places (Su et al.,
    2021); with `qk_norm` RMSNorm, with `eps`, comes before (Henry et al., 2020). With a `window` a
    query sees that many of the newest keys (Beltagy et al., 2020).
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, *, d_head: int | None = None,
                 num_kv_heads: int | None = None, rope: float | None = None,
                 window: int | None = None, qk_norm: bool = False, eps: float = 1e-5,
                 dropout: float = 0.0, bias: bool = True) -> None:  # fmt: skip
        super().__init__()
        check_rate(dropout=dropout)
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.d_head = _width_of_a_head(d_in, d_out, num_heads, d_head)
        _check_options(num_heads, self.num_kv_heads, self.d_head, rope, window)
        self.rope, self.window = rope, window
        width, shared = num_heads * self.d_head, self.num_kv_heads * self.d_head  # side by side
        self.W_q = nn.Linear(d_in, width, bias=bias)
        self.W_k = nn.Linear(d_in, shared, bias=bias)
        self.W_v = nn.Linear(d_in, shared, bias=bias)
        self.W_o = nn.Linear(width, d_out, bias=bias)
        if qk_norm:
            self.norm_q, self.norm_k = (nn.RMSNorm(self.d_head, eps=eps) for _ in "qk")
        self.qk_norm = qk_norm
        self.dropout = nn.Dropout(dropout)
        self.scale = 1 / math.sqrt(self.d_head)
        self.watched = True  # keep what `weights` is computed from
        self._seen: tuple[Tensor, Tensor, Mask, bool] | Tensor | None = None

    def forward(self, x: Tensor, mask: Mask = None, memory: Tensor | None = None,
                cache: KeyValueCache | None = None, *,
                causal: bool = False) -> Tensor:  # fmt: skip
        """Let x attend to itself, or to `memory` (B, Tk, d_in): (B, T, d_in) → (B, T, d_out).

        With a cache, x holds the new tokens only, and Tk counts those of the cache too. A query
        whose mask leaves no key gets weights of zero. Raises ValueError for shapes that do not
        fit, TypeError for a mask that is not boolean.
        """
        self._seen = None  # what the forward before this one left
        self._check(x, x if memory is None else memory)
        Q, K, V = self.queries_keys_values(x, memory, cache)
        mask, causal = self._fit(mask, causal, Q, K, cache)
        if self.watched:
            self._seen = Q.detach(), K.detach(), mask if mask is None else mask.clone(), causal
        dropout = self.dropout.p if self.dropout.training else 0.0
        context = attend(Q, K, V, mask, causal, scale=self.scale, dropout_p=dropout)
        return self.W_o(context.transpose(1, 2).flatten(2))  # (B, T, H·d_head) → (B, T, d_out)

    @property
    def weights(self) -> Tensor | None:
        """The attention weights of the last forward, (B, H, T, Tk), detached, before dropout.

        They are computed when they are read for the first time; None before a forward, and after
        one that was `unwatched`.
        """
        if isinstance(self._seen, tuple):
            Q, K, mask, causal = self._seen
            mask = causal_mask(Q.shape[2], Q.device) if causal else mask
            K = for_each_head(K, self.num_heads)
            self._seen = masked_softmax(Q @ K.transpose(-2, -1) * self.scale, mask)
        return self._seen

    @weights.setter
    def weights(self, weights: Tensor | None) -> None:
        self._seen = weights

    def queries_keys_values(
        self, x: Tensor, memory: Tensor | None = None, cache: KeyValueCache | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the heads compare and mix: (B, H, T, d_head), twice (B, num_kv_heads, Tk, d_head).

        Normalised and turned where the options say so; with a cache, its keys and values besides.
        """
        past = 0 if cache is None else cache.length(self)  # tokens read before x

        def project(source: Tensor) -> tuple[Tensor, Tensor]:
            return self._heads("k", source, past), self._split_heads(self.W_v(source))

        Q = self._heads("q", x, past)
        if cache is None:
            return Q, *project(x if memory is None else memory)
        if memory is None:
            return Q, *cache.append(self, *project(x), window=self.window)
        return Q, *cache.once(self, lambda: project(memory))

    def _heads(self, letter: str, x: Tensor, past: int) -> Tensor:
        """Queries or keys of x, whose first token has the place `past`."""
        heads = self._split_heads(getattr(self, f"W_{letter}")(x))
        if self.qk_norm:
            heads = getattr(self, f"norm_{letter}")(heads)
        if self.rope is None:
            return heads
        return rotate(heads, self.rope, past)

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # (B, heads, T, d_head)

    def _fit(self, mask: Mask, causal: bool, Q: Tensor, K: Tensor,
             cache: KeyValueCache | None) -> tuple[Mask, bool]:  # fmt: skip
        """The mask that Q and K need, of the keys that a window has left in the cache."""
        if self.window is not None and not causal:
            raise ValueError(f"window is {self.window}, but needs causal=True")
        if cache is not None and mask is not None and mask.shape[-1] == cache.length(self):
            mask = mask[..., -K.shape[2] :]
        return fit(mask, causal, Q, K, self.window)

    def _check(self, x: Tensor, source: Tensor) -> None:
        if source is not x and (self.rope or self.window):
            raise ValueError("memory is given, but rope and window are for places in one text")
        _check_vectors("x", x, self.W_q.in_features)
        _check_vectors("memory", source, self.W_k.in_features)
        if source.shape[0] != x.shape[0]:
            raise ValueError(
                f"memory has shape {tuple(source.shape)}, but must have one item for each of the "
                f"{x.shape[0]} in x {tuple(x.shape)}"
            )

    def extra_repr(self) -> str:
        shared = self.num_kv_heads != self.num_heads
        told = {"num_kv_heads": self.num_kv_heads if shared else None, "rope": self.rope,
                "window": self.window}  # fmt: skip
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
        if d_model % 2:
            raise ValueError(f"d_model is {d_model}, but must be even: each sine has its cosine")
        position = torch.arange(max_len, dtype=torch.float64)[:, None]  # (max_len, 1)
        even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i, (d_model/2,)
        angle = position / 10000 ** (even / d_model)  # (max_len, d_model/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # sin, cos, sin, cos …
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, places: Tensor | None = None) -> Tensor:
        """Add the first T rows of the table to each sentence: (…, T, d_model) → (…, T, d_model).

        Or those of `places`, (T,) or (…, T), where the tokens stand elsewhere. Raises ValueError
        for another width or more than max_len tokens.
        """
        max_len, d_model = self.table.shape
        if x.ndim < 2 or x.shape[-1] != d_model or x.shape[-2] > max_len:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but must be (…, T, {d_model}) with T at most "
                f"max_len = {max_len}"
            )
        rows = self.table[: x.shape[-2]] if places is None else self.table[places]
        return self.dropout(x + rows)

    def extra_repr(self) -> str:
        return f"d_model={self.table.shape[1]}, max_len={self.table.shape[0]}"


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
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}, but must be one of {[*ACTIVATIONS]}")
        self.W1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_gate = nn.Linear(d_model, d_ff, bias=bias) if gated else None
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)
        self.W2 = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each token on its own: (…, d_model) → (…, d_model).

        Raises ValueError for another width.
        """
        if x.shape[-1] != self.W1.in_features:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but must be (…, {self.W1.in_features})"
            )
        if self.W_gate is None:
            hidden = self.activation(self.W1(x))  # (…, d_ff)
        else:
            hidden = self.activation(self.W_gate(x)) * self.W1(x)
        return self.W2(self.dropout(hidden))  # (…, d_model)


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
        if not 1 <= top_k <= num_experts:
            raise ValueError(f"top_k is {top_k}, but must be from 1 to num_experts = {num_experts}")
        self.top_k = top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        experts = range(num_experts)
        self.experts = nn.ModuleList(FeedForward(d_model, d_ff, **options) for _ in experts)
        self.chosen: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Let each token ask its experts: (B, T, d_model) → (B, T, d_model).

        Raises ValueError for another width.
        """
        _check_vectors("x", x, self.router.in_features)
        shares, self.chosen = self.router(x).softmax(dim=-1).topk(self.top_k)  # (B, T, top_k) each
        shares = shares / shares.sum(dim=-1, keepdim=True)
        mixed = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            b, t, k = (self.chosen == i).nonzero(as_tuple=True)  # the N tokens that ask it
            if len(b):
                mixed = mixed.index_put((b, t), shares[b, t, k, None] * expert(x[b, t]), True)
        return mixed

    def extra_repr(self) -> str:
        return f"top_k={self.top_k}"


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """What an encoder or decoder layer is told besides its sizes; as in the paper if nothing."""

    d_head: int | None = None  # features of each head; None: d_model / num_heads
    num_kv_heads: int | None = None  # heads of keys and values; None: as many as of queries
    rope: float | None = None  # base of the speeds at which queries and keys turn by their places
    window: int | None = None  # how many of the newest keys a query sees; None: all
    qk_norm: bool = False  # RMSNorm of each query and key
    dropout: float = 0.0  # of the attention weights, and of what each sub-layer adds
    pre_norm: bool = False  # the norm before each sub-layer, not after
    rms_norm: bool = False  # RMSNorm in place of LayerNorm
    activation: str = "relu"
    gated: bool = False  # the activation multiplies a second map: SwiGLU with "silu"
    num_experts: int | None = None  # feed-forward networks, of which a token asks some
    top_k: int = 2  # how many of them
    bias: bool = True  # of the linear maps
    eps: float = 1e-5  # of the norms

    def attention(self, d_model: int, num_heads: int, *, cross: bool = False) -> MultiHeadAttention:
        """Make a layer's attention; that to a memory knows no places."""
        names = ["d_head", "num_kv_heads", "qk_norm", "eps", "dropout", "bias"]
        names += [] if cross else ["rope", "window"]
        options = {name: getattr(self, name) for name in names}
        return MultiHeadAttention(d_model, d_model, num_heads, **options)

    def feed_forward(self, d_model: int, d_ff: int) -> FeedForward | MixtureOfExperts:
        """Make a layer's feed-forward network, or its mixture; between maps nothing is dropped."""
        options = {name: getattr(self, name) for name in ("activation", "gated", "bias")}
        if self.num_experts is None:
            return FeedForward(d_model, d_ff, **options)
        return MixtureOfExperts(d_model, d_ff, self.num_experts, self.top_k, **options)

    def norm(self, d_model: int) -> nn.LayerNorm | nn.RMSNorm:
        """Make one norm. Ba et al. (2016); RMSNorm from Zhang and Sennrich (2019)."""
        return (nn.RMSNorm if self.rms_norm else nn.LayerNorm)(d_model, eps=self.eps)

    def last_norm(self, d_model: int) -> nn.Module:
        """Make what a stack ends with: a norm if its layers are pre-norm, else nothing."""
        return self.norm(d_model) if self.pre_norm else nn.Identity()


class ResidualLayer(nn.Module):
    """What encoder and decoder layers share: the path around each sub-layer."""

    def __init__(self, dropout: float, pre_norm: bool) -> None:
        super().__init__()
        check_rate(dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.pre_norm = pre_norm

    def add_and_norm(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: nn.Module
    ) -> Tensor:
        """Add to x what the sub-layer makes of it and normalise, after (paper) or before it.

        (B, T, d_model) → (B, T, d_model). Paper, sections 3.1 and 5.4; pre-norm from Xiong et al.
        (2020).
        """
        if self.pre_norm:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))


class EncoderLayer(ResidualLayer):
    """Self-attention, then feed-forward, each with Add & Norm: (B, T, d_model) → (B, T, d_model).

    Without d_ff it ends after the attention. `options` are those of LayerOptions. Raises ValueError
    for heads that do not divide d_model, an unknown activation, or a dropout outside [0, 1). Paper,
    section 3.1.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int | None, **options: Any) -> None:
        like = LayerOptions(**options)
        super().__init__(like.dropout, like.pre_norm)
        self.attention = like.attention(d_model, num_heads)
        self.norm1 = like.norm(d_model)
        self.feed_forward = None if d_ff is None else like.feed_forward(d_model, d_ff)
        self.norm2 = None if d_ff is None else like.norm(d_model)

    def forward(self, x: Tensor, mask: Mask = None, cache: KeyValueCache | None = None, *,
                causal: bool = False) -> Tensor:  # fmt: skip
        """Mix the tokens, then transform each one: (B, T, d_model) → (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        _check_vectors("x", x, self.norm1.normalized_shape[0])
        x = self.add_and_norm(
            x, lambda h: self.attention(h, mask, cache=cache, causal=causal), self.norm1
        )
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
        super().__init__(like.dropout, like.pre_norm)
        self.self_attention = like.attention(d_model, num_heads)
        self.norm1 = like.norm(d_model)
        self.cross_attention = like.attention(d_model, num_heads, cross=True)
        self.norm2 = like.norm(d_model)
        self.feed_forward = like.feed_forward(d_model, d_ff)
        self.norm3 = like.norm(d_model)

    def forward(self, y: Tensor, memory: Tensor, mask: Mask = None, memory_mask: Mask = None,
                cache: KeyValueCache | None = None) -> Tensor:  # fmt: skip
        """Read what is written so far, then the memory, then transform: (B, T, d_model).

        No token ever sees a later one; `mask` can only forbid more (padding). `memory_mask` says
        which of the S memory tokens may be read. Raises ValueError for shapes that do not fit,
        TypeError for a mask that is not boolean.
        """
        _check_vectors("y", y, self.norm1.normalized_shape[0])
        y = self.add_and_norm(
            y, lambda h: self.self_attention(h, mask, cache=cache, causal=True), self.norm1
        )
        y = self.add_and_norm(
            y, lambda h: self.cross_attention(h, memory_mask, memory, cache), self.norm2
        )
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
    attentions = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    before = [attention.watched for attention in attentions]
    for attention in attentions:
        attention.watched, attention.weights = False, None
    try:
        yield
    finally:
        for attention, watched in zip(attentions, before, strict=True):
            attention.watched = watched


def _width_of_a_head(d_in: int, d_out: int, num_heads: int, d_head: int | None) -> int:
    check_positive(d_in=d_in, d_out=d_out, num_heads=num_heads)
    if d_head is None and d_out % num_heads:
        raise ValueError(f"num_heads is {num_heads}, but must divide the width d_out = {d_out}")
    d_head = d_out // num_heads if d_head is None else d_head
    check_positive(d_head=d_head)
    return d_head


def _check_options(
    num_heads: int, num_kv_heads: int, d_head: int, rope: float | None, window: int | None
) -> None:
    check_positive(num_kv_heads=num_kv_heads)
    if num_heads % num_kv_heads:
        raise ValueError(f"num_kv_heads is {num_kv_heads}, but must divide num_heads = {num_heads}")
    if rope is not None:
        check_positive(rope=rope)
    if rope is not None and d_head % 2:
        raise ValueError(f"d_head is {d_head}, but must be even: rope turns pairs of features")
    if window is not None:
        check_positive(window=window)


def _check_vectors(name: str, x: Tensor, width: int) -> None:
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, but must be (B, T, {width})")
