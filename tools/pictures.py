"""Draw the README's pictures: what the machine shows of a model, of a head, of a number.

    python tools/pictures.py  write .github/map.png, .github/head.png, .github/number.png

They are the widgets themselves in a browser, without a ground and in the ink of light and dark
pages, so that one picture serves both.
"""

import io
import runpy
import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import Locator, sync_playwright

from helpers.models import Transformer
from helpers.training import Pair, Recipe, examples, fit, vocabularies
from workshop import Machine
from workshop.drawings.sheet import INKS
from workshop.figures import INK

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from browser.harness import Offline, launch  # noqa: E402

SITE = runpy.run_path(str(ROOT / "tools/site.py"))
LOOK = """
html, body, .step, .step button { background: transparent !important; border: 0 !important; }
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


def shot(figure: Locator) -> bytes:
    """The figure as a PNG of 256 colours without a ground."""
    image = Image.open(io.BytesIO(figure.screenshot(omit_background=True))).convert("RGBA")
    image = image.crop(image.getchannel("A").getbbox())
    data, palette = io.BytesIO(), Image.Quantize.FASTOCTREE
    image.quantize(256, palette, dither=Image.Dither.NONE).save(data, "png", optimize=True)
    return data.getvalue()


def main() -> None:
    """Write the pictures."""
    colours = "".join(f"--{name}: {ink} !important; " for name, ink in INKS.items())
    number = SITE["apple"](cell=["attention/head/weights", 3, 5])
    notebook = SITE["alive"](map=thrones(), head=SITE["apple"](), number=number)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch(playwright)
        opened = Offline(browser, Path(folder), SITE["page"], device_scale_factor=1.5)(notebook)
        opened.add_style_tag(content=LOOK.replace("INK", INK).replace("COLOURS", colours))
        opened.wait_for_timeout(1000)  # the machines take the page's colours
        for figure in opened.locator("figure").all():
            path = ROOT / ".github" / f"{figure.get_attribute('data-model')}.png"
            path.write_bytes(shot(figure))
        browser.close()


if __name__ == "__main__":
    main()
