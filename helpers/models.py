"""Models built of the layers: encoder, decoder, the transformer of the paper, a GPT.

To write with a model, give it to `helpers.decoding.generate`. Shapes that do not fit, ids outside a
vocabulary and too many tokens raise a ValueError; masks that are not boolean, a TypeError.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from helpers.cache import Continuation, KeyValueCache
from helpers.layers import (
    DecoderLayer,
    EncoderLayer,
    PositionalEncoding,
    ResidualLayer,
    Stack,
    in_mode,
    unwatched,
)
from helpers.masks import Mask
from helpers.modern import by_layer
from helpers.shapes import check_positive, check_rate, need

Prompts = Sequence[Sequence[int]]


class LayerStack(nn.Module):
    """What encoder and decoder share: layers of one kind, and a last LayerNorm if pre-norm."""

    layer_type: type[ResidualLayer]

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, num_layers: int, **options: Any
    ) -> None:
        super().__init__()
        each = by_layer(options, num_layers)
        self.layers = Stack(self.layer_type(d_model, num_heads, d_ff, **vars(own)) for own in each)
        self.norm = each[-1].last_norm(d_model)


class Encoder(LayerStack):
    """A stack of encoder layers, and a last LayerNorm if they are pre-norm: (B, T, d_model).

    `options` are those of `helpers.modern.LayerOptions`; EncoderLayer says what it raises. Paper,
    section 3.1.
    """

    layer_type = EncoderLayer

    def forward(self, x: Tensor, mask: Mask = None, cache: KeyValueCache | None = None, *,
                causal: bool = False) -> Tensor:  # fmt: skip
        """Pass the sentence through all layers: (B, T, d_model) → (B, T, d_model)."""
        return self.norm(self.layers(x, mask, cache, causal=causal))


class Decoder(LayerStack):
    """A stack of decoder layers, and a last LayerNorm if they are pre-norm: (B, T, d_model).

    `options` are those of `helpers.modern.LayerOptions`; DecoderLayer says what it raises. Paper,
    section 3.1.
    """

    layer_type = DecoderLayer

    def forward(self, y: Tensor, memory: Tensor, mask: Mask = None, memory_mask: Mask = None,
                cache: KeyValueCache | None = None) -> Tensor:  # fmt: skip
        """Pass y through all layers, each reading the same memory: (B, T, d_model)."""
        return self.norm(self.layers(y, memory, mask, memory_mask, cache))


class Transformer(nn.Module):
    """The encoder–decoder of the paper: source and target ids in, logits of the next token out.

    (B, S) and (B, T) ids → (B, T, tgt_vocab_size). `max_len` bounds S and T; `options`, those of
    `helpers.modern.LayerOptions`, go to every layer. Raises ValueError for a pad_id outside a
    vocabulary, an odd d_model, and what the layers refuse. Paper, figure 1 and section 3.4.
    """

    def __init__(self, src_vocab_size: int, tgt_vocab_size: int, d_model: int, num_heads: int,
                 d_ff: int, num_layers: int, *, pad_id: int = 0, max_len: int = 1024,
                 **options: Any) -> None:  # fmt: skip
        super().__init__()
        check_positive(
            d_model=d_model, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size
        )
        _check_pad_id(pad_id, min(src_vocab_size, tgt_vocab_size))
        self.pad_id = pad_id
        std = d_model**-0.5  # so that √d_model times a row has spread 1
        self.src_tokens = _embedding(src_vocab_size, d_model, std)
        self.tgt_tokens = _embedding(tgt_vocab_size, d_model, std)
        dropout = by_layer(options, num_layers)[0].dropout
        self.positions = PositionalEncoding(d_model, max_len, dropout)
        self.encoder = Encoder(d_model, num_heads, d_ff, num_layers, **options)
        self.decoder = Decoder(d_model, num_heads, d_ff, num_layers, **options)
        self.output = nn.Linear(d_model, tgt_vocab_size, bias=False)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits of the token after each target token: (B, S), (B, T) → (B, T, tgt_vocab_size)."""
        return self.decode(tgt, self.encode(src), self.padding_mask(src))

    def encode(self, src: Tensor) -> Tensor:
        """Read the source: (B, S) → (B, S, d_model)."""
        _check_ids("src", src, self.src_tokens, self.positions.max_len)
        return self.encoder(self._embed(self.src_tokens, src), self.padding_mask(src))

    def decode(self, tgt: Tensor, memory: Tensor, memory_mask: Mask = None,
               cache: KeyValueCache | None = None) -> Tensor:  # fmt: skip
        """Logits from target ids and what `encode` returned: (B, T) → (B, T, tgt_vocab_size).

        `memory_mask` is the source's `padding_mask`. With a cache, `tgt` holds the new tokens only.
        """
        _check_ids("tgt", tgt, self.tgt_tokens, self.positions.max_len, cache)
        return self.output(self._write(tgt, memory, memory_mask, cache))  # (B, T, tgt_vocab_size)

    def padding_mask(self, ids: Tensor) -> Tensor:
        """Real tokens may be read, padding may not: (B, T) → (B, 1, T) bool, for every query."""
        return (ids != self.pad_id)[:, None, :]

    def answering(self, src: Tensor) -> "Answering":
        """What `helpers.decoding.generate` needs to translate the sentences src, (B, S)."""
        return Answering(self, src)

    def _embed(self, tokens: nn.Embedding, ids: Tensor, past: int = 0) -> Tensor:
        """Rows of the table times √d_model, plus positions: (B, T) → (B, T, d_model)."""
        return self.positions(tokens(ids) * math.sqrt(tokens.embedding_dim), past)

    def _write(self, tgt: Tensor, memory: Tensor, memory_mask: Mask,
               cache: KeyValueCache | None) -> Tensor:  # fmt: skip
        """The decoder's vectors of the tokens tgt: (B, T) → (B, T, d_model)."""
        seen = tgt if cache is None else cache.read(tgt)  # (B, Tk)
        y = self._embed(self.tgt_tokens, tgt, seen.shape[1] - tgt.shape[1])
        return self.decoder(y, memory, self.padding_mask(seen), memory_mask, cache)


class DecoderOnly(nn.Module):
    """A GPT-style language model: ids in, logits of the next token at every position out.

    (B, T) ids → (B, T, vocab_size), with T up to `context_length` and learned positions, unless
    `rope` says how layers turn by place. Its layers are encoder layers under a causal mask: without
    an encoder there is nothing to cross-attend to; without d_ff they have an attention alone.
    `tie_weights` reuses the token table as output weights. With `pad_id`, padding is never read.
    `options`, those of `helpers.modern.LayerOptions`, go to every layer, or a list of them one to
    each, as `rope=[1e4, None]`; GPT-2 takes pre_norm=True, activation="gelu_tanh". Raises
    ValueError for a pad_id outside the vocabulary, a list of another length and what the layers
    refuse. Radford et al. (2018, 2019).
    """

    def __init__(self, vocab_size: int, context_length: int, d_model: int, num_heads: int,
                 d_ff: int | None, num_layers: int, *, pad_id: int | None = None,
                 tie_weights: bool = False, **options: Any) -> None:  # fmt: skip
        super().__init__()
        check_positive(vocab_size=vocab_size, context_length=context_length, d_model=d_model)
        _check_pad_id(pad_id, vocab_size)
        each = by_layer(options, num_layers)
        check_rate(dropout=each[0].dropout)
        self.pad_id, self.context_length = pad_id, context_length
        self.tokens = _embedding(vocab_size, d_model, std=0.02)  # GPT-2's: small logits at first
        turned = options.get("rope") is not None  # the layers know the places, or some, or none
        self.positions = None if turned else _embedding(context_length, d_model, std=0.02)
        self.dropout = nn.Dropout(each[0].dropout)
        self.layers = Stack(EncoderLayer(d_model, num_heads, d_ff, **vars(own)) for own in each)
        self.norm = each[-1].last_norm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        if tie_weights:
            self.output.weight = self.tokens.weight

    def forward(self, ids: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Logits of the token after each token: (B, T) → (B, T, vocab_size).

        With a cache, `ids` holds the new tokens only.
        """
        _check_ids("ids", ids, self.tokens, self.context_length, cache)
        return self.output(self._read(ids, cache))  # (B, T, vocab_size)

    @contextmanager
    def continuation(
        self, prompts: Prompts, max_new_tokens: int, cached: bool = True
    ) -> Iterator[Continuation]:
        """What `helpers.decoding.generate` needs to continue the prompts."""
        _check_prompts(prompts, max_new_tokens, self.tokens, self.context_length)

        def read(ids: Tensor, rows: list[int], cache: KeyValueCache | None) -> Tensor:
            return self.output(self._read(ids, cache)[:, -1])

        with in_mode(self, training=False), torch.no_grad(), unwatched(self):
            yield Continuation(read, prompts, max_new_tokens, self.tokens.weight.device, cached)

    def _read(self, ids: Tensor, cache: KeyValueCache | None) -> Tensor:
        """The last layer's vectors of the tokens ids: (B, T) → (B, T, d_model)."""
        seen = ids if cache is None else cache.read(ids)  # (B, Tk)
        x = self.tokens(ids)  # (B, T, d_model)
        if self.positions is not None:
            x = x + self.positions(torch.arange(seen.shape[1], device=ids.device)[-ids.shape[1] :])
        real = None if self.pad_id is None else (seen != self.pad_id)[:, None]  # (B, 1, Tk)
        return self.norm(self.layers(self.dropout(x), real, cache, causal=True))


@dataclass(frozen=True)
class Answering:
    """A translator and the sentences src, (B, S), that it answers: see `Transformer.answering`."""

    model: Transformer
    src: Tensor

    @contextmanager
    def continuation(
        self, prompts: Prompts, max_new_tokens: int, cached: bool = True
    ) -> Iterator[Continuation]:
        """What `helpers.decoding.generate` needs to continue the prompts, one for each sentence.

        Raises ValueError for another number of prompts.
        """
        model, src = self.model, self.src
        if len(prompts) != len(src):
            raise ValueError(f"prompts has {len(prompts)} rows, but src has {len(src)} sentences")
        _check_prompts(prompts, max_new_tokens, model.tgt_tokens, model.positions.max_len)
        with in_mode(model, training=False), torch.no_grad(), unwatched(model):
            memory, real = model.encode(src), model.padding_mask(src)

            def read(ids: Tensor, rows: list[int], cache: KeyValueCache | None) -> Tensor:
                return model.output(model._write(ids, memory[rows], real[rows], cache)[:, -1])

            yield Continuation(read, prompts, max_new_tokens, src.device, cached)


def _embedding(rows: int, width: int, std: float) -> nn.Embedding:
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=std)
    return table


def _check_pad_id(pad_id: int | None, vocab_size: int) -> None:
    known = pad_id is None or 0 <= pad_id < vocab_size
    need(known, "pad_id", pad_id, f"an id from 0 to {vocab_size - 1}")


def _check_range(name: str, low: int, high: int, tokens: nn.Embedding) -> None:
    """Raise ValueError unless ids from low to high are in the vocabulary."""
    last = tokens.num_embeddings - 1
    if low < 0 or high > last:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} holds the id {wrong}, but ids must be from 0 to {last}")


def _check_prompts(
    prompts: Prompts, max_new_tokens: int, tokens: nn.Embedding, max_len: int
) -> None:
    ids = [i for prompt in prompts for i in prompt]
    _check_range("prompts", min(ids), max(ids), tokens)
    longest = max(map(len, prompts))
    needed = longest + max_new_tokens - 1  # the last one is not read again
    if needed > max_len:
        raise ValueError(
            f"max_new_tokens is {max_new_tokens}, which makes {needed} tokens to read after a "
            f"prompt of {longest}, but the context holds {max_len}"
        )


def _check_ids(
    name: str, ids: Tensor, tokens: nn.Embedding, max_len: int, cache: KeyValueCache | None = None
) -> None:
    """Raise unless ids, (B, T), are in the vocabulary, and fit behind the tokens in the cache."""
    if not isinstance(ids, Tensor) or ids.dtype not in (torch.int64, torch.int32):
        kind = f"dtype {ids.dtype}" if isinstance(ids, Tensor) else f"type {type(ids).__name__}"
        raise TypeError(f"{name} has {kind}, but must be a tensor of int64 ids")
    past = 0 if cache is None or cache.ids is None else cache.ids.shape[1]
    full = f"full with {past} tokens"
    need(past < max_len, "cache", full, f"shorter than {max_len}, the context")
    if ids.ndim != 2 or 0 in ids.shape or ids.shape[1] > max_len - past:
        raise ValueError(
            f"{name} has shape {tuple(ids.shape)}, but must be (B, T) with T from 1 to "
            f"{max_len - past}"
        )
    _check_range(name, *(int(i) for i in ids.aminmax()), tokens)
