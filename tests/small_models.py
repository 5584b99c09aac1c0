"""Small random models of every kind that the machine opens, with texts and how each is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor, float64, nn

from helpers.latent import Latent
from helpers.layers import DecoderLayer, EncoderLayer, MultiHeadAttention, PositionalEncoding
from helpers.models import Decoder, DecoderOnly, Encoder, Transformer
from helpers.pretrained import SentenceEncoder
from helpers.rotary import Rope
from workshop import (
    feed_forward_step,
    next_word_step,
    norm_step,
    positions_step,
    softmax_step,
)
from workshop.machine.of_modules import describe, is_part
from workshop.machine.program import Program

PRE = {"pre_norm": True, "activation": "gelu_tanh"}
LLAMA = {"pre_norm": True, "rms_norm": True, "rope": 100.0, "gated": True, "activation": "silu",
         "bias": False, "num_kv_heads": 2}  # fmt: skip
STRETCHED = Rope(9.0, 2.5, trained=4, least=0.2, most=0.5)
YARN = Rope(100.0, 4.0, trained=40, least=1.0, most=5.0, by_pairs=True, louder=1.2)
QWEN = LLAMA | {"rope": YARN, "d_head": 4, "qk_norm": True, "tie_weights": True, "eps": 0.1}
NORMED = {"num_kv_heads": 2, "qk_norm": True, "rms_norm": True, "gated": True}
SHARED = {"d_head": 2, "num_kv_heads": 1, "qk_norm": True}
TURNED, CAUSAL = {"rope": STRETCHED, "window": 2, "qk_norm": True}, {"causal": True}
PLACED = {"rope": 10.0, "rms_norm": True, "gated": True}
FIRST = {"window": [2, None], "keep_first": 1, "num_kv_heads": 1, **PLACED, "rope": [None, 9.0]}
SMALL = Latent(3, 2, d_query=4)
WORDS = Tokenizer(WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))


class EncoderDecoder(nn.Module):
    """As in notebook 12: one table of words for both sides, one layer each."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 6)
        self.positions = PositionalEncoding(6)
        self.encoder = EncoderLayer(6, 3, 10)
        self.decoder = DecoderLayer(6, 3, 10)
        self.output = nn.Linear(6, 9, bias=False)

    def embed(self, ids: Tensor) -> Tensor:
        return self.positions(self.tokens(ids) * self.tokens.embedding_dim**0.5)

    def forward(self, question: Tensor, reply: Tensor) -> Tensor:
        real = (question != 0)[:, None, :]
        memory = self.encoder(self.embed(question), real)
        return self.output(self.decoder(self.embed(reply), memory, None, real))


@dataclass
class Case:
    """A model with numbers of its own, a batch of two inputs, and how its forward is called."""

    model: nn.Module
    inputs: Mapping[str, np.ndarray]  # ids (2, T), or vectors (2, T, d)
    how: Mapping[str, Any] = field(default_factory=dict)
    programs: dict[int, Program] = field(default_factory=dict)

    def __call__(self, **more: Any) -> np.ndarray:
        """What the modules compute: (2, T, …)."""
        arrays = {key: torch.from_numpy(value) for key, value in self.inputs.items()}
        memory = {key: arrays.pop(key) for key in ("memory",) if key in arrays}
        with torch.no_grad():
            return self.model(*arrays.values(), **memory, **self.how, **more).numpy()

    def program(self, i: int = 0) -> Program:
        """The program for an item of the batch, of the model as it is at the first call."""
        if i not in self.programs:
            given = self.inputs.items() if is_part(self.model) else ()
            vectors = {key: array[i] for key, array in given}
            self.programs[i] = describe(self.model, **vectors, **self.how)
        return self.programs[i]

    def texts(self, i: int = 0) -> dict[str, list[int]]:
        """The ids of one item of the batch."""
        return {key: ids[i].tolist() for key, ids in self.inputs.items() if ids.ndim == 2}


def compared(program: Program) -> str:
    """The operation that a model's forward returns: logits, or vectors."""
    for op in program.operations.values():
        if op.kind == "mean" or op.name.endswith("logits"):
            return op.inputs[0] if op.kind == "mean" else op.name
    return program.output


def scrambled(module: nn.Module, seed: int = 0) -> nn.Module:
    """In float64, each parameter with numbers of its own: gains around 1, all others around 0."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in module.double().named_parameters():
        noise = 0.4 * torch.randn(parameter.shape, generator=generator, dtype=float64)
        gain = parameter.ndim == 1 and name.endswith("weight")
        parameter.data.copy_(noise + gain)
    return module


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Numbers around 0, in float64."""
    return torch.from_numpy(np.random.default_rng([seed, *shape]).normal(size=shape))


def drawn(seed: int, model: nn.Module, *sizes: int, how: Mapping[str, Any] | None = None) -> Case:
    """`sizes`: vocabularies of the texts, or the width of the vectors, twice for a memory."""
    rng = np.random.default_rng(seed)
    if is_part(model):
        drawn = [rng.normal(size=(2, 4 + n, d)) for n, d in enumerate(sizes)]
        names = ("x", "memory")
    else:
        drawn = [rng.integers(1, V, (2, 4 + n)) for n, V in enumerate(sizes)]
        names = ("text", "written")
    return Case(scrambled(model, seed).eval(), dict(zip(names, drawn, strict=False)), how or {})


def attention_only() -> DecoderOnly:
    """Two layers without feed-forward: two heads, then one."""
    model = DecoderOnly(11, 7, 6, 2, None, 2, **PRE)
    model.layers[1] = EncoderLayer(6, 1, None, d_head=4, **PRE)
    return model


CASES: dict[str, Callable[[], Case]] = {
    "gpt": lambda: drawn(1, DecoderOnly(11, 7, 6, 3, 8, 2, **PRE), 11),
    "tied, post-norm": lambda: drawn(2, DecoderOnly(11, 7, 6, 2, 8, 1, tie_weights=True), 11),
    "one head, no bias": lambda: drawn(3, DecoderOnly(600, 7, 4, 1, 8, 1, bias=False), 600),
    "transformer": lambda: drawn(4, Transformer(9, 11, 6, 2, 8, 1, activation="gelu"), 9, 11),
    "pre-norm transformer": lambda: drawn(5, Transformer(9, 9, 6, 2, 8, 1, d_head=2, **PRE), 9, 9),
    "notebook 12": lambda: drawn(6, EncoderDecoder(), 9, 9),
    "sentences": lambda: drawn(7, SentenceEncoder(9, 7, 2, 6, 2, 8, 1, tokenizer=WORDS), 9),
    "attention": lambda: drawn(8, MultiHeadAttention(6, 4, 2, d_head=3), 6),
    "causal attention": lambda: drawn(9, MultiHeadAttention(5, 4, 1), 5, how=CAUSAL),
    "cross-attention": lambda: drawn(10, MultiHeadAttention(6, 4, 2), 6, 6),
    "encoder layer": lambda: drawn(11, EncoderLayer(6, 2, 8, eps=1e-3), 6),
    "decoder layer": lambda: drawn(12, DecoderLayer(6, 2, 8), 6, 6),
    "encoder": lambda: drawn(13, Encoder(6, 2, 8, 2, **PRE), 6, how=CAUSAL),
    "decoder": lambda: drawn(14, Decoder(6, 2, 8, 1, **PRE), 6, 6),
    "llama": lambda: drawn(15, DecoderOnly(11, 7, 8, 4, 6, 2, window=3, **LLAMA), 11),
    "qwen": lambda: drawn(21, DecoderOnly(11, 7, 6, 4, 8, 1, **QWEN), 11),
    "mixtral": lambda: drawn(17, DecoderOnly(11, 7, 4, 2, 5, 1, num_experts=3, **LLAMA), 11),
    "attention only": lambda: drawn(16, attention_only(), 11),
    "sinks": lambda: drawn(24, DecoderOnly(11, 9, 8, 2, 8, 2, sinks=True, **FIRST), 11),
    "latent": lambda: drawn(25, DecoderOnly(11, 9, 6, 2, 8, 2, latent=SMALL, **PLACED), 11),
    "latent, one head": lambda: drawn(
        26, EncoderLayer(6, 1, 8, latent=Latent(3, 2), **PLACED | {"rope": YARN}), 6
    ),
    "shared heads": lambda: drawn(19, MultiHeadAttention(6, 6, 3, **SHARED), 6, 6),
    "one turned head": lambda: drawn(22, MultiHeadAttention(5, 4, 1, **TURNED), 5, how=CAUSAL),
    "many words": lambda: drawn(23, DecoderOnly(4100, 7, 2, 1, 4, 1), 4100),
    "rms decoder": lambda: drawn(20, Decoder(8, 4, 6, 1, activation="gelu", **NORMED), 8, 8),
}


def single_steps() -> dict[str, tuple[Program, dict[str, list[int]], list[dict]]]:
    """Each single step, the ids of what it reads, and something that its knobs or a drag change."""
    rng = np.random.default_rng(0)
    X, Y, counts = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.integers(3, size=(5, 5))
    counts[3] = 0  # nothing followed this word
    words, number = {"text": [0, 1, 2, 3]}, {"row": 1, "column": 2, "value": 0.5}
    gain = {"at": "norm/gain", "row": 0, "values": [2.0, 2.0, 2.0]}
    return {
        "softmax": (softmax_step([1.5, -2, 0, 0.25], 4), words,
                    [{"at": "scaled", "option": "by", "value": 8.0}]),
        "add & norm": (norm_step(X, np.tanh), words, [gain, {"at": "add", "off": True}]),
        "feed-forward": (feed_forward_step(X, Y.T, np.arange(4), Y, np.ones(3)), words,
                         [{"at": "inputs"} | number]),
        "next word": (next_word_step(counts), {"text": [0, 4, 3]}, [{"at": "follows"} | number]),
        "positions": (positions_step(4), {"text": [0] * 7},
                      [{"at": "positions", "option": "d", "value": 8}]),
    }  # fmt: skip
