"""Who imports whom, and what it costs: helpers never the workshop, NumPy rooms never PyTorch."""

import ast
import importlib
import re
import subprocess
import sys

import pytest

LIGHT = ["helpers.text", "helpers.attention", "helpers.blocks", "helpers.decoding", "workshop",
         "workshop.machine.of_arrays", "workshop.checks", "workshop.mine"]  # fmt: skip
DRAWING = ["workshop.figures", "workshop.drawings", "workshop.widgets"]
DOOR = """
import importlib, pkgutil, sys
for first in ("workshop", "workshop.checks", "workshop.tables"):
    for name in [name for name in sys.modules if name.startswith("workshop")]:
        del sys.modules[name]
    importlib.import_module(first)
    import workshop
    for room in ("checks", "tables", "drawings", "widgets", "exercises", "mine"):
        importlib.import_module(f"workshop.{room}")
    print({m.name for m in pkgutil.iter_modules(workshop.__path__)} & set(workshop.__all__))
    print([n for n in workshop.__all__ if "module" in str(type(getattr(workshop, n)))])
    print(len(workshop.__all__) > 30)
"""


def said(code: str) -> list[str]:
    """The lines that a new Python prints."""
    call = [sys.executable, "-c", code]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()


def test_numpy_rooms_import_neither_torch_nor_exercises_and_draw_only_where_it_is_their_work():
    """What is loaded stays loaded: one Python tells it of one room after the other."""
    loaded = "for m in sys.modules if m in ('torch', 'matplotlib') or '.exercises.n' in m"
    lines = [f"import {room}; print(*[m {loaded}])" for room in LIGHT + DRAWING]
    asked = "from workshop.mine import softmax; print(softmax.__module__, 'torch' in sys.modules)"
    empty = "import sys; old = {*sys.modules}; import helpers; print(*{*sys.modules} - old)"
    assert said("\n".join([empty, *lines, asked])) == [
        "helpers", *[""] * len(LIGHT), *["matplotlib"] * len(DRAWING), "helpers.attention False"
    ]  # fmt: skip


def test_the_door_hands_out_functions_in_whatever_order_rooms_are_imported():
    assert said(DOOR) == ["set()", "[]", "True"] * 3


def test_helpers_never_import_the_workshop(root):
    for path in sorted((root / "helpers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "workshop" for name in names), path


@pytest.mark.parametrize("room", "checks widgets drawings mine figures".split())
def test_an_older_notebook_is_told_in_one_sentence_to_be_renewed(room):
    with pytest.raises(ImportError, match="take the newer version of this notebook") as raised:
        importlib.import_module(f"helpers.{room}")
    assert re.fullmatch(r"[^.]+\.\w+ [^.]+\.", str(raised.value))
