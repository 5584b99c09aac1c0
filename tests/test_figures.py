"""Charts: what a reader sees and what a screen reader says."""

import base64
import io

import numpy as np
import pytest
from lessons import EVERY, outputs
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image

from workshop import figures
from workshop.drawings import matrix
from workshop.training_charts import loss_curve
from workshop.widgets import predict

pytestmark = pytest.mark.slow

GROUNDS = {"light": "#ffffff", "dark": "#111111"}  # JupyterLab's; those of others lie between


def contrast(one, other):
    """How much two colours stand out from each other, as WCAG has it: 1 to 21."""
    x = np.array([to_rgb(one), to_rgb(other)])
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (high + 0.05) / (low + 0.05)


@pytest.fixture
def drawn(monkeypatch):
    """What the course draws, name → picture, each with the figure that it was drawn from."""
    pixels, figure = figures.pixels, []
    monkeypatch.setattr(figures, "pixels", lambda *one: figure.append(one[0]) or pixels(*one))
    lines = {f"line {i}": [i, i + 1] for i in range(6)}
    made = {
        "bars": figures.bars({"p": [0.5, 0.2, 0.3]}, ["your", "<c>", "starts"], ylabel="p"),
        "curves": figures.curves([0, 1], lines, xlabel="x", ylabel="y", alt="six"),
        "loss": loss_curve([3.0, 2.0, 1.0], 3),
        "question": predict("Why?", ["a", "b", "c"], answer="a").picture(),
    }
    return {name: (made[name], of) for name, of in zip(made, figure, strict=True)}


def test_pictures_carry_their_words(drawn, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **how: shown.append((data, how)))
    for picture in (drawn["bars"][0], matrix([[0.5]], rows=["<c>"], title="p")):
        picture._ipython_display_()
        (image, options), (text, _) = shown[-2:]
        assert image["image/png"] == picture.png and picture.png.startswith(b"\x89PNG")
        assert image["text/plain"] == repr(picture) == picture.alt
        assert options["metadata"]["image/png"] == {"alt": picture.alt, "width": picture.width}
        assert "&lt;c&gt; 0." in text["text/html"] and "<c>" not in text["text/html"]
    assert drawn["bars"][0].alt == "Bar chart. p: your 0.50, <c> 0.20, starts 0.30."


def test_words_are_no_formulas_and_need_no_glyph(recwarn):
    words = ["$x$", r"$\frac$", r"\$5", "a\tb", "👩\u200d👧"]
    for title in words:
        figures.bars({title: range(5)}, words)
        figures.curves([1, 2], {title: [1, 2], "y": [2, 1]}, xlabel="x", ylabel="y", alt="two")
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_all_stands_out_on_light_and_on_dark_pages(drawn, ground):
    """Text 4.3:1, more than which no ink has on both; lines, bars and frames 3:1 and more."""
    assert min(contrast(colour, ground) for colour in figures.COLOURS) >= 3.3
    for name, (_, figure) in drawn.items():
        words = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
        assert words and min(contrast(text.get_color(), ground) for text in words) >= 4.3, name
        for ax in filter(lambda ax: ax.axison, figure.axes):
            marks = [*ax.lines, *ax.xaxis.get_ticklines(), *ax.yaxis.get_ticklines()]
            colours = [line.get_color() for line in marks]
            colours += [edge.get_edgecolor() for edge in ax.spines.values()]
            colours += [bar.get_facecolor() for bar in ax.patches]
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
