"""Tokens are data: shown as text, never run, never an element, in every widget and every output."""

import pytest

from browser.gallery import GALLERY, SETUP
from browser.harness import Offline
from workshop.widgets.base import visible

HOSTILE = [
    "<img class=hostile src=x onerror=window.hacked=1>",
    "</script><script class=hostile>window.hacked=1</script>",
    '"><svg class=hostile onload=window.hacked=1>',
    "' class='hostile' onfocus='window.hacked=1' href='javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}} `${window.hacked=1}`",
    "&lt;b class=hostile&gt; <!-- <script class=hostile>",
    r"$\frac$",
    "__proto__",
    "\u202egnp.exe\u202c مرحبا",
    "👩\u200d👩\u200d👧\u200d👦",
    "x" * 200,
    "two\nlines,\r\ta tab, nul \x00, escape \x1b[31m, delete \x7f",
]
# Records what is written on any canvas.
RECORD = """() => {
  window.drawn = new Set();
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    drawn.add(text);
    return fillText.call(this, text, ...place);
  };
}"""
# Steps through a widget's grids by keys; gives back every text that was seen in it.
WALK = """async (root, keys) => {
  const seen = new Set();
  const look = () => [root, ...root.querySelectorAll("*")].forEach((e) => {
    for (const text of [e.textContent, e.ariaLabel, e.title]) seen.add(text ?? "");
  });
  look();
  for (const canvas of root.querySelectorAll("canvas[tabindex='0']")) {
    for (const key of keys) {
      canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      look();
    }
    await new Promise(requestAnimationFrame);
    look();
  }
  return [...seen, ...window.drawn];
}"""
KEYS = ["Escape", "Home", *["ArrowRight", "ArrowDown"] * 20, "Enter"]
# A widget, and the tokens that it shows. A question has room for four: three questions.
WIDGETS = [(source, HOSTILE if "tokens" in source else []) for source in GALLERY.values()]
WIDGETS = WIDGETS[:-1] + [
    (GALLERY["question"].replace("tokens", f"tokens[{i}:{i + 4}]"), HOSTILE[i : i + 4])
    for i in (0, 4, 8)
]


@pytest.fixture(scope="module")
def notebook(lab):
    lab.page.evaluate(RECORD)
    return lab.run(f"tokens = {HOSTILE!a}\n{SETUP}", *dict(WIDGETS))


@pytest.fixture(scope="module")
def saved(notebook):
    return notebook.save()


def harmless(page, roots) -> None:
    """Every token is written in every widget that has tokens; none ran, none made an element."""
    for (source, tokens), root in zip(WIDGETS, roots, strict=True):
        texts = root.evaluate(WALK, KEYS)
        for token in tokens:
            assert any(visible(token, 999)[:14] in text for text in texts), (source, token)
    assert page.evaluate("window.hacked") is None
    assert page.locator(".hostile, .step script, .step img, .step svg, .step b").count() == 0


def test_in_jupyterlab(lab, notebook, saved):
    harmless(lab.page, [notebook.widget(1 + i) for i in range(len(WIDGETS))])


def test_in_the_page(browser, tmp_path, ci, saved):
    """Without the page's policy, which alone would stop scripts."""
    pages = Offline(browser, tmp_path, ci("site").page, bypass_csp=True)
    pages.context.add_init_script(f"({RECORD})()")
    page = pages(saved)
    harmless(page, page.locator(".step").all())
    assert page.locator("script").count() == 4
    pages.context.close()
    assert not pages.faults


def test_in_the_static_text_and_picture(saved):
    """They are drawn without a complaint, or the notebook would not have run."""
    for cell in saved.cells[1:]:
        (output,) = cell.outputs
        words = output.data["text/plain"]
        assert output.metadata["image/png"]["alt"] == words
        assert all(c.isprintable() or c == "\u200d" for c in words), ascii(words)
        assert output.data["image/png"].startswith("iVBOR")
