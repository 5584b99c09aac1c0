"""Single steps in the machine: their knobs, what is dragged and typed, and that Python hears it."""

import numpy as np
import pytest

from browser.harness import frames, numbers, press, slide_by_keys, slider
from helpers.attention import softmax
from workshop import Machine, feed_forward_step, norm_step

SCORES = [0.9544, 1.495, -0.7071, 2.0]
CELLS = [
    """import numpy as np
from workshop import Machine, next_word_step, norm_step, positions_step, softmax_step
words = "your journey starts here".split()
X = np.array([[1.0, 0, 2], [0, 1, 3], [1, 0, 2], [2, 2, 0]])""",
    f's = Machine(softmax_step({SCORES}, d_k=4), words); s',
    "n = Machine(norm_step(X, lambda x: x[::-1] / 2), words); n",
    """w = Machine(next_word_step([[0, 3, 1, 0], [1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]]),
    "your journey", words, at="next")
w""",
    "p = Machine(positions_step(6), range(40), cell=('dot', 5, 2)); p",
]  # fmt: skip


def hand(root) -> str:
    return root.locator(".hand").inner_text()


def guess(root, word: str):
    return root.locator("button.guess", has_text=word)


def test_python_hears_the_knobs_of_a_softmax_and_what_is_dragged(notebook, saved):
    root = notebook.widget(1)
    press(slider(root, "d_k"), "ArrowRight", "ArrowRight")
    temperature = 10 ** slide_by_keys(slider(root, "temperature"), -0.3)
    notebook.value("setattr(s, 'cell', ['scores', 0, 3])")
    frames(root.page, 3)
    root.get_by_role("spinbutton", name="set this number").fill("-1.5")
    frames(root.page, 3)
    p = softmax(np.array([*SCORES[:3], -1.5]) / 4 / temperature)
    names = ("weights", "entropy", "mean")
    found = notebook.value(f"[s.values[name].tolist() for name in {names}]")
    np.testing.assert_allclose(found[0], [p], atol=1e-5)
    np.testing.assert_allclose(found[1], [[-(p * np.log(p)).sum()]], atol=1e-5)
    np.testing.assert_allclose(found[2], [[(p * (1 - p)).mean()]], atol=1e-5)
    assert "d_k = 16.0" in root.locator(".marks").inner_text()
    notebook.value("setattr(s, 'cell', ['entropy', 0, 0])")
    frames(root.page, 3)
    assert f"= {found[1][0][0]:.4f}" in hand(root) and "ln(" in hand(root)
    root.get_by_role("button", name="put all back").click()
    frames(root.page)
    assert numbers(root.locator(".slider")).tolist()[0] == 4


def test_gain_shift_and_switches_of_a_norm(notebook, saved):
    root = notebook.widget(2)
    gain = slide_by_keys(slider(root, "γ, gain"), 2)
    root.get_by_role("checkbox", name="residual").uncheck()
    frames(root.page)
    summed, deviations = notebook.value(
        "[n.values[x].tolist() for x in ('add', 'deviation after')]"
    )
    np.testing.assert_allclose(summed, np.array([[2, 2, 0], [1, 0, 2], [0, 1, 3], [1, 0, 2]]) / 2)
    np.testing.assert_allclose(deviations, gain, atol=1e-3)
    notebook.value("n.intervene('norm/shift', row=0, values=[0.5] * 3)")
    frames(root.page, 3)
    assert numbers(root.locator(".slider")).tolist() == [2, 0.5]
    marks = root.locator(".marks").inner_text()
    assert "γ, gain = 2.0" in marks and "β, bias = 0.5" in marks and "add off" in marks
    notebook.value("setattr(n, 'cell', ['norm/gain', 0, 1])")
    frames(root.page, 3)
    root.get_by_role("spinbutton", name="set this number").fill("3")
    frames(root.page, 3)
    np.testing.assert_allclose(notebook.value("n.values['norm'].std(0).tolist()")[1] > 0, True)
    notebook.value("n.put_back()")


def test_a_bar_pressed_is_the_next_word(notebook, saved):
    root = notebook.widget(3)
    assert notebook.value("w.output") == {"your": 0.5, "here": 0.5, "journey": 0, "starts": 0}
    assert guess(root, "starts").count() == 0  # it never follows
    guess(root, "your").click()
    frames(root.page, 3)
    assert notebook.value("w.text") == "your journey your"
    root.get_by_role("button", name="write a word").click()
    root.get_by_role("button", name="draw a word").click()
    frames(root.page, 3)
    *before, drawn = notebook.value("w.text").split()
    assert before == ["your", "journey", "your", "journey"] and drawn in ("your", "here")
    root.get_by_role("textbox", name="sentence").fill("journey here")
    frames(root.page, 3)
    assert root.get_by_role("button", name="nothing follows").is_disabled()
    notebook.value("setattr(w, 'text', 'your journey')")


def test_more_hands_tell_places_apart_that_few_confuse(notebook, saved):
    root = notebook.widget(4)
    assert "score of “2” for “5”" in hand(root) and "= 1.00" in hand(root)
    slide_by_keys(slider(root, "d_model"), 32)
    alike = notebook.value("(p.values['dot'][0, 6] / p.values['dot'][0, 0]).item()")
    assert notebook.value("p.values['positions'].shape[1]") == 32 and alike < 0.8
    notebook.value("p.put_back()")


@pytest.mark.parametrize("width", [620, 1400])
def test_a_step_has_room_on_every_screen(page_of, width):
    """Nothing is wider than the page."""
    X = np.arange(12.0).reshape(4, 3)
    network = feed_forward_step(X, X.T, X[:, 0], X, X[0])
    page = page_of(*(Machine(step, "a b c d".split()) for step in (network, norm_step(X, X))))
    page.set_viewport_size({"width": width, "height": 900})
    frames(page, 3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_steps_live_wherever_they_were_saved(anywhere):
    scores, norm, following, places = anywhere
    press(slider(scores, "d_k"), "ArrowRight")
    assert "d_k = 8.0" in scores.locator(".marks").inner_text()
    scores.get_by_role("button", name="put all back").click()
    norm.get_by_role("checkbox", name="norm").uncheck()
    frames(norm.page)
    assert "norm off" in norm.locator(".marks").inner_text()
    norm.get_by_role("button", name="put all back").click()
    guess(following, "here").click()
    frames(following.page, 3)
    assert following.get_by_role("button", name="nothing follows").is_disabled()
    assert "score of “2” for “5”" in hand(places)
