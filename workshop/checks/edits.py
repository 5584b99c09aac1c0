"""The closed list of plausible edits of an answer: what a learner may have meant. Runs no code.

Those that come first are tried first. Which of them nobody would mean, `rules` says.
"""

import ast
import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from workshop.checks import syntax
from workshop.checks.syntax import Definition, Place, called, functions, locals_of, operands

Edit = list[tuple[Place, Any]]  # what to put where
Nodes = Iterator[ast.AST]  # what may stand in a place

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
HOLE = ast.Name("HOLE", ast.Load())
UNTOUCHED = ("print", "len", "isinstance")  # whose arguments nobody mends


def edits(answer: Definition, solution: Definition) -> Iterator[Edit]:
    """All edits, in a fixed order, of the functions that an answer and the solution both have."""
    for name, function in functions(answer).items():
        if name in functions(solution):
            yield from Editor(function, functions(solution)[name]).edits()


class Editor:
    """The edits of one function, which lie in its tree and in what the solution can lend."""

    def __init__(self, function: ast.FunctionDef, solution: ast.FunctionDef):
        self.function, self.templates = function, templates(solution)
        self.arguments, self.own = syntax.arguments(function), syntax.assigned(function)
        self.names = list(dict.fromkeys(self.arguments + self.own))
        left = {id(n) for part in untouched(function) for n in ast.walk(part)}
        self.values = [p for p in syntax.places(function) if id(p.parent) not in left
                       and syntax.is_value(p) and not is_negative(p.parent)]  # fmt: skip
        self.dump = {id(p.node): ast.dump(p.node) for p in self.values}
        lent = [n.value for n in ast.walk(solution) if isinstance(n, ast.Constant)]
        self.lent = list({repr(v): v for v in lent}.values())
        calls = (c for c in ast.walk(solution) if isinstance(c, ast.Call))
        self.keywords = [(called(c), k) for c in calls for k in c.keywords if k.arg]
        self.known = lent_expressions(function, solution)

    def edits(self) -> Iterator[Edit]:
        first = self.siblings, self.operators, self.call_keywords, self.orders
        yield from self.at_each_place(*first)
        yield from self.same_keyword_everywhere()
        yield from self.at_each_place(self.constants, self.other_names)
        yield from self.exchanges()
        yield from self.at_each_place(self.names_at_hand, self.brackets, self.too_much)
        yield from self.lines()
        yield from self.at_each_place(self.missing, self.expressions)

    def at_each_place(self, *kinds: Callable[[ast.AST], Nodes]) -> Iterator[Edit]:
        """What each kind puts at one place; then, once, the same at all equal places."""
        for kind, p in ((kind, p) for kind in kinds for p in self.values):
            same = [q for q in self.values if self.dump[id(q.node)] == self.dump[id(p.node)]]
            for node in kind(p.node) if kind != self.missing or holds(p) else ():
                yield [(p, node)]
                if len(same) > 1 and same[0].node is p.node:
                    yield [(q, copy.deepcopy(node)) for q in same]

    # ------------------------------------------------------------ in place of one node

    def siblings(self, node: ast.AST) -> Nodes:
        own = getattr(node, "attr", "")
        return (ast.Attribute(node.value, other, ast.Load()) for other in siblings_of(own))

    def operators(self, node: ast.AST) -> Nodes:
        """Another operation or comparison, or its sides exchanged."""
        if isinstance(node, ast.BinOp):
            for op in OPERATORS.get(type(node.op), ()):
                yield ast.BinOp(node.left, op(), node.right)
            if isinstance(node.op, TURNED):
                yield ast.BinOp(node.right, node.op, node.left)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            for op in (op for op in COMPARED if op is not type(node.ops[0])):
                yield ast.Compare(node.left, [op()], node.comparators)

    def call_keywords(self, call: ast.AST) -> Nodes:
        """Another value for a keyword, without it, or one of the solution's."""
        if not isinstance(call, ast.Call):
            return
        f, args, given = call.func, call.args, call.keywords
        for i, k in enumerate(given):
            for value in self.other_values(k):
                yield ast.Call(f, args, [*given[:i], ast.keyword(k.arg, value), *given[i + 1 :]])
            yield ast.Call(f, args, given[:i] + given[i + 1 :])
        for name, k in self.keywords:
            if called(call) in {name, *siblings_of(name)} and k.arg not in {o.arg for o in given}:
                yield with_keyword(call, k)

    def other_values(self, k: ast.keyword) -> list[ast.expr]:
        more = [o.value for _, o in self.keywords if o.arg == k.arg]
        more += AXES if k.arg in ("axis", "dim") else []
        if isinstance(k.value, ast.Constant) and isinstance(k.value.value, bool):
            more.append(ast.Constant(not k.value.value))
        return [v for v in more if ast.unparse(v) != ast.unparse(k.value)]

    def orders(self, node: ast.AST) -> Nodes:
        """Two arguments exchanged, or two entries; numbers in any order."""
        for name in ("args", "elts"):
            items = getattr(node, name, None)
            if isinstance(items, list) and 2 <= len(items) <= 4:
                for order in orders_of(items):
                    new = copy.copy(node)
                    setattr(new, name, [items[i] for i in order])
                    yield new

    def constants(self, node: ast.AST) -> Nodes:
        """Another constant, or an argument; -1 is one number."""
        if isinstance(node, ast.Constant) or is_negative(node):
            value = ast.literal_eval(node)
            for other in dict.fromkeys(self.near(value)):
                if other != value or type(other) is not type(value):
                    yield ast.parse(repr(other), mode="eval").body
            if type(value) in (int, float):
                yield from (ast.Name(name, ast.Load()) for name in self.arguments)

    def near(self, value: Any) -> list:
        """What may have been meant by a constant."""
        if isinstance(value, bool):
            return [not value]
        if type(value) in (int, float):
            lent = [v for v in self.lent if type(v) in (int, float)]
            whole = [value + 1, value - 1, -value, 0, 1, -1, 2, -2]
            return [*(whole if type(value) is int else [-value, 1.0]), *lent]
        return [v for v in self.lent if type(v) is type(value)]

    def other_names(self, node: ast.AST) -> Nodes:
        own = getattr(node, "id", None)
        return (ast.Name(n, ast.Load()) for n in self.names if own in self.names and n != own)

    def names_at_hand(self, node: ast.AST) -> Nodes:
        """A local name in place of an expression."""
        if isinstance(node, ast.Call | ast.BinOp | ast.Subscript):
            yield from (ast.Name(name, ast.Load()) for name in self.own)

    def brackets(self, node: ast.AST) -> Nodes:
        """a * (b + c) for a * b + c, and (a + b) * c for a + b * c."""
        if isinstance(node, ast.BinOp) and not adds_little(node):
            a, b = node.left, node.right
            if isinstance(a, ast.BinOp):
                yield ast.BinOp(a.left, a.op, ast.BinOp(a.right, node.op, b))
            if isinstance(b, ast.BinOp):
                yield ast.BinOp(ast.BinOp(a, node.op, b.left), b.op, b.right)

    def too_much(self, node: ast.AST) -> Nodes:
        """What is left of an expression without its operation."""
        return iter(operands(node))

    def missing(self, node: ast.AST) -> Nodes:
        """An operation of the solution around an expression."""
        if isinstance(node, ast.Name | COMPUTED):
            yield from (copy.deepcopy(empty, {id(HOLE): node}) for empty in self.templates)

    def expressions(self, node: ast.AST) -> Nodes:
        """An expression of the solution in place of the learner's."""
        return iter(self.known if isinstance(node, COMPUTED) else ())

    # ------------------------------------------------------------ at several places

    def same_keyword_everywhere(self) -> Iterator[Edit]:
        """The same keyword in all calls that lack it, the same axis in all that have one."""
        calls = [p for p in self.values if isinstance(p.node, ast.Call)]
        for name, k in {ast.unparse(k): (name, k) for name, k in self.keywords}.values():
            family = {name, "mean", "sum", "max", "min", "var", "std"}
            lack = [p for p in calls if called(p.node) in family
                    and k.arg not in {o.arg for o in p.node.keywords}]  # fmt: skip
            if len(lack) > 1:
                yield [(p, with_keyword(p.node, k)) for p in lack]
        given = [k for p in calls for k in p.node.keywords if k.arg in ("axis", "dim")]
        for text, k in {ast.unparse(k): k for k in given}.items():
            here = [Place(o, "value") for o in given if ast.unparse(o) == text]
            if len(here) > 1:
                yield from ([(place, value) for place in here] for value in self.other_values(k))

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
            both = [p for p in read if p.node.id in (a, b)]
            if {p.node.id for p in both} == {a, b} and not {a, b} <= unpacked:
                other = {a: b, b: a}
                yield [(p, ast.Name(other[p.node.id], ast.Load())) for p in both]

    def lines(self) -> Iterator[Edit]:
        """Without a line."""
        for s in ast.walk(self.function):
            body = getattr(s, "body", None)
            for i, line in enumerate(body) if isinstance(body, list) else ():
                if len(body) > 1 and not isinstance(line, KEPT):
                    yield [(Place(s, "body"), body[:i] + body[i + 1 :])]


def siblings_of(name: str) -> list[str]:
    return [n for family in SIBLINGS if name in family for n in sorted(family - {name})]


def holds(place: Place) -> bool:
    """Whether a place may hold any expression: not what is called, or indexed, or has a part."""
    stem = isinstance(place.parent, ast.Attribute | ast.Subscript) and place.name == "value"
    return place.name != "func" and not stem


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


# ---------------------------------------------------------------- what the solution lends


def templates(solution: ast.FunctionDef) -> list[ast.expr]:
    """The solution's operations with HOLE for what they work on, those without its local names."""
    own, found = locals_of(solution), {}
    for node in ast.walk(solution):
        for part in operands(node):
            empty = copy.deepcopy(node, {id(part): HOLE})
            if not {n.id for n in ast.walk(empty) if isinstance(n, ast.Name)} & own:
                found[ast.unparse(empty)] = empty
    return list(found.values())


def inlined(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Where each value of a body goes, and the value with local names written out."""
    known: dict[str, ast.expr] = {}
    for s in function.body:
        if isinstance(value := getattr(s, "value", None), ast.expr):
            target = s.targets[0] if isinstance(s, ast.Assign) else s
            target = ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target
            known[ast.dump(target)] = whole = Replaced(known).visit(copy.deepcopy(value))
            yield target, whole


def lent_expressions(function: ast.FunctionDef, solution: ast.FunctionDef) -> list[ast.expr]:
    """The solution's expressions, in the learner's names too; not what it returns, which is all."""
    values = [*inlined(solution)]
    returned = {ast.unparse(whole) for target, whole in values if isinstance(target, ast.Return)}
    parts = (n for _, whole in values for n in ast.walk(whole) if isinstance(n, COMPUTED))
    found = {ast.unparse(n): n for n in parts if not is_negative(n)}
    lent = [n for text, n in found.items() if text not in returned]
    own = {ast.dump(whole): target for target, whole in inlined(function)
           if isinstance(target, ast.Name)}  # fmt: skip
    shorter = [Replaced(own).visit(copy.deepcopy(n)) for n in lent]
    lent = [n for n in (*shorter, *lent) if not isinstance(n, ast.Name)]
    return list({ast.unparse(n): n for n in lent}.values())


class Replaced(ast.NodeTransformer):
    """The same tree with other expressions for some, which are known by their dump."""

    def __init__(self, others: dict[str, ast.expr]):
        self.others = others

    def visit(self, node: ast.AST) -> ast.AST:
        new = self.others.get(ast.dump(node)) if isinstance(node, ast.expr) else None
        return copy.deepcopy(new) if new else super().visit(node)
