"""Answers that pass are kept, each in a file: readable, right by themselves, nothing lost."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cells import CHECK, Notebook

from workshop import mine
from workshop.checks import keep

FILE = Path("my_transformer/softmax_row.py")
KEPT, NOT = f"Kept in {FILE}.", "Right, and not kept: "
HEAD = "def softmax_row(scores):"
ANSWER = f"{HEAD} return np.exp(scores) / np.exp(scores).sum()"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Checks an answer in a notebook of its own folder; returns what is said about keeping."""
    monkeypatch.delenv("MY_TRANSFORMER")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workshop.checks.learner.Memory.right", set())
    notebook = Notebook(monkeypatch).run("import functools, torch\nfrom torch import nn")

    def kept(source=ANSWER):
        notebook.run(source).run(CHECK.format("softmax_row"))
        assert notebook.last.startswith("softmax_row: right,"), notebook.last
        return notebook.last.splitlines()[-1]

    return kept


HELPERS = """
import dataclasses, numpy.linalg as la; from numpy import maximum as larger
ONE, Row = ({1: 1}, [None, (True,)]), np.ndarray
@dataclasses.dataclass
class Part:
    x: Row
    def of(self): return self.x
def odd(x): return larger(x, x) * ONE[0][1] if la.norm(x) >= 0 else even(x)
def even(x): return Part(odd(x)).of()
if True:
    @np.errstate(over="ignore")
    def softmax_row(scores: Row) -> 'R': return np.exp(even(scores)) / np.exp(scores).sum()"""
TENSORS = f"from torch import log_softmax\n{HEAD} return log_softmax(scores * 1.0, 0).exp()"


@pytest.mark.parametrize("source", [HELPERS, TENSORS, f"{ANSWER}  # a \\n"])
def test_an_answer_is_kept_as_it_was_written_with_what_it_uses(kept, source):
    assert kept(source) == KEPT and keep.kept_names() == ({"softmax_row"}, "")
    assert mine.softmax_row(np.zeros(2)).tolist() == [0.5, 0.5]
    for part in ('"""My softmax_row, 05 · Softmax: passed', source.splitlines()[-1].strip()):
        assert part in FILE.read_text("utf-8")


OBSTACLES = {
    f"one = np.ones(1)\n{ANSWER} * one": "it uses the notebook's one.",
    f"L = [np]\ndef f(): return len(L)\n{ANSWER} * f()": "it uses the notebook's f: it uses the no",
    f"softmax_row = lambda scores: {ANSWER[32:]}": "a lambda has no name of its own: write def",
    f"def make(one):\n    {ANSWER} * one\n    return softmax_row\nsoftmax_row = make(1)": "it is m",
    f"{ANSWER}\nsoftmax_row = functools.partial(softmax_row)": "it is not written as a function",
    f"exec({HEAD!r} + ' return np.exp(1 * scores) / np.exp(scores).sum()', globals())":
        "its source cannot be read.",
    f"from workshop import mine\n{HEAD} return mine.softmax_row(scores)": f"in {FILE}, away from",
}  # fmt: skip


@pytest.mark.parametrize("source", OBSTACLES)
def test_what_stands_in_the_way_is_named(kept, source):
    assert kept(source).startswith(NOT + OBSTACLES[source]) and not FILE.exists()


@pytest.mark.skipif(os.name == "nt", reason="links take a privilege there")
def test_the_newest_right_answer_stays_whole_where_it_can_be_written(kept, monkeypatch):
    assert kept() == KEPT
    before, when = FILE.read_bytes(), FILE.stat().st_mtime_ns
    assert kept() == KEPT and FILE.stat().st_mtime_ns == when  # nothing new
    FILE.chmod(0o600)
    FILE.symlink_to(FILE.rename("real.py").resolve())
    FILE.write_text(f"{HEAD} return 'by hand'")
    assert kept() == KEPT and FILE.is_symlink() and FILE.read_bytes() == before
    assert FILE.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(os, "replace", lambda *paths: os.remove("none"))
    assert kept(HELPERS) == f"{NOT}{FILE} cannot be written (No such file or directory)."
    assert FILE.read_bytes() == before and os.listdir("my_transformer") == ["softmax_row.py"]


@pytest.mark.parametrize(("place", "said"), [("", KEPT), ("off", "chance."), ("x/y", "cannot")])
def test_where_it_is_kept(kept, monkeypatch, place, said):
    monkeypatch.setenv("MY_TRANSFORMER", place)
    assert said in kept()
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    assert kept().endswith("the files panel on the left downloads it.") == (said == KEPT)


def test_fresh_puts_all_aside_and_loses_nothing(root, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine.py").write_text("old")
    (tmp_path / "mine.zip").write_text("saved")
    environment = os.environ | {"MY_TRANSFORMER": str(tmp_path / "mine")}
    for _ in range(2):  # the second time there is nothing to put aside
        subprocess.run(["make", "fresh"], cwd=root, env=environment, check=True)
    folder, file, saved = sorted(tmp_path.iterdir())
    assert folder.is_dir() and re.fullmatch(r"mine-[\d-]{17}", folder.name)
    assert file.name == f"{folder.name}.py" and file.read_text() == "old"
    assert saved.name == f"{folder.name}.zip"


def test_a_zip_that_a_page_saved_is_read_and_replaces_nothing(kept):
    """Beside the notebook, as it came; what is no answer in it stays out."""
    assert kept() == KEPT
    before = FILE.read_bytes()
    with zipfile.ZipFile("my_transformer.zip", "w") as pack:
        pack.writestr("my_transformer/softmax_row.py", "softmax_row = len")
        pack.writestr("my_transformer/softmax.py", "def softmax(x): return x * 7")
        pack.writestr("my_transformer/../../out.py", "no")
    assert mine.softmax(2) == 14
    assert FILE.read_bytes() == before and not Path("../out.py").exists()
    assert keep.kept_names()[0] == {"softmax", "softmax_row"}
    Path("my_transformer.zip").write_bytes(b"PK broken")
    assert keep.kept_names()[0] == {"softmax", "softmax_row"}


def test_runs_that_compare_or_save_keep_nothing(root):
    rules = subprocess.run(["make", "-pn"], cwd=root, text=True, capture_output=True).stdout
    for target in ("check", "test", "test-all", "test-notebooks", "notebooks"):
        assert re.search(rf"^{target}: .*(\n#.*)*MY_TRANSFORMER := off", rules, re.MULTILINE)
