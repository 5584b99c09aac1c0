"""Rotary positions: queries and keys are turned by their places, as clock hands are."""

from functools import lru_cache

import torch
from torch import Tensor


def rotate(x: Tensor, base: float, past: int = 0) -> Tensor:
    """Turn each pair of features (2i, 2i + 1) by place · base^(−2i/d): (…, T, d) → (…, T, d).

    The first of the T vectors has the place `past`. Of two vectors turned so, the dot product
    depends on how far apart they stand, not on where. Su et al. (2021), section 3.4.2.
    """
    cos, sin = _turns(past, *x.shape[-2:], base, x.dtype, x.device)  # (T, d) each
    partner = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)  # of a, b, a, b …: b, a, b, a …
    return x * cos + partner * sin


@lru_cache(maxsize=4)  # all layers ask for the same
@torch.inference_mode(False)
def _turns(past: int, T: int, d: int, base: float, dtype: torch.dtype,
           device: torch.device) -> tuple[Tensor, Tensor]:  # fmt: skip
    """For T places: cos, cos, …, and -sin, sin, … of each pair, (T, d) both."""
    speed = base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)  # (d/2,)
    angle = torch.arange(past, past + T, dtype=torch.float64)[:, None] * speed  # (T, d/2)
    cos, sin = angle.cos(), angle.sin()
    pairs = torch.stack([cos, cos], dim=-1), torch.stack([-sin, sin], dim=-1)
    return tuple(pair.flatten(-2).to(device, dtype) for pair in pairs)
