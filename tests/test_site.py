"""The pages of `make site`: whole, self-contained, safe; what the browser does is tested there."""

import base64
import hashlib
import html
import io
import json
import re
import zipfile
from pathlib import Path

import nbformat
import pytest
from lessons import EVERY, PATHS, folded_code
from markup import Markup

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
NAMES = ["index.html", *(f"{path.stem}.html" for path in EVERY)]
HOSTILE = """</script><!--<script>'"&<img src=x onerror="alert(1)">"""
KINDS = {"setup", "check", "exercise", "question", "hidden", "lesson"}
each_notebook = pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def site(ci):
    """`tools/site.py`."""
    return ci("site")


@pytest.fixture(scope="module")
def notebooks(site):
    """What becomes a page, {file name: notebook}."""
    return site.course(ROOT / "notebooks")


@pytest.fixture(scope="module")
def pages(site, notebooks):
    """Every page of the site as read, {file name: Markup}."""
    return {name: Markup(site.page(notebooks, name)) for name in notebooks}


@pytest.fixture(params=NAMES)
def page(request, pages):
    """One page after the other."""
    return pages[request.param]


def test_page_is_whole(page):
    assert page.all("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in page.all("meta")
    assert any(m.get("name") == "viewport" for m in page.all("meta"))
    assert len(page.ids()) == len(set(page.ids()))
    assert len(page.all("h1")) == len(page.all("title")) == len(page.all("main")) == 1
    assert "$" not in page.prose and not re.search(r"\\[a-zA-Z]", page.prose)
    assert all(len(image["alt"].split()) >= 3 for image in page.all("img"))


def test_page_needs_nothing_from_outside(page):
    """No tag loads anything, and the policy would not let it."""
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base"), tag
        assert attributes.get("src", "data:").startswith("data:"), attributes
        assert not any(name.startswith("on") for name in attributes), attributes
    assert not re.search(r"url\(|@import", *page.raw["style"])
    (policy,) = (m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none';") and "http" not in policy
    _, *programs = page.raw["script"]
    digests = [base64.b64encode(hashlib.sha256(p.encode()).digest()).decode() for p in programs]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy.endswith(f"; script-src 'self' file: blob: {allowed}") and len(digests) == 3


def test_links_lead_somewhere(page, pages):
    """To a place on this page, to another page and its place, or to an address."""
    for target in (a["href"] for a in page.all("a")):
        name, _, anchor = target.partition("#")
        if not target.startswith("https://"):
            there = pages[name] if name else page
            assert not anchor or anchor in there.ids(), target


def test_sections_lie_in_sections(page):
    """As deep as their heading, which comes first; no heading stands outside of its own."""
    found = re.findall(r"<(/?section|h\d)\b", page.text[page.text.index("<main") :])
    depth = 0
    for tag, following in zip(found, [*found[1:], ""], strict=True):
        depth += {"section": 1, "/section": -1}.get(tag, 0)
        assert tag != "section" or following == f"h{depth}"
        assert tag[0] != "h" or tag == f"h{depth}"
    assert depth == 0 and found.count("section") == found.count("/section") > 6


@each_notebook
def test_page_shows_the_whole_notebook(pages, path):
    """Each code cell has its number, its kind and, to the letter, its source."""
    notebook, page = nbformat.read(path, as_version=4), pages[f"{path.stem}.html"]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [div for div in page.all("div") if "data-cell" in div]
    told = [(div["data-cell"], div["data-number"]) for div in shown]
    assert told == [(cell.id, str(cell.execution_count)) for cell in code]
    sources = re.findall(r'<pre class="code"><code>(.*?)</code></pre>', page.text, re.DOTALL)
    plain = [html.unescape(re.sub(r"<[^>]+>", "", source)) for source in sources]
    assert plain == [cell.source for cell in code]
    kinds = {cell.id: div["data-kind"] for cell, div in zip(code, shown, strict=True)}
    assert kinds["setup"] == "setup" and set(kinds.values()) <= KINDS
    for cell in code:
        assert (kinds[cell.id] == "check") == bool(re.search(r"= check\(\w+\)$", cell.source))
        folded = "jupyter" in cell.metadata and cell.id != "setup"
        assert (kinds[cell.id] in ("question", "hidden")) == folded
        assert (kinds[cell.id] == "exercise") == cell.source.endswith("...")
    alts = [alt for cell in code for output in cell.outputs for alt in words(output)]
    assert [image["alt"] for image in page.all("img")] == alts
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    formulas = re.findall(r"```.*?```|`[^`]*`|(\$\$?)(.+?)\1", text, re.DOTALL)
    wanted = [tex.strip() for _, tex in formulas if tex]
    assert [m["alttext"] for m in page.all("math")] == wanted


def words(output) -> list[str]:
    """What the pictures of an output show: its own, or those that a folded answer holds."""
    if "image/png" in output.get("data", {}):
        return [output.metadata["image/png"]["alt"]]
    return [i["alt"] for i in Markup(output.get("data", {}).get("text/html", "")).all("img")]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_lists_all_pages_and_leads_to_its_neighbours(pages, name):
    page, i = pages[name], NAMES.index(name)
    end = [tag for tag, _ in page.tags].index("main")
    listed = [a for tag, a in page.tags[:end] if tag == "a" and not a["href"].startswith("#")]
    assert [a["href"] for a in listed] == NAMES
    assert [a["href"] for a in listed if a.get("aria-current") == "page"] == [name]
    ways = {a["rel"]: a["href"] for a in page.all("a") if "rel" in a}
    around = {"prev": i - 1, "next": i + 1}
    assert ways == {way: NAMES[j] for way, j in around.items() if 0 <= j < len(NAMES)}


def test_first_page_opens_with_the_machine_on_apple(site, pages):
    page = pages["index.html"]
    assert next(tag for tag, _ in page.tags if tag in ("figure", "h2")) == "figure"
    assert page.all("figure") == [{"data-model": "apple"}]
    state = json.loads(page.raw["script"][0])["apple"]["state"]
    assert (state["at"], state["asker"]) == ("attention/head", 3)
    assert state["text"].split()[3] == "apple" and "layout" not in state
    assert "write laptop in place of banana" in " ".join(page.prose.split())
    assert {f"{path.stem}.html" for path in EVERY} < {a["href"] for a in page.all("a")}
    assert "sources" in page.ids() and site.welcome() == site.welcome()


@pytest.fixture(scope="module")
def known(site, notebooks):
    """What search.js knows: {file: [[id, heading, [[place, is code, lines], …]], …]}."""
    text = site.search(notebooks)
    assert len(text.encode()) < 34_000 * len(notebooks)  # a page has 400,000 and more
    found = json.loads(text.partition("\nwindow.course = ")[2].removesuffix(";\n"))
    return {file: rooms for file, _, rooms in found}


def test_search_leads_to_places_that_are_there(known, pages):
    assert list(known) == NAMES
    for file, rooms in known.items():
        places = [place for room, _, cells in rooms for place in (room, *(c[0] for c in cells))]
        assert set(places) <= set(pages[file].ids()) and len(places) > 8


def test_search_knows_words_names_and_formulas_and_gives_no_answer_away(known):
    told = {(file, place): text for file, rooms in known.items()
            for *_, cells in rooms for place, _, text in cells}  # fmt: skip
    said = {line for text in told.values() for line in text.split("\n")}
    assert "def padding_mask(ids, pad_id):" in said
    assert any(line.endswith("divided by √d_k.") for line in said)
    assert not [line for line in said if re.search(r"</|&\w+;|\$\$|\\frac|^##+ |^import ", line)]
    cells = [(path, c) for path in EVERY for c in nbformat.read(path, as_version=4).cells]
    hidden = [line for _, c in cells if c.metadata.get("jupyter") for line in c.source.split("\n")]
    folded = {line.strip() for line in hidden if "reason=" in line or "answer=" in line}
    assert len(folded) >= len(PATHS) and not said & folded
    answers = [(f"{path.stem}.html", f"cell-{c.id}") for path, c in cells if folded_code(c)]
    assert len(answers) > 10 and not [at for at in answers if "return" in told.get(at, "")]


def trial(models: dict, outputs: list):
    """A notebook with saved widgets."""
    cells = [nbformat.v4.new_markdown_cell("# 98 · T\n\nYou will.", id="a"),
             nbformat.v4.new_code_cell("x", id="b", outputs=outputs)]  # fmt: skip
    metadata = {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": models}}}
    return nbformat.from_dict(nbformat.v4.new_notebook(cells=cells, metadata=metadata))


def view(model: str) -> dict:
    """An output that shows a widget and its picture."""
    data = {"application/vnd.jupyter.widget-view+json": {"model_id": model}}
    data |= {"image/png": "aGVsbG8=", "text/plain": "words"}
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


def test_saved_widget_comes_with_its_picture_and_state_and_hostile_tokens_stay_data(site):
    """One whose state is missing leaves its picture; the tags are those of a harmless page."""
    notebook = trial(MODELS, [view("widget-b"), view("lost")])
    text = site.page({"t.html": notebook}, "t.html")
    page = Markup(text)
    assert page.all("figure") == [{"data-model": "widget-b"}]
    assert [i["alt"] for i in page.all("img")] == [HOSTILE, HOSTILE]
    state, *_, host = page.raw["script"]
    assert json.loads(state) == {"widget-b": MODELS["widget-b"]}
    assert host == (ROOT / "tools/site/host.js").read_text(encoding="utf-8")
    assert "<" not in state and "alert(1)" in state
    harmless = nbformat.from_dict(json.loads(json.dumps(notebook).replace("onerror", "")))
    tags = [tag for tag, _ in Markup(site.page({"t.html": harmless}, "t.html")).tags]
    assert tags == [tag for tag, _ in page.tags] and tags.count("script") == 4


def test_markdown_keeps_signs_apart(site):
    """A star in a formula is no emphasis, a dollar in code is no formula."""
    text = (
        "| | b |\n|---|--:|\n| $x*y$ | `$z$` *w* |\n\n[![Open](https://a.example/b.svg)](https://c)"
    )
    made = site.markdown(text)
    page = Markup(made)
    assert [m["alttext"] for m in page.all("math")] == ["x*y"]
    assert "<code>$z$</code> <em>w</em>" in made
    tags = [tag for tag, _ in page.tags if tag in ("th", "td")]
    assert tags == ["td", "th", "td", "td"]  # an empty cell heads nothing
    assert '<a href="https://c">Open</a>' in made and not page.all("img")
    with pytest.raises(ValueError, match=r"\\nonsense is not known"):
        site.mathml(r"a + \nonsense")


def test_verdicts_stand_on_the_page(site):
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
    page = Markup(site.page({"t.html": trial({}, outputs)}, "t.html"))
    assert len(page.all("details")) == 3 and len(page.all("script")) == 4
    assert not page.all("img")
    assert "not attempted" in page.prose and made[1].text not in page.prose


def test_a_live_page_may_load_its_own_programs_and_nothing_else(site, notebooks):
    """One script more, its worker, and what lies beside it; the text is that of the other page."""
    name = "05_softmax.html"
    plain, live = site.page(notebooks, name), site.page(notebooks, name, "live/abc/")
    page = Markup(live)
    assert [s["src"] for s in page.all("script") if "src" in s] == ["live/abc/cells.js"]
    (policy,) = (m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert "worker-src 'self'; connect-src 'self';" in policy and "http" not in policy
    assert 0 < len(live.encode()) - len(plain.encode()) < 5_000
    assert "You can write these functions here" in page.prose and "runs no code" not in page.prose
    assert (
        "runs no code"
        in Markup(site.page(notebooks, "13_train_a_translator.html", "live/a/")).prose
    )


@pytest.fixture
def live(ci, monkeypatch, tmp_path):
    """`tools/live.py`, which has fetched nothing yet."""
    program = ci("live")
    monkeypatch.setattr(program, "CACHE", tmp_path / "cache")
    return program


def test_what_is_fetched_is_held_to_its_sum(live):
    """Another file stops the build by its name; of a zip it counts what is in it."""
    for name in live.SUMS:
        data = zipped({"a": b"1"}) if name == "packages.zip" else b"another"
        with pytest.raises(SystemExit, match=re.escape(f"{name} is not what it was")):
            live.held(data, name)
    files = {"a": b"1" * 99, "b": b"2"}
    told = (files, 0), (dict(reversed(files.items())), 8), (files | {"b": b"3"}, 8)
    sums = [live.digest_of(zipped(*each), "packages.zip") for each in told]
    assert sums[0] == sums[1] != sums[2]


def zipped(files: dict[str, bytes], how: int = 0) -> bytes:
    """A zip, packed or not."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", how) as pack:
        for name, data in files.items():
            pack.writestr(name, data)
    return made.getvalue()


def test_without_npm_the_pages_are_to_read(live, monkeypatch, tmp_path, capsys):
    """One line says so; what an earlier run had made goes."""
    monkeypatch.setenv("PATH", str(tmp_path))
    site = tmp_path / "site"
    (site / "live/old").mkdir(parents=True)
    (site / "sw.js").write_text("old")
    live.build(site)
    assert [*site.iterdir()] == []
    assert capsys.readouterr().out.startswith("The pages are to read, they run nothing: `npm pack")
