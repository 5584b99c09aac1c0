"""Every control of AttentionHeatmap in JupyterLab: point, press, drag, compare with NumPy."""

import re

import matplotlib
import numpy as np
import pytest
from PIL import Image

from browser.harness import drag, frames, numbers, pixels, press, slide_by_keys, slider
from helpers.attention import causal_mask, masked_softmax, softmax

SETUP = """
import numpy as np
from helpers.attention import softmax
from helpers.widgets import AttentionHeatmap
tokens = "Your journey starts with one step".split()
scores = 2 * np.random.default_rng(11).normal(size=(2, 3, 6, 6))
many = 3 * np.random.default_rng(12).normal(size=(12, 64, 64))
large = softmax(np.random.default_rng(13).normal(size=(2, 512, 512)))
large[0, 300, 400] = 0.9
"""
SCORES = 2 * np.random.default_rng(11).normal(size=(2, 3, 6, 6))
MANY = 3 * np.random.default_rng(12).normal(size=(12, 64, 64))
WEIGHTS, RAW, ACROSS, MANY_CELL, LARGE = range(1, 6)


@pytest.fixture(scope="module")
def notebook(lab):
    return lab.run(
        SETUP,
        "weights = AttentionHeatmap(softmax(scores), tokens)\nweights",
        "raw = AttentionHeatmap(scores=scores[0], tokens=tokens, d_k=3)\nraw",
        "AttentionHeatmap(softmax(scores[0, 0, :2, :5]), tokens[:2], key_tokens=tokens[:5])",
        "AttentionHeatmap(scores=many, tokens=[f't{i}' for i in range(64)])",
        "AttentionHeatmap(large, [f'token {i}' for i in range(512)])",
    )


def canvas(root):
    return root.locator(".grid canvas")


def menu(root, name):
    return root.get_by_role("combobox", name=name)


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


def test_arrow_keys_read_every_weight(notebook):
    root = notebook.widget(WEIGHTS)
    menu(root, "layer").select_option("1")
    menu(root, "head").select_option("2")
    frames(notebook.page)
    assert np.allclose(read_all(root, 6, 6), softmax(SCORES)[1, 2], atol=1e-5, rtol=0)
    assert notebook.value("[weights.layer, weights.head]") == [1, 2]


def test_the_mouse_reads_the_cell_it_points_at(notebook):
    root = notebook.widget(ACROSS)
    expected = softmax(SCORES[0, 0, :2, :5])
    box = canvas(root).bounding_box()
    seen = set()
    for x in np.arange(4, box["width"], 15):
        canvas(root).hover(position={"x": float(x), "y": box["height"] - 10})
        frames(notebook.page)
        text = root.locator(".read").inner_text()
        if match := re.match(r"“(.+)” → “(.+)”: weight (\d\.\d{4})$", text):
            j = "Your journey starts with one".split().index(match[2])
            assert match[1] == "journey"
            assert abs(numbers(root.locator(".read"))[0] - expected[1, j]) < 1e-5
            seen.add(j)
    assert seen == set(range(5))


def test_scores_become_weights(notebook):
    root = notebook.widget(RAW)
    menu(root, "head").select_option("1")
    x = SCORES[0, 1]
    assert np.allclose(read_all(root, 6, 6), x, atol=1e-5, rtol=0)
    root.get_by_label("÷ √d_k").check()
    assert np.allclose(read_all(root, 6, 6), x / 3**0.5, atol=1e-5, rtol=0)
    root.get_by_label("causal mask").check()
    root.get_by_label("softmax").check()
    temperature = 10 ** slide_by_keys(slider(root, "temperature"), -0.3)
    assert abs(temperature - 0.5012) < 1e-3
    expected = masked_softmax(x / 3**0.5 / float(f"{temperature:.6g}"), causal_mask(6))
    assert np.allclose(read_all(root, 6, 6), expected, atol=1e-5, rtol=0)
    live = "[raw.scaled, raw.causal, raw.softmax, raw.matrix.tolist()]"
    *switches, matrix = notebook.value(live)
    assert switches == [True, True, True]
    assert np.allclose(matrix, expected, atol=1e-5, rtol=0)


def test_dragging_the_temperature_changes_the_picture_and_python_knows(notebook):
    root = notebook.widget(RAW)
    root.get_by_label("softmax").check()
    before = pixels(canvas(root))
    position = drag(slider(root, "temperature"), 0.9)
    assert position > 0.5
    assert (pixels(canvas(root)) != before).any()
    assert np.isclose(notebook.value("raw.temperature"), 10**position, rtol=1e-5)


def test_python_moves_the_controls(notebook):
    root = notebook.widget(RAW)
    root.get_by_label("softmax").check()
    notebook.value("raw.set_trait('temperature', 2.0)")
    notebook.value("raw.set_trait('softmax', False)")
    shown = "e => e.querySelector('.slider data').value === '2'"
    notebook.page.wait_for_function(shown, arg=root.element_handle())
    assert not root.get_by_label("softmax").is_checked()


def test_selecting_pins_a_row_and_tells_python(notebook):
    root = notebook.widget(WEIGHTS)
    menu(root, "layer").select_option("0")
    menu(root, "head").select_option("0")
    press(canvas(root), "Escape", "ArrowDown", "ArrowDown", "ArrowRight", "Enter")
    selected = notebook.value("weights.selected")
    expected = softmax(SCORES)[0, 0]
    place = {"layer": 0, "head": 0, "query": 1, "key": 1}
    assert {key: selected[key] for key in place} == place
    assert abs(selected["weight"] - expected[1, 1]) < 1e-5
    assert np.allclose(bar_heights(root, 6), expected[1] / expected[1].max(), atol=0.04)
    press(canvas(root), "Escape")
    assert "journey” is pinned" in root.locator(".read").inner_text()
    top = np.sort(expected[1])[::-1][:5]
    assert np.allclose(numbers(root.locator(".read")), top, atol=1e-5)
    press(canvas(root), "ArrowDown", "ArrowDown", "Enter")  # the same row again: no longer pinned
    assert not root.locator(".pins").is_visible()


def bar_heights(root, count):
    """The heights of the bars over the columns of the grid, as shares of the highest."""
    drawn = pixels(root.locator(".pins"))[..., 3] > 128
    assert drawn.shape[1] == pixels(canvas(root)).shape[1]
    left = drawn.any(axis=0).argmax()
    wide = (drawn.shape[1] - left) / count
    heights = np.array([drawn[:, int(left + (j + 0.3) * wide)].sum() for j in range(count)])
    return heights / heights.max()


def test_colours_are_those_of_cividis(notebook):
    root = notebook.widget(ACROSS)
    press(canvas(root), "Escape")
    notebook.page.mouse.move(0, 0)
    frames(notebook.page)
    expected = softmax(SCORES[0, 0, :2, :5])
    image = pixels(canvas(root)).astype(int)
    for i, j in np.ndindex(2, 5):
        colour = matplotlib.colormaps["cividis"](expected[i, j] / expected.max(), bytes=True)[:3]
        near = np.abs(image[..., :3] - np.array(colour, int)).max(axis=-1) <= 9
        assert near.sum() > 0.4 * 24 * 40, (i, j)


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
    assert small.count() == 6
    root.get_by_role("button", name="layer 1, head 1").click()
    frames(notebook.page)
    assert notebook.value("[weights.layer, weights.head]") == [1, 1]
    assert menu(root, "layer").input_value() == menu(root, "head").input_value() == "1"
    assert small.evaluate_all("all => all.map(b => b.ariaPressed)").count("true") == 1
    assert small.nth(4).get_attribute("aria-pressed") == "true"
    assert np.allclose(read_all(root, 6, 6), softmax(SCORES)[1, 1], atol=1e-5, rtol=0)
    image = pixels(small.nth(4).locator("canvas"))
    assert image.shape[:2] == (6, 6)
    order = image[..., 1].ravel().astype(int)[softmax(SCORES)[1, 1].ravel().argsort()]
    assert (np.diff(order) >= -1).all()  # brighter where the weight is larger


@pytest.mark.parametrize("width", [1000, 480])
def test_aggregated_cells_keep_the_largest_and_read_exactly(notebook, width):
    """512 cells on fewer pixels: one large weight still shows, and its number is its own."""
    notebook.page.set_viewport_size({"width": width, "height": 1000})
    root = notebook.widget(LARGE)
    canvas(root).scroll_into_view_if_needed()
    frames(notebook.page, 4)
    image = pixels(canvas(root)).astype(int)
    bright = np.argwhere((image[..., 0] > 240) & (image[..., 1] > 220) & (image[..., 2] < 90))
    assert 0 < len(bright) <= 9
    y, x = bright.mean(axis=0) + 0.5
    canvas(root).hover(position={"x": x, "y": y})
    frames(notebook.page)
    read = root.locator(".read")
    i, j = (int(n) for n in re.findall(r"token (\d+)", read.inner_text()))
    assert abs(i - 300) <= 1
    assert abs(j - 400) <= 2  # half a pixel each in the narrow window
    press(canvas(root), *["ArrowDown" if i < 300 else "ArrowUp"] * abs(i - 300))
    press(canvas(root), *["ArrowRight" if j < 400 else "ArrowLeft"] * abs(j - 400))
    text, weight = read.inner_text(), numbers(read)[0]
    notebook.page.set_viewport_size({"width": 1000, "height": 1000})
    assert text.startswith("“token 300” → “token 400”: weight 0.9")
    assert abs(weight - 0.9) < 1e-5


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_export(notebook, kind, tmp_path):
    root = notebook.widget(ACROSS)
    with notebook.page.expect_download() as download:
        root.get_by_role("button", name=kind).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    if kind == "PNG":
        image = Image.open(path)
        assert image.size == tuple(pixels(canvas(root)).shape[1::-1])
        assert len(image.convert("RGB").getcolors(100_000)) > 10
    else:
        text = path.read_text("utf-8")
        assert path.suffix == ".svg"
        assert text.startswith("<svg")
        labels = ["Your", "journey", "Your", "journey", "starts", "with", "one"]
        assert re.findall(r">(\w+)</text>", text) == labels


def test_keys_are_not_taken_by_jupyterlab(notebook):
    """In command mode X cuts a cell, J and the arrows move on: not from within a widget."""
    root = notebook.widget(ACROSS)
    press(canvas(root), "ArrowDown", "ArrowDown", "x", "j", "Enter")
    assert notebook.page.evaluate("window.panel.content.model.cells.length") == 6
    assert canvas(root).evaluate("c => document.activeElement === c")
    assert "journey" in root.locator(".read").inner_text()
