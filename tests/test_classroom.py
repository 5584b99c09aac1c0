"""`make grade`: a class of 30 notebooks, hostile ones too, and no row that is not its own."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.checks import cells, classroom
from helpers.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG

START = "import numpy as np\nfrom helpers.checks import check"
ANSWERS = {
    ("softmax", RIGHT): """
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)""",
    ("softmax", WRONG): """
def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)""",
    ("softmax", NOT_ATTEMPTED): '''
def softmax(x, axis=-1):
    """Weights along an axis: (…) → (…)."""
    ...''',
    ("attention_scores", RIGHT): """
def attention_scores(Q, K):
    return np.einsum("...qd,...kd->...qk", Q, K)""",
    ("attention_scores", WRONG): """
def attention_scores(Q, K):
    return K @ np.swapaxes(Q, -1, -2)""",
    ("attention_scores", NOT_ATTEMPTED): """
def attention_scores(Q, K):
    pass""",
}
NAMES = ("softmax", "attention_scores")
HOSTILE = {  # a cell before the answers
    "endless": "while True:\n    pass",
    "leaves": "import sys\nsys.exit()",
    "deletes": """
import os, pathlib, shutil
for path in pathlib.Path().iterdir():
    path.unlink()
shutil.rmtree(os.getcwd())""",
    "shouts": "for _ in range(100):\n    print('x' * 2**20)",
    "meddles": """
import helpers.checks, helpers.checks.judge, helpers.checks.observe, helpers.attention
helpers.checks.grade = helpers.checks.judge.judge = lambda *args: "right"
helpers.checks.judge.expected_of = helpers.checks.observe.observe_apart = None
helpers.attention.softmax = lambda x, axis=-1: x
open(helpers.attention.__file__, "w").write("raise SystemExit")""",
}


def write(path: Path, *sources: str, markdown: str = "# My homework") -> None:
    """A notebook of one Markdown cell and code cells."""
    made = [{"cell_type": "code", "source": source, "outputs": []} for source in sources]
    made.insert(0, {"cell_type": "markdown", "source": markdown})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4}), "utf-8")


def answered(statuses) -> list[str]:
    """The cells of both exercises, answered so."""
    pairs = zip(NAMES, statuses, strict=True)
    return [s for n, status in pairs for s in (ANSWERS[n, status].strip(), f"{n} = check({n})")]


def rows_in(path: Path) -> dict[tuple[str, str], dict]:
    """The rows of a CSV file by learner and exercise; none occurs twice."""
    with open(path, encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = {(row["learner"], row["exercise"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def grade(folder: Path, *options: str) -> tuple[dict, str]:
    """Run the command; its rows and what it printed."""
    command = [sys.executable, "-m", "helpers.checks.classroom", str(folder), *options]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return rows_in(folder / "grades.csv"), done.stdout


def run(tmp_path: Path, *sources: str, seconds: float = 12, **more: str) -> dict:
    """The rows of one notebook, by exercise."""
    write(tmp_path / "only.ipynb", *sources, **more)
    [rows] = classroom.grade_folder(tmp_path, classroom.Limits(seconds))
    return {row.exercise: row for row in rows}


def alive(word: str) -> list[str]:
    """The processes with a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if word.encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


# ---------------------------------------------------------------- the class of 30


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    """A class of 30, graded once: what each answered, and the rows."""
    folder, told = tmp_path_factory.mktemp("school"), {}
    kinds = [RIGHT, WRONG, NOT_ATTEMPTED]
    for i in range(25):
        told[f"group {i % 2}/learner {i:02}"] = (kinds[i % 3], kinds[i // 3 % 3])
    told |= {f"hostile/{name}": (RIGHT, WRONG) for name in HOSTILE}
    for learner, statuses in told.items():
        cell = HOSTILE.get(learner.split("/")[1], "answer = 42")
        write(folder / f"{learner}.ipynb", START, cell, *answered(statuses))
    write(folder / ".ipynb_checkpoints" / "old.ipynb", START)
    return folder, told, *grade(folder, "--seconds", "12")


def test_every_learner_gets_the_rows_that_are_theirs(school):
    _, told, rows, _ = school
    assert len(told) == 30 and len(rows) == 60
    got = {key: row["status"] for key, row in rows.items()}
    pairs = [(learner, zip(NAMES, s, strict=True)) for learner, s in told.items()]
    assert got == {(learner, name): status for learner, p in pairs for name, status in p}


def test_mistakes_are_named(school):
    _, _, rows, _ = school
    named = {(row["exercise"], row["mistake"]) for row in rows.values() if row["status"] == WRONG}
    assert len(named) == 2 and all(mistake for _, mistake in named)
    assert all(row["message"] for row in rows.values())
    assert {row["notebook"] for row in rows.values()} <= {"03", "05"}


def test_the_files_stay_and_the_summary_counts(school):
    folder, told, _, printed = school
    assert all((folder / f"{learner}.ipynb").is_file() for learner in told)
    assert "30 notebooks, 60 rows" in printed and "most frequent mistakes" in printed
    softmax = next(line.split() for line in printed.splitlines() if line.startswith("softmax"))
    first = [statuses[0] for statuses in told.values()]
    assert softmax[1:] == [str(first.count(s)) for s in classroom.STATUSES]


# ---------------------------------------------------------------- one notebook at a time


@pytest.mark.parametrize(
    "cell",
    [
        "import itertools\nsum(itertools.count())",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import os\nos._exit(3)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os\nos.closerange(0, 200)",
        "hoard = []\nwhile True:\n    hoard.append(bytearray(10**8))",
        "import json, os\nos.write = json.dumps = None",
    ],
    ids="c-loop swallows exits killed closes hoards breaks".split(),
)
@pytest.mark.skipif(sys.platform != "linux", reason="limits and forks as on Linux")
def test_answers_after_a_fatal_cell_are_judged(tmp_path, cell):
    rows = run(tmp_path, START, cell, *answered([RIGHT, WRONG]), seconds=8)
    assert [rows[name].status for name in NAMES] == [RIGHT, WRONG]
    assert rows["attention_scores"].mistake


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_children_do_not_survive(tmp_path):
    word = f"sleeper-{os.getpid()}"
    cell = f"""
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)", "{word}"],
                 start_new_session=True)
if os.fork() == 0:
    os.setsid()
    while True:
        pass"""
    rows = run(tmp_path, START, cell, *answered([RIGHT, RIGHT]))
    assert {row.status for row in rows.values()} == {RIGHT}
    assert alive(word) == [] and alive("helpers.checks.cells") == []


def test_an_answer_that_never_returns(tmp_path):
    loop = "def softmax(x, axis=-1):\n    while True:\n        pass"
    rows = run(tmp_path, START, loop, "softmax = check(softmax)", *answered([RIGHT, RIGHT])[2:])
    assert rows["softmax"].status == WRONG and "does not return" in rows["softmax"].message
    assert rows["attention_scores"].status == RIGHT


def test_a_cell_that_cannot_run_is_wrong_and_the_lesson_s_own_function_does_not_count(tmp_path):
    lesson = ANSWERS["softmax", RIGHT]
    write(tmp_path / "only.ipynb", START, lesson, "softmax = check(softmax)")
    book = json.loads((tmp_path / "only.ipynb").read_text("utf-8"))
    book["cells"].insert(3, {"cell_type": "markdown", "source": "## Your turn"})
    (tmp_path / "only.ipynb").write_text(json.dumps(book), "utf-8")
    [[row]] = classroom.grade_folder(tmp_path, classroom.Limits(12))
    assert row.status == NOT_ATTEMPTED
    broken = {"cell_type": "code", "source": "def softmax(x, axis=-1):\n    return ("}
    book["cells"].insert(4, broken)
    (tmp_path / "only.ipynb").write_text(json.dumps(book), "utf-8")
    [[row]] = classroom.grade_folder(tmp_path, classroom.Limits(12))
    assert row.status == WRONG and "SyntaxError" in row.message


def test_the_reference_handed_in_twice_is_no_answer(tmp_path):
    twice = [*answered([WRONG, RIGHT]), "softmax = check(softmax)"]
    assert run(tmp_path, START, *twice)["softmax"].status == WRONG


def test_a_recursive_answer_is_judged_as_it_is(tmp_path):
    answer = "def softmax(x, axis=-1):\n    return softmax(x, axis)"
    row = run(tmp_path, START, answer, "softmax = check(softmax)")["softmax"]
    assert row.status == WRONG and "RecursionError" in row.message


def test_an_answer_without_its_check_and_one_with_magics(tmp_path):
    magics = "%matplotlib inline\n!rm -rf *\n%time total = 1 + 1\nassert total == 2"
    both = [ANSWERS[name, RIGHT] for name in NAMES]
    rows = run(tmp_path, START, f"{magics}\n{both[0]}", both[1])
    assert [rows[name].status for name in NAMES] == [RIGHT, RIGHT]


def test_a_notebook_is_known_by_its_heading_and_its_exercises(tmp_path, monkeypatch):
    monkeypatch.setattr(classroom, "room_of", {"05": ("softmax",)}.get)
    write(tmp_path / "renamed.ipynb", START, markdown="# 05 · Softmax")
    [[row]] = classroom.grade_folder(tmp_path, classroom.Limits(12))
    assert (row.notebook, row.exercise, row.status) == ("05", "softmax", NOT_ATTEMPTED)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', "[" * 100_000, "\x00", '{"a": 1}'])
def test_broken_files_get_a_row(tmp_path, text):
    (tmp_path / "broken.ipynb").write_text(text, "utf-8")
    write(tmp_path / "strange.ipynb", "print(1)")
    broken, strange = classroom.grade_folder(tmp_path)
    assert broken[0].status == strange[0].status == classroom.NO_ANSWER
    assert "no notebook" in broken[0].message and "No exercise" in strange[0].message


def test_what_a_process_writes_is_not_trusted():
    forged = {"answer": "softmax", "stub": False, "runs": [["[1, []]"]]}
    lines = [forged, forged | {"runs": 3}, forged | {"runs": []}, forged | {"runs": [["x"]]}]
    for message in lines:
        assert classroom.verdict("softmax", message, True)[0] == classroom.NO_ANSWER
    job = {"cells": ["1"], "exercises": ["softmax"]}
    for line in (b"", b"[1]", b'{"cell": 7}', b"[" * 10**5, b'{"answer": []}'):
        classroom._note(classroom.Run(), line, job)


def test_definitions_are_what_calls_nothing():
    source = "import os\nx = 3\ny = f()\ndef g(): ...\nsoftmax = check(softmax)\ncheck(g)\nos.x = 1"
    kept = [node for tree in cells.definitions(source) for node in tree.body]
    assert [node.lineno for node in kept] == [1, 2, 4, 5, 6]


def test_without_notebooks_there_is_a_sentence(tmp_path):
    command = [sys.executable, "-m", "helpers.checks.classroom", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 1 and "no folder with notebooks" in done.stdout


def test_text_is_safe_in_a_spreadsheet():
    assert classroom.safe("=1+1") == "'=1+1" and classroom.safe("\ud800a") == "?a"
