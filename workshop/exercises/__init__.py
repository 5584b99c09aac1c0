"""The exercises, one file for each stage, loaded when the first of them is asked for."""

import difflib
import pkgutil
from functools import cache
from importlib import import_module

from workshop.exercises.exercise import Exercise

# A file is found by its name: notebook, underscore, what it is about.
FILES = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("n"))
# What each notebook asks for, in its order; a test holds it equal to the notebooks. The exercises
# that none asks for can be checked all the same: they are functions of the course too.
ASKED = {
    "00": ("bigram_probs", "word_probs", "perplexity"),
    "01": ("build_vocab", "one_hot", "embed", "bag_of_words"),
    "02": ("project_qkv", "linear", "joined_qk"),
    "03": ("attention_scores", "best_key", "squared_distances"),
    "04": ("scale_scores", "score_deviation", "scale_queries"),
    "05": ("softmax", "attention", "log_softmax"),
    "06": ("window_mask", "padded_weights", "safe_masked_softmax", "length_mask"),
    "07": ("dropout", "drop_tokens"),
    "08": ("split_heads", "multi_head_attention", "share_heads", "induction_score"),
    "09": ("sinusoidal_positions", "add_positions", "rotate", "positions_at"),
    "10": ("layer_norm", "pre_norm", "pre_norm_stack"),
    "11": ("feed_forward", "encoder_layer", "encoder_parameters", "make_stack"),
    "12": ("decoder_layer", "greedy_decode", "attend_cached", "next_token_probs"),
    "13": ("train", "evaluate", "combined_mask", "smoothed_loss"),
    "14": ("our_name", "mean_pool", "head_scores", "word_pieces"),
    "15": ("rms_norm", "route", "online_softmax", "merge_adapter"),
    "16": ("repeat_blocks", "induction_pattern", "copying_score", "logit_lens"),
}


@cache
def exercises() -> dict[str, Exercise]:
    """All exercises by name, in the order of the course."""
    found: dict[str, Exercise] = {}
    for file in FILES:
        for value in vars(import_module(f"{__name__}.{file}")).values():
            if isinstance(value, Exercise):
                found[value.name] = value
    return found


def find(name: str) -> Exercise:
    """The exercise of this name. Raises KeyError that names the nearest."""
    if name not in exercises():
        near = nearest(name)
        raise KeyError(f"no exercise is called {name!r}" + (f"; is it {near!r}?" if near else ""))
    return exercises()[name]


def nearest(name: str) -> str:
    """The name of an exercise that is most like this one, "" if none is."""
    return (*difflib.get_close_matches(name, exercises(), n=1, cutoff=0.5), "")[0]
