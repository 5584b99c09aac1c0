"""MatrixProduct by mouse and keys: what it adds up is what NumPy computes."""

import re

import numpy as np
import pytest

from browser.harness import frames, numbers, pixels, press
from workshop.colours import STRONGEST
from workshop.widgets.product import MatrixProduct

CELLS = [
    """import numpy as np
from workshop.widgets.product import MatrixProduct
rng = np.random.default_rng(7)
tokens = "your journey starts with one step".split()
Q, K = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
names = ("Q", "K", "scores")
product = MatrixProduct(Q, K, transposed=True, rows=tokens, columns=tokens, names=names)
product"""
]
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


@pytest.fixture
def widget(notebook, saved):
    """The widget as it stood at first: the first cell, all its products."""
    for cell in ("(5, 5)", "(0, 0)"):
        notebook.value(f"product.set_trait('selected', {cell})")
    notebook.page.mouse.move(0, 0)
    notebook.page.locator(".step canvas").nth(2).blur()
    frames(notebook.page)
    return notebook.widget(0)


def grids(root):
    return root.locator("canvas[tabindex='0']").all()


def read(root):
    return root.locator(".read")


def rgb(text: str) -> np.ndarray:
    """A computed colour, "rgb(1, 2, 3)" or "color(srgb 0.1 0.2 0.3)", from 0 to 255."""
    numbers = np.array(re.findall(r"[\d.]+", text)[:3], float)
    return 255 * numbers if text.startswith("color(") else numbers


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


def test_the_mouse_reads_and_keeps_a_cell(notebook, widget):
    a, b, result = grids(widget)
    text = read(widget).inner_text().split("\n")
    assert text[0] == "scores, row “your”, column “your”"
    for canvas, x, cell in (
        (result, 0.97, (5, 5, 3)),
        (a, 0.95, (5, 0, 3)),  # the last row, third column: the running sum up to there
        (a, 0.5, (5, 0, 2)),
        (b, 0.97, (0, 5, 3)),
    ):
        hover(canvas, x, 0.95)
        adds_up(widget, *cell)
    widget.page.mouse.move(0, 0)
    frames(widget.page)
    adds_up(widget, 0, 0)
    hover(result, 0.97, 0.95)
    widget.page.mouse.down()
    widget.page.mouse.up()
    widget.page.mouse.move(0, 0)
    frames(widget.page)
    adds_up(widget, 5, 5)
    assert selected(notebook) == (5, 5)


def test_buttons_walk_forth_and_back_over_all_cells(notebook, widget):
    forth = widget.get_by_role("button", name="next product")
    back = widget.get_by_role("button", name="back")
    for t in range(8):
        press(forth, "Enter")
        adds_up(widget, 0, t // 3, t % 3 + 1)
    assert selected(notebook) == (0, 2)
    for t in reversed(range(7)):
        press(back, "Enter")
        adds_up(widget, 0, t // 3, t % 3 + 1)
    press(back, "Enter")
    adds_up(widget, 5, 5)  # before the first comes the last
    press(forth, "Enter")
    adds_up(widget, 0, 0, 1)


def test_a_finger_keeps_a_cell(page_of):
    page = page_of(MatrixProduct(Q, K.T))
    canvas = grids(page.locator(".step"))[2]
    canvas.evaluate(TAP, [0.97, 0.95])
    frames(page)
    adds_up(page.locator(".step"), 5, 5)
    canvas.evaluate(TAP, [0.97, 0.95])
    frames(page)
    adds_up(page.locator(".step"), 5, 5, 1)


def test_play_goes_on_until_paused(widget):
    widget.get_by_role("button", name="play").click()
    widget.page.wait_for_function(
        "r => r.querySelector('.read').textContent.includes('product 2 of 3')",
        arg=widget.element_handle(),
    )
    assert read(widget).get_attribute("aria-live") == "off"
    widget.get_by_role("button", name="pause").click()
    stopped = numbers(read(widget)).tolist()
    widget.page.wait_for_timeout(700)
    assert numbers(read(widget)).tolist() == stopped
    assert read(widget).get_attribute("aria-live") == "polite"


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
    root, count = page_of(MatrixProduct(A, B)).locator(".step"), np.shape(A)[1]
    press(root.get_by_role("button", name="next product"), *["Enter"] * count)
    assert read(root).inner_text().split("\n")[1].endswith(written)
    assert f"product {count} of {count}" in read(root).inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_largest_number_has_most_of_the_colour_of_its_title(lab, notebook, widget, theme):
    lab.theme(theme)
    lab.page.wait_for_timeout(700)  # it draws itself again, in the theme's colours
    paper = rgb(widget.evaluate("e => getComputedStyle(e).backgroundColor"))
    titles = widget.locator(".product > div > span").all()
    for title, canvas in zip(titles, grids(widget), strict=True):
        colour = rgb(title.evaluate("e => getComputedStyle(e).color"))
        colour = STRONGEST * colour + (1 - STRONGEST) * paper
        near = np.abs(pixels(canvas)[..., :3] - colour).max(axis=-1) <= 1.5
        assert near.sum() > 200, title.inner_text()
    lab.theme("light")


def test_arrow_keys_move_over_the_result(anywhere):
    (root,) = anywhere
    result = grids(root)[2]
    before = [pixels(canvas) for canvas in grids(root)]
    press(result, "Escape", "Home", "PageUp", "ArrowRight", "ArrowRight", "ArrowDown")
    adds_up(root, 1, 2)
    assert all((pixels(c) != old).any() for old, c in zip(before, grids(root), strict=True))
    press(result, "Enter", "End", "PageDown", "ArrowRight")
    adds_up(root, 5, 5)
    press(result, "Escape")
    adds_up(root, 1, 2)  # the cell that was kept
