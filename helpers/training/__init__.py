"""Training a translator: sentences, batches, learning, and what each of its parts is worth."""

from helpers.training.ablations import ABLATIONS, BUILT, RECIPES, ablation, read_table
from helpers.training.batches import Examples, combined_mask, examples, lm_pairs, vocabularies
from helpers.training.grammar import Pair, corpus, split
from helpers.training.learning import Recipe, evaluate, fit, train, translation_loss
from helpers.training.translating import alignment, exact_match, mean_loss, translate, translator

__all__ = ["ABLATIONS", "BUILT", "RECIPES", "Examples", "Pair", "Recipe", "ablation", "alignment",
           "combined_mask", "corpus", "evaluate", "exact_match", "examples", "fit", "lm_pairs",
           "mean_loss", "read_table", "split", "train", "translate", "translation_loss",
           "translator", "vocabularies"]  # fmt: skip
