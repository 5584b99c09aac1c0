"""Measure the way back: how often its first step is the reason, and what it cannot explain.

    python tests/measure_why.py    some ten minutes; it trains the translators of notebook 13

Of each model 50 questions by lot, in sentences that it has not learned from. A step breaks the word
if the word changes or its probability halves. The nouns are those of `training.Pair.source_of`.
"""

import contextlib
import io
from collections.abc import Iterator

import numpy as np
import torch
from test_inside import lesson

from helpers import training
from helpers.writer import load_writer, manual
from workshop.machine.of_modules import describe
from workshop.machine.program import Program
from workshop.machine.why import Texts, Why

COUNT = 50
LATER = {"vert": "verte", "noir": "noire", "petit": "petite", "grand": "grande", "gris": "grise",
         "blanc": "blanche"}  # fmt: skip
FORMS = LATER | {b: a for a, b in LATER.items()}
FORMS |= {f"{a}s": f"{b}s" for a, b in FORMS.items() if a != "gris"}
NOUNS = {noun for word in ("cow", "dog", "cat", "frog", "goat", "rabbit", "hen", "duck", "tiger",
         "house", "car", "hat", "book", "boat", "door", "castle", "flower", "garden", "table")
         for noun in (word, f"{word}s")} | {"mouse", "mice"}  # fmt: skip


def breaks(why: Why) -> bool:
    after = why.steps[0].after if why.steps else why.now
    return after.likeliest != why.word or after.probability < why.now.probability / 2


def others_cost(why: Why) -> list[float]:
    """What it costs not to read a word, of all words that were not named."""
    named = {(step.at.split("/head")[0], step.word[1]) for step in why.steps}
    names = {f"{at}/word {j + 1}" for at, j in named}
    return [why.lost(said) for at, said in why.sweep.items()
            if "/word " in at and at not in names]  # fmt: skip


def first_steps(p: Program, questions: Iterator[Texts], others: list[Texts]) -> str:
    found, costs, none = 0, [], 0
    for texts, _ in zip(questions, range(COUNT), strict=False):
        why = Why(p, texts, Why(p, texts, 0).now.likeliest, others=others)
        found, none = found + breaks(why), none + (not why.steps)
        costs += others_cost(why)
    median = 100 * np.median(costs)
    return f"first step breaks {found} of {COUNT}; no step {none}; others {median:.1f} %"


def of_translator(seed: int) -> None:
    rng = np.random.default_rng(13)
    learned, held_out = training.split(training.corpus(13_000, rng), rng)
    english, french = training.vocabularies(learned)
    torch.manual_seed(seed)
    model = training.translator(english, french).double()
    data = training.examples(learned, english, french)
    training.fit(model, data, torch.Generator().manual_seed(seed))
    p, draw = describe(model), np.random.default_rng(seed + 100)

    def texts(pair: training.Pair, n: int) -> dict[str, list[int]]:
        written = ["<start>", *pair.french.split()[:n]]
        return {"text": [english[w] for w in pair.english.split()],
                "written": [french[w] for w in written]}  # fmt: skip

    def any_place() -> Iterator[Texts]:
        while True:
            pair = held_out[draw.integers(len(held_out))]
            yield texts(pair, draw.integers(len(pair.french.split())))

    others = [texts(learned[i], 99) for i in draw.integers(0, len(learned), 20)]
    print(f"translator {seed}: {first_steps(p, any_place(), others)}")
    told = [0, 0, 0]
    done = 0
    while done < COUNT:
        pair = held_out[draw.integers(len(held_out))]
        said = pair.french.split()
        places = [i for i, w in enumerate(said) if FORMS.get(w) in french.keys() and w in FORMS]
        if not places:
            continue
        n = int(draw.choice(places))
        why = Why(p, texts(pair, n), french[said[n]], french[FORMS[said[n]]], others=others)
        if why.now.likeliest != why.word:
            continue
        done += 1
        told = [a + b for a, b in zip(told, agreement(why, pair, n), strict=True)]
    print(f"    agreement: noun told {told[0]}, noun the likeliest link {told[1]}, none {told[2]}")


def agreement(why: Why, pair: training.Pair, n: int) -> tuple[bool, bool, bool]:
    """Is the noun told within two steps; is it, told or not, the link that is missed most?"""
    words, j = pair.english.split(), pair.source_of[n]
    after = [k for k in range(j + 1, len(words)) if words[k] in NOUNS]
    before = [k for k in range(j) if words[k] in NOUNS]
    alone = "is" in words[:j] or "are" in words[:j]  # the cow is green
    noun = (before[-1:] if alone else after[:1]) or [None]
    nouns = {("text", noun[0])}
    nouns |= {("written", k + 1) for k, of in enumerate(pair.source_of[:n]) if of == noun[0]}
    links = [step.word for step in why.steps if step.kind in ("read", "had read")][:2]
    told = bool(nouns & set(links))
    if told or not links:
        return told, told, not why.steps
    a = next(a for a in why.attentions if why.steps[0].at.startswith(a.at))
    tried = {(b.reads, k): why.lost(why.without(why.unlinked(b, links[0][1], k)))
             for b, k in why._links(a.keys, *links[0])}  # fmt: skip
    return told, max(tried, key=tried.get, default=None) in nouns, not why.steps


def of_induction(made: dict, seed: int) -> None:
    model = made["fresh"](seed)
    with contextlib.redirect_stdout(io.StringIO()):
        made["learn"](model, seed)
    p, rng = describe(model), np.random.default_rng(seed + 5)
    others = [{"text": rng.permutation(32)[:11].tolist()} for _ in range(20)]
    named = none = broken = 0
    for _ in range(COUNT):
        block = rng.permutation(32)[: rng.integers(8, 16)].tolist()
        k = int(rng.integers(1, len(block) - 1))
        texts = {"text": block + block[:k]}
        why = Why(p, texts, Why(p, texts, 0).now.likeliest, others=others)
        told = {(step.kind, step.word[1]): step.at for step in why.steps}
        named += "head" in told.get(("read", k), "") and ("as key", k - 1) in told
        none, broken = none + (not why.steps), broken + breaks(why)
    print(f"induction {seed}: head, animal, link through keys {named} of {COUNT}; breaks {broken};"
          f" no step {none}")  # fmt: skip


def of_writer() -> None:
    model, pieces = load_writer()
    p, draw = describe(model), np.random.default_rng(7)
    lines = [line for line in manual(held_out=True).split("\n") if len(line) > 120]

    def pieces_of() -> Iterator[Texts]:
        while True:
            ids = pieces.encode(lines[draw.integers(len(lines))]).ids
            yield {"text": ids[: draw.integers(8, 25)]}

    others = [next(pieces_of()) for _ in range(20)]
    print(f"writer: {first_steps(p, pieces_of(), others)}")


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        made = lesson()
    of_writer()
    for seed in range(3):
        of_induction(made, seed)
    for seed in (13, 0, 1):
        of_translator(seed)
