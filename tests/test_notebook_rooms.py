"""A notebook that is not told as a story yet has its rooms; test_stories has what all keep to."""

import ast
import itertools
import re
from itertools import pairwise

import pytest
from lessons import (
    FOLDER,
    PATHS,
    TASK,
    VIEW,
    by_room,
    calls,
    cells,
    code_cells,
    exercise_cells,
    folded_code,
    headings,
    is_story,
    is_stub,
    lesson_of,
    markdown,
    minutes_of,
    tree,
)

from workshop import drawings

ROOMS = ["Setup", "The question", "The picture", "By hand", "In code", "See it", "Predict",
         "Watch out", "Your turn", "Recap and next"]  # fmt: skip
PICTURES = set(drawings.__all__) - {"STEPS"}

OLD = [path for path in PATHS if not is_story(path)]
every_notebook = pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)


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


@every_notebook
def test_first_cell_says_what_is_needed_and_links_back_and_the_last_links_on(path):
    first, last, number = cells(path)[0]["source"], cells(path)[-1]["source"], PATHS.index(path)
    assert "[Open in Colab](" in first and "**You need**" in first
    assert not number or f"({PATHS[number - 1].name})" in first
    assert all(f"({after.name})" in last for after in PATHS[number + 1 :][:1])


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
    """Numbered through, with their difficulty and minutes."""
    asked = exercise_cells(path)
    assert 2 <= len(asked) <= 7
    for number, (task, _, checked, _) in enumerate(asked, start=1):
        name = checked["source"].partition(" ")[0]
        told = rf"\*\*{number} · {name}\*\* — difficulty [123] of 3, about \d+ minutes\n\n\S"
        assert re.match(told, task["source"]), name


@every_notebook
def test_readme_lists_the_notebook_with_its_minutes(path):
    readme = (FOLDER.parent / "README.md").read_text("utf-8")
    reading, writing = re.findall(r"\*\*: (\d+) m", cells(path)[0]["source"])
    title = headings(path, 1)[0].partition(" · ")[2]
    (row,) = re.findall(rf"^\| {path.stem[:2]} \|.*$", readme, re.MULTILINE)
    assert f"[{title}](notebooks/{path.name})" in row
    assert f"| {reading} + {writing} | | | [Colab](https://colab.research.google.com/github/" in row
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
