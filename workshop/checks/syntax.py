"""An answer as a syntax tree: the places in it, what stands there, and its words as a bag."""

import ast
import copy
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

MODULES = {"np", "torch", "math", "F", "nn", "np.linalg", "torch.nn", "torch.nn.functional"}
HOMES = re.compile(r"np\.newaxis|\b(?:np|torch|math)\.")
WORD = re.compile(r"[A-Za-z_]\w*|\d+\.?\d*(?:e-?\d+)?|\*\*|//|[-+*/@~<>=!|&%]=?|[()\[\],:]")
BRACKETS = set("()[],:")

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Place:
    """Where a node stands: a field of its parent, or an entry of such a list."""

    parent: ast.AST
    name: str
    index: int | None = None

    @property
    def node(self) -> ast.AST:
        held = getattr(self.parent, self.name)
        return held if self.index is None else held[self.index]

    def put(self, node: object) -> None:
        if self.index is None:
            setattr(self.parent, self.name, node)
        else:
            getattr(self.parent, self.name)[self.index] = node


def places(tree: ast.AST) -> Iterator[Place]:
    """Every node below a tree, from the outside to the inside."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "ctx", "type_params"):
            continue
        nodes = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, node in nodes:
            if isinstance(node, ast.AST):
                yield Place(tree, name, index)
                yield from places(node)


def is_value(place: Place) -> bool:
    """Whether a place holds an expression that is read, and may be any other."""
    node, parent = place.node, place.parent
    if not isinstance(node, ast.expr) or isinstance(node, ast.Slice | ast.Starred):
        return False
    stored = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    return not stored and not isinstance(parent, ast.JoinedStr | ast.FormattedValue)


def functions(tree: Definition) -> dict[str, ast.FunctionDef]:
    """The functions of a definition by name: itself, or the methods of a class."""
    found = tree.body if isinstance(tree, ast.ClassDef) else [tree]
    return {f.name: f for f in found if isinstance(f, ast.FunctionDef)}


def arguments(tree: Definition) -> list[str]:
    """The names of its parameters; of a class, those of its methods."""
    given = [f.args for f in functions(tree).values()]
    every = (arg.arg for g in given for arg in (*g.posonlyargs, *g.args, *g.kwonlyargs))
    return list(dict.fromkeys(every))


def assigned(tree: ast.AST) -> list[str]:
    """The local names in the order of their assignments."""
    stored = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return list(dict.fromkeys(n.id for n in stored if isinstance(n.ctx, ast.Store)))


def called(node: ast.AST) -> str:
    func = getattr(node, "func", None)
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def is_computed(node: ast.expr) -> bool:
    """Whether a method belongs to a value, not to a module such as np."""
    return ast.unparse(node) not in MODULES


def operands(node: ast.AST) -> list[ast.expr]:
    """What an operation works on: what is left without it, or may be another expression."""
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and is_computed(node.func.value)
        first = [node.func.value] if method else node.args[:1]
        return [x for x in first if not isinstance(x, ast.Starred)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [] if isinstance(node.operand, ast.Constant) else [node.operand]
    turned = isinstance(node, ast.Attribute) and node.attr in ("T", "mT")
    return [node.value] if turned or isinstance(node, ast.Subscript) else []


def bare(tree: Definition) -> Definition:
    """A definition without docstring and annotations, its lines where they were."""
    tree = copy.deepcopy(tree)
    for n in ast.walk(tree):
        if isinstance(n, ast.arg):
            n.annotation = None
        elif isinstance(n, ast.FunctionDef | ast.ClassDef):
            n.returns = None
            n.body = n.body[ast.get_docstring(n) is not None and len(n.body) > 1 :]
        if isinstance(getattr(n, "body", None), list):
            n.body = [_assigned(s) if isinstance(s, ast.AnnAssign) else s for s in n.body]
    return tree


def _assigned(s: ast.AnnAssign) -> ast.stmt:
    return ast.copy_location(ast.Assign([s.target], s.value) if s.value else ast.Pass(), s)


# ---------------------------------------------------------------- words


def locals_of(tree: Definition) -> frozenset[str]:
    return frozenset(assigned(tree)) - set(arguments(tree))


def tokens(text: str, own: frozenset[str]) -> list[str]:
    """The words and signs below the first line of a definition; local names are one word,
    np.f(x) and x.f() the same."""
    below = text.partition("\n")[2]
    found = WORD.findall(HOMES.sub(lambda m: "None" if "newaxis" in m[0] else "", below))
    return ["v" if w in own else f"{float(w):g}" if w[0].isdigit() else w for w in found]


def words(text: str, own: frozenset[str]) -> Counter:
    """The words of a definition as a bag, without brackets."""
    return Counter(w for w in tokens(text, own) if w not in BRACKETS)


def pairs(tree: Definition) -> Counter:
    """The words with brackets, and neighbours: what tells an exchange from nothing."""
    found = tokens(ast.unparse(tree), locals_of(tree))
    return Counter(found) + Counter(itertools.pairwise(found))


def distance(a: Counter, b: Counter) -> int:
    return ((a - b) + (b - a)).total()
