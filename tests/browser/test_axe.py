"""axe-core finds no fault in any widget, nor has text on a canvas too little contrast.

Both in JupyterLab's light and dark theme. axe does not see what is drawn on a canvas.
"""

import pytest

from browser.gallery import GALLERY, SETUP, TOKENS
from browser.harness import frames, press

# Notes how well each text on a canvas stands out from what lies under its anchor, as WCAG has it.
RECORD = """() => {
  const probe = new OffscreenCanvas(1, 1).getContext("2d");
  const light = (style) => {
    probe.fillStyle = style;
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...probe.getImageData(0, 0, 1, 1).data].map((value) => value / 255)
      .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.05 + 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const { fillText } = CanvasRenderingContext2D.prototype;
  window.contrasts = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const at = this.getTransform().transformPoint({ x, y });
    const [r, g, b, a] = this.getImageData(at.x, at.y, 1, 1).data;
    const paper = getComputedStyle(document.querySelector(".step")).backgroundColor;
    const under = light(a < 128 ? paper : `rgb(${r} ${g} ${b})`);
    const [low, high] = [light(this.fillStyle), under].sort((one, other) => one - other);
    contrasts.push([high / low, `${text} in ${this.fillStyle}`]);
    return fillText.call(this, text, x, y, ...rest);
  };
}"""


@pytest.fixture(scope="module")
def notebook(lab):
    """All widgets in one high window: grids with a cell pinned, the questions answered wrongly."""
    lab.page.evaluate(RECORD)
    opened = lab.run(f"{TOKENS}\n{SETUP}", *GALLERY.values())
    for canvas in opened.page.locator(".step canvas[tabindex='0']").all():
        press(canvas, "ArrowRight", "Enter")
    opened.page.get_by_role("radio").nth(1).check()
    opened.page.get_by_role("textbox", name="Type 2 numbers").fill("0.5 one")
    for button in opened.page.get_by_role("button", name="Check", exact=True).all():
        button.click()
    opened.page.get_by_role("button", name="Show the reason").first.click()
    lab.page.set_viewport_size({"width": 1000, "height": 3000})
    yield opened
    lab.page.set_viewport_size({"width": 1000, "height": 1000})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_violation(lab, notebook, axe, theme):
    lab.theme(theme)
    found = {name: axe(notebook.widget(1 + i)) for i, name in enumerate(GALLERY)}
    faults = [f"{name}: {fault}" for name, faults in found.items() for fault in faults]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_on_canvas_stands_out(lab, notebook, theme):
    lab.theme(theme)
    lab.page.wait_for_timeout(700)  # widgets draw themselves again, in the theme's colours
    lab.page.evaluate("() => { contrasts.length = 0; }")
    lab.page.set_viewport_size({"width": 980 if theme == "light" else 960, "height": 3000})
    frames(lab.page, 5)
    contrasts = lab.page.evaluate("contrasts")
    assert len(contrasts) > 100
    faint = {text: round(contrast, 2) for contrast, text in contrasts if contrast < 4.5}
    assert not faint
