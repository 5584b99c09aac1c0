"""What a function needs to stand in a file of its own: its source, and the names it uses."""

import ast
import contextlib
import inspect
import linecache
import symtable
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any

from workshop.exercises import exercises

LEARNERS = ("my_transformer", "__main__")  # modules of theirs
FUTURE = "from __future__ import annotations"  # what they name need not be imported
LONG = 2000  # letters of a constant


class Obstacle(Exception):
    """Why an answer cannot be kept, in words."""


@dataclass
class Piece:
    """Definitions by name in the order they are needed, lines that import, and the functions of
    exercises that are called."""

    definitions: dict[str, str] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    wanted: set[str] = field(default_factory=set)

    def text(self, title: str, tensors: bool) -> str:
        """A file: its title, imports, what the answer uses, and the answer, maybe on tensors."""
        lines = self.imports | {f"from workshop.mine import {name}" for name in self.wanted}
        *used, answer = self.definitions.values()
        if tensors:
            lines.add("from workshop.checks.sandbox import on_tensors")
            answer = "@on_tensors\n" + answer.removeprefix("@on_tensors\n")
        imports = "\n".join(sorted(lines, key=lambda line: (line.startswith("from"), line)))
        head = "\n\n".join(filter(None, [f'"""{title}"""', FUTURE, imports]))
        return "\n\n\n".join([head, *used, answer]) + "\n"


def piece_of(function: Callable, name: str) -> Piece:
    """Everything of the notebook that a function needs. Raises Obstacle that names what is not."""
    piece = Piece()
    _add(function, name, piece)
    return piece


def source_at(thing: Any) -> tuple[str, int, dict[str, Any]]:
    """The text of a function or class, its first line in its cell, and the names it finds there.

    Raises Obstacle where no text is at hand, or where it uses another function's names.
    """
    plain = inspect.unwrap(thing)
    held = vars(plain).values() if inspect.isclass(plain) else [plain]
    parts = [f for f in map(inspect.unwrap, held) if isinstance(f, FunctionType)]
    if not parts:
        raise Obstacle("it is not written as a function: begin it with `def`")
    code, scope = parts[0].__code__, parts[0].__globals__
    if code.co_freevars and plain is parts[0]:
        names = ", ".join(f"`{name}`" for name in code.co_freevars)
        raise Obstacle(f"it is made inside another function, of which it uses {names}")
    lines = linecache.getlines(code.co_filename)
    for node in ast.walk(parsed("".join(lines))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == plain.__name__:
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if start <= code.co_firstlineno <= node.end_lineno:
                text = textwrap.dedent("".join(lines[start - 1 : node.end_lineno]))
                return text.strip("\n"), start, scope
    return text_of_callers(code), code.co_firstlineno, scope


def parsed(text: str) -> ast.Module:
    """A text as a tree, an empty one where it is no Python."""
    with contextlib.suppress(SyntaxError, ValueError):
        return ast.parse(text)
    return ast.Module([], [])


def text_of_callers(code: CodeType) -> str:
    """The text that a script has read, and made this very code of. Obstacle without one."""
    start, frame = f"def {code.co_name}(", inspect.currentframe()
    while frame := frame.f_back:
        for value in (*frame.f_locals.values(), *frame.f_globals.values()):
            held = getattr(value, "__dict__", {}) if not isinstance(value, ModuleType) else {}
            for said in (value, *(held.values() if isinstance(held, dict) else ())):
                if isinstance(said, str) and said.startswith(start) and _makes(said, code):
                    return said
    raise Obstacle("its source cannot be read")


def _makes(source: str, code: CodeType) -> bool:
    made = (c for c in compile(parsed(source), "", "exec").co_consts if isinstance(c, CodeType))
    return any((c.co_code, c.co_names) == (code.co_code, code.co_names) for c in made)


def names_used(source: str) -> list[str]:
    """The global names that a definition looks up, in order: not those of annotations alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.arg):
            node.returns = node.annotation = None
    return list(dict.fromkeys(_globals(symtable.symtable(ast.unparse(tree), "kept", "exec"))))


def _globals(table: symtable.SymbolTable) -> list[str]:
    top = table.get_type() == "module"
    named = [s for s in table.get_symbols() if (s.is_referenced() if top else s.is_global())]
    inside = [name for child in table.get_children() for name in _globals(child)]
    return [symbol.get_name() for symbol in named] + inside


def _add(function: Callable, name: str, piece: Piece) -> None:
    """Add a definition, after everything of the notebook that it needs."""
    called, definition = getattr(function, "__name__", name), f"write `def {name}(…):`"
    if called == "<lambda>":
        raise Obstacle(f"a lambda has no name of its own: {definition} with a `return`")
    if called != name:
        raise Obstacle(f"it was defined as `{called}`: {definition}")
    source, _, scope = source_at(function)
    piece.definitions[name] = ""  # seen: two functions may call each other
    for used in names_used(source):
        if used not in piece.definitions and used in scope and not used.startswith("__"):
            _resolve(used, scope[used], piece)
    del piece.definitions[name]
    piece.definitions[name] = source


def _resolve(name: str, value: Any, piece: Piece) -> None:
    """Say in code what a global name of the notebook is."""
    line = _import_of(name, value)
    # Modules of the course have more options than their exercises ask for, so they stay its own.
    course = line and line.startswith("from helpers") and not inspect.isclass(value)
    if name in exercises() and callable(value) and (course or not line):
        piece.wanted.add(name)  # whose it is, `mine` says when it is called
    elif line:
        piece.imports.add(line)
    elif isinstance(value, FunctionType | type) or hasattr(value, "__wrapped__"):
        try:
            _add(value, name, piece)
        except Obstacle as obstacle:
            raise Obstacle(f"it uses the notebook's `{name}`: {obstacle}") from None
    elif _is_simple(value):
        piece.definitions[name] = f"{name} = {value!r}"
    else:
        raise Obstacle(f"it uses the notebook's `{name}`")


def _import_of(name: str, value: Any) -> str | None:
    """The import line of a module or what a library defines, None for what the notebook does."""
    if isinstance(value, ModuleType):
        home = value.__name__
        return f"import {home}" + (f" as {name}" if home != name else "")
    own, home = getattr(value, "__name__", None), str(getattr(value, "__module__", ""))
    places = [home, "numpy", "math", "torch", "torch.nn.functional"]  # ufuncs have no home
    for place in places if isinstance(own, str) else []:
        known = None if place.startswith(LEARNERS) else sys.modules.get(place)
        if getattr(known, own, None) is value:
            return f"from {place} import {own}" + (f" as {name}" if own != name else "")
    return None


def _is_simple(value: Any) -> bool:
    """What Python reads back as it writes it: numbers, text, truth, None, short lists of these."""
    with contextlib.suppress(Exception):
        text = repr(value)
        read = ast.literal_eval(text if len(text) < LONG else "")
        return type(read) is type(value) and read == value
    return False
