"""MatrixProduct by mouse and keys: what it adds up is what NumPy computes."""

import numpy as np
import pytest

from browser.harness import frames, numbers, pixels, press
from helpers.widgets.product import MatrixProduct

CELL = """
import numpy as np
from helpers.widgets.product import MatrixProduct
rng = np.random.default_rng(7)
tokens = "your journey starts with one step".split()
Q, K = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
names = ("Q", "K", "scores")
product = MatrixProduct(Q, K, transposed=True, rows=tokens, columns=tokens, names=names)
product
"""
# What a browser reports when a finger taps: there is no pointer left afterwards.
TAP = """(canvas, [x, y]) => {
  const box = canvas.getBoundingClientRect();
  const place = { clientX: box.x + x * box.width, clientY: box.y + y * box.height, bubbles: true };
  const finger = { ...place, pointerType: "touch" };
  for (const type of ["pointerdown", "pointerup", "pointerout", "pointerleave", "click"])
    canvas.dispatchEvent(new PointerEvent(type, finger));
}"""
RNG = np.random.default_rng(7)
Q, K = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 3))


@pytest.fixture(scope="module")
def shown(lab):
    return lab.run(CELL)


@pytest.fixture
def notebook(shown):
    """The widget as it stood at first: the first cell, all its products."""
    shown.value("product.set_trait('selected', (5, 5)) or product.set_trait('selected', (0, 0))")
    shown.page.mouse.move(0, 0)
    shown.page.locator(".step canvas").nth(2).blur()
    frames(shown.page)
    return shown


def grids(root):
    return root.locator("canvas[tabindex='0']").all()


def read(root):
    return root.locator(".read")


def hover(canvas, x: float, y: float) -> None:
    """Point at a share of the canvas's width and height."""
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    canvas.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    frames(canvas.page)


def adds_up(root, i, j, terms=3):
    """The first products of row i of Q and column j of Kᵀ stand there, and their sum."""
    pairs = np.stack([Q[i, :terms], K[j, :terms]], axis=1)
    total = (Q[i, :terms] * K[j, :terms]).sum()
    np.testing.assert_allclose(numbers(read(root)), [*pairs.ravel(), total], atol=1e-5)


def selected(notebook) -> tuple:
    return tuple(notebook.value("product.selected"))


def test_the_first_cell_adds_up_in_figures(notebook):
    root = notebook.widget(0)
    adds_up(root, 0, 0)
    text = read(root).inner_text().split("\n")
    assert text[0] == "scores, row “your”, column “your”"
    figures = [f"{x:.4f}" if x >= 0 else f"({x:.4f})" for x in [*Q[0], *K[0]]]
    written = " + ".join(f"{figures[k]} × {figures[3 + k]}" for k in range(3))
    assert text[1] == f"{written} = {Q[0] @ K[0]:.4f}"


def test_arrow_keys_move_over_the_result(notebook):
    root = notebook.widget(0)
    result = grids(root)[2]
    before = [pixels(canvas) for canvas in grids(root)]
    press(result, "ArrowRight", "ArrowRight", "ArrowDown")
    adds_up(root, 1, 2)
    for old, canvas in zip(before, grids(root), strict=True):
        assert (pixels(canvas) != old).any()
    assert selected(notebook) == (0, 0)
    press(result, "Enter")
    assert selected(notebook) == (1, 2)
    press(result, "End", "PageDown", "ArrowRight")
    adds_up(root, 5, 5)
    press(result, "Escape")
    adds_up(root, 1, 2)


def test_a_kept_cell_steps_by_enter(notebook):
    root = notebook.widget(0)
    result = grids(root)[2]
    press(result, "ArrowDown", "Enter")
    adds_up(root, 1, 0)
    for terms in (1, 2, 3, 1):
        press(result, "Enter")
        adds_up(root, 1, 0, terms)
        assert f"product {terms} of 3" in read(root).inner_text()


def test_buttons_walk_forth_and_back_over_all_cells(notebook):
    root = notebook.widget(0)
    forth = root.get_by_role("button", name="next product")
    back = root.get_by_role("button", name="back")
    for t in range(8):
        press(forth, "Enter")
        adds_up(root, 0, t // 3, t % 3 + 1)
    assert selected(notebook) == (0, 2)
    for t in reversed(range(7)):
        back.click()
        frames(root.page)
        adds_up(root, 0, t // 3, t % 3 + 1)
    back.click()
    frames(root.page)
    adds_up(root, 5, 5)  # before the first comes the last
    forth.click()
    frames(root.page)
    adds_up(root, 0, 0, 1)


def test_the_mouse_reads_and_keeps_a_cell(notebook):
    root = notebook.widget(0)
    a, b, result = grids(root)
    hover(result, 0.97, 0.95)
    adds_up(root, 5, 5)
    hover(a, 0.95, 0.97)  # the last row, third column: the running sum up to there
    adds_up(root, 5, 0)
    hover(a, 0.5, 0.97)
    adds_up(root, 5, 0, 2)
    hover(b, 0.97, 0.95)
    adds_up(root, 0, 5)
    root.page.mouse.move(0, 0)
    frames(root.page)
    adds_up(root, 0, 0)
    assert selected(notebook) == (0, 0)
    hover(result, 0.97, 0.95)
    root.page.mouse.down()
    root.page.mouse.up()
    root.page.mouse.move(0, 0)
    frames(root.page)
    adds_up(root, 5, 5)
    assert selected(notebook) == (5, 5)


def test_keys_in_a_factor_step_through_the_products(notebook):
    root = notebook.widget(0)
    press(grids(root)[0], "ArrowRight", "ArrowRight")
    adds_up(root, 0, 0, 2)
    press(grids(root)[0], "ArrowDown")
    adds_up(root, 1, 0, 2)
    press(grids(root)[0], "Enter")
    assert selected(notebook) == (1, 0)
    adds_up(root, 1, 0, 2)


def test_a_finger_keeps_a_cell(page_of):
    page = page_of(MatrixProduct(Q, K.T))
    canvas = grids(page.locator(".step"))[2]
    canvas.evaluate(TAP, [0.97, 0.95])
    frames(page)
    adds_up(page.locator(".step"), 5, 5)
    canvas.evaluate(TAP, [0.97, 0.95])
    frames(page)
    adds_up(page.locator(".step"), 5, 5, 1)


def test_python_selects(notebook):
    notebook.value("product.set_trait('selected', (4, 1))")
    frames(notebook.page)
    adds_up(notebook.widget(0), 4, 1)


def test_play_goes_on_until_paused(notebook):
    root = notebook.widget(0)
    root.get_by_role("button", name="play").click()
    root.page.wait_for_function(
        "r => r.querySelector('.read').textContent.includes('product 2 of 3')",
        arg=root.element_handle(),
    )
    assert read(root).get_attribute("aria-live") == "off"
    root.get_by_role("button", name="pause").click()
    stopped = numbers(read(root))
    root.page.wait_for_timeout(700)
    assert numbers(read(root)).tolist() == stopped.tolist()
    assert read(root).get_attribute("aria-live") == "polite"


def test_no_play_where_motion_is_unwelcome(notebook):
    root = notebook.widget(0)
    root.page.emulate_media(reduced_motion="reduce")
    assert not root.get_by_role("button", name="play").is_visible()
    root.page.emulate_media(reduced_motion="no-preference")
    assert root.get_by_role("button", name="play").is_visible()


@pytest.mark.parametrize("width, in_line", [(1000, True), (480, False)])
def test_rows_and_columns_stand_in_line_where_there_is_room(page_of, width, in_line):
    tokens = [f"token {i}" for i in range(8)]
    widget = MatrixProduct(np.eye(8), np.ones((8, 2)), rows=tokens, inner=tokens)
    page = page_of(widget)
    page.set_viewport_size({"width": width, "height": 900})
    frames(page, 4)
    a, b, result = (canvas.bounding_box() for canvas in grids(page.locator(".step")))
    assert (b["x"] == result["x"] and b["width"] == result["width"]) == in_line
    assert (a["y"] == result["y"] and a["height"] == result["height"]) == in_line
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    right = page.locator(".step").bounding_box()
    assert all(box["x"] + box["width"] <= right["x"] + right["width"] for box in (a, b, result))


@pytest.mark.parametrize(
    "A, B, written",
    [
        ([[0, 1, 3]], [[2], [4], [-1]], "0 × 2 + 1 × 4 + 3 × (-1) = 1"),
        ([[2]], [[0.25]], "2 × 0.2500 = 0.5000"),
        (np.full((2, 64), 0.5), np.ones((64, 64)), "0.5000 × 1 = 32.0000"),
    ],
)
def test_whole_numbers_single_and_many_cells(page_of, A, B, written):
    root = page_of(MatrixProduct(A, B)).locator(".step")
    assert read(root).inner_text().split("\n")[1].endswith(written)
    forth = root.get_by_role("button", name="next product")
    count = np.shape(A)[1]
    press(forth, *["Enter"] * count)
    assert read(root).inner_text().split("\n")[1].endswith(written)
    assert f"product {count} of {count}" in read(root).inner_text()


def test_saved_without_a_kernel_it_still_adds_up(page_of, shown):
    root = page_of(shown.save()).locator(".step")
    press(grids(root)[2], "Escape", "Home", "PageUp", "ArrowDown", "ArrowRight")
    numbers_shown = numbers(read(root))
    assert numbers_shown[-1] == pytest.approx(Q[1] @ K[1], abs=1e-5)
