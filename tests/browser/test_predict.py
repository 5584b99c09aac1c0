"""predict() by mouse and keys: in JupyterLab, saved and not run again, offline."""

import nbformat
import pytest
from test_widgets_predict import ONE, TWO, TYPED

from browser.harness import frames, notebook_of, press

CELLS = [
    """import numpy as np
from workshop.widgets.predict import predict
half = predict("How probable is heads?", [1, np.float32(1 / 3), 1 / 2],
               answer=np.mean([0, 1]), reason="Heads is one of 2 sides: 0.5000.")
half""",
    'bare = predict("Which?", ["$x$", "<b>y</b>", "z"], answer="z")\nbare',
    f"""from workshop import matrix
typed = predict("Which weights?", answer={TWO}, reason="So they are.", drawn=[
    matrix([[0.42]], "weights", title="<img class=hostile>"), matrix([[1]])])
typed""",
    f'predict("Which one?", answer={ONE})',
]


def click(root, name: str) -> None:
    root.get_by_role("button", name=name, exact=True).click()
    frames(root.page)


def verdict(root) -> str:
    return " ".join(root.get_by_role("status").inner_text().split())


def test_what_was_checked_is_saved(lab, notebook, saved):
    """A choice may hold what looks like a formula or an element: it is text, and can be clicked."""
    root = notebook.widget(1)
    root.get_by_text("<b>y</b>").click()
    click(root, "Check")
    assert verdict(root) == "Not this one. Try again."
    assert not root.get_by_role("button", name="Show the reason").is_visible()
    root.get_by_label("z").check()
    click(root, "Check")
    assert verdict(root) == "Right."
    half = notebook.widget(0)
    half.get_by_role("radio").last.check()
    click(half, "Check")
    again = lab.open(notebook.save())
    assert verdict(again.widget(1)) == "Right." and again.widget(1).get_by_label("z").is_checked()
    assert verdict(again.widget(0)) == "Right. Heads is one of 2 sides: 0.5000."  # without asking


def opened_in(place, lab, saved, page_of, number):
    """A widget of the cells in a place, and its notebook if it has one."""
    if place == "offline":
        return page_of(saved).locator(".step").nth(number), None
    opened = lab.run(*CELLS) if place == "live" else lab.open(saved)
    return opened.widget(number), opened


PLACES = ["live", "saved and not run again", "offline"]


@pytest.mark.parametrize("place", PLACES)
def test_typing_until_it_is_right(lab, saved, page_of, place):
    """By keys; the pictures and the reason come after an answer, what is typed stays text."""
    root, opened = opened_in(place, lab, saved, page_of, 2)
    field, pictures = root.get_by_role("textbox", name="Type 2 numbers"), root.get_by_role("img")
    assert root.get_by_role("group", name="Which weights?").count() == 1
    press(field, "Enter")
    assert verdict(root) == "Type an answer, then check it." and not pictures.count()
    other = root.page.locator(".step").nth(3)
    for text, answer, wrong in TYPED:
        asked = root if answer == TWO else other
        asked.get_by_role("textbox").fill(text if wrong else "?")
        press(asked.get_by_role("textbox"), "Enter")
        assert verdict(asked).startswith(f"Not this one. {wrong}") and not pictures.count(), text
    assert not root.locator("b, .hostile").count()
    press(root.get_by_role("button", name="Show the reason"), "Enter")
    assert verdict(root) == "So they are." and pictures.count() == 2
    alt = "Matrix <img class=hostile>: 0.42."
    assert pictures.first.get_attribute("alt") == alt and not root.locator(".hostile").count()
    field.fill(TYPED[1][0])
    press(root.get_by_role("button", name="Check"), "Space")
    assert verdict(root) == "Right. So they are." and not field.is_editable()
    assert pictures.last.evaluate("image => image.naturalWidth") > 20
    assert place != "live" or opened.value("typed.verdict") == "Right."


@pytest.mark.parametrize("place", PLACES)
def test_choosing_until_it_is_right(lab, saved, page_of, place):
    """By keys: nothing, a wrong answer, the reason, the right answer."""
    root, opened = opened_in(place, lab, saved, page_of, 0)
    assert root.get_by_role("group", name="How probable is heads?").count() == 1
    click(root, "Check")
    assert verdict(root) == "Choose an answer, then check it."
    radio = root.get_by_role("radio")
    press(radio.first, "Space")
    press(root.get_by_role("button", name="Check"), "Enter")
    assert verdict(root) == "Not this one. Try again."
    press(radio.first, "ArrowDown")
    assert radio.nth(1).is_checked() and verdict(root) == ""
    press(root.get_by_role("button", name="Show the reason"), "Enter")
    assert verdict(root) == "Heads is one of 2 sides: 0.5000."
    press(radio.nth(1), "ArrowDown")
    press(root.get_by_role("button", name="Check"), "Space")
    assert verdict(root) == "Right. Heads is one of 2 sides: 0.5000."
    assert radio.nth(2).is_checked() and radio.first.is_disabled() and radio.nth(1).is_disabled()
    assert place != "live" or opened.value("half.chosen") == "0.5000"


def test_the_code_of_a_question_which_holds_the_answer_stays_folded(lab, ci, page_of):
    """In JupyterLab when all is run, and on a page."""
    book = notebook_of("from workshop import predict", f"predict('Which?', answer={ONE})")
    book.cells[1].metadata.tags = ["drawn"]
    opened = lab.open(nbformat.reads(ci("notebooks").canonical(book), as_version=4))
    opened.run()
    cell = opened.page.locator(".jp-Notebook .jp-Cell").nth(1)
    assert not cell.locator(".jp-InputArea-editor").is_visible()
    page = page_of(opened.save())
    assert not page.get_by_text("answer=").filter(visible=True).count()
