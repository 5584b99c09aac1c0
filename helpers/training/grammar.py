"""A small English→French grammar: every sentence has one right translation, known word by word.

French determiners and adjectives agree with their noun in gender and number, which English hides:
`small` is `petit`, `petite`, `petits` or `petites`. Some adjectives stand before the noun, as in
English (`le petit chat`), the others behind it (`le chat noir`): there the two languages cross.
No French noun and no adjective before it begins with a vowel or an h, so nothing is elided, and
`beau`, `vieux`, `ce`, `ma` … need no second form.
"""

import re
from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np


class Pair(NamedTuple):
    """A sentence in both languages, and what its words have to do with each other.

    `source_of[t]` is the place of the English word that French word t translates (each has one);
    `combinations` are the (noun, adjective) pairs of the sentence, in English, in the singular.
    """

    english: str
    french: str
    source_of: tuple[int, ...]
    combinations: frozenset[tuple[str, str]]


class Phrase(NamedTuple):
    """(English, French) words in English order; then the French order, as places in English."""

    words: list[tuple[str, str]]
    order: list[int]
    combinations: frozenset[tuple[str, str]] = frozenset()

    def then(self, other: "Phrase") -> "Phrase":
        """This phrase and another behind it, in both languages."""
        order = self.order + [len(self.words) + place for place in other.order]
        return Phrase(self.words + other.words, order, self.combinations | other.combinations)


class Noun(NamedTuple):
    """A noun in English and French, singular; its gender is "m" or "f"."""

    english: str
    french: str
    gender: str


def _listed(text: str) -> list[tuple[str, ...]]:
    return [tuple(entry.split()) for entry in text.split(",")]


# Adjectives: English, then French for a masculine and for a feminine noun.
BEFORE = _listed(  # French puts these before the noun
    "small petit petite, big grand grande, pretty joli jolie, old vieux vieille, "
    "new nouveau nouvelle, beautiful beau belle"
)
BEHIND = _listed(  # and these behind it
    "black noir noire, white blanc blanche, red rouge rouge, green vert verte, blue bleu bleue, "
    "grey gris grise, round rond ronde, strange étrange étrange"
)
ADJECTIVES = BEFORE + BEHIND
ANIMATE = [  # who can do something
    Noun(*words)
    for words in _listed(
        "cat chat m, dog chien m, rabbit lapin m, tiger tigre m, duck canard m, "
        "mouse souris f, cow vache f, goat chèvre f, hen poule f, frog grenouille f"
    )
]
THINGS = [
    Noun(*words)
    for words in _listed(
        "book livre m, boat bateau m, hat chapeau m, garden jardin m, castle château m, "
        "house maison f, car voiture f, flower fleur f, table table f, door porte f"
    )
]
NOUNS = ANIMATE + THINGS
ONE = _listed("the le la, a un une, this ce cette, my mon ma")
MANY = _listed("the les, two deux, these ces, my mes")
BE = ("is", "est"), ("are", "sont")
VERBS = [  # of one, of many
    ((one, un), (many, plusieurs))
    for one, un, many, plusieurs in _listed(
        "sees voit see voient, likes aime like aiment, finds trouve find trouvent, "
        "wants veut want veulent, paints peint paint peignent, follows suit follow suivent, "
        "watches regarde watch regardent, seeks cherche seek cherchent"
    )
]


def corpus(size: int, rng: np.random.Generator) -> list[Pair]:
    """Draw `size` different sentences with their translations.

    Raises ValueError unless size is from 1 to 100,000; the grammar has some millions.
    """
    if not 1 <= size <= 100_000:
        raise ValueError(f"size is {size}, but must be from 1 to 100,000")
    pairs: dict[str, Pair] = {}
    while len(pairs) < size:
        pair = sentence(rng)
        pairs.setdefault(pair.english, pair)
    return list(pairs.values())


def split(
    pairs: Sequence[Pair], rng: np.random.Generator, per_noun: int = 1
) -> tuple[list[Pair], list[Pair]]:
    """Hold out whole noun–adjective combinations: (training, held-out) pairs.

    For each noun, `per_noun` adjectives are drawn; a sentence in which one of them describes that
    noun is held out. So no held-out sentence can be translated by heart. Raises ValueError unless
    per_noun is from 1 to half the number of adjectives.
    """
    if not 1 <= per_noun <= len(ADJECTIVES) // 2:
        raise ValueError(f"per_noun is {per_noun}, but must be from 1 to {len(ADJECTIVES) // 2}")
    dealt = cycle(ADJECTIVES[i][0] for i in rng.permutation(len(ADJECTIVES)))
    nouns = [NOUNS[i].english for i in rng.permutation(len(NOUNS))]
    unseen = {(noun, next(dealt)) for noun in nouns for _ in range(per_noun)}
    training = [pair for pair in pairs if not pair.combinations & unseen]
    return training, [pair for pair in pairs if pair.combinations & unseen]


def sentence(rng: np.random.Generator) -> Pair:
    """Draw one sentence: someone does something to someone or something, or something is so."""
    many = bool(rng.random() < 0.4)
    if rng.random() < 0.2:
        noun = _pick(NOUNS, rng)
        is_so = _word(*BE[many]).then(_adjective(_pick(ADJECTIVES, rng), noun, many))
        return _pair(noun_phrase(noun, many, rng).then(is_so))
    subject = noun_phrase(_pick(ANIMATE, rng), many, rng).then(_word(*_pick(VERBS, rng)[many]))
    return _pair(subject.then(noun_phrase(_pick(NOUNS, rng), bool(rng.random() < 0.4), rng)))


def noun_phrase(noun: Noun, many: bool, rng: np.random.Generator) -> Phrase:
    """Draw a determiner and up to two adjectives for one or many: `the small black cats`."""
    determiner = _pick(MANY, rng) if many else _agree(_pick(ONE, rng), noun)
    phrase = _word(*determiner)
    if rng.random() < 0.4:
        phrase = phrase.then(_adjective(_pick(BEFORE, rng), noun, many))
    name = _word(*_plural(noun.english, noun.french)) if many else _word(*noun[:2])
    if rng.random() < 0.5:
        adjective = _adjective(_pick(BEHIND, rng), noun, many)
        name = adjective.then(name)._replace(order=[1, 0])  # black cat, but chat noir
    return phrase.then(name)


def _adjective(forms: tuple[str, str, str], noun: Noun, many: bool) -> Phrase:
    english, french = _agree(forms, noun)
    french = _plural(english, french)[1] if many else french
    return _word(english, french)._replace(combinations=frozenset({(noun.english, english)}))


def _agree(forms: tuple[str, str, str], noun: Noun) -> tuple[str, str]:
    english, masculine, feminine = forms
    return english, masculine if noun.gender == "m" else feminine


def _plural(english: str, french: str) -> tuple[str, str]:
    english = "mice" if english == "mouse" else english + "s"
    if french.endswith(("s", "x")):
        return english, french
    return english, french + ("x" if french.endswith("eau") else "s")


def _word(english: str, french: str) -> Phrase:
    return Phrase([(english, french)], [0])


def _pair(phrase: Phrase) -> Pair:
    english = " ".join(english for english, _ in phrase.words)
    english = re.sub(r"\ba (?=[aeiou])", "an ", english)  # an old cat
    french = " ".join(phrase.words[place][1] for place in phrase.order)
    return Pair(english, french, tuple(phrase.order), phrase.combinations)


def _pick(items: Sequence, rng: np.random.Generator) -> Any:
    return items[rng.integers(len(items))]
