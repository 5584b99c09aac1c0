"""`make grade` with a class of 60, 20 of them hostile: at full speed, and at a tenth of it.

On the machine that is stopped nine tenths of the time every fifth of them is graded, in minutes;
with CLASS=60 in the environment all are, in a quarter of an hour.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import classes
import pytest
from classes import START, UNSTABLE, checked, write
from test_classroom import alive, command, rows_in

from helpers.checks.classroom import NO_ANSWER, PARTIAL
from helpers.checks.judge import RIGHT, WRONG

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="limits, forks and rooms as on Linux"),
]
CHEATS = ("lambda", "handed back", "stack", "gc", "code", "process", "digs", "forges in a cell")
VANDALS = (
    "endless", "endless in C", "swallows", "sleeps", "deaf", "hoards", "multiplies", "exits",
    "shouts into everything", "meddles", "walks", "survives",
)  # fmt: skip
LOOP = "def softmax(x, axis=-1):\n    while True:\n        pass"


def fill(folder: Path, word: str, every: int) -> dict[str, dict[str, str]]:
    """Write a class of 60, or every so-many-th of it; what each learner must get."""
    told = classes.honest(36)
    told |= {f"slow {i}": classes.slow() for i in range(3)}
    told["loop"] = [START, *checked(LOOP)], {"softmax": WRONG}
    told |= {f"cheat {n}": classes.cheats()[f"cheat {n}"] for n in CHEATS}
    told |= classes.vandals(folder, word, VANDALS)
    assert len(told) == 60
    told = {who: told[who] for who in list(told)[::every]}
    for i, (learner, (cells, _)) in enumerate(told.items()):
        write(folder / f"{learner}.ipynb", f"number = {i}", *cells)
    return {learner: statuses for learner, (_, statuses) in told.items()}


def family(root: int) -> set[int]:
    """A process and all that it started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def slow_down(process: subprocess.Popen, share: float, period: float = 0.5) -> None:
    """Let a process and all its descendants run for a share of the time only."""
    while process.poll() is None:
        stopped = []
        for pid in family(process.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        time.sleep(period * (1 - share))
        for pid in stopped:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        time.sleep(period * share)


def run(folder: Path, *options: str, share: float = 1.0) -> dict:
    """Grade a class, on a machine that is slowed down; the rows."""
    process = subprocess.Popen(command(folder, *options), stderr=subprocess.DEVNULL)
    if share < 1:
        threading.Thread(target=slow_down, args=(process, share), daemon=True).start()
    assert process.wait() == 0
    return rows_in(folder / "grades.csv")


@pytest.mark.parametrize(
    ("share", "options"),
    [(1.0, []), (0.1, ["--seconds", "24"]), (1.0, ["--seconds", "12"])],
    ids=["full speed", "stopped nine tenths of the time", "a tenth of the limits"],
)
def test_no_honest_learner_is_wronged_no_cheat_unmarked_nothing_lost(tmp_path, share, options):
    word = f"survivor-{os.getpid()}"
    told = fill(tmp_path, word, every=5 if share < 1 and os.environ.get("CLASS") != "60" else 1)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.ipynb")}
    rows = run(tmp_path, *options, share=share)
    wanted = {(who, name): s for who, statuses in told.items() for name, s in statuses.items()}
    assert rows.keys() == wanted.keys()
    got = {key: rows[key]["status"] for key, status in wanted.items() if status}
    assert got == {key: status for key, status in wanted.items() if status}
    marked = {key for key, row in rows.items() if row["remark"]}
    assert {(who, "softmax") for who in told if who.startswith("cheat")} <= marked
    assert not {who for who, _ in marked if not who.startswith(("cheat", "vandal shouts"))}
    assert {path: path.read_bytes() for path in tmp_path.glob("*.ipynb")} == before
    assert alive(word) == []


def test_a_killed_run_loses_nothing_and_leaves_nothing_running(tmp_path):
    for i in range(6):
        write(tmp_path / f"{i}.ipynb", START, f"number = {i}", *checked(UNSTABLE))
    sleeps = [START, "import time\nwhile True:\n    time.sleep(1)", *checked(UNSTABLE)]
    write(tmp_path / "9.ipynb", *sleeps)
    first = subprocess.Popen(command(tmp_path, "--workers", "1"), stderr=subprocess.DEVNULL)
    partial = tmp_path / PARTIAL
    while not partial.exists() or len(partial.read_text("utf-8").splitlines()) < 4:
        assert first.poll() is None
        time.sleep(0.1)
    started = family(first.pid) - {first.pid}
    first.kill()
    first.wait()
    end = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in started):
        assert time.monotonic() < end
        time.sleep(0.1)
    lines = partial.read_text("utf-8").splitlines()
    assert not (tmp_path / "grades.csv").exists()
    rows = run(tmp_path, "--workers", "1")
    assert len(lines) >= 4 and len(rows) == 7 and not partial.exists()
    assert {row["status"] for row in rows.values()} <= {WRONG, NO_ANSWER, RIGHT}
