"""What each part is worth: the translator built up part by part, or with one part left out.

    make ablations      train them all and write the table, ablations.csv beside this file

Three groups: `BUILT` starts from the last word alone and adds one part after the other; `ABLATIONS`
takes one part from the whole; `RECIPES` keeps the whole model and changes how it is trained. A line
has ten seeds, a recipe three. Surgery is done on a fresh `Transformer`, before it is trained.
"""

import csv
from collections.abc import Callable
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from helpers.layers import DecoderLayer, EncoderLayer, MultiHeadAttention, ResidualLayer
from helpers.models import Transformer
from helpers.training.batches import examples, vocabularies
from helpers.training.grammar import Pair, corpus, split
from helpers.training.learning import Recipe, fit
from helpers.training.translating import exact_match, mean_loss, translator

SEEDS, FEWER = range(10), range(3)
TABLE = "ablations.csv"

Surgery = Callable[[Transformer], None]


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


def each(kind: type[nn.Module], **attributes: Any) -> Surgery:
    """The surgery that gives all parts of one kind these attributes."""

    def surgery(model: Transformer) -> None:
        for part in parts(model, kind):
            for name, value in attributes.items():
                setattr(part, name, value)

    return surgery


def no_causal_mask(model: Transformer) -> None:
    """Each French word sees all words of the input, those after it too."""
    for layer in model.decoder.layers:
        layer.self_attention.register_forward_pre_hook(
            lambda _, args, options: (args, options | {"causal": False}), with_kwargs=True
        )


def one_head(model: Transformer) -> None:
    """One head as wide as all, with the same number of parameters."""
    for attention in parts(model, MultiHeadAttention):
        attention.d_head, attention.num_heads = attention.d_head * attention.num_heads, 1
        attention.scale = attention.d_head**-0.5


ABLATIONS: dict[str, Surgery] = {  # at the end, the notebook that builds what is left out
    "full model": lambda model: None,
    "no scaling": each(MultiHeadAttention, scale=1.0),  # 04
    "no positions": lambda model: model.positions.table.zero_(),  # 09
    "no causal mask": no_causal_mask,  # 06
    "one head": one_head,  # 08
    "no residual": each(ResidualLayer, add_and_norm=lambda x, sub, norm: norm(sub(x))),  # 10
    "no norm": each(ResidualLayer, add_and_norm=lambda x, sub, norm: x + sub(x)),  # 10
    "no feed-forward": each(ResidualLayer, feed_forward=Nothing()),  # 11
    "no encoder attention": each(EncoderLayer, attention=Nothing()),  # 11
    "no decoder attention": each(DecoderLayer, self_attention=Nothing()),  # 12
    "no cross-attention": each(DecoderLayer, cross_attention=Nothing()),  # 12
}


def without(*names: str) -> Surgery:
    """The surgery that leaves out several parts, by their lines in ABLATIONS."""

    def surgery(model: Transformer) -> None:
        for name in names:
            ABLATIONS[name](model)

    return surgery


ADDED = {  # what is added, in this order, and what a model without it is
    "+ cross-attention": "no cross-attention",
    "+ positions": "no positions",
    "+ decoder attention": "no decoder attention",
    "+ encoder attention": "no encoder attention",
    "+ feed-forward": "no feed-forward",
    "+ norm": "no norm",
    "+ four heads": "one head",  # and with that it is the full model
}
BUILT: dict[str, Surgery] = {
    name: without(*list(ADDED.values())[count:])
    for count, name in enumerate(["the last word alone", *ADDED][: len(ADDED)])
}

FAST = Recipe(momentum=0.9, peak=0.9)
FEW = Recipe(pairs=500)
RECIPES: dict[str, Recipe] = {
    "no warm-up": Recipe(warm_up=1),
    "rate stays": Recipe(schedule="flat"),
    "rate falls as a cosine": Recipe(schedule="cosine"),
    "no smoothing": Recipe(label_smoothing=0.0),
    "SGD": FAST._replace(peak=0.3),
    "SGD, three times the rate": FAST,
    "SGD, three times the rate, clipping": FAST._replace(clip=1.0),
    "500 pairs": FEW,
    "500 pairs, weight decay 1": FEW._replace(weight_decay=1.0),
    "500 pairs, dropout": FEW,
}
DROPOUT = {"500 pairs, dropout": 0.1}  # it belongs to the model, not to the recipe
LINES = [*BUILT, *ABLATIONS, *RECIPES]


def trainings() -> list[tuple[str, int]]:
    """All lines of the table, in its order: (name, seed)."""
    return [(name, seed) for name in LINES for seed in (FEWER if name in RECIPES else SEEDS)]


def ablation(name: str, seed: int) -> Result:
    """Train the translator of one line of the table with one seed, and measure it.

    Raises ValueError for a name that the table does not have.
    """
    if name not in LINES:
        raise ValueError(f"name is {name!r}, but must be one of {', '.join(LINES)}")
    training, held_out = course_corpus()
    vocabs = vocabularies(training)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = translator(*vocabs, dropout=DROPOUT.get(name, 0.0))
    (BUILT | ABLATIONS).get(name, without())(model)
    generator = torch.Generator().manual_seed(seed)
    fit(model, examples(training, *vocabs), generator, RECIPES.get(name, Recipe()))
    match = exact_match(model, held_out, *vocabs, cached=False)  # the cache relies on the mask
    return Result(name, seed, match, mean_loss(model, held_out, *vocabs))


def course_corpus() -> tuple[list[Pair], list[Pair]]:
    """The sentences of notebook 13: (training, held-out) pairs."""
    rng = np.random.default_rng(13)
    return split(corpus(13_000, rng), rng)


def read_table() -> list[Result]:
    """The stored results, in the order of BUILT, ABLATIONS and RECIPES, one for each seed."""
    lines = (files("helpers.training") / TABLE).read_text(encoding="utf-8").splitlines()
    rows = csv.reader(lines[2:])  # after how it was made, and the names of the columns
    return [Result(name, int(seed), float(match), float(loss)) for name, seed, match, loss in rows]
