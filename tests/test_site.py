"""The pages of `make site`: whole, self-contained, safe; what the browser does is tested there."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from lessons import PATHS, folded_code
from markup import Markup

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
HOSTILE = """</script><!--<script>'"&<img src=x onerror="alert(1)">"""
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def site(ci):
    """`tools/site.py`."""
    return ci("site")


@pytest.fixture(scope="module")
def pages(site):
    """Every page of the site as read, {file name: Markup}."""
    made = {f"{path.stem}.html": site.notebook_page(path) for path in NOTEBOOKS}
    made["index.html"] = site.index_page()
    return {name: Markup(text) for name, text in made.items()}


@pytest.fixture(params=[*(f"{path.stem}.html" for path in NOTEBOOKS), "index.html"])
def page(request, pages):
    """One page after the other."""
    return pages[request.param]


def test_page_is_whole(page):
    assert page.all("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in page.all("meta")
    assert any(m.get("name") == "viewport" for m in page.all("meta"))
    assert len(page.ids()) == len(set(page.ids()))
    assert len(page.all("h1")) == len(page.all("title")) == len(page.all("main")) == 1


def test_page_needs_nothing_from_outside(page):
    """No tag loads anything, and the policy would not let it."""
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base"), tag
        assert attributes.get("src", "data:").startswith("data:"), attributes
        assert not any(name.startswith("on") for name in attributes), attributes
    (style,) = page.raw["style"]
    assert not re.search(r"url\(|@import", style)
    (policy,) = (m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none';") and "http" not in policy
    _, *programs = page.raw["script"]
    digests = [base64.b64encode(hashlib.sha256(p.encode()).digest()).decode() for p in programs]
    allowed = [f"'sha256-{digest}'" for digest in digests]
    assert (
        policy.endswith(f"; script-src 'self' file: blob: {' '.join(allowed)}")
        and len(allowed) == 3
    )


def test_pictures_have_words(page):
    for image in page.all("img"):
        assert len(image["alt"].split()) >= 3


def test_links_lead_somewhere(page, pages):
    """To a place on this page, to another page and its place, or to an address."""
    for target in (a["href"] for a in page.all("a")):
        name, _, anchor = target.partition("#")
        if not target.startswith("https://"):
            there = pages[name] if name else page
            assert not anchor or anchor in there.ids(), target


def test_no_formula_is_left(page):
    assert "$" not in page.prose
    assert not re.search(r"\\[a-zA-Z]", page.prose)


@each_notebook
def test_page_shows_the_whole_notebook(site, pages, path):
    notebook, page = nbformat.read(path, as_version=4), pages[f"{path.stem}.html"]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [d["data-cell"] for d in page.all("div") if "data-cell" in d] == [c.id for c in code]
    shown = [alt for cell in code for output in cell.outputs for alt in alts(output)]
    assert [i["alt"] for i in page.all("img")] == shown
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    formulas = [block or inline for _, block, inline in site.FORMULA.findall(text)]
    assert [m["alttext"] for m in page.all("math")] == [tex.strip() for tex in formulas if tex]


def alts(output) -> list[str]:
    """What the pictures of an output show: its own, or those that a folded answer holds."""
    if "image/png" in output.get("data", {}):
        return [output.metadata["image/png"]["alt"]]
    return [i["alt"] for i in Markup(output.get("data", {}).get("text/html", "")).all("img")]


def test_index_lists_the_notebooks_with_their_promises(pages):
    index = pages["index.html"]
    prose = " ".join(index.prose.split())
    for path in NOTEBOOKS:
        title, promise = nbformat.read(path, as_version=4).cells[0].source.split("\n\n")[:2]
        assert {"href": f"{path.stem}.html"} in index.all("a")
        assert title.removeprefix("# ") in prose
        assert " ".join(promise.split("$")[0].replace("*", "").split()) in prose
    assert "sources" in index.ids()


def test_every_page_lists_all_pages_and_leads_to_its_neighbours(pages):
    names = ["index.html", *(f"{path.stem}.html" for path in NOTEBOOKS)]
    for i, name in enumerate(names):
        tags = pages[name].tags
        (start,) = (i for i, (_, a) in enumerate(tags) if a.get("id") == "contents")
        (end,) = (i for i, (tag, _) in enumerate(tags) if tag == "main")
        listed = [a for tag, a in tags[start:end] if tag == "a"]
        assert [a["href"] for a in listed if not a["href"].startswith("#")] == names
        assert [a["href"] for a in listed if a.get("aria-current") == "page"] == [name]
        ways = {a["rel"]: a["href"] for a in pages[name].all("a") if "rel" in a}
        assert i == 0 or ways.get("prev") == names[i - 1]
        assert i == 0 or [ways.get("next")][: len(names) - i - 1] == names[i + 1 : i + 2]


def test_first_page_opens_with_the_machine_on_apple(site, pages):
    page = pages["index.html"]
    assert next(tag for tag, _ in page.tags if tag in ("figure", "h2")) == "figure"
    assert page.all("figure") == [{"data-model": "apple"}]
    state = json.loads(page.raw["script"][0])["apple"]["state"]
    assert (state["at"], state["asker"]) == ("attention/head", 3)
    assert state["text"].split()[3] == "apple" and "layout" not in state
    assert "write laptop in place of banana" in " ".join(page.prose.split())
    assert site.index_page() == site.index_page()


@pytest.fixture(scope="module")
def known(site):
    """What search.js holds: [file, title, [heading, [[place, is code, text], …]] …] per page."""
    assert len(site.index().encode()) < 500_000  # the pages have 7 million
    return json.loads(site.index().removeprefix("window.course = ").removesuffix(";\n"))


def lines(page) -> list[str]:
    """All lines that are known of a page."""
    return [line for _, cells in page[2] for *_, text in cells for line in text.split("\n")]


def test_search_leads_to_places_that_are_there(known, pages):
    assert [file for file, *_ in known] == ["index.html", *(f"{p.stem}.html" for p in NOTEBOOKS)]
    for file, _, rooms in known:
        places = [place for _, cells in rooms for place, *_ in cells]
        assert set(places) <= set(pages[file].ids()) and len(places) > 8


def test_search_knows_words_names_and_formulas_and_gives_no_answer_away(known):
    by_file = {page[0]: lines(page) for page in known}
    assert "def masked_softmax(S, mask):" in by_file["06_masking.html"]
    assert any(line.endswith("divided by √d_k.") for line in by_file["04_scaling.html"])
    said = {line for found in by_file.values() for line in found}
    assert not [line for line in said if re.search(r"</|&\w+;|\$\$|\\frac|^##+ |^import ", line)]
    cells = [cell for path in NOTEBOOKS for cell in nbformat.read(path, as_version=4).cells]
    hidden = [line for cell in cells if cell.metadata.get("jupyter")
              for line in cell.source.splitlines()]  # fmt: skip
    folded = [line.strip() for line in hidden if "reason=" in line or "answer=" in line]
    questions = [line for line in hidden if line.startswith("predict(")]
    assert len(folded) >= len(questions) >= len(PATHS)  # each lesson asks
    folded = set(folded)
    assert not said & folded


def test_search_does_not_open_the_course_s_own_answers(known):
    told = {(file, place): text for file, _, rooms in known for _, cells in rooms
            for place, _, text in cells}  # fmt: skip
    cells = [(f"{path.stem}.html", cell) for path in NOTEBOOKS
             for cell in nbformat.read(path, as_version=4).cells if folded_code(cell)]  # fmt: skip
    assert len(cells) > 10
    assert not [c.id for file, c in cells if "return" in told.get((file, f"cell-{c.id}"), "")]


def trial(models: dict, outputs: list) -> dict:
    """A notebook with saved widgets, as plain data."""
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# 98 · T\n\nYou will."},
        {"cell_type": "code", "id": "b", "metadata": {}, "source": "x", "execution_count": 1},
    ]
    cells[1]["outputs"] = outputs
    state = {"state": models, "version_major": 2, "version_minor": 0}
    metadata = {"widgets": {"application/vnd.jupyter.widget-state+json": state}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def view(model: str) -> dict:
    """An output that shows a widget and its picture."""
    data = {
        "application/vnd.jupyter.widget-view+json": {"model_id": model, "version_major": 2},
        "image/png": "aGVsbG8=",
        "text/plain": "words",
    }
    told = {"image/png": {"alt": HOSTILE, "width": 300}}
    return {"output_type": "display_data", "data": data, "metadata": told}


MODELS = {
    "widget-b": {
        "buffers": [{"data": "AAAA", "encoding": "base64", "path": ["arrays", "weights", "bytes"]}],
        "model_module": "anywidget",
        "state": {"_esm": f"// {HOSTILE}", "_css": "", "arrays": {"weights": {}}},
    },
    "widget-b-layout": {"model_module": "@jupyter-widgets/base", "state": {}},
}


@pytest.fixture
def saved(tmp_path):
    """The file of a notebook with one saved widget, and one whose state is missing."""
    path = tmp_path / "98_trial.ipynb"
    path.write_text(json.dumps(trial(MODELS, [view("widget-b"), view("lost")])), encoding="utf-8")
    return path


def test_saved_widget_comes_with_its_picture_and_state(site, saved):
    page = Markup(site.notebook_page(saved))
    assert page.all("figure") == [{"data-model": "widget-b"}]
    assert [i["alt"] for i in page.all("img")] == [HOSTILE, HOSTILE]
    state, *_, host = page.raw["script"]
    assert json.loads(state) == {"widget-b": MODELS["widget-b"]}
    assert host == (ROOT / "tools/site/host.js").read_text(encoding="utf-8")


def test_hostile_tokens_stay_data(site, saved):
    """They end no element and open none: the page has the tags of a harmless one."""
    page = site.notebook_page(saved)
    saved.write_text(saved.read_text("utf-8").replace("onerror", ""), encoding="utf-8")
    tags = [tag for tag, _ in Markup(page).tags]
    assert tags == [tag for tag, _ in Markup(site.notebook_page(saved)).tags]
    assert tags.count("script") == 4 and tags.count("img") == 2
    state = page[page.index('id="widgets">') + 13 :].partition("</script>")[0]
    assert "<" not in state and "alert(1)" in state


def test_page_is_the_same_every_time(saved):
    """Also with another order of hashes."""
    code = "import runpy, sys, pathlib; site = runpy.run_path('tools/site.py')\n"
    code += "print(ascii(site['notebook_page'](pathlib.Path(sys.argv[1]))))"
    call = [sys.executable, "-c", code, str(saved)]
    runs = [
        subprocess.check_output(call, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed})
        for seed in "12"
    ]
    assert runs[0] == runs[1] and len(runs[0]) > 5000


def test_build_writes_pages_and_removes_old_ones(site, saved, tmp_path, capsys):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "97_gone.html").touch()
    site.build(saved.parent, folder)
    assert {path.name for path in folder.iterdir()} == {"98_trial.html", "index.html", "search.js"}
    assert (folder / "98_trial.html").read_text("utf-8") == site.notebook_page(saved)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("05_softmax.ipynb", "05_softmax.html"),
        ("notebooks/05_softmax.ipynb#By-hand", "05_softmax.html#by-hand"),
        ("../README.md#sources", "index.html#sources"),
        ("#sources", "#sources"),
        ("https://example.org/a.ipynb", "https://example.org/a.ipynb"),
    ],
)
def test_links_are_those_of_the_site(site, target, place):
    assert site.link(target) == place


def test_markdown_keeps_signs_apart(site):
    """A bar or a star in a formula is no table and no emphasis; a dollar in code is no formula."""
    text = "| | b |\n|---|--:|\n| $|x|*y$ | `$z$` *w* |\n\n[![Open](https://a.example/b.svg)](https://c)"
    made = site.Page().read(text)
    page = Markup(made)
    assert [m["alttext"] for m in page.all("math")] == ["|x|*y"]
    assert "<code>$z$</code> <em>w</em>" in made
    tags = [tag for tag, _ in page.tags if tag in ("th", "td")]
    assert tags == ["td", "th", "td", "td"]  # an empty cell heads nothing
    assert '<a href="https://c">Open</a>' in made and not page.all("img")
    with pytest.raises(ValueError, match=r"\\nonsense is not known"):
        site.mathml(r"a + \nonsense")


def test_verdicts_stand_on_the_page(site, tmp_path):
    """Whole, folded as in the notebook, without a script, and without the plain text twice."""
    from workshop.checks import judge, learner
    from workshop.exercises import find

    raised = judge.Raised("Error", HOSTILE, HOSTILE)
    found = judge.Evidence(HOSTILE, {"x": [HOSTILE]}, HOSTILE, raised)
    verdict = judge.Verdict("softmax", judge.WRONG, HOSTILE, None, found)
    open_ = judge.Verdict("softmax", judge.NOT_ATTEMPTED, "")
    made = [learner.shown(verdict, find("softmax")), learner.shown(open_, find("softmax"))]
    shown = {"output_type": "display_data", "metadata": {}}
    outputs = [shown | {"data": verdict._repr_mimebundle_()} for verdict in made]
    path = tmp_path / "98_trial.ipynb"
    path.write_text(json.dumps(trial({}, outputs)), encoding="utf-8")
    page = Markup(site.notebook_page(path))
    assert len(page.all("details")) == 3 and len(page.all("script")) == 4
    assert not page.all("img")
    assert "not attempted" in page.prose and made[1].text not in page.prose
