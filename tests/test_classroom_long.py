"""`make grade` with all vandals, where time is short too, and with a class on a Dask cluster."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace

import classes
import psutil
import pytest
from classes import write
from test_classroom import LINUX, command, rows_at, small_class

from workshop.classroom import PARTIAL, grade_folder
from workshop.classroom.running import family

pytestmark = [pytest.mark.long, LINUX]


def slow_down(process: subprocess.Popen, share: float, period: float = 0.5) -> None:
    """Let a process and all its descendants run for a share of the time only."""
    while process.poll() is None:
        stopped = family(process)
        for act, seconds in (("suspend", period * (1 - share)), ("resume", period * share)):
            for each in stopped:
                with contextlib.suppress(psutil.Error):
                    getattr(each, act)()
            time.sleep(seconds)


@pytest.mark.parametrize(("share", "seconds", "every"), [(1.0, "12", 1), (0.1, "24", 4)])
def test_no_honest_learner_is_wronged_and_no_cheat_unmarked(tmp_path, share, seconds, every):
    told = classes.honest(24) | classes.cheats() | {"patient": classes.PATIENT}
    told |= classes.vandals(tmp_path, "", [*classes.VANDALS])
    told = {who: told[who] for who in [*told][::every]}
    for i, (learner, (cells, _)) in enumerate(told.items()):
        write(tmp_path / f"{learner}.ipynb", f"number = {i}", *cells)
    process = subprocess.Popen(command(tmp_path, "--seconds", seconds), stderr=subprocess.DEVNULL)
    if share < 1:
        threading.Thread(target=slow_down, args=(process, share), daemon=True).start()
    assert process.wait() == 0
    rows = rows_at(tmp_path)
    wanted = {(who, name): s for who, (_, statuses) in told.items() for name, s in statuses.items()}
    assert {key: row["status"] for key, row in rows.items()} == wanted
    marked = {key for key, row in rows.items() if row["remark"]}
    assert marked == {(who, "softmax") for who in told if who.startswith("cheat")}


def test_a_cluster_that_loses_a_worker_gives_the_rows_of_one_machine(tmp_path):
    from distributed import Client, LocalCluster

    small_class(tmp_path, 40)
    partial = tmp_path / PARTIAL

    def kill_one(pids: dict[str, int]) -> None:
        while not partial.exists() or partial.read_text("utf-8").count("\n") < 10:
            time.sleep(0.1)
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    cluster = LocalCluster(2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        pids = client.run(os.getpid)
        threading.Thread(target=kill_one, args=(pids,), daemon=True).start()
        rows = grade_folder(tmp_path, executor=client.get_executor())
        assert pids != client.run(os.getpid)
    assert grade_folder(tmp_path, executor="nobody's") == rows  # all are kept
    small_class(tmp_path / "four", 4)
    four = [replace(row, learner="") for row in grade_folder(tmp_path / "four")]
    assert [replace(row, learner="") for row in rows] == 10 * four
