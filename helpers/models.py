"""Models built of the layers: encoder, decoder, the transformer of the paper, a GPT.

To write with a model, give it to `helpers.decoding.generate`.
"Paper" is Vaswani et al. (2017), *Attention Is All You Need*.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from helpers.cache import KeyValueCache
from helpers.given import check_positive, check_rate
from helpers.layers import (
    DecoderLayer,
    EncoderLayer,
    LayerOptions,
    PositionalEncoding,
    ResidualLayer,
    Stack,
    in_mode,
    unwatched,
)
from helpers.masks import Mask


class LayerStack(nn.Module):
    """What encoder and decoder share: layers of one kind, and a last LayerNorm if pre-norm."""

    layer_type: type[ResidualLayer]

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, num_layers: int, **options: Any
    ) -> None:
        super().__init__()
        check_positive(num_layers=num_layers)
        layers = range(num_layers)
        self.layers = Stack(self.layer_type(d_model, num_heads, d_ff, **options) for _ in layers)
        self.norm = LayerOptions(**options).last_norm(d_model)


class Encoder(LayerStack):
    """A stack of encoder layers, and a last LayerNorm if they are pre-norm: (B, T, d_model).

    `options` are those of `helpers.layers.LayerOptions`; EncoderLayer says what it raises. Paper,
    section 3.1.
    """

    layer_type = EncoderLayer

    def forward(self, x: Tensor, mask: Mask = None, cache: KeyValueCache | None = None, *,
                causal: bool = False) -> Tensor:  # fmt: skip
        """Pass the sentence through all layers: (B, T, d_model) → (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        return self.norm(self.layers(x, mask, cache, causal=causal))


class Decoder(LayerStack):
    """A stack of decoder layers, and a last LayerNorm if they are pre-norm: (B, T, d_model).

    `options` are those of `helpers.layers.LayerOptions`; DecoderLayer says what it raises. Paper,
    section 3.1.
    """

    layer_type = DecoderLayer

    def forward(self, y: Tensor, memory: Tensor, mask: Mask = None, memory_mask: Mask = None,
                cache: KeyValueCache | None = None) -> Tensor:  # fmt: skip
        """Pass y through all layers, each reading the same memory (B, S, d_model): (B, T, d_model).

        Raises ValueError for shapes that do not fit, TypeError for a mask that is not boolean.
        """
        return self.norm(self.layers(y, memory, mask, memory_mask, cache))


class Transformer(nn.Module):
    """The encoder–decoder of the paper: source and target ids in, logits of the next token out.

    (B, S) and (B, T) ids → (B, T, tgt_vocab_size). `max_len` bounds S and T; `options`, those of
    `helpers.layers.LayerOptions`, go to every layer. Raises ValueError for a pad_id outside a
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
        self.positions = PositionalEncoding(d_model, max_len, LayerOptions(**options).dropout)
        self.encoder = Encoder(d_model, num_heads, d_ff, num_layers, **options)
        self.decoder = Decoder(d_model, num_heads, d_ff, num_layers, **options)
        self.output = nn.Linear(d_model, tgt_vocab_size, bias=False)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits of the token after each target token: (B, S), (B, T) → (B, T, tgt_vocab_size).

        Raises ValueError for an id outside its vocabulary or more than max_len tokens.
        """
        return self.decode(tgt, self.encode(src), self.padding_mask(src))

    def encode(self, src: Tensor) -> Tensor:
        """Read the source: (B, S) → (B, S, d_model). Raises as `forward` does."""
        _check_ids("src", src, self.src_tokens.num_embeddings, self.positions.table.shape[0])
        x = self.positions(_scaled(self.src_tokens, src))  # (B, S, d_model)
        return self.encoder(x, self.padding_mask(src))

    def decode(self, tgt: Tensor, memory: Tensor, memory_mask: Mask = None,
               cache: KeyValueCache | None = None) -> Tensor:  # fmt: skip
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

    def _write(self, tgt: Tensor, memory: Tensor, memory_mask: Mask,
               cache: KeyValueCache | None = None,
               padding: Tensor | None = None) -> Tensor:  # fmt: skip
        """The decoder's vectors of the tokens tgt: (B, T) → (B, T, d_model)."""
        seen = tgt if cache is None else cache.read(tgt)  # (B, Tk)
        readable = _readable(seen, self.pad_id, padding)  # (B, 1, Tk)
        places = _places(seen, tgt.shape[1], padding)  # (T,) or (B, T)
        y = self.positions(_scaled(self.tgt_tokens, tgt), places)  # (B, T, d_model)
        return self.decoder(y, memory, readable, memory_mask, cache)


class DecoderOnly(nn.Module):
    """A GPT-style language model: ids in, logits of the next token at every position out.

    (B, T) ids → (B, T, vocab_size), with T up to `context_length` and learned positions, unless
    the layers turn by place (`rope`). Its layers are encoder layers under a causal mask: without an
    encoder there is nothing to cross-attend to; without d_ff they have an attention alone.
    `tie_weights` reuses the token table as output weights. With `pad_id`, padding is never read.
    `options`, those of `helpers.layers.LayerOptions`, go to every layer; GPT-2 takes pre_norm=True
    and activation="gelu_tanh". Raises ValueError for a pad_id outside the vocabulary and what the
    layers refuse. Radford et al. (2018, 2019).
    """

    def __init__(self, vocab_size: int, context_length: int, d_model: int, num_heads: int,
                 d_ff: int | None, num_layers: int, *, pad_id: int | None = None,
                 tie_weights: bool = False, **options: Any) -> None:  # fmt: skip
        super().__init__()
        check_positive(vocab_size=vocab_size, context_length=context_length, d_model=d_model)
        check_positive(num_layers=num_layers)
        _check_pad_id(pad_id, vocab_size)
        like = LayerOptions(**options)
        check_rate(dropout=like.dropout)
        self.pad_id, self.context_length = pad_id, context_length
        self.tokens = _embedding(vocab_size, d_model, std=0.02)  # GPT-2's: small logits at first
        turned = like.rope is not None  # the layers know the places
        self.positions = None if turned else _embedding(context_length, d_model, std=0.02)
        self.dropout = nn.Dropout(like.dropout)
        layers = range(num_layers)
        self.layers = Stack(EncoderLayer(d_model, num_heads, d_ff, **options) for _ in layers)
        self.norm = like.last_norm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        if tie_weights:
            self.output.weight = self.tokens.weight

    def forward(self, ids: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Logits of the token after each token: (B, T) → (B, T, vocab_size).

        With a cache, `ids` holds the new tokens only. Raises ValueError for an id outside the
        vocabulary or more tokens than the context holds.
        """
        room = _room(self.context_length, cache)
        _check_ids("ids", ids, self.tokens.num_embeddings, room)
        return self.output(self._read(ids, cache))  # (B, T, vocab_size)

    @contextmanager
    def continuation(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int, cached: bool = True
    ) -> Iterator["Continuation"]:
        """What `helpers.decoding.generate` needs to continue the prompts.

        Raises ValueError for an id outside the vocabulary or more tokens than the context holds.
        """
        _check_prompts(prompts, max_new_tokens, self.tokens.num_embeddings, self.context_length)

        def read(ids: Tensor, rows: list[int], *rest: Any) -> Tensor:
            return self.output(self._read(ids, *rest)[:, -1])

        with _writing(self):
            yield Continuation(read, prompts, max_new_tokens, self.tokens.weight.device, cached)

    def _read(
        self, ids: Tensor, cache: KeyValueCache | None = None, padding: Tensor | None = None
    ) -> Tensor:
        """The last layer's vectors of the tokens ids: (B, T) → (B, T, d_model)."""
        seen = ids if cache is None else cache.read(ids)  # (B, Tk)
        x = self.tokens(ids)  # (B, T, d_model)
        if self.positions is not None:
            x = x + self.positions(_places(seen, ids.shape[1], padding))
        x = self.dropout(x)
        readable = _readable(seen, self.pad_id, padding)
        return self.norm(self.layers(x, readable, cache, causal=True))


@dataclass(frozen=True)
class Answering:
    """A translator and the sentences src, (B, S), that it answers: see `Transformer.answering`."""

    model: Transformer
    src: Tensor

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
        vocab_size, max_len = len(model.tgt_tokens.weight), len(model.positions.table)
        _check_prompts(prompts, max_new_tokens, vocab_size, max_len)
        with _writing(model):
            memory, real = model.encode(src), model.padding_mask(src)

            def read(ids: Tensor, rows: list[int], *rest: Any) -> Tensor:
                return model.output(model._write(ids, memory[rows], real[rows], *rest)[:, -1])

            yield Continuation(read, prompts, max_new_tokens, src.device, cached)


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
        max_new_tokens: int,
        device: torch.device,
        cached: bool,
    ) -> None:
        self.read = read
        self.device = device
        longest = max(map(len, prompts))
        room = longest + max_new_tokens - 1  # the last one is not read again
        self.cache = KeyValueCache(room) if cached else None
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


def _scaled(tokens: nn.Embedding, ids: Tensor) -> Tensor:
    return tokens(ids) * math.sqrt(tokens.embedding_dim)  # (B, T, d_model)


def _places(seen: Tensor, T: int, padding: Tensor | None) -> Tensor:
    """Positions of the T newest tokens of those seen: (T,), or (B, T) behind padding."""
    places = torch.arange(seen.shape[1], device=seen.device)[-T:]
    return places if padding is None else (places - padding[:, None]).clamp(min=0)


def _readable(seen: Tensor, pad_id: int | None, padding: Tensor | None) -> Tensor | None:
    """Which tokens may be read: neither pad_id nor the first `padding` of a row. (B, 1, Tk)."""
    readable = None if pad_id is None else seen != pad_id
    if padding is not None:
        real = torch.arange(seen.shape[1], device=seen.device) >= padding[:, None]
        readable = real if readable is None else readable & real
    return None if readable is None else readable[:, None]


def _embedding(rows: int, width: int, std: float) -> nn.Embedding:
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=std)
    return table


def _check_pad_id(pad_id: int | None, vocab_size: int) -> None:
    if pad_id is not None and not 0 <= pad_id < vocab_size:
        raise ValueError(f"pad_id is {pad_id}, but must be an id from 0 to {vocab_size - 1}")


def _check_prompts(
    prompts: Sequence[Sequence[int]], max_new_tokens: int, vocab_size: int, max_len: int
) -> None:
    if wrong := [i for prompt in prompts for i in prompt if not 0 <= i < vocab_size]:
        need = f"ids must be from 0 to {vocab_size - 1}"
        raise ValueError(f"prompts holds the id {wrong[0]}, but {need}")
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
