"""The changes of a picture, made in the PyTorch model itself: both can then be held equal.

    with intervened(model, [{"at": "layer 1/attention/head 2/context", "off": True}]):
        logits = model(ids)

Names are those of `helpers.anatomy.describe(model)`, changes those of `helpers.operations.run`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers import layers, masks
from helpers.anatomy import describe, is_part, width
from helpers.cache import KeyValueCache
from helpers.operations import OFF, Operation, by_name, has_place, is_off
from helpers.rotary import rotate

Edit = Callable[..., Tensor]  # a step's name, its value and its inputs → its value as changed
TABLES = ("x", "segment", "positions")  # whose rows are looked up
SUMS = ("x + segment", "x + positions")


@contextmanager
def intervened(model: nn.Module, changes: Sequence[Mapping]) -> Iterator[None]:
    """Within this, a model that `describe` knows computes with the changes; then as it did before.

    They are made in every sequence of a batch, and an inner `with` acts on what an outer one left.
    Raises ValueError, naming the change, for one that no module of the model could make; in the
    forward, for a key–value cache with changes of rows, masks and turns: it reads but a few rows.
    """
    with ExitStack() as undo:
        _Interventions(model, changes, undo).make()
        yield


class _Interventions:
    """Changes on their way into a model, and how each of them is undone."""

    def __init__(self, model: nn.Module, changes: Sequence[Mapping], undo: ExitStack) -> None:
        vectors = np.zeros((1, width(model))) if is_part(model) else None
        placed = getattr(model, "rope", None) or getattr(model, "window", None)
        self.program = describe(model, vectors, None if placed else vectors, causal=True)
        self.model, self.undo = model, undo
        positions = getattr(model, "positions", None)  # else words alone are what a model reads
        self.alone = getattr(model, "tokens", None) if positions is None else None
        self.changed = by_name(self.program, changes)
        if outside := [at for at in self.changed if self._is_outside(at)]:
            i = [change["at"] for change in changes].index(outside[0])
            raise ValueError(f"changes[{i}] is at {outside[0]!r}, which no module computes")

    def make(self) -> None:
        """Change the modules that the program names."""
        for at, name in self.program.origins.items():
            module = self.model.get_submodule(name)
            op = self.program.operations.get(at)
            if op is None:
                self._change_group(at, module)
            elif op.kind == "add":
                self._change_input(at, module)
            elif at.rpartition("/")[2] not in TABLES or module is self.alone:
                self._change_step(op, module)
        for name in self.changed.keys() & {"x", "memory"} if is_part(self.model) else ():
            hook = partial(_edit_given, self.edit, name)
            self._hook(self.model.register_forward_pre_hook, hook, with_kwargs=True)
        if any(self._needs_all_rows(change) for own in self.changed.values() for change in own):
            for module in self.model.modules():
                if isinstance(module, layers.MultiHeadAttention):
                    self._hook(module.register_forward_pre_hook, _refuse_cache, with_kwargs=True)

    def edit(self, name: str, value: Tensor, *inputs: Tensor) -> Tensor:
        """An operation's or a weight's matrix, (…, rows, columns), with what was changed in it."""
        own = self.changed.get(name, ())
        if is_off(own):
            value = torch.zeros_like(value) + OFF[self.program.operations[name].kind](*inputs)
        for change in own:
            if has_place(change, *value.shape[-2:]):
                columns = slice(None) if "values" in change else int(change["column"])
                numbers = np.array(change.get("values", change.get("value")), dtype=float)
                value = value.clone()
                value[..., int(change["row"]), columns] = torch.from_numpy(numbers).to(value)
        return value

    def _is_outside(self, at: str) -> bool:
        op = self.program.operations.get(at)
        if op is None:  # the vectors themselves are no weights of the model
            return self.program.operations[at.rpartition("/")[0]].kind == "given"
        return op.kind in ("one-hot", "ids") or not op.rows or at.endswith("next")

    def _needs_all_rows(self, change: Mapping) -> bool:
        op = self.program.operations.get(change["at"])
        return op is not None and ("row" in change or op.kind in ("mask", "rotate"))

    def _hook(self, register: Callable, hook: Callable, **how: bool) -> None:
        self.undo.callback(register(hook, **how).remove)

    def _change_step(self, op: Operation, module: nn.Module) -> None:
        """A module whose output is the operation's matrix, and whose parameters its weights."""
        if op.name in self.changed:
            edit = _side_by_side if "width" in op.options else lambda edit, *values: edit(*values)
            self._hook(module.register_forward_hook, lambda _, args, output: edit(
                partial(self.edit, op.name), output, *args))  # fmt: skip
        for name in self.changed.keys() & {*op.weights}:
            key = "bias" if name.endswith(("/b", "/shift")) else "weight"
            before = getattr(module, key)  # (d_out, d_in), a row, or a table
            turned = before.ndim == 2 and isinstance(module, nn.Linear)
            W = before.detach().T if turned else torch.atleast_2d(before.detach())
            W = self.edit(name, W)
            W = W.T if turned else W.reshape(before.shape)
            setattr(module, key, nn.Parameter(W, before.requires_grad))
            self.undo.callback(setattr, module, key, before)

    def _change_group(self, at: str, module: nn.Module) -> None:
        """What happens between modules: inside an attention, and around a layer's sub-layers."""
        if isinstance(module, layers.MultiHeadAttention):
            if any(name.startswith((f"{at}/head", f"{at}/joined")) for name in self.changed):
                self._replace(module, "forward", _attend, f"{at}/")
        elif isinstance(module, layers.MixtureOfExperts):
            if any(name.startswith(f"{at}/") for name in self.changed):
                self._replace(module, "forward", _mix, f"{at}/")
        elif isinstance(module, layers.FeedForward):
            if f"{at}/gated" in self.changed:
                self._replace(module, "forward", _gate, f"{at}/")
        elif any(name.startswith(f"{at}/add ") for name in self.changed):
            self._replace(module, "add_and_norm", _add_and_norm, f"{at}/")

    def _change_input(self, at: str, module: nn.Module) -> None:
        """What a model begins with, tokens and positions; `module` is given their sum."""
        before = at.removesuffix("x + positions")
        names = (name[len(before) :] for name in self.changed if name.startswith(before))
        if {*TABLES, *SUMS} & {name.split("/")[0] for name in names}:
            homes = {step: self.program.origins.get(before + step) for step in TABLES}
            tables = {step: self.model.get_submodule(name) for step, name in homes.items() if name}
            factor = self.program.operations[f"{before}x"].options.get("factor", 1.0)
            seen: dict[str, Tensor] = {}
            for step in ("x", "positions"):
                self._hook(tables[step].register_forward_pre_hook, partial(_note, seen, step))
            outer = [hook for hook in module._forward_pre_hooks.values()
                     if getattr(hook, "func", None) is _look_up]  # fmt: skip
            edit = self._edit_after(outer[-1] if outer else None, before)
            hook = partial(_look_up, tables, factor, seen, edit=edit)
            self._hook(module.register_forward_pre_hook, hook)

    def _replace(self, module: nn.Module, method: str, formula: Callable, at: str) -> None:
        """A method becomes a formula with an edit at each of its steps."""
        outer = vars(module).get(method)
        setattr(module, method, partial(formula, module, edit=self._edit_after(outer, at)))
        back = (setattr, module, method, outer) if outer else (delattr, module, method)
        self.undo.callback(*back)

    def _edit_after(self, outer: Any, at: str) -> Edit:
        """The edit of the steps below a path, after that of an outer `with`."""
        before: Edit = getattr(outer, "keywords", {}).get("edit", lambda step, value, *_: value)

        def edit(step: str, value: Tensor, *inputs: Tensor) -> Tensor:
            return self.edit(at + step, before(step, value, *inputs), *inputs)

        return edit


# ---------------------------------------------------------------- formulas with edits


def _attend(module: layers.MultiHeadAttention, x: Tensor, mask: masks.Mask = None,
            memory: Tensor | None = None, cache: KeyValueCache | None = None, *,
            causal: bool = False, edit: Edit) -> Tensor:  # fmt: skip
    """MultiHeadAttention.forward, step by step."""
    module._check(x, x if memory is None else memory)
    heads = partial(_each_head, edit, module.num_heads)
    Q, K, V = (_heads(module, heads, x, x if memory is None else memory) if cache is None
               else module.queries_keys_values(x, memory, cache))  # fmt: skip
    K, V = (masks.for_each_head(shared, module.num_heads) for shared in (K, V))
    T, Tk = Q.shape[2], K.shape[2]
    if cache is not None and mask is not None and mask.shape[-1] == cache.length(module):
        mask = mask[..., -Tk:]  # what a window has left
    real, _ = masks.fit(mask, False, Q, K)
    scores = heads("scores", Q @ K.transpose(-2, -1))  # (B, H, T, Tk)
    ready = heads("scaled", scores * module.scale, scores)
    if causal:
        hidden = ~masks.causal_mask(T, ready.device, Tk - T, module.window)
        ready = heads("masked", ready.masked_fill(hidden, -torch.inf), ready)
    allowed = ready != -torch.inf
    allowed = allowed if real is None else allowed & real
    weights = heads("weights", masks.masked_softmax(ready, allowed))
    module.weights = weights.detach() if module.watched else None
    context = heads("context", module.dropout(weights) @ V)  # (B, H, T, d_head)
    return module.W_o(edit("joined", context.transpose(1, 2).flatten(2)))


def _heads(module: layers.MultiHeadAttention, heads: Callable[..., Tensor], x: Tensor,
           source: Tensor) -> list[Tensor]:  # fmt: skip
    """MultiHeadAttention.queries_keys_values, step by step, keys and values once for each head.

    Not with a cache, which keeps what heads share: no change of these steps is made then.
    """
    found = []
    for letter, of in zip("qkv", (x, source, source), strict=True):
        parts = module._split_heads(getattr(module, f"W_{letter}")(of))
        if module.qk_norm and letter != "v":
            parts = getattr(module, f"norm_{letter}")(parts)
        if module.num_heads > 1:  # of one head it is what W_q, W_k or W_v gave
            parts = heads(letter, masks.for_each_head(parts, module.num_heads))
        if module.rope is not None and letter != "v":
            parts = heads(f"{letter} turned", rotate(parts, module.rope), parts)
        found.append(parts)
    return found


def _each_head(edit: Edit, num_heads: int, step: str, *values: Tensor) -> Tensor:
    """A step of all heads, (B, H, rows, columns), each of them edited by its name."""
    names = ["head"] if num_heads == 1 else [f"head {h + 1}" for h in range(num_heads)]
    edited = [edit(f"{name}/{step}", *(value[:, h] for value in values))
              for h, name in enumerate(names)]  # fmt: skip
    return torch.stack(edited, dim=1)


def _side_by_side(edit: Callable[..., Tensor], *values: Tensor) -> Tensor:
    """A step of all heads, (B, H, T, d_head), edited as one matrix, (B, T, H·d_head)."""
    whole = edit(*(value.transpose(1, 2).flatten(2) for value in values))
    return whole.unflatten(-1, (-1, values[0].shape[-1])).transpose(1, 2)


def _gate(module: layers.FeedForward, x: Tensor, *, edit: Edit) -> Tensor:
    """FeedForward.forward with a gate: the product is edited."""
    gate, hidden = module.activation(module.W_gate(x)), module.W1(x)
    return module.W2(module.dropout(edit("gated", gate * hidden, gate, hidden)))


def _mix(module: layers.MixtureOfExperts, x: Tensor, *, edit: Edit) -> Tensor:
    """MixtureOfExperts.forward, of which here every expert reads every token."""
    shares, module.chosen = module.router(x).softmax(dim=-1).topk(module.top_k)
    shares = shares / shares.sum(dim=-1, keepdim=True)
    asked = x.new_zeros(*x.shape[:2], len(module.experts)).scatter(-1, module.chosen, shares)
    asked = edit("chosen", asked)  # (B, T, experts)
    found = [share[..., None] * expert(x)
             for share, expert in zip(asked.unbind(-1), module.experts, strict=True)]  # fmt: skip
    return edit("out", sum(found))


def _add_and_norm(layer: layers.ResidualLayer, x: Tensor, sublayer: Callable, norm: nn.Module, *,
                  edit: Edit) -> Tensor:  # fmt: skip
    """ResidualLayer.add_and_norm: the sum is edited."""
    number = next(i for i in (1, 2, 3) if getattr(layer, f"norm{i}") is norm)
    found = layer.dropout(sublayer(norm(x) if layer.pre_norm else x))
    total = edit(f"add {number}", x + found, x, found)
    return total if layer.pre_norm else norm(total)


# ---------------------------------------------------------------- hooks


def _note(seen: dict[str, Any], name: str, module: nn.Module, args: tuple) -> None:
    """The ids or places that a table was asked for last; waves are given x, and maybe places."""
    seen.pop(name, None)
    if not args[-1].is_floating_point():
        seen[name] = args[-1]


def _look_up(tables: dict[str, nn.Module], factor: float, seen: dict[str, Any], module: nn.Module,
             args: tuple, *, edit: Edit) -> tuple | None:  # fmt: skip
    """Tokens and positions once more, with edits, if what the module is given came of them."""
    if "x" not in seen:
        return None
    ids, positions = seen.pop("x"), tables["positions"]
    x = edit("x", factor * F.embedding(ids, edit("x/table", tables["x"].weight)))  # (B, T, D)
    if "segment" in tables:
        row = edit("segment/row", tables["segment"].weight[:1])
        segment = edit("segment", row.expand(ids.shape[1], -1))
        x = edit("x + segment", x + segment, x, segment)
    waves = isinstance(positions, layers.PositionalEncoding)
    table = positions.table if waves else edit("positions/table", positions.weight)
    rows = edit("positions", table[seen.pop("positions", slice(ids.shape[1]))])
    x = edit("x + positions", x + rows, x, rows)
    return positions.dropout(x) if waves else x, *args[1:]


def _edit_given(edit: Edit, name: str, module: nn.Module, args: tuple, kwargs: dict) -> tuple:
    bound = inspect.signature(type(module).forward).bind(module, *args, **kwargs)
    key = name if name == "memory" else [*bound.arguments][1]
    if bound.arguments.get(key) is not None:
        bound.arguments[key] = edit(name, bound.arguments[key])
    return bound.args[1:], bound.kwargs


def _refuse_cache(module: nn.Module, args: tuple, kwargs: dict) -> None:
    if any(isinstance(given, KeyValueCache) for given in (*args, *kwargs.values())):
        raise ValueError("cache holds rows of before: change rows, masks, turns without a cache")
