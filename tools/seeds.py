"""Train the model of notebook 16 with ten seeds, and in three other ways: `make seeds`.

A process for each core; on two it takes a quarter of an hour. `first` is the head of layer 1 that
looks one back most, `second` layer 2's only one. Columns of the table:

head                            the number of the first
looks_back, looks_after         their attention to the token one back, and after the same token
right, without_…, two_alone     of all known animals, those that are said: by the whole model,
                                without one of the two, and with both others switched off
cost_…                          what switching off adds to the loss: zeros; `cost_others` is the
                                larger of the two others
mean_…, other_…                 the same with the mean over all rows, or with another row's numbers
copies_…                        of 32 animals, those that the head raises most when it reads them
asks_before, finds_note         of 23 places, those that ask most for the place before; of 32
                                animals, those that ask most for their own note
notes                           of all places, those where the lens reads the animal one back
put_back, taken_out             the answer's probability: the least of three patches of the right
                                text into a wrong one, the largest of the three the other way
"""

import csv
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from helpers.animals import TABLE, learn, loss_of, texts, two_layers
from helpers.inside import logit_lens, mechanism_scores

PATH = Path(__file__).resolve().parents[1] / "helpers" / TABLE
COMMENT = "# made by `make seeds`: the models of notebook 16, their two heads and the others\n"
WAYS = {  # how a model differs from that of the story
    "as in the story": {},
    "rows begin small": {"spread": 0.02},
    "d_ff 96": {"d_ff": 96, "steps": 800},
    "d_ff 192": {"d_ff": 192, "steps": 800},
}


def trained(way: str, seed: int):
    """The model of one line of the table."""
    options = dict(WAYS[way])
    steps = options.pop("steps", 400)
    model = two_layers(seed, **options)
    learn(model, seed, steps)
    return model


def own(head) -> slice:
    """A head's 24 numbers among those of its layer."""
    return slice(24 * (head[1] - 1), 24 * head[1])


@contextmanager
def replaced(model, *heads, by=torch.zeros_like):
    """Within this, heads hand on what `by` makes of their context (B, T, 24)."""
    hooks = []
    for head in heads:
        part = own(head)

        def change(_, given, part=part):
            joined = given[0].clone()
            joined[..., part] = by(joined[..., part])
            return (joined,)

        W_o = model.layers[head[0] - 1].attention.W_o
        hooks.append(W_o.register_forward_pre_hook(change))
    yield
    for hook in hooks:
        hook.remove()


@torch.no_grad()
def measured(model) -> dict[str, float]:
    """A line of the table."""
    ids, known = texts(np.random.default_rng(99), 64)
    found = mechanism_scores(model, ids[:, :24])
    h = int(found.shares[:3, 0].argmax())
    first, second = found.heads[h], (2, 1)
    others = [head for head in found.heads if head not in (first, second)]

    def said(*heads, by=torch.zeros_like):
        with replaced(model, *heads, by=by):
            right = (model(ids)[:, :-1].argmax(dim=-1) == ids[:, 1:])[known]
            return right.double().mean().item(), loss_of(model, ids, known).item()

    right, loss = said()
    line = {"head": h + 1, "looks_back": found.shares[h, 0], "looks_after": found.shares[-1, 3]}
    line |= {"right": right, "without_first": said(first)[0], "without_second": said(second)[0]}
    line |= {"two_alone": said(*others)[0]}
    kinds = {
        "cost": torch.zeros_like,
        "mean": lambda x: x.mean(dim=0),
        "other": lambda x: x.roll(1, 0),
    }
    for kind, by in kinds.items():
        line |= {f"{kind}_first": said(first, by=by)[1] - loss}
        line |= {f"{kind}_second": said(second, by=by)[1] - loss}
        line |= {f"{kind}_others": max(said(head, by=by)[1] for head in others) - loss}
    read = logit_lens(model, ids[:, :24])[1].argmax(dim=-1)  # (64, 24)
    line["notes"] = (read[:, 1:] == ids[:, :23]).double().mean().item()
    return line | circuits(model, first) | patches(model)


def circuits(model, first) -> dict[str, float]:
    """What the two heads would look at and write, from their matrices alone."""
    layer_1, layer_2 = model.layers
    each, line = torch.arange(32), {}
    animals = layer_1.norm1(model.tokens.weight)  # (32, 48)
    notes = written(layer_1, first, animals)
    line["copies_first"] = share(model.output(model.norm(notes)).argmax(dim=-1) == each)
    raised = model.output(model.norm(written(layer_2, (2, 1), layer_2.norm1(model.tokens.weight))))
    line["copies_second"] = share(raised.argmax(dim=-1) == each)
    places = layer_1.norm1(model.positions.weight[:24])
    scores = asked(layer_1, first, places, places)
    before = scores.masked_fill(~torch.ones(24, 24).tril().bool(), -torch.inf).argmax(dim=-1)[1:]
    line["asks_before"] = share(before == torch.arange(23))
    wanted = asked(layer_2, (2, 1), layer_2.norm1(model.tokens.weight), layer_2.norm1(notes))
    return line | {"finds_note": share(wanted.argmax(dim=-1) == each)}


def asked(layer, head, queries, keys):
    """The scores of rows for rows in a head, without its biases."""
    part = layer.attention
    return queries @ part.W_q.weight[own(head)].T @ (keys @ part.W_k.weight[own(head)].T).T


def written(layer, head, rows):
    """What a head adds that reads one row alone, without its biases."""
    part = layer.attention
    return rows @ part.W_v.weight[own(head)].T @ part.W_o.weight[:, own(head)].T


def share(right) -> float:
    return right.double().mean().item()


def patches(model) -> dict[str, float]:
    """One vector of the right text in a wrong one, and the other way, on the way of the answer."""
    rows = np.random.default_rng(98).permuted(np.tile(np.arange(32), (64, 1)), axis=1)
    good = torch.from_numpy(rows[:, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2]])  # … the third is asked
    bad = good.clone()
    bad[:, 2] = torch.from_numpy(rows[:, 8])
    found = {"put_back": [], "taken_out": []}
    for name, (ids, source) in {"put_back": (bad, good), "taken_out": (good, bad)}.items():
        for depth, place in ((0, 2), (1, 3), (2, 10)):
            x, other = (model.tokens(t) + model.positions.weight[:11] for t in (ids, source))
            for layer in model.layers[:depth]:
                x, other = layer(x, causal=True), layer(other, causal=True)
            x[:, place] = other[:, place]
            for layer in model.layers[depth:]:
                x = layer(x, causal=True)
            likely = model.output(model.norm(x))[:, -1].softmax(dim=-1)
            found[name].append(likely[torch.arange(64), good[:, 3]].mean().item())
    return {"put_back": min(found["put_back"]), "taken_out": max(found["taken_out"])}


def line_of(way: str, seed: int) -> dict:
    """A line of the table: trained and measured."""
    return {"way": way, "seed": seed} | measured(trained(way, seed))


def main() -> None:
    """Print each line as soon as it is measured, then write the table."""
    lines = product(WAYS, range(10))
    with ProcessPoolExecutor(None, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        rows = []
        for line in pool.map(line_of, *zip(*lines, strict=True)):
            rows.append([f"{x:.3f}" if isinstance(x, float) else x for x in line.values()])
            print(*rows[-1], flush=True)
    with open(PATH, "w", encoding="utf-8", newline="") as file:
        file.write(COMMENT)
        csv.writer(file, lineterminator="\n").writerows([line, *rows])


if __name__ == "__main__":
    main()
