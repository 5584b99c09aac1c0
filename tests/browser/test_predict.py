"""predict() by mouse and keys: in JupyterLab, saved and not run again, and offline."""

import pytest

from browser.harness import frames, press

CELLS = [
    """import numpy as np
from helpers.widgets.predict import predict
half = predict("How probable is heads?", [1, np.float32(1 / 3), 1 / 2],
               answer=np.mean([0, 1]), reason="Heads is one of 2 sides: 0.5000.")
half""",
    'bare = predict("Which?", ["$x$", "<b>y</b>", "z"], answer="z")\nbare',
]


@pytest.fixture(scope="module")
def notebook(lab):
    return lab.run(*CELLS)


@pytest.fixture(scope="module")
def saved(notebook):
    return notebook.save()


def click(root, name: str) -> None:
    root.get_by_role("button", name=name, exact=True).click()
    frames(root.page)


def verdict(root) -> str:
    return " ".join(root.get_by_role("status").inner_text().split())


def choose_until_right(root) -> None:
    """By keys: nothing, a wrong answer, the reason, the right answer."""
    assert root.get_by_role("group", name="How probable is heads?").count() == 1
    assert verdict(root) == "Choose an answer, then check it."
    click(root, "Check")
    assert verdict(root) == "Choose an answer, then check it."
    radio = root.get_by_role("radio")
    press(radio.first, "Space")
    press(root.get_by_role("button", name="Check"), "Enter")
    assert verdict(root) == "Not this one. Try again."
    assert "Not this one." in root.locator("label").first.inner_text()
    press(radio.first, "ArrowDown")
    assert radio.nth(1).is_checked() and verdict(root) == ""
    press(root.get_by_role("button", name="Show the reason"), "Enter")
    assert verdict(root) == "Heads is one of 2 sides: 0.5000."
    assert root.get_by_role("button", name="Check").evaluate("b => b.matches(':focus')")
    press(radio.nth(1), "ArrowDown")
    press(root.get_by_role("button", name="Check"), "Space")
    assert verdict(root) == "Right. Heads is one of 2 sides: 0.5000."
    assert "Right." in root.locator("label").nth(2).inner_text()
    assert radio.nth(2).is_checked() and radio.nth(2).is_enabled()
    assert radio.first.is_disabled() and radio.nth(1).is_disabled()
    assert not root.get_by_role("button", name="Show the reason").is_visible()


def test_live(notebook, saved):
    choose_until_right(notebook.widget(0))
    assert notebook.value("half.chosen") == "0.5000"


def test_what_was_checked_is_saved(lab, notebook, saved):
    root = notebook.widget(1)
    root.get_by_label("$x$").check()
    click(root, "Check")
    assert verdict(root) == "Not this one. Try again."
    assert not root.get_by_role("button", name="Show the reason").is_visible()
    root.get_by_label("z").check()
    click(root, "Check")
    assert verdict(root) == "Right."
    again = lab.open(notebook.save())
    assert verdict(again.widget(1)) == "Right."
    assert again.widget(1).get_by_label("z").is_checked()


def test_saved_and_not_run_again(lab, saved):
    choose_until_right(lab.open(saved).widget(0))


def test_offline(page_of, saved):
    choose_until_right(page_of(saved).locator(".step").first)


def test_by_mouse_on_the_words(page_of, saved):
    root = page_of(saved).locator(".step").nth(1)
    root.get_by_text("<b>y</b>").click()
    click(root, "Check")
    assert verdict(root) == "Not this one. Try again."
    assert root.locator("b").count() == 0
