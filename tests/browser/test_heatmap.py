"""AttentionHeatmap by mouse and keys: point, press, drag, compare with NumPy; wherever it lives."""

import re

import numpy as np
import pytest
from PIL import Image

from browser.harness import drag, frames, numbers, pixels, press, slide_by_keys, slider
from helpers.attention import causal_mask, masked_softmax, softmax
from workshop.colours import STRONGEST

SETUP = """
import numpy as np
from helpers.attention import softmax
from workshop.widgets import AttentionHeatmap
tokens = "Your journey starts with one step".split()
scores = 2 * np.random.default_rng(11).normal(size=(2, 3, 6, 6))
many = 3 * np.random.default_rng(12).normal(size=(12, 64, 64))
large = softmax(np.random.default_rng(13).normal(size=(2, 512, 512)))
large[0, 300, 400] = 0.9
"""
SCORES = 2 * np.random.default_rng(11).normal(size=(2, 3, 6, 6))
MANY = 3 * np.random.default_rng(12).normal(size=(12, 64, 64))
WEIGHTS, RAW, ACROSS, MANY_CELL, LARGE = range(1, 6)
CELLS = [
    SETUP,
    "weights = AttentionHeatmap(softmax(scores), tokens)\nweights",
    "raw = AttentionHeatmap(scores=scores[0], tokens=tokens, d_k=3)\nraw",
    "AttentionHeatmap(softmax(scores[0, 0, :2, :5]), tokens[:2], key_tokens=tokens[:5])",
    "AttentionHeatmap(scores=many, tokens=[f't{i}' for i in range(64)])",
    "AttentionHeatmap(large, [f'token {i}' for i in range(512)])",
]


def canvas(root):
    return root.locator(".grid canvas")


def menu(root, name):
    return root.get_by_role("combobox", name=name)


COLOURS = """(root, thing) => [`var(--${thing})`, "var(--paper)"].map((colour) => {
  const swatch = root.appendChild(document.createElement("i"));
  swatch.style.color = `color-mix(in srgb, ${colour}, transparent 0%)`;  // color(srgb r g b)
  const { color } = getComputedStyle(swatch);
  swatch.remove();
  return color.match(/[\\d.]+/g).slice(0, 3).map((x) => 255 * x);
})"""


def tints(array, largest, colour, paper):
    """The grounds of a matrix's cells: (…, 3) from 0 to 255; scores below 0 ask for no colour."""
    shares = STRONGEST * np.clip(array / largest, 0, 1)[..., None]
    return shares * colour + (1 - shares) * paper


def read_all(root, rows, columns):
    """The numbers of all cells, read with the arrow keys: (rows, columns)."""
    press(canvas(root), "Escape", "ArrowDown")  # enters at the first cell
    found = np.empty((rows, columns))
    for i in range(rows):
        for j in range(columns):
            found[i, j] = numbers(root.locator(".read"))[0]
            press(canvas(root), "ArrowRight")
        press(canvas(root), "Home", *["ArrowDown"] * (i < rows - 1))
    return found


def test_the_mouse_reads_the_cell_it_points_at(notebook, saved):
    root, seen = notebook.widget(ACROSS), {}
    box = canvas(root).bounding_box()
    for x in np.arange(4, box["width"], 15):
        canvas(root).hover(position={"x": float(x), "y": box["height"] - 10})
        frames(notebook.page)
        text = root.locator(".read").inner_text()
        if match := re.match(r"“journey” → “(.+)”: weight \d\.\d{4}$", text):
            seen[match[1]] = numbers(root.locator(".read"))[0]
    assert list(seen) == "Your journey starts with one".split()
    assert np.allclose(list(seen.values()), softmax(SCORES[0, 0, :2, :5])[1], atol=1e-5, rtol=0)


def test_python_and_the_controls_share_their_values(notebook):
    root = notebook.widget(RAW)
    root.get_by_label("softmax").check()
    position = drag(slider(root, "temperature"), 0.9)
    assert np.isclose(notebook.value("raw.temperature"), 10**position, rtol=1e-5)
    notebook.value("raw.set_trait('temperature', 2.0) or raw.set_trait('softmax', False)")
    shown = "e => e.querySelector('.slider data').value === '2'"
    notebook.page.wait_for_function(shown, arg=root.element_handle())
    assert not root.get_by_label("softmax").is_checked()
    notebook.value("raw.set_trait('temperature', 1.0)")
    frames(notebook.page, 5)


def test_selecting_pins_a_row_and_tells_python(notebook):
    root = notebook.widget(WEIGHTS)
    press(canvas(root), "Escape", "ArrowDown", "ArrowDown", "ArrowRight", "Enter")
    selected, expected = notebook.value("weights.selected"), softmax(SCORES)[0, 0]
    assert abs(selected.pop("weight") - expected[1, 1]) < 1e-5
    assert selected == {"layer": 0, "head": 0, "query": 1, "key": 1}
    assert root.locator(".pins").is_visible()
    press(canvas(root), "Escape")
    assert "journey” is pinned" in root.locator(".read").inner_text()
    top = np.sort(expected[1])[::-1][:5]
    assert np.allclose(numbers(root.locator(".read")), top, atol=1e-5)
    press(canvas(root), "ArrowDown", "ArrowDown", "Enter")  # the same row again: no longer pinned
    assert not root.locator(".pins").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("cell", "thing"), [(WEIGHTS, "weights"), (RAW, "scores")])
def test_cells_and_heads_have_tints_on_the_ground_of_the_page(lab, notebook, theme, cell, thing):
    """None of its thing's colour at 0 and below, most of it at the largest number of all heads."""
    lab.theme(theme)
    lab.page.wait_for_timeout(700)  # it draws itself again, in the theme's colours
    root = notebook.widget(cell)
    menu(root, "layer").select_option("0") if cell == WEIGHTS else None
    menu(root, "head").select_option("0")
    menu(root, "view").select_option(label="all heads")
    press(canvas(root), "Escape")
    frames(notebook.page)
    data = softmax(SCORES[0]) if cell == WEIGHTS else SCORES[0]
    colours = root.evaluate(COLOURS, thing)
    for k, small in enumerate(root.locator(".small canvas").all()):
        expected = tints(data[k], np.abs(data).max(), *colours)
        assert np.abs(pixels(small)[..., :3] - expected).max() <= 4, k
    image = pixels(canvas(root)).astype(int)[..., :3]
    for colour in tints(data[0], np.abs(data[0]).max(), *colours).reshape(-1, 3):
        assert (np.abs(image - colour).max(axis=-1) <= 4).sum() > 300
    lab.theme("light")


def test_exact_numbers_follow_the_packed_ones(notebook):
    """49,152 scores travel in steps first; the kernel then sends all their digits."""
    root = notebook.widget(MANY_CELL)
    menu(root, "head").select_option("7")
    press(canvas(root), "Escape", "End", "PageDown", "Home", *["ArrowRight"] * 3)
    assert root.locator(".read").inner_text().startswith("“t63” → “t3”: score")
    assert abs(numbers(root.locator(".read"))[0] - MANY[7, 63, 3]) < 1e-5


def test_small_multiples_choose_the_head(notebook):
    root = notebook.widget(WEIGHTS)
    menu(root, "view").select_option(label="all layers")
    frames(notebook.page)
    small = root.locator(".small button")
    root.get_by_role("button", name="layer 1, head 1").click()
    frames(notebook.page)
    assert notebook.value("[weights.layer, weights.head]") == [1, 1]
    pressed = small.evaluate_all("all => all.map(b => b.ariaPressed)")
    assert pressed == ["false"] * 4 + ["true", "false"]
    assert np.allclose(read_all(root, 6, 6), softmax(SCORES)[1, 1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("width", [1000, 480])
def test_aggregated_cells_keep_the_largest_and_read_exactly(notebook, width):
    """512 cells on fewer pixels: one large weight still shows, and its number is its own."""
    notebook.page.set_viewport_size({"width": width, "height": 1000})
    root, read = notebook.widget(LARGE), notebook.widget(LARGE).locator(".read")
    canvas(root).scroll_into_view_if_needed()
    frames(notebook.page, 4)
    image = pixels(canvas(root)).astype(int)
    strong = np.argwhere((image[..., 0] - image[..., 1] > 80) & (image[..., 2] > 100))
    assert 0 < len(strong) <= 9
    y, x = strong.mean(axis=0) + 0.5
    canvas(root).hover(position={"x": x, "y": y})
    frames(notebook.page)
    i, j = (int(n) for n in re.findall(r"token (\d+)", read.inner_text()))
    assert abs(i - 300) <= 1 and abs(j - 400) <= 2  # half a pixel each in the narrow window
    press(canvas(root), *["ArrowDown" if i < 300 else "ArrowUp"] * abs(i - 300))
    press(canvas(root), *["ArrowRight" if j < 400 else "ArrowLeft"] * abs(j - 400))
    text, weight = read.inner_text(), numbers(read)[0]
    notebook.page.set_viewport_size({"width": 1000, "height": 1000})
    assert text.startswith("“token 300” → “token 400”: weight 0.9") and abs(weight - 0.9) < 1e-5


def test_the_grid_is_saved_as_a_picture(notebook):
    root = notebook.widget(ACROSS)
    with notebook.page.expect_download() as download:
        root.get_by_role("button", name="PNG").click()
    assert Image.open(download.value.path()).size == tuple(pixels(canvas(root)).shape[1::-1])


def test_keys_are_not_taken_by_jupyterlab(notebook):
    """In command mode X cuts a cell, J and the arrows move on: not from within a widget."""
    root = notebook.widget(ACROSS)
    press(canvas(root), "ArrowDown", "ArrowDown", "x", "j", "Enter")
    assert notebook.page.evaluate("window.panel.content.model.cells.length") == 6
    assert canvas(root).evaluate("c => document.activeElement === c")


def test_scores_become_weights(anywhere):
    """Every control in turn, by keys and by mouse."""
    root, x = anywhere[RAW - 1], SCORES[0, 1]
    menu(root, "head").select_option("1")
    assert np.allclose(read_all(root, 6, 6), x, atol=1e-5, rtol=0)
    root.get_by_label("÷ √d_k").check()
    root.get_by_label("causal mask").check()
    root.get_by_label("softmax").check()
    temperature = 10 ** slide_by_keys(slider(root, "temperature"), -0.3)
    expected = masked_softmax(x / 3**0.5 / float(f"{temperature:.6g}"), causal_mask(6))
    assert np.allclose(read_all(root, 6, 6), expected, atol=1e-5, rtol=0)
