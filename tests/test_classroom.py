"""`make grade`: a class with honest learners, cheats and vandals, and each gets its own rows."""

import csv
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import classes
import pytest
from classes import SCORES, SOFTMAX, START, STUB, SWAPPED, UNSTABLE, checked, write

from workshop import classroom
from workshop.checks.compare import Raised, TimedOut
from workshop.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG
from workshop.checks.sandbox import FORGED, Observation
from workshop.classroom import Answer, Limits, Report
from workshop.exercises import asked, find

pytestmark = pytest.mark.slow
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits, forks and rooms as on Linux")
NO_ANSWER = classroom.NO_ANSWER
NAMES = ("softmax", "attention_scores")
QUICK = ("endless", "sleeps", "exits", "kills itself", "kills its group", "shouts", "deletes",
         "meddles", "patches", "walks", "links", "removes", "survives")  # fmt: skip
LOOP = "def softmax(x, axis=-1):\n    while True:\n        pass"
WAIT = "import time\ndef softmax(x, axis=-1):\n    time.sleep(10**6)"
CUT_VALUE = "while True:\n    pass\nshift = float(np.zeros(3).max())"
KINDS = {RIGHT: (SOFTMAX, SCORES), WRONG: (UNSTABLE, SWAPPED),
         NOT_ATTEMPTED: (STUB, "def attention_scores(Q, K):\n    pass")}  # fmt: skip
SINGLE = {  # an odd notebook, the status of its softmax, and what the message says
    "loop": ([START, *checked(LOOP)], WRONG, "does not return"),
    "wait": ([START, *checked(WAIT)], NO_ANSWER, "waits"),
    "cut value": ([START, CUT_VALUE, *checked(SOFTMAX.replace("x - ", "x - shift - "))],
                  NO_ANSWER, "lacks shift"),
    "cut elsewhere": ([START, CUT_VALUE, *checked(UNSTABLE)], WRONG, "overflows"),
    "broken": ([START, "def softmax(x, axis=-1):\n    return ("], WRONG, "SyntaxError"),
    "twice": ([START, *checked(UNSTABLE), "softmax = check(softmax)"], WRONG, "overflows"),
    "magics": ([f"%matplotlib inline\n!rm -rf *\n%time x = 1\n{START}\n{SOFTMAX}"],
               RIGHT, ""),
    "without its check": ([START, SOFTMAX], RIGHT, ""),
}  # fmt: skip


def rows_in(path: Path) -> dict[tuple[str, str], dict]:
    """The rows of a CSV file by learner and exercise; none occurs twice."""
    with open(path, encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = {(row["learner"], row["exercise"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def both(*statuses: str) -> dict[str, str]:
    return dict(zip(NAMES, statuses, strict=True))


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "workshop.classroom", str(folder), *options]


def grade(folder: Path, *options: str) -> tuple[dict, str]:
    """Run the command; its rows and what it printed."""
    done = subprocess.run(command(folder, *options), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return rows_in(folder / "grades.csv"), done.stdout


def alive(word: str, file: str = "cmdline") -> list[str]:
    """The processes with a word in their command line, or in their environment."""
    found = []
    for path in Path("/proc").glob(f"[0-9]*/{file}"):
        try:
            found += [path.parent.name] if word.encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


@pytest.fixture(scope="module", autouse=True)
def ours():
    """What the workers of this file's classes have in their environment, and no other's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASS_OF", f"class-of-{os.getpid()}-")
        yield f"class-of-{os.getpid()}-"


def lesson() -> list[str]:
    """The cells of the course's own notebook 05, in which a learner has written a softmax."""
    path = next((Path(__file__).parents[1] / "notebooks").glob("05_*.ipynb"))
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"]
             if cell["cell_type"] == "code"]  # fmt: skip
    sources = ["".join(cell["source"]) for cell in cells]
    stub = next(s for s in sources if s.startswith("def softmax(") and s.endswith("..."))
    return [SOFTMAX if source == stub else source for source in sources]


@pytest.fixture(scope="module")
def school(tmp_path_factory, ours):
    """A class, graded once: where, what each must get, the rows, and what was printed."""
    folder = tmp_path_factory.mktemp("school")
    told = {name: told for name, told in classes.cheats().items() if name != "cheat process"}
    told |= classes.vandals(folder, f"survivor-{os.getpid()}", QUICK)
    told |= {"slow": classes.slow()}
    told |= {f"single/{name}": (cells, {"softmax": s}) for name, (cells, s, _) in SINGLE.items()}
    for i, statuses in enumerate(itertools.product(KINDS, KINDS)):
        cells = checked(KINDS[statuses[0]][0], KINDS[statuses[1]][1])
        told[f"group {i % 2}/{i}"] = [START, "answer = 42", *cells], both(*statuses)
    for learner, (cells, _) in told.items():
        write(folder / f"{learner}.ipynb", *cells)
    write(folder / "lesson.ipynb", *lesson(), markdown="# 05 · Softmax")
    told["lesson"] = [], dict.fromkeys(asked()["05"], NOT_ATTEMPTED) | {"softmax": RIGHT}
    write(folder / ".ipynb_checkpoints" / "old.ipynb", START)
    before = {path: path.read_bytes() for path in folder.rglob("*.ipynb")}
    rows, printed = grade(folder, "--seconds", "12", "--workers", "1")
    return folder, told, rows, printed, before


@LINUX
def test_every_learner_gets_the_rows_that_are_theirs(school):
    _, told, rows, _, _ = school
    wanted = {(who, name): s for who, (_, statuses) in told.items() for name, s in statuses.items()}
    assert rows.keys() == wanted.keys()
    got = {key: row["status"] for key, row in rows.items() if wanted[key]}
    assert got == {key: status for key, status in wanted.items() if status}
    for name, (_, _, message) in SINGLE.items():
        assert message in rows[f"single/{name}", "softmax"]["message"], name


@LINUX
def test_cheats_are_marked_and_nobody_else(school):
    _, told, rows, _, _ = school
    marked = {key for key, row in rows.items() if row["remark"]}
    cheats = {(who, "softmax") for who in told if who.startswith("cheat")}
    assert cheats <= marked
    assert {who for who, _ in marked} == {who for who, _ in cheats}
    assert rows["cheat lambda", "softmax"]["remark"] == "It calls the course's own softmax."
    assert FORGED in rows["cheat forges in a cell", "softmax"]["remark"]


@LINUX
def test_nothing_is_spoilt_and_nothing_goes_on(school, ours):
    folder, _, _, printed, before = school
    if "keeps the notebooks apart" not in printed:
        pytest.skip("this system lends no namespaces")
    assert {path: path.read_bytes() for path in folder.rglob("*.ipynb")} == before
    assert {path.name for path in folder.glob("*")} - {path.name for path in before} == {
        "grades.csv", "group 0", "group 1", "single", ".ipynb_checkpoints"
    }  # fmt: skip
    assert alive(f"survivor-{os.getpid()}") == [] == alive(ours, "environ")


@LINUX
def test_mistakes_are_named_and_counted(school):
    _, told, rows, printed, _ = school
    plain = [r for (who, _), r in rows.items() if who[:5] == "group" and r["status"] == WRONG]
    assert len(plain) == 6 and all(row["mistake"] and row["message"] for row in plain)
    assert f"{len(told)} notebooks, {len(rows)} rows" in printed
    assert "most frequent mistakes" in printed and "with a remark" in printed
    line = next(line.split() for line in printed.splitlines() if line.startswith("attention_sc"))
    statuses = [row["status"] for (_, name), row in rows.items() if name == "attention_scores"]
    assert line[1:] == [str(statuses.count(s)) for s in classroom.STATUSES]


def grade_here(folder: Path, **cells: list[str]) -> dict[tuple[str, str], classroom.Row]:
    """The rows of notebooks, by learner and exercise, without what the system offers."""
    for learner, sources in cells.items():
        write(folder / f"{learner}.ipynb", *sources)
    found = classroom.grade_folder(folder, Limits(12, protect=False))
    return {(row.learner, row.exercise): row for rows in found for row in rows}


@LINUX
@pytest.mark.long
def test_without_namespaces_accidents_are_kept_apart_and_all_is_ended(tmp_path, ours):
    word = f"unprotected-{os.getpid()}"
    told = classes.vandals(tmp_path, word, ["survives", "meddles", "deletes", "kills its group"])
    told["cheat"] = classes.cheats()["cheat lambda"]
    told["honest"] = [START, *checked(SOFTMAX, SWAPPED)], both(RIGHT, WRONG)
    rows = grade_here(tmp_path, **{who: cells for who, (cells, _) in told.items()})
    for who, (_, statuses) in told.items():
        assert {name: rows[who, name].status for name in statuses} == statuses, who
    assert alive(word) == [] == alive(ours, "environ")
    assert rows["cheat", "softmax"].remark and not rows["honest", "softmax"].remark


@pytest.mark.long
def test_without_forks_each_notebook_has_a_process_of_its_own(tmp_path, monkeypatch):
    code = "from workshop import classroom_worker as worker\nfrom workshop.checks import sandbox\n"
    code += "sandbox.can_fork = lambda known: False\nworker.FORKS = False\nworker.main()"
    monkeypatch.setattr(classroom, "WORKER", [sys.executable, "-c", code])
    start = "import numpy as np\nfrom workshop.checks import check"
    exits = [start, "import os\nos._exit(3)", *checked(SOFTMAX, SWAPPED)]
    loop = [start, *checked(LOOP)]
    rows = grade_here(tmp_path, exits=exits, loop=loop)
    assert [rows["exits", name].status for name in NAMES] == [RIGHT, WRONG]
    assert rows["loop", "softmax"].status == WRONG
    assert "does not return" in rows["loop", "softmax"].message


def test_a_class_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    for name in "abc":
        write(tmp_path / f"{name}.ipynb", START, f"who = {name!r}", *checked(SOFTMAX))
    ran, fail = [], []

    def report(self, book):
        ran.append(book.sources[1])
        if len(ran) > 1 and not fail:
            raise KeyboardInterrupt
        return Report({"softmax": Answer(stub=True)}, done=True)

    monkeypatch.setattr(classroom.Proctor, "report", report)
    monkeypatch.setattr(sys, "argv", ["grade", str(tmp_path), "--workers", "1"])
    assert classroom.main() == 130
    lines = (tmp_path / classroom.PARTIAL).read_text("utf-8").splitlines()
    assert len(lines) == 2 and not (tmp_path / "grades.csv").exists()
    fail.append("no more")
    assert classroom.main() == 0 and not (tmp_path / classroom.PARTIAL).exists()
    assert sorted(ran) == ["who = 'a'", "who = 'b'", "who = 'b'", "who = 'c'"]
    assert len(rows_in(tmp_path / "grades.csv")) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', "[" * 100_000, "\x00", '{"a": 1}'])
def test_broken_files_get_a_row(tmp_path, text):
    (tmp_path / "broken.ipynb").write_text(text, "utf-8")
    write(tmp_path / "strange.ipynb", "print(1)")
    broken, strange = classroom.grade_folder(tmp_path)
    assert broken[0].status == strange[0].status == NO_ANSWER
    assert "no notebook" in broken[0].message and "No exercise" in strange[0].message


def test_the_lesson_s_own_function_does_not_count(tmp_path):
    write(tmp_path / "only.ipynb", START, SOFTMAX, "softmax = check(softmax)")
    book = json.loads((tmp_path / "only.ipynb").read_text("utf-8"))
    book["cells"].insert(3, {"cell_type": "markdown", "source": "## Your turn"})
    (tmp_path / "only.ipynb").write_text(json.dumps(book), "utf-8")
    read = classroom.read_notebook(tmp_path / "only.ipynb")
    assert read.begin == 2 and read.defined == []


def test_what_a_process_writes_is_not_trusted():
    mark, job = "m", {"cells": ["1"], "exercises": ["softmax"], "mark": "m"}
    told, pending = Report(), {}
    lines = ['{"seen": "softmax", "run": ["[1, [], []]"]}', '{"seen": "softmax", "run": 3}',
             '{"cell": 7}', "[" * 10**5, '{"answer": []}', "[1]", "", '{"seen": []}']  # fmt: skip
    for line in lines:
        classroom.take(told, pending, mark + line, job)
    assert not told.answers and not told.remarks
    classroom.take(told, pending, '{"answer": "softmax", "stub": true, "lacks": []}', job)
    assert not told.answers and told.remarks == {FORGED}
    classroom.take(told, pending, f'x{mark}{{"answer": "softmax", "stub": true, "lacks": []}}', job)
    assert told.answers["softmax"].stub


def test_only_a_loop_of_its_own_makes_an_answer_late():
    probes = len(find("softmax").probes)
    for value, lacks, status in [
        (TimedOut(), [], WRONG),
        (TimedOut(waited=True), [], NO_ANSWER),
        (Raised("NameError", "name 'nn' is not defined"), [], WRONG),
        (Raised("NameError", "name 'nn' is not defined"), ["nn"], NO_ANSWER),
    ]:
        runs = [("numpy", [Observation(value)] * probes)]
        assert classroom.verdict("softmax", Answer(runs, lacks=lacks), True, "")[0] == status
    late = Answer(error="CellTimeout: the cell took too long")
    assert classroom.verdict("softmax", late, True, "")[0] == NO_ANSWER
    assert classroom.verdict("softmax", Answer(error="ValueError: x"), True, "")[0] == WRONG
