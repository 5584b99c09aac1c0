"""`make grade` with a class of 60, 20 of them hostile; and with a fifth of it where time is short.

On that machine all processes are stopped nine tenths of the time.
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
from classes import START, checked, write
from test_classroom import alive, command, rows_in

from workshop.checks.judge import WRONG

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


@pytest.mark.parametrize(("share", "seconds", "every"), [(1.0, "12", 1), (0.1, "24", 5)])
def test_no_honest_learner_is_wronged_no_cheat_unmarked_nothing_lost(
    tmp_path, share, seconds, every
):
    word = f"survivor-{os.getpid()}"
    told = fill(tmp_path, word, every)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.ipynb")}
    rows = run(tmp_path, "--seconds", seconds, share=share)
    wanted = {(who, name): s for who, statuses in told.items() for name, s in statuses.items()}
    got = {key: rows[key]["status"] if status else "" for key, status in wanted.items()}
    assert got == wanted and rows.keys() == wanted.keys()
    marked = {key for key, row in rows.items() if row["remark"]}
    assert {(who, "softmax") for who in told if who.startswith("cheat")} <= marked
    assert not {who for who, _ in marked if not who.startswith(("cheat", "vandal shouts"))}
    assert {path: path.read_bytes() for path in tmp_path.glob("*.ipynb")} == before
    assert alive(word) == []
