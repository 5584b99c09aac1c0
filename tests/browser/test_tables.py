"""Tables of `show` in JupyterLab: whole numbers, in a box that scrolls, trusted or not."""

import pytest

from browser.harness import frames

SHOWN = """
import numpy as np
from workshop import show
words = "Your journey starts with one step".split()
show(np.linspace(-20, 20, 36).reshape(6, 6), words, words, "i used twice, and a title as long")
show(np.linspace(-20, 20, 60).reshape(2, 3, 10), [f"temperature {i}" for i in range(3)])
show(np.where(np.tri(3, 20, dtype=bool), 1, -np.inf), colour="scores")
"""
# Of every text of the outputs that is shown: the pieces of which one word stands on two lines.
BROKEN = r"""() => {
  const broken = [];
  for (const output of document.querySelectorAll(".jp-Notebook .jp-OutputArea-output")) {
    const walker = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
      for (const word of node.data.matchAll(/\S+/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const tops = [...range.getClientRects()].map((box) => Math.round(box.top));
        if (new Set(tops).size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""
STAYS = """boxes => boxes.every((box) => {
  const page = box.closest(".jp-OutputArea-output").getBoundingClientRect();
  return box.getBoundingClientRect().right <= page.right + 1;
})"""


@pytest.fixture(scope="module")
def narrow(lab):
    """JupyterLab in a window of 620 pixels."""
    lab.page.set_viewport_size({"width": 620, "height": 1000})
    yield lab
    lab.page.set_viewport_size({"width": 1000, "height": 1000})


@pytest.fixture(scope="module")
def notebook(narrow):
    """The tables as the kernel sent them, and the file that holds them."""
    return narrow.run(SHOWN)


def fits(page):
    """No word is broken, and what is wider than the page scrolls in its own box."""
    frames(page)
    assert page.evaluate(BROKEN) == []
    boxes = page.locator(".jp-OutputArea-output div:has(> table)")
    assert boxes.count() == 4 and boxes.evaluate_all(STAYS)
    assert boxes.evaluate_all("all => all.some((box) => box.scrollWidth > box.clientWidth)")
    styles = "all => [...new Set(all.map((e) => getComputedStyle(e).textAlign))]"
    assert page.locator(".jp-OutputArea-output td").evaluate_all(styles) == ["right"]
    grounds = "all => [...new Set(all.map((e) => getComputedStyle(e).backgroundColor))]"
    tints = page.locator(".jp-OutputArea-output td").evaluate_all(grounds)
    assert {"rgba(0, 0, 0, 0)", "rgba(107, 114, 128, 0.45)", "rgba(124, 58, 237, 0.45)"} <= {*tints}


def test_no_number_is_broken_at_620_pixels(notebook):
    fits(notebook.page)


def test_nor_in_a_notebook_that_is_not_trusted(notebook, narrow):
    """JupyterLab's sanitizer keeps the table and its styles."""
    book = notebook.save()
    book.metadata["changed"] = "so its signature fits no more"
    narrow.open(book)
    trusted = narrow.page.evaluate("[...window.panel.content.model.cells].map((c) => c.trusted)")
    assert trusted == [False]
    fits(narrow.page)
