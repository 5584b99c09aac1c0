"""`make grade`: a class with honest learners, cheats and vandals, and each gets its own rows."""

import csv
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import classes
import pytest
from classes import SCORES, SOFTMAX, START, SWAPPED, UNSTABLE, checked, write

from workshop import classroom
from workshop.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG
from workshop.classroom import Limits, __main__, grade_folder, read_notebook
from workshop.classroom.running import Report, keeps_apart, take
from workshop.classroom.verdicts import NO_ANSWER, STATUSES, rows_of
from workshop.exercises import asked

pytestmark = pytest.mark.slow
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits and forks as on Linux")
QUICK = [*classes.VANDALS][:6]  # the others take longer
SURVIVOR = f"survivor-{os.getpid()}"
LOOP = "def softmax(x, axis=-1):\n    while True:\n        pass"
WAIT = LOOP.replace("while True:\n        pass", "__import__('time').sleep(10**6)")
SHIFTED = SOFTMAX.replace("x - ", "x - shift - ")
ENDLESS = "import itertools\nshift = sum(itertools.count())"
MISSING = "import numpy_that_is_not_there as nope\nfrom not_there import *\n"
JITTED = f"@nope.jit\n{SOFTMAX}"
SINGLE = {  # an odd notebook, the status of its softmax, and what the message says
    "loop": ([START, *checked(LOOP)], WRONG, "does not return"),
    "wait": ([START, *checked(WAIT)], NO_ANSWER, "waits"),
    "needs what took too long": ([START, ENDLESS, *checked(SHIFTED)], NO_ANSWER, "lacks shift"),
    "import that raises": ([MISSING + START, *checked(SOFTMAX)], RIGHT, ""),
    "import and a wrong answer": ([MISSING + START, *checked(UNSTABLE)], WRONG, "overflows"),
    "import that it needs": ([MISSING + START, *checked(JITTED)], NO_ANSWER, "cell 1 raised Mod"),
    "raises between": ([START, f"1 / 0\n{SOFTMAX}\nsoftmax = check(softmax)"], RIGHT, ""),
    "broken": ([START, "def softmax(x, axis=-1):\n    return ("], WRONG, "SyntaxError"),
    "broken import": ([START.replace("as np", "as np, as"), SOFTMAX], NO_ANSWER, "lacks np"),
    "twice": ([START, *checked(UNSTABLE), "softmax = check(softmax)"], WRONG, "overflows"),
    "magics": ([f"%matplotlib inline\n!rm -rf *\n%time x = 1\n{START}\n{SOFTMAX}"], RIGHT, ""),
}  # fmt: skip


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "workshop.classroom", str(folder), *options]


def rows_at(folder: Path) -> dict[tuple[str, str], dict]:
    """The rows of a CSV file by learner and exercise."""
    with open(folder / "grades.csv", encoding="utf-8-sig", newline="") as stream:
        return {(row["learner"], row["exercise"]): row for row in csv.DictReader(stream)}


def write_lesson(path: Path) -> None:
    """The course's own notebook 05, in which a learner has written a softmax."""
    lesson = next((Path(__file__).parents[1] / "notebooks").glob("05_*.ipynb"))
    book = json.loads(lesson.read_text("utf-8"))
    for cell in book["cells"]:
        if re.fullmatch(r"def softmax\(.*\.\.\.", "".join(cell["source"]), re.DOTALL):
            cell["source"] = SOFTMAX
    path.write_text(json.dumps(book), "utf-8")


@LINUX
def test_every_learner_gets_the_rows_that_are_theirs(tmp_path):
    names = [*QUICK, *(classes.SNEAKS if keeps_apart() else ())]
    told = classes.cheats() | classes.vandals(tmp_path, SURVIVOR, names)
    told["patient"] = classes.PATIENT
    told |= {name: (cells, {"softmax": status}) for name, (cells, status, _) in SINGLE.items()}
    for learner, (cells, _) in told.items():
        write(tmp_path / "group" / f"{learner}.ipynb", *cells)
    write_lesson(tmp_path / "group" / "lesson.ipynb")
    told["lesson"] = [], dict.fromkeys(asked()["05"], NOT_ATTEMPTED) | {"softmax": RIGHT}
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.ipynb")}
    done = subprocess.run(command(tmp_path, "--seconds", "12"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.ipynb")}
    assert ("Notebooks are kept apart" in done.stdout) == keeps_apart()
    processes = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True).stdout
    assert SURVIVOR not in processes
    rows = {
        (who.removeprefix("group/"), name): row for (who, name), row in rows_at(tmp_path).items()
    }
    wanted = {(who, name): s for who, (_, statuses) in told.items() for name, s in statuses.items()}
    assert {key: row["status"] for key, row in rows.items()} == wanted
    for name, (_, _, message) in SINGLE.items():
        assert message in rows[name, "softmax"]["message"], name
    marked = {who: row["remark"] for (who, _), row in rows.items() if row["remark"]}
    cheats = [who for who in told if who.startswith("cheat")]
    assert marked == dict.fromkeys(cheats, "It calls the course's own softmax.")
    assert rows["vandal exits", "attention_scores"]["mistake"] == "queries-and-keys-swapped"
    assert f"{len(told)} notebooks, {len(rows)} rows" in done.stdout
    assert "most frequent mistakes" in done.stdout and f"at: {len(marked)}." in done.stdout
    line = next(x.split() for x in done.stdout.splitlines() if x.startswith("attention_scores"))
    statuses = [status for (_, name), status in wanted.items() if name == "attention_scores"]
    assert line[1:] == [str(statuses.count(status)) for status in STATUSES]


@LINUX
def test_without_bubblewrap_accidents_are_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("workshop.classroom.running.keeps_apart", lambda: False)
    told = classes.vandals(tmp_path, "", ["deletes", "kills its group"])
    told["forges"] = classes.cheats()["forges patches the judge"]
    for learner, (cells, _) in told.items():
        write(tmp_path / f"{learner}.ipynb", *cells)
    rows = {(r.learner, r.exercise): r.status for r in grade_folder(tmp_path, None, Limits(12))}
    assert rows == {(who, n): s for who, (_, wanted) in told.items() for n, s in wanted.items()}


def small_class(folder: Path, count: int) -> None:
    """Learners who make the same two mistakes in turn, each in cells of their own."""
    for i in range(count):
        answers = checked((SOFTMAX, UNSTABLE)[i % 2], (SCORES, SWAPPED)[i // 2 % 2])
        write(folder / f"learner {i:03}.ipynb", START, f"number = {i}", *answers)


@LINUX
def test_any_executor_gives_the_same_rows_and_the_command_goes_on_from_them(tmp_path, monkeypatch):
    small_class(tmp_path, 6)
    alone = grade_folder(tmp_path, path=tmp_path / "alone")
    with ProcessPoolExecutor(2) as executor:
        assert grade_folder(tmp_path, executor) == alone
    monkeypatch.setattr(classroom, "report_on", None)  # there is nothing left to do
    monkeypatch.setattr(sys, "argv", ["grade", str(tmp_path)])
    assert __main__.main() == 0
    rows = rows_at(tmp_path)
    assert [row["status"] for row in rows.values()] == [row.status for row in alone]
    assert [row.status for row in alone[:4]] == [RIGHT, RIGHT, WRONG, RIGHT]


def test_a_class_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    small_class(tmp_path, 3)
    ran = []

    def report(book, *_):
        ran.append(book.sources[1])
        if len(ran) == 2:
            raise KeyboardInterrupt
        return Report(dict.fromkeys(book.names, (True, [])), done=True)

    monkeypatch.setattr(classroom, "report_on", report)
    monkeypatch.setattr(sys, "argv", ["grade", str(tmp_path), "--workers", "1"])
    assert __main__.main() == 130
    assert not (tmp_path / "grades.csv").exists()
    with open(tmp_path / classroom.PARTIAL, "a") as file:
        file.write('\n["half a line')
    assert __main__.main() == 0 and not (tmp_path / classroom.PARTIAL).exists()
    assert ran.count("number = 0") == 1 and ran.count("number = 1") == 2
    assert {row["status"] for row in rows_at(tmp_path).values()} == {NOT_ATTEMPTED}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', "[" * 100_000, "\x00", '{"a": 1}'])
def test_broken_files_get_a_row(tmp_path, text):
    (tmp_path / "broken.ipynb").write_text(text, "utf-8")
    write(tmp_path / "strange.ipynb", "print(1)")
    broken, strange = grade_folder(tmp_path)
    assert broken.status == strange.status == NO_ANSWER
    assert "no notebook" in broken.message and "No exercise" in strange.message


def test_the_lesson_s_own_function_does_not_count(tmp_path):
    write(path := tmp_path / "only.ipynb", START, SOFTMAX, "softmax = check(softmax)")
    book = json.loads(path.read_text("utf-8"))
    book["cells"].insert(2, {"cell_type": "markdown", "source": "## Your turn"})
    path.write_text(json.dumps(book), "utf-8")
    read = read_notebook(path)
    assert read.begin == 2 and rows_of(read, Report(done=True))[0].status == NOT_ATTEMPTED


def test_what_a_process_writes_is_not_trusted():
    told, job = Report(), {"cells": ["1"], "exercises": ["softmax"], "mark": "m"}
    answer = '{"answer": "softmax", "stub": true, "runs": []}'
    broken = """{"answer": "softmax", "stub": 1, "runs": [["numpy", 3]]}\n{"answer": "softmax"}
    {"answer": []}\n{"answer": "scores", "stub": 1, "runs": []}\n{"at": [7, 0]}\n{"at": 3}\n{}\n1"""
    lines = ["m" + line for line in (*broken.split("\n"), "[" * 10**5, "")]
    for line in [*lines, answer, f"n{answer}", ""]:
        take(told, line, job)
    assert told == Report()
    take(told, f"xm{answer}", job)
    assert told.answers == {"softmax": (True, [])}
