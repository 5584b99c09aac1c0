"""The translator: its model, its translations, how many are right, and what each word looked at."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from helpers.decoding import generate
from helpers.layers import unwatched
from helpers.models import Transformer
from helpers.text import decode
from helpers.training.batches import END, PAD, START, examples, pad_ids
from helpers.training.grammar import Pair
from helpers.training.learning import evaluating, translation_loss

LONGEST = 32  # tokens, more than any sentence of the grammar has
TOGETHER = 256  # sentences at a time, so that memory does not grow with their number

Vocab = Mapping[str, int]


def translator(english: Vocab, french: Vocab, dropout: float = 0.0) -> Transformer:
    """Build the transformer of the paper, small: 64 features, one encoder and one decoder layer.

    Raises ValueError for a dropout outside [0, 1).
    """
    sizes = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 1, "max_len": LONGEST}
    return Transformer(len(english), len(french), **sizes, pad_id=english[PAD], dropout=dropout)


def translate(model: Transformer, sentences: Sequence[str], english: Vocab, french: Vocab, *,
              cached: bool = True) -> list[str]:  # fmt: skip
    """Translate sentences greedily: N English ones → N French ones.

    Raises ValueError for an empty list or a word outside the vocabulary.
    """
    device = next(model.parameters()).device
    french_sentences = []
    for some in _batches(sentences):
        source = torch.from_numpy(pad_ids([sentence.split() for sentence in some], english))
        answering, starts = model.answering(source.to(device)), [[french[START]]] * len(some)
        for ids in generate(answering, starts, LONGEST - 1, end_id=french[END], cached=cached):
            words = decode((i for i in ids if i != french[END]), french)
            french_sentences.append(" ".join(words))
    return french_sentences


def exact_match(
    model: Transformer, pairs: Sequence[Pair], english: Vocab, french: Vocab, *, cached: bool = True
) -> float:
    """Share of the sentences whose greedy translation is right in every word, from 0 to 1.

    Raises ValueError for an empty list or a word outside the vocabulary.
    """
    answers = translate(model, [pair.english for pair in pairs], english, french, cached=cached)
    right = [answer == pair.french for answer, pair in zip(answers, pairs, strict=True)]
    return sum(right) / len(right)


def mean_loss(model: Transformer, pairs: Sequence[Pair], english: Vocab, french: Vocab) -> float:
    """Mean cross-entropy per French token, <end> included, given the right tokens before it.

    In nats, without label smoothing and dropout. Raises as `exact_match` does.
    """
    total, count = 0.0, 0
    with evaluating(model), unwatched(model):
        for some in _batches(pairs):
            batch = examples(some, english, french).to(next(model.parameters()).device)
            tokens = int((batch.targets != model.pad_id).sum())
            total += translation_loss(model, batch).item() * tokens
            count += tokens
    return total / count


def alignment(model: Transformer, pair: Pair, english: Vocab, french: Vocab) -> np.ndarray:
    """How much each French word looked at each English word: (T, S), each row sums to 1.

    Row t is the query that predicts French word t (it has read the words before), or <end> at the
    last; the mean over the heads of the last layer's cross-attention. Raises ValueError for a word
    outside its vocabulary.
    """
    batch = examples([pair], english, french).to(next(model.parameters()).device)
    with evaluating(model):
        model(batch.source, batch.inputs)
    weights = model.decoder.layers[-1].cross_attention.weights  # (1, H, T, S)
    return weights[0].mean(dim=0).cpu().numpy()


def _batches(items: Sequence) -> Iterator[Sequence]:
    if not items:
        raise ValueError("there is no sentence to translate, but at least one is needed")
    return (items[start : start + TOGETHER] for start in range(0, len(items), TOGETHER))
