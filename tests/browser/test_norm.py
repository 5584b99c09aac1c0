"""NormLab by mouse and keys: in JupyterLab, saved and not run again, and offline."""

import numpy as np

from browser.harness import drag, frames, numbers, press, slide_by_keys, slider
from helpers.blocks import layer_norm
from workshop.widgets import NormLab

X, F = np.random.default_rng(10).normal(2, 3, size=(2, 6, 5))
CELLS = [
    """import numpy as np
from workshop.widgets import NormLab
x, f = np.random.default_rng(10).normal(2, 3, size=(2, 6, 5))
lab = NormLab(x, f, tokens="when you play game of thrones".split())
lab"""
]


def grid(root):
    return root.locator("canvas[tabindex='0']").first


def measured(rows) -> np.ndarray:
    return np.stack([rows.mean(axis=1), rows.std(axis=1)], axis=1)


def check(root, row, gamma=1.0, beta=0.0, add=True, norm=True) -> None:
    """One row step by step, and mean and deviation of all rows, are those of NumPy."""
    total = X + F if add else F
    out = layer_norm(total, gamma, beta) if norm else total
    steps, each = root.locator("table").all()
    expected = np.hstack([measured(total), measured(out)])
    np.testing.assert_allclose(numbers(each).reshape(6, 4), expected, atol=1e-5)
    s = total[row]
    divided = (s - s.mean()) / np.sqrt(s.var() + 1e-5)
    way = [s - s.mean(), divided, gamma * divided, out[row]] if norm else []
    shown = numbers(steps).reshape(-1, 5)
    np.testing.assert_allclose(shown, [X[row], F[row], s, *way], atol=1e-5)


def read(root, i: int, j: int) -> np.ndarray:
    """x, sublayer(x), their sum and the output of a cell, read out by the keyboard."""
    press(grid(root), "Escape", "Home", *["ArrowDown"] * i, *["ArrowRight"] * j)
    return numbers(root.locator(".read"))


def test_without_a_sublayer(page_of):
    root = page_of(NormLab(X, gamma=0.1234, eps=1)).locator(".step")
    assert root.get_by_role("checkbox").count() == 1
    steps, each = root.locator("table").all()
    assert numbers(steps).size == 25
    out = layer_norm(X, 0.1234, 0.0, 1)
    np.testing.assert_allclose(numbers(each).reshape(6, 4)[:, 3], out.std(axis=1), atol=1e-5)


def test_python_and_the_browser_share_the_controls(notebook, saved):
    root = notebook.widget(0)
    root.get_by_label("add x").uncheck()
    box = grid(root).bounding_box()  # a click follows a row
    root.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 8)
    frames(root.page)
    assert "“thrones”, step by step" in root.inner_text()
    assert notebook.value("[lab.add, lab.selected]") == [False, 5]
    notebook.value("[lab.set_trait('add', True), lab.set_trait('selected', 0)]")
    frames(root.page, 5)


def test_it_shows_what_numpy_computes(anywhere):
    """Every control in turn, by keys and by mouse."""
    (root,) = anywhere
    check(root, 0)
    gamma = slide_by_keys(slider(root, "γ"), 1.5)
    beta = drag(slider(root, "β"), 0.2)
    check(root, 0, gamma, beta)
    out = layer_norm(X + F, gamma, beta)
    four = [X[3, 2], F[3, 2], X[3, 2] + F[3, 2], out[3, 2]]
    np.testing.assert_allclose(read(root, 3, 2), four, atol=1e-5)
    press(grid(root), "Enter")
    check(root, 3, gamma, beta)
    root.get_by_label("add x").uncheck()
    frames(root.page)
    check(root, 3, gamma, beta, add=False)
    root.get_by_label("norm", exact=True).uncheck()
    frames(root.page)
    check(root, 3, gamma, beta, add=False, norm=False)
    np.testing.assert_allclose(read(root, 5, 4), [X[5, 4], *[F[5, 4]] * 3], atol=1e-5)
