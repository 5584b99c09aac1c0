"""DropoutLab by mouse and keys: in JupyterLab, saved and not run again, and offline."""

import numpy as np

from browser.harness import drag, frames, numbers, pixels, press, slide_by_keys, slider
from helpers.attention import causal_mask, masked_softmax
from workshop.widgets import DropoutLab

WEIGHTS = masked_softmax(np.random.default_rng(7).normal(size=(6, 6)), causal_mask(6))
CELLS = [
    """import numpy as np
from helpers.attention import causal_mask, masked_softmax
from workshop.widgets import DropoutLab
weights = masked_softmax(np.random.default_rng(7).normal(size=(6, 6)), causal_mask(6))
lab = DropoutLab(weights, "your journey starts with one step".split(), seed=3)
lab"""
]


def grid(root, i: int = 0):
    """The weights, the latest draw, the mean."""
    return root.locator("canvas[tabindex='0']").nth(i)


def check(root, p: float, draws: int = 1, training: bool = True) -> None:
    """The sums of all rows, and some cells read by keys, are those of NumPy and the same seed."""
    lab = DropoutLab(WEIGHTS, p=p, seed=3)
    lab.training, lab.draws = training, draws
    three = np.stack([WEIGHTS, lab.last, lab.mean])
    sums = numbers(root.locator("table")).reshape(3, 6)
    np.testing.assert_allclose(sums, three.sum(axis=2), atol=1e-5)
    three[1][lab.dropped] = np.nan  # shown as ×
    for i, j in [(0, 0), (3, 2), (4, 4), (5, 3)]:
        press(grid(root), "Escape", "Home", *["ArrowDown"] * i, *["ArrowRight"] * j)
        np.testing.assert_allclose(numbers(root.locator(".read")), three[:, i, j], atol=1e-5)


def test_dropped_cells_are_told_apart_from_zeros_without_colour(page_of):
    """Weights of zero look the same in all grids, but for the × where one was dropped."""
    page = page_of(DropoutLab(np.zeros((6, 6)), seed=3, p=0.25))
    before, once = (pixels(grid(page, i)) for i in (0, 1))
    differs = (before != once).any(axis=2)
    assert differs.any() and (once[differs][:, :3].max(axis=1) < 60).any()


def test_draws_end_at_the_limit(page_of):
    root = page_of(DropoutLab(np.full((64, 64), 1 / 64))).locator(".step")
    for _ in range(3):
        root.get_by_role("button", name="100 draws").click()
    frames(root.page)
    assert "draw 256:" in root.inner_text()


def test_python_and_the_browser_share_the_draws(notebook, saved):
    root = notebook.widget(0)
    press(root.get_by_role("button", name="draw again"), "Enter")
    root.get_by_label("training").uncheck()
    frames(root.page)
    assert notebook.value("[lab.draws, lab.training]") == [2, False]
    notebook.value("[lab.set_trait('training', True), lab.set_trait('draws', 40)]")
    frames(root.page, 5)
    check(root, 0.5, 40)
    notebook.value("lab.set_trait('draws', 1)")
    frames(root.page, 5)


def test_it_shows_what_numpy_computes(anywhere):
    """Every control in turn, by keys and by mouse."""
    (root,) = anywhere

    def click(name):
        root.get_by_role("button", name=name).click()
        frames(root.page)

    check(root, 0.5)
    p = slide_by_keys(slider(root, "p, the probability"), 0.25)
    check(root, p)
    p = drag(slider(root, "p, the probability"), 0.8)
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
