"""What each stage is worth: the translator with one of them left out, trained like the whole.

    make ablations      train them all and write the table, ablations.csv beside this file

Each ablation is surgery on a fresh `Transformer`, before it is trained.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from helpers.layers import MultiHeadAttention, ResidualLayer
from helpers.models import Transformer
from helpers.training.batches import examples, vocabularies
from helpers.training.grammar import Pair, corpus, split
from helpers.training.learning import fit
from helpers.training.translating import exact_match, mean_loss, translator

SEEDS = (0, 1, 2)
TABLE = "ablations.csv"


class Result(NamedTuple):
    """One training: share of held-out sentences right in every word, and held-out loss in nats."""

    name: str
    seed: int
    exact_match: float
    loss: float


class Nothing(nn.Module):
    """A sub-layer that has nothing to add."""

    def forward(self, x: Tensor, *_: object, **__: object) -> Tensor:
        """Zeros like x: (B, T, d_model) → (B, T, d_model)."""
        return torch.zeros_like(x)


def parts(model: nn.Module, kind: type[nn.Module]) -> list:
    """All parts of a model that are of one kind, such as MultiHeadAttention."""
    return [part for part in model.modules() if isinstance(part, kind)]


def whole(model: Transformer) -> None:
    """Leave nothing out."""


def no_scaling(model: Transformer) -> None:
    """softmax(Q Kᵀ) V, not divided by √d_head: notebook 04."""
    for attention in parts(model, MultiHeadAttention):
        attention.scale = 1.0


def no_positions(model: Transformer) -> None:
    """Words without their places: notebook 09."""
    model.positions.table.zero_()


def no_causal_mask(model: Transformer) -> None:
    """Each French word sees all words of the input, those after it too: notebook 06."""
    for layer in model.decoder.layers:
        layer.self_attention.register_forward_pre_hook(
            lambda _, args, options: (args, options | {"causal": False}), with_kwargs=True
        )


def one_head(model: Transformer) -> None:
    """One head as wide as all, with the same number of parameters: notebook 08."""
    for attention in parts(model, MultiHeadAttention):
        attention.d_head, attention.num_heads = attention.d_head * attention.num_heads, 1
        attention.scale = attention.d_head**-0.5


def no_residual(model: Transformer) -> None:
    """LayerNorm(sublayer(x)), x is not added: notebook 10."""
    for layer in parts(model, ResidualLayer):
        layer.add_and_norm = lambda x, sub, norm: norm(sub(x))


def no_norm(model: Transformer) -> None:
    """x + sublayer(x), never normalised: notebook 10."""
    for layer in parts(model, ResidualLayer):
        layer.add_and_norm = lambda x, sublayer, norm: x + sublayer(x)


def no_feed_forward(model: Transformer) -> None:
    """Attention alone: notebook 11."""
    for layer in parts(model, ResidualLayer):
        layer.feed_forward = Nothing()


def no_cross_attention(model: Transformer) -> None:
    """A decoder that cannot look at the English sentence: notebook 12."""
    for layer in model.decoder.layers:
        layer.cross_attention = Nothing()


ABLATIONS: dict[str, Callable[[Transformer], None]] = {
    "full model": whole,
    "no scaling": no_scaling,
    "no positions": no_positions,
    "no causal mask": no_causal_mask,
    "one head": one_head,
    "no residual": no_residual,
    "no norm": no_norm,
    "no feed-forward": no_feed_forward,
    "no cross-attention": no_cross_attention,
}


def ablation(
    name: str, seed: int, training: Sequence[Pair], held_out: Sequence[Pair], shown: bool = False
) -> Result:
    """Train the translator without one stage, as `fit` does by default, and measure it.

    Raises ValueError for a name that is not in ABLATIONS.
    """
    if name not in ABLATIONS:
        raise ValueError(f"name is {name!r}, but must be one of {', '.join(ABLATIONS)}")
    vocabs = vocabularies(training)
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        model = translator(*vocabs)
    ABLATIONS[name](model)
    fit(model, examples(training, *vocabs), torch.Generator().manual_seed(seed), shown=shown)
    match = exact_match(model, held_out, *vocabs, cached=False)  # the cache relies on the mask
    return Result(name, seed, match, mean_loss(model, held_out, *vocabs))


def course_corpus() -> tuple[list[Pair], list[Pair]]:
    """The sentences of notebook 13: (training, held-out) pairs."""
    rng = np.random.default_rng(13)
    return split(corpus(13_000, rng), rng)


def read_table() -> list[Result]:
    """The stored results, in the order of ABLATIONS, one for each seed."""
    text = (files("helpers.training") / TABLE).read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [_result(row) for row in rows]


def _result(row: Mapping[str, str]) -> Result:
    return Result(row["name"], int(row["seed"]), float(row["exact_match"]), float(row["loss"]))
