"""What right answers lend to the repair of a wrong one: expressions, operations, statements."""

import ast
import contextlib
import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from workshop.checks.source import written
from workshop.checks.syntax import (
    Place,
    Renamed,
    assigned,
    called,
    is_computed,
    is_value,
    places,
    text,
)
from workshop.exercises import find


@dataclass(frozen=True)
class Template:
    """A donor's operation with a hole for the learner's own expression."""

    whole: ast.expr
    hole: str  # where it is: "args", "func.value", "left", "right", "value", "operand"

    def around(self, node: ast.expr) -> ast.expr:
        made = copy.deepcopy(self.whole)
        target = made.func if self.hole == "func.value" else made
        if self.hole == "args":
            made.args[0] = node
        else:
            setattr(target, self.hole.removeprefix("func."), node)
        return made


class Donors:
    """What right answers offer: expressions, operations, keywords, constants, statements."""

    def __init__(self, functions: Iterable[ast.FunctionDef]):
        self.functions = list(functions)

    @cached_property
    def expressions(self) -> dict[str, ast.expr]:
        found: dict[str, ast.expr] = {}
        for function in self.functions:
            for place in places(function):
                if is_value(place) and not isinstance(place.parent, ast.arguments | ast.Expr):
                    found.setdefault(text(place.node), place.node)
            for value in inlined(function).values():
                for node in (n for n in ast.walk(value) if isinstance(n, ast.expr)):
                    if is_value(Place(ast.Expr(node), "value")):
                        found.setdefault(text(node), node)
        return found

    @cached_property
    def statements(self) -> dict[str, ast.stmt]:
        found: dict[str, ast.stmt] = {}
        for function in self.functions:
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef):
                    found.setdefault(text(node), node)
        return found

    @cached_property
    def keywords(self) -> dict[str, ast.keyword]:
        nodes = (n for f in self.functions for n in ast.walk(f) if isinstance(n, ast.keyword))
        return {text(n): n for n in nodes if n.arg}

    @cached_property
    def constants(self) -> dict[str, ast.Constant]:
        nodes = (n for e in self.expressions.values() for n in ast.walk(e))
        return {repr(n.value): n for n in nodes if isinstance(n, ast.Constant)}

    @cached_property
    def calls(self) -> set[str]:
        return {called(n) for e in self.expressions.values() for n in ast.walk(e)} - {""}

    @cached_property
    def templates(self) -> list[Template]:
        made = {}
        for node in self.expressions.values():
            for hole in holes(node):
                made[text(Template(node, hole).around(ast.Name("HOLE", ast.Load())))] = (node, hole)
        return [Template(*pair) for _, pair in sorted(made.items(), key=lambda m: len(m[0]))]


def holes(node: ast.expr) -> list[str]:
    """Where an operation takes what it works on."""
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and is_computed(node.func.value)
        first = bool(node.args) and not isinstance(node.args[0], ast.Starred)
        return ["func.value"] * method + ["args"] * (first and not method)
    if isinstance(node, ast.BinOp):
        return ["left", "right"]
    if isinstance(node, ast.UnaryOp):
        return ["operand"]
    fixed = isinstance(node, ast.Attribute) and node.attr in ("T", "mT")
    return ["value"] if isinstance(node, ast.Subscript) or fixed else []


def inlined(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """What a function returns and sums up, written without its local names."""
    known: dict[str, ast.expr] = {}
    found: dict[str, ast.expr] = {}
    for statement in function.body:
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.expr):
            continue
        value = Renamed(known).visit(copy.deepcopy(value))
        if len(made := text(value)) < 200:
            found[made] = value
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            known[statement.targets[0].id] = value
        elif isinstance(statement, ast.Assign):  # several names at once: nothing to put in
            for name in assigned(statement):
                known.pop(name, None)
    return found


def bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """A right answer without docstring, annotations and checks of its input."""
    function = Plain().visit(copy.deepcopy(function))
    function.body = [s for s in function.body if not _is_check(s)] or function.body
    return function


class Plain(ast.NodeTransformer):
    """The same tree without annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _is_check(statement: ast.stmt) -> bool:
    """A docstring, an `if` or a loop that does nothing but raise, a call of a check."""
    if isinstance(statement, ast.Expr):
        value = statement.value
        named = text(getattr(value, "func", ast.Name("", ast.Load())))
        return isinstance(value, ast.Constant) or named.lstrip("_").startswith("check")
    body = getattr(statement, "body", None)
    return isinstance(body, list) and all(isinstance(s, ast.Raise) or _is_check(s) for s in body)


@cache
def donors_of(name: str) -> Donors:
    """The definitions in the right answers of an exercise, and its reference."""
    known = find(name)
    found = [n for source in known.answers for n in ast.parse(source).body]
    with contextlib.suppress(OSError, TypeError):
        found += ast.parse(written(known.reference)).body
    return Donors(bare(node) for node in found if isinstance(node, ast.FunctionDef))
