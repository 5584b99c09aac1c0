"""Which edits somebody may have meant: nothing unused, nothing senseless, none that leads away."""

import ast
from collections import Counter

from workshop.checks.syntax import (
    Definition,
    arguments,
    called,
    distance,
    functions,
    is_computed,
    locals_of,
    pairs,
    words,
)

MOST = 8  # words that an edit may change
SLACK = 2  # by which it may lead away from the solution, in words that stand there
REDUCED = ("mean", "sum", "max", "min", "softmax", "exp", "log")  # once is enough
TWICE = ("swapaxes", "transpose", "where")  # nobody hands them the same thing twice


class Rules:
    """Whether an edit of an answer is one that a learner may have meant."""

    def __init__(self, answer: Definition, solution: Definition):
        below = ast.unparse(answer).partition("\n")[2]
        self.own, self.bag = locals_of(answer), words(below, locals_of(answer))
        self.read, self.odd = reads(answer), senseless(answer)
        self.target = words(ast.unparse(solution).partition("\n")[2], locals_of(solution))
        self.parameters = frozenset(arguments(answer))
        self.arguments = [x for x in arguments(answer) if self.read[x]]
        self.before, self.goal = pairs(answer), pairs(solution)

    def allow(self, changed: Definition, text: str) -> bool:
        """By the words of an answer after an edit, those that are read, and what they say."""
        stored = stores(changed)
        bag = words(text.partition("\n")[2], frozenset(stored) - self.parameters)
        came = bag - self.bag
        if distance(self.bag, bag) > MOST or not self.leads_on(bag, came):
            return False
        read = reads(changed)
        return (
            all(read[x] for x in self.arguments)  # every argument stays in use
            and not any(self.read[x] and not read[x] for x in stored)  # and every line
            and senseless(changed) <= self.odd
            and not dead_code(changed)
        )

    def leads_on(self, bag: Counter, came: Counter) -> bool:
        """Whether it comes nearer to the solution, or stays near it with the solution's words."""
        farther = distance(bag, self.target) - distance(self.bag, self.target)
        return farther < 0 or (farther <= SLACK and all(w in self.target for w in came))

    def cost(self, changed: Definition) -> tuple[int, int]:
        """How much an edit changes, and how far from the solution it stays."""
        after = pairs(changed)
        return distance(self.before, after), distance(after, self.goal)


def reads(tree: Definition) -> Counter:
    """How often each name is read; to write into it, or to call its method alone, is no reading."""
    written = {id(base_of(n)) for n in ast.walk(tree) if is_written(n)}
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in written)
    return Counter(n.id for n in names if isinstance(n.ctx, ast.Load))


def is_written(n: ast.AST) -> bool:
    """Whether it is x[i] = …, or x.append(…) as a line of its own."""
    alone = isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)
    return alone or (isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))


def base_of(n: ast.AST) -> ast.AST:
    """The name that stands at the beginning of x[i] or x.append(…)."""
    while isinstance(n, ast.Expr | ast.Subscript | ast.Attribute | ast.Call):
        n = n.func if isinstance(n, ast.Call) else n.value
    return n


def stores(tree: Definition) -> set[str]:
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def dead_code(tree: Definition) -> bool:
    """Whether lines stand behind a `return`, or a function has lost its lines."""
    ends = ast.Return | ast.Continue | ast.Break
    found = (getattr(n, f, None) for n in ast.walk(tree) for f in ("body", "orelse"))
    early = any(isinstance(s, ends) for b in found if isinstance(b, list) for s in b[:-1])
    return early or not all(f.body for f in functions(tree).values())


def senseless(tree: Definition) -> int:
    """How often something is written that nobody means: n // n, x + 0, a / -2, - -x, x = x."""
    return sum(SENSE[type(n)](n) for n in ast.walk(tree) if type(n) in SENSE)


def in_operation(n: ast.BinOp) -> int:
    """Two equal sides, two constants, one that does nothing, a power of a power."""
    right = n.right.value if isinstance(n.right, ast.Constant) else None
    idle = isinstance(n.op, ast.Mult | ast.Div | ast.Pow | ast.FloorDiv | ast.Mod)
    count = ast.dump(n.left) == ast.dump(n.right) and not isinstance(n.op, ast.Mult | ast.MatMult)
    count += right == 0 or (right == 1 and idle)
    count += getattr(n.left, "value", 0) == 1 and isinstance(n.op, ast.Mult)
    count += isinstance(n.left, ast.Constant) and isinstance(n.right, ast.Constant)
    twice = isinstance(n.left, ast.BinOp) and ast.dump(n.left.right) == ast.dump(n.right)
    count += twice and isinstance(n.op, ast.Add) and isinstance(n.left.op, ast.Add)
    if isinstance(n.op, ast.Pow):
        return count + sum(isinstance(m, ast.BinOp | ast.Call) for m in ast.walk(n.right)
                           if isinstance(getattr(m, "op", None), ast.Pow))  # fmt: skip
    minus = isinstance(n.right, ast.UnaryOp) and isinstance(n.right.operand, ast.Constant)
    return count + minus


def in_call(n: ast.Call) -> int:
    """The same argument twice, a function of itself, a method of a new module."""
    texts = {ast.unparse(a) for a in n.args}
    method = isinstance(n.func, ast.Attribute) and is_computed(n.func.value)
    again = n.func.value if method else (n.args or [None])[0]
    again = again.value if isinstance(again, ast.Starred) else again
    count = len(texts) < len(n.args) and called(n) in TWICE
    if method and isinstance(again, ast.Call) and ast.unparse(again.func).startswith("nn."):
        count += 1  # a method of a module or parameter that was just made
    inside = (m for a in n.args for m in ast.walk(a))  # the mean of a mean
    count += called(n) in REDUCED and any(called(m) == called(n) for m in inside)
    return count + (isinstance(again, ast.Call) and called(n) == called(again))


def in_comparison(n: ast.Compare) -> int:
    return any(ast.dump(n.left) == ast.dump(c) for c in n.comparators)


def in_slice(n: ast.Slice) -> int:
    """From 0 to the end: everything."""
    begin = getattr(n.lower, "value", None)
    return begin == 0 and n.upper is None and n.step is None


SENSE = {
    ast.BinOp: in_operation,
    ast.Call: in_call,
    ast.Compare: in_comparison,
    ast.Slice: in_slice,
    ast.UnaryOp: lambda n: isinstance(n.operand, ast.UnaryOp),
    ast.Assign: lambda n: ast.unparse(n.targets[0]) == ast.unparse(n.value),
}
