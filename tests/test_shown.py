"""Tables as text and as HTML: the same numbers, and text that is what was printed before."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from markup import Markup
from test_figures import contrast

from workshop import colours, tables

MATRIX = np.array([[-0.00001, 1.5], [22.25, -3.0]])


@pytest.fixture
def seen(monkeypatch):
    """What was shown, in place of showing it."""
    seen = []
    monkeypatch.setattr(tables, "display", seen.append)
    return seen


def test_a_notebook_gets_a_table_beside_the_text_that_is_printed_elsewhere():
    """In IPython one display holds both; the text of a title and its table stays together."""
    code = f"""
import json
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
shell.run_cell("from workshop import show")
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
    tables.show(MATRIX, ["a", "row"], ["x", "y"], "scores")
    tables.show([1.0, 2.0])
    tables.show(np.arange(4).reshape(2, 1, 2), title="a batch")
    tables.show(np.arange(2).reshape(2, 1, 1, 1))
    assert capsys.readouterr().out == (
        "scores\n           x        y\na     0.0000   1.5000\nrow  22.2500  -3.0000\n\n"
        "  1.0000  2.0000\n"
        "a batch\n[0]\n  0  1\n\n[1]\n  2  3\n\n"
        "[0, …]\n[0]\n  0\n\n[1, …]\n[0]\n  1\n\n"
    )


def test_the_table_has_headings_a_caption_and_the_same_numbers(seen):
    tables.show(MATRIX, ["a", "row"], ["x", "a<b"], "scores of <you>")
    table = Markup(seen[0].html)
    words = ["scores of <you>", "x", "a<b", "a", "0.0000", "1.5000", "row", "22.2500", "-3.0000"]
    assert "".join(table.words.split()) == "".join("".join(words).split())
    assert [a["scope"] for a in table.all("th")] == ["col", "col", "row", "row"]
    assert "text-align:right" in table.all("table")[0]["style"]
    assert len(table.all("caption")) == 1 and not any("class" in a for _, a in table.tags)
    assert "tabular-nums" in seen[0].html and "overflow-x:auto" in seen[0].html
    assert "color" not in seen[0].html  # ink is the page's own, light or dark


def test_of_a_folded_table_jupyterlab_shows_a_blank_line(seen):
    """It shows the first line that is not empty, as it is written."""
    tables.show(MATRIX, title="the answer")
    assert next(line for line in seen[0].html.split("\n") if line).isspace()


def test_a_batch_is_a_table_for_each_matrix(seen):
    tables.show(np.arange(12.0).reshape(2, 2, 3), ["a", "b"], title="two <heads>")
    table = Markup(seen[0].html)
    assert len(table.all("table")) == len(table.all("caption")) == 2 and len(table.all("tr")) == 4
    assert "[0]" in table.words and "[1]" in table.words
    assert "two &lt;heads&gt;" in seen[0].html.partition("<table")[0]


def grounds(made):
    """Of every cell of the tables: the colour laid over the page's ground, and its opacity."""
    cells = re.findall(r'<td(?: style="(.*?)")?>.*?</td>', made.html)
    found = [re.fullmatch(r"background:(#.{6})(..)", style) for style in cells]
    return [(m[1], int(m[2], 16) / 255) if m else None for m in found]


def test_the_larger_a_number_the_stronger_its_tint(seen):
    tables.show([[0.0, -0.00001], [2.0, -4.0]], colour="q")
    none, faint, half, most = grounds(seen[0])
    assert none is faint is None
    assert half[0] == most[0] == colours.OF["q"]
    assert half[1] == pytest.approx(tables.STRONGEST / 2, abs=1 / 255)
    assert most[1] == pytest.approx(tables.STRONGEST, abs=1 / 255)


def test_a_batch_has_one_scale(seen):
    tables.show(np.array([[[1.0, 0.5]], [[2.0, 0.25]]]))
    tints = [opacity for _, opacity in grounds(seen[0])]
    assert np.array(tints) / tints[2] == pytest.approx([0.5, 0.25, 1, 0.125], abs=0.01)


def test_what_is_no_finite_number_has_no_tint_and_stays_in_one_line(seen):
    tables.show([[-np.inf, np.nan], [np.inf, 1.0]])
    assert [bool(ground) for ground in grounds(seen[0])] == [False, False, False, True]
    assert seen[0].html.count('<td style="white-space:nowrap">') == 3


@pytest.mark.parametrize("colour", colours.OF)
@pytest.mark.parametrize("ground, ink", [("#ffffff", "#000000"), ("#111111", "#ffffff")])
def test_the_strongest_tint_is_seen_and_leaves_the_page_s_ink_readable(seen, colour, ground, ink):
    tables.show([3.0, 1.0], colour=colour)
    tint, opacity = grounds(seen[0])[0]
    below = colours.mixed(tint, opacity, ground)
    assert contrast(below, ink) >= 4.5
    assert contrast(below, ground) >= 1.3


@pytest.mark.parametrize(
    "array, tinted",
    [(np.tri(2, dtype=int), 3), (np.tri(2, dtype=bool), 3), ([0.0, 0.0], 0), (7.5, 0), ([7.5], 0),
     ([101, 2003], 0), (["win", "lose"], 0), (np.array([["the", 0.5]], dtype=object), 0)],
)  # fmt: skip
def test_words_ids_counts_and_single_numbers_have_no_tint(seen, array, tinted):
    tables.show(array)
    assert sum(map(bool, grounds(seen[0]))) == tinted


def test_a_tint_changes_nothing_of_the_text(seen):
    tables.show(MATRIX, ["a", "b"], title="Q")
    tables.show(MATRIX, ["a", "b"], title="Q", colour="q")
    assert seen[0].text == seen[1].text and seen[0].html != seen[1].html


@pytest.mark.parametrize(
    "colour, error", [("orange", ValueError), ("", ValueError), (1, TypeError)]
)
def test_an_unknown_colour_is_named(colour, error):
    with pytest.raises(error, match="colour"):
        tables.show([1.0, 2.0], colour=colour)


def test_a_cell_is_smaller_than_a_fixed_look_for_each_would_be(seen):
    """A notebook of 400 kB holds up to 800 cells, and pictures."""
    tables.show(np.random.default_rng(3).normal(size=(10, 10)))
    assert len(seen[0].html) / 100 < 48


def test_hostile_words_stay_words(seen):
    evil = '"><script>alert(1)</script>'
    tables.show(np.array([[evil, "b"]]), [evil], [evil, "c"], evil)
    tables.show(np.zeros((2, 1, 1, 1)), title=evil)
    for made in seen:
        assert "<script" not in made.html and "alert(1)" in Markup(made.html).words
