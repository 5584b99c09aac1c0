"""Who imports whom, and what it costs: helpers never the workshop, NumPy rooms never PyTorch."""

import ast
import importlib
import re
import subprocess
import sys

import pytest

NUMPY_ROOMS = ["helpers", "helpers.text", "helpers.attention", "helpers.blocks",
               "helpers.decoding", "workshop.figures", "workshop.machine.of_arrays", "workshop",
               "workshop.drawings", "workshop.widgets", "workshop.checks",
               "workshop.mine"]  # fmt: skip


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
    code = """import sys, workshop.checks, workshop.mine
def loaded(): return [m for m in sys.modules if m.startswith("workshop.exercises.n")]
print(loaded())
from workshop.mine import softmax
print(len(loaded()) >= 13, softmax.__module__, "torch" in sys.modules)"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == ["[]", "True helpers.attention False"]


def test_helpers_never_import_the_workshop(root):
    for path in sorted((root / "helpers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "workshop" for name in names), path


@pytest.mark.parametrize("first", ["workshop", "workshop.checks", "workshop.tables"])
def test_the_door_hands_out_functions_in_whatever_order_rooms_are_imported(first):
    code = f"""import {first}, importlib, pkgutil, workshop
for room in ("checks", "tables", "drawings", "widgets", "exercises", "mine"):
    importlib.import_module(f"workshop.{{room}}")
assert not {{m.name for m in pkgutil.iter_modules(workshop.__path__)}} & set(workshop.__all__)
assert all(not str(type(getattr(workshop, name))).count("module") for name in workshop.__all__)
print(len(workshop.__all__))"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(out.stdout) > 30


@pytest.mark.parametrize("room", "checks widgets drawings mine figures".split())
def test_an_older_notebook_is_told_in_one_sentence_to_be_renewed(room):
    with pytest.raises(ImportError, match="take the newer version of this notebook") as raised:
        importlib.import_module(f"helpers.{room}")
    assert re.fullmatch(r"[^.]+\.\w+ [^.]+\.", str(raised.value))
