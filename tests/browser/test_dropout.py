"""DropoutLab by mouse and keys: in JupyterLab, saved and not run again, and offline."""

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, pixels, press, slide_by_keys, slider
from helpers.attention import causal_mask, masked_softmax
from helpers.widgets import DropoutLab

WEIGHTS = masked_softmax(np.random.default_rng(7).normal(size=(6, 6)), causal_mask(6))
CELL = """
import numpy as np
from helpers.attention import causal_mask, masked_softmax
from helpers.widgets import DropoutLab
weights = masked_softmax(np.random.default_rng(7).normal(size=(6, 6)), causal_mask(6))
lab = DropoutLab(weights, "your journey starts with one step".split(), seed=3)
lab
"""


@pytest.fixture(scope="module")
def notebook(lab):
    return lab.run(CELL)


@pytest.fixture(scope="module")
def saved(notebook):
    """The notebook as JupyterLab saved it before anything was touched."""
    return notebook.save()


def grid(root, i: int = 0):
    """The weights, the latest draw, the mean."""
    return root.locator("canvas[tabindex='0']").nth(i)


def read(root, query: int, key: int) -> np.ndarray:
    """Weight, latest draw and mean of a cell, read out by the keyboard."""
    keys = ["ArrowDown"] * query + ["ArrowRight"] * key
    press(grid(root), "Escape", "Home", *keys)
    return numbers(root.locator(".read"))


def check(root, p: float, draws: int = 1, training: bool = True) -> None:
    """The sums of all rows, and every third cell, are those of NumPy and of the same seed."""
    lab = DropoutLab(WEIGHTS, p=p, seed=3)
    lab.training, lab.draws = training, draws
    three = np.stack([WEIGHTS, lab.last, lab.mean])
    sums = numbers(root.locator("table")).reshape(3, 6)
    np.testing.assert_allclose(sums, three.sum(axis=2), atol=1e-5)
    three[1][lab.dropped] = np.nan  # shown as ×
    for i, j in [(0, 0), (1, 1), (3, 2), (4, 4), (5, 0), (5, 3)]:
        np.testing.assert_allclose(read(root, i, j), three[:, i, j], atol=1e-5)


def shows_what_numpy_computes(root):
    """Every control in turn, by keys and by mouse."""

    def click(name):
        root.get_by_role("button", name=name).click()
        frames(root.page)

    check(root, 0.5)
    p = slide_by_keys(slider(root, "p, the probability"), 0.25)
    check(root, p)
    p = drag(slider(root, "p, the probability"), 0.8)
    check(root, p)
    click("draw again")
    check(root, p, 2)
    click("10 draws")
    click("100 draws")
    check(root, p, 112)
    root.get_by_label("training").uncheck()
    check(root, p, 112, training=False)
    assert "nothing is dropped" in root.inner_text()
    root.get_by_label("training").check()
    click("start again")
    check(root, p)


def test_live(notebook, saved):
    shows_what_numpy_computes(notebook.widget(0))


def test_python_and_the_browser_share_the_draws(notebook):
    root = notebook.widget(0)
    root.get_by_role("button", name="draw again").focus()
    root.page.keyboard.press("Enter")
    root.get_by_label("training").uncheck()
    frames(root.page)
    assert notebook.value("[lab.draws, lab.training]") == [2, False]
    notebook.value("[lab.set_trait('training', True), lab.set_trait('draws', 40)]")
    frames(root.page, 5)
    sums = numbers(root.locator("table")).reshape(3, 6)
    np.testing.assert_allclose(sums[1], notebook.value("lab.last.sum(1).tolist()"), atol=1e-5)
    np.testing.assert_allclose(sums[2], notebook.value("lab.mean.sum(1).tolist()"), atol=1e-5)


def test_dropped_cells_are_told_apart_from_zeros_without_colour(page_of):
    """Weights of zero look the same in all grids, but for the × where one was dropped."""
    lab = DropoutLab(np.zeros((6, 6)), seed=3)
    page = page_of(lab)
    before, once = (pixels(grid(page, i)) for i in (0, 1))
    differs = (before != once).any(axis=2)
    assert differs.any() and (once[differs][:, :3].max(axis=1) > 200).any()
    ys, xs = np.nonzero(differs)
    wide = pixels(grid(page)).shape[1] / 6
    assert len({(y // 30, int(x // wide)) for y, x in zip(ys, xs, strict=True)}) >= 12


def test_draws_end_at_the_limit(page_of):
    lab = DropoutLab(np.full((64, 64), 1 / 64))
    root = page_of(lab).locator(".step")
    for _ in range(3):
        root.get_by_role("button", name="100 draws").click()
    frames(root.page)
    assert "draw 256:" in root.inner_text()


def test_saved_and_not_run_again(lab, saved):
    shows_what_numpy_computes(lab.open(saved).widget(0))


def test_offline(page_of, saved):
    shows_what_numpy_computes(page_of(saved).locator(".step"))
