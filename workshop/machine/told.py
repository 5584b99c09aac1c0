"""Why this word, told: a table of parts, and sentences, each with its test and its figures."""

from collections.abc import Callable
from functools import cached_property
from textwrap import fill
from typing import Any

from workshop.machine.why import EVERY, STAND_IN, Said, Step, Why
from workshop.widgets.base import visible

Word = Callable[[str, int], str]  # of a text and an id; the newest word's of its last text
MINUS = "A minus means that the other word's score is the larger."
NONE = (
    "No step was found: hide any one word from those that read it, and less than a tenth is lost."
)


class Answer:
    """Why a word is said: what the picture shows, as numbers.

    `contributions` by part, largest first, add up to the logit, or to the lead over a rival, its
    score minus the other's; `without` says what is left of the word's probability and of its lead
    without each part, or without others reading a word; `sentences` are the way back; `notes` say
    where the two disagree.
    """

    def __init__(self, why: Why, word: Word):
        self.why, self._word = why, word
        self.contributions = {part.at: part.adds for part in why.parts}

    @cached_property
    def without(self) -> dict[str, Said]:
        """What is said without each part, and without others reading a word."""
        return {self._called(at): said for at, said in self.why.sweep.items()}

    @cached_property
    def notes(self) -> dict[str, str]:
        """Of parts whose contribution misleads: how, and what a cut has shown of others."""
        return {at: self._note(at) for at in self.why.notes}

    @cached_property
    def sentences(self) -> list[str]:
        """The way back, or that there is none."""
        return [self._sentence(step) for step in self.why.steps] or [NONE]

    @property
    def way_back(self) -> str:
        """The sentences in lines for a narrow page; what a minus means, if there is one."""
        least = min((step.after.lead for step in self.why.steps), default=0.0)
        minus = self.why.rival is not None and least < 0
        told = [*self.sentences, *[MINUS] * minus]
        return "\n".join(fill(sentence, 60, subsequent_indent="    ") for sentence in told)

    def packed(self, gone: bool) -> dict[str, Any]:
        """The same for the page, as JSON; what each part is missed if it is `gone`."""

        def told(said: Said) -> dict[str, Any]:
            return said._asdict() | {"likeliest": self._word(self.why.side, said.likeliest)}

        return {
            "now": told(self.why.now), "parts": [*self.contributions.items()],
            "steps": [step._asdict() | {"after": told(step.after)} for step in self.why.steps],
            "sweep": [(at, told(said)) for at, said in self.why.sweep.items()] if gone else None,
            "notes": [*self.why.notes.items()] if gone else [],
        }  # fmt: skip

    def _of(self, side: str, i: int) -> str:
        return f"“{visible(self._word(side, self.why.texts[side][i]))}”"

    def _said(self, i: int) -> str:
        return f"“{visible(self._word(self.why.side, i))}”"

    def _called(self, at: str) -> str:
        """A reading's path with its word; of other parts the path."""
        where, _, last = at.rpartition("/")
        a = next((a for a in self.why.attentions if a.at == where), None)
        if a is None or not last.startswith("word "):
            return at
        return f"{at} {self._of(a.reads, int(last[5:]) - 1)}"

    def _figures(self, after: Said) -> str:
        """0.86 → 0.06, or of a lead 4.8 → 3.0; and what is said then."""
        now, rival = self.why.now, self.why.rival
        if rival is None:
            told = f"{self._said(self.why.word)} {now.probability:.2f} → {after.probability:.2f}"
        else:
            told = f"the lead over {self._said(rival)} {_lead(now)} → {_lead(after)}"
        still = "still " if after.likeliest == now.likeliest else ""
        return f"{told}, and it {still}says {self._said(after.likeliest)}"

    def _sentence(self, step: Step) -> str:
        word, asker = self._of(*step.word), self._of(*step.asker)
        path, _, head = step.at.rpartition("/head")
        where = (path or step.at).replace("/", " ")
        every = "both" if step.heads == 2 else f"all {step.heads}"
        some = f"head{head}" if head else "the only head"
        who = f"{some if path else f'{every} heads'} of {where}"
        figures = self._figures(step.after)
        return {
            "read": f"At {asker}, {who} read {word}; with that word hidden, {figures}.",
            "had read": f"{asker} had read {word} by {who}; without that link {figures}.",
            "as key": f"So {asker} is found: if its key alone forgets {word}, {figures}.",
            "together": f"No head of {where} is needed alone: without head{head} {figures}.",
        }[step.kind]

    def _note(self, at: str) -> str:
        kind, partners = self.why.notes[at]
        proven = ", ".join(partner.replace("/", " ") for partner in partners)
        if kind == STAND_IN:
            return "adds much, is not missed" + (f": {proven} stands in for it" if partners else "")
        return "adds little, is missed" + (f": passed on by {proven}" if partners else "")

    # ------------------------------------------------------------ shown

    @property
    def title(self) -> str:
        """What was asked, and what the parts add up to."""
        now, rival, total = self.why.now, self.why.rival, sum(self.contributions.values())
        what = f"Why {self._said(self.why.word)} ({now.probability:.2f})"
        if rival is None:
            return f"{what}? Its parts add up to its score, {total:.2f}."
        return f"{what}, and not {self._said(rival)}? The parts add up to the lead, {total:.2f}."

    def _row(self, at: str) -> list[str]:
        """A part, what it adds, what is left without it, and what that means."""
        adds, said = self.contributions.get(at), self.without.get(at)
        lead = "" if said is None or self.why.rival is None else f", lead {_lead(said)}"
        left = "stays" if said is None else f"{said.probability:.2f}{lead}"
        note = "the same for every word" if at == EVERY else self.notes.get(at, "")
        return [at, "" if adds is None else f"{adds:+.2f}", left, note]

    def __repr__(self) -> str:
        more = sorted(self.without.keys() - self.contributions.keys(),
                      key=lambda at: -self.why.lost(self.without[at]))  # fmt: skip
        rows = [self._row(at) for at in [*self.contributions, *more]]
        rows = [["part", "adds", "without it", ""], *rows]
        wide = [max(len(row[i]) for row in rows) for i in range(3)] + [0]
        lines = ["  ".join(map(str.ljust, row, wide)).rstrip() for row in rows]
        return "\n".join([self.title, self.way_back, "", *lines])


def _lead(said: Said) -> str:
    return f"{said.lead:.1f}".replace("-", "−")
