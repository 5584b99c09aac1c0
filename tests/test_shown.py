"""Tables as text and as HTML: the same numbers, and text that is what was printed before."""

import json
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from helpers import shown

MATRIX = np.array([[-0.00001, 1.5], [22.25, -3.0]])


class Tables(HTMLParser):
    """The tables of a piece of HTML: captions, and rows of (tag, scope, style, text)."""

    def __init__(self, markup):
        super().__init__()
        self.captions, self.rows, self.tags = [], [], []
        self.feed(markup)
        assert self.tags == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        assert "class" not in dict(attributes)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append([tag, dict(attributes).get("scope"), self.style(), ""])

    def handle_endtag(self, tag):
        assert self.tags.pop()[0] == tag

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "caption":
            self.captions.append(data)
        if self.tags and self.tags[-1][0] in ("td", "th"):
            self.rows[-1][-1][-1] = data

    def style(self):
        return dict(rule.split(":") for rule in self.tags[-1][1].get("style", ":").split(";"))


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
    table = Tables(seen[0].html)
    assert table.captions == ["scores of <you>"]
    assert [[cell[-1] for cell in row] for row in table.rows] == [
        ["", "x", "a<b"],
        ["a", "0.0000", "1.5000"],
        ["row", "22.2500", "-3.0000"],
    ]
    assert [cell[:2] for cell in table.rows[0][1:]] == [["th", "col"]] * 2
    assert [row[0][:2] for row in table.rows[1:]] == [["th", "row"]] * 2
    for _, _, style, _ in [cell for row in table.rows[1:] for cell in row[1:]]:
        assert style["text-align"] == "right"
    assert "tabular-nums" in seen[0].html and "overflow-x:auto" in seen[0].html
    assert "color" not in seen[0].html  # the page's own, light or dark


def test_of_a_folded_table_jupyterlab_shows_a_blank_line(seen):
    """It shows the first line that is not empty, as it is written."""
    shown.show(MATRIX, title="the answer")
    assert next(line for line in seen[0].html.split("\n") if line).isspace()


def test_a_batch_is_a_table_for_each_matrix(seen):
    shown.show(np.arange(12.0).reshape(2, 2, 3), ["a", "b"], title="two <heads>")
    table = Tables(seen[0].html)
    assert table.captions == ["[0]", "[1]"] and len(table.rows) == 4
    assert "two &lt;heads&gt;" in seen[0].html.partition("<table")[0]


def test_a_cell_costs_at_most_eighty_bytes(seen):
    shown.show(np.ones((12, 12)), range(12), range(12))
    assert len(seen[0].html) / 13**2 < 80
