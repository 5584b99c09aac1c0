"""What each part is worth: the translator built up part by part, or with one part left out.

    make ablations      train them all and write the table, ablations.csv beside this file

Three groups, each line with three seeds. `BUILT` starts from the last word alone and adds one part
after the other; `ABLATIONS` takes one part from the whole; `RECIPES` keeps the whole model and
changes how it is trained. Surgery is done on a fresh `Transformer`, before it is trained.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from helpers.figures import COLOURS, INK, Picture, canvas
from helpers.given import number
from helpers.layers import MultiHeadAttention, ResidualLayer, in_mode, unwatched
from helpers.models import Transformer
from helpers.training.batches import Examples, examples, vocabularies
from helpers.training.grammar import Pair, corpus, split
from helpers.training.learning import learning_rate, translation_loss
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


def no_encoder_attention(model: Transformer) -> None:
    """Each English word for itself, not read by the others: notebook 11."""
    for layer in model.encoder.layers:
        layer.attention = Nothing()


def no_decoder_attention(model: Transformer) -> None:
    """A decoder that has read its last word only, none before it: notebook 12."""
    for layer in model.decoder.layers:
        layer.self_attention = Nothing()


def no_cross_attention(model: Transformer) -> None:
    """A decoder that cannot look at the English sentence: notebook 12."""
    for layer in model.decoder.layers:
        layer.cross_attention = Nothing()


Surgery = Callable[[Transformer], None]

ADDED: dict[str, Surgery] = {  # what is added, in this order, and how a model without it is made
    "+ cross-attention": no_cross_attention,
    "+ positions": no_positions,
    "+ decoder attention": no_decoder_attention,
    "+ encoder attention": no_encoder_attention,
    "+ feed-forward": no_feed_forward,
    "+ norm": no_norm,
    "+ four heads": one_head,  # and that is the full model
}


def built_up_to(count: int) -> Surgery:
    """The model that has the first `count` of the ADDED parts."""

    def surgery(model: Transformer) -> None:
        for leave_out in list(ADDED.values())[count:]:
            leave_out(model)

    return surgery


BUILT: dict[str, Surgery] = {
    name: built_up_to(count) for count, name in enumerate(["the last word alone", *ADDED])
}
del BUILT["+ four heads"]  # that line of the table is the full model's

ABLATIONS: dict[str, Surgery] = {
    "full model": whole,
    "no scaling": no_scaling,
    "no positions": no_positions,
    "no causal mask": no_causal_mask,
    "one head": one_head,
    "no residual": no_residual,
    "no norm": no_norm,
    "no feed-forward": no_feed_forward,
    "no encoder attention": no_encoder_attention,
    "no decoder attention": no_decoder_attention,
    "no cross-attention": no_cross_attention,
}


class Recipe(NamedTuple):
    """How a translator is trained; what nothing is said of is as `fit` does it by default."""

    steps: int = 400
    peak: float = 3e-3
    warm_up: int = 100
    label_smoothing: float = 0.1
    schedule: str = "line"  # how the rate falls: in a line, as a cosine, or not at all, "flat"
    clip: float = math.inf  # the longest gradient that is let through
    weight_decay: float = 0.0  # of AdamW
    momentum: float | None = None  # that of SGD in place of AdamW
    dropout: float = 0.0
    pairs: int | None = None  # how many to learn from; None: all

    def rate(self, step: int) -> float:
        """The learning rate of one step; steps count from 1."""
        if self.schedule == "line" or step <= self.warm_up:
            return learning_rate(step, self.steps, self.peak, self.warm_up)
        gone = (step - self.warm_up) / (self.steps + 1 - self.warm_up)  # from 0 to almost 1
        return self.peak * (1 if self.schedule == "flat" else (1 + math.cos(math.pi * gone)) / 2)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Adam with the paper's betas and a weight decay of its own, or SGD."""
        if self.momentum is not None:
            return torch.optim.SGD(model.parameters(), lr=self.peak, momentum=self.momentum)
        betas, decay = (0.9, 0.98), self.weight_decay
        return torch.optim.AdamW(model.parameters(), betas=betas, weight_decay=decay)


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
    "500 pairs, dropout": FEW._replace(dropout=0.1),
}


def learn(model: Transformer, data: Examples, seed: int, recipe: Recipe) -> list[float]:
    """Train a model by a recipe; returns the loss of each step.

    By `Recipe()` it does what `fit` does by default.
    """
    generator = torch.Generator().manual_seed(seed)
    order, losses = torch.empty(0, dtype=torch.int64), []
    optimizer = recipe.optimizer(model)
    dropping = int(torch.randint(2**31, (), generator=generator))  # as fit draws it
    with torch.random.fork_rng([]), in_mode(model, training=True), unwatched(model):
        torch.manual_seed(dropping)
        for step in range(1, recipe.steps + 1):
            if len(order) < 64:
                order = torch.randperm(len(data.source), generator=generator)
            rows, order = order[:64], order[64:]
            optimizer.param_groups[0]["lr"] = recipe.rate(step)
            optimizer.zero_grad()
            loss = translation_loss(model, data.pick(rows, model.pad_id), recipe.label_smoothing)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            losses.append(loss.item())
    return losses


def ablation(
    name: str, seed: int, training: Sequence[Pair], held_out: Sequence[Pair], **changed: Any
) -> Result:
    """Train the translator of one line of the table and measure it; `changed` is of its Recipe.

    Raises ValueError for a name that the table does not have.
    """
    lines = [*BUILT, *ABLATIONS, *RECIPES]
    if name not in lines:
        raise ValueError(f"name is {name!r}, but must be one of {', '.join(lines)}")
    recipe = RECIPES.get(name, Recipe())._replace(**changed)
    vocabs = vocabularies(training)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = translator(*vocabs, dropout=recipe.dropout)
    (BUILT | ABLATIONS).get(name, whole)(model)
    learn(model, examples(training[: recipe.pairs], *vocabs), seed, recipe)
    match = exact_match(model, held_out, *vocabs, cached=False)  # the cache relies on the mask
    return Result(name, seed, match, mean_loss(model, held_out, *vocabs))


def course_corpus() -> tuple[list[Pair], list[Pair]]:
    """The sentences of notebook 13: (training, held-out) pairs."""
    rng = np.random.default_rng(13)
    return split(corpus(13_000, rng), rng)


def read_table() -> list[Result]:
    """The stored results, in the order of BUILT, ABLATIONS and RECIPES, one for each seed."""
    text = (files("helpers.training") / TABLE).read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [_result(row) for row in rows]


def _result(row: Mapping[str, str]) -> Result:
    return Result(row["name"], int(row["seed"]), float(row["exact_match"]), float(row["loss"]))


def spread(names: Mapping[str, str] | Sequence[str]) -> Picture:
    """Draw lines of the table: their exact match and loss, the mean written beside the seeds' dots.

    `names` are names of lines, or map them to what shall stand in their place.
    """
    labels = names if isinstance(names, Mapping) else {name: name for name in names}
    results, alt = read_table(), []
    figure, axes = canvas(9.4, 0.34 * len(labels) + 0.9, columns=2, sharey=True)
    for ax, what, scale, decimals in zip(
        axes, ("exact_match", "loss"), (100, 1), (1, 4), strict=True
    ):
        for y, (name, label) in enumerate(labels.items()):
            dots = [scale * getattr(r, what) for r in results if r.name == name]
            mean = number(np.mean(dots), decimals)
            if scale == 100:  # a loss has no bar: on its axis nothing stands at 0
                ax.barh(y, np.mean(dots), color=COLOURS[0], alpha=0.5)
            ax.plot(dots, [y] * len(dots), "o", color=INK, linestyle="")
            ax.text(1.02, y, mean, transform=ax.get_yaxis_transform(), va="center", color=INK)
            seeds = ", ".join(number(dot, decimals) for dot in dots)
            alt.append(f"{label}, {what.replace('_', ' ')}: {seeds}")
        ax.set_yticks(range(len(labels)), labels.values())
    axes[0].set(xlabel="exact match, %", xlim=(-2, 103), ylim=(len(labels) - 0.4, -0.6))
    axes[1].set(xlabel="loss per token", xscale="log", xticks=[0.01, 0.1, 1], xlim=(0.003, 5))
    axes[1].set_xticklabels(["0.01", "0.1", "1"])
    axes[1].grid(axis="x", alpha=0.3)
    return Picture(figure, f"Chart with a dot for each training. {'; '.join(alt)}.")
