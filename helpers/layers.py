"""The transformer as PyTorch modules, from one attention layer to whole models.

Vectors are (B, T, D): batch, tokens, features. Masks are boolean, True where attention is allowed,
of shape (T, Tk), (B, T, Tk) or (B, 1 or H, T, Tk); an axis of size 1 broadcasts. The word "causal"
stands for `causal_mask(T)` and takes no memory.
To see attention, run a model and read `.weights` of any MultiHeadAttention inside it.
To write with a model, give it to `helpers.decoding.generate`.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

Mask = Tensor | str | None  # bool, True = may attend; "causal"; None = all may

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
}


def causal_mask(T: int, device: torch.device | str | None = None, past: int = 0) -> Tensor:
    """Let query i see keys 0 … past + i: (T, past + T) bool.

    `past` tokens were read before these T, and all see them. Raises ValueError unless T is
    positive. Paper, section 3.2.3.
    """
    _check_positive(T=T)
    return torch.ones(T, past + T, dtype=torch.bool, device=device).tril(past)


class KeyValueCache:
    """Keys and values of the tokens read so far, so that a model that writes reads only new ones.

    Give the same cache to each forward of a model, and to each forward only the tokens that are
    new. Self-attention adds their keys and values to those it has; cross-attention computes those
    of the memory once. One cache serves one batch of texts, without gradients.
    """

    def __init__(self) -> None:
        self.ids: Tensor | None = None  # (B, Tk) all tokens read so far
        self._rooms: dict[nn.Module, Tensor] = {}  # K and V: (2, B, H, room, d_head)
        self._lengths: dict[nn.Module, int] = {}  # how much of its room is taken
        self._memories: dict[nn.Module, Tensor] = {}  # K and V: (2, B, H, S, d_head)

    def length(self, attention: nn.Module) -> int:
        """How many tokens an attention module has read."""
        return self._lengths.get(attention, 0)

    def read(self, ids: Tensor) -> Tensor:
        """Note the new tokens, (B, T), and return all so far, (B, Tk)."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        return self.ids

    def append(self, attention: nn.Module, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """Add keys and values of new tokens, (B, H, T, d_head), and return all: (B, H, Tk, d_head).

        Raises ValueError for keys that carry gradients: what is kept is used again and again.
        """
        if K.requires_grad:
            raise ValueError("cache keeps no gradients: use it under torch.no_grad()")
        past = self.length(attention)
        Tk = past + K.shape[2]
        room = self._room(attention, K, past, Tk)
        room[0, :, :, past:Tk] = K
        room[1, :, :, past:Tk] = V
        self._lengths[attention] = Tk
        return room[0, :, :, :Tk], room[1, :, :, :Tk]

    def once(
        self, attention: nn.Module, project: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory, (B, H, S, d_head): computed the first time, then kept."""
        if attention not in self._memories:
            self._memories[attention] = torch.stack(project())
        K, V = self._memories[attention]
        return K, V

    def keep(self, rows: Tensor) -> None:
        """Go on with some rows of the batch, in the order of their indices `rows`, (N,)."""
        self.ids = None if self.ids is None else self.ids[rows]
        for kept in (self._rooms, self._memories):
            for attention, keys_and_values in kept.items():
                kept[attention] = keys_and_values[:, rows]

    def _room(self, attention: nn.Module, K: Tensor, past: int, needed: int) -> Tensor:
        """Room for `needed` tokens; when it gets tight, twice as much, so that copies are rare."""
        room = self._rooms.get(attention)
        if room is None or room.shape[3] < needed:
            B, H, _, d_head = K.shape
            larger = K.new_empty(2, B, H, max(needed, 2 * past), d_head)
            if room is not None:
                larger[:, :, :, :past] = room[:, :, :, :past]
            room = self._rooms[attention] = larger
        return room


class MultiHeadAttention(nn.Module):
    """Several heads attend at once, each in its own d_head features; W_o mixes what they found.

    softmax(Q Kᵀ / √d_head) V in each head, (B, T, d_in) → (B, T, d_out). Unless given, d_head is
    d_out / num_heads. After each forward, `weights` gives the attention weights of each head.
    Raises ValueError for heads that do not divide d_out, or a dropout outside [0, 1). Paper,
    section 3.2.2; dropout on the weights as in the authors' code.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        num_heads: int,
        *,
        d_head: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        _check_positive(d_in=d_in, d_out=d_out, num_heads=num_heads)
        if d_head is None and d_out % num_heads:
            raise ValueError(f"num_heads is {num_heads}, but must divide the width d_out = {d_out}")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads if d_head is None else d_head
        _check_positive(d_head=self.d_head)
        width = num_heads * self.d_head  # of all heads side by side
        self.W_q = nn.Linear(d_in, width, bias=bias)
        self.W_k = nn.Linear(d_in, width, bias=bias)
        self.W_v = nn.Linear(d_in, width, bias=bias)
        self.W_o = nn.Linear(width, d_out, bias=bias)
        self.dropout = _dropout(dropout)
        self.scale = 1 / math.sqrt(self.d_head)
        self.watched = True  # keep what `weights` is computed from
        self._seen: tuple[Tensor, Tensor, Mask] | Tensor | None = None

    def forward(
        self,
        x: Tensor,
        mask: Mask = None,
        memory: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Let x attend to itself, or to `memory` (B, Tk, d_in): (B, T, d_in) → (B, T, d_out).

        With a cache, x holds the new tokens only, and Tk counts those of the cache too. A query
        whose mask leaves no key gets weights of zero. Raises ValueError for shapes that do not
        fit, TypeError for a mask that is not boolean.
        """
        self._seen = None  # what the forward before this one left
        self._check(x, x if memory is None else memory)
        Q = self._split_heads(self.W_q(x))  # (B, H, T, d_head)
        K, V = self._keys_and_values(x, memory, cache)  # (B, H, Tk, d_head) each
        mask = _four_axes(mask, Q, K)
        dropout = self.dropout.p if self.dropout.training else 0.0
        context = _attend(Q, K, V, mask, scale=self.scale, dropout_p=dropout)  # (B, H, T, d_head)
        if self.watched:
            mask = mask.clone() if isinstance(mask, Tensor) else mask
            self._seen = Q.detach(), K.detach(), mask
        return self.W_o(context.transpose(1, 2).flatten(2))  # (B, T, H·d_head) → (B, T, d_out)

    @property
    def weights(self) -> Tensor | None:
        """The attention weights of the last forward, (B, H, T, Tk), detached, before dropout.

        They are computed when they are read for the first time; None before a forward, and after
        one that was `unwatched`.
        """
        if isinstance(self._seen, tuple):
            Q, K, mask = self._seen
            mask = causal_mask(Q.shape[2], Q.device) if isinstance(mask, str) else mask
            self._seen = _masked_softmax(Q @ K.transpose(-2, -1) * self.scale, mask)
        return self._seen

    @weights.setter
    def weights(self, weights: Tensor | None) -> None:
        self._seen = weights

    def _keys_and_values(
        self, x: Tensor, memory: Tensor | None, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor]:
        def project(source: Tensor) -> tuple[Tensor, Tensor]:
            return self._split_heads(self.W_k(source)), self._split_heads(self.W_v(source))

        if cache is None:
            return project(x if memory is None else memory)
        if memory is None:
            return cache.append(self, *project(x))
        return cache.once(self, lambda: project(memory))

    def _split_heads(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        return x.reshape(B, T, self.num_heads, self.d_head).transpose(1, 2)  # (B, H, T, d_head)

    def _check(self, x: Tensor, source: Tensor) -> None:
        _check_vectors("x", x, self.W_q.in_features)
        _check_vectors("memory", source, self.W_k.in_features)
        if source.shape[0] != x.shape[0]:
            raise ValueError(
                f"memory has shape {tuple(source.shape)}, but must have one item for each of the "
                f"{x.shape[0]} in x {tuple(x.shape)}"
            )

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}, d_head={self.d_head}"


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


class PositionalEncoding(nn.Module):
    """Add to each token the sine and cosine of its position at d_model/2 wavelengths.

    PE[pos, 2i] = sin(pos / 10000^(2i/d_model)), PE[pos, 2i+1] = cos of the same angle;
    (…, T, d_model) → (…, T, d_model), then dropout. Nothing here is learned. Raises ValueError for
    an odd d_model or a dropout outside [0, 1). Paper, section 3.5.
    """

    def __init__(self, d_model: int, max_len: int = 1024, dropout: float = 0.0) -> None:
        super().__init__()
        _check_positive(d_model=d_model, max_len=max_len)
        if d_model % 2:
            raise ValueError(f"d_model is {d_model}, but must be even: each sine has its cosine")
        position = torch.arange(max_len, dtype=torch.float64)[:, None]  # (max_len, 1)
        even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i, (d_model/2,)
        angle = position / 10000 ** (even / d_model)  # (max_len, d_model/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # sin, cos, sin, cos …
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)
        self.dropout = _dropout(dropout)

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

    (…, d_model) → (…, d_ff) → (…, d_model). `activation` is "relu", "gelu" or "gelu_tanh";
    `dropout` acts on the d_ff hidden features. Raises ValueError for another activation, or a
    dropout outside [0, 1). Paper, section 3.3; GELU from Hendrycks and Gimpel (2016).
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
        bias: bool = True,
    ) -> None:
        super().__init__()
        _check_positive(d_model=d_model, d_ff=d_ff)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}, but must be one of {[*ACTIVATIONS]}")
        self.W1 = nn.Linear(d_model, d_ff, bias=bias)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = _dropout(dropout)
        self.W2 = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each token on its own: (…, d_model) → (…, d_model).

        Raises ValueError for another width.
        """
        if x.shape[-1] != self.W1.in_features:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but must be (…, {self.W1.in_features})"
            )
        hidden = self.dropout(self.activation(self.W1(x)))  # (…, d_ff)
        return self.W2(hidden)  # (…, d_model)


class ResidualLayer(nn.Module):
    """What encoder and decoder layers share: the path around each sub-layer."""

    def __init__(self, dropout: float, pre_norm: bool) -> None:
        super().__init__()
        self.dropout = _dropout(dropout)
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

    Raises ValueError for heads that do not divide d_model, an unknown activation, or a dropout
    outside [0, 1). Paper, section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        d_head: int | None = None,
        dropout: float = 0.0,
        pre_norm: bool = False,
        activation: str = "relu",
        bias: bool = True,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(dropout, pre_norm)
        self.attention = MultiHeadAttention(
            d_model, d_model, num_heads, d_head=d_head, dropout=dropout, bias=bias
        )
        self.norm1 = nn.LayerNorm(d_model, eps=eps)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation, bias=bias)
        self.norm2 = nn.LayerNorm(d_model, eps=eps)

    def forward(self, x: Tensor, mask: Mask = None, cache: KeyValueCache | None = None) -> Tensor:
        """Mix the tokens, then transform each one: (B, T, d_model) → (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        _check_vectors("x", x, self.norm1.normalized_shape[0])
        x = self.add_and_norm(x, lambda h: self.attention(h, mask, cache=cache), self.norm1)
        return self.add_and_norm(x, self.feed_forward, self.norm2)


class DecoderLayer(ResidualLayer):
    """Causal self-attention, attention to the encoder, feed-forward, each with Add & Norm.

    (B, T, d_model) and memory (B, S, d_model) → (B, T, d_model). Raises ValueError for heads that
    do not divide d_model, an unknown activation, or a dropout outside [0, 1). Paper, section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        d_head: int | None = None,
        dropout: float = 0.0,
        pre_norm: bool = False,
        activation: str = "relu",
        bias: bool = True,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(dropout, pre_norm)
        self.self_attention = MultiHeadAttention(
            d_model, d_model, num_heads, d_head=d_head, dropout=dropout, bias=bias
        )
        self.norm1 = nn.LayerNorm(d_model, eps=eps)
        self.cross_attention = MultiHeadAttention(
            d_model, d_model, num_heads, d_head=d_head, dropout=dropout, bias=bias
        )
        self.norm2 = nn.LayerNorm(d_model, eps=eps)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation, bias=bias)
        self.norm3 = nn.LayerNorm(d_model, eps=eps)

    def forward(
        self,
        y: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Read what is written so far, then the memory, then transform: (B, T, d_model).

        No token ever sees a later one; `mask` can only forbid more (padding). `memory_mask` says
        which of the S memory tokens may be read. Raises ValueError for shapes that do not fit,
        TypeError for a mask that is not boolean.
        """
        _check_vectors("y", y, self.norm1.normalized_shape[0])
        past = 0 if cache is None else cache.length(self.self_attention)
        causal = _only_earlier(y, past, mask, self.self_attention.num_heads)
        y = self.add_and_norm(y, lambda h: self.self_attention(h, causal, None, cache), self.norm1)
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
    _check_positive(n=n)
    return Stack(copy.deepcopy(layer) for _ in range(n))


class LayerStack(nn.Module):
    """What encoder and decoder share: layers of one kind, and a last LayerNorm if pre-norm."""

    layer_type: type[ResidualLayer]

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        *,
        pre_norm: bool = False,
        eps: float = 1e-5,
        **options: Any,
    ) -> None:
        super().__init__()
        _check_positive(num_layers=num_layers)
        self.layers = Stack(
            self.layer_type(d_model, num_heads, d_ff, pre_norm=pre_norm, eps=eps, **options)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model, eps=eps) if pre_norm else nn.Identity()


class Encoder(LayerStack):
    """A stack of encoder layers, and a last LayerNorm if they are pre-norm: (B, T, d_model).

    `options` (d_head, dropout, activation, bias) go to each EncoderLayer, which says what it
    raises. Paper, section 3.1.
    """

    layer_type = EncoderLayer

    def forward(self, x: Tensor, mask: Mask = None, cache: KeyValueCache | None = None) -> Tensor:
        """Pass the sentence through all layers: (B, T, d_model) → (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        return self.norm(self.layers(x, mask, cache))


class Decoder(LayerStack):
    """A stack of decoder layers, and a last LayerNorm if they are pre-norm: (B, T, d_model).

    `options` (d_head, dropout, activation, bias) go to each DecoderLayer, which says what it
    raises. Paper, section 3.1.
    """

    layer_type = DecoderLayer

    def forward(
        self,
        y: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Pass y through all layers, each reading the same memory (B, S, d_model): (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        return self.norm(self.layers(y, memory, mask, memory_mask, cache))


class Transformer(nn.Module):
    """The encoder–decoder of the paper: source and target ids in, logits of the next token out.

    (B, S) and (B, T) ids → (B, T, tgt_vocab_size). `max_len` bounds S and T; `options` (pre_norm,
    activation, d_head, bias, eps) go to every layer. Raises ValueError for a pad_id outside a
    vocabulary, an odd d_model, and what the layers refuse. Paper, figure 1 and section 3.4.
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        *,
        pad_id: int = 0,
        max_len: int = 1024,
        dropout: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__()
        _check_positive(
            d_model=d_model, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size
        )
        _check_pad_id(pad_id, min(src_vocab_size, tgt_vocab_size))
        self.pad_id = pad_id
        std = d_model**-0.5  # so that √d_model times a row has spread 1
        self.src_tokens = _embedding(src_vocab_size, d_model, std)
        self.tgt_tokens = _embedding(tgt_vocab_size, d_model, std)
        self.positions = PositionalEncoding(d_model, max_len, dropout)
        sizes = (d_model, num_heads, d_ff, num_layers)
        self.encoder = Encoder(*sizes, dropout=dropout, **options)
        self.decoder = Decoder(*sizes, dropout=dropout, **options)
        self.output = nn.Linear(d_model, tgt_vocab_size, bias=False)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits of the token after each target token: (B, S), (B, T) → (B, T, tgt_vocab_size).

        Raises ValueError for an id outside its vocabulary or more than max_len tokens.
        """
        return self.decode(tgt, self.encode(src), self.padding_mask(src))

    def encode(self, src: Tensor) -> Tensor:
        """Read the source: (B, S) → (B, S, d_model). Raises as `forward` does."""
        _check_ids("src", src, self.src_tokens.num_embeddings, self.positions.table.shape[0])
        x = self.positions(self._scaled(self.src_tokens, src))  # (B, S, d_model)
        return self.encoder(x, self.padding_mask(src))

    def decode(
        self,
        tgt: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Logits from target ids and what `encode` returned: (B, T) → (B, T, tgt_vocab_size).

        `memory_mask` is the source's `padding_mask`. With a cache, `tgt` holds the new tokens
        only. Raises as `forward` does.
        """
        room = _room(self.positions.table.shape[0], cache)
        _check_ids("tgt", tgt, self.tgt_tokens.num_embeddings, room)
        return self.output(self._write(tgt, memory, memory_mask, cache))  # (B, T, tgt_vocab_size)

    def padding_mask(self, ids: Tensor) -> Tensor:
        """Real tokens may be read, padding may not: (B, T) → (B, 1, T) bool, for every query."""
        return (ids != self.pad_id)[:, None, :]

    def answering(self, src: Tensor) -> "Answering":
        """What `helpers.decoding.generate` needs to translate the sentences src, (B, S)."""
        return Answering(self, src)

    def _write(
        self,
        tgt: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        cache: KeyValueCache | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        """The decoder's vectors of the tokens tgt: (B, T) → (B, T, d_model)."""
        seen = tgt if cache is None else cache.read(tgt)  # (B, Tk)
        readable = _readable(seen, self.pad_id, padding)  # (B, 1, Tk)
        places = _places(seen.shape[1] - tgt.shape[1], seen, padding)  # (T,) or (B, T)
        y = self.positions(self._scaled(self.tgt_tokens, tgt), places)  # (B, T, d_model)
        return self.decoder(y, memory, readable, memory_mask, cache)

    @staticmethod
    def _scaled(tokens: nn.Embedding, ids: Tensor) -> Tensor:
        return tokens(ids) * math.sqrt(tokens.embedding_dim)  # (B, T, d_model)


class DecoderOnly(nn.Module):
    """A GPT-style language model: ids in, logits of the next token at every position out.

    (B, T) ids → (B, T, vocab_size), with learned positions and T up to `context_length`. Its layers
    are encoder layers under a causal mask: without an encoder there is nothing to cross-attend to.
    `tie_weights` reuses the token table as output weights. With `pad_id`, padding is never read.
    `options` (d_head, activation, bias) go to every layer; GPT-2 takes pre_norm=True and
    activation="gelu_tanh". Raises ValueError for a pad_id outside the vocabulary and what the
    layers refuse. Radford et al. (2018, 2019).
    """

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        *,
        pad_id: int | None = None,
        tie_weights: bool = False,
        dropout: float = 0.0,
        pre_norm: bool = False,
        eps: float = 1e-5,
        **options: Any,
    ) -> None:
        super().__init__()
        _check_positive(vocab_size=vocab_size, context_length=context_length, d_model=d_model)
        _check_positive(num_layers=num_layers)
        _check_pad_id(pad_id, vocab_size)
        self.pad_id = pad_id
        self.tokens = _embedding(vocab_size, d_model, std=0.02)  # GPT-2's: small logits at first
        self.positions = _embedding(context_length, d_model, std=0.02)
        self.dropout = _dropout(dropout)
        options |= {"dropout": dropout, "pre_norm": pre_norm, "eps": eps}
        self.layers = Stack(
            EncoderLayer(d_model, num_heads, d_ff, **options) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model, eps=eps) if pre_norm else nn.Identity()
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        if tie_weights:
            self.output.weight = self.tokens.weight

    def forward(self, ids: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Logits of the token after each token: (B, T) → (B, T, vocab_size).

        With a cache, `ids` holds the new tokens only. Raises ValueError for an id outside the
        vocabulary or more tokens than the context holds.
        """
        room = _room(self.positions.num_embeddings, cache)
        _check_ids("ids", ids, self.tokens.num_embeddings, room)
        return self.output(self._read(ids, cache))  # (B, T, vocab_size)

    @contextmanager
    def continuation(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int, cached: bool = True
    ) -> Iterator["Continuation"]:
        """What `helpers.decoding.generate` needs to continue the prompts.

        Raises ValueError for an id outside the vocabulary or more tokens than the context holds.
        """
        _check_prompts(prompts, self.tokens.num_embeddings)
        _check_room(prompts, max_new_tokens, self.positions.num_embeddings)

        def read(ids: Tensor, rows: list[int], *rest: Any) -> Tensor:
            return self.output(self._read(ids, *rest)[:, -1])

        with _writing(self):
            yield Continuation(read, prompts, self.tokens.weight.device, cached)

    def _read(
        self, ids: Tensor, cache: KeyValueCache | None = None, padding: Tensor | None = None
    ) -> Tensor:
        """The last layer's vectors of the tokens ids: (B, T) → (B, T, d_model)."""
        seen = ids if cache is None else cache.read(ids)  # (B, Tk)
        past = seen.shape[1] - ids.shape[1]
        places = _places(past, seen, padding)  # (T,) or (B, T)
        x = self.dropout(self.tokens(ids) + self.positions(places))  # (B, T, d_model)
        mask = _only_earlier(x, past, _readable(seen, self.pad_id, padding))
        return self.norm(self.layers(x, mask, cache))


class Answering:
    """A translator and the sentences src, (B, S), that it answers: see `Transformer.answering`."""

    def __init__(self, model: Transformer, src: Tensor) -> None:
        self.model = model
        self.src = src

    @contextmanager
    def continuation(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int, cached: bool = True
    ) -> Iterator["Continuation"]:
        """What `helpers.decoding.generate` needs to continue the prompts, one for each sentence.

        Raises ValueError for another number of prompts, an id outside the vocabulary, or more
        tokens than max_len.
        """
        model, src = self.model, self.src
        if len(prompts) != len(src):
            raise ValueError(f"prompts has {len(prompts)} rows, but src has {len(src)} sentences")
        _check_prompts(prompts, model.tgt_tokens.num_embeddings)
        _check_room(prompts, max_new_tokens, model.positions.table.shape[0])
        with _writing(model):
            memory, real = model.encode(src), model.padding_mask(src)

            def read(ids: Tensor, rows: list[int], *rest: Any) -> Tensor:
                return model.output(model._write(ids, memory[rows], real[rows], *rest)[:, -1])

            yield Continuation(read, prompts, src.device, cached)


class Continuation:
    """Texts that a model writes on, one token at a time.

    A call takes the newest token of each row that goes on, {row: id}, and returns the logits of
    the token after it, NumPy (rows, V). The first call takes {} and reads the prompts. Shorter
    prompts get padding at their left, which is never read and has no position. Without a cache,
    every call reads everything again.
    """

    def __init__(
        self,
        read: Callable[..., Tensor],  # ids (B, T), rows, cache, padding (B,) → logits (B, V)
        prompts: Sequence[Sequence[int]],
        device: torch.device,
        cached: bool,
    ) -> None:
        self.read = read
        self.device = device
        self.cache = KeyValueCache() if cached else None
        longest = max(map(len, prompts))
        self.padding = [longest - len(prompt) for prompt in prompts]
        self.texts = [[0] * n + [*p] for n, p in zip(self.padding, prompts, strict=True)]
        self.rows = list(range(len(prompts)))  # those that go on

    def __call__(self, newest: dict[int, int]) -> np.ndarray:
        """Logits after the newest token of each row: {row: id} → (rows, V)."""
        before, self.rows = self.rows, list(newest) or self.rows
        for row, i in newest.items():
            self.texts[row].append(i)
        unread = slice(None)
        if newest and self.cache is not None:
            unread = slice(-1, None)
            if self.rows != before:
                self.cache.keep(self._tensor([before.index(row) for row in self.rows]))
        ids = self._tensor([self.texts[row][unread] for row in self.rows])
        padding = [self.padding[row] for row in self.rows]
        padding = self._tensor(padding) if any(padding) else None
        return self.read(ids, self.rows, self.cache, padding).cpu().double().numpy()

    def _tensor(self, numbers: list) -> Tensor:
        return torch.tensor(numbers, device=self.device)


@contextmanager
def _writing(model: nn.Module) -> Iterator[None]:
    with in_mode(model, training=False), torch.no_grad(), unwatched(model):
        yield


def _places(past: int, seen: Tensor, padding: Tensor | None) -> Tensor:
    """Positions of the tokens after the `past` first ones: (T,), or (B, T) behind padding."""
    places = torch.arange(past, seen.shape[1], device=seen.device)
    return places if padding is None else (places - padding[:, None]).clamp(min=0)


def _readable(seen: Tensor, pad_id: int | None, padding: Tensor | None) -> Tensor | None:
    """Which tokens may be read: neither pad_id nor the first `padding` of a row. (B, 1, Tk)."""
    readable = None if pad_id is None else seen != pad_id
    if padding is not None:
        real = torch.arange(seen.shape[1], device=seen.device) >= padding[:, None]
        readable = real if readable is None else readable & real
    return None if readable is None else readable[:, None]


def _only_earlier(x: Tensor, past: int, mask: Tensor | None, num_heads: int = 1) -> Mask:
    """The causal mask of the tokens x behind `past` others, and what `mask` forbids beside."""
    if mask is None:
        return "causal"
    B, T, _ = x.shape
    mask = _fit_mask(mask, (B, num_heads, T, past + T))
    return mask if T == 1 else causal_mask(T, x.device, past) & mask


def _four_axes(mask: Mask, Q: Tensor, K: Tensor) -> Mask:
    """A mask fit for scores Q Kᵀ, (B, H, T, Tk); "causal" stays where T = Tk, which is faster."""
    T, Tk = Q.shape[2], K.shape[2]
    if isinstance(mask, str) and mask == "causal":
        if T == 1:
            return None  # the newest token may read them all
        return mask if T == Tk else causal_mask(T, Q.device, Tk - T)[None, None]
    return None if mask is None else _fit_mask(mask, (*Q.shape[:3], Tk))


def _attend(Q: Tensor, K: Tensor, V: Tensor, mask: Mask, **options: float) -> Tensor:
    """softmax(Q Kᵀ · scale) V, fused: (B, H, T, d_head); zeros for a query that has no key."""
    if not isinstance(mask, Tensor):
        is_causal = mask == "causal"
        return F.scaled_dot_product_attention(Q, K, V, is_causal=is_causal, **options)
    no_key = ~mask.any(dim=-1, keepdim=True)  # (…, T, 1): such a row is opened, or it gives NaN
    if mask.is_cpu and not no_key.any():  # on a GPU, looking would wait for all before it
        return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, **options)
    context = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask | no_key, **options)
    return context.masked_fill(no_key, 0.0)


def _masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Weights over the allowed keys, (B, H, T, Tk); zeros for a query that has none."""
    if mask is None:
        return scores.softmax(dim=-1)
    forbidden = ~_fit_mask(mask, scores.shape)
    lowest = torch.finfo(scores.dtype).min  # not -inf: a row of -inf alone would give NaN
    return scores.masked_fill(forbidden, lowest).softmax(dim=-1).masked_fill(forbidden, 0.0)


def _fit_mask(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
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


def _dropout(p: float) -> nn.Dropout:
    if not 0 <= p < 1:
        raise ValueError(f"dropout is {p}, but must be at least 0 and less than 1")
    return nn.Dropout(p)


def _embedding(rows: int, width: int, std: float) -> nn.Embedding:
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=std)
    return table


def _check_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if not size > 0:
            raise ValueError(f"{name} is {size}, but must be positive")


def _check_vectors(name: str, x: Tensor, width: int) -> None:
    if x.ndim != 3 or x.shape[-1] != width:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, but must be (B, T, {width})")


def _check_pad_id(pad_id: int | None, vocab_size: int) -> None:
    if pad_id is not None and not 0 <= pad_id < vocab_size:
        raise ValueError(f"pad_id is {pad_id}, but must be an id from 0 to {vocab_size - 1}")


def _check_prompts(prompts: Sequence[Sequence[int]], vocab_size: int) -> None:
    for i in (i for prompt in prompts for i in prompt):
        if not 0 <= i < vocab_size:
            raise ValueError(
                f"prompts holds the id {i}, but ids must be from 0 to {vocab_size - 1}"
            )


def _check_room(prompts: Sequence[Sequence[int]], max_new_tokens: int, max_len: int) -> None:
    longest = max(map(len, prompts))
    needed = longest + max_new_tokens - 1  # the last one is not read again
    if needed > max_len:
        raise ValueError(
            f"max_new_tokens is {max_new_tokens}, which makes {needed} tokens to read after a "
            f"prompt of {longest}, but the context holds {max_len}"
        )


def _room(max_len: int, cache: KeyValueCache | None) -> int:
    """How many tokens may follow those in the cache."""
    past = 0 if cache is None or cache.ids is None else cache.ids.shape[1]
    if past >= max_len:
        raise ValueError(f"cache holds {past} tokens, and with them the context is full")
    return max_len - past


def _check_ids(name: str, ids: Tensor, vocab_size: int, max_len: int) -> None:
    if not isinstance(ids, Tensor) or ids.dtype not in (torch.int64, torch.int32):
        kind = f"dtype {ids.dtype}" if isinstance(ids, Tensor) else f"type {type(ids).__name__}"
        raise TypeError(f"{name} has {kind}, but must be a tensor of int64 ids")
    if ids.ndim != 2 or 0 in ids.shape or ids.shape[1] > max_len:
        raise ValueError(
            f"{name} has shape {tuple(ids.shape)}, but must be (B, T) with T from 1 to {max_len}"
        )
    low, high = (int(i) for i in ids.aminmax())
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} holds the id {wrong}, but ids must be from 0 to {vocab_size - 1}")
