"""Notebook 11: a stack of layers, in PyTorch, which is loaded when a probe runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from helpers.exercises.exercise import Exercise

if TYPE_CHECKING:
    from torch import Tensor, nn

# ---------------------------------------------------------------- make_stack


def make_stack(layer: nn.Module, n: int) -> nn.Module:
    """Stack n copies of a layer: each starts from its values, and each has its own parameters."""
    import copy

    from torch import nn

    return nn.Sequential(*[copy.deepcopy(layer) for _ in range(n)])


exercise = Exercise(
    make_stack,
    notebook="11",
    level=2,
    minutes=6,
    task="Stack n layers again, this time without a class of your own: nn.Sequential applies what "
    "it is given in turn. Each layer starts from the values of `layer` and has its own parameters.",
    hints=(
        "If you change a weight of the first layer, must the second change as well?",
        "copy.deepcopy(layer) makes a layer with parameters of its own. Make n of them in a list, "
        "and hand them to nn.Sequential, with a star.",
        "`return nn.Sequential(*[deepcopy(layer) for _ in range(n)])`",
    ),
    backends=("torch",),
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


def network() -> nn.Module:
    """A small network of five features with 66 parameters in 4 tensors."""
    import torch
    from torch import nn

    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 5))


def stacked(fn: Callable, layer: nn.Module, n: int) -> Any:
    """What the answer itself returns, a module."""
    return getattr(fn, "function", fn)(layer, n)


def in_turn(layer: nn.Module, n: int, x: Tensor) -> Tensor:
    for _ in range(n):
        x = layer(x)
    return x


def own_parameters(stack: nn.Module) -> list[Tensor]:
    """Its parameters; of those that share their memory, one."""
    return list({p.data_ptr(): p for p in stack.parameters()}.values())


def same_start(stack: nn.Module, layer: nn.Module) -> bool:
    """Whether each of its parameters has the values of one of the layer's."""
    import torch

    return all(any(torch.equal(p, q) for q in layer.parameters()) for p in stack.parameters())


def reached(stack: nn.Module, y: Tensor) -> list[bool]:
    """Which parameters the gradient of y would reach. It is not computed: that may fail in a fork
    where there is a GPU."""
    nodes, seen = [y.grad_fn], {None}
    while nodes:
        node = nodes.pop()
        if node not in seen:
            seen.add(node)
            nodes += [following for following, _ in node.next_functions]
    leaves = {id(getattr(node, "variable", None)) for node in seen}
    return [id(p) in leaves for p in stack.parameters()]


@exercise.experiment("what it returns")
def what_it_returns(fn: Callable) -> dict:
    from torch import nn

    return {"the result is an nn.Module": isinstance(stacked(fn, line(), 3), nn.Module)}


@exercise.experiment("three layers that double and add 1")
def three_lines(fn: Callable) -> dict:
    import torch

    layer = line()
    stack = stacked(fn, layer, 3)
    if not same_start(stack, layer):
        return {"every layer starts from the values of `layer`": False}
    results = {f"from {x:g} it makes": stack(torch.tensor(x)).item() for x in (1.0, -2.0)}
    return {"every layer starts from the values of `layer`": True} | results


@exercise.experiment("one layer, and five of them")
def other_numbers(fn: Callable) -> dict:
    import torch

    layer, x = line(-1.5, 0.25), torch.tensor(1.0)
    found = {}
    for n in (1, 5):
        y = stacked(fn, layer, n)(x)
        found[f"n={n} applies the layer {n} times"] = bool(torch.isclose(y, in_turn(layer, n, x)))
    return found


@exercise.experiment("the parameters of four networks")
def four_networks(fn: Callable) -> dict:
    import torch

    layer = network()
    before = [p.clone() for p in layer.parameters()]
    stack = stacked(fn, layer, 4)
    kept = all(torch.equal(p, q) for p, q in zip(before, layer.parameters(), strict=True))
    return {
        "parameters of its own": sum(p.numel() for p in own_parameters(stack)),
        "every one may learn (requires_grad)": all(p.requires_grad for p in stack.parameters()),
        "`layer` keeps its values": kept,
        "the stack is in train mode, as `layer` is": stack.training,
    }


@exercise.experiment("the gradient through four networks")
def gradient(fn: Callable) -> dict:
    import torch

    layer, x = network(), torch.linspace(-2, 2, 10).reshape(2, 5)
    stack = stacked(fn, layer, 4)
    found = reached(stack, stack(x))
    return {
        "parameters that the gradient reaches": sum(found),
        "it reaches the first of them": found[:1] == [True],
        "it reaches the last of them": found[-1:] == [True],
    }


@exercise.experiment("three networks for a batch of two sentences")
def a_batch(fn: Callable) -> dict:
    import torch

    layer, x = network(), torch.linspace(-3, 3, 40).reshape(2, 4, 5)
    y = stacked(fn, layer, 3)(x)
    return {
        "the shape stays": y.shape == x.shape,
        "it equals layer(layer(layer(x)))": bool(torch.allclose(y, in_turn(layer, 3, x))),
    }


# Most mistakes are a module with another list of layers, or another way through them.


def module_of(layers: list, forward: Callable, registered: bool = True) -> nn.Module:
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


def chain(layers: list, x: Tensor) -> Tensor:
    for layer in layers:
        x = layer(x)
    return x


@exercise.mistake
def one_layer_shared(layer, n):
    """[layer] * n repeats one and the same layer (or one copy of it; copy.copy shares the
    parameters too), so all share their weights. Make n copies: copy.deepcopy(layer), each time."""
    return module_of([layer] * n, chain)


@exercise.mistake
def shared_memory(layer, n):
    """Each layer has parameters of its own, but all lie in the same memory (.data without a copy):
    they share their values. Leave out the assignment: copy.deepcopy(layer) copies the values."""
    layers = copies(layer, n)
    for each in layers:
        for own, first in zip(each.parameters(), layer.parameters(), strict=True):
            own.data = first.data
    return module_of(layers, chain)


@exercise.mistake
def not_registered(layer, n):
    """The layers are in a plain Python list, so PyTorch does not see their parameters: they are not
    registered. Use nn.ModuleList or nn.Sequential."""
    return module_of(copies(layer, n), chain, registered=False)


@exercise.mistake
def a_function(layer, n):
    """It returns a function, not an nn.Module: its parameters cannot be found. Put the copies into
    an nn.Sequential."""
    layers = copies(layer, n)
    return lambda x: chain(layers, x)


@exercise.mistake
def a_list(layer, n):
    """It returns a list of layers, not an nn.Module that applies them in turn. Hand them to
    nn.Sequential, with a star: nn.Sequential(*layers)."""
    return copies(layer, n)


@exercise.mistake
def module_list(layer, n):
    """An nn.ModuleList only holds its layers: it has no forward and cannot be called. Use
    nn.Sequential(*layers), or a module whose forward goes through them in turn."""
    from torch import nn

    return nn.ModuleList(copies(layer, n))


@exercise.mistake
def not_chained(layer, n):
    """Each layer gets the original x, and only the result of the last one counts: they are not
    chained. Feed every layer the output of the one before: x = layer(x)."""
    return module_of(copies(layer, n), lambda layers, x: [each(x) for each in layers][-1])


@exercise.mistake
def side_by_side(layer, n):
    """The layers run side by side: each gets the original x, and their outputs are summed. Feed
    every layer the output of the previous one: x = layer(x)."""
    return module_of(copies(layer, n), lambda layers, x: sum(each(x) for each in layers))


@exercise.mistake
def averaged(layer, n):
    """The layers run side by side: each gets the original x, and their outputs are averaged. Feed
    every layer the output of the previous one: x = layer(x)."""
    return module_of(
        copies(layer, n), lambda layers, x: sum(each(x) for each in layers) / len(layers)
    )


@exercise.mistake
def returns_in_the_loop(layer, n):
    """Only the first layer is applied: the return stands inside the loop of forward. Take it out
    (indentation), after the loop."""
    return module_of(copies(layer, n), lambda layers, x: layers[0](x))


@exercise.mistake
def always_the_first(layer, n):
    """The first layer is applied n times, the others never: the gradient does not reach them. Go
    through all the layers, for layer in self.layers."""
    return module_of(copies(layer, n), lambda layers, x: in_turn(layers[0], len(layers), x))


@exercise.mistake
def residual_around_each(layer, n):
    """x is added to each layer's output. The residuals are inside the layers: x = layer(x)."""

    def forward(layers: list, x: Tensor) -> Tensor:
        for each in layers:
            x = x + each(x)
        return x

    return module_of(copies(layer, n), forward)


@exercise.mistake
def residual_around_everything(layer, n):
    """x is added to the result of the stack. The residuals are inside the layers: return what the
    last layer gives."""
    return module_of(copies(layer, n), lambda layers, x: x + chain(layers, x))


@exercise.mistake
def relu_between(layer, n):
    """There is a ReLU after each layer. A stack applies the layers in turn and nothing between
    them."""

    def forward(layers: list, x: Tensor) -> Tensor:
        for each in layers:
            x = each(x).relu()
        return x

    return module_of(copies(layer, n), forward)


@exercise.mistake
def one_too_many(layer, n):
    """There is one layer too many: the original and n copies of it. n layers in all: n copies."""
    return module_of([layer, *copies(layer, n)], chain)


@exercise.mistake
def one_too_few(layer, n):
    """There is one layer too few, n - 1 of them. Make n copies: range(n)."""
    return module_of(copies(layer, n - 1), chain)


@exercise.mistake
def n_ignored(layer, n):
    """n is ignored: there is one layer. Make n copies and apply them in turn."""
    return module_of(copies(layer, 1), chain)


@exercise.mistake
def applied_too_often(layer, n):
    """The whole stack is applied n times, each layer n times. Each of the n layers comes once."""
    return module_of(
        copies(layer, n), lambda layers, x: [x := chain(layers, x) for _ in layers][-1]
    )


@exercise.mistake
def fresh_values(layer, n):
    """The layers start from fresh random values (a new layer of the same kind, reset_parameters):
    they must all start from the values of `layer`. Copy it: copy.deepcopy(layer)."""
    import torch

    layers = copies(layer, n)
    with torch.no_grad():
        for p in module_of(layers, chain).parameters():
            p.uniform_(-1, 1)
    return module_of(layers, chain)


@exercise.mistake
def reset(layer, n):
    """The copies are reset: reset_parameters gives them fresh random values. They must all start
    from the values of `layer`; copy.deepcopy(layer) is enough."""
    layers = module_of(copies(layer, n), chain)
    for part in layers.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    return layers


@exercise.mistake
def first_original_rest_fresh(layer, n):
    """The first layer keeps the values of `layer`, the others start from fresh random values. All
    start from the values of `layer`: copy it n times, copy.deepcopy(layer)."""
    return module_of([layer, *fresh_values(layer, n - 1).layers], chain)


@exercise.mistake
def copies_made_in_forward(layer, n):
    """The copies are made in forward, anew at each call, so that training is lost on them. Make
    them once, in __init__ or before, and keep them in an nn.ModuleList or nn.Sequential."""
    return module_of([layer], lambda layers, x: chain(copies(layers[0], n), x))


@exercise.mistake
def no_gradient(layer, n):
    """The gradient is cut off in forward (torch.no_grad or detach): the layers cannot learn. Apply
    them without it."""
    import torch

    return module_of(copies(layer, n), torch.no_grad()(chain))


@exercise.mistake
def detached_between(layer, n):
    """detach between the layers cuts the gradient off: only the last layer learns. Hand each
    output on as it is."""

    def forward(layers: list, x: Tensor) -> Tensor:
        for each in layers:
            x = each(x.detach())
        return x

    return module_of(copies(layer, n), forward)


@exercise.mistake
def frozen(layer, n):
    """The copies are frozen: requires_grad is False (detached, or .data), so they cannot learn.
    copy.deepcopy(layer) keeps it as it is."""
    return module_of(copies(layer, n), chain).requires_grad_(False)


@exercise.mistake
def in_eval_mode(layer, n):
    """The stack is in eval mode. Leave out .eval(): the copies keep the mode of `layer`."""
    return module_of(copies(layer, n), chain).eval()
