"""Every notebook has its rooms, short cells, alt text, clean outputs, links that resolve."""

import ast
import base64
import importlib
import itertools
import json
import re
import zlib
from itertools import pairwise

import pytest
from lessons import (
    CHECK,
    EVERY,
    FOLDER,
    PATHS,
    TASK,
    by_room,
    cells,
    code_cells,
    exercise_cells,
    folded_code,
    headings,
    is_stub,
    lesson_of,
    markdown,
    minutes_of,
    outputs,
    tree,
)

from workshop import drawings
from workshop.checks.syntax import functions
from workshop.exercises import find

ROOMS = ["Setup", "The question", "The picture", "By hand", "In code", "See it", "Predict",
         "Watch out", "Your turn", "Recap and next"]  # fmt: skip
PICTURES = set(drawings.__all__) - {"STEPS"}
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
LINK = re.compile(r"\]\(([^)\s]+)\)")
EMOJI = re.compile("[\U0001f300-\U0001faff☀-➿]")

every_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
and_the_appendix = pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)


def shown_widget(cell):
    """The id of the widget that a cell's output shows, or None."""
    views = (output.get("data", {}).get(VIEW) for output in cell["outputs"])
    return next((view["model_id"] for view in views if view), None)


@every_notebook
def test_rooms_in_order(path):
    found = [re.split(r"[:—]", heading)[0].strip() for heading in headings(path, 2)]
    assert found == ROOMS
    (title,) = headings(path, 1)
    number = PATHS.index(path)
    assert title.startswith(f"{number:02} · ") and path.name.startswith(f"{number:02}_")


@every_notebook
def test_it_opens_with_a_model_or_a_picture(path):
    """The first eight with the machine on apple; the others with a machine or a drawing."""
    _, opening, *_ = code_cells(path)
    machine = shown_widget(opening) and "Machine" in calls(opening)
    drawn = calls(opening) & PICTURES and pictured(opening)
    if path.stem < "08":
        assert machine and "machine(apple" in opening["source"].lower()
    assert machine or drawn


@every_notebook
def test_it_shows_before_it_counts(path):
    """Six drawings or more, twenty tables at most, two to four mistakes of today's learners."""
    drawn = [o for cell in code_cells(path) if calls(cell) & PICTURES for o in pictured(cell)]
    assert len(drawn) >= 6
    tables = [o for cell in code_cells(path) if "show" in calls(cell)
              for o in cell["outputs"] if "text/html" in o.get("data", {})]  # fmt: skip
    assert len(tables) <= 20
    warned = [cell for cell in by_room(path)["Watch out"] if cell["cell_type"] == "markdown"]
    assert 2 <= len(re.findall(r"^### ", "\n".join(c["source"] for c in warned), re.M)) <= 4


@every_notebook
def test_an_exercise_comes_before_its_answer(path):
    """None has its function above, but for those *From memory*; one or more stand in *In code*,
    the answer folded below."""
    done, before = [], by_room(path)["In code"]
    for cell in itertools.takewhile(lambda c: "### From memory" not in c["source"], cells(path)):
        if cell["cell_type"] == "code":
            made = [n for n in tree(cell).body if isinstance(n, ast.FunctionDef) and not is_stub(n)]
            done += [node.name for node in made]
        elif found := TASK.match(cell["source"]):
            assert found[2] not in done, found[2]
    folded = [after for task, _, _, after in exercise_cells(path) if task in before]
    assert folded and all(map(folded_code, folded))


def pictured(cell):
    """Those of a cell's outputs that are pictures."""
    return [output for output in cell["outputs"] if "image/png" in output.get("data", {})]


def calls(cell):
    """The names of the functions that a cell calls."""
    found = [node.func for node in ast.walk(tree(cell)) if isinstance(node, ast.Call)]
    return {node.id for node in found if isinstance(node, ast.Name)}


@every_notebook
def test_first_cell_says_what_is_needed_and_links_back_and_the_last_links_on(path):
    first, last, number = cells(path)[0]["source"], cells(path)[-1]["source"], PATHS.index(path)
    assert "[Open in Colab](" in first and "**You need**" in first
    assert not number or f"({PATHS[number - 1].name})" in first
    assert all(f"({after.name})" in last for after in PATHS[number + 1 :][:1])


@and_the_appendix
def test_setup_is_the_same_but_for_the_imports(path):
    """The lines for Colab are one text everywhere, from 14 on with an extra; the rest is imports.

    Those that train small models, or run one often, then keep PyTorch to one thread.
    """
    setup, model = (code_cells(p)[0] for p in (path, PATHS[0]))
    colab = re.compile(r'^if "google\.colab".*?\n\n', re.MULTILINE | re.DOTALL)
    extra = "[pretrained]" if path.stem[:2] in ("14", "15", "16") else ""
    wanted = colab.search(model["source"])[0].replace("-step @", f"-step{extra} @")
    assert colab.search(setup["source"])[0] == wanted
    lines = tree(setup).body
    if path.stem[:2] in ("12", "13", "14", "15", "16") or not isinstance(
        lines[-1], ast.Import | ast.ImportFrom | ast.If
    ):
        assert ast.unparse(lines.pop()) == "torch.set_num_threads(1)"
    kinds = [type(node).__name__ for node in lines]
    assert kinds.count("If") == 1
    assert set(kinds) == {"If", "Import", "ImportFrom"}


@and_the_appendix
def test_code_cells_are_short_and_executed(path):
    for i, cell in enumerate(code_cells(path), start=1):
        lines = [line for line in cell["source"].splitlines() if line.strip()]
        assert 0 < len(lines) <= 15, cell["id"]
        assert cell["execution_count"] == i, cell["id"]


@and_the_appendix
def test_every_figure_has_alt_text(path):
    pictures = [(i, o) for i, o in outputs(path) if "image/png" in o.get("data", {})]
    assert len(pictures) >= 2
    for cell_id, output in pictures:
        alt = output["metadata"]["image/png"]["alt"]
        assert len(alt.split()) >= 6, cell_id
        assert "".join(output["data"]["text/plain"]) == alt, cell_id
    assert not re.search(r"!\[\]|<img(?![^>]*alt=)", markdown(path))


@every_notebook
def test_see_it_begins_with_a_widget_and_predict_asks(path):
    """A widget first in *See it*; one to three questions, each answered by the cell after it."""
    rooms = by_room(path)
    first, *_ = [cell for cell in rooms["See it"] if cell["cell_type"] == "code"]
    assert shown_widget(first), first["id"]
    code = [cell for cell in rooms["Predict"] if cell["cell_type"] == "code"]
    asked = [i for i, cell in enumerate(code) if "predict(" in cell["source"]]
    assert 1 <= len(asked) <= 3
    for i in asked:
        assert shown_widget(code[i]), code[i]["id"]
        assert code[i + 1 : i + 2] and i + 1 not in asked, "the next cell shows the answer"


@every_notebook
def test_the_answer_of_a_question_is_computed(path):
    """`answer=` holds a name or a call, so that the author can't type a letter."""
    for cell in by_room(path)["Predict"]:
        if cell["cell_type"] == "code" and "predict(" in cell["source"]:
            (call,) = [n for n in ast.walk(tree(cell)) if isinstance(n, ast.Call)
                       and getattr(n.func, "id", "") == "predict"]  # fmt: skip
            answer = next(k.value for k in call.keywords if k.arg == "answer")
            used = {node.id for node in ast.walk(answer) if isinstance(node, ast.Name)}
            assert used, cell["id"]


@every_notebook
def test_an_answer_is_folded_its_code_and_what_it_shows(path):
    """By the metadata and by `folded`, which no Run All opens; so is the code of the question."""
    code = [cell for cell in by_room(path)["Predict"] if cell["cell_type"] == "code"]
    for asked, answered in pairwise(code):
        if "predict(" in asked["source"]:
            for cell in (asked, answered):
                assert cell["metadata"]["jupyter"] == {"source_hidden": True}, cell["id"]
                assert cell["metadata"]["cellView"] == "form", cell["id"]
            (block,) = tree(answered).body
            assert ast.unparse(block).startswith("with folded('The answer'):"), answered["id"]
            (output,) = answered["outputs"]
            markup = "".join(output["data"]["text/html"])
            assert markup.startswith("<details><summary>The answer</summary>"), answered["id"]
            assert markup.endswith("</details>"), answered["id"]


@every_notebook
def test_a_notebook_has_two_to_seven_exercises(path):
    """Task, stub, check, numbered through; a stub begins as the solution does."""
    asked = exercise_cells(path)
    assert 2 <= len(asked) <= 7
    for number, (task, written, checked, _) in enumerate(asked, start=1):
        name = checked["source"].partition(" ")[0]
        (stub,) = tree(written).body
        assert is_stub(stub) and stub.name == name and ast.get_docstring(stub), name
        assert len(ast.get_docstring(stub).splitlines()) == 1, name
        known = find(name)
        begins = [{n: ast.unparse(f.args) for n, f in functions(made).items()}
                  for made in (stub, known.tree)]  # fmt: skip
        assert type(stub) is type(known.tree) and begins[0] == begins[1], name
        told = rf"\*\*{number} · {name}\*\* — difficulty [123] of 3, about \d+ minutes\n\n\S"
        assert re.match(told, task["source"]), name
        assert known.notebook == path.stem[:2], name


@every_notebook
def test_checks_are_saved_small_and_not_attempted(path):
    """With their words for screen readers beside the HTML; no answer of an author's is saved."""
    for cell in code_cells(path):
        if re.fullmatch(CHECK, cell["source"]):
            name = cell["source"].partition(" ")[0]
            (output,) = cell["outputs"]
            text, markup = ("".join(output["data"][k]) for k in ("text/plain", "text/html"))
            assert text.startswith(f"{name}: not attempted."), cell["id"]
            assert "not attempted" in markup and len((text + markup).encode()) < 3000, cell["id"]


def inflated(esm: str) -> tuple[str, bytes]:
    """A saved program's loader, and what it loads, which another zlib may have packed."""
    packed = re.search('packed = "(.+)"', esm)[1]
    return esm.replace(packed, ""), zlib.decompress(base64.b85decode(packed))


@every_notebook
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


@and_the_appendix
def test_few_cells_are_exempt_from_comparison_and_say_why(path):
    tagged = [cell for cell in code_cells(path) if cell["metadata"].get("tags")]
    assert len(tagged) <= len(code_cells(path)) / 20
    for cell in code_cells(path):
        assert "NBVAL" not in cell["source"], cell["id"]
    for cell in tagged:
        assert cell["metadata"]["tags"] == ["nbval-ignore-output"], cell["id"]
        assert "# not compared" in cell["source"], cell["id"]


@and_the_appendix
def test_outputs_are_clean_and_fit_a_narrow_page(path):
    """JupyterLab at 620 pixels breaks what is printed after 64 signs, in the middle of a number."""
    for cell_id, output in outputs(path):
        assert output["output_type"] != "error" and output.get("name") != "stderr", cell_id
        printed, words = output.get("text", ""), output.get("data", {}).get("text/plain", "")
        assert max(map(len, "".join(printed).split("\n"))) <= 64, cell_id
        text = "".join(printed) + "".join(words)
        assert not re.search(r"0x[0-9a-f]{6,}|/(home|root|tmp|work)/|-0\.0000\b", text), cell_id


@and_the_appendix
def test_size_and_style(path):
    whole_translator = path.name.startswith("13")  # with all its weights
    assert path.stat().st_size <= (1_400_000 if whole_translator else 400_000)
    assert not EMOJI.search(markdown(path))
    assert not re.search(r"\b(simply|obviously)\b", markdown(path), re.IGNORECASE)


@and_the_appendix
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


@every_notebook
def test_readme_lists_the_notebook_with_its_minutes(path):
    readme = (FOLDER.parent / "README.md").read_text("utf-8")
    reading, writing = re.findall(r"\*\*: (\d+) m", cells(path)[0]["source"])
    title = headings(path, 1)[0].partition(" · ")[2]
    (row,) = re.findall(rf"^\| {path.stem[:2]} \|.*$", readme, re.MULTILINE)
    assert f"[{title}](notebooks/{path.name})" in row
    assert f"| {reading} + {writing} | [Colab](https://colab.research.google.com/github/" in row
    assert row.endswith(f"/notebooks/{path.name}) |")


@every_notebook
def test_minutes_are_counted(path):
    """Words at 130 a minute and half a minute for each code cell, rounded to five; exercises.

    Not those of *Your turn*, of tasks, and of what stays folded until somebody has tried.
    """
    told = r"\*\*Reading time\*\*: (\d+) minutes\. \*\*Your turn\*\*: (\d+) more\."
    reading, writing = map(int, re.search(told, cells(path)[0]["source"]).groups())
    assert reading == 5 * round(minutes_of(lesson_of(path)) / 5)
    most = 35 if path.stem[:2] == "12" else 25  # the whole transformer, and its decoder
    assert minutes_of(lesson_of(path)) <= most
    assert writing == sum(int(m) for m in re.findall(r"of 3, about (\d+) minutes", markdown(path)))
