"""Draw the README's pictures: what the machine shows of a model, of a head, of a number.

    python tools/pictures.py  write .github/map.png, .github/head.png, .github/number.png

They are the widgets themselves in a browser, without a ground and in the ink of light and dark
pages, so that one picture serves both.
"""

import io
import runpy
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from playwright.sync_api import Locator, sync_playwright

from helpers.models import Transformer
from helpers.training import Pair, Recipe, examples, fit, vocabularies
from workshop.drawings.sheet import INKS
from workshop.figures import INK
from workshop.widgets import Machine

SITE = runpy.run_path(str(Path(__file__).with_name("site.py")))
FOLDER = Path(__file__).resolve().parents[1] / ".github"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LARGEST = 60_000  # bytes
LOOK = """
html, body, .step, .step button { background: transparent !important; border: 0 !important; }
main > figure { max-width: none; }
.step { --paper: #ffffff !important; --ink: INK !important; --line: INK !important; COLOURS }
.step .hand { min-height: 0; }
.step .board { max-height: none; }
.step details, .step .row:has(> .slider) { display: none; }
figure:is([data-model=map], [data-model=head]) .hand { display: none; }
figure[data-model=number] :is(.sentence, .crumbs, .toggle) { display: none; }
"""
ANSWERS = [
    ("i drink", "and i know things"),
    ("when you play the game of thrones", "you win or you die"),
    ("the true enemy won't wait out the storm", "he brings the storm"),
]


def thrones() -> Machine:
    """The map of an encoder–decoder that has learned three answers by heart."""
    pairs = [Pair(*pair, source_of=(), combinations=frozenset()) for pair in ANSWERS]
    words = vocabularies(pairs)
    torch.manual_seed(0)
    model = Transformer(*map(len, words), d_model=12, num_heads=3, d_ff=48, num_layers=1)
    generator = torch.Generator().manual_seed(0)
    fit(model, examples(pairs, *words), generator, Recipe(batch_size=3, peak=1e-2))
    return Machine(model.eval(), ANSWERS[1][0], words, written="<start> you win or")


def page() -> str:
    """One page with the three machines."""
    widgets = {"map": thrones(), "head": SITE["apple"]()}
    widgets["number"] = SITE["apple"](cell=["attention/head/weights", 3, 5])
    made, models = SITE["alive"](widgets)
    titles = {"index.html": "Pictures"}
    return SITE["frame"]("index.html", titles, "", SITE["Page"](), f"<main>{made}</main>", models)


def shot(figure: Locator) -> bytes:
    """The figure as a PNG of 256 colours without a ground."""
    image = Image.open(io.BytesIO(figure.screenshot(omit_background=True))).convert("RGBA")
    box = Image.fromarray(np.asarray(image)[..., 3]).getbbox()
    image = image.crop(box).quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    data = io.BytesIO()
    image.save(data, format="png", optimize=True)
    return data.getvalue()


def main() -> None:
    """Write the pictures."""
    colours = "".join(f"--{name}: {ink} !important; " for name, ink in INKS.items())
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "index.html"
        path.write_text(page(), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        opened = browser.new_page(viewport={"width": 1000, "height": 1200}, device_scale_factor=1.5)
        opened.goto(path.as_uri())
        opened.locator(".machine canvas").nth(2).wait_for()
        opened.add_style_tag(content=LOOK.replace("INK", INK).replace("COLOURS", colours))
        opened.wait_for_timeout(1000)  # the machines take the page's colours
        for figure in opened.locator("figure").all():
            (FOLDER / f"{figure.get_attribute('data-model')}.png").write_bytes(shot(figure))
        browser.close()


if __name__ == "__main__":
    main()
