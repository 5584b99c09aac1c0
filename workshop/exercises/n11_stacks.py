"""Notebook 11: a stack of layers, in PyTorch, which is loaded when a probe runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from workshop.exercises.exercise import Exercise

if TYPE_CHECKING:
    from torch import Tensor, nn


def make_stack(layer: nn.Module, n: int) -> nn.Module:
    """Stack n copies of a layer: each starts from its values, and each has its own parameters."""
    from copy import deepcopy

    from torch import nn

    return nn.Sequential(*[deepcopy(layer) for _ in range(n)])


stack = Exercise(
    make_stack,
    notebook="11",
    level=2,
    minutes=6,
    task="Stack n layers: a module that hands what comes out of one layer to the next. Each starts "
    "from the values of `layer` and has parameters of its own, so that training can change one and "
    "not the others.",
    hints=(
        "If you change a weight of the first layer, must the second change as well?",
        "copy.deepcopy(layer) makes a layer with parameters of its own. Make n of them in a list, "
        "and hand them to nn.Sequential, with a star.",
        "`return nn.Sequential(*[deepcopy(layer) for _ in range(n)])`",
    ),
    backends=("torch",),
)
stack.answer("""
    from copy import deepcopy

    def make_stack(layer, n):
        layers = [deepcopy(layer) for _ in range(n)]
        return nn.Sequential(*layers)
""")
stack.answer("""
    import copy

    def make_stack(layer, n):
        stack = nn.Sequential()
        for i in range(n):
            stack.append(copy.deepcopy(layer))
        return stack
""")
stack.answer("""
    import copy

    def make_stack(layer, n):
        class Stack(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])

            def forward(self, x):
                for block in self.layers:
                    x = block(x)
                return x

        return Stack()
""")

stack.why(
    "copy.deepcopy(layer) | deepcopy(layer) | deepcopy",
    "deepcopy gives each layer parameters of its own; the same layer again, or a shallow copy, "
    "would share them.",
)
stack.why(
    "range(n)",
    "A stack of n has n layers in all, neither one more nor one fewer.",
)
stack.why(
    "nn.ModuleList | nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])",
    "PyTorch finds the parameters of layers only in an nn.ModuleList or nn.Sequential; in a "
    "plain list they are not registered.",
)
stack.why(
    "nn.Sequential(*layers) | nn.Sequential",
    "nn.Sequential is a module with a forward of its own: each layer gets the output of the one "
    "before.",
)
stack.why(
    "x = block(x) | block(x)",
    "Layers follow in turn, chained: each reads the output of the previous one, and nothing is "
    "done between them.",
)


@cache
def line_class() -> type[nn.Module]:
    """The class of `line`, which also pickle finds: whoever copies by it is right."""
    import torch
    from torch import nn

    class Line(nn.Module):
        def __init__(self, factor: float, shift: float) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.tensor(factor))
            self.shift = nn.Parameter(torch.tensor(shift))

        def forward(self, x: Tensor) -> Tensor:
            return self.factor * x + self.shift

    Line.__qualname__ = Line.__name__
    globals()[Line.__name__] = Line
    return Line


def line(factor: float = 2.0, shift: float = 1.0) -> nn.Module:
    """A layer for the pencil: factor · x + shift, two parameters."""
    return line_class()(factor, shift)


def small_network() -> nn.Module:
    """A network of five features with 66 parameters in 4 tensors."""
    import torch
    from torch import nn

    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 5))


def stacked(fn: Callable, layer: nn.Module, n: int) -> Any:
    """What the answer itself returns, a module."""
    return getattr(fn, "function", fn)(layer, n)


def chain(layers: Any, x: Tensor) -> Tensor:
    for layer in layers:
        x = layer(x)
    return x


def own_parameters(module: nn.Module) -> list[Tensor]:
    """Its parameters; of those that share their memory, one."""
    return list({p.data_ptr(): p for p in module.parameters()}.values())


def same_start(module: nn.Module, layer: nn.Module) -> bool:
    """Whether each of its parameters has the values of one of the layer's."""
    import torch

    return all(any(torch.equal(p, q) for q in layer.parameters()) for p in module.parameters())


def reached(module: nn.Module, y: Tensor) -> list[bool]:
    """Which parameters the gradient of y would reach. It is not computed: that may fail in a fork
    where there is a GPU."""
    nodes, seen = [y.grad_fn], {None}
    while nodes:
        node = nodes.pop()
        if node not in seen:
            seen.add(node)
            nodes += [following for following, _ in node.next_functions]
    leaves = {id(getattr(node, "variable", None)) for node in seen}
    return [id(p) in leaves for p in module.parameters()]


@stack.experiment("what it returns")
def what_it_returns(fn: Callable) -> dict:
    from torch import nn

    return {"the result is an nn.Module": isinstance(stacked(fn, line(), 3), nn.Module)}


@stack.experiment("three layers that double, add 1")
def three_lines(fn: Callable) -> dict:
    import torch

    layer = line()
    made = stacked(fn, layer, 3)
    if not same_start(made, layer):
        return {"every layer starts from the values of `layer`": False}
    results = {f"from {x:g} it makes": made(torch.tensor(x)).item() for x in (1.0, -2.0)}
    return {"every layer starts from the values of `layer`": True} | results


@stack.experiment("one layer, and five of them")
def other_numbers(fn: Callable) -> dict:
    import torch

    layer, x = line(-1.5, 0.25), torch.tensor(1.0)
    found = {}
    for n in (1, 5):
        y = stacked(fn, layer, n)(x)
        found[f"n={n} applies the layer {n} times"] = bool(torch.isclose(y, chain([layer] * n, x)))
    return found


@stack.experiment("the parameters of four networks")
def four_networks(fn: Callable) -> dict:
    import torch

    layer = small_network()
    before = [p.clone() for p in layer.parameters()]
    made = stacked(fn, layer, 4)
    kept = all(torch.equal(p, q) for p, q in zip(before, layer.parameters(), strict=True))
    return {
        "parameters of its own": sum(p.numel() for p in own_parameters(made)),
        "every one may learn (requires_grad)": all(p.requires_grad for p in made.parameters()),
        "`layer` keeps its values": kept,
        "the stack is in train mode, as `layer` is": made.training,
    }


@stack.experiment("the gradient through four networks")
def gradient(fn: Callable) -> dict:
    import torch

    made = stacked(fn, small_network(), 4)
    found = reached(made, made(torch.linspace(-2, 2, 10).reshape(2, 5)))
    return {
        "parameters that the gradient reaches": sum(found),
        "it reaches the first of them": found[:1] == [True],
        "it reaches the last of them": found[-1:] == [True],
    }


@stack.experiment("three networks for a batch")
def a_batch(fn: Callable) -> dict:
    import torch

    layer, x = small_network(), torch.linspace(-3, 3, 40).reshape(2, 4, 5)
    y = stacked(fn, layer, 3)(x)
    return {
        "the shape stays": y.shape == x.shape,
        "it equals layer(layer(layer(x)))": bool(torch.allclose(y, chain([layer] * 3, x))),
    }


# Most mistakes are a module with another list of layers, or another way through them.


def module_of(layers: list, forward: Callable = chain, registered: bool = True) -> nn.Module:
    """A module that holds layers and takes its own way through them, forward(layers, x)."""
    from torch import nn

    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(layers) if registered else layers

        def forward(self, x: Tensor) -> Tensor:
            return forward(self.layers, x)

    return Other()


def copies(layer: nn.Module, n: int) -> list:
    from copy import deepcopy

    return [deepcopy(layer) for _ in range(n)]


@stack.mistake
def one_layer_shared(layer, n):
    """All n places hold one and the same parameters, shared: one layer (or one copy of it)
    repeated, or shallow copies. What one place learns changes all. Each needs a deep copy of its
    own."""
    return module_of([layer] * n)


@stack.mistake
def not_chained(layer, n):
    """Each layer gets the original x, and only the result of the last one counts: they are not
    chained. Feed every layer the output of the previous one."""
    return module_of(copies(layer, n), lambda layers, x: [each(x) for each in layers][-1])


@stack.mistake
def not_registered(layer, n):
    """The layers are kept in a plain Python list, so PyTorch does not see their parameters: they
    are not registered, and no optimiser would train them. Use nn.ModuleList or nn.Sequential."""
    return module_of(copies(layer, n), registered=False)


@stack.mistake
def residual_around_each(layer, n):
    """x is added to the output of each layer. The residual connections are inside the layers
    already: a stack hands on what a layer gives, and adds nothing."""

    def forward(layers: list, x: Tensor) -> Tensor:
        for each in layers:
            x = x + each(x)
        return x

    return module_of(copies(layer, n), forward)


@stack.mistake
def module_list(layer, n):
    """An nn.ModuleList only holds its layers: it has no forward, so it cannot be called. Use
    nn.Sequential, or a module whose forward goes through the layers in turn."""
    from torch import nn

    return nn.ModuleList(copies(layer, n))


@stack.mistake
def fresh_values(layer, n):
    """The layers start from fresh random values. They must all start from the values of `layer`: a
    deep copy has them, and needs no initialisation."""
    import torch

    layers = copies(layer, n)
    with torch.no_grad():
        for p in module_of(layers).parameters():
            p.uniform_(-1, 1)
    return module_of(layers)


@stack.mistake
def reset(layer, n):
    """The copies are reset: reset_parameters draws fresh random values for each. They must all
    start from the values of `layer`, which a deep copy has already."""
    made = module_of(copies(layer, n))
    for part in made.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    return made


@stack.mistake
def one_too_many(layer, n):
    """There is one layer too many, n + 1 of them: one comes before the n copies. A stack of n has n
    layers in all."""
    return module_of(copies(layer, n + 1))


@stack.mistake
def shared_memory(layer, n):
    """Each layer has parameter objects of its own, but all lie in the same memory, so they share
    their values. A deep copy has the values already: nothing needs to be assigned."""
    layers = copies(layer, n)
    for each in layers:
        for own, first in zip(each.parameters(), layer.parameters(), strict=True):
            own.data = first.data
    return module_of(layers)


@stack.mistake
def frozen(layer, n):
    """The copies are frozen: their parameters do not require a gradient (requires_grad), so they
    cannot learn. A deep copy keeps what `layer` has; leave it so."""
    return module_of(copies(layer, n)).requires_grad_(False)


@stack.mistake
def detached_between(layer, n):
    """The gradient is cut between the layers, as detach does: only the last one learns. Hand each
    output on as it is, so that backpropagation reaches all layers."""

    def forward(layers: list, x: Tensor) -> Tensor:
        for each in layers:
            x = each(x.detach())
        return x

    return module_of(copies(layer, n), forward)
