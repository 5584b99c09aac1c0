"""Tables as text and as HTML: the same numbers, and text that is what was printed before."""

import json
import subprocess
import sys

import numpy as np
import pytest
from markup import Markup

from helpers import shown

MATRIX = np.array([[-0.00001, 1.5], [22.25, -3.0]])


@pytest.fixture
def seen(monkeypatch):
    """What was shown, in place of showing it."""
    seen = []
    monkeypatch.setattr(shown, "display", seen.append)
    return seen


def test_a_notebook_gets_a_table_beside_the_text_that_is_printed_elsewhere():
    """In IPython one display holds both; the text of a title and its table stays together."""
    code = f"""
import json
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
shell.run_cell("from helpers.figures import show")
with capture_output() as seen:
    shell.run_cell('show({MATRIX.tolist()}, ["a", "row"], ["x", "a<b"], "scores of <you>")')
print(json.dumps([seen.stdout, [output.data for output in seen.outputs]]))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    printed, (made,) = json.loads(said.stdout.splitlines()[-1])
    assert printed == "" and set(made) == {"text/plain", "text/html"}
    assert made["text/plain"] == (
        "scores of <you>\n           x      a<b\na     0.0000   1.5000\nrow  22.2500  -3.0000\n"
    )
    assert "<caption" in made["text/html"]


def test_elsewhere_it_is_printed_character_for_character(capsys):
    shown.show(MATRIX, ["a", "row"], ["x", "y"], "scores")
    shown.show([1.0, 2.0])
    shown.show(np.arange(4).reshape(2, 1, 2), title="a batch")
    shown.show(np.arange(2).reshape(2, 1, 1, 1))
    assert capsys.readouterr().out == (
        "scores\n           x        y\na     0.0000   1.5000\nrow  22.2500  -3.0000\n\n"
        "  1.0000  2.0000\n"
        "a batch\n[0]\n  0  1\n\n[1]\n  2  3\n\n"
        "[0, …]\n[0]\n  0\n\n[1, …]\n[0]\n  1\n\n"
    )


def test_the_table_has_headings_a_caption_and_the_same_numbers(seen):
    shown.show(MATRIX, ["a", "row"], ["x", "a<b"], "scores of <you>")
    table = Markup(seen[0].html)
    words = ["scores of <you>", "x", "a<b", "a", "0.0000", "1.5000", "row", "22.2500", "-3.0000"]
    assert "".join(table.words.split()) == "".join("".join(words).split())
    assert [a["scope"] for a in table.all("th")] == ["col", "col", "row", "row"]
    assert all("text-align:right" in a["style"] for a in table.all("td") if a.get("style"))
    assert len(table.all("caption")) == 1 and not any("class" in a for _, a in table.tags)
    assert "tabular-nums" in seen[0].html and "overflow-x:auto" in seen[0].html
    assert "color" not in seen[0].html  # the page's own, light or dark


def test_of_a_folded_table_jupyterlab_shows_a_blank_line(seen):
    """It shows the first line that is not empty, as it is written."""
    shown.show(MATRIX, title="the answer")
    assert next(line for line in seen[0].html.split("\n") if line).isspace()


def test_a_batch_is_a_table_for_each_matrix(seen):
    shown.show(np.arange(12.0).reshape(2, 2, 3), ["a", "b"], title="two <heads>")
    table = Markup(seen[0].html)
    assert len(table.all("table")) == len(table.all("caption")) == 2 and len(table.all("tr")) == 4
    assert "[0]" in table.words and "[1]" in table.words
    assert "two &lt;heads&gt;" in seen[0].html.partition("<table")[0]
