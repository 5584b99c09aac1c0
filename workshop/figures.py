"""Matplotlib pictures in one style, each with its alt text.

A picture can't know the page's theme: its ground is transparent, and one ink is read on white and
on black. What has a ground of its own, a cell or a box, carries text that stands out from that.
"""

import html
import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from PIL import Image

from workshop.arguments import (
    as_array,
    as_floats,
    as_labels,
    as_names,
    as_switch,
    as_text,
    number,
    said,
)

QUICK = 65_536  # bytes: a picture that stays larger is not compressed with more effort
# 4.3:1 on white and on #111111; no ink has more on both. The colours have at least 3.3:1 and stay
# apart for colour-blind eyes (the first three: Okabe and Ito, 2008); so do dashes and markers.
INK = "#737a84"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#8844EE", "#BB77AA", "#CC2222"]
DARK = "#111111"  # text on light cells and boxes
STYLE = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(
        color=COLOURS, linestyle=["-", "--", "-.", ":", "-", "--"], marker=list("os^Dv*")
    ),
    "lines.markersize": 4,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 11,
}


class Picture:
    """A drawn figure as a PNG with its alt text, and the same words to unfold below it.

    The words stand in the picture's metadata, the place for alt text, and once more below the
    picture, because JupyterLab shows a PNG without any alt text.
    """

    def __init__(self, figure: Figure, alt: str, dpi: int = 144):
        if not as_text("alt", alt).strip():
            raise ValueError("alt is empty, but must say in words what the picture shows")
        self.alt = alt
        self.width = round(figure.get_figwidth() * 96)  # CSS pixels; drawn finer for sharp screens
        self.png = _png(figure, dpi)

    def __repr__(self) -> str:
        return self.alt

    def _ipython_display_(self) -> None:
        from IPython.display import display  # only notebooks need it

        picture = {"image/png": self.png, "text/plain": self.alt}
        display(picture, raw=True, metadata={"image/png": {"alt": self.alt, "width": self.width}})
        words = f"<details><summary>In words</summary>{html.escape(self.alt)}</details>"
        display({"text/html": words, "text/plain": f"In words: {self.alt}"}, raw=True)


def canvas(
    width: float = 6.4, height: float = 3.2, rows: int = 1, columns: int = 1, **subplots: Any
) -> tuple[Figure, Any]:
    """Make an empty figure in the course's style: the figure and its axes (an array if several)."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, **subplots)


def side_by_side(count: int, rows: int, columns: int) -> tuple[Figure, np.ndarray]:
    """Make an empty figure for so many matrices of one shape: the figure and an axes for each."""
    cell = min(0.62, (9.6 / count - 0.6) / columns)  # inches; the page is some ten wide
    width = count * (cell * columns + 0.4) + 0.7
    height = 0.68 * max(cell, 0.4) * min(rows, 28) + 1.2
    figure, axes = canvas(width, height, columns=count, squeeze=False)
    return figure, axes[0]


def heatmap(array: Any, rows: Sequence[str], columns: Sequence[str], title: str = "", *,
            row_name: str = "query", column_name: str = "key",
            alt: str | None = None) -> Picture:  # fmt: skip
    """Draw a matrix as coloured cells with their numbers: (rows, columns)."""
    panels = {title: array}
    return heatmaps(panels, rows, columns, row_name=row_name, column_name=column_name, alt=alt)


def heatmaps(panels: Mapping[str, Any], rows: Sequence[str], columns: Sequence[str], *,
             row_name: str = "query", column_name: str = "key", shared_scale: bool = True,
             alt: str | None = None) -> Picture:  # fmt: skip
    """Draw several matrices of one shape side by side, on one colour scale or each on its own.

    Numbers that are NaN or infinite stay blank. Raises ValueError when labels do not fit.
    """
    rows, columns = as_names("rows", rows), as_names("columns", columns)
    row_name, column_name = as_text("row_name", row_name), as_text("column_name", column_name)
    alt = "" if alt is None else as_text("alt", alt)
    shared_scale = as_switch("shared_scale", shared_scale)
    arrays = _panels(panels, rows, columns)
    together = np.stack(list(arrays.values()))
    figure, axes = side_by_side(len(arrays), len(rows), len(columns))
    for i, (title, array) in enumerate(arrays.items()):
        limits = colour_limits(together if shared_scale else array)
        draw_cells(axes[i], array, limits, title, len(arrays))
        axes[i].set_xticks(*_ticks(columns), rotation=40, ha="right")
        axes[i].set_yticks(*(_ticks(rows) if i == 0 else [[]]))
        axes[i].set_xlabel(column_name)
    axes[0].set_ylabel(row_name)
    return Picture(figure, alt or _describe(arrays, rows, columns, row_name, column_name))


def bars(panels: Mapping[str, Sequence[float]], labels: Sequence[str], *, ylabel: str = "",
         decimals: int = 2, alt: str | None = None) -> Picture:  # fmt: skip
    """Draw one bar chart per panel, side by side, with the number on each bar."""
    figure, axes = canvas(
        max(4.0, len(panels) * (0.42 * len(labels) + 0.6)),
        2.7,
        columns=len(panels),
        squeeze=False,
        sharey=True,
    )
    for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
        drawn = ax.bar(range(len(labels)), values, color=COLOURS[0])
        ax.bar_label(drawn, [number(v, decimals) for v in values], fontsize=9)
        ax.set_xticks(range(len(labels)), plain(labels), rotation=40, ha="right")
        ax.set_title(*plain([title]))
        ax.margins(y=0.15)
    axes[0, 0].set_ylabel(ylabel)
    spoken = "; ".join(
        f"{title}: "
        + ", ".join(f"{n} {number(v, decimals)}" for n, v in zip(labels, values, strict=True))
        for title, values in panels.items()
    )
    return Picture(figure, alt or f"Bar chart. {spoken}.")


def curves(x: Sequence[float], lines: Mapping[str, Sequence[float]], *, xlabel: str, ylabel: str,
           alt: str, title: str = "", xscale: str = "linear",
           yscale: str = "linear") -> Picture:  # fmt: skip
    """Draw lines over a common axis, told apart by colour, dash and marker.

    The names of more than four stand beside the axes, where they cover none.
    """
    beside = len(lines) > 4
    figure, ax = canvas(8.4 if beside else 6.4, 3.2)
    for label, y in zip(plain(lines), lines.values(), strict=True):
        ax.plot(x, y, label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title, xscale=xscale, yscale=yscale)
    if len(lines) > 1:
        outside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if beside else {}
        ax.legend(frameon=False, **outside)
    return Picture(figure, alt)


def draw_cells(
    ax: Axes, array: np.ndarray, limits: tuple[float, float], title: str, panels: int
) -> None:
    """Draw one matrix as coloured cells, with their numbers where so many panels leave room."""
    low, high = limits
    ax.imshow(array, cmap="cividis", vmin=low, vmax=high if high > low else low + 1, aspect="auto")
    ax.set_title(*plain([title]))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if array.shape[1] * panels > 36 or array.size > 128:  # no room for numbers, or too many
        return
    decimals = 0 if np.array_equal(array, array.round()) else 2
    for (i, j), value in np.ndenumerate(array):
        if np.isfinite(value):
            dark = value < low + 0.4885 * (high - low)  # there, white and dark stand out alike
            colour = "white" if dark else DARK
            ax.text(
                j, i, number(value, decimals), ha="center", va="center", fontsize=8, color=colour
            )


def colour_limits(array: np.ndarray) -> tuple[float, float]:
    """Find the ends of the colour scale: the smallest and largest finite number, and 0."""
    finite = array[np.isfinite(array)]
    return float(min(finite.min(), 0)), float(finite.max())


def _panels(panels: Any, rows: Sequence[str], columns: Sequence[str]) -> dict[str, np.ndarray]:
    if not isinstance(panels, Mapping) or not panels:
        raise TypeError(f"panels is {said(panels)}, but must be titles with an array each")
    titles = as_labels("titles of panels", panels.keys())
    arrays = [_matrix(panel, rows, columns) for panel in panels.values()]
    return dict(zip(titles, arrays, strict=True))


def _matrix(array: Any, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    array = as_floats("array", as_array("array", array), blank=True)
    if array.shape != (len(rows), len(columns)):
        raise ValueError(
            f"array has shape {array.shape}, but must be ({len(rows)}, {len(columns)}): "
            "as many as rows and columns have labels"
        )
    if not np.isfinite(array).any():
        raise ValueError(f"array {array.shape} has no finite number: there is nothing to show")
    return array


def _describe(arrays: Mapping[str, np.ndarray], rows: Sequence[str], columns: Sequence[str],
              row_name: str, column_name: str) -> str:  # fmt: skip
    parts = []
    for title, array in arrays.items():
        i, j = np.unravel_index(
            np.nanargmax(np.where(np.isfinite(array), array, np.nan)), array.shape
        )
        peak = f"largest {rows[i]} → {columns[j]} {number(array[i, j], 2)}"
        parts.append(f"{title}: {peak}" if title else peak)
    return (
        f"Heatmap, {len(rows)} {row_name} rows × {len(columns)} {column_name} columns. "
        + "; ".join(parts) + "."
    )  # fmt: skip


def _ticks(labels: Sequence[Any]) -> tuple[range, list[str]]:
    """Where labels stand and what they say: all of them, or about 30; more take seconds to draw."""
    places = range(0, len(labels), max(1, round(len(labels) / 30)))
    return places, plain(labels[i] for i in places)


def plain(labels: Iterable[Any]) -> list[str]:
    """Labels as they are: matplotlib would read `$x$` as a formula."""
    return [str(label).replace("$", r"\$") for label in labels]


def _png(figure: Figure, dpi: int) -> bytes:
    """Draw the figure to PNG bytes, 256 colours, without the date or version of the drawer."""
    _ink(figure)
    image = Image.fromarray(pixels(figure, dpi))
    image = image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    quick = compressed(image)
    # On many cells, more effort gains a tenth for ten times the time.
    return quick if len(quick) > QUICK else compressed(image, optimize=True)


def pixels(figure: Figure, dpi: int) -> np.ndarray:
    """Draw the figure: red, green, blue and alpha of each pixel."""
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)  # savefig would draw everything twice, once for the layout
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")  # drawn as an empty box
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # labels get cut off
        canvas.draw()
    return np.array(canvas.buffer_rgba())


def compressed(image: Image.Image, **how: Any) -> bytes:
    """PNG bytes of an image."""
    data = io.BytesIO()
    image.save(data, format="png", **how)
    return data.getvalue()


def _ink(figure: Figure) -> None:
    """Give the ink to ticks, frames, and text that has neither a colour nor a ground of its own.

    A hair's breadth of stroke makes up for what an ink for both themes lacks in contrast.
    """
    for ax in figure.axes:  # a colour bar, for one, is not made by `canvas`
        ax.tick_params(color=INK)
        ax.spines[:].set_edgecolor(INK)
    for text in figure.findobj(Text):
        if to_hex(text.get_color()) == "#000000" and text.get_bbox_patch() is None:
            text.set_color(INK)
        if to_hex(text.get_color()) == INK:
            text.set_path_effects([withStroke(linewidth=0.35, foreground=INK)])
