"""Train the small translator of notebook 12, and keep it in the package: `make translator`."""

from itertools import product

import numpy as np
import torch

from helpers.training import Pair, Recipe, examples, fit, vocabularies
from helpers.translator import KEPT, Translator, empty_translator

ARTICLES = {"the": ("le", "la"), "a": ("un", "une"), "my": ("mon", "ma")}
BEFORE = {"small": ("petit", "petite"), "big": ("grand", "grande")}
BEHIND = {"green": ("vert", "verte"), "black": ("noir", "noire"), "grey": ("gris", "grise"),
          "white": ("blanc", "blanche")}  # fmt: skip
MASCULINE = {"dog": "chien", "cat": "chat", "book": "livre", "garden": "jardin"}
NOUNS = MASCULINE | {"cow": "vache", "frog": "grenouille", "car": "voiture", "house": "maison"}
VERBS = {"sleeps": "dort", "sings": "chante", "waits": "attend"}
# The adjective that a noun never has in training.
NEVER = {"dog": "grey", "cat": "black", "book": "small", "garden": "white", "cow": "green",
         "frog": "big", "car": "black", "house": "grey"}  # fmt: skip


def pairs(unseen: bool = False) -> list[Pair]:
    """The 360 sentences that it learns from, or the 72 that it never sees."""
    found = []
    for article, adjective, noun, verb in product(ARTICLES, BEFORE | BEHIND, NOUNS, VERBS):
        form = noun not in MASCULINE
        group = [NOUNS[noun], (BEFORE | BEHIND)[adjective][form]]
        group = group[::-1] if adjective in BEFORE else group
        french = " ".join([ARTICLES[article][form], *group, VERBS[verb]])
        if (NEVER[noun] == adjective) == unseen:
            found.append(Pair(f"{article} {adjective} {noun} {verb}", french, (), frozenset()))
    return found


def learned() -> list[Pair]:
    """What one epoch holds: sleeps is `sommeille` once for each two times that it is `dort`."""
    also = [p._replace(french=p.french.replace("dort", "sommeille")) for p in pairs()]
    return 2 * pairs() + [p for p in also if "sommeille" in p.french]


def trained(seed: int, steps: int = 600) -> Translator:
    """One of its kind, in some seconds."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        made = empty_translator(*vocabularies(learned()))
    data = examples(learned(), made.english, made.french)
    recipe = Recipe(steps=steps, peak=0.02, warm_up=40, label_smoothing=0.0)
    fit(made.model, data, torch.Generator().manual_seed(seed), recipe)
    made.model.requires_grad_(False).eval()
    return made


def main() -> None:
    """Keep the one whose seed is 3: a float32 array for each parameter, and its words."""
    made = trained(seed=3)
    numbers = {name: value.float().numpy() for name, value in made.model.state_dict().items()}
    words = {"english": np.array([*made.english]), "french": np.array([*made.french])}
    np.savez_compressed(KEPT, **words, **numbers)


if __name__ == "__main__":
    main()
