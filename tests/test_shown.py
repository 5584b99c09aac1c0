"""Tables as text and as HTML: the same numbers, and text that is what was printed before."""

import re

import numpy as np
import pytest
from markup import Markup
from test_figures import contrast

from workshop import colours, tables

MATRIX = np.array([[-0.00001, 1.5], [22.25, -3.0]])
TEXT = "           x      a<b\na     0.0000   1.5000\nrow  22.2500  -3.0000\n"
NAMED = MATRIX, ["a", "row"], ["x", "a<b"], "scores of <you>"


@pytest.fixture
def shown(monkeypatch):
    """A function that shows a table, and gives what was shown."""
    seen = []
    monkeypatch.setattr(tables, "display", seen.append)
    return lambda *table, **how: tables.show(*table, **how) or seen.pop()


def test_outside_a_notebook_text_is_printed(capsys):
    """What a notebook gets, text and table, is compared wherever one shows a table."""
    tables.show(*NAMED)
    tables.show([1.0, 2.0])
    tables.show(np.arange(4).reshape(2, 1, 2), title="a batch")
    tables.show(np.arange(2).reshape(2, 1, 1, 1))
    assert capsys.readouterr().out == (
        f"scores of <you>\n{TEXT}\n  1.0000  2.0000\na batch\n[0]\n  0  1\n\n[1]\n  2  3\n\n"
        "[0, …]\n[0]\n  0\n\n[1, …]\n[0]\n  1\n\n"
    )


def test_the_table_has_headings_a_caption_and_the_same_numbers(shown):
    html = shown(*NAMED).html
    table = Markup(html)
    words = "scores of <you> x a<b a 0.0000 1.5000 row 22.2500 -3.0000"
    assert "".join(table.words.split()) == words.replace(" ", "")
    assert [a["scope"] for a in table.all("th")] == ["col", "col", "row", "row"]
    assert "text-align:right" in table.all("table")[0]["style"]
    assert len(table.all("caption")) == 1 and not any("class" in a for _, a in table.tags)
    assert "tabular-nums" in html and "overflow-x:auto" in html
    assert "color" not in html  # ink is the page's own, light or dark
    assert next(line for line in html.split("\n") if line).isspace()  # seen where it is folded


def test_a_batch_is_a_table_for_each_matrix(shown):
    html = shown(np.arange(12.0).reshape(2, 2, 3), ["a", "b"], title="two <heads>").html
    table = Markup(html)
    assert len(table.all("table")) == len(table.all("caption")) == 2 and len(table.all("tr")) == 4
    assert "[0]" in table.words and "[1]" in table.words
    assert "two &lt;heads&gt;" in html.partition("<table")[0]


def grounds(made):
    """Of every cell of the tables: the colour laid over the page's ground, and its opacity."""
    cells = re.findall(r'<td(?: style="(.*?)")?>.*?</td>', made.html)
    found = [re.fullmatch(r"background:(#.{6})(..)", style) for style in cells]
    return [(m[1], int(m[2], 16) / 255) if m else None for m in found]


@pytest.mark.parametrize(
    "array, shares",
    [([[0.0, -0.00001], [2.0, -4.0]], [0, 0, 0.5, 1]),
     ([[[1.0, 0.5]], [[2.0, 0]]], [0.5, 0.25, 1, 0]),
     ([[-np.inf, np.nan], [np.inf, 1.0]], [0, 0, 0, 1]), (np.tri(2, dtype=int), [1, 0, 1, 1]),
     (np.tri(2, dtype=bool), [1, 0, 1, 1]), ([0.0, 0.0], [0, 0]), (7.5, [0]), ([7.5], [0]),
     ([101, 2003], [0, 0]), (["win", "lose"], [0, 0]),
     (np.array([["the", 0.5]], dtype=object), [0, 0])],
)  # fmt: skip
def test_the_larger_a_number_of_a_batch_the_stronger_its_tint(shown, array, shares):
    """Words, ids, counts, single numbers and what is not finite have none."""
    found = grounds(shown(array, colour="q"))
    assert {ground[0] for ground in found if ground} <= {colours.OF["q"]}
    seen = [ground[1] if ground else 0 for ground in found]
    assert seen == pytest.approx(tables.MOST_OPAQUE * np.array(shares), abs=1 / 255)


@pytest.mark.parametrize("colour", colours.OF)
@pytest.mark.parametrize("ground, ink", [("#ffffff", "#000000"), ("#111111", "#ffffff")])
def test_the_strongest_tint_is_seen_and_leaves_the_page_s_ink_readable(shown, colour, ground, ink):
    below = colours.mixed(*grounds(shown([3.0, 1.0], colour=colour))[0], ground)
    assert contrast(below, ink) >= 4.5 and contrast(below, ground) >= 1.3


def test_a_tint_changes_nothing_of_the_text_and_takes_little_room(shown):
    """A notebook of 400 kB holds up to 800 cells, and pictures."""
    plain, tinted = shown(*NAMED), shown(*NAMED, colour="q")
    assert plain.text == tinted.text and plain.html != tinted.html
    assert len(shown(np.random.default_rng(3).normal(size=(10, 10))).html) / 100 < 48
    assert shown([[-np.inf, np.nan]]).html.count('<td style="white-space:nowrap">') == 2


def test_rows_of_different_things_have_their_own_colours_and_scales(shown):
    both = grounds(shown([[1.0, 40.0], [0.2, 0.4]], colours=["scores", "weights"]))
    assert [ground[0] for ground in both] == [
        colours.OF[n] for n in ("scores", "weights") for _ in "ab"
    ]
    assert both[1][1] == both[3][1] > max(both[0][1], both[2][1])


def test_hostile_words_stay_words(shown):
    evil = '"><script>alert(1)</script>'
    for made in (shown(np.array([[evil, "b"]]), [evil], [evil, "c"], evil),
                 shown(np.zeros((2, 1, 1, 1)), title=evil)):  # fmt: skip
        assert "<script" not in made.html and "alert(1)" in Markup(made.html).words
