"""`make grade`: a class with honest learners, cheats and vandals, and each gets its own rows."""

import csv
import json
import os
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path

import classes
import pytest
from classes import SCORES, SOFTMAX, START, STUB, SWAPPED, UNSTABLE, checked, write

from workshop import classroom
from workshop.checks.compare import Raised, TimedOut
from workshop.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG
from workshop.checks.sandbox import Observation
from workshop.classroom import Limits, __main__, grade_folder, read_notebook
from workshop.classroom.running import Report, keeps_apart, take
from workshop.classroom.verdicts import NO_ANSWER, STATUSES, rows_of
from workshop.exercises import asked, find

pytestmark = pytest.mark.slow
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits and forks as on Linux")
QUICK = ["exits", "kills its group", "deletes", "patches", "endless", "shouts"]
SURVIVOR = f"survivor-{os.getpid()}"
LOOP = "def softmax(x, axis=-1):\n    while True:\n        pass"
WAIT = "import time\ndef softmax(x, axis=-1):\n    time.sleep(10**6)"
SHIFTED = SOFTMAX.replace("x - ", "x - shift - ")
ENDLESS = "import itertools\nshift = sum(itertools.count())"
MISSING = "import numpy_that_is_not_there as nope\nfrom not_there import *\n"
JITTED = f"@nope.jit\n{SOFTMAX}"
SINGLE = {  # an odd notebook, the status of its softmax, and what the message says
    "loop": ([START, *checked(LOOP)], WRONG, "does not return"),
    "wait": ([START, *checked(WAIT)], NO_ANSWER, "waits"),
    "needs what took too long": ([START, ENDLESS, *checked(SHIFTED)], NO_ANSWER, "lacks shift"),
    "needs it not": ([START, ENDLESS, *checked(UNSTABLE)], WRONG, "overflows"),
    "import that raises": ([MISSING + START, *checked(SOFTMAX)], RIGHT, ""),
    "import and a wrong answer": ([MISSING + START, *checked(UNSTABLE)], WRONG, "overflows"),
    "import that it needs": ([MISSING + START, *checked(JITTED)], NO_ANSWER, "cell 1 raised Mod"),
    "raises between": ([START, f"1 / 0\n{SOFTMAX}\nsoftmax = check(softmax)"], RIGHT, ""),
    "broken": ([START, "def softmax(x, axis=-1):\n    return ("], WRONG, "SyntaxError"),
    "broken import": ([START.replace("as np", "as np, as"), SOFTMAX], NO_ANSWER, "lacks np"),
    "twice": ([START, *checked(UNSTABLE), "softmax = check(softmax)"], WRONG, "overflows"),
    "magics": ([f"%matplotlib inline\n!rm -rf *\n%time x = 1\n{START}\n{SOFTMAX}"], RIGHT, ""),
    "stub": ([START, *checked(STUB)], NOT_ATTEMPTED, ""),
}  # fmt: skip


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "workshop.classroom", str(folder), *options]


def rows_at(folder: Path) -> dict[tuple[str, str], dict]:
    """The rows of a CSV file by learner and exercise; none occurs twice."""
    with open(folder / "grades.csv", encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = {(row["learner"], row["exercise"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def alive(word: str) -> list[str]:
    """The processes with a word in their command line."""
    done = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if word in line]


def lesson() -> list[str]:
    """The cells of the course's own notebook 05, in which a learner has written a softmax."""
    path = next((Path(__file__).parents[1] / "notebooks").glob("05_*.ipynb"))
    cells = json.loads(path.read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    stub = next(s for s in sources if s.startswith("def softmax(") and s.endswith("..."))
    return [SOFTMAX if source == stub else source for source in sources]


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    """A class, graded once: what each must get, the rows, what was printed, and what was spoilt."""
    folder = tmp_path_factory.mktemp("school")
    sneaks = [*classes.SNEAKS] if keeps_apart() else []
    told = classes.cheats() | classes.vandals(folder, SURVIVOR, QUICK + sneaks) | classes.slow()
    told |= {f"single/{name}": (cells, {"softmax": s}) for name, (cells, s, _) in SINGLE.items()}
    for learner, (cells, _) in told.items():
        write(folder / f"{learner}.ipynb", *cells)
    write(folder / "lesson.ipynb", *lesson(), markdown="# 05 · Softmax")
    told["lesson"] = [], dict.fromkeys(asked()["05"], NOT_ATTEMPTED) | {"softmax": RIGHT}
    before = {path: path.read_bytes() for path in folder.rglob("*.ipynb")}
    done = subprocess.run(command(folder, "--seconds", "12"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spoilt = [path for path, data in before.items() if path.read_bytes() != data]
    return told, rows_at(folder), done.stdout, spoilt


@LINUX
def test_every_learner_gets_the_rows_that_are_theirs(school):
    told, rows, printed, spoilt = school
    wanted = {(who, name): s for who, (_, statuses) in told.items() for name, s in statuses.items()}
    assert {key: row["status"] for key, row in rows.items()} == wanted
    for name, (_, _, message) in SINGLE.items():
        assert message in rows[f"single/{name}", "softmax"]["message"], name
    assert not spoilt and not alive(SURVIVOR)
    assert ("Notebooks are kept apart" in printed) == keeps_apart()


@LINUX
def test_who_calls_the_course_s_own_function_is_marked_and_nobody_else(school):
    told, rows, _, _ = school
    marked = {key for key, row in rows.items() if row["remark"]}
    assert marked == {(who, "softmax") for who in told if who.startswith("cheat")}
    assert rows["cheat lambda", "softmax"]["remark"] == "It calls the course's own softmax."


@LINUX
def test_mistakes_are_named_and_counted(school):
    told, rows, printed, _ = school
    assert rows["vandal exits", "attention_scores"]["mistake"] == "queries-and-keys-swapped"
    assert f"{len(told)} notebooks, {len(rows)} rows" in printed
    assert "most frequent mistakes" in printed and f"looked at: {len(classes.CHEATS)}." in printed
    line = next(line.split() for line in printed.splitlines() if line.startswith("attention_sc"))
    statuses = [row["status"] for (_, name), row in rows.items() if name == "attention_scores"]
    assert line[1:] == [str(statuses.count(s)) for s in STATUSES]


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
        write(folder / f"learner {i}.ipynb", START, f"number = {i}", *answers)


class Nobody(Executor):
    """Runs nothing."""

    def submit(self, *call) -> Future:
        raise AssertionError(f"there is nothing to do, but {call}")


@LINUX
def test_any_executor_gives_the_same_rows_and_a_second_call_goes_on_from_them(tmp_path):
    small_class(tmp_path, 6)
    alone = grade_folder(tmp_path, path=tmp_path / "alone")
    with ProcessPoolExecutor(2) as executor:
        assert grade_folder(tmp_path, executor) == alone
    assert grade_folder(tmp_path, Nobody()) == alone
    assert [row.status for row in alone[:4]] == [RIGHT, RIGHT, WRONG, RIGHT]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_class_goes_on_where_it_was_stopped(tmp_path, monkeypatch, error):
    small_class(tmp_path, 3)
    ran, fail = [], []

    def report(book, *_):
        ran.append(book.sources[1])
        if len(ran) == 2 and not fail:
            raise error
        return Report(dict.fromkeys(book.names, (True, [])), done=True)

    monkeypatch.setattr(classroom, "report_on", report)
    monkeypatch.setattr(sys, "argv", ["grade", str(tmp_path), "--workers", "1"])
    if error is KeyboardInterrupt:
        assert __main__.main() == 130
    else:
        with pytest.raises(OSError):
            __main__.main()
    assert not (tmp_path / "grades.csv").exists()
    fail.append("no more")
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
    write(tmp_path / "only.ipynb", START, SOFTMAX, "softmax = check(softmax)")
    book = json.loads((tmp_path / "only.ipynb").read_text("utf-8"))
    book["cells"].insert(3, {"cell_type": "markdown", "source": "## Your turn"})
    (tmp_path / "only.ipynb").write_text(json.dumps(book), "utf-8")
    read = read_notebook(tmp_path / "only.ipynb")
    assert read.begin == 2 and rows_of(read, Report(done=True))[0].status == NOT_ATTEMPTED


def test_what_a_process_writes_is_not_trusted():
    told, job = Report(), {"cells": ["1"], "exercises": ["softmax"], "mark": "m"}
    run = ["numpy", ["[1, [], []]"]]
    lines = [
        {"answer": "softmax", "runs": [["numpy", 3]], "stub": 1},
        {"at": [7, 0]},
        {"at": 3},
        {"answer": "softmax"},
        {"answer": []},
        {"answer": "scores", "runs": [run]},
        {},
        1,
    ]
    for line in [*("m" + json.dumps(line) for line in lines), "m" + "[" * 10**5, "m", ""]:
        take(told, line, job)
    take(told, json.dumps({"answer": "softmax", "runs": [run], "stub": True}), job)
    assert told == Report()
    take(told, 'xm{"answer": "softmax", "stub": true, "runs": []}', job)
    assert told.answers == {"softmax": (True, [])}


def test_only_a_loop_or_an_error_of_its_own_makes_an_answer_wrong(tmp_path):
    write(tmp_path / "a.ipynb", "import nn, os", *checked(SOFTMAX))
    book, probes = read_notebook(tmp_path / "a.ipynb"), len(find("softmax").probes)
    lost = Raised("NameError", "name 'nn' is not defined")
    for value, failed, status in [
        (TimedOut(), {}, WRONG),
        (TimedOut(waited=True), {}, NO_ANSWER),
        (lost, {}, WRONG),
        (lost, {1: "raised ValueError: x"}, WRONG),
        (lost, {0: "raised ModuleNotFoundError: nn"}, NO_ANSWER),
    ]:
        answers = {"softmax": (False, [("numpy", [Observation(value)] * probes)])}
        assert rows_of(book, Report(answers, failed, done=True))[0].status == status
