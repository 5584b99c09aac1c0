"""Change the reference of every exercise mechanically, and see whether the checks notice.

    python tests/mutants.py [EXERCISE ...] [--every N]

A mutant is the source of a reference, together with the helper functions that it is made of, with
one thing changed: an operator, an operand, a constant, an axis, an index, a comparison, an
argument, a call, a statement. It is graded as a learner's answer would be. Validation (`if …:
raise`, `check_…(…)`), docstrings and annotations are no part of the contract and stay as they are.
Survivors that tests/data/mutants.csv does not explain are listed, and make this fail.
"""

import argparse
import ast
import copy
import csv
import inspect
import sys
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import singledispatch
from multiprocessing import get_context
from pathlib import Path

from workshop.checks import grade
from workshop.exercises import exercises, find
from workshop.exercises.exercise import Exercise

ROOT = Path(__file__).resolve().parents[1]
EXPLAINED = ROOT / "tests" / "data" / "mutants.csv"
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
FUNCTIONS = {  # a function, and one that is easily taken for it
    "max": "min", "mean": "sum", "sum": "mean", "sin": "cos", "cos": "sin", "tril": "triu",
    "argmax": "argmin", "any": "all", "all": "any", "maximum": "minimum", "exp": "exp2",
    "log": "log2", "sqrt": "square", "zeros_like": "ones_like", "ones": "zeros",
    "cumsum": "cumprod", "stack": "concatenate", "repeat": "tile",
}  # fmt: skip
SYMMETRIC = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)


@dataclass(frozen=True)
class Mutant:
    """One change: the function it is in, the line before and after, and the whole new source."""

    exercise: str
    function: str
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.exercise, self.function, self.before, self.after


# ---------------------------------------------------------------- what there is to change


def parts_of(function: Callable) -> list[types.FunctionType | type]:
    """A reference and the helpers that it calls, those first; validators are left out."""
    found: dict[str, types.FunctionType | type] = {}

    def visit(thing: types.FunctionType | type) -> None:
        found[thing.__name__] = thing  # so that recursion ends
        for name in sorted(names_in(source_of(thing))):
            other = vars(sys.modules[thing.__module__]).get(name)
            ours = str(getattr(other, "__module__", "")).startswith("helpers")
            if ours and name not in found and isinstance(other, types.FunctionType | type):
                visit(other)

    visit(function)
    return [thing for thing in found.values() if not is_validator(thing.__name__)]


def source_of(thing: Callable) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def is_validator(name: str) -> bool:
    """Whether a helper only checks its arguments."""
    return name.lstrip("_").startswith("check")


def is_validation(node: ast.AST) -> bool:
    """Whether a statement only raises, or calls a validator."""
    if isinstance(node, ast.If):
        return isinstance(node.body[-1], ast.Raise) and not node.orelse
    if isinstance(node, ast.Try):
        return any(isinstance(n, ast.Raise) for n in ast.walk(node))
    if isinstance(node, ast.For):
        return all(is_validation(child) for child in node.body)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return is_validator(getattr(node.value.func, "id", ""))
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Raise) or is_text


Place = tuple[ast.AST, str, int | None]  # a parent, its field, and the index in a list


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, Place]]:
    """Every node that may change, with the place where it stands."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "bases", "ctx", "names"):
            continue
        for i, node in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(node, ast.AST) and not is_validation(node):
                yield node, (tree, name, i if isinstance(value, list) else None)
                yield from places(node)


def mutations(tree: ast.stmt) -> Iterator[ast.stmt]:
    """Copies of a function with one thing changed."""
    for i, (node, (parent, _, _)) in enumerate(places(tree)):
        for k in range(len(list(variants(node, parent, tree)))):
            changed = copy.deepcopy(tree)
            target, (owner, name, index) = list(places(changed))[i]
            new = list(variants(target, owner, changed))[k]
            if index is None:
                setattr(owner, name, new)
            else:
                getattr(owner, name)[index : index + 1] = new if isinstance(new, list) else [new]
            yield ast.fix_missing_locations(changed)


# ---------------------------------------------------------------- changes


def variants(node: ast.AST, parent: ast.AST, tree: ast.AST) -> Iterator:
    """What may stand in place of a node; a list of statements for a statement."""
    yield from changes(node, parent, tree)
    if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.Return):
        yield [ast.Pass()]  # the statement is left out


def with_(node: ast.AST, **changes) -> ast.AST:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new


def swapped(items: list, i: int) -> list:
    return [*items[:i], items[i + 1], items[i], *items[i + 2 :]]


@singledispatch
def changes(node: ast.AST, parent: ast.AST, tree: ast.AST) -> Iterator:
    """What else a node of its kind may be: nothing, unless one of the functions below says so."""
    yield from ()


@changes.register
def _(node: ast.BinOp, *_) -> Iterator[ast.AST]:
    yield node.left
    yield node.right
    if type(node.op) in OPERATORS:
        yield with_(node, op=OPERATORS[type(node.op)]())
    if not isinstance(node.op, SYMMETRIC):
        yield with_(node, left=node.right, right=node.left)


@changes.register
def _(node: ast.UnaryOp, parent: ast.AST, *_) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        yield from numbers(-node.operand.value, parent)
    else:
        yield node.operand


@changes.register
def _(node: ast.Constant, parent: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        negative = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)
        yield from () if negative else numbers(value, parent)
    elif isinstance(value, str) and isinstance(parent, ast.Subscript):
        indices = [n.slice for n in ast.walk(tree) if isinstance(n, ast.Subscript)]
        keys = [i.value for i in indices if isinstance(getattr(i, "value", None), str)]
        yield from (ast.Constant(key) for key in dict.fromkeys(keys) if key != value)


def numbers(value: float, parent: ast.AST) -> Iterator[ast.AST]:
    """Other numbers: other axes for an axis, else one more, one less, the double, 0."""
    axis = isinstance(parent, ast.keyword) and parent.arg == "axis"
    others = (-1, -2, 0, 1) if axis else (value + 1, value - 1, 2 * value, 0)
    for other in dict.fromkeys(others):
        if other != value:
            yield ast.parse(repr(other), mode="eval").body


@changes.register
def _(node: ast.Compare, *_) -> Iterator[ast.AST]:
    for i, op in enumerate(node.ops):
        for other in COMPARISONS.get(type(op), ()):
            yield with_(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])


@changes.register
def _(node: ast.BoolOp, *_) -> Iterator[ast.AST]:
    yield with_(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    yield from node.values


@changes.register
def _(node: ast.IfExp, *_) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse
    yield with_(node, body=node.orelse, orelse=node.body)


@changes.register
def _(node: ast.If, *_) -> Iterator[ast.AST]:
    yield with_(node, test=ast.UnaryOp(ast.Not(), node.test))
    yield [*node.body]


@changes.register
def _(node: ast.While | ast.For, *_) -> Iterator[ast.AST]:
    yield with_(node, body=[*node.body, ast.Break()])


@changes.register
def _(node: ast.Call, *_) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Attribute) and not is_module(node.func.value):
        yield node.func.value  # x.sum() → x
    elif node.args and not isinstance(node.args[0], ast.Starred):
        yield node.args[0]  # f(x) → x
    for i, _ in enumerate(node.keywords):
        yield with_(node, keywords=node.keywords[:i] + node.keywords[i + 1 :])
    for i in range(len(node.args) - 1):
        yield with_(node, args=swapped(node.args, i))
    yield from other_functions(node)
    if getattr(node.func, "id", "") == "range":
        for op in (ast.Add(), ast.Sub()):
            yield with_(node, args=[*node.args[:-1], ast.BinOp(node.args[-1], op, ast.Constant(1))])


def other_functions(node: ast.Call) -> Iterator[ast.AST]:
    """The call with a function that is easily taken for it."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS:
        yield with_(node, func=with_(node.func, attr=FUNCTIONS[node.func.attr]))


def is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "math", "torch", "re", "nn", "copy")


@changes.register
def _(node: ast.Attribute, parent: ast.AST, *_) -> Iterator[ast.AST]:
    if node.attr == "T":
        yield node.value


@changes.register
def _(node: ast.Subscript, *_) -> Iterator[ast.AST]:
    if isinstance(node.ctx, ast.Load):
        yield node.value  # x[i] → x


@changes.register
def _(node: ast.Slice, *_) -> Iterator[ast.AST]:
    for name in ("lower", "upper", "step"):
        bound = getattr(node, name)
        if bound is not None:
            yield with_(node, **{name: None})
        if bound is not None and name != "step":
            yield with_(node, **{name: ast.BinOp(bound, ast.Add(), ast.Constant(1))})
            yield with_(node, **{name: ast.BinOp(bound, ast.Sub(), ast.Constant(1))})
    if node.upper is not None and node.lower is None:
        yield with_(node, lower=ast.Constant(1), upper=None)
    if node.lower is not None and node.upper is None:
        yield with_(node, lower=None, upper=ast.Constant(-1))


@changes.register
def _(node: ast.Tuple | ast.List, *_) -> Iterator[ast.AST]:
    for i in range(len(node.elts) - 1):
        yield with_(node, elts=swapped(node.elts, i))


@changes.register
def _(node: ast.Name, parent: ast.AST, tree: ast.AST) -> Iterator[ast.AST]:
    """The neighbours of an argument, or of a name that was unpacked with others."""
    if isinstance(node.ctx, ast.Load) and not (
        isinstance(parent, ast.Call) and parent.func is node
    ):
        for names in groups(tree):
            if node.id in names:
                i = names.index(node.id)
                near = dict.fromkeys((names[i - 1], names[(i + 1) % len(names)]))
                yield from (ast.Name(name, ast.Load()) for name in near if name != node.id)
                return


def groups(tree: ast.AST) -> list[list[str]]:
    """Names of the same role: the arguments of a function, what is unpacked together."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            found.append([argument.arg for argument in node.args if argument.arg != "self"])
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            found.append([name.id for name in node.targets[0].elts if isinstance(name, ast.Name)])
    return found


# ---------------------------------------------------------------- mutants of an exercise


def mutants_of(exercise: Exercise) -> list[Mutant]:
    """All mutants of a reference and of what it is made of, none twice."""
    trees = {thing.__name__: source_of(thing) for thing in parts_of(exercise.reference)}
    found: dict[str, Mutant] = {}
    for name, tree in trees.items():
        plain = ast.unparse(tree)
        for changed in changed_trees(tree):
            text = ast.unparse(changed)
            if text != plain:
                before, after = first_difference(plain, text)
                whole = [text if n == name else ast.unparse(t) for n, t in trees.items()]
                source = "\n".join(whole)
                found.setdefault(source, Mutant(exercise.name, name, before, after, source))
    return list(found.values())


def changed_trees(tree: ast.stmt) -> Iterator[ast.stmt]:
    """The function with one thing changed, and with two neighbouring statements swapped."""
    yield from mutations(tree)
    for i, node in enumerate(n for n in ast.walk(tree) if hasattr(n, "body")):
        body = node.body if isinstance(node.body, list) else []
        for k in range(len(body) - 1):
            if not is_validation(body[k]) and not is_validation(body[k + 1]):
                changed = copy.deepcopy(tree)
                owner = [n for n in ast.walk(changed) if hasattr(n, "body")][i]
                owner.body = swapped(owner.body, k)
                yield changed


def first_difference(before: str, after: str) -> tuple[str, str]:
    """The first line that changed."""
    old, new = before.splitlines(), after.splitlines()
    for i in range(max(len(old), len(new))):
        a, b = (lines[i].strip() if i < len(lines) else "" for lines in (old, new))
        if a != b:
            return a, b
    return "", ""


def built(mutant: Mutant) -> Callable:
    """The mutant as a function; what it calls beyond its own source comes from the helpers."""
    reference = find(mutant.exercise).reference
    scope: dict = {"__name__": "mutant"}
    for thing in reversed(parts_of(reference)):
        scope |= {k: v for k, v in vars(sys.modules[thing.__module__]).items() if k[:2] != "__"}
    exec(compile(mutant.source, "<mutant>", "exec"), scope)
    return scope[reference.__name__]


def status_of(mutant: Mutant) -> str:
    """How a mutant is graded; one that cannot even be defined is wrong."""
    try:
        function = built(mutant)
    except Exception:
        return "wrong"
    return grade(function, mutant.exercise).status


def reason_of(mutant: Mutant, known: dict[tuple[str, str, str, str], str]) -> str:
    """Why a survivor does the same, in this exercise or wherever its function is used."""
    return known.get(mutant.key) or known.get(("*", *mutant.key[1:]), "")


def explained() -> dict[tuple[str, str, str, str], str]:
    """The survivors known to do the same within the contract, each with its reason."""
    if not EXPLAINED.exists():
        return {}
    with open(EXPLAINED, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {(r["exercise"], r["function"], r["before"], r["after"]): r["reason"] for r in rows}


def judged(name: str, every: int = 1, start: int = 0) -> list[tuple[Mutant, str]]:
    """The mutants of an exercise, or every n-th, each with its grade."""
    return [(m, status_of(m)) for m in mutants_of(find(name))[start::every]]


def main() -> int:
    """Grade all mutants, two exercises at a time; print counts and survivors."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("exercises", nargs="*", help="default: all")
    parser.add_argument("--every", type=int, default=1, help="only every n-th mutant")
    options = parser.parse_args()
    names = options.exercises or list(exercises())
    known, total, left = explained(), Counter(), []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        results = pool.map(judged, names, [options.every] * len(names))
        for name, found in zip(names, results, strict=True):
            alive = [mutant for mutant, status in found if status == "right"]
            new = [mutant for mutant in alive if not reason_of(mutant, known)]
            left += new
            total.update(mutants=len(found), survivors=len(alive), unexplained=len(new))
            print(f"{name:24} {len(found):5} mutants {len(alive):4} the same", flush=True)
            for m in new:
                print(f"    {m.function}:  {m.before}\n    {'→':>{len(m.function) + 1}}  {m.after}")
    print(", ".join(f"{count} {what}" for what, count in total.items()))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
