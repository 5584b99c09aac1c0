"""A lesson in JupyterLab as `make lab` opens it: trusted, and none of its cells run."""

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from browser.harness import numbers, press


@pytest.mark.slow
def test_the_widgets_of_a_lesson_are_there_and_answer(lab, root):
    lesson = nbformat.read(root / "notebooks" / "07_dropout.ipynb", as_version=4)
    NotebookNotary().sign(lesson)
    page = lab.open(lesson).page
    dropout = page.locator(".step").filter(has=page.get_by_role("button", name="draw again"))
    before = numbers(dropout.locator("table"))
    press(dropout.get_by_role("slider"), "ArrowRight", "ArrowRight")
    assert len(before) and (numbers(dropout.locator("table")) != before).any()
