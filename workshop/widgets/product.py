"""The matrix product by hand: a row meets a column, their products add up."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from workshop.arguments import as_labels, as_switch
from workshop.colours import things_of
from workshop.drawings.sheet import Drawing
from workshop.figures import canvas, number
from workshop.widgets.base import Widget, check_array, check_labels, program, visible
from workshop.widgets.cells import draw_tints
from workshop.widgets.traits import Labels, Pair

SIDE = 64  # rows or columns: more cells would be too small to point at


class MatrixProduct(Widget):
    """A @ B to touch: point at a cell of the result, and its row and column add up in figures.

    `A` is (n, m) and `B` (m, p), or (p, m) with `transposed`, as keys come. `rows` labels the n
    rows, `columns` the p columns, `inner` the m numbers that meet. `names` are those of A, of B
    and, if it has one, of the result: Q, K, W_v, scores and such have their colours. `selected` is
    the cell that the reader keeps.

    Raises ValueError for shapes that do not fit, more than 64 rows or columns, NaN or infinities, a
    wrong number of labels or names, or a cell that is not there.
    """

    _esm = program("widgets/product.js", "MatrixProduct")
    rows = Labels().tag(sync=True)
    columns = Labels().tag(sync=True)
    inner = Labels().tag(sync=True)
    names = Labels().tag(sync=True)
    things = Labels().tag(sync=True)
    selected = Pair().tag(sync=True)

    def __init__(self, A: Any, B: Any, *, rows: Sequence[str] | None = None,
                 columns: Sequence[str] | None = None, inner: Sequence[str] | None = None,
                 names: Sequence[str] = ("A", "B"), transposed: bool = False,
                 selected: tuple[int, int] = (0, 0)):  # fmt: skip
        transposed = as_switch("transposed", transposed)
        names = _names(names, transposed)
        self._A, self._B = _fitting(A, B, transposed)
        of = f"{names[0]} {self._A.shape} @ {names[1]} {self._B.shape}"
        labels = {
            "rows": check_labels("rows", rows, len(self._A), of),
            "columns": check_labels("columns", columns, self._B.shape[1], of),
            "inner": check_labels("inner", inner, len(self._B), of),
        }
        words = _words(of, names[2], self.product, labels)
        arrays = {"A": self._A, "B": self._B}
        traits = {"names": names, "things": things_of(names), "selected": selected}
        super().__init__(words, arrays, **traits, **labels)

    @property
    def product(self) -> np.ndarray:
        """The result, computed in NumPy: (n, p)."""
        return self._A @ self._B

    @traitlets.validate("selected")
    def _inside(self, proposal: Any) -> tuple[int, int]:
        i, j = proposal["value"]
        n, p = self.product.shape
        if not (0 <= i < n and 0 <= j < p):
            raise ValueError(f"selected is ({i}, {j}), but the product has shape ({n}, {p})")
        return i, j

    def picture(self) -> Drawing:
        """Draw A left of the product and B above it, with numbers where there is room."""
        (n, m), p = self._A.shape, self._B.shape[1]
        ratios = {"width_ratios": [m + 1, p + 1], "height_ratios": [m + 1, n + 1]}
        size = min(9.6, 0.6 * (m + p) + 2.4), min(9.0, 0.34 * (m + n) + 2.2)
        figure, axes = canvas(*size, rows=2, columns=2, gridspec_kw=ratios)
        axes[0, 0].axis("off")
        for k, ax, array, rows, columns in (
            (0, axes[1, 0], self._A, self.rows, self.inner),
            (1, axes[0, 1], self._B, self.inner, self.columns),
            (2, axes[1, 1], self.product, self.rows, self.columns),
        ):
            look = {"panels": 2 * (m + p) / len(columns), "largest": np.abs(array).max()}
            draw_tints(ax, array, self.things[k], self.names[k], rows, columns, **look)
        return Drawing(figure, self.words)


def _names(names: Sequence[str], transposed: bool) -> list[str]:
    given = as_labels("names", names)
    if len(given) not in (2, 3):
        raise ValueError(f"names is {given}, but must be those of A and B, and maybe the result")
    first, second, *result = map(visible, given)
    second += "ᵀ" * transposed
    return [first, second, *(result or [f"{first} @ {second}"])]


def _fitting(A: Any, B: Any, transposed: bool) -> tuple[np.ndarray, np.ndarray]:
    """A and B as they are multiplied."""
    A, B = _matrix("A", A), _matrix("B", B)
    turned = B.T if transposed else B
    if A.shape[1] != len(turned):
        other = "leave out" if transposed else "add"
        raise ValueError(
            f"A has shape {A.shape} and B {B.shape}{', transposed' * transposed}, but A must have "
            f"as many columns as {'B.T' if transposed else 'B'} has rows"
            + f": {other} transposed=True?"
            * (A.shape[1] == turned.shape[1])
        )
    return A, turned


def _matrix(name: str, value: Any) -> np.ndarray:
    array = check_array(name, value)
    if array.ndim != 2 or max(array.shape) > SIDE:
        raise ValueError(
            f"{name} has shape {array.shape}, but must be a matrix (two axes) of at most {SIDE} "
            f"rows and columns; pass a part of it, such as {name}[:{SIDE}, :{SIDE}]"
        )
    return array


def _words(of: str, result: str, product: np.ndarray, labels: dict[str, list[str]]) -> str:
    i, j = np.unravel_index(product.round(6).argmax(), product.shape)
    row, column = visible(labels["rows"][i]), visible(labels["columns"][j])
    name = "" if "@" in result else f"{result} "
    return (
        f"MatrixProduct: {of} = {name}{product.shape}; largest: "
        f'row "{row}", column "{column}" {number(product[i, j])}'
    )
