"""Printed tables and pictures: what a reader sees and what a screen reader says."""

import base64
import io

import numpy as np
import pytest
from lessons import EVERY, outputs
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image

from workshop import figures
from workshop.training_charts import loss_curve
from workshop.widgets import AttentionHeatmap, MatrixProduct, PositionExplorer, SoftmaxLab, predict

pytestmark = pytest.mark.slow


def test_pictures_carry_their_words(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, **options: shown.append((data, options))
    )
    words = ["a", "b", "<c>"]
    picture = figures.heatmap(np.arange(9.0).reshape(3, 3), words, words, "scores")
    picture._ipython_display_()
    (image, options), (text, _) = shown
    assert image["image/png"].startswith(b"\x89PNG")
    assert image["text/plain"] == options["metadata"]["image/png"]["alt"] == repr(picture)
    assert "scores: largest <c> → <c> 8.00" in picture.alt
    assert "largest &lt;c&gt; → &lt;c&gt; 8.00" in text["text/html"]
    assert "<c>" not in text["text/html"]


def test_tokens_are_no_formulas_and_need_no_glyph(recwarn):
    words = ["$x$", r"$\frac$", r"\$5", "a\tb", "👩\u200d👧"]
    for title in words:
        figures.heatmap(np.eye(5), words, words, title)
        figures.bars({title: range(5)}, words)
        figures.curves([1, 2], {title: [1, 2], "y": [2, 1]}, xlabel="x", ylabel="y", alt="two")
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize("count, beside", [(1, None), (4, False), (5, True), (6, True)])
def test_names_of_many_lines_stand_beside_the_axes(count, beside, monkeypatch):
    """Where few lines are, the emptiest corner has room for them."""
    drawn, draw = [], figures._png
    monkeypatch.setattr(
        figures, "_png", lambda figure, dpi: drawn.append(figure) or draw(figure, dpi)
    )
    lines = {f"line {i}": [i, 9 - i, i] for i in range(count)}
    figures.curves([0, 1, 2], lines, xlabel="x", ylabel="y", alt="lines that cross")
    (ax,) = drawn[0].axes
    legend, page = ax.get_legend(), drawn[0].bbox
    if legend:
        box = legend.get_window_extent()
        assert (box.x0 >= ax.bbox.x1) == beside
        assert box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1
    assert bool(legend) == (beside is not None)


GROUNDS = {"light": "#ffffff", "dark": "#111111"}  # JupyterLab's; those of others lie between


def linear(colour):
    """Linear red, green and blue of a colour."""
    x = np.array(to_rgb(colour))
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """How much two colours stand out from each other, as WCAG has it: 1 to 21."""
    low, high = sorted(np.dot([0.2126, 0.7152, 0.0722], linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def pictures():
    """What the course draws: name → picture."""
    words, rng = ["your", "journey", "starts"], np.random.default_rng(0)
    square, X = rng.uniform(size=(3, 3)), rng.normal(size=(3, 4))
    lines = {f"line {i}": [i, i + 1] for i in range(6)}
    return {
        "heatmap": figures.heatmap(square, words, words, "weights"),
        "bars": figures.bars({"p": [0.5, 0.2, 0.3]}, words, ylabel="p"),
        "curves": figures.curves([0, 1], lines, xlabel="x", ylabel="y", alt="six", title="six"),
        "loss": loss_curve([3.0, 2.0, 1.0], 3),
        "positions": PositionExplorer(8, 20).picture(),
        "weights": AttentionHeatmap(square / square.sum(1, keepdims=True), words).picture(),
        "scores": AttentionHeatmap(scores=X[:, :3], tokens=words, causal=True).picture(),
        "product": MatrixProduct(X, X, transposed=True).picture(),
        "softmax": SoftmaxLab([1.0, 2.0], ["a", "b"]).picture(),
        "question": predict("Why?", ["a", "b", "c"], answer="a").picture(),
    }


@pytest.fixture(scope="module")
def drawn():
    """Every picture with the figure that it was drawn from: name → (picture, figure)."""
    kept, draw = {}, figures._png

    def keep(figure, dpi):
        png = draw(figure, dpi)
        kept[png] = figure
        return png

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "_png", keep)
        made = pictures().items()
        return {name: (one, getattr(one, "figure", None) or kept[one.png]) for name, one in made}


def under(text, figure):
    """What lies under a text: its own box, a cell's or a box's colour, or nothing (None)."""
    x, y = text.get_window_extent().get_points().mean(axis=0)
    for ax in figure.axes:
        for box in ax.patches:
            if box.contains_point((x, y)) and box.get_facecolor()[3]:
                return box.get_facecolor()[:3]
        for image in ax.images:
            i, j = np.round(ax.transData.inverted().transform((x, y))[::-1]).astype(int)
            rows, columns = image.get_array().shape
            if 0 <= i < rows and 0 <= j < columns:
                return image.to_rgba(image.get_array())[i, j, :3]
    return None


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_every_text_is_read_on_light_and_on_dark_pages(drawn, ground):
    """4.3:1 from what lies under it; a single ink can't have more on both."""
    for name, (_, figure) in drawn.items():
        for text in figure.findobj(Text):
            if text.get_text() and text.get_visible():
                below = under(text, figure)
                ratio = contrast(text.get_color(), ground if below is None else below)
                assert ratio >= 4.3, (name, text.get_text(), ratio)


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_lines_bars_and_frames_stand_out_on_light_and_on_dark_pages(drawn, ground):
    """3:1 and more: WCAG's bar for what is not text."""
    for colour in [figures.INK, *figures.COLOURS]:
        assert contrast(colour, ground) >= 3.3, colour
    for name, (_, figure) in drawn.items():
        for ax in filter(lambda ax: ax.axison, figure.axes):
            lines = [*ax.lines, *ax.xaxis.get_ticklines(), *ax.yaxis.get_ticklines()]
            colours = [line.get_color() for line in lines]
            colours += [spine.get_edgecolor() for spine in ax.spines.values()]
            assert all(contrast(colour, ground) >= 3.3 for colour in colours), name


def test_pictures_have_no_ground_and_are_small(drawn, root):
    saved = {name: picture.png for name, (picture, _) in drawn.items()}
    saved |= {path.name: path.read_bytes() for path in (root / ".github").glob("*.png")}
    saved |= {f"{path.name} {cell}": base64.b64decode(output["data"]["image/png"])
              for path in EVERY for cell, output in outputs(path)
              if "image/png" in output.get("data", {})}  # fmt: skip
    for name, png in saved.items():
        image = Image.open(io.BytesIO(png)).convert("RGBA")
        corners = [image.getpixel((x, y))[3] for x in (0, image.width - 1) for y in (0, 1)]
        assert min(corners) == 0 and len(png) <= 60_000, name
