"""Measure *why this word*: how often the way back finds the reason, and its links beside hooks.

    make measure-why    two to four minutes: it trains three translators, and three models of 16

Of each model 50 questions by lot, in sentences that it has not learned from. Exit status 1 if a bar
is missed. The figures:

first step      without the reading that is told first, the word changes or its probability halves
other words, %  the median loss without a reading that is not told
no step         the way back is empty
noun            an adjective's noun is told within two steps: why "verte", and not "vert"?
… or dearest    or it is missed most of all that the first step's word had read, but too little
another noun    its vector, of the other gender, in that noun's place costs a tenth of the lead; at
                each height of the encoder's stream, the bar is that of the lowest, the page's first
induction       the head, the animal one back, and the link through its key are told
off hooks       the largest difference of a link's probability or lead from that by PyTorch's hooks
"""

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context

import numpy as np
import torch
from torch import Tensor, nn

from helpers import training
from helpers.animals import learn, two_layers
from helpers.inside import _changed, _noted, _path, _seen, _set, _texts
from helpers.training.ablations import course_corpus
from helpers.training.grammar import ADJECTIVES, NOUNS, _plural
from helpers.writer import load_writer, manual
from workshop.machine.of_modules import describe
from workshop.machine.program import run
from workshop.machine.why import LEAST, Attention, Texts, Why

COUNT = 50
BARS = {  # of a kind of model and a figure: a least, or below 0 a most
    ("translator", "first step"): 40, ("translator", "other words, %"): -5,
    ("translator", "noun"): 36, ("translator", "another noun, encoder/x"): 35,
    ("induction", "induction"): 45, "off hooks": -1e-4,
}  # fmt: skip
# Nouns and their gender and number; forms of adjectives in which gender alone differs.
GENDERS = {form: (noun.gender, many) for noun in NOUNS
           for many, form in enumerate((noun.english, _plural(*noun[:2])[0]))}  # fmt: skip
FORMS = {a: b for _, m, f in ADJECTIVES if m != f and m[-1] not in "sx"
         for one, other in ((m, f), (f, m))
         for a, b in ((one, other), (_plural("", one)[1], _plural("", other)[1]))}  # fmt: skip
Figures = dict[str, float]


def asked(model: nn.Module, questions: Iterator[Texts], others: list[Texts]) -> list[Why]:
    """Why the likeliest word, of so many questions."""
    p = describe(model.eval())
    return [Why(p, texts, Why(p, texts, 0).now.likeliest, others=others)
            for texts in islice(questions, COUNT)]  # fmt: skip


def figures(model: nn.Module, whys: list[Why]) -> Figures:
    """What the first step of the way back finds, and what is not told."""
    seen = [_seen(model, texts) for texts in whys[0].others]
    return {
        "first step": sum(map(breaks, whys)),
        "other words, %": 100 * float(np.median([x for why in whys for x in untold(why)])),
        "no step": sum(not why.steps for why in whys),
        "off hooks": max(off_hooks(model, why, seen) for why in whys),
    }


def breaks(why: Why) -> bool:
    after = why.steps[0].after if why.steps else why.now
    return after.likeliest != why.word or after.probability < why.now.probability / 2


def untold(why: Why) -> list[float]:
    """What it costs not to read a word, of all words that were not told."""
    told = {f"{step.at.split('/head')[0]}/word {step.word[1] + 1}" for step in why.steps}
    return [why.lost(said) for at, said in why.sweep.items() if "/word " in at and at not in told]


def off_hooks(model: nn.Module, why: Why, seen: list[dict]) -> float:
    """How far links are from hooks: those that are tried for the first step, and those told."""
    links = [(a, why.asker, j) for a, j in why._links(why.logits, why.side, why.asker)]
    links += [(a, step.asker[1], step.word[1]) for step in why.steps if "read" in step.kind
              for a in why.attentions if step.at.startswith(a.at)]  # fmt: skip
    apart = [0.0]
    for link in links:
        ours = why.without(why.unlinked(*link))
        theirs = why.said({why.logits: by_hooks(model, why.texts, seen, *link).numpy()})
        apart += [abs(x - y) for x, y in zip(ours[:2], theirs[:2], strict=True)]
    return max(apart)


@torch.no_grad()
def by_hooks(model: nn.Module, texts: Texts, seen: list[dict], a: Attention,
             asker: int, j: int) -> Tensor:  # fmt: skip
    """The logits (T, V) if one word, the asker, reads word j no more."""
    part = next(part for name, part in model.named_modules() if _path(model, name) == a.at)
    cut = {(W, False): _set(torch.cat([other[W, False] for other in seen]).mean(dim=0), j)
           for W in (part.W_k, part.W_v)}  # fmt: skip
    with _changed(cut | {(part.W_o, True): _noted(read := [])}):
        model(*_texts(model, texts))
    with _changed({(part.W_o, True): _set(read[0][0, asker], asker)}):
        return model(*_texts(model, texts))[0]


# ---------------------------------------------------------------- the models
class Translator:
    """That of notebook 13, trained from a seed, and what is drawn of its sentences by lot."""

    def __init__(self, seed: int):
        learned, self.held_out = course_corpus()
        self.english, self.french = vocabularies = training.vocabularies(learned)
        torch.manual_seed(seed)
        self.model = training.translator(*vocabularies).double()
        data = training.examples(learned, *vocabularies)
        training.fit(self.model, data, torch.Generator().manual_seed(seed))
        self.draw = np.random.default_rng(seed + 100)
        drawn = self.draw.integers(0, len(learned), 20)
        self.others = [self.texts(learned[i], 99) for i in drawn]

    def texts(self, pair: training.Pair, n: int) -> Texts:
        """A sentence, and its translation before word n."""
        written = ["<start>", *pair.french.split()[:n]]
        return {"text": [self.english[w] for w in pair.english.split()],
                "written": [self.french[w] for w in written]}  # fmt: skip

    def by_lot(self, wanted: dict | None = None) -> Iterator[tuple[training.Pair, int]]:
        """Sentences, and a place in each, or that of a word that is wanted."""
        while True:
            pair = self.held_out[self.draw.integers(len(self.held_out))]
            said = pair.french.split()
            if places := [n for n, w in enumerate(said) if not wanted or w in wanted]:
                yield pair, int(self.draw.choice(places))


def of_translator(seed: int) -> Figures:
    t = Translator(seed)
    whys = asked(t.model, (t.texts(*place) for place in t.by_lot()), t.others)
    told, count = Counter(), 0
    forms = {a: b for a, b in FORMS.items() if {a, b} <= t.french.keys()}
    for pair, n in t.by_lot(forms):
        word = pair.french.split()[n]
        ids = t.french[word], t.french[forms[word]]
        why = Why(whys[0].p, t.texts(pair, n), *ids, others=t.others)
        if why.now.likeliest == why.word:
            told.update(is_found(why, pair, n) | another_noun(why, pair, n, t))
            count += 1
        if count == COUNT:
            return figures(t.model, whys) | told


def is_found(why: Why, pair: training.Pair, n: int) -> dict[str, bool]:
    """Whether the noun of French adjective n, in either language, is told; or dearest, at least."""
    noun = noun_of(pair, n)
    nouns = {("written", k + 1) for k, of in enumerate(pair.source_of[:n]) if of == noun}
    nouns |= {("text", noun)}
    links = [step.word for step in why.steps if "read" in step.kind][:2]
    told = bool(nouns & {*links})
    return {"noun": told, "noun, or dearest": told or dearest(why) in nouns}


def dearest(why: Why) -> tuple[str, int] | None:
    """The word that is missed most of those that the first step's word had read, told or not."""
    lost = {}
    for first in why.steps[:1]:
        a = next(a for a in why.attentions if first.at.startswith(a.at))
        for b, k in why._links(a.keys[0], *first.word):
            lost[b.reads, k] = why.lost(why.without(why.unlinked(b, first.word[1], k)))
    return max(lost, key=lost.__getitem__, default=None)


def another_noun(why: Why, pair: training.Pair, n: int, t: Translator) -> dict[str, bool]:
    """Whether a noun's vector of the other gender costs a tenth, at each height of the page."""
    noun, p = noun_of(pair, n), why.p
    gender, many = GENDERS[pair.english.split()[noun]]
    known = [w for w, (g, m) in GENDERS.items() if g != gender and m == many and w in t.english]
    ids = [*why.texts["text"]]
    ids[noun] = t.english[t.draw.choice(known)]
    other, found = run(p, {**why.texts, "text": ids}), {}
    for op in p.operations.values():
        if op.rows == "text" and op.kind in ("add", "embed"):
            put = [{"at": op.name, "row": noun, "values": other[op.name][noun]}]
            found[f"another noun, {op.name}"] = why.lost(why.without(put)) >= LEAST
    return found


def noun_of(pair: training.Pair, n: int) -> int:
    """Where the noun of French adjective n stands in English: behind it, or before "is green"."""
    words, j = pair.english.split(), pair.source_of[n]
    if {"is", "are"} & {*words[:j]}:
        return max(k for k in range(j) if words[k] in GENDERS)
    return min(k for k in range(j, len(words)) if words[k] in GENDERS)


def of_induction(seed: int) -> Figures:
    model = two_layers(seed)
    learn(model, seed)
    rng, named = np.random.default_rng(seed + 5), 0
    others = [{"text": rng.permutation(32)[:11].tolist()} for _ in range(20)]

    def repeated() -> Iterator[Texts]:
        while True:
            block = rng.permutation(32)[: rng.integers(8, 16)].tolist()
            yield {"text": block + block[: rng.integers(1, len(block) - 1)]}

    whys = asked(model, repeated(), others)
    for why in whys:
        k = why.texts["text"].index(why.texts["text"][-1]) + 1  # what is to be said again
        told = {(step.kind, step.word[1]): step.at for step in why.steps}
        named += "head" in told.get(("read", k), "") and ("as key", k - 1) in told
    return figures(model, whys) | {"induction": named}


def of_writer(seed: int) -> Figures:
    model, pieces = load_writer()
    draw = np.random.default_rng(seed)
    lines = [line for line in manual(held_out=True).split("\n") if len(line) > 120]

    def some() -> Iterator[Texts]:
        while True:
            ids = pieces.encode(lines[draw.integers(len(lines))]).ids
            yield {"text": ids[: draw.integers(8, 25)]}

    others = [*islice(some(), 20)]
    return figures(model, asked(model, some(), others))


MODELS = {"translator": (of_translator, 13, 0, 1), "induction": (of_induction, 0, 1, 2),
          "writer": (of_writer, 7)}  # fmt: skip


def main() -> bool:
    """Measure all models, a process for each core, and print each figure with its bar."""
    missed = False
    with ProcessPoolExecutor(None, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        jobs = [(kind, seed, pool.submit(of, seed)) for kind, (of, *seeds) in MODELS.items()
                for seed in seeds]  # fmt: skip
        for kind, seed, job in jobs:
            for what, x in job.result().items():
                bar = BARS.get((kind, what)) or BARS.get(what, 0)
                held = x >= bar if bar > 0 else x <= -bar
                told = f"{'holds ' if held else 'MISSED'}  {'≥' if bar > 0 else '≤'} {abs(bar):g}"
                missed |= bool(bar) and not held
                print(f"{kind:10} {seed:2}  {what:40} {x:8.3g}  {told if bar else ''}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
