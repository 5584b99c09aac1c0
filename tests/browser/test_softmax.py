"""SoftmaxLab by mouse, keys and typing: it shows what NumPy computes, and Python reads it."""

import numpy as np
import pytest

from browser.harness import drag, frames, numbers, press, slide_by_keys, slider
from helpers.attention import softmax
from workshop.widgets.softmax import SoftmaxLab

CELLS = [
    """from workshop.widgets.softmax import SoftmaxLab
lab = SoftmaxLab([0.9544, 1.495, -0.7071, 2.0], ["your", "journey", "starts", "here"], d_k=4)
lab"""
]
LOGITS = [0.9544, 1.495, -0.7071, 2.0]


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
    *numbers_there, p = notebook.value(
        "[lab.logits, lab.temperature, lab.d_k, lab.probabilities.tolist()]"
    )
    assert numbers_there == [pytest.approx(logits), pytest.approx(temperature), d_k]
    expected = softmax(np.array(logits) / d_k**0.5 / temperature)
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_python_and_the_browser_share_what_is_moved_and_typed(notebook, saved):
    root = notebook.widget(0)
    agrees(notebook, LOGITS)
    value = drag(logit(root, "journey"), 0.9)
    assert value > 3 and float(typed(root, "journey").input_value()) == value
    agrees(notebook, [LOGITS[0], value, *LOGITS[2:]])
    reset(root)
    box = typed(root, "starts")
    for written in ("12.345678", "", "1e999"):  # the last two are no numbers: nothing changes
        box.fill(written)
        frames(root.page)
        agrees(notebook, [*LOGITS[:2], 12.345678, LOGITS[3]])
    box.blur()
    frames(root.page)
    assert box.input_value() == "12.3457"  # rounded, but not under the reader's fingers
    notebook.value("[lab.set_trait('logits', [0, 1, 2, 3]), lab.set_trait('temperature', 0.7)]")
    notebook.value("lab.set_trait('d_k', 5)")
    frames(notebook.page)
    agrees(notebook, [0, 1, 2, 3], 0.7, 5)
    controls = numbers(root.locator(".slider"))
    assert controls.tolist() == [0.7, 5]  # what was set, though it lies between two steps
    reset(root)


@pytest.mark.parametrize(
    "logits, labels, options",
    [
        ([3.0], None, {}),
        ([800, -800, 0], None, {"temperature": 0.01}),
        (np.linspace(-1, 1, 12), [f"{'long ' * i}label" for i in range(12)], {"d_k": 3}),
    ],
)
def test_one_extreme_and_many(page_of, logits, labels, options):
    page = page_of(SoftmaxLab(logits, labels, **options))
    page.set_viewport_size({"width": 460, "height": 900})
    frames(page, 3)
    root = page.locator(".step")
    shows(root, logits, **({"d_k": 1} | options))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    table, box = root.locator("table").bounding_box(), root.bounding_box()
    assert table["x"] + table["width"] <= box["x"] + box["width"]


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


def test_bars_have_room_and_numbers_stand_apart(page_of):
    """On a phone too: a full bar is 100 pixels wide, and no heading or number touches the next."""
    page = page_of(SoftmaxLab([9.0, -1, 0.5], ["your", "journey", "starts"]))
    for width in (390, 460, 620, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        frames(page, 3)
        root = page.locator(".step")
        assert root.locator(".bar").first.bounding_box()["width"] >= 100, width
        assert root.locator("table").evaluate(TOUCHING) == [], width


def test_it_shows_what_numpy_computes(anywhere):
    """Every control in turn, by keys and by mouse."""
    (root,) = anywhere
    reset(root)
    value = slide_by_keys(logit(root, "here"), -1.5)
    logits = [*LOGITS[:3], value]
    p = softmax(np.array(logits) / 2)[3]
    text = logit(root, "here").get_attribute("aria-valuetext")
    assert text == f"-1.50, probability {p:.4f}"
    temperature = 10 ** slide_by_keys(slider(root, "temperature"), -0.3)
    press(slider(root, "d_k"), "ArrowRight", "ArrowRight")
    shows(root, logits, temperature, 16)
    reset(root)
    shows(root, LOGITS)
