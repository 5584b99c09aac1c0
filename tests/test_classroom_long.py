"""`make grade` with all exercises, where time is short too, and with a class on a Dask cluster."""

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
from test_classroom import LINUX, QUICK, command, rows_at, small_class

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


@pytest.mark.parametrize("slow", [False, True])
def test_no_honest_learner_is_wronged(tmp_path, slow):
    """An answer to each exercise, beside vandals who take their time; or few, with little time."""
    told = classes.honest(12, 8) | classes.vandals(tmp_path, "", [*classes.VANDALS][len(QUICK) :])
    if slow:
        told = classes.honest(2, 4) | {"patient": classes.PATIENT}
    for i, (learner, (cells, _)) in enumerate(told.items()):
        write(tmp_path / f"{learner}.ipynb", f"number = {i}", *cells)
    call = command(tmp_path, "--seconds", "24" if slow else "12")
    process = subprocess.Popen(call, stderr=subprocess.DEVNULL)
    if slow:
        threading.Thread(target=slow_down, args=(process, 0.1), daemon=True).start()
    assert process.wait() == 0
    rows = rows_at(tmp_path)
    wanted = {(who, name): s for who, (_, statuses) in told.items() for name, s in statuses.items()}
    assert {key: row["status"] for key, row in rows.items()} == wanted
    assert not any(row["remark"] for row in rows.values())


def test_a_cluster_that_loses_a_worker_gives_the_rows_of_one_machine(tmp_path):
    from distributed import Client, LocalCluster

    small_class(tmp_path, 200)
    partial = tmp_path / PARTIAL

    def kill_one(pids: dict[str, int]) -> None:
        while not partial.exists() or partial.read_text("utf-8").count("\n") < 50:
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
    assert [replace(row, learner="") for row in rows] == 50 * four
