"""What a function needs to stand in a file of its own: its source, and the names it uses."""

import ast
import contextlib
import inspect
import linecache
import symtable
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any

from workshop.exercises import exercises

SIMPLE = (bool, int, float, complex, str, bytes, type(None))
OWN = ("workshop.mine", "my_transformer", "__main__")  # modules of the learner's


class Obstacle(Exception):
    """Why an answer cannot be kept, in words."""


@dataclass
class Piece:
    """Definitions by name in the order they are needed, and import lines by the name they bind."""

    definitions: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)  # exercise functions that are called


def piece_of(function: Callable, name: str) -> Piece:
    """Everything of the notebook that a function needs. Raises Obstacle that names what is not."""
    piece = Piece()
    _add(function, name, piece)
    return piece


def import_lines(piece: Piece, mine: Collection[str] = ()) -> dict[str, str]:
    """The import lines of a piece by the name they bind, with those of the course's functions that
    are not `mine`."""
    homes = {name: exercises()[name].reference.__module__ for name in sorted(piece.wanted)}
    course = {n: f"from {home} import {n}" for n, home in homes.items() if n not in mine}
    return piece.imports | course


# ---------------------------------------------------------------- the source


def source_of(function: Callable, name: str) -> str:
    """The text of a function's definition, from the margin."""
    called, definition = getattr(function, "__name__", name), f"write `def {name}(…):`"
    if called == "<lambda>":
        raise Obstacle(f"a lambda has no name of its own: {definition} with a `return`")
    if called != name:
        raise Obstacle(f"it was defined as `{called}`: {definition}")
    text = _class_source(function) if inspect.isclass(function) else _function_source(function)
    if getattr(ast.parse(text).body[0], "name", None) != name:
        raise Obstacle(f"its source is no plain definition: {definition}")
    return text


def _function_source(function: Callable) -> str:
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        raise Obstacle("it is not written as a function: begin it with `def`")
    if free := plain.__code__.co_freevars:
        names = ", ".join(f"`{name}`" for name in free if name != "__class__")
        raise Obstacle(f"it is made inside another function, of which it uses {names}")
    try:
        text = written(plain).strip("\n")
        ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError):
        raise Obstacle("its source cannot be read") from None
    return text


def written(function: Callable) -> str:
    """The text of a definition as Python finds it, from the margin. Raises OSError without one."""
    return textwrap.dedent(inspect.getsource(function))


def written_or_at_hand(function: FunctionType) -> str:
    """The text of a definition, or the one that a caller made it of. Raises OSError without any."""
    try:
        return written(function)
    except OSError:
        return text_of_callers(function)


def text_of_callers(function: FunctionType) -> str:
    """The text that a function was made of by `exec`, where a caller of the check still has it.

    So answers that a script reads from a file are repaired too. It counts only if it compiles to
    the very code of the function. Raises OSError where there is none.
    """
    start, frame = f"def {function.__name__}(", inspect.currentframe()
    while frame := frame.f_back:
        for value in (*frame.f_locals.values(), *frame.f_globals.values()):
            held = getattr(value, "__dict__", {}) if not isinstance(value, ModuleType) else {}
            for said in (value, *(held.values() if isinstance(held, dict) else ())):
                if isinstance(said, str) and said.startswith(start) and _makes(said, function):
                    return said
    raise OSError("no text of it is at hand")


def _makes(source: str, function: FunctionType) -> bool:
    """Whether a text compiles to the code of a function."""
    own = function.__code__
    with contextlib.suppress(SyntaxError, ValueError):
        made = compile(source, "<answer>", "exec").co_consts
        codes = [code for code in made if isinstance(code, CodeType)]
        return any(c.co_code == own.co_code and c.co_names == own.co_names for c in codes)
    return False


def _methods(cls: type) -> list[FunctionType]:
    return [value for value in vars(cls).values() if isinstance(value, FunctionType)]


def _class_source(cls: type) -> str:
    """A class of the notebook: `inspect` finds no file for it, its methods have one."""
    for file in {method.__code__.co_filename for method in _methods(cls)}:
        lines = linecache.getlines(file)
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                return textwrap.dedent("".join(lines[start - 1 : node.end_lineno])).strip("\n")
    raise Obstacle(f"it uses the notebook's class `{cls.__name__}`, whose source cannot be read")


# ---------------------------------------------------------------- the names


def names_used(source: str) -> list[str]:
    """The global names that a definition uses, in order, without those of annotations alone,
    which are never looked up."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return list(dict.fromkeys(_globals(symtable.symtable(ast.unparse(tree), "kept", "exec"))))


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() if top else symbol.is_global():
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals(child)


# ---------------------------------------------------------------- what each name is


def _add(function: Callable, name: str, piece: Piece) -> None:
    """Add a definition, after everything of the notebook that it needs."""
    source = source_of(function, name)
    piece.definitions[name] = ""  # seen: two functions may call each other
    scope = _scope(function)
    for used in names_used(source):
        if used not in piece.definitions and used in scope and not used.startswith("__"):
            _resolve(used, scope[used], piece)
    del piece.definitions[name]
    piece.definitions[name] = source


def _scope(function: Callable) -> Mapping[str, Any]:
    if inspect.isclass(function):
        return next((method.__globals__ for method in _methods(function)), {})
    return inspect.unwrap(function).__globals__


def _resolve(name: str, value: Any, piece: Piece) -> None:
    """Say in code what a global name of the notebook is."""
    if isinstance(value, ModuleType):
        piece.imports[name] = _import_of_module(name, value.__name__)
    elif name in exercises() and callable(value):
        piece.wanted.add(name)
    elif name in exercises():
        raise Obstacle(f"it uses the notebook's `{name}`, which is no function there")
    elif line := _import_of(name, value):
        piece.imports[name] = line
    elif isinstance(value, FunctionType | type) or hasattr(value, "__wrapped__"):
        _add_helper(name, value, piece)
    elif _is_simple(value):
        piece.definitions[name] = f"{name} = {value!r}"
    else:
        raise Obstacle(f"it uses the notebook's `{name}`")


def _add_helper(name: str, value: Any, piece: Piece) -> None:
    """A function of the learner's own that an answer calls."""
    try:
        _add(value, name, piece)
    except Obstacle as obstacle:
        if str(obstacle).startswith("it uses the notebook's"):
            raise
        raise Obstacle(f"it uses the notebook's `{name}`, and {obstacle}") from None


def _import_of_module(name: str, home: str) -> str:
    if home in OWN:
        raise Obstacle(f"it uses `{name}`, that is, itself")
    return f"import {home}" if home == name else f"import {home} as {name}"


def _import_of(name: str, value: Any) -> str | None:
    """The import line of what a library defines, None for what the notebook does."""
    own = getattr(value, "__name__", None)
    places = [getattr(value, "__module__", None), "numpy", "math", "torch", "torch.nn.functional"]
    for place in places if isinstance(own, str) else []:  # ufuncs and builtins have no home
        module = sys.modules.get(place) if isinstance(place, str) and place not in OWN else None
        if module is not None and getattr(module, own, None) is value:
            return f"from {place} import {own}" + (f" as {name}" if own != name else "")
    return None


def _is_simple(value: Any) -> bool:
    """Numbers, text, truth, None and tuples of these, which Python reads back as it writes them."""
    if type(value) is tuple:
        return all(map(_is_simple, value))
    with contextlib.suppress(ValueError, SyntaxError):
        return type(value) in SIMPLE and bool(ast.literal_eval(repr(value)) == value)
    return False
