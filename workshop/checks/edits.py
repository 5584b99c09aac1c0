"""The closed list of plausible edits of an answer: what a learner may have meant. Runs no code.

Those that come first are tried first. Which of them nobody would mean, `rules` says.
"""

import ast
import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from workshop.checks.syntax import (
    Definition,
    Place,
    Renamed,
    arguments,
    assigned,
    called,
    functions,
    is_computed,
    is_value,
    locals_of,
    places,
)

Edit = list[tuple[Place, Any]]  # what to put where

SIBLINGS = [set(s.split()) for s in (
    "sum mean max min prod", "argmax argmin", "tril triu", "sin cos", "var std", "zeros ones empty",
    "exp log", "log log2 log10 log1p", "sqrt square", "stack concatenate hstack vstack cat",
    "maximum minimum", "append extend", "any all", "repeat tile", "floor ceil round")]  # fmt: skip
OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add, ast.Div), ast.Mod: (ast.FloorDiv,),
    ast.Mult: (ast.Div, ast.MatMult, ast.Add), ast.Div: (ast.Mult, ast.Sub, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mod), ast.MatMult: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,)}  # fmt: skip
COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
TURNED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow, ast.MatMult, ast.Mod)
COMPUTED = ast.Call | ast.BinOp | ast.Subscript | ast.Compare | ast.UnaryOp
AXES = [ast.parse(c, mode="eval").body for c in "-1 -2 0 1".split()]
KEPT = ast.Return | ast.For | ast.If | ast.While  # statements that are never left out
UNTOUCHED = ("print", "len", "isinstance")  # whose arguments nobody mends


def edits(answer: Definition, solution: Definition) -> Iterator[Edit]:
    """All edits, in a fixed order, of the functions that an answer and the solution both have."""
    for name, function in functions(answer).items():
        if name in functions(solution):
            yield from Editor(function, functions(solution)[name]).edits()


class Editor:
    """The edits of one function, which lie in its tree and in what the solution can lend."""

    def __init__(self, function: ast.FunctionDef, solution: ast.FunctionDef):
        self.function, self.solution = function, solution
        self.arguments, self.own = arguments(function), assigned(function)
        self.names = list(dict.fromkeys(self.arguments + self.own))
        left = {id(n) for part in untouched(function) for n in ast.walk(part)}
        self.inside = [p for p in places(function) if id(p.parent) not in left]
        self.values = [p for p in self.inside if is_value(p)]
        self.dump = {id(p.node): ast.dump(p.node) for p in self.values}
        lent = [n.value for n in ast.walk(solution) if isinstance(n, ast.Constant)]
        self.lent = list({repr(v): v for v in lent}.values())
        self.calls = [c for c in ast.walk(solution) if isinstance(c, ast.Call)]
        self.keywords = [(called(c), k) for c in self.calls for k in c.keywords if k.arg]

    def edits(self) -> Iterator[Edit]:
        for kind in (self.siblings, self.operators, self.call_keywords, self.orders,
                     self.same_keyword_everywhere, self.constants, self.other_names, self.exchanges,
                     self.names_at_hand, self.brackets, self.too_much,
                     self.missing, self.expressions):  # fmt: skip
            yield from kind()

    def put(self, place: Place, node: ast.AST) -> Iterator[Edit]:
        """At one place; then, once, the same at all equal places."""
        yield [(place, node)]
        own = self.dump.get(id(place.node))
        same = [p for p in self.values if own and self.dump[id(p.node)] == own]
        if len(same) > 1 and same[0].node is place.node:
            yield [(p, copy.deepcopy(node)) for p in same]

    # ------------------------------------------------------------ one word for another

    def siblings(self) -> Iterator[Edit]:
        for p in self.values:
            own = getattr(p.node, "attr", None)
            for other in (
                n for family in SIBLINGS if own in family for n in sorted(family - {own})
            ):
                yield from self.put(p, ast.Attribute(p.node.value, other, ast.Load()))

    def operators(self) -> Iterator[Edit]:
        for p in self.inside:
            node = p.node
            if isinstance(node, ast.BinOp):
                for op in OPERATORS.get(type(node.op), ()):
                    yield from self.put(p, ast.BinOp(node.left, op(), node.right))
                if isinstance(node.op, TURNED):
                    turned = ast.BinOp(node.right, node.op, node.left)
                    yield from self.put(p, turned)
            elif isinstance(node, ast.Compare) and len(node.ops) == 1:
                for op in COMPARED:
                    if op is not type(node.ops[0]):
                        new = ast.Compare(node.left, [op()], node.comparators)
                        yield from self.put(p, new)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                new = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
                yield from self.put(p, ast.Assign([node.target], new))

    def constants(self) -> Iterator[Edit]:
        for p in self.values:
            negative = is_negative(p.node)
            if isinstance(p.parent, ast.UnaryOp) and isinstance(p.node, ast.Constant):
                continue  # -1 is one number
            if not (isinstance(p.node, ast.Constant) or negative):
                continue
            value = ast.literal_eval(p.node)
            for other in dict.fromkeys(self.near(value)):
                if other != value or type(other) is not type(value):
                    yield from self.put(p, ast.parse(repr(other), mode="eval").body)
            if type(value) in (int, float):
                for name in self.arguments:
                    yield from self.put(p, ast.Name(name, ast.Load()))

    def near(self, value: Any) -> list:
        """What may have been meant by a constant."""
        if isinstance(value, bool):
            return [not value]
        if type(value) in (int, float):
            lent = [v for v in self.lent if type(v) in (int, float)]
            whole = type(value) is int
            return [value + 1, value - 1, -value, 0, 1, -1, 2, -2, *lent] if whole else [
                -value, 1.0, *lent]  # fmt: skip
        return [v for v in self.lent if type(v) is type(value)]

    def other_names(self) -> Iterator[Edit]:
        for p in self.values:
            if isinstance(p.node, ast.Name) and p.node.id in self.names:
                for name in self.names:
                    if name != p.node.id:
                        yield from self.put(p, ast.Name(name, ast.Load()))

    def names_at_hand(self) -> Iterator[Edit]:
        """A local name in place of an expression."""
        for p in self.values:
            if isinstance(p.node, ast.Call | ast.BinOp | ast.Subscript):
                for name in self.own:
                    yield from self.put(p, ast.Name(name, ast.Load()))

    # ------------------------------------------------------------ keywords

    def call_keywords(self) -> Iterator[Edit]:
        """Another value for a keyword, without it, or one that the solution has."""
        for p in self.values:
            if not isinstance(p.node, ast.Call):
                continue
            call, given = p.node, p.node.keywords
            for i, k in enumerate(given):
                for value in self.other_values(k):
                    new = [*given[:i], ast.keyword(k.arg, value), *given[i + 1 :]]
                    yield from self.put(p, ast.Call(call.func, call.args, new))
                new = ast.Call(call.func, call.args, given[:i] + given[i + 1 :])
                yield from self.put(p, new)
            for c in self.calls:  # arguments at the end that are missing
                if called(c) == called(call) and len(c.args) > len(call.args):
                    args = [*call.args, *c.args[len(call.args) :]]
                    yield from self.put(p, ast.Call(call.func, args, given))
            for name, k in self.keywords:
                family = {name, *(n for s in SIBLINGS if name in s for n in s)}
                if k.arg not in {o.arg for o in given} and called(call) in family:
                    new = ast.Call(call.func, call.args, [*given, k])
                    yield from self.put(p, new)

    def other_values(self, k: ast.keyword) -> list[ast.expr]:
        more = [o.value for _, o in self.keywords if o.arg == k.arg]
        more += AXES if k.arg in ("axis", "dim") else []
        if isinstance(k.value, ast.Constant) and isinstance(k.value.value, bool):
            more.append(ast.Constant(not k.value.value))
        return [v for v in more if ast.unparse(v) != ast.unparse(k.value)]

    def same_keyword_everywhere(self) -> Iterator[Edit]:
        """The same keyword in all calls that lack it, the same axis in all that have one."""
        calls = [p for p in self.values if isinstance(p.node, ast.Call)]
        for name, k in {ast.unparse(k): (name, k) for name, k in self.keywords}.values():
            family = {name, "mean", "sum", "max", "min", "var", "std"}
            lack = [p for p in calls if called(p.node) in family
                    and k.arg not in {o.arg for o in p.node.keywords}]  # fmt: skip
            if len(lack) > 1:
                yield [(p, with_keyword(p.node, k)) for p in lack]
        along = (k for p in calls for k in p.node.keywords if k.arg in ("axis", "dim"))
        axes = {ast.unparse(k): k for k in along}
        for text, k in axes.items():
            here = [(p, i) for p in calls for i, o in enumerate(p.node.keywords)
                    if ast.unparse(o) == text]  # fmt: skip
            for value in self.other_values(k) if len(here) > 1 else ():
                yield [(Place(p.node.keywords[i], "value"), value) for p, i in here]

    # ------------------------------------------------------------ order

    def orders(self) -> Iterator[Edit]:
        """Two arguments exchanged, or two entries; numbers in any order."""
        for p in self.values:
            for name in ("args", "elts"):
                items = getattr(p.node, name, None)
                if not isinstance(items, list) or not 2 <= len(items) <= 4:
                    continue
                for order in orders_of(items):
                    new = copy.copy(p.node)
                    setattr(new, name, [items[i] for i in order])
                    yield from self.put(p, new)

    def exchanges(self) -> Iterator[Edit]:
        """Two names in each other's place, everywhere; of a tuple, where they get their values."""
        read = [p for p in self.values if isinstance(p.node, ast.Name)]
        targets = [n for n in ast.walk(self.function) if isinstance(n, ast.Tuple)
                   and isinstance(n.ctx, ast.Store)]  # fmt: skip
        for t in targets:
            for i, j in itertools.combinations(range(len(t.elts)), 2):
                yield [(Place(t, "elts", i), t.elts[j]), (Place(t, "elts", j), t.elts[i])]
        unpacked = {getattr(n, "id", "") for t in targets for n in t.elts}
        for a, b in itertools.combinations(self.names, 2):
            if {a, b} <= unpacked:
                continue
            both = [p for p in read if p.node.id in (a, b)]
            if {p.node.id for p in both} == {a, b}:
                other = {a: b, b: a}
                yield [(p, ast.Name(other[p.node.id], ast.Load())) for p in both]

    def brackets(self) -> Iterator[Edit]:
        for p in (p for p in self.values if not adds_little(p.node)):
            node = p.node
            if isinstance(node, ast.BinOp) and isinstance(a := node.left, ast.BinOp):
                new = ast.BinOp(a.left, a.op, ast.BinOp(a.right, node.op, node.right))
                yield from self.put(p, new)
            if isinstance(node, ast.BinOp) and isinstance(b := node.right, ast.BinOp):
                new = ast.BinOp(ast.BinOp(node.left, node.op, b.left), b.op, b.right)
                yield from self.put(p, new)
            if isinstance(node, ast.BinOp) and isinstance(f := node.left, ast.Call):
                if len(f.args) == 1 and called(f) not in UNTOUCHED:
                    new = ast.Call(f.func, [ast.BinOp(f.args[0], node.op, node.right)], f.keywords)
                    yield from self.put(p, new)
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.BinOp):
                b = node.args[0]
                inner = ast.Call(node.func, [b.left, *node.args[1:]], node.keywords)
                yield from self.put(p, ast.BinOp(inner, b.op, b.right))

    # ------------------------------------------------------------ too much, missing, another

    def too_much(self) -> Iterator[Edit]:
        for p in self.values:
            for inner in inner_of(p.node):
                yield from self.put(p, inner)
        for s, body in bodies(self.function):
            for i, line in enumerate(body):
                if len(body) > 1 and not isinstance(line, KEPT):
                    yield [(Place(s, "body"), body[:i] + body[i + 1 :])]

    def missing(self) -> Iterator[Edit]:
        """An operation of the solution around an expression."""
        wrapped = ast.Name | COMPUTED
        around = templates(self.solution)
        for p in self.values:
            stem = isinstance(p.parent, ast.Attribute | ast.Subscript) and p.name == "value"
            if isinstance(p.node, wrapped) and p.name != "func" and not stem:
                for make in around:
                    yield from self.put(p, make(p.node))

    def expressions(self) -> Iterator[Edit]:
        """An expression of the solution in place of the learner's, in the learner's own names."""
        known, last = lent_expressions(self.solution)
        shorter = Shorter(definitions(self.function))
        found = [*(shorter.visit(copy.deepcopy(e)) for e in known), *known]
        lent = {ast.unparse(e): e for e in found if not isinstance(e, ast.Name)}
        for p in self.values:
            if isinstance(p.node, COMPUTED):
                for text, node in lent.items():
                    if text not in last:  # the solution is no repair
                        yield from self.put(p, node)


def untouched(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What is never edited: defaults, checks of the learner's own, what is measured or printed."""
    yield function.args
    for n in ast.walk(function):
        checks = isinstance(n, ast.Assert | ast.Raise)
        if checks or (isinstance(n, ast.Call) and called(n) in UNTOUCHED):
            yield n


def is_negative(node: ast.AST) -> bool:
    minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return minus and isinstance(node.operand, ast.Constant)


def adds_little(node: ast.AST) -> bool:
    """Whether it holds a small number such as eps, which changes little wherever it stands."""
    inner = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return any(type(v) is float and 0 < abs(v) < 1e-3 for v in inner)


def with_keyword(call: ast.Call, k: ast.keyword) -> ast.Call:
    return ast.Call(call.func, call.args, [*call.keywords, k])


def orders_of(items: list) -> Iterator[Any]:
    """Other orders of some entries: any of numbers, neighbours exchanged of anything else."""
    n = len(items)
    if n == 2 or all(isinstance(x, ast.Constant) for x in items):
        return (o for o in itertools.permutations(range(n)) if list(o) != list(range(n)))
    return ([*range(i), i + 1, i, *range(i + 2, n)] for i in range(n - 1))


def bodies(function: ast.FunctionDef) -> list[tuple[ast.AST, list]]:
    """The lists of statements in a function."""
    found = ((s, getattr(s, "body", None)) for s in ast.walk(function))
    return [(s, body) for s, body in found if isinstance(body, list)]


def inner_of(node: ast.AST) -> Iterator[ast.AST]:
    """What is left of an expression without its operation."""
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and is_computed(node.func.value)
        if method or node.args:
            yield node.func.value if method else node.args[0]
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp) and not is_negative(node):
        yield node.operand
    elif isinstance(node, ast.Subscript) or is_turned(node):
        yield node.value


def is_turned(node: ast.AST) -> bool:
    """Whether it is x.T or x.mT."""
    return isinstance(node, ast.Attribute) and node.attr in ("T", "mT")


# ---------------------------------------------------------------- what the solution lends


def holes(node: ast.AST) -> list[str]:
    """Where an operation takes what it works on."""
    if isinstance(node, ast.Call) and not any(isinstance(a, ast.Starred) for a in node.args):
        method = isinstance(node.func, ast.Attribute) and is_computed(node.func.value)
        return ["func.value"] if method else ["args"] * bool(node.args)
    if isinstance(node, ast.BinOp):
        return ["left", "right"]
    if isinstance(node, ast.UnaryOp):
        return [] if isinstance(node.operand, ast.Constant) else ["operand"]
    return ["value"] if isinstance(node, ast.Subscript) or is_turned(node) else []


def around(node: ast.expr, hole: str) -> Callable[[ast.expr], ast.expr]:
    """The operation of a node, with another expression in its hole."""

    def make(inner: ast.expr) -> ast.expr:
        whole = copy.deepcopy(node)
        if hole == "args":
            whole.args[0] = inner
        else:
            setattr(whole.func if "." in hole else whole, hole.removeprefix("func."), inner)
        return whole

    return make


def templates(solution: ast.FunctionDef) -> list[Callable[[ast.expr], ast.expr]]:
    """The solution's operations with one hole, those without its local names."""
    own, found = locals_of(solution), {}
    for node in ast.walk(solution):
        for hole in holes(node):
            make = around(node, hole)
            empty = make(ast.Name("HOLE", ast.Load()))
            if not {n.id for n in ast.walk(empty) if isinstance(n, ast.Name)} & own:
                found[ast.unparse(empty)] = make
    return list(found.values())


def inlined(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Each statement of a body, and its value with local names written out."""
    known: dict[str, ast.expr] = {}
    for s in function.body:
        value = getattr(s, "value", None)
        if isinstance(value, ast.expr):
            whole = Renamed(known).visit(copy.deepcopy(value))
            yield s, whole
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
                known[s.targets[0].id] = whole


def lent_expressions(solution: ast.FunctionDef) -> tuple[list[ast.expr], set[str]]:
    """The solution's expressions, and the text of those that it returns."""
    found, last = {}, set()
    for s, whole in inlined(solution):
        for node in ast.walk(whole):
            if isinstance(node, COMPUTED) and not is_negative(node):
                found.setdefault(ast.unparse(node), node)
        if isinstance(s, ast.Return):
            last.add(ast.unparse(whole))
    return list(found.values()), last


def definitions(function: ast.FunctionDef) -> dict[str, str]:
    """The learner's local names, by what they stand for."""
    return {ast.dump(whole): s.targets[0].id for s, whole in inlined(function)
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)}  # fmt: skip


class Shorter(ast.NodeTransformer):
    """The same tree with the learner's names for what they stand for."""

    def __init__(self, names: dict[str, str]):
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.dump(node) in self.names:
            return ast.Name(self.names[ast.dump(node)], ast.Load())
        return super().generic_visit(node)
