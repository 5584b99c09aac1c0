"""Rotary positions: queries and keys are turned by their places, as clock hands are."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from helpers.shapes import check_positive, need


@dataclass(frozen=True)
class Rope:
    """How fast pairs of features turn, also in texts `factor` times longer than was learned.

    Pair i turns by base^(−2i/d) radians a place. Without `trained` all are `factor` times slower:
    places are interpolated (Chen et al., 2023). With it, a pair that turns `most` times or more in
    `trained` places keeps its speed, one of `least` turns or fewer becomes slower by the
    whole factor, and between them a speed is a mix of both: even by turns (Llama 3; Grattafiori et
    al., 2024), or `by_pairs` (YaRN; Peng et al., 2023, whose vectors also grow, by `louder`).
    Raises ValueError for a number out of its range.
    """

    base: float
    factor: float = 1.0
    trained: int | None = None
    least: float = 1.0
    most: float = 4.0
    by_pairs: bool = False
    louder: float = 1.0

    def __post_init__(self) -> None:
        check_positive(base=self.base, louder=self.louder)
        need(self.factor >= 1, "factor", self.factor, "at least 1")
        need(self.trained is None or self.trained >= 1, "trained", self.trained, "at least 1")
        need(0 < self.least < self.most, "least", self.least, f"between 0 and most = {self.most}")
        need(not self.by_pairs or self.base > 1, "base", self.base, "more than 1: pairs differ")

    def speeds(self, d: int) -> Tensor:
        """By how much each pair of d features turns from one place to the next: radians, (d/2,)."""
        speed = self.base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
        return speed * self.slower(speed)

    def slower(self, speed: Tensor) -> Tensor:
        """What is left of each speed (d/2,): 1 where a pair keeps it, 1/factor at the least."""
        kept = 0.0
        if self.trained:
            kept = self._by_pairs(2 * len(speed)) if self.by_pairs else self._by_turns(speed)
        return kept + (1 - kept) / self.factor * torch.ones_like(speed)

    def _by_turns(self, speed: Tensor) -> Tensor:
        turns = self.trained * speed / (2 * math.pi)
        return ((turns - self.least) / (self.most - self.least)).clamp(0, 1)

    def _by_pairs(self, d: int) -> Tensor:
        ends = [d / 2 * math.log(self.trained / (turns * 2 * math.pi)) / math.log(self.base)
                for turns in (self.most, self.least)]  # fmt: skip
        first, last = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), d - 1)
        step = last - first or 0.001  # as the makers' code has it
        return 1 - ((torch.arange(d // 2, dtype=torch.float64) - first) / step).clamp(0, 1)


def rotate(x: Tensor, base: float | Rope, past: int = 0) -> Tensor:
    """Turn each pair of features (2i, 2i + 1) by its place times its speed: (…, T, d) → (…, T, d).

    The speeds are base^(−2i/d), or those of a Rope. The first of the T vectors has the place
    `past`. Of two vectors turned so, the dot product depends on how far apart they stand, not on
    where. Su et al. (2021), section 3.4.2.
    """
    rope = base if isinstance(base, Rope) else Rope(base)
    cos, sin = _turns(past, *x.shape[-2:], rope, x.dtype, x.device)  # (T, d) each
    partner = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)  # of a, b, a, b …: b, a, b, a …
    return x * cos + partner * sin


@lru_cache(maxsize=4)  # all layers ask for the same
@torch.inference_mode(False)
def _turns(past: int, T: int, d: int, rope: Rope, dtype: torch.dtype,
           device: torch.device) -> tuple[Tensor, Tensor]:  # fmt: skip
    """For T places: cos, cos, …, and -sin, sin, … of each pair, (T, d) both."""
    angle = torch.arange(past, past + T, dtype=torch.float64)[:, None] * rope.speeds(d)  # (T, d/2)
    cos, sin = rope.louder * angle.cos(), rope.louder * angle.sin()
    pairs = torch.stack([cos, cos], dim=-1), torch.stack([-sin, sin], dim=-1)
    return tuple(pair.flatten(-2).to(device, dtype) for pair in pairs)
