"""What importing costs: the NumPy rooms never load PyTorch, the package loads nothing."""

import subprocess
import sys

import pytest

NUMPY_ROOMS = ["helpers", "helpers.text", "helpers.attention", "helpers.blocks",
               "helpers.decoding", "helpers.figures", "helpers.drawings", "helpers.operations",
               "helpers.widgets", "helpers.checks",
               "helpers.mine"]  # fmt: skip


@pytest.mark.parametrize("room", NUMPY_ROOMS)
def test_numpy_rooms_do_not_import_torch(room):
    code = f"import sys, {room}; print(sorted({{'torch', 'matplotlib'}} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == (
        "['matplotlib']" if room.endswith(("figures", "drawings", "widgets")) else "[]"
    )


def test_the_package_itself_imports_nothing():
    code = "import sys; before = set(sys.modules); import helpers; print(set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "{'helpers'}"


def test_checks_load_no_exercise_until_one_is_asked_for():
    """Then they load all of them, and still no PyTorch."""
    code = """import sys, helpers.checks, helpers.mine
def loaded(): return [m for m in sys.modules if m.startswith("helpers.exercises.n")]
print(loaded())
from helpers.mine import softmax
print(len(loaded()) >= 13, softmax.__module__, "torch" in sys.modules)"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == ["[]", "True helpers.attention False"]
