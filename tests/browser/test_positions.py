"""PositionExplorer by mouse and keys: in JupyterLab, saved and not run again, and offline."""

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, pixels, press, slide_by_keys, slider
from helpers.blocks import sinusoidal_positions

CELL = """
from helpers.widgets import PositionExplorer
explorer = PositionExplorer(6, 50)
explorer
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


def check(root, a: int, b: int, d: int = 6) -> None:
    """Both rows, their products, and the dot product here and elsewhere are those of NumPy."""
    table = sinusoidal_positions(50, d)
    rows, same = root.locator("table").all()
    expected = [table[a], table[b], table[a] * table[b]]
    np.testing.assert_allclose(numbers(rows).reshape(3, d), expected, atol=1e-5)
    np.testing.assert_allclose(numbers(same), [table[a] @ table[b]] * 4, atol=1e-5)
    assert f"position {a}" in rows.inner_text() and f"{abs(a - b)} apart" in same.inner_text()


def shows_what_numpy_computes(root):
    """Every control in turn, by keys and by mouse."""
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


def test_live(notebook, saved):
    shows_what_numpy_computes(notebook.widget(0))


def test_python_and_the_browser_share_what_is_selected(notebook):
    root = notebook.widget(0)
    slide_by_keys(slider(root, "d_model"), 8)
    slide_by_keys(slider(root, "first position"), 6)
    d, pair, dot = notebook.value("[explorer.d_model, explorer.selected, explorer.dot]")
    assert (d, pair) == (8, [6, 5])
    assert numbers(root.locator("table").nth(1))[0] == pytest.approx(dot, abs=1e-5)
    notebook.value("explorer.set_trait('selected', [40, 45])")
    frames(root.page, 5)
    check(root, 40, 45, d=8)
    assert slider(root, "move both").input_value() == "40"


def test_moving_both_leaves_the_chart_and_not_the_rows(notebook):
    root = notebook.widget(0)
    rows, same = root.locator("table").all()
    chart = root.locator("canvas[role='img']")
    before = [pixels(chart), numbers(same), numbers(rows)]
    slide_by_keys(slider(root, "move both"), 20)
    assert np.array_equal(pixels(chart), before[0])
    np.testing.assert_allclose(numbers(same), before[1], atol=1e-12)
    assert not np.allclose(numbers(rows), before[2], atol=0.1)


def test_a_click_selects_the_newer_of_the_two(notebook):
    root = notebook.widget(0)
    before = notebook.value("explorer.selected")
    box = grid(root).bounding_box()
    root.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    frames(root.page)
    after = notebook.value("explorer.selected")
    assert after[0] == before[1] and abs(after[1] - 24) <= 2


def test_saved_and_not_run_again(lab, saved):
    shows_what_numpy_computes(lab.open(saved).widget(0))


def test_offline(page_of, saved):
    shows_what_numpy_computes(page_of(saved).locator(".step"))
