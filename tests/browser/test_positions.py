"""PositionExplorer by mouse and keys: in JupyterLab, saved and not run again, and offline."""

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, pixels, press, slide_by_keys, slider
from helpers.blocks import sinusoidal_positions

CELLS = [
    "from workshop.widgets import PositionExplorer\nexplorer = PositionExplorer(6, 50)\nexplorer"
]


def grid(root):
    return root.locator("canvas[tabindex='0']")


def check(root, a: int, b: int, d: int = 6) -> None:
    """Both rows, their products, and the dot product here and elsewhere are those of NumPy."""
    table = sinusoidal_positions(50, d)
    rows, same = root.locator("table").all()
    expected = [table[a], table[b], table[a] * table[b]]
    np.testing.assert_allclose(numbers(rows).reshape(3, d), expected, atol=1e-5)
    np.testing.assert_allclose(numbers(same), [table[a] @ table[b]] * 4, atol=1e-5)
    assert f"position {a}" in rows.inner_text() and f"{abs(a - b)} apart" in same.inner_text()


def test_python_and_the_browser_share_what_is_selected(notebook, saved):
    root = notebook.widget(0)
    slide_by_keys(slider(root, "d_model"), 8)
    box = grid(root).bounding_box()  # a click selects the newer of the two
    root.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    frames(root.page)
    d, pair, dot = notebook.value("[explorer.d_model, explorer.selected, explorer.dot]")
    assert (d, pair[0]) == (8, 5) and abs(pair[1] - 24) <= 2
    assert numbers(root.locator("table").nth(1))[0] == pytest.approx(dot, abs=1e-5)
    notebook.value("explorer.set_trait('selected', [40, 45])")
    frames(root.page, 5)
    check(root, 40, 45, d=8)
    chart = root.locator("canvas[role='img']")
    before = pixels(chart)  # moving both changes the rows, and not how they are alike
    slide_by_keys(slider(root, "move both"), 20)
    assert np.array_equal(pixels(chart), before)
    check(root, 20, 25, d=8)
    notebook.value("explorer.set_trait('selected', [2, 5]) or explorer.set_trait('d_model', 6)")
    frames(root.page, 5)


def test_it_shows_what_numpy_computes(anywhere):
    """Every control in turn, by keys and by mouse."""
    (root,) = anywhere
    check(root, 2, 5)
    slide_by_keys(slider(root, "first position"), 9)
    check(root, 9, 5)
    b = int(drag(slider(root, "second position"), 0.6))
    check(root, 9, b)
    low = int(drag(slider(root, "move both"), 0.5))
    check(root, low, low + b - 9)
    slide_by_keys(slider(root, "d_model"), 10)
    check(root, low, low + b - 9, d=10)
    press(grid(root), "Escape", "Home", *["ArrowDown"] * 4, *["ArrowRight"] * 3)
    expected = sinusoidal_positions(50, 10)[4, 3]
    assert numbers(root.locator(".read")) == pytest.approx([expected], abs=1e-5)
    press(grid(root), "Enter", "End", "ArrowDown", "Enter")
    check(root, 4, 5, d=10)
    assert numbers(root.locator(".read")) == pytest.approx(sinusoidal_positions(6, 10)[5, 9:])
