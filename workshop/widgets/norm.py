"""Add & Norm on a residual stream: every row before and after, and one row step by step."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.blocks import layer_norm
from workshop.arguments import SMALLEST
from workshop.figures import Picture, heatmaps, number
from workshop.widgets.base import Widget, check_labels, check_small, program, visible
from workshop.widgets.traits import Labels, Number, Switch, Whole


class NormLab(Widget):
    """Add & Norm to touch: switch either off, turn gain and bias, follow one row step by step.

    `x`, (T, d), is what enters a sub-layer, and `sublayer` what the sub-layer makes of it: an array
    of the same shape, or a function of x; without it there is nothing to add. `gamma` and `beta`
    are one number for all features. `summed` and `out` are what is shown, `selected` the row.

    Raises ValueError for other shapes, more than 4,096 numbers or 128 rows or features, NaN, a
    wrong number of tokens, or an eps that is not positive.
    """

    _esm = program("widgets/norm.js", "NormLab")
    tokens = Labels().tag(sync=True)
    gamma = Number(1).tag(sync=True)
    beta = Number(0).tag(sync=True)
    eps = Number(1e-5, min=SMALLEST).tag(sync=True)
    add = Switch(True).tag(sync=True)
    norm = Switch(True).tag(sync=True)
    selected = Whole().tag(sync=True)

    def __init__(self, x: Any, sublayer: Any = None, *, tokens: Sequence[str] | None = None,
                 gamma: float = 1.0, beta: float = 0.0, eps: float = 1e-5):  # fmt: skip
        given = {"x": x, "sublayer": _applied(sublayer, x) if callable(sublayer) else sublayer}
        arrays = {
            name: check_small(name, value, "(T, d)", "rows and features")
            for name, value in given.items()
            if name == "x" or value is not None
        }
        self._x, self._sublayer = arrays["x"], arrays.get("sublayer")
        if self._sublayer is not None and self._sublayer.shape != self._x.shape:
            raise ValueError(
                f"sublayer has shape {self._sublayer.shape}, "
                f"but must have that of x {self._x.shape}"
            )
        tokens = check_labels("tokens", tokens, len(self._x), f"x {self._x.shape}")
        super().__init__("", arrays, tokens=tokens, gamma=gamma, beta=beta, eps=eps)
        self._describe()

    @property
    def summed(self) -> np.ndarray:
        """What meets Norm, (T, d): x + sublayer(x), or one of the two alone."""
        if self._sublayer is None:
            return self._x
        return self._x + self._sublayer if self.add else self._sublayer

    @property
    def out(self) -> np.ndarray:
        """What comes out, (T, d): the sum, with each row normalised if `norm` is on."""
        if not self.norm:
            return self.summed
        return layer_norm(self.summed, self.gamma, self.beta, self.eps)

    @traitlets.validate("selected")
    def _check_selected(self, proposal: dict) -> int:
        row, count = proposal["value"], len(self._x)
        if row >= count:
            raise ValueError(f"selected is {row}, but x has {count} rows, counted from 0")
        return row

    @traitlets.observe("gamma", "beta", "add", "norm")
    def _describe(self, _: Any = None) -> None:
        deviations = (rows.std(axis=1) for rows in (self.summed, self.out))
        before, after = (f"{number(d.min(), 2)} to {number(d.max(), 2)}" for d in deviations)
        how = ["Add"] * (self.add and self._sublayer is not None) + ["Norm"] * self.norm
        self.words = (
            f"NormLab: {len(self._x)} rows × {self._x.shape[1]} features, "
            f"{' & '.join(how) or 'nothing done'}; deviation of the rows {before} before Norm, "
            f"{after} after"
        )

    def picture(self) -> Picture:
        """Draw x, the sum and the output, each on its own scale."""
        panels = {"x": self._x}
        if self._sublayer is not None:
            panels["x + sublayer(x)" if self.add else "sublayer(x) alone"] = self.summed
        panels["after Norm" if self.norm else "without Norm"] = self.out
        rows = [visible(token) for token in self.tokens]
        columns = [str(j + 1) for j in range(self._x.shape[1])]
        names = {"row_name": "token", "column_name": "feature"}
        return heatmaps(panels, rows, columns, shared_scale=False, alt=self.words, **names)


def _applied(sublayer: Callable[[Any], Any], x: Any) -> Any:
    """What a reader's function makes of x; its failure is a ValueError that says where."""
    try:
        return sublayer(x)
    except Exception as error:
        raise ValueError(f"sublayer failed on x: {type(error).__name__}: {error}") from error
