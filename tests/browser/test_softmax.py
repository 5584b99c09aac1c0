"""SoftmaxLab by mouse, keys and typing: it shows what NumPy computes, and Python reads it."""

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, press, slide_by_keys, slider
from helpers.attention import softmax
from helpers.widgets.softmax import SoftmaxLab

CELL = """
from helpers.widgets.softmax import SoftmaxLab
lab = SoftmaxLab([0.9544, 1.495, -0.7071, 2.0], ["your", "journey", "starts", "here"], d_k=4)
lab
"""
LOGITS = [0.9544, 1.495, -0.7071, 2.0]


@pytest.fixture(scope="module")
def shown(lab):
    return lab.run(CELL)


@pytest.fixture
def notebook(shown):
    reset(shown.widget(0))
    return shown


def reset(root):
    root.get_by_role("button", name="reset").click()
    frames(root.page)


def logit(root, label: str):
    return slider(root, f"logit of {label}")


def typed(root, label: str):
    return root.get_by_role("spinbutton", name=f"logit of {label}, typed")


def shows(root, logits, temperature=1.0, d_k=4):
    """Bars, numbers, entropy and gradient are those of these logits."""
    p = softmax(np.array(logits) / d_k**0.5 / temperature)
    n, answers = len(p), p * (1 - p)
    np.testing.assert_allclose(
        numbers(root.locator("table")), np.stack([p, answers], axis=1).ravel(), atol=1e-5
    )
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum()
    expected = [entropy, np.log(n), answers.mean(), (1 - 1 / n) / n]
    np.testing.assert_allclose(numbers(root.locator(".read")), expected, atol=1e-5)
    widths = "all => all.map((bar) => parseFloat(bar.style.width))"
    bars = root.locator(".bar").evaluate_all(widths)
    np.testing.assert_allclose(bars, 100 * p, atol=1e-2)


def agrees(notebook, logits, temperature=1.0, d_k=4):
    """So does Python."""
    shows(notebook.widget(0), logits, temperature, d_k)
    assert notebook.value("lab.logits") == pytest.approx(logits)
    assert notebook.value("lab.temperature") == pytest.approx(temperature)
    assert notebook.value("lab.d_k") == d_k
    p = softmax(np.array(logits) / d_k**0.5 / temperature)
    np.testing.assert_allclose(notebook.value("lab.probabilities.tolist()"), p, atol=1e-6)


def test_at_first(notebook):
    agrees(notebook, LOGITS)
    boxes = notebook.widget(0).get_by_role("spinbutton")
    assert boxes.evaluate_all("all => all.map((b) => Number(b.value))") == LOGITS


def test_a_logit_is_dragged(notebook):
    root = notebook.widget(0)
    value = drag(logit(root, "journey"), 0.9)
    assert value > 3
    agrees(notebook, [LOGITS[0], value, *LOGITS[2:]])
    assert float(typed(root, "journey").input_value()) == value


def test_a_logit_is_moved_by_keys(notebook):
    root = notebook.widget(0)
    value = slide_by_keys(logit(root, "here"), -1.5)
    assert value == pytest.approx(-1.5)
    agrees(notebook, [*LOGITS[:3], -1.5])
    text = logit(root, "here").get_attribute("aria-valuetext")
    p = softmax(np.array([*LOGITS[:3], -1.5]) / 2)[3]
    assert text == f"-1.50, probability {p:.4f}"


def test_a_logit_is_typed(notebook):
    root = notebook.widget(0)
    box = typed(root, "starts")
    box.fill("12.345678")
    frames(root.page)
    agrees(notebook, [*LOGITS[:2], 12.345678, LOGITS[3]])
    assert box.input_value() == "12.345678"  # not rounded under the reader's fingers
    for nothing in ("", "1e999"):
        box.fill(nothing)
        frames(root.page)
        agrees(notebook, [*LOGITS[:2], 12.345678, LOGITS[3]])
    box.blur()
    frames(root.page)
    assert box.input_value() == "12.3457"


def test_temperature_and_width_are_moved(notebook):
    root = notebook.widget(0)
    temperature = 10 ** slide_by_keys(slider(root, "temperature"), -0.3)
    agrees(notebook, LOGITS, temperature)
    press(slider(root, "d_k"), "ArrowRight", "ArrowRight")
    agrees(notebook, LOGITS, temperature, 16)
    press(slider(root, "d_k"), "End")
    agrees(notebook, LOGITS, temperature, 1024)
    temperature = 10 ** drag(slider(root, "temperature"), 0.85)
    agrees(notebook, LOGITS, temperature, 1024)
    reset(root)
    agrees(notebook, LOGITS)
    assert numbers(root.locator(".slider")).tolist() == [1, 4]


def test_python_sets(notebook):
    notebook.value("[lab.set_trait('logits', [0, 1, 2, 3]), lab.set_trait('temperature', 0.7)]")
    notebook.value("lab.set_trait('d_k', 5)")
    frames(notebook.page)
    agrees(notebook, [0, 1, 2, 3], 0.7, 5)
    controls = numbers(notebook.widget(0).locator(".slider"))
    assert controls.tolist() == [0.7, 5]  # what was set, though it lies between two steps


def test_every_move_of_a_drag_is_shown(notebook):
    """Sixty input events, one per frame: sixty different pictures."""
    root = notebook.widget(0)
    seen = logit(root, "your").evaluate(
        """async (input) => {
          const seen = new Set();
          for (let i = 0; i < 60; i++) {
            input.value = -3 + i / 10;
            input.dispatchEvent(new Event("input"));
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
            seen.add(input.closest("tr").querySelector("data").value);
          }
          return seen.size;
        }"""
    )
    assert seen == 60


@pytest.mark.parametrize(
    "logits, labels, options",
    [
        ([3.0], None, {}),
        ([800, -800, 0], None, {"temperature": 0.01}),
        (np.linspace(-1, 1, 12), [f"{'long ' * i}label" for i in range(12)], {"d_k": 3}),
    ],
)
@pytest.mark.parametrize("width", [1000, 460])
def test_one_extreme_and_many(page_of, logits, labels, options, width):
    page = page_of(SoftmaxLab(logits, labels, **options))
    page.set_viewport_size({"width": width, "height": 900})
    frames(page, 3)
    root = page.locator(".step")
    shows(root, logits, **({"d_k": 1} | options))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    table, box = root.locator("table").bounding_box(), root.bounding_box()
    assert table["x"] + table["width"] <= box["x"] + box["width"]


def test_saved_without_a_kernel_it_still_answers(page_of, shown):
    root = page_of(shown.save()).locator(".step")
    reset(root)
    value = drag(logit(root, "your"), 0.1)
    shows(root, [value, *LOGITS[1:]])


# Of every two things in a line of the table that stand side by side, those less than 8 pixels apart
# (a text's box is that of its letters, not of its cell).
TOUCHING = """table => [...table.rows].flatMap((line) => {
  const boxes = [...line.cells].filter((cell) => cell.hasChildNodes()).map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return { text: cell.textContent, ...range.getBoundingClientRect().toJSON() };
  });
  return boxes.flatMap((a, i) => boxes.slice(i + 1)
    .filter((b) => Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top))
    .filter((b) => Math.max(b.left - a.right, a.left - b.right) < 8)
    .map((b) => `${a.text} | ${b.text}`));
})"""


@pytest.mark.parametrize("width", [390, 460, 620, 1400])
def test_bars_have_room_and_numbers_stand_apart(page_of, width):
    """On a phone too: a full bar is 100 pixels wide, and no heading or number touches the next."""
    page = page_of(SoftmaxLab([9.0, -1, 0.5], ["your", "journey", "starts"]))
    page.set_viewport_size({"width": width, "height": 900})
    frames(page, 3)
    root = page.locator(".step")
    assert root.locator(".bar").first.bounding_box()["width"] >= 100
    assert root.locator("table").evaluate(TOUCHING) == []
