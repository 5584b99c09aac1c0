"""The transformer as PyTorch modules, from one attention layer to whole models.

Vectors are (B, T, D): batch, tokens, features. Masks are boolean, True where attention is allowed,
of shape (T, Tk), (B, T, Tk) or (B, 1 or H, T, Tk); an axis of size 1 broadcasts.
To see attention, run a model and read `.weights` of any MultiHeadAttention inside it.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
}


def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:
    """Let query i see keys 0 … i: (T, T) bool.

    Raises ValueError unless T is positive. Paper, section 3.2.3.
    """
    _check_positive(T=T)
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """Several heads attend at once, each in its own d_head features; W_o mixes what they found.

    softmax(Q Kᵀ / √d_head) V in each head, (B, T, d_in) → (B, T, d_out). Unless given, d_head is
    d_out / num_heads. After each forward, `weights` holds the attention weights of each head,
    (B, H, T, Tk), detached and as they were before dropout. Raises ValueError for heads that do
    not divide d_out, or a dropout outside [0, 1). Paper, section 3.2.2; dropout on the weights as
    in the authors' code.
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
        self.weights: Tensor | None = None

    def forward(
        self, x: Tensor, mask: Tensor | None = None, memory: Tensor | None = None
    ) -> Tensor:
        """Let x attend to itself, or to `memory` (B, Tk, d_in): (B, T, d_in) → (B, T, d_out).

        A query whose mask leaves no key gets weights of zero. Raises ValueError for shapes that do
        not fit, TypeError for a mask that is not boolean.
        """
        source = x if memory is None else memory
        self._check(x, source)
        Q = self._split_heads(self.W_q(x))  # (B, H, T, d_head)
        K = self._split_heads(self.W_k(source))  # (B, H, Tk, d_head)
        V = self._split_heads(self.W_v(source))  # (B, H, Tk, d_head)
        scores = Q @ K.transpose(-2, -1) / math.sqrt(self.d_head)  # (B, H, T, Tk)
        weights = _masked_softmax(scores, mask)  # (B, H, T, Tk)
        self.weights = weights.detach()
        context = self.dropout(weights) @ V  # (B, H, T, d_head)
        return self.W_o(context.transpose(1, 2).flatten(2))  # (B, T, H·d_head) → (B, T, d_out)

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)  # (B, H, T, d_head)

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

    def forward(self, x: Tensor) -> Tensor:
        """Add the first T rows of the table to each sentence: (…, T, d_model) → (…, T, d_model).

        Raises ValueError for another width or more than max_len tokens.
        """
        max_len, d_model = self.table.shape
        if x.ndim < 2 or x.shape[-1] != d_model or x.shape[-2] > max_len:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but must be (…, T, {d_model}) with T at most "
                f"max_len = {max_len}"
            )
        return self.dropout(x + self.table[: x.shape[-2]])

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

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the tokens, then transform each one: (B, T, d_model) → (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        _check_vectors("x", x, self.norm1.normalized_shape[0])
        x = self.add_and_norm(x, lambda h: self.attention(h, mask), self.norm1)
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
    ) -> Tensor:
        """Read what is written so far, then the memory, then transform: (B, T, d_model).

        No token ever sees a later one; `mask` can only forbid more (padding). `memory_mask` says
        which of the S memory tokens may be read. Raises ValueError for shapes that do not fit,
        TypeError for a mask that is not boolean.
        """
        _check_vectors("y", y, self.norm1.normalized_shape[0])
        causal = self._causal(y, mask)  # (T, T) or (B, 1 or H, T, T)
        y = self.add_and_norm(y, lambda h: self.self_attention(h, causal), self.norm1)
        y = self.add_and_norm(y, lambda h: self.cross_attention(h, memory_mask, memory), self.norm2)
        return self.add_and_norm(y, self.feed_forward, self.norm3)

    def _causal(self, y: Tensor, mask: Tensor | None) -> Tensor:
        B, T, _ = y.shape
        causal = causal_mask(T, y.device)
        if mask is None:
            return causal
        return causal & _fit_mask(mask, (B, self.self_attention.num_heads, T, T))


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

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Pass the sentence through all layers: (B, T, d_model) → (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        return self.norm(self.layers(x, mask))


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
    ) -> Tensor:
        """Pass y through all layers, each reading the same memory (B, S, d_model): (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        return self.norm(self.layers(y, memory, mask, memory_mask))


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
        return self.encoder(self._embed("src", src, self.src_tokens), self.padding_mask(src))

    def decode(self, tgt: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Logits from target ids and what `encode` returned: (B, T) → (B, T, tgt_vocab_size).

        `memory_mask` is the source's `padding_mask`. Raises as `forward` does.
        """
        y = self._embed("tgt", tgt, self.tgt_tokens)  # (B, T, d_model)
        y = self.decoder(y, memory, self.padding_mask(tgt), memory_mask)
        return self.output(y)  # (B, T, tgt_vocab_size)

    def padding_mask(self, ids: Tensor) -> Tensor:
        """Real tokens may be read, padding may not: (B, T) → (B, 1, T) bool, for every query."""
        return (ids != self.pad_id)[:, None, :]

    def _embed(self, name: str, ids: Tensor, tokens: nn.Embedding) -> Tensor:
        _check_ids(name, ids, tokens.num_embeddings, self.positions.table.shape[0])
        return self.positions(tokens(ids) * math.sqrt(tokens.embedding_dim))  # (B, T, d_model)


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

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of the token after each token: (B, T) → (B, T, vocab_size).

        Raises ValueError for an id outside the vocabulary or more tokens than the context holds.
        """
        _check_ids("ids", ids, self.tokens.num_embeddings, self.positions.num_embeddings)
        T = ids.shape[1]
        x = self.tokens(ids) + self.positions.weight[:T]  # (B, T, d_model)
        mask = causal_mask(T, ids.device)  # (T, T)
        if self.pad_id is not None:
            mask = mask & (ids != self.pad_id)[:, None, :]  # (B, T, T)
        return self.output(self.norm(self.layers(self.dropout(x), mask)))  # (B, T, vocab_size)


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
