"""Which answers may be changed and run: those that keep away from files, processes, the network.

An answer runs as its learner wrote it; a changed one might delete what the learner meant to read.
So whatever it names must come from a library of numbers, or from functions of which this holds too.
"""

import ast
import contextlib
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from workshop.checks.source import source_at

HARMLESS = set("""builtins numpy torch math collections functools itertools operator random copy re
    string typing dataclasses statistics helpers workshop""".split())  # fmt: skip
OUTSIDE = ("helpers.pretrained", "workshop.checks", "workshop.mine", "helpers.training.checkpoints",
           "torch.hub", "torch.multiprocessing", "torch.distributed", "torch.utils")  # fmt: skip
# What those libraries have that reaches outside all the same.
FORBIDDEN = set("""os sys io builtins ctypes ctypeslib hub popen system fork kill remove unlink
    rmdir mkdir makedirs rename write writelines save savez savez_compressed savetxt tofile dump
    memmap open_memmap fromfile genfromtxt load loadtxt from_file load_library multiprocessing
    distributed share_memory_ utils cpp_extension""".split())  # fmt: skip
BUILTINS = set("""open exec eval compile input breakpoint globals locals vars setattr delattr
    getattr""".split())  # fmt: skip
HEAP = 1 << 9  # Python's mark of a class that a `class` statement made


def is_safe(node: ast.AST, scope: Mapping[str, Any], seen: tuple = ()) -> bool:
    """Whether a definition, and all that it names of the notebook, stays among numbers."""
    if not all(map(_stays_inside, ast.walk(node))):
        return False
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & scope.keys()
    used = [scope[name] for name in names]
    return all(_is_safe_value(value, seen) for value in used)


def _stays_inside(part: ast.AST) -> bool:
    """Whether a node imports and names nothing that reaches outside."""
    if isinstance(part, ast.Import | ast.ImportFrom):
        return all(map(_is_harmless, _imported(part)))
    name = getattr(part, "attr", None) or getattr(part, "id", None) or ""
    if isinstance(part, ast.Name) and name in BUILTINS:  # model.eval() is harmless
        return False
    return name not in FORBIDDEN and (name == "__init__" or not name.startswith("__"))


def _imported(part: ast.Import | ast.ImportFrom) -> Iterator[str]:
    home = f"{part.module}." if isinstance(part, ast.ImportFrom) else ""
    return (f"{home}{alias.name}" for alias in part.names)


def _is_harmless(path: str) -> bool:
    """Whether a dotted name stands for a module, function or class that only computes."""
    parts = path.split(".")
    return (
        parts[0] in HARMLESS
        and not path.startswith(OUTSIDE)
        and not {*parts[1:]} & (FORBIDDEN | BUILTINS)
    )


def _is_safe_value(value: Any, seen: tuple) -> bool:
    """Whether a thing of the notebook only computes: by its home, a function also by its text."""
    if isinstance(value, ModuleType):
        return _is_harmless(value.__name__)
    own = value if callable(value) else type(value)
    home = getattr(own, "__module__", None) or type(own).__module__
    by_hand = isinstance(own, FunctionType) or (isinstance(own, type) and own.__flags__ & HEAP)
    if _is_harmless(f"{home}.{getattr(own, '__name__', '')}"):
        if home != "builtins" or not by_hand:  # where `exec` makes things, that is their home too
            return True
    if not isinstance(value, FunctionType | type) or value in seen:
        return value in seen
    with contextlib.suppress(OSError, TypeError, SyntaxError, ValueError):
        source, _, scope = source_at(value)
        return is_safe(ast.parse(source), scope, (*seen, value))
    return False
