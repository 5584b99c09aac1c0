"""A function as a syntax tree: the places in it, what stands there, and other names for them."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

MODULES = {"np", "torch", "math", "F", "nn", "np.linalg", "torch.nn", "torch.nn.functional"}


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


def text(node: ast.AST) -> str:
    """The code of a node; of equal nodes the same."""
    return ast.unparse(node)


def expression(code: str) -> ast.expr:
    """The node of a piece of code."""
    return ast.parse(code, mode="eval").body


def is_value(place: Place) -> bool:
    """Whether a place holds an expression that is read, and may be any other."""
    node, parent = place.node, place.parent
    if not isinstance(node, ast.expr) or isinstance(node, ast.Slice | ast.Starred):
        return False
    stored = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    return not stored and not isinstance(parent, ast.JoinedStr | ast.FormattedValue)


def arguments(function: ast.FunctionDef) -> list[str]:
    """The names of its parameters."""
    given = function.args
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def assigned(tree: ast.AST) -> list[str]:
    """The local names in the order of their assignments."""
    stored = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return list(dict.fromkeys(n.id for n in stored if isinstance(n.ctx, ast.Store)))


def blocks(tree: ast.AST) -> Iterator[Place]:
    """The lists of statements in a function, as places."""
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            if isinstance(getattr(node, name, None), list):
                yield Place(node, name)


def called(node: ast.AST) -> str:
    func = getattr(node, "func", None)
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def is_computed(node: ast.expr) -> bool:
    """Whether a method belongs to a value, not to a module such as np."""
    return not (isinstance(node, ast.Name) and node.id in MODULES) and text(node) not in MODULES


class Renamed(ast.NodeTransformer):
    """The same tree with other nodes for some names."""

    def __init__(self, names: dict[str, ast.expr]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        new = self.names.get(node.id)
        if new is None:
            return node
        return copy.deepcopy(new) if isinstance(node.ctx, ast.Load) or is_name(new) else node


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)
