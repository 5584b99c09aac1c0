"""Rows of animals that start again, and the small model that learns to go on: notebook 16."""

import csv
from importlib.resources import files

import numpy as np
import torch
from torch import Tensor, nn

from helpers.layers import EncoderLayer
from helpers.models import DecoderOnly

ANIMALS = """ant ape asp bat bee boa cat cod cow cub doe dog eel elk emu ewe
             fly fox gnu hen hog jay kid koi owl pig pug pup ram rat ray yak""".split()
TABLE = "animals.csv"


def texts(rng: np.random.Generator, count: int, shortest: int = 8,
          longest: int = 24, T: int = 48) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Animals in random order, none twice, that start again: ids (count, T); known (count, T - 1).

    Each row has a length of its own for what is repeated; known says which next tokens can be told.
    """
    blocks = rng.permuted(np.tile(np.arange(len(ANIMALS)), (count, 1)), axis=1)
    lengths = rng.integers(shortest, longest + 1, count)[:, None]
    ids = np.take_along_axis(blocks, np.arange(T) % lengths, axis=1)
    return torch.from_numpy(ids), torch.from_numpy(np.arange(1, T) >= lengths)


def two_layers(seed: int, d_ff: int | None = None, spread: float = 1.0) -> DecoderOnly:
    """Three heads of 24 numbers, then one: no feed-forward but with d_ff; tables N(0, spread²)."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        sizes = {"d_ff": d_ff, "d_head": 24, "pre_norm": True}
        model = DecoderOnly(len(ANIMALS), 48, 48, num_heads=3, num_layers=2, **sizes)
        model.layers[1] = EncoderLayer(48, num_heads=1, **sizes)
        for table in (model.tokens, model.positions):
            nn.init.normal_(table.weight, std=spread)
    return model.double()


def loss_of(model: nn.Module, ids: Tensor, known: Tensor) -> Tensor:
    """Mean cross-entropy of the tokens that can be known."""
    logits = model(ids)[:, :-1].transpose(1, 2)  # (B, V, T - 1)
    return nn.functional.cross_entropy(logits, ids[:, 1:], reduction="none")[known].mean()


def learn(model: nn.Module, seed: int, steps: int = 400, **lengths: int) -> list[float]:
    """Train on 32 new rows at each step; every tenth step's loss. The rate rises, then falls."""
    rng, losses = np.random.default_rng(seed), []
    adam = torch.optim.AdamW(model.parameters(), lr=0.012)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 0.012, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        loss = loss_of(model, *texts(rng, 32, **lengths))
        adam.zero_grad()
        loss.backward()
        adam.step()
        schedule.step()
        if step % 10 == 0:
            losses.append(loss.item())
    return losses


def seeds(way: str = "as in the story") -> dict[str, np.ndarray]:
    """What `make seeds` has measured of ten trained models: a row of ten for each column.

    The columns are explained in tools/seeds.py. Raises ValueError for a way that it does not have.
    """
    names, *rows = csv.reader((files("helpers") / TABLE).read_text("utf-8").splitlines()[1:])
    ways = {row[0] for row in rows}
    if way not in ways:
        raise ValueError(f"way is {way!r}, but must be one of {', '.join(sorted(ways))}")
    found = np.array([row[1:] for row in rows if row[0] == way], dtype=float)  # (10, columns)
    return dict(zip(names[1:], found.T, strict=True))
