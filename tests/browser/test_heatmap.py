"""AttentionHeatmap by mouse and keys: in JupyterLab, saved and not run again, and offline."""

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, pixels, press, slide_by_keys, slider
from helpers.attention import softmax

SCORES = np.random.default_rng(3).normal(size=(3, 6, 6)) * 2
CELL = """
import numpy as np
from helpers.widgets import AttentionHeatmap
scores = np.random.default_rng(3).normal(size=(3, 6, 6)) * 2
tokens = "your journey starts with one step".split()
heatmap = AttentionHeatmap(scores=scores, tokens=tokens, d_k=4, softmax=True)
heatmap
"""


@pytest.fixture(scope="module")
def notebook(lab):
    return lab.run(CELL)


@pytest.fixture(scope="module")
def saved(notebook):
    """The notebook as JupyterLab saved it before anything was touched."""
    return notebook.save()


def grid(root):
    return root.locator("canvas[tabindex='0']")


def read(root, query: int, key: int) -> float:
    """The number of a cell, read out by the keyboard."""
    press(grid(root), "Escape", "Home", *["ArrowDown"] * query, *["ArrowRight"] * key)
    return numbers(root.locator(".read"))[0]


def hover(root) -> float:
    """The number of the last cell, read out by the mouse."""
    box = grid(root).bounding_box()
    root.page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] - 8)
    frames(root.page)
    return numbers(root.locator(".read"))[0]


def shows_what_numpy_computes(root):
    """Every control in turn, by keys and by mouse."""
    assert read(root, 1, 2) == pytest.approx(softmax(SCORES[0])[1, 2], abs=1e-5)
    before = pixels(grid(root))
    press(root.get_by_label("head", exact=True), "ArrowDown", "ArrowDown")
    assert read(root, 5, 3) == pytest.approx(softmax(SCORES[2])[5, 3], abs=1e-5)
    assert (pixels(grid(root)) != before).any()
    slide_by_keys(slider(root, "temperature"), 0.05)
    x = SCORES[2] / 10**0.05
    assert read(root, 4, 0) == pytest.approx(softmax(x)[4, 0], abs=1e-5)
    x = SCORES[2] / 10 ** drag(slider(root, "temperature"), 0.75)
    assert hover(root) == pytest.approx(softmax(x)[5, 5], abs=1e-5)
    root.get_by_label("causal mask").check()
    masked = np.where(np.tri(6, dtype=bool), x, -np.inf)
    assert read(root, 4, 0) == pytest.approx(softmax(masked)[4, 0], abs=1e-5)
    assert read(root, 0, 5) == 0


def test_live(notebook, saved):
    shows_what_numpy_computes(notebook.widget(0))


def test_python_hears_what_the_reader_does(notebook):
    press(grid(notebook.widget(0)), "Escape", "Home", "ArrowDown", "Enter")
    selected, shown = notebook.value("[heatmap.selected, heatmap.matrix.tolist()]")
    assert selected.pop("weight") == pytest.approx(shown[1][0], abs=1e-5)
    assert selected == {"layer": 0, "head": 2, "query": 1, "key": 0}
    assert shown[0][5] == 0


def test_saved_and_not_run_again(lab, saved):
    shows_what_numpy_computes(lab.open(saved).widget(0))


def test_offline(page_of, saved):
    shows_what_numpy_computes(page_of(saved).locator(".step"))
