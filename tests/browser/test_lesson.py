"""A lesson in JupyterLab as `make lab` opens it: trusted, and none of its cells run."""

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from browser.harness import numbers, press


@pytest.mark.slow
def test_the_widgets_of_a_lesson_are_there_and_answer(lab, root):
    lesson = nbformat.read(root / "notebooks" / "05_softmax.ipynb", as_version=4)
    NotebookNotary().sign(lesson)
    page = lab.open(lesson).page
    softmax = page.locator(".step").filter(has=page.get_by_role("spinbutton"))  # where one types
    before = numbers(softmax.locator("table"))
    press(softmax.get_by_role("slider").first, "ArrowRight", "ArrowRight")
    assert len(before) and (numbers(softmax.locator("table")) != before).any()
