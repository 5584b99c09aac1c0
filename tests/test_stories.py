"""Every notebook is clean and can be trusted; a story keeps its limits, and closes what is deeper.

python -m pytest tests/test_stories.py -k 05  one notebook
"""

import ast
import builtins
import importlib
import json
import re
import subprocess
import sys
import zlib
from base64 import b85decode

import pytest
from conftest import load_script
from lessons import (
    EVERY,
    FOLDER,
    PATHS,
    VIEW,
    by_room,
    calls,
    cells,
    code_cells,
    exercise_cells,
    folded_code,
    headings,
    is_stub,
    made_by,
    markdown,
    needs,
    outputs,
    tree,
)

from workshop.checks.syntax import functions
from workshop.exercises import find

MINUTES = load_script("minutes")
ORDER = ["What we have so far", "The question", "The picture", "By hand", "In code", "See it",
         "Predict", "In PyTorch", "Recap and next", "Go deeper"]  # fmt: skip
STATE = "application/vnd.jupyter.widget-state+json"
LINK = re.compile(r"\]\(([^)\s]+)\)")
EMOJI = re.compile("[\U0001f300-\U0001faff☀-➿]")
TASK = re.compile(
    r"^\*\*Your task: (\w+)\*\* \((difficulty [123] of 3, )?about \d+ minutes\)\. ", re.M
)
ANSWER = "<details><summary>Open when you have tried: "
STOPPED = "/issues/new?template=where_did_you_stop.yml&title="
LOOPS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
TRICKS = r"^\s*assert\b|# (noqa|fmt)|\[[^\]]*\bNone\b|:=|\b(no|tech|few)\b(, \w+)* ="

every_notebook = pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
every_lesson = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


# ---------------------------------------------------------------- every notebook


@every_notebook
def test_setup_is_the_same_on_colab(path):
    """From 14 on with an extra."""
    setup, model = (code_cells(p)[0] for p in (path, PATHS[0]))
    colab = re.compile(r'^if "google\.colab".*?\n\n', re.MULTILINE | re.DOTALL)
    extra = "[pretrained]" if path.stem[:2] in ("14", "15", "16") else ""
    wanted = colab.search(model["source"])[0].replace("-step @", f"-step{extra} @")
    assert colab.search(setup["source"])[0] == wanted


@every_notebook
def test_code_cells_are_short_and_executed(path):
    for i, cell in enumerate(code_cells(path), start=1):
        lines = [line for line in cell["source"].splitlines() if line.strip()]
        assert 0 < len(lines) <= 15 or cell["id"] == "setup", cell["id"]
        assert cell["execution_count"] == i, cell["id"]


@every_notebook
def test_every_figure_has_alt_text(path):
    pictures = [(i, o) for i, o in outputs(path) if "image/png" in o.get("data", {})]
    assert len(pictures) >= 2
    for cell_id, output in pictures:
        alt = output["metadata"]["image/png"]["alt"]
        assert len(alt.split()) >= 6, cell_id
        assert "".join(output["data"]["text/plain"]) == alt, cell_id
    assert not re.search(r"!\[\]|<img(?![^>]*alt=)", markdown(path))


@every_lesson
def test_the_answer_of_a_question_is_computed(path):
    """`answer=` holds a name or a call, so that the author can't type a letter."""
    for cell in code_cells(path):
        if "predict" in calls(cell):
            (call,) = [n for n in ast.walk(tree(cell)) if isinstance(n, ast.Call)
                       and getattr(n.func, "id", "") == "predict"]  # fmt: skip
            answer = next(k.value for k in call.keywords if k.arg == "answer")
            used = {node.id for node in ast.walk(answer) if isinstance(node, ast.Name)}
            assert used, cell["id"]


@every_lesson
def test_a_stub_begins_as_its_solution_does(path):
    """One line of docstring; the same arguments; asked in the notebook of its file."""
    every = exercise_cells(path)
    for _, written, checked, _ in every:
        name = checked["source"].partition(" ")[0]
        stub = tree(written).body[-1]  # below imports
        assert is_stub(stub) and stub.name == name and ast.get_docstring(stub), name
        assert len(ast.get_docstring(stub).splitlines()) == 1, name
        known = find(name)
        begins = [{n: ast.unparse(f.args) for n, f in functions(made).items()}
                  for made in (stub, known.tree)]  # fmt: skip
        assert type(stub) is type(known.tree) and begins[0] == begins[1], name
        assert known.notebook == path.stem[:2], name


def inflated(esm: str) -> tuple[str, bytes]:
    """A saved program's loader, and what it loads, which another zlib may have packed."""
    packed = re.search('packed = "(.+)"', esm)[1]
    return esm.replace(packed, ""), zlib.decompress(b85decode(packed))


@every_lesson
def test_every_widget_has_a_picture_its_words_and_its_saved_state(path):
    saved = json.loads(path.read_text("utf-8"))["metadata"]["widgets"][STATE]["state"]
    shown = [(i, o) for i, o in outputs(path) if VIEW in o.get("data", {})]
    for cell_id, output in shown:
        model = saved[output["data"][VIEW]["model_id"]]
        assert model["state"]["words"] == "".join(output["data"]["text/plain"]), cell_id
        assert "image/png" in output["data"], cell_id
        module, _, name = model["state"]["_anywidget_id"].rpartition(".")
        widget = getattr(importlib.import_module(module), name)
        same = inflated(model["state"]["_esm"]) == inflated(widget._esm)
        assert same, f"{cell_id}: run `make notebooks`"


@every_notebook
def test_few_cells_are_exempt_from_comparison_and_say_why(path):
    tagged = [c for c in code_cells(path) if "nbval-ignore-output" in c["metadata"].get("tags", [])]
    assert len(tagged) <= len(code_cells(path)) / 20
    for cell in cells(path):
        known = {"drawn", "reached", "nbval-ignore-output"} if "outputs" in cell else {"deeper"}
        assert {*cell["metadata"].get("tags", [])} <= known, cell["id"]
        assert "NBVAL" not in cell["source"], cell["id"]
    for cell in tagged:
        assert "# not compared" in cell["source"], cell["id"]


@every_notebook
def test_outputs_are_clean_and_fit_a_narrow_page(path):
    """JupyterLab at 620 pixels breaks what is printed after 64 signs, in the middle of a number."""
    for cell_id, output in outputs(path):
        assert output["output_type"] != "error" and output.get("name") != "stderr", cell_id
        printed, words = output.get("text", ""), output.get("data", {}).get("text/plain", "")
        assert max(map(len, "".join(printed).split("\n"))) <= 64, cell_id
        text = "".join(printed) + "".join(words)
        assert not re.search(r"0x[0-9a-f]{6,}|/(home|root|tmp|work)/|-0\.0000\b", text), cell_id


@every_notebook
def test_size_and_style(path):
    """A story holds the widgets of two layers."""
    assert path.stat().st_size <= (500_000)
    assert not EMOJI.search(markdown(path))
    assert not re.search(r"\b(simply|obviously)\b", markdown(path), re.IGNORECASE)


@every_notebook
def test_links_resolve(path):
    """Local links name files and headings that exist."""
    for target in LINK.findall(markdown(path)):
        if target.startswith(("https://", "#")):
            continue
        name, _, anchor = target.partition("#")
        file = (FOLDER / name).resolve()
        assert file.exists(), target
        if anchor:
            assert re.search(rf"^#+ {anchor}$", file.read_text("utf-8"), re.I | re.M), target


# ---------------------------------------------------------------- the form of a story


@pytest.fixture
def layers(path):
    """The cells of a story, and those of each of its closed sections."""
    return MINUTES.layers(cells(path))


def code(some):
    return [cell for cell in some if cell["cell_type"] == "code"]


def seen(some):
    """The code cells whose source is not hidden."""
    return [cell for cell in code(some) if not MINUTES.is_drawn(cell)]


@every_lesson
def test_a_story_stands_in_its_order_and_ends_with_the_way_on(path, layers):
    """Its first cell says what is needed, its recap leads on, and its last cell asks for a line."""
    story, sections = layers
    number = PATHS.index(path)
    (title,) = headings(path, 1)
    assert title.startswith(f"{number:02} · ") and path.name.startswith(f"{number:02}_")
    found = [re.split(r"[:—…]", heading)[0].strip() for heading in headings(path, 2)]
    known = [name for name in found if name in ORDER]
    assert known == [name for name in ORDER if name in found]
    assert {"The question", "The picture", "Recap and next"} <= {*found}
    first, recap, last = story[0]["source"], story[-1]["source"], cells(path)[-1]
    assert "[Open in Colab](" in first and "**You need**" in first
    assert not number or f"({PATHS[number - 1].name})" in first
    assert recap.startswith("## Recap and next")
    assert all(f"({after.name})" in recap for after in PATHS[number + 1 :][:1])
    assert last["id"] == "where" and f"{STOPPED}{number:02})" in last["source"]
    # Without a heading of its own it would lie in the last section, which is closed.
    assert last["source"].startswith("## ") and sections


@every_lesson
def test_a_story_is_short(layers):
    """One kind of task, one prediction, one widget besides; no trick in what is seen."""
    story, _ = layers
    pictures, widgets = MINUTES.shown(story)
    assert MINUTES.words(story) <= 1000 and len(MINUTES.visible(story)) <= 80
    assert pictures >= 5 and widgets == 2
    assert sum("predict" in calls(cell) for cell in code(story)) == 1
    assert 1 <= sum(bool(re.search(TASK, cell["source"])) for cell in story) <= 2
    for cell in seen(story):
        assert len(MINUTES.visible([cell])) <= 8, cell["id"]
        assert not re.search(TRICKS, cell["source"], re.MULTILINE), cell["id"]
        nodes = [*ast.walk(tree(cell))]
        assert not [n for n in nodes if isinstance(n, ast.Starred)], cell["id"]
        inside = [n for loop in nodes if isinstance(loop, LOOPS) for n in [*ast.walk(loop)][1:]]
        assert not [n for n in inside if isinstance(n, LOOPS)], cell["id"]


def lacking(some, made, hidden):
    """What cells use that no cell before has made, or, where they are seen, a hidden one alone.

    The names that are there, and those of hidden cells, grow.
    """
    for cell in code(some):
        own, drawn = made_by(cell), MINUTES.is_drawn(cell) and cell["id"] != "setup"
        there = made | {*dir(builtins), "__name__"} if drawn else made - hidden | {*dir(builtins)}
        yield from ((cell["id"], name) for name in needs(cell) - there)
        made |= own
        hidden -= own
        if drawn:
            hidden |= own


@every_lesson
def test_hidden_cells_have_captions_and_sections_need_the_story_alone(path, layers):
    story, sections = layers
    made, hidden = set(), set()
    assert [*lacking(story, made, hidden)] == []
    for section in sections:
        assert [*lacking(section, {*made}, {*hidden})] == []
    assert MINUTES.is_drawn(code_cells(path)[0]) and code_cells(path)[0]["id"] == "setup"
    for cell in code_cells(path):
        assert cell["source"].startswith("# @title ") == MINUTES.is_drawn(cell), cell["id"]


@every_lesson
def test_what_is_deeper_is_closed_and_says_what_it_gives(path, layers):
    """It asserts only what shows a published mistake false."""
    deeper = markdown(path).partition("\n## Go deeper\n")[2]
    assert len(layers[1]) == len(re.findall("^### ", deeper, re.MULTILINE)) >= 2
    for closed, *_ in layers[1]:
        told = r"### [^\n]+\n\n\d+ minutes?: [^\n]+"
        assert re.fullmatch(told, closed["source"]), closed["id"]
        assert closed["metadata"]["jp-MarkdownHeadingCollapsed"], closed["id"]
    errata = (FOLDER.parent / "tests/data/errata.csv").read_text("utf-8")
    asserts = [cell["id"] for cell in code_cells(path) if "assert" in cell["source"]]
    assert [i for i in asserts if not re.search(rf"[ ]{i}\b", errata)] == []


@every_lesson
def test_a_task_comes_before_its_answer_which_is_folded(path, layers):
    """Task, stub, check, answer; no cell above defines it. One of the story says so itself."""
    every, tasks = cells(path), exercise_cells(path)
    for task, written, checked, answer in tasks:
        ((name, in_depth),) = re.findall(TASK, task["source"])
        assert checked["source"] == f"{name} = check({name})"
        above = code(every[: every.index(written)])
        assert not any(name in made_by(cell) for cell in above), name
        assert answer["source"].startswith(ANSWER) and folded_code(answer), name
        assert find(name).story == (task in layers[0]) != bool(in_depth), name


@every_lesson
def test_minutes_are_those_that_the_program_counts(path):
    """Of story, task and depth, in the first cell, in each closed heading, in README's table."""
    readme = (FOLDER.parent / "README.md").read_text("utf-8")
    told = json.loads(json.dumps(cells(path)))
    found = MINUTES.measured(path.stem[:2], told)
    MINUTES.printed(told, found)
    assert told == cells(path), "run `make measure`"
    first = r"\*\*The story\*\*: \d+ minutes, \d+ of them .*\*\*Go deeper\*\*: \d+ sections? below "
    assert re.search(first + r"it, \d+ minutes", told[0]["source"])
    row = rf"^\| {path.stem[:2]} \| \[[^]]+\]\(notebooks/{path.name}\) \|.* \| \[Colab\]\(.*\) \|$"
    assert re.search(row, readme, re.MULTILINE)
    assert MINUTES.listed(readme, path.stem[:2], found) == readme, "run `make measure`"


RUN = """
import io, json, linecache, sys
from contextlib import redirect_stdout
sys.modules["torch"] = None
for name, sources in json.load(sys.stdin).items():
    scope = {"__name__": "__main__"}
    for cell, source in sources:
        linecache.cache[cell] = len(source), None, source.splitlines(True), cell  # for `check`
        try:
            with redirect_stdout(io.StringIO()):
                exec(compile(source, cell, "exec", dont_inherit=True), scope)
        except Exception as error:
            sys.exit(f"{name}, cell {cell}: {error!r}")
"""


@pytest.mark.slow
def test_the_first_stories_run_without_torch():
    """Those of 00 to 06 but for the cell *In PyTorch*, in one process."""
    sources = {}
    for path in (path for path in PATHS if path.stem < "07"):
        theirs = by_room(path).get("In PyTorch", [])
        story = [c for c in code(MINUTES.layers(cells(path))[0]) if c not in theirs]
        sources[path.stem] = [(cell["id"], ast.unparse(tree(cell))) for cell in story]
    call = [sys.executable, "-c", RUN]
    done = subprocess.run(
        call, input=json.dumps(sources), cwd=FOLDER.parent, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
