"""Notebook 01: from words to ids, from ids to one-hot rows, from these to embeddings."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import text as reference
from workshop.exercises.exercise import Draw, Exercise, Probe, numbers

# ---------------------------------------------------------------- build_vocab

build_vocab = Exercise(
    reference.build_vocab,
    notebook="01",
    level=1,
    minutes=8,
    task="Number the different tokens of some sentences 0, 1, 2 …, either in order of first "
    "appearance or sorted. One that comes again keeps its number. Tokens are here what white space "
    "separates: unlike `tokenize` of notebook 00, leave capitals and punctuation marks as they "
    "stand.",
    hints=(
        "How do you get each token of all sentences once, and no token twice?",
        "Join the sentences and split them into tokens. The keys of a dictionary are all different "
        "and keep the order in which they came: number them from 0.",
        '`words = " ".join(sentences).split()`, then '
        "`return {word: i for i, word in enumerate(dict.fromkeys(words))}`",
    ),
    backends=("numpy",),
)


def vocab_probe(label: str, sentences: list[str], ordered: bool = False) -> None:
    """Compare the tokens and the ids; which id a token has only in as far as two orders allow."""

    def run(fn: Callable) -> Any:
        vocab = fn(sentences)
        if not isinstance(vocab, dict):
            return vocab
        seen = {"the keys": in_order(vocab), "the ids": in_order(vocab.values())}
        return seen | ({"the order": order_of(vocab, sentences)} if ordered else {})

    build_vocab.probes.append(Probe(label, run, (sentences,)))


def in_order(things: Any) -> list:
    """Sorted, texts after numbers, whatever they are."""
    known = int | float | str
    things = [x if isinstance(x, known) else repr(x) for x in things]
    return sorted(things, key=lambda x: (isinstance(x, str), x))


def order_of(vocab: dict, sentences: list[str]) -> str:
    """Name the order in which the ids number the tokens."""
    tokens = " ".join(sentences).split()
    ranked = [str(key) for key in sorted(vocab, key=lambda key: str(vocab[key]).zfill(9))]
    first, often = list(dict.fromkeys(tokens)), [tokens.count(token) for token in ranked]
    if ranked in (first, sorted(first)):
        return "of first appearance, or sorted"
    if often in (sorted(often), sorted(often)[::-1]):
        return "by how often they come"
    return "none that can be told"


vocab_probe("one sentence", ["we drink tea"])
vocab_probe("two sentences that share words", ["we drink tea", "you drink tea daily"])
vocab_probe("a word again at once", ["no no no tea no milk"])
vocab_probe("capitals and punctuation marks", ["Tea, please.", "tea please", "More Tea, please."])
vocab_probe("double spaces and a line break", [" hot  tea\nand ", "cold\tmilk"])
vocab_probe("words of one letter", ["a tea", "I drink a tea"])
vocab_probe(
    "the order of thirteen tokens",
    [
        "the quick fox met the old dog",
        "a dog that jumps is the talk of a day",
        "the quick cat met a day that is",
        "of jumps a fox can talk the cat is old",
        "zeal a",
    ],
    ordered=True,
)

build_vocab.answer("""
    def build_vocab(sentences):
        vocab = {}
        for sentence in sentences:
            for token in sentence.split():
                if token not in vocab:
                    vocab[token] = len(vocab)
        return vocab
""")
build_vocab.answer("""
    def build_vocab(sentences):
        tokens = set()
        for sentence in sentences:
            tokens.update(sentence.split())
        return {token: i for i, token in enumerate(sorted(tokens))}
""")
build_vocab.answer("""
    def build_vocab(sentences):
        words = []
        for sentence in sentences:
            for word in sentence.split():
                if word not in words:
                    words.append(word)
        return {word: i for i, word in enumerate(words)}
""")
build_vocab.answer("""
    def build_vocab(sentences):
        words = " ".join(sentences).split()
        return {word: i for i, word in enumerate(dict.fromkeys(words))}
""")
build_vocab.why(
    'sentence.split() | tokens.update(sentence.split()) | " ".join(sentences).split() | split',
    "White space alone separates tokens: whole words, capitals and punctuation as they stand.",
)
build_vocab.why(
    'set() | sorted(set(" ".join(sentences).split())) | dict.fromkeys(words)'
    " | token not in vocab | word not in words | set",
    "Each distinct token gets one id, however often it comes: a repeated one takes no new number.",
)
build_vocab.why(
    "enumerate(sorted(tokens)) | sorted(tokens) | sorted | enumerate(words)"
    " | enumerate(dict.fromkeys(words))",
    "The order must come out the same every time: sorted, or by first appearance. A set has none.",
)
build_vocab.why(
    "len(vocab) | range(len(words)) | i | vocab[token] = len(vocab)",
    "Ids are rows of a table, 0 to V − 1 without gaps: the next is how many there are so far.",
)
build_vocab.why(
    "{token: i for i, token in enumerate(sorted(tokens))} | dict(zip(words, range(len(words))))"
    " | {word: i for i, word in enumerate(words)}",
    "A vocabulary is asked for the id of a token: tokens are its keys, ids its values.",
)
build_vocab.why(
    'vocab = {} | words = [] | "<pad>" | "<unk>"',
    "It begins empty, once, before the first sentence: no special tokens, only those of the text.",
)
build_vocab.why(
    'return vocab | " ".join(sentences)',
    "One vocabulary serves all sentences: it is ready when the last of them is read.",
)


@build_vocab.mistake
def positions_of_last_appearance(sentences):
    """The id is a position in the text, and a word that comes again gets a new one, so ids are
    missing (gaps). Number the distinct tokens only: one already known keeps its id."""
    return {token: i for i, token in enumerate(" ".join(sentences).split())}


@build_vocab.mistake
def most_frequent_first(sentences):
    """The ids are in order of frequency, the most common token first. Here they go by first
    appearance, or by the sorted tokens: how often a token comes does not matter."""
    ranked = Counter(" ".join(sentences).split()).most_common()
    return {token: i for i, (token, _) in enumerate(ranked)}


@build_vocab.mistake
def ids_from_one(sentences):
    """The ids start at 1 instead of 0. An id is a row of a table, and rows are counted from 0 to
    V − 1: the first token gets id 0."""
    return {token: i + 1 for token, i in reference.build_vocab(sentences).items()}


@build_vocab.mistake
def ids_to_tokens(sentences):
    """The dictionary maps ids to tokens: key and value are swapped. A vocabulary is asked for the
    id of a token, so the tokens are its keys."""
    return {i: token for token, i in reference.build_vocab(sentences).items()}


@build_vocab.mistake
def positions_in_its_first_sentence(sentences):
    """The ids start again at 0 in every sentence, so different words share an id. Number on over
    all sentences: a new token gets the number of tokens known so far."""
    vocab = {}
    for sentence in sentences:
        for i, token in enumerate(sentence.split()):
            vocab.setdefault(token, i)
    return vocab


@build_vocab.mistake
def positions_in_the_sentence(sentences):
    """The id is the position in the sentence: it starts again at 0 in every sentence, and a word
    that comes again gets another. Give each distinct token of all sentences one id."""
    return {token: i for s in sentences for i, token in enumerate(s.split())}


@build_vocab.mistake
def counts_instead_of_ids(sentences):
    """The values are counts, how often each token comes, and many tokens share one. They must be
    ids: a number of its own for each distinct token, 0 to V − 1."""
    return dict(Counter(" ".join(sentences).split()))


@build_vocab.mistake
def characters(sentences):
    """The tokens are single characters, letters and spaces: to Python a text is a row of its
    letters. Split each sentence into words first."""
    return {c: i for i, c in enumerate(dict.fromkeys("".join(sentences)))}


@build_vocab.mistake
def arbitrary_order(sentences):
    """The ids are in no order: a set has none, and another one in every run of Python. Sort the
    tokens, or number them in order of first appearance."""
    tokens = list(reference.build_vocab(sentences))
    return {token: i for i, token in enumerate(tokens[1::2] + tokens[::2])}


@build_vocab.mistake
def first_sentence_only(sentences):
    """Only the first sentence is read, and words of later sentences are missing. The vocabulary is
    ready only after all sentences: return it when the loop has ended."""
    return reference.build_vocab(sentences[:1])


# ---------------------------------------------------------------- one_hot

one_hot = Exercise(
    reference.one_hot,
    notebook="01",
    level=2,
    minutes=10,
    task="Write each id as a row that is as long as the vocabulary: a single 1 in the place of the "
    "id, zeros elsewhere. It must work for one sentence, a batch, and any further axes in front.",
    hints=(
        "Which axis is new, how long is it, and in which of its places stands the 1 of an id?",
        "The rows of all words, one under the other, are np.eye(vocab_size): ones on the diagonal. "
        "Indexed with ids it hands back one row for each, whatever axes stand in front.",
        "`return np.eye(vocab_size)[ids]`",
    ),
    whole_numbers=True,
)


def hot(ids: np.ndarray, size: int) -> np.ndarray:
    """One-hot rows; an id outside gives a row of zeros."""
    return (np.asarray(ids)[..., None] == np.arange(size)).astype(np.float32)


def ids_below(V: int, *shape: int) -> Draw:
    """Random ids of a vocabulary of V words."""
    return numbers(*shape).then(lambda x: (1000 * x).astype(int) % V)


one_hot.probe("three ids of five words", np.array([2, 0, 3]), 5)
one_hot.probe("an id that comes twice", np.array([1, 3, 1, 2]), 5)
one_hot.probe("a batch of two sentences", np.array([[2, 0, 1], [3, 3, 1]]), 5)
one_hot.probe("as many sentences as tokens", np.array([[1, 4, 1], [0, 2, 3], [4, 2, 0]]), 6)
one_hot.probe("as many tokens as words", np.array([1, 2, 3, 0]), 4)
one_hot.probe("two axes in front", ids_below(6, 2, 3, 4), 7)
one_hot.probe("a single token", np.array([2]), 4)
one_hot.probe("the last word of the vocabulary", np.array([4, 0]), 5)
one_hot.probe("fifty tokens of thirty words", ids_below(30, 50), 30)

one_hot.answer("""
    def one_hot(ids, vocab_size):
        return np.eye(vocab_size)[ids]
""")
one_hot.answer("""
    def one_hot(ids, vocab_size):
        out = np.zeros((*ids.shape, vocab_size))
        np.put_along_axis(out, ids[..., None], 1, axis=-1)
        return out
""")
one_hot.answer("""
    def one_hot(ids, vocab_size):
        out = np.zeros(ids.shape + (vocab_size,))
        for where in np.ndindex(ids.shape):
            out[where][ids[where]] = 1
        return out
""")
one_hot.answer("""
    def one_hot(ids, vocab_size):
        flat = ids.reshape(-1)
        out = np.zeros((flat.size, vocab_size))
        out[np.arange(flat.size), flat] = 1
        return out.reshape(*ids.shape, vocab_size)
""")
one_hot.answer("""
    import torch.nn.functional as F

    def one_hot(ids, vocab_size):
        return F.one_hot(ids, num_classes=vocab_size)
""")
one_hot.why(
    "np.zeros((*ids.shape, vocab_size)) | np.zeros(ids.shape + (vocab_size,))"
    " | np.zeros((flat.size, vocab_size))",
    "Every token has a row of its own, as long as the vocabulary, and it begins with zeros.",
)
one_hot.why(
    "ids[..., None] | ids[where] | np.arange(1, vocab_size + 1) | ids - 1 | np.arange(vocab_size)"
    " | np.eye(vocab_size)[ids]",
    "Ids count from 0, and 0 is a word like the others: id i belongs to column i.",
)
one_hot.why(
    "vocab_size | np.eye(vocab_size + 1) | num_classes=vocab_size | np.eye(vocab_size)",
    "The width is the whole vocabulary, not the largest id here: column j is word j everywhere.",
)
one_hot.why(
    "out[where][ids[where]] = 1 | out[where][ids[where]] = ids[where]",
    "The place tells which word it is, the value only that it is there: a single 1.",
)
one_hot.why(
    "axis=-1 | np.put_along_axis(out, ids[..., None], 1, axis=-1)",
    "The last axis is the words: each row along it belongs to one token.",
)
one_hot.why(
    "out[np.arange(flat.size), flat] | np.arange(flat.size) | np.ndindex(ids.shape)",
    "Row and column go together, token by token: columns alone would be set in every row.",
)
one_hot.why(
    "out.reshape(*ids.shape, vocab_size) | ids.shape | (*ids.shape, vocab_size)",
    "The axes in front stay: (B, T) ids give (B, T, V), the words as a new last axis.",
)


@one_hot.mistake
def width_from_the_largest_id(ids, vocab_size):
    """The width comes from the largest id of this sentence instead of vocab_size. Another sentence
    would get rows of another width: every row is as wide as the whole vocabulary."""
    return hot(ids, ids.max() + 1)


@one_hot.mistake
def ones_in_every_row(ids, vocab_size):
    """Every row holds the ones of all tokens: whole columns were set, or all rows are one and the
    same list. Each row needs its own single 1: set row and column together, on fresh rows."""
    out = np.zeros((*ids.shape, vocab_size))
    out[..., ids.ravel()] = 1
    return out


@one_hot.mistake
def batch_axes_flattened(ids, vocab_size):
    """For a batch the leading axes are flattened, (B·T, V). The shape says which token stands in
    which sentence: restore it at the end, (B, T, V)."""
    return hot(ids.reshape(-1), vocab_size)


@one_hot.mistake
def single_sentences_by_index(ids, vocab_size):
    """It works for a single sentence and fails for a batch, where one step along ids is a whole
    sentence. Any axes may stand in front: flatten them first and restore the shape at the end."""
    out = np.zeros((len(ids), vocab_size))
    out[np.arange(len(ids)), ids] = 1
    return out


@one_hot.mistake
def one_place_too_far_to_the_left(ids, vocab_size):
    """The 1 stands one place too far left, as if ids counted from 1. They start at 0: id 0 belongs
    to column 0, and id i to column i."""
    return hot((ids - 1) % vocab_size, vocab_size)


@one_hot.mistake
def id_zero_left_out(ids, vocab_size):
    """The rows of id 0 are all zero, as if it stood for padding. Id 0 is a word like the others:
    its 1 stands in column 0."""
    return hot(np.where(ids == 0, -1, ids), vocab_size)


@one_hot.mistake
def one_row_for_the_sentence(ids, vocab_size):
    """All ones of a sentence stand in one row, as in a bag of words: the order of the tokens is
    lost. Each token needs a row of its own, (…, T, V)."""
    return hot(ids, vocab_size).max(axis=-2)


@one_hot.mistake
def summed_over_the_tokens(ids, vocab_size):
    """The rows of a sentence are added up to one row of counts, a bag of words: the order of the
    tokens is lost. Each token needs a row of its own, (…, T, V)."""
    return hot(ids, vocab_size).sum(axis=-2)


@one_hot.mistake
def id_in_place_of_one(ids, vocab_size):
    """The row holds the id itself instead of 1, so later words would count for more. The place says
    which word it is; the number there is always 1."""
    return hot(ids, vocab_size) * ids[..., None]


@one_hot.mistake
def words_as_rows(ids, vocab_size):
    """Rows and columns are swapped, (…, V, T): it is transposed. Tokens are the rows and words the
    columns, so the words are the last axis, (…, T, V)."""
    return np.swapaxes(hot(ids, vocab_size), -1, -2)


@one_hot.mistake
def ids_renumbered_in_full_width(ids, vocab_size):
    """The ids are renumbered: those of this sentence became 0, 1, 2 … in sorted order. Column j
    must mean word j in every sentence: use the ids themselves."""
    _, places = np.unique(ids, return_inverse=True)
    return hot(places.reshape(ids.shape), vocab_size)


@one_hot.mistake
def ids_renumbered(ids, vocab_size):
    """The ids are renumbered: there is a column for each different word of this sentence. Column j
    must mean word j in every sentence, and the width is that of the whole vocabulary."""
    values, places = np.unique(ids, return_inverse=True)
    return hot(places.reshape(ids.shape), len(values))


# ---------------------------------------------------------------- embed

embed = Exercise(
    reference.embed,
    notebook="01",
    level=1,
    minutes=5,
    task="Fetch the embedding of each token: for each one-hot row, that row of the table in whose "
    "place the 1 stands. Sentences and batches, as before.",
    hints=(
        "For one word you multiplied each row of the table by its place, and added up. Which "
        "operation does that for all tokens at once?",
        "The matrix product: (…, T, V) @ (V, D) sums over the words. (Or find the place of each 1 "
        "again, with argmax along the last axis, and index the table with it.)",
        "`return onehot @ table`",
    ),
)
pencil = np.array([[0.3, -1.2], [0.8, 0.5], [-0.6, 1.1], [-0.5, 0.9]], dtype=np.float32)


def hot_below(V: int, *shape: int) -> Draw:
    """One-hot rows of random ids."""
    return ids_below(V, *shape).then(lambda ids: hot(ids, V))


embed.probe("three tokens", hot([2, 0, 3], 4), pencil)
embed.probe("a token that comes twice", hot([1, 3, 1, 1, 0], 4), pencil)
embed.probe("a batch of two", hot([[2, 0, 3], [1, 1, 2]], 4), pencil)
embed.probe("as many sentences as tokens", hot_below(5, 3, 3), numbers(5, 4))
embed.probe("as many features as words", hot([[1, 3, 0], [2, 2, 1]], 4), numbers(4, 4))
embed.probe("as many tokens as words", hot([1, 2, 3, 0], 4), numbers(4, 3))
embed.probe("tokens, words and features alike", hot([1, 1, 3, 0], 4), numbers(4, 4))
embed.probe("more features than words", hot([2, 0], 3), numbers(3, 8))
embed.probe("two axes in front", hot_below(6, 2, 3, 4), numbers(6, 5))
embed.probe("a single token", hot([1], 3), numbers(3, 2))

embed.answer("""
    def embed(onehot, table):
        return onehot @ table
""")
embed.answer("""
    def embed(onehot, table):
        ids = onehot.argmax(axis=-1)
        return table[ids]
""")
embed.answer("""
    def embed(onehot, table):
        out = np.zeros((*onehot.shape[:-1], table.shape[1]))
        for where in np.ndindex(onehot.shape[:-1]):
            i = np.argmax(onehot[where])
            out[where] = table[i]
        return out
""")
embed.answer("""
    import torch.nn.functional as F

    def embed(onehot, table):
        ids = onehot.argmax(dim=-1)
        return F.embedding(ids, table)
""")
embed.why(
    "onehot.argmax(axis=-1) | onehot.argmax(dim=-1) | np.argmax(onehot[where]) | onehot.argmax(-1)",
    "The id of a token is the place of the 1 in its row, not the zeros and ones themselves.",
)
embed.why(
    "axis=-1 | dim=-1 | np.argmax(onehot)",
    "The last axis is the words: along it, each token has its single 1.",
)
embed.why(
    "dtype=float",
    "Embeddings are floats: an array of whole numbers would cut their decimals off.",
)
embed.why(
    "table[ids] | table | np.moveaxis(table) | table[i] | F.embedding(ids, table) | ids",
    "A word is a row of the table, not a column: id 0 is row 0; nothing is scaled or added.",
)
embed.why(
    "onehot @ table",
    "Tokens by words meets words by features: for each token, its 1 picks a row of the table.",
)
embed.why(
    "(*onehot.shape[:-1], table.shape[1]) | onehot.shape[:-1] | np.ndindex(onehot.shape[:-1])",
    "Every token keeps its own row, and all axes in front stay: only the words are summed away.",
)


def looked_up(onehot: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The rows of the table."""
    return table[onehot.argmax(axis=-1)]


@embed.mistake
def argmax_along_the_tokens(onehot, table):
    """The search for the 1 runs along the wrong axis, the tokens. Each token has its 1 in its own
    row, along the words: that is the last axis."""
    return table[onehot.argmax(axis=-2)]


@embed.mistake
def scaled_by_the_width(onehot, table):
    """The rows are multiplied by √D, as the paper scales them before positions are added. The
    look-up itself returns the rows of the table as they are."""
    return looked_up(onehot, table) * np.sqrt(table.shape[1])


@embed.mistake
def table_transposed(onehot, table):
    """The table is transposed. It has one row per word already, (V, D), so that tokens by words
    meets words by features: take the table as it is."""
    return onehot @ table.T


@embed.mistake
def made_unit_length(onehot, table):
    """The rows are divided by their length (their norm), so that all are of length 1. The look-up
    returns the rows of the table as they are: length means something too."""
    return looked_up(onehot, table) / np.linalg.norm(
        looked_up(onehot, table), axis=-1, keepdims=True
    )


@embed.mistake
def zeros_and_ones_as_ids(onehot, table):
    """The zeros and ones themselves are used as ids, so rows 0 and 1 of the table come again and
    again. The id is the place of the 1 in a row: find that first."""
    return table[onehot.astype(int)]


@embed.mistake
def tokens_added_up(onehot, table):
    """The embeddings of a sentence are added up into one vector, so the token axis is lost. Each
    token keeps a row of its own, (…, T, D)."""
    return looked_up(onehot, table).sum(axis=-2)


@embed.mistake
def first_sentence_for_all(onehot, table):
    """All sentences of a batch get the embeddings of the first one. Each sentence has its own ids:
    look up all of them."""
    first = looked_up(onehot[:1] if onehot.ndim > 2 else onehot, table)
    return np.broadcast_to(first, (*onehot.shape[:-1], table.shape[1]))


# ---------------------------------------------------------------- bag_of_words


def bag_of_words(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """Count how often each word of the vocabulary comes: (…, T) int → (…, V).

    The sum of a text's one-hot rows: what is left of it when word order is forgotten.
    """
    return (np.asarray(ids)[..., None] == np.arange(vocab_size)).sum(axis=-2)


bag = Exercise(
    bag_of_words,
    notebook="01",
    level=2,
    minutes=8,
    task="Count how often each word of the vocabulary comes in a sentence: place i of the result "
    "is the count of id i. A batch gives one row of counts for each of its sentences.",
    hints=(
        "What do you get when you add up all one-hot rows of a sentence?",
        "Make the one-hot rows, (…, T, V), and sum over the tokens: the last axis but one.",
        "`return one_hot(ids, vocab_size).sum(axis=-2)`",
    ),
    whole_numbers=True,
)
bag.probe("three different words", np.array([2, 0, 3]), 5)
bag.probe("a word that comes three times", np.array([1, 3, 1, 1, 2]), 5)
bag.probe("a batch of two sentences", np.array([[2, 0, 2], [3, 3, 3]]), 5)
bag.probe("as many sentences as tokens", np.array([[1, 4, 1], [0, 2, 3], [4, 4, 0]]), 6)
bag.probe("as many tokens as words", np.array([1, 3, 3, 0]), 4)
bag.probe("two axes in front", ids_below(5, 2, 3, 4), 6)
bag.probe("the first and the last word", np.array([0, 4, 0]), 5)
bag.probe("a long text", ids_below(9, 200), 12)

bag.answer("""
    def bag_of_words(ids, vocab_size):
        rows = one_hot(ids, vocab_size)
        return rows.sum(axis=-2)
""")
bag.answer("""
    def bag_of_words(ids, vocab_size):
        counts = np.zeros((*ids.shape[:-1], vocab_size))
        for where in np.ndindex(ids.shape):
            counts[where[:-1]][ids[where]] += 1
        return counts
""")
bag.answer("""
    def bag_of_words(ids, vocab_size):
        return np.apply_along_axis(np.bincount, -1, ids, minlength=vocab_size)
""")
bag.answer("""
    import torch
    import torch.nn.functional as F

    def bag_of_words(ids, vocab_size):
        return F.one_hot(torch.as_tensor(ids), vocab_size).sum(dim=-2)
""")
bag.why(
    "axis=-2 | dim=-2 | keepdims=True | rows.sum(axis=-2) | where[:-1] | -1",
    "Add over the tokens, the last axis but one: sentences stay apart, words keep their places.",
)
bag.why(
    "sum | rows.sum | counts[where[:-1]][ids[where]] += 1",
    "Every token adds one to its word: the sum of the one-hot rows counts repeated words too.",
)
bag.why(
    "vocab_size | minlength=vocab_size | np.arange(vocab_size) | one_hot(ids, vocab_size)",
    "Every word of the vocabulary has its place, with 0 if it does not come here.",
)
bag.why(
    "np.zeros((*ids.shape[:-1], vocab_size)) | ids.shape[:-1]"
    " | np.apply_along_axis(np.bincount, -1, ids, minlength=vocab_size)",
    "Each sentence has a row of counts of its own, begun at zero: the tokens' axis becomes words.",
)
bag.why(
    "ids[where] | ids[..., :, None] | ids",
    "Id i is counted in place i, and id 0 is a word like the others.",
)


@bag.mistake
def single_sentences_counted(ids, vocab_size):
    """It works for a single sentence and fails for a batch: counting all ids of an array
    (np.bincount) knows no sentences. Each sentence needs its own row of counts."""
    return np.bincount(ids, minlength=vocab_size)


@bag.mistake
def repeated_ids_of_a_row_once(ids, vocab_size):
    """One row of counts serves all sentences, and a word that repeats within one counts once. Each
    sentence needs its own row, and every token adds 1 there."""
    counts = np.zeros(vocab_size)
    for i in ids:
        counts[i] += 1
    return counts


@bag.mistake
def added_over_the_first_axis(ids, vocab_size):
    """The sum runs over the first axis, which in a batch is the sentences. The tokens of a sentence
    are added: counted from the end, the last axis but one."""
    return hot(ids, vocab_size).sum(axis=0)


@bag.mistake
def repeated_word_counted_once(ids, vocab_size):
    """A word that comes several times counts once: `counts[ids] += 1` reads each place once, adds 1
    and writes it back, however often its id stands there. Count every time it comes."""
    return (np.asarray(ids)[..., None] == np.arange(vocab_size)).any(axis=-2).astype(int)
