"""Low-rank adapters: a large matrix stays as it is, two thin ones beside it learn. LoRA.

    adapted(model, names=["W_q", "W_v"], rank=4)  # train it: all else is frozen
    plain = merged(model)                         # a copy with linear maps alone, as fast as before

Hu et al. (2021), *LoRA: Low-Rank Adaptation of Large Language Models*.
"""

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from helpers.shapes import check_positive


class LowRank(nn.Module):
    """A linear map, frozen, and beside it one of low rank: W x + b + alpha / rank · (x A) B.

    (…, d_in) → (…, d_out), with A (d_in, rank) drawn and B (rank, d_out) zero, so that at first
    nothing changes. alpha is the rank unless given. Raises TypeError unless `linear` is an
    nn.Linear, ValueError unless rank and alpha are positive. Hu et al. (2021), section 4.1.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float | None = None) -> None:
        super().__init__()
        if not isinstance(linear, nn.Linear):
            raise TypeError(f"linear is a {type(linear).__name__}, but must be a torch.nn.Linear")
        alpha = rank if alpha is None else alpha
        check_positive(rank=rank, alpha=alpha)
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        like = {"device": linear.weight.device, "dtype": linear.weight.dtype}
        drawn = torch.randn(linear.in_features, rank, **like)
        self.A = nn.Parameter(drawn / math.sqrt(linear.in_features))
        self.B = nn.Parameter(torch.zeros(rank, linear.out_features, **like))

    @property
    def weight(self) -> Tensor:
        """The matrix of both maps in one, (d_out, d_in) as nn.Linear keeps it."""
        return self.linear.weight + self.scale * (self.A @ self.B).T

    @property
    def bias(self) -> Tensor | None:
        """The bias of the frozen map, (d_out,)."""
        return self.linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """Map each vector both ways and add: (…, d_in) → (…, d_out)."""
        return self.linear(x) + self.scale * (x @ self.A @ self.B)

    def extra_repr(self) -> str:
        return f"rank={self.A.shape[1]}, scale={self.scale:g}"


def adapted(
    model: nn.Module, names: Sequence[str] = ("W_q", "W_v"), rank: int = 4,
    alpha: float | None = None,
) -> nn.Module:  # fmt: skip
    """Put a LowRank in the place of each linear map of these names; all else is frozen.

    Changes the model itself and returns it. Raises ValueError for a name that no linear map has,
    before anything is changed; LowRank says what else. Hu et al. (2021), section 4.2.
    """
    found = [(home, name) for home in model.modules() for name in names
             if isinstance(getattr(home, name, None), nn.Linear)]  # fmt: skip
    if missing := set(names) - {name for _, name in found}:
        raise ValueError(f"names holds {min(missing)!r}, but the model has no linear map so called")
    adapters = [LowRank(getattr(home, name), rank, alpha) for home, name in found]
    model.requires_grad_(False)
    for (home, name), adapter in zip(found, adapters, strict=True):
        setattr(home, name, adapter)
        adapter.A.requires_grad_(), adapter.B.requires_grad_()
    return model


def merged(model: nn.Module) -> nn.Module:
    """A copy of the model with one linear map for each LowRank: the same outputs, no more work.

    The model itself stays adapted. Hu et al. (2021), section 4.1.
    """
    model = copy.deepcopy(model)
    for home in [*model.modules()]:
        for name, part in [*home.named_children()]:
            if isinstance(part, LowRank):
                part.linear.weight = nn.Parameter(part.weight.detach())
                setattr(home, name, part.linear)
    return model
