"""Which edits somebody may have meant: nothing unused, nothing senseless, none that leads away."""

import ast
from collections import Counter

from workshop.checks import syntax
from workshop.checks.syntax import Definition, called, distance, locals_of, pairs, words

MOST = 8  # words that an edit may change
SLACK = 2  # by which it may lead away from the solution, in words that stand there
REDUCED = ("mean", "sum", "max", "min", "softmax", "exp", "log")  # once is enough
TWICE = ("swapaxes", "transpose", "where")  # nobody hands them the same thing twice


class Rules:
    """Whether an edit of an answer is one that a learner may have meant."""

    def __init__(self, answer: Definition, solution: Definition):
        trees = answer, solution
        self.bag, self.target = (words(ast.unparse(t), locals_of(t)) for t in trees)
        self.read, self.odd = reads(answer), senseless(answer)
        self.arguments = syntax.arguments(answer)
        self.before, self.goal = map(pairs, trees)

    def allow(self, changed: Definition, text: str) -> bool:
        """By the words of an answer after an edit, those that are read, and what they say."""
        bag = words(text, locals_of(changed))
        if distance(self.bag, bag) > MOST or not self.leads_on(bag):
            return False
        read, names = reads(changed), (*self.arguments, *locals_of(changed))
        in_use = all(read[x] for x in names if self.read[x])  # every argument, every line
        return in_use and senseless(changed) <= self.odd

    def leads_on(self, bag: Counter) -> bool:
        """Whether it comes nearer to the solution, or stays near it with the solution's words."""
        farther = distance(bag, self.target) - distance(self.bag, self.target)
        return farther < 0 or (farther <= SLACK and all(w in self.target for w in bag - self.bag))

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
    """The same argument twice, the mean of a mean, a function of itself, a new module's method."""
    name, first = called(n), next(iter(syntax.operands(n)), None)
    inside = (called(m) for a in n.args for m in ast.walk(a))
    count = name in TWICE and len({ast.unparse(a) for a in n.args}) < len(n.args)
    count += name in REDUCED and name in inside
    if isinstance(first, ast.Call):
        count += called(first) == name
        count += first not in n.args and ast.unparse(first.func).startswith("nn.")
    return count


SENSE = {
    ast.BinOp: in_operation,
    ast.Call: in_call,
    ast.Compare: lambda n: any(ast.dump(n.left) == ast.dump(c) for c in n.comparators),
    ast.UnaryOp: lambda n: isinstance(n.operand, ast.UnaryOp),
    ast.Assign: lambda n: ast.unparse(n.targets[0]) == ast.unparse(n.value),
}
