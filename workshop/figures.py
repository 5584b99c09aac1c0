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
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from PIL import Image

from workshop.arguments import as_text, number

QUICK = 65_536  # bytes: a picture that stays larger is not compressed with more effort
# 4.3:1 on white and on #111111; no ink has more on both. The colours have at least 3.3:1 and stay
# apart for colour-blind eyes (the first three: Okabe and Ito, 2008); so do dashes and markers.
INK = "#737a84"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#8844EE", "#BB77AA", "#CC2222"]
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


def bars(panels: Mapping[str, Sequence[float]], labels: Sequence[str], *, ylabel: str = "",
         decimals: int = 2, alt: str | None = None) -> Picture:  # fmt: skip
    """Draw one bar chart per panel, side by side, with the number on each bar."""
    width = max(4.0, len(panels) * (0.42 * len(labels) + 0.6))
    figure, axes = canvas(width, 2.7, columns=len(panels), squeeze=False, sharey=True)
    axes[0, 0].set_ylabel(ylabel)
    spoken = []
    for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
        drawn = ax.bar(range(len(labels)), values, color=COLOURS[0])
        ax.bar_label(drawn, [number(v, decimals) for v in values], fontsize=9)
        ax.set_xticks(range(len(labels)), plain(labels), rotation=40, ha="right")
        ax.set_title(*plain([title]))
        ax.margins(y=0.15)
        named = zip(labels, values, strict=True)
        spoken.append(f"{title}: {', '.join(f'{n} {number(v, decimals)}' for n, v in named)}")
    return Picture(figure, alt or f"Bar chart. {'; '.join(spoken)}.")


def curves(x: Sequence[float], lines: Mapping[str, Sequence[float]], *, xlabel: str, ylabel: str,
           alt: str, xscale: str = "linear", yscale: str = "linear") -> Picture:  # fmt: skip
    """Draw lines over a common axis, told apart by colour, dash and marker.

    The names of more than four stand beside the axes, where they cover none.
    """
    beside = len(lines) > 4
    figure, ax = canvas(8.4 if beside else 6.4, 3.2)
    for label, y in zip(plain(lines), lines.values(), strict=True):
        ax.plot(x, y, label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
    if len(lines) > 1:
        outside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if beside else {}
        ax.legend(frameon=False, **outside)
    return Picture(figure, alt)


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
