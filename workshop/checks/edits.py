"""Every small change of a function's syntax tree that a learner may have meant.

A change is made in place, tried, and undone: `with edit: ...`. Generic edits need nothing but the
answer; the others take parts of right answers, the donors. Nothing here runs code.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice, pairwise, permutations

from workshop.checks.donors import Donors
from workshop.checks.syntax import (
    MODULES,
    Place,
    Renamed,
    arguments,
    assigned,
    blocks,
    called,
    expression,
    is_computed,
    is_value,
    places,
    text,
)

BINARY = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add, ast.Div, ast.Mult),
    ast.Mult: (ast.Div, ast.MatMult, ast.Add, ast.Pow), ast.Div: (ast.Mult, ast.Sub, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult, ast.Mod), ast.Mod: (ast.FloorDiv,),
    ast.MatMult: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitAnd, ast.BitOr),
}  # fmt: skip
COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
SIBLINGS = [set(names.split()) for names in (
    "sum mean max min prod median cumsum", "argmax argmin", "tril triu", "sin cos", "var std",
    "zeros ones empty full", "zeros_like ones_like", "exp log exp2 log2 log10 log1p expm1",
    "sqrt square", "floor ceil round int", "append extend", "any all", "maximum minimum",
    "repeat tile", "repeat repeat_interleave", "stack concatenate hstack vstack cat",
    "split array_split", "matmul multiply", "train eval", "items keys values", "eq ne",
    "softmax log_softmax sigmoid", "sum nansum", "isfinite isnan", "clip minimum maximum",
    "upper lower", "step zero_grad", "T mT", "bool int float", "int32 int64 float32 float64 bool",
    "cross_entropy nll_loss", "add multiply subtract divide", "shape size", "relu gelu",
)]  # fmt: skip
GUESSES = "-1 -2 0 1 2 None True False".split()
LEAVES = (ast.Name, ast.Constant, ast.Attribute)


@dataclass
class Edit:
    """New nodes for some places; `kind` says what sort of change it is."""

    kind: str
    changes: list[tuple[Place, object]]
    before: list = field(default_factory=list)

    def __enter__(self) -> "Edit":
        self.before = [place.node for place, _ in self.changes]
        for place, node in self.changes:
            place.put(node)
        return self

    def __exit__(self, *_: object) -> None:
        for (place, _), node in zip(self.changes, self.before, strict=True):
            place.put(node)


def _own_name(node: ast.AST) -> str:
    """The name of a variable or an attribute, "" for anything else."""
    return getattr(node, "attr", None) or getattr(node, "id", None) or ""


# ---------------------------------------------------------------- all edits


@dataclass
class Surgeon:
    """All edits of one function, the likeliest kinds first."""

    function: ast.FunctionDef
    donors: Donors
    known: set[str]  # the global names that an answer may use

    def __post_init__(self) -> None:
        self.all = list(places(self.function))
        in_body = [p for p in self.all if not isinstance(p.parent, ast.arguments)]
        self.values = [p for p in in_body if is_value(p)]
        self.names = list(dict.fromkeys(arguments(self.function) + assigned(self.function)))

    def edits(self, small: bool = False) -> Iterator[Edit]:
        """Every edit, the likeliest kinds first; with `small`, those of a token or a line alone."""
        first = (
            self.siblings, self.operators, self.order, self.signs, self.keywords, self.everywhere,
            self.constants, self.dropped, self.leaves, self.copies, self.overwritten, self.lines,
            self.loops,
        )  # fmt: skip
        then = (self.donated, self.wrapped, self.operations, self.more_statements, self.calls,
                self.exchanged, self.many_places)  # fmt: skip
        for kind in first:
            yield from kind()
        if not small:
            yield from in_turn([kind() for kind in then])

    def put(self, kind: str, place: Place, *nodes: ast.AST) -> Iterator[Edit]:
        for node in nodes:
            yield Edit(kind, [(place, node)])

    def alike(self, place: Place) -> list[Place]:
        """All places that hold the same code."""
        same = ast.dump(place.node)
        return [p for p in self.values if type(p.node) is type(place.node)
                and ast.dump(p.node) == same]  # fmt: skip

    # ------------------------------------------------------------ one token

    def siblings(self) -> Iterator[Edit]:
        """Another function of the same family."""
        for place in self.values:
            own = _own_name(place.node)
            yield from self.renamed(place, {n for f in SIBLINGS if own in f for n in f} - {own})

    def calls(self) -> Iterator[Edit]:
        """Another function, one that a donor calls."""
        for place in self.values:
            if isinstance(place.parent, ast.Call) and place.name == "func":
                yield from self.renamed(place, self.donors.calls - {_own_name(place.node)})

    def renamed(self, place: Place, others: set[str]) -> Iterator[Edit]:
        node = place.node
        for other in sorted(others, key=lambda n: (n not in self.donors.calls, n)):
            if isinstance(node, ast.Attribute):
                yield from self.put("function", place, ast.Attribute(node.value, other, node.ctx))
            elif isinstance(node, ast.Name) and (other in self.known or other in BUILTIN):
                yield from self.put("function", place, ast.Name(other, ast.Load()))

    def signs(self) -> Iterator[Edit]:
        """A condition the other way round, a number with the other sign."""
        for place in self.values:
            node = place.node
            if isinstance(node, ast.Compare | ast.Name | ast.Call | ast.BinOp | ast.Subscript):
                if self._can_wrap(place) and not isinstance(place.parent, ast.Compare):
                    yield from self.put("sign", place, ast.UnaryOp(ast.Invert(), node),
                                        ast.UnaryOp(ast.USub(), node))  # fmt: skip

    def operators(self) -> Iterator[Edit]:
        """Another operator, comparison or connective; a sign or a negation too much."""
        for place in self.all:
            node = place.node
            if isinstance(node, ast.BinOp):
                swap = [ast.BinOp(node.right, node.op, node.left)]
                new = [
                    ast.BinOp(node.left, op(), node.right)
                    for op in BINARY.get(type(node.op), ())
                    if ast.unparse(node.right) != "1"
                    or op in (ast.Add, ast.Sub)  # x * 1 mends nothing
                ]
                yield from self.put("operator", place, *new, *swap)
            elif isinstance(node, ast.Compare) and len(node.ops) == 1:
                for op in COMPARED:
                    if op is not type(node.ops[0]):
                        new = ast.Compare(node.left, [op()], node.comparators)
                        yield from self.put("comparison", place, new)
            elif isinstance(node, ast.BoolOp):
                new = ast.Or() if isinstance(node.op, ast.And) else ast.And()
                yield from self.put("operator", place, ast.BoolOp(new, node.values))
            elif isinstance(node, ast.UnaryOp):
                yield from self.put("sign", place, node.operand)
            elif isinstance(node, ast.AugAssign):
                for op in BINARY.get(type(node.op), ()):
                    yield from self.put(
                        "operator", place, ast.AugAssign(node.target, op(), node.value)
                    )
                yield from self.put("assignment", place, ast.Assign([node.target], node.value))
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                if not isinstance(node.targets[0], ast.Tuple):
                    new = ast.AugAssign(node.targets[0], ast.Add(), node.value)
                    yield from self.put("assignment", place, new)

    def constants(self) -> Iterator[Edit]:
        """Another number, truth value or text; a name instead of a number."""
        for place in self.values:
            node = place.node
            negative = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
            if not isinstance(node, ast.Constant) and not negative:
                continue
            value = ast.literal_eval(node) if not isinstance(node, ast.Constant) else node.value
            halves = [0.5, -0.5] if isinstance(getattr(place.parent, "op", None), ast.Pow) else []
            for new in [*self._near(value), *halves]:
                yield from self.put("constant", place, expression(repr(new)))
                if len(same := self.alike(place)) > 1:
                    yield Edit("constant", [(p, expression(repr(new))) for p in same])
            if isinstance(value, int | float):
                for name in self.names:
                    yield from self.put("constant", place, ast.Name(name, ast.Load()))
                    if len(same := self.alike(place)) > 1:
                        yield Edit("constant", [(p, ast.Name(name, ast.Load())) for p in same])

    def _near(self, value: object) -> list:
        """Constants to try instead of one."""
        lent = [n.value for n in self.donors.constants.values()]
        if isinstance(value, bool):
            return [not value]
        if isinstance(value, str):
            own = [p.node.value for p in self.values if isinstance(p.node, ast.Constant)]
            return [s for s in dict.fromkeys([*lent, *own]) if isinstance(s, str) and s != value]
        if not isinstance(value, int | float):
            return [c for c in lent if c is not value and not isinstance(c, str)]
        near = [0, 1, -1, value + 1, value - 1, -value, 2, -2, 3]
        near += [c for c in lent if isinstance(c, int | float) and not isinstance(c, bool)]
        near += [-c for c in lent if isinstance(c, float)]
        near += [0.0, 1.0, -0.5, 0.5] if isinstance(value, float) else []
        return [c for c in dict.fromkeys(near) if c != value]

    def leaves(self) -> Iterator[Edit]:
        """Another variable, or another attribute of the same thing."""
        read = [p for f in (self.function, *self.donors.functions) for p in places(f)
                if isinstance(p.node, ast.Attribute) and p.name != "func"]  # fmt: skip
        attributes = {p.node.attr for p in read}
        for place in self.values:
            node = place.node
            if isinstance(node, ast.Name) and node.id in self.names:
                others = [n for n in self.names if n != node.id]
                for name in others:
                    yield from self.put("name", place, ast.Name(name, ast.Load()))
                    if len(same := self.alike(place)) > 1:
                        yield Edit("name", [(p, ast.Name(name, ast.Load())) for p in same])
            elif isinstance(node, ast.Attribute) and not self._is_compared(place):
                for name in sorted(attributes - {node.attr}):
                    yield from self.put("name", place, ast.Attribute(node.value, name, ast.Load()))

    def _is_compared(self, place: Place) -> bool:
        return place.name == "func" or isinstance(place.parent, ast.Compare)

    # ------------------------------------------------------------ arguments and order

    def keywords(self) -> Iterator[Edit]:
        """A keyword dropped, with another value, or added as donors use it."""
        for place in self.values:
            node = place.node
            if not isinstance(node, ast.Call):
                continue
            for i, own in enumerate(node.keywords):
                rest = node.keywords[:i] + node.keywords[i + 1 :]
                for value in self._values_of(own):
                    changed = [*node.keywords[:i], ast.keyword(own.arg, value)]
                    changed += node.keywords[i + 1 :]
                    new = ast.Call(node.func, node.args, changed)
                    yield from self.put("argument", place, new)
                yield from self.put("argument", place, ast.Call(node.func, node.args, rest))
            given = {k.arg for k in node.keywords}
            for new in self.donors.keywords.values():
                if new.arg not in given and self.fits(new.value):
                    more = ast.Call(node.func, node.args, [*node.keywords, new])
                    yield from self.put("argument", place, more)
            if node.args:
                fewer = ast.Call(node.func, node.args[:-1], node.keywords)
                yield from self.put("argument", place, fewer)
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            for name in (n for n in self.names if n not in used):
                more = [*node.args, ast.Name(name, ast.Load())]
                yield from self.put("argument", place, ast.Call(node.func, more, node.keywords))

    def everywhere(self) -> Iterator[Edit]:
        """The same keyword in every call that has it, or is of the same kind and lacks it."""
        calls = [p for p in self.values if isinstance(p.node, ast.Call)]
        for own in {text(k): k for p in calls for k in p.node.keywords if k.arg}.values():
            having = [p for p in calls if text(own) in map(text, p.node.keywords)]
            places_ = [Place(k, "value") for p in having for k in p.node.keywords
                       if text(k) == text(own)]  # fmt: skip
            for value in self._values_of(own) if len(having) > 1 else ():
                yield Edit("argument", [(place, value) for place in places_])
        for new in self.donors.keywords.values():
            lacking = [p for p in calls if called(p.node) in REDUCING
                       and new.arg not in {k.arg for k in p.node.keywords}]  # fmt: skip
            if len(lacking) > 1 and self.fits(new.value):
                yield Edit("argument", [(p, _with(p.node, new)) for p in lacking])

    def _values_of(self, own: ast.keyword) -> Iterator[ast.expr]:
        lent = [k.value for k in self.donors.keywords.values() if k.arg == own.arg]
        guesses = [expression(code) for code in GUESSES] if own.arg in ("axis", "dim", "keepdims",
            "k", "diagonal", "ddof", "keepdim", "start", "stop", "unbiased") else []  # fmt: skip
        seen = {text(own.value)}
        for value in [*lent, *guesses]:
            if text(value) not in seen and self.fits(value):
                seen.add(text(value))
                yield value

    def order(self) -> Iterator[Edit]:
        """Two arguments, entries or branches the other way round; other brackets."""
        for place in self.all:
            node = place.node
            for name in ("args", "elts", "keys", "values"):
                entries = getattr(node, name, None)
                if isinstance(entries, list) and isinstance(node, ast.expr):
                    for i, j in list(combinations(range(len(entries)), 2))[:10]:
                        a, b = Place(node, name, i), Place(node, name, j)
                        yield Edit("order", [(a, b.node), (b, a.node)])
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                new = ast.Compare(node.comparators[0], node.ops, [node.left])
                yield from self.put("order", place, new)
            if isinstance(node, ast.IfExp):
                yield from self.put("order", place, ast.IfExp(node.test, node.orelse, node.body))
            if isinstance(node, ast.If) and node.orelse:
                yield from self.put("order", place, ast.If(node.test, node.orelse, node.body))
            yield from self._brackets(place)

    def _brackets(self, place: Place) -> Iterator[Edit]:
        """a ∘ (b ∘ c) for (a ∘ b) ∘ c, and the other way round."""
        node = place.node
        if not isinstance(node, ast.BinOp):
            return
        if isinstance(inner := node.left, ast.BinOp):
            right = ast.BinOp(inner.right, node.op, node.right)
            yield from self.put("brackets", place, ast.BinOp(inner.left, inner.op, right))
        if isinstance(inner := node.right, ast.BinOp):
            left = ast.BinOp(node.left, node.op, inner.left)
            yield from self.put("brackets", place, ast.BinOp(left, inner.op, inner.right))
        for name in ("left", "right"):  # f(a) ∘ b for f(a ∘ b)
            inner = getattr(node, name)
            if isinstance(inner, ast.Call) and len(inner.args) >= 1:
                new = copy.copy(node)
                setattr(new, name, inner.args[0])
                whole = ast.Call(inner.func, [new, *inner.args[1:]], inner.keywords)
                yield from self.put("brackets", place, whole)

    def dropped(self) -> Iterator[Edit]:
        """A part left out: one side, a call, an index, a condition."""
        for place in self.values:
            node = place.node
            parts: list[ast.AST] = []
            if isinstance(node, ast.BinOp):
                parts = [node.left, node.right]
            elif isinstance(node, ast.Call):
                method = isinstance(node.func, ast.Attribute) and is_computed(node.func.value)
                parts = ([node.func.value] if method else []) + node.args[:1]
            elif isinstance(node, ast.Subscript | ast.Attribute):
                parts = [node.value] if is_computed(node.value) else []
            elif isinstance(node, ast.IfExp):
                parts = [node.body, node.orelse]
            elif isinstance(node, ast.BoolOp):
                parts = list(node.values)
            yield from self.put("part", place, *parts)
        for node in (p.node for p in self.all if isinstance(p.node, ast.comprehension)):
            if node.ifs:
                yield Edit("part", [(Place(node, "ifs"), [])])

    # ------------------------------------------------------------ something around

    def copies(self) -> Iterator[Edit]:
        """An argument copied first, where a function changes it in place."""
        start = 1 if ast.get_docstring(self.function) else 0
        body = self.function.body
        for name in arguments(self.function):
            for code in ("copy", "clone"):
                line = ast.parse(f"{name} = {name}.{code}()").body[0]
                new = [*body[:start], line, *body[start:]]
                yield Edit("copy", [(Place(self.function, "body"), new)])
        for place in self.values:
            if isinstance(place.parent, ast.Assign) and place.name == "value":
                for code in ("copy", "clone"):
                    made = ast.Call(ast.Attribute(place.node, code, ast.Load()), [], [])
                    yield from self.put("copy", place, made)

    def wrapped(self) -> Iterator[Edit]:
        """Small operations around an expression that hardly any donor is needed for."""
        for place in self.values:
            node = place.node
            if not self._can_wrap(place):
                continue
            if place.name == "func":
                continue
            swapped = expression("HOLE.swapaxes(-1, -2)")
            yield from self.put("transpose", place, Renamed({"HOLE": node}).visit(swapped))
            yield from self.put("number", place, ast.BinOp(node, ast.Add(), ast.Constant(1)),
                                ast.BinOp(node, ast.Sub(), ast.Constant(1)))  # fmt: skip
            for code in ("None", "..., None", ":-1", "1:", "-1", "0", ":, None"):
                part = Renamed({"HOLE": node}).visit(expression(f"HOLE[{code}]"))
                yield from self.put("index", place, part)

    def _can_wrap(self, place: Place) -> bool:
        """Not a slice, a tuple, an ellipsis, a module's name or a function that is called."""
        node = place.node
        if isinstance(node, ast.Tuple | ast.Slice | ast.Constant | ast.Starred | ast.Lambda):
            return False
        if isinstance(node, ast.Name) and node.id not in self.names:
            return False
        return place.name != "func" and not (place.name == "value" and text(node) in MODULES)

    def operations(self) -> Iterator[Edit]:
        """A donor's operation around an expression."""
        for template in self.donors.templates:
            if self.fits(template.around(ast.Constant(0))):
                for place in self.values:
                    if self._can_wrap(place):
                        yield from self.put("operation", place, template.around(place.node))

    def donated(self) -> Iterator[Edit]:
        """A donor's expression instead of the learner's, the most alike first."""
        pairs = []
        places_ = [p for p in self.values if p.name != "func" and self._whole(p)]
        bags = [_words(p.node) for p in places_]
        lent = [
            (node, _words(node)) for e in self.donors.expressions.values() for node in self.own(e)
        ]
        for place, own in zip(places_, bags, strict=True):
            for node, theirs in lent:
                share = len(own & theirs) / (len(own | theirs) or 1)
                if share < 1 or text(node) != text(place.node):
                    pairs.append((share, place, node))
        pairs.sort(key=lambda pair: -pair[0])
        for _, place, node in pairs:
            yield from self.put("expression", place, node)

    def _whole(self, place: Place) -> bool:
        return not (isinstance(place.node, ast.Name) and place.node.id not in self.names)

    # ------------------------------------------------------------ names of donors

    def fits(self, node: ast.AST) -> bool:
        """Whether all names of a donor's expression are known in the answer."""
        return not self.unknown(node)

    def unknown(self, node: ast.AST) -> list[str]:
        bound = set(assigned(node)) | {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
        loose = (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        known = self.known | set(self.names) | BUILTIN | bound
        return [name for name in dict.fromkeys(loose) if name not in known]

    def own(self, node: ast.AST) -> Iterator[ast.AST]:
        """A donor's piece in the answer's own names: each way to read one or two unknown ones."""
        unknown = self.unknown(node)
        if not unknown:
            yield node
        elif len(unknown) == 1:
            for name in self.names:
                new = {unknown[0]: ast.Name(name, ast.Load())}
                yield Renamed(new).visit(copy.deepcopy(node))
        elif len(unknown) == 2 and len(self.names) <= 6:
            for pair in permutations(self.names, 2):
                new = dict(zip(unknown, (ast.Name(n, ast.Load()) for n in pair), strict=True))
                yield Renamed(new).visit(copy.deepcopy(node))

    # ------------------------------------------------------------ statements

    def lines(self) -> Iterator[Edit]:
        """A statement dropped, two exchanged, or moved into or out of the block before it."""
        for block in blocks(self.function):
            body = block.node
            for i, statement in enumerate(body):
                rest = body[:i] + body[i + 1 :]
                if rest and not isinstance(statement, ast.Return):
                    yield Edit("line", [(block, rest)])
                if isinstance(statement, ast.If):
                    yield Edit("line", [(block, body[:i] + statement.body + body[i + 1 :])])
                yield from self._moved(block, body, i)
            for i, (first, second) in enumerate(pairwise(body)):
                new = [*body[:i], second, first, *body[i + 2 :]]
                yield Edit("lines", [(block, new)])
            for i in range(len(body)):
                for j in range(i + 2, len(body)):
                    new = [*body[:i], body[j], *body[i:j], *body[j + 1 :]]
                    yield Edit("lines", [(block, new)])
                    new = [*body[:i], *body[i + 1 : j + 1], body[i], *body[j + 1 :]]
                    yield Edit("lines", [(block, new)])

    def _moved(self, block: Place, body: list, i: int) -> Iterator[Edit]:
        """The last line of a loop put behind it, the line behind it put in."""
        loop = body[i]
        if not isinstance(loop, ast.For | ast.While | ast.If | ast.With):
            return
        if len(loop.body) > 1:
            for inside, where in ((loop.body[-1], i + 1), (loop.body[0], i)):
                left = [s for s in loop.body if s is not inside]
                outside = [*body[:where], inside, *body[where:]]
                yield Edit("indent", [(Place(loop, "body"), left), (block, outside)])
        if i + 1 < len(body):
            more, rest = [*loop.body, body[i + 1]], [*body[: i + 1], *body[i + 2 :]]
            yield Edit("indent", [(Place(loop, "body"), more), (block, rest)])
        if i:
            more, rest = [body[i - 1], *loop.body], [*body[: i - 1], *body[i:]]
            yield Edit("indent", [(Place(loop, "body"), more), (block, rest)])

    def overwritten(self) -> Iterator[Edit]:
        """What an assignment writes over kept for some of the lines after it."""
        for place in self.all:
            node = place.node
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name, target = node.targets[0].id, Place(node, "targets", 0)
            inside = {id(n) for n in ast.walk(node)}
            uses = [p for p in self.values if isinstance(p.node, ast.Name) and p.node.id == name
                    and id(p.node) not in inside and p.node.lineno >= node.lineno]  # fmt: skip
            new = f"{name}_new"
            some = [[use] for use in uses] + [[u for u in uses if u is not use] for use in uses]
            for chosen in some if len(uses) > 1 else []:
                renamed = [(p, ast.Name(new, ast.Load())) for p in chosen]
                yield Edit("overwritten", [(target, ast.Name(new, ast.Store())), *renamed])

    def loops(self) -> Iterator[Edit]:
        """A range that begins or ends one earlier or later; a name returned instead."""
        for place in self.values:
            node = place.node
            if called(node) in ("range", "arange") and node.args:
                last = node.args[-1]
                first = [ast.Constant(1)] if len(node.args) == 1 else []
                for new in (ast.BinOp(last, op(), ast.Constant(1)) for op in (ast.Sub, ast.Add)):
                    yield from self.put("range", place, ast.Call(node.func, [*node.args[:-1], new],
                                                                 node.keywords))  # fmt: skip
                if first:
                    args = [*first, *node.args]
                    yield from self.put("range", place, ast.Call(node.func, args, node.keywords))
        body = self.function.body
        if not isinstance(body[-1], ast.Return):
            for name in reversed(self.names):
                line = ast.Return(ast.Name(name, ast.Load()))
                yield Edit("return", [(Place(self.function, "body"), [*body, line])])

    def more_statements(self) -> Iterator[Edit]:
        """A donor's statement put in, or put instead of one."""
        lent = [
            s for s in self.donors.statements.values() if not isinstance(s, ast.For | ast.While)
        ]
        for block in blocks(self.function):
            body = block.node
            for donor in lent if body else ():
                for new in self._own_statement(donor):
                    for i in range(len(body) + (not isinstance(body[-1], ast.Return))):
                        yield Edit("statement", [(block, [*body[:i], new, *body[i:]])])
                    for i in range(len(body)):
                        yield Edit("statement", [(block, [*body[:i], new, *body[i + 1 :]])])

    def _own_statement(self, donor: ast.stmt) -> Iterator[ast.stmt]:
        """A donor's statement whose names the answer has; what it assigns may be any of them."""
        stored = [n for n in assigned(donor) if n not in self.names]
        if not stored:
            yield from self.own(donor)
            return
        if len(stored) == 1:
            for name in self.names:
                new = Renamed({stored[0]: ast.Name(name, ast.Load())})
                for made in self.own(new.visit(copy.deepcopy(donor))):
                    yield _stored(made)

    def exchanged(self) -> Iterator[Edit]:
        """Two names, numbers or attributes that stand where the other should."""
        leaves = [p for p in self.values if isinstance(p.node, LEAVES) and p.name != "func"]
        for a, b in combinations(leaves, 2):
            same_kind = type(a.node) is type(b.node) and not _is_truth(a) | _is_truth(b)
            if same_kind and text(a.node) != text(b.node):
                yield Edit("exchange", [(a, b.node), (b, a.node)])

    def many_places(self) -> Iterator[Edit]:
        """A part that stands at several places, replaced by a donor's at all of them."""
        seen = set()
        for place in self.values:
            if (code := text(place.node)) in seen or len(code) < 2:
                continue
            seen.add(code)
            same = [p for p in self.alike(place) if self._can_wrap(p)]
            if len(same) > 1:
                for expr in self.donors.expressions.values():
                    if self.fits(expr):
                        yield Edit("expression", [(p, expr) for p in same])


def in_turn(iterators: list[Iterator]) -> Iterator:
    """Eight of each in turn, until all have ended."""
    while iterators:
        for each in list(iterators):
            if some := list(islice(each, 8)):
                yield from some
            else:
                iterators.remove(each)


def _with(node: ast.Call, new: ast.keyword) -> ast.Call:
    return ast.Call(node.func, node.args, [*node.keywords, new])


def _is_truth(place: Place) -> bool:
    return isinstance(getattr(place.node, "value", None), bool)


def _stored(tree: ast.stmt) -> ast.stmt:
    """The same with names that are assigned marked as such."""
    for node in ast.walk(tree):
        for target in getattr(node, "targets", None) or [getattr(node, "target", None)]:
            if isinstance(target, ast.Name):
                target.ctx = ast.Store()
    return tree


def _words(node: ast.AST) -> frozenset[str]:
    """The names, attributes, numbers and operators of an expression."""
    found = set()
    for part in ast.walk(node):
        for name in ("id", "attr", "arg"):
            if isinstance(value := getattr(part, name, None), str):
                found.add(value)
        if isinstance(part, ast.Constant):
            found.add(repr(part.value))
        elif isinstance(part, ast.operator | ast.cmpop | ast.unaryop):
            found.add(type(part).__name__)
    return frozenset(found)


REDUCING = set("sum mean max min amax amin var std softmax cumsum argmax".split())
BUILTIN = set("abs all any bool dict enumerate float int len list max min range reversed round set "
              "sorted str sum tuple zip map np".split())  # fmt: skip
