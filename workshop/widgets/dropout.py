"""Dropout on attention weights: one draw, and the mean of many that comes back to the original."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.attention import dropout
from workshop.arguments import as_whole, number
from workshop.drawings.matrices import maps
from workshop.figures import Picture
from workshop.widgets.base import Widget, check_labels, check_sign, check_small, program
from workshop.widgets.traits import Labels, Number, Switch, Whole

HIGHEST = 0.9  # the largest p of the slider
MOST = 10_000  # draws


class DropoutLab(Widget):
    """Dropout to touch: draw, draw again, and watch the mean of all draws approach the weights.

    `weights` are (Tq, Tk), with one of `tokens` per query and of `key_tokens` (the same unless
    given) per key. The reader sets `p` and `training`, and adds draws. The random numbers follow
    from `seed` alone: `last`, the latest draw, and `mean`, of all `draws`, are what is shown.

    Raises ValueError for other shapes, more than 4,096 weights or 128 tokens, NaN or negative
    weights, a wrong number of tokens, p outside 0 to 0.9, or a seed that 32 bits do not hold.
    """

    _esm = program("widgets/dropout.js", "DropoutLab")
    tokens = Labels().tag(sync=True)
    key_tokens = Labels().tag(sync=True)
    p = Number(0.5, min=0, max=HIGHEST).tag(sync=True)
    seed = Whole(0, max=2**32 - 1).tag(sync=True)
    training = Switch(True).tag(sync=True)
    draws = Whole(1, min=1).tag(sync=True)
    most = Whole(MOST, min=1).tag(sync=True)

    def __init__(self, weights: Any, tokens: Sequence[str] | None = None, *, p: float = 0.5,
                 seed: int = 0, key_tokens: Sequence[str] | None = None):  # fmt: skip
        self._weights = array = check_small("weights", weights, "(Tq, Tk)", "queries and keys")
        check_sign(array, "not negative")
        tokens = check_labels("tokens", tokens, len(array), f"weights {array.shape}")
        keys = tokens if key_tokens is None and array.shape[0] == array.shape[1] else key_tokens
        keys = check_labels("key_tokens", keys, array.shape[1], f"weights {array.shape}")
        most = min(MOST, 2**20 // array.size)  # what a browser draws again in 30 ms
        traits = {"tokens": tokens, "key_tokens": keys, "p": p, "seed": seed, "most": most}
        super().__init__("", {"weights": array}, **traits)
        self._describe()

    @property
    def dropped(self) -> np.ndarray:
        """Which weights the latest draw drops: (Tq, Tk) bool."""
        return (self._latest().random(self._weights.shape) < self.p) & self.training

    @property
    def last(self) -> np.ndarray:
        """The weights after the latest draw: (Tq, Tk)."""
        return dropout(self._weights, self.p, self.training, self._latest())

    @property
    def mean(self) -> np.ndarray:
        """The mean of all draws so far: (Tq, Tk)."""
        every = np.broadcast_to(self._weights, (self.draws, *self._weights.shape))
        return dropout(every, self.p, self.training, Mulberry(self.seed)).mean(axis=0)

    @traitlets.validate("draws")
    def _check_new_draws(self, proposal: dict) -> int:
        return as_whole("draws", proposal["value"], 1, self.most)

    @traitlets.observe("p", "training", "draws")
    def _describe(self, _: Any = None) -> None:
        sums = [number(total, 2) for total in (self.last.sum(1).min(), self.last.sum(1).max())]
        what = f"p {number(self.p, 2)}, draw {self.draws} of seed {self.seed}: "
        what += f"{self.dropped.sum()} of {self._weights.size} weights dropped"
        self.words = (
            f"DropoutLab: {len(self.tokens)} queries × {len(self.key_tokens)} keys, "
            f"{what if self.training else 'eval: nothing dropped'}; row sums {' to '.join(sums)}"
        )

    def _latest(self) -> "Mulberry":
        return Mulberry(self.seed, (self.draws - 1) * self._weights.size)

    def picture(self) -> Picture:
        """Draw the weights, the latest draw (× where one was dropped) and the mean of all."""
        last = np.where(self.dropped, np.nan, self.last)
        mean = f"mean of {self.draws} draw{'s' * (self.draws > 1)}"
        panels = [("weights", self._weights), (f"draw {self.draws}", last), (mean, self.mean)]
        largest = self._weights.max() / (1 - self.p * self.training)
        return maps(panels, "weights", self.tokens, self.key_tokens, largest, self.words)


class Mulberry:
    """mulberry32, as the browser has it: a small generator whose state only counts."""

    def __init__(self, seed: int, drawn: int = 0):
        self.seed, self.drawn = seed, drawn

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        """The next numbers, in [0, 1)."""
        count = int(np.prod(shape))
        k = np.arange(self.drawn + 1, self.drawn + count + 1, dtype=np.uint32)
        self.drawn += count
        a = k * np.uint32(0x6D2B79F5) + np.uint32(self.seed)  # whole numbers of 32 bits wrap
        t = (a ^ (a >> 15)) * (a | 1)
        t ^= t + (t ^ (t >> 7)) * (t | 61)
        return ((t ^ (t >> 14)) / 2**32).reshape(shape)
