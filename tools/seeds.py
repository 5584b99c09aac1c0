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
from contextlib import ExitStack
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from helpers.animals import TABLE, learn, loss_of, texts, two_layers
from helpers.inside import _changed, _head, _noted, _set, logit_lens, mechanism_scores
from helpers.masks import causal_mask

HELPERS = Path(__file__).resolve().parents[1] / "helpers"
WAYS = {  # how a model differs from that of the story, and for how many steps it learns
    "as in the story": ({}, 400),
    "rows begin small": ({"spread": 0.02}, 400),
    "d_ff 96": ({"d_ff": 96}, 800),
    "d_ff 192": ({"d_ff": 192}, 800),
}
INSTEAD = {  # of a head's context (B, T, 24)
    "cost": torch.zeros_like,
    "mean": lambda x: x.mean(dim=0),
    "other": lambda x: x.roll(1, 0),
}
ALONE, SECOND = ("without_first", "without_second", "two_alone"), (2, 1)


def trained(way: str, seed: int):
    """The model of a line."""
    sizes, steps = WAYS[way]
    model = two_layers(seed, **sizes)
    learn(model, seed, steps)
    return model


@torch.no_grad()
def measured(model) -> dict[str, float]:
    """The numbers of a line."""
    ids, known = texts(np.random.default_rng(99), 64)
    found = mechanism_scores(model, ids[:, :24])
    h = int(found.shares[:3, 0].argmax())
    line = {"head": h + 1, "looks_back": found.shares[h, 0], "looks_after": found.shares[-1, 3]}
    line |= without(model, found.heads[h], ids, known)
    read = logit_lens(model, ids[:, :24])[1].argmax(dim=-1)  # (64, 24)
    line["notes"] = (read[:, 1:] == ids[:, :23]).double().mean().item()
    return line | circuits(model, found.heads[h]) | patches(model)


def without(model, first, ids, known) -> dict[str, float]:
    """What the model says, and what it loses, without heads."""
    others = [(1, h) for h in (1, 2, 3) if (1, h) != first]
    three = {"first": [first], "second": [SECOND], "others": others}
    right, loss = said(model, ids, known)
    line = {"right": right}
    for name, heads in zip(ALONE, three.values(), strict=True):
        line[name] = said(model, ids, known, heads)[0]
    for kind, by in INSTEAD.items():
        for name, heads in three.items():
            most = max(said(model, ids, known, [head], by)[1] for head in heads)
            line[f"{kind}_{name}"] = most - loss
    return line


def said(model, ids, known, heads=(), by=torch.zeros_like) -> tuple[float, float]:
    """The share that is right, and the loss, while heads hand on what `by` makes of theirs."""
    with ExitStack() as hooks:
        for attention, own in (_head(model, head) for head in heads):

            def change(x, own=own):
                return _set(by(x[..., own]), columns=own)(x)

            hooks.enter_context(_changed({(attention.W_o, True): change}))
        right = (model(ids)[:, :-1].argmax(dim=-1) == ids[:, 1:])[known]
        return right.double().mean().item(), loss_of(model, ids, known).item()


def circuits(model, first) -> dict[str, float]:
    """What the two heads would look at and write, from their matrices alone."""
    (asks, writes), (asks_2, writes_2) = circuit(model, first), circuit(model, SECOND)
    norm_1, norm_2 = (layer.norm1 for layer in model.layers)
    animals, places = model.tokens.weight, norm_1(model.positions.weight[:24])
    notes, raised = norm_1(animals) @ writes, norm_2(animals) @ writes_2  # (32, 48)
    before = (places @ asks @ places.T).masked_fill(~causal_mask(24), -torch.inf)[1:]
    return {
        "copies_first": own_most(model.output(model.norm(notes))),
        "copies_second": own_most(model.output(model.norm(raised))),
        "asks_before": own_most(before),
        "finds_note": own_most(norm_2(animals) @ asks_2 @ norm_2(notes).T),
    }


def circuit(model, head):
    """Both matrices of a head, without biases: rows to scores, and rows to what it adds."""
    part, own = _head(model, head)
    W_q, W_k, W_v = (W.weight[own] for W in (part.W_q, part.W_k, part.W_v))
    return W_q.T @ W_k, W_v.T @ part.W_o.weight[:, own].T


def own_most(scores) -> float:
    """The share of rows whose own place, on the diagonal, is the largest."""
    return (scores.argmax(dim=-1) == torch.arange(len(scores))).double().mean().item()


def patches(model) -> dict[str, float]:
    """One vector of the right text in a wrong one, and the other way, on the way of the answer."""
    rows = np.random.default_rng(98).permuted(np.tile(np.arange(32), (64, 1)), axis=1)
    good = torch.from_numpy(rows[:, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2]])  # … the third is asked
    bad = good.clone()
    bad[:, 2] = torch.from_numpy(rows[:, 8])
    first, second = model.layers
    way = {(first, True): 2, (first, False): 3, (second, False): 10}  # the stream, and a place

    def likely(ids, source, spot, place) -> float:
        with _changed({spot: _noted(seen := [])}):
            model(source)
        with _changed({spot: _set(seen[0][:, place], place)}):
            chances = model(ids)[:, -1].softmax(dim=-1)
        return chances[torch.arange(64), good[:, 3]].mean().item()

    return {
        "put_back": min(likely(bad, good, *each) for each in way.items()),
        "taken_out": max(likely(good, bad, *each) for each in way.items()),
    }


def line_of(way: str, seed: int) -> dict:
    """A line of the table."""
    return {"way": way, "seed": seed} | measured(trained(way, seed))


def write(path: Path, comment: str, line_of, lines, digits: int) -> None:
    """Print each line as soon as it is measured, a process for each core; then write the table."""
    # With one thread each, sums have the same order on every machine.
    with ProcessPoolExecutor(None, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        rows = []
        for line in pool.map(line_of, *zip(*lines, strict=True)):
            rows.append([f"{x:.{digits}f}" if isinstance(x, float) else x for x in line.values()])
            print(*rows[-1], flush=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"# made by {comment}\n")
        csv.writer(file, lineterminator="\n").writerows([line, *rows])


if __name__ == "__main__":
    what = "`make seeds`: the models of notebook 16, their two heads and the others"
    write(HELPERS / TABLE, what, line_of, product(WAYS, range(10)), digits=3)
