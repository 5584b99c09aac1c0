"""`make grade`: a class with honest learners, cheats and vandals, and each gets its own rows."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import classes
import pytest
from classes import SCORES, SOFTMAX, START, STUB, SWAPPED, UNSTABLE, checked, write

from helpers.checks import classroom, worker
from helpers.checks.classroom import Answer, Limits, Report
from helpers.checks.compare import Raised, TimedOut
from helpers.checks.judge import NOT_ATTEMPTED, RIGHT, WRONG
from helpers.checks.sandbox import FORGED, Observation, pack
from helpers.exercises import find

pytestmark = pytest.mark.slow
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits, forks and rooms as on Linux")
NO_ANSWER = classroom.NO_ANSWER
EMPTY = "def attention_scores(Q, K):\n    pass"
SOFTMAXES = {RIGHT: SOFTMAX, WRONG: UNSTABLE, NOT_ATTEMPTED: STUB}
SCORINGS = {RIGHT: SCORES, WRONG: SWAPPED, NOT_ATTEMPTED: EMPTY}
NAMES = ("softmax", "attention_scores")
QUICK = (
    "endless", "sleeps", "leaves", "exits", "kills itself", "kills its parent", "kills its group",
    "closes", "shouts", "breaks", "deletes", "meddles", "patches", "walks", "links", "removes",
    "survives",
)  # fmt: skip
LOOP = "def softmax(x, axis=-1):\n    while True:\n        pass"
WAIT = "import time\ndef softmax(x, axis=-1):\n    time.sleep(10**6)"
CUT_IMPORT = "while True:\n    pass\nimport torch.nn.functional as F\nfactor = 1.0"
IMPORTED = (
    "def softmax(x, axis=-1):\n    return F.softmax(torch.as_tensor(x).float(), axis).numpy()"
)
CUT_VALUE = "while True:\n    pass\nshift = float(np.zeros(3).max())"
SINGLE = {  # an odd notebook, and the statuses of its softmax
    "loop": ([START, *checked(LOOP)], WRONG, "does not return"),
    "wait": ([START, *checked(WAIT)], NO_ANSWER, "waits"),
    "recursion": (
        [START, *checked("def softmax(x, axis=-1):\n    return softmax(x, axis)")],
        WRONG, "RecursionError",
    ),
    "cut import": (
        [START, CUT_IMPORT, *checked(IMPORTED)],
        RIGHT, "",
    ),
    "cut value": (
        [START, CUT_VALUE, *checked(SOFTMAX.replace("x - ", "x - shift - "))],
        NO_ANSWER, "lacks shift",
    ),
    "cut value in between": (
        [START, CUT_VALUE, "def lowered(x):\n    return x - shift",
         *checked(SOFTMAX.replace("np.exp(x -", "np.exp(lowered(x) -"))],
        NO_ANSWER, "lacks",
    ),
    "cut elsewhere": ([START, CUT_VALUE, *checked(UNSTABLE)], WRONG, "overflows"),
    "broken": ([START, "def softmax(x, axis=-1):\n    return ("], WRONG, "SyntaxError"),
    "twice": ([START, *checked(UNSTABLE), "softmax = check(softmax)"], WRONG, "overflows"),
    "magics": (
        [f"%matplotlib inline\n!rm -rf *\n%time x = 1 + 1\nassert x == 2\n{START}\n{SOFTMAX}"],
        RIGHT, "",
    ),
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
    return [sys.executable, "-m", "helpers.checks.classroom", str(folder), *options]


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


# ---------------------------------------------------------------- a class


@pytest.fixture(scope="module")
def school(tmp_path_factory, ours):
    """A class, graded once: where, what each must get, the rows, and what was printed."""
    folder = tmp_path_factory.mktemp("school")
    told = {name: told for name, told in classes.cheats().items() if name != "cheat process"}
    told |= classes.vandals(folder, f"survivor-{os.getpid()}", QUICK)
    told["slow"] = classes.slow()
    for name, (cells, status, _) in SINGLE.items():
        told[f"single/{name}"] = cells, {"softmax": status}
    kinds = [RIGHT, WRONG, NOT_ATTEMPTED]
    for i in range(9):
        statuses = kinds[i % 3], kinds[i // 3]
        cells = checked(SOFTMAXES[statuses[0]], SCORINGS[statuses[1]])
        told[f"group {i % 2}/{i}"] = [START, "answer = 42", *cells], both(*statuses)
    for learner, (cells, _) in told.items():
        write(folder / f"{learner}.ipynb", *cells)
    for learner, (path, cells, statuses) in classes.of_lesson("05", 2).items():
        classes.write_lesson(folder / f"{learner}.ipynb", path, cells)
        told[learner] = [], statuses
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
@pytest.mark.parametrize("name", SINGLE)
def test_the_message_says_why(school, name):
    row = school[2][f"single/{name}", "softmax"]
    assert SINGLE[name][2] in row["message"] and row["notebook"] == "05"


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


# ---------------------------------------------------------------- where the system offers less


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
    told = classes.vandals(tmp_path, word, ["survives", "meddles", "deletes", "kills its parent"])
    told["cheat"] = classes.cheats()["cheat lambda"]
    told["honest"] = [START, *checked(SOFTMAX, SWAPPED)], both(RIGHT, WRONG)
    rows = grade_here(tmp_path, **{who: cells for who, (cells, _) in told.items()})
    for who, (_, statuses) in told.items():
        assert {name: rows[who, name].status for name in statuses} == statuses, who
    assert alive(word) == [] == alive(ours, "environ")
    assert rows["cheat", "softmax"].remark and not rows["honest", "softmax"].remark


@pytest.mark.long
def test_without_forks_each_notebook_has_a_process_of_its_own(tmp_path, monkeypatch):
    code = "from helpers.checks import sandbox, worker\nsandbox.can_fork = lambda known: False\n"
    code += "worker.FORKS = False\nworker.main()"
    monkeypatch.setattr(classroom, "WORKER", [sys.executable, "-c", code])
    start = "import numpy as np\nfrom helpers.checks import check"
    exits = [start, "import os\nos._exit(3)", *checked(SOFTMAX, SWAPPED)]
    loop = [start, *checked(LOOP)]
    rows = grade_here(tmp_path, exits=exits, loop=loop)
    assert [rows["exits", name].status for name in NAMES] == [RIGHT, WRONG]
    assert rows["loop", "softmax"].status == WRONG
    assert "does not return" in rows["loop", "softmax"].message


# ---------------------------------------------------------------- what is done so far


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


def test_rows_of_other_helpers_or_limits_are_not_gone_on_with(tmp_path, monkeypatch):
    path, row = tmp_path / "rows", classroom.Row("", "05", "softmax", RIGHT)
    classroom.Progress(path, Limits(12)).add("digest", [row])
    assert classroom.Progress(path, Limits(12)).rows == {"digest": [row]}
    assert classroom.Progress(path, Limits(13)).rows == {}
    path.write_text("nonsense\n[", "utf-8")
    assert classroom.Progress(path, Limits(12)).rows == {}


# ---------------------------------------------------------------- one thing at a time


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', "[" * 100_000, "\x00", '{"a": 1}'])
def test_broken_files_get_a_row(tmp_path, text):
    (tmp_path / "broken.ipynb").write_text(text, "utf-8")
    write(tmp_path / "strange.ipynb", "print(1)")
    broken, strange = classroom.grade_folder(tmp_path)
    assert broken[0].status == strange[0].status == NO_ANSWER
    assert "no notebook" in broken[0].message and "No exercise" in strange[0].message


def test_a_notebook_is_known_by_its_heading_and_its_exercises(tmp_path, monkeypatch):
    monkeypatch.setattr(classroom, "room_of", {"05": ("softmax",)}.get)
    write(tmp_path / "renamed.ipynb", START, markdown="# 05 · Softmax")
    book = classroom.read_notebook(tmp_path / "renamed.ipynb")
    assert (book.stage, book.names) == ("05", ["softmax"])
    assert classroom.rows_of(book, Report())[0].status == NOT_ATTEMPTED


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


def test_who_asks_gets_an_answer():
    job = {"cells": ["1"], "exercises": ["softmax"], "mark": "m"}
    for line in ('{"seen": "softmax", "run": [3]}', '{"seen": "x", "run": []}', '{"seen": 3}'):
        assert classroom.take(Report(), {}, "m" + line, job) == "more"


@pytest.mark.parametrize("runs", [[], [[]], [[Observation(1.0)]]])
def test_what_cannot_be_judged_is_no_answer(runs):
    assert classroom.verdict("softmax", Answer(runs), True, "")[0] == NO_ANSWER


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


def test_a_slower_machine_gives_more_time():
    book = classroom.Notebook(["1"], "05", ["softmax"], 0)
    jobs = []
    for pace in (1.0, 10.0):
        made = classroom.Proctor(Limits())
        made.pace = pace
        jobs.append(made._job(book, set(), made.limits.seconds * pace))
    for name in ("seconds", "cell_seconds", "patience", "stretch"):
        assert jobs[1][name] == pytest.approx(10 * jobs[0][name])
    assert jobs[0]["stretch"] >= 5  # in a learner's own notebook `check` gives up earlier


def test_remarks_come_back_with_an_observation():
    seen = Observation(1.0, ("x",), ("a remark",))
    assert classroom.unpack(pack(seen)) == seen


def test_definitions_are_what_calls_nothing():
    source = "import os\nx = 3\ny = f()\ndef g(): ...\nsoftmax = check(softmax)\ncheck(g)\nos.x = 1"
    kept = [node for node in worker.parsed(source).body if worker.is_simple(node)]
    assert [node.lineno for node in kept] == [1, 2, 4, 5, 6]


def test_names_that_statements_make_and_change():
    nodes = worker.parsed("import a.b as c\nx[0] = y\nz.sort()\nshuffle(w)\nsum(v)").body
    assert worker.bound(nodes) == {"c", "x", "z", "w", "v"}
    assert worker.used(nodes) == {"x", "y", "z", "shuffle", "w", "sum", "v"}


def test_without_notebooks_there_is_a_sentence(tmp_path):
    done = subprocess.run(command(tmp_path / "none"), capture_output=True, encoding="utf-8")
    assert done.returncode == 1 and "no folder with notebooks" in done.stdout


def test_text_is_safe_in_a_spreadsheet():
    assert classroom.safe("=1+1") == "'=1+1" and classroom.safe("\ud800a") == "?a"
