"""Notebook 01: from words to ids, from ids to one-hot rows, from these to embeddings."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import text as reference
from helpers.exercises.exercise import Exercise, Probe

rng = np.random.default_rng(1)

# ---------------------------------------------------------------- build_vocab

build_vocab = Exercise(
    reference.build_vocab,
    notebook="01",
    level=1,
    minutes=8,
    task="Number the distinct tokens of some sentences 0 … V-1, this time in sorted order instead "
    "of that of first appearance. (The check accepts both.) Tokens are what white space "
    "separates.",
    hints=(
        "How do you get each token of all sentences once, and no token twice?",
        "Gather the tokens of all sentences in a set, sort it, and number the sorted list from 0.",
        "`tokens = {token for sentence in sentences for token in sentence.split()}`, then "
        "`return {token: i for i, token in enumerate(sorted(tokens))}`",
    ),
    backends=("numpy",),
)


def vocab_probe(label: str, sentences: list[str], ordered: bool = False) -> None:
    """Compare the tokens and the ids; which id a token has only in as far as two orders allow."""

    def run(fn: Callable) -> Any:
        vocab = fn(sentences)
        if not isinstance(vocab, dict):
            return vocab
        keys = [special(key, sentences) for key in vocab]
        seen = {"the keys": in_order(keys), "the ids": in_order(vocab.values())}
        return seen | ({"the order": order_of(vocab, sentences)} if ordered else {})

    build_vocab.probes.append(Probe(label, run, (sentences,)))


def special(key: Any, sentences: list[str]) -> Any:
    """A token in brackets that no sentence holds, <pad> or [UNK], is one whatever its name."""
    brackets = isinstance(key, str) and key[:1] + key[-1:] in ("<>", "[]")
    return "<…>" if brackets and key not in " ".join(sentences).split() else key


def in_order(things: Any) -> list:
    """Sorted, texts after numbers, whatever they are."""
    known = int | float | str
    things = [x if isinstance(x, known) else repr(x) for x in things]
    return sorted(things, key=lambda x: (isinstance(x, str), x))


def order_of(vocab: dict, sentences: list[str]) -> str:
    """Name the order in which the ids number the tokens."""
    tokens = " ".join(sentences).split()
    ranked = [str(key) for key in sorted(vocab, key=lambda key: str(vocab[key]).zfill(9))]
    first, counts = list(dict.fromkeys(tokens)), Counter(tokens)
    lower = [token.lower() for token in ranked]
    if ranked == first or ranked == sorted(first) or lower == sorted(t.lower() for t in first):
        return "of first appearance, or sorted"
    if ranked in (first[::-1], sorted(first)[::-1]):
        return "reversed"
    if ranked == list(dict.fromkeys(tokens[::-1]))[::-1]:
        return "of last appearance"
    often = [counts[token] for token in ranked]
    if often in (sorted(often), sorted(often)[::-1]):
        return "by how often they come"
    long = [len(token) for token in ranked]
    return "by length" if long in (sorted(long), sorted(long)[::-1]) else "none that can be told"


vocab_probe("one sentence", ["we drink tea"])
vocab_probe("two sentences that share words", ["we drink tea", "you drink tea daily"])
vocab_probe("a word that comes again at once", ["no no no tea no milk"])
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


@build_vocab.mistake
def ids_from_one(sentences):
    """The ids start at 1 instead of 0. The rows of a table count from 0 to V-1: give the first
    token id 0."""
    return {token: i + 1 for token, i in reference.build_vocab(sentences).items()}


@build_vocab.mistake
def ids_from_two(sentences):
    """The ids start at 2 instead of 0, as if 0 and 1 were reserved for special tokens. The rows of
    a table count from 0 to V-1: give the first token id 0."""
    return {token: i + 2 for token, i in reference.build_vocab(sentences).items()}


@build_vocab.mistake
def characters(sentences):
    """The tokens are single characters (letters and spaces): a loop over a string gives its
    characters. Split each sentence into words first: sentence.split()."""
    return {c: i for i, c in enumerate(dict.fromkeys("".join(sentences)))}


@build_vocab.mistake
def letters_without_spaces(sentences):
    """The tokens are single letters, or characters. They must be words: loop over sentence.split(),
    not over each word or string."""
    return {c: i for i, c in enumerate(dict.fromkeys("".join("".join(sentences).split())))}


@build_vocab.mistake
def first_sentence_only(sentences):
    """Only the first sentence is read, words of later sentences are missing: the return is indented
    into the loop. Return after the loop."""
    return reference.build_vocab(sentences[:1])


@build_vocab.mistake
def last_sentence_only(sentences):
    """Only the last sentence is in it: the dictionary is made anew (reset) inside the loop. Make
    the empty vocab once, before the loop."""
    return reference.build_vocab(sentences[-1:])


@build_vocab.mistake
def first_sentence_skipped(sentences):
    """The first sentence is skipped: the loop starts at index 1. Start at 0, or loop over the
    sentences themselves."""
    return dict(zip(dict.fromkeys(" ".join(sentences[1:]).split()), range(99), strict=False))


@build_vocab.mistake
def last_sentence_skipped(sentences):
    """The last sentence is skipped: the loop ends one too early. Loop over all sentences."""
    return dict(zip(dict.fromkeys(" ".join(sentences[:-1]).split()), range(99), strict=False))


@build_vocab.mistake
def ids_to_tokens(sentences):
    """The dictionary maps ids to tokens, {0: "word"}. It must map each token to its id: swap key
    and value."""
    return {i: token for token, i in reference.build_vocab(sentences).items()}


@build_vocab.mistake
def a_list_of_tokens(sentences):
    """It returns a list of the tokens. Return a dictionary that maps each token to its id."""
    return list(reference.build_vocab(sentences))


@build_vocab.mistake
def a_sorted_list_of_tokens(sentences):
    """It returns a sorted list of the tokens. Return a dictionary that maps each token to its
    id."""
    return sorted(reference.build_vocab(sentences))


@build_vocab.mistake
def positions_of_last_appearance(sentences):
    """The id is the position of the token in the text, and a word that comes again overwrites its
    id, so that ids are missing (gaps). Number only the distinct tokens: skip those already in
    vocab."""
    return {token: i for i, token in enumerate(" ".join(sentences).split())}


@build_vocab.mistake
def positions_of_first_appearance(sentences):
    """The counter goes on at every token, also at those already known, so that ids are missing
    (gaps). Add 1 only for a new token: use len(vocab)."""
    vocab = {}
    for i, token in enumerate(" ".join(sentences).split()):
        vocab.setdefault(token, i)
    return vocab


@build_vocab.mistake
def renumbered_when_seen_again(sentences):
    """A token that comes again gets a new id, so that ids are used twice or left out (duplicate
    ids). Check first whether it is already in vocab: if token not in vocab."""
    vocab = {}
    for token in " ".join(sentences).split():
        vocab[token] = len(vocab)
    return vocab


@build_vocab.mistake
def places_in_the_sorted_list(sentences):
    """The tokens are sorted, but those that come again are counted again, so ids are left out. Take
    each token once: sorted(set(tokens))."""
    return {token: i for i, token in enumerate(sorted(" ".join(sentences).split()))}


@build_vocab.mistake
def sorted_in_each_sentence(sentences):
    """The ids start again at 0 in every sentence, so different words share an id (duplicate ids).
    Gather the tokens of all sentences first, then sort and number them."""
    vocab = {}
    for sentence in sentences:
        for i, token in enumerate(sorted(set(sentence.split()))):
            vocab[token] = i
    return vocab


@build_vocab.mistake
def ids_restart_in_each_sentence(sentences):
    """The ids start again at 0 in every sentence, so different words share an id (duplicate ids).
    Number on over all sentences: the counter must not be reset."""
    vocab = {}
    for sentence in sentences:
        for i, token in enumerate(dict.fromkeys(sentence.split())):
            vocab.setdefault(token, i)
    return vocab


@build_vocab.mistake
def positions_in_the_sentence(sentences):
    """The id is the position in the sentence, which restarts at 0 in every sentence, so different
    words share an id. Give each distinct token of all sentences its own id."""
    return {token: i for s in sentences for i, token in enumerate(s.split())}


@build_vocab.mistake
def positions_in_its_first_sentence(sentences):
    """The id is the position in the sentence where the token first appears, which restarts at 0 in
    every sentence, so different words share an id. Number on over all sentences."""
    vocab = {}
    for sentence in sentences:
        for i, token in enumerate(sentence.split()):
            vocab.setdefault(token, i)
    return vocab


@build_vocab.mistake
def later_sentences_overwrite(sentences):
    """Each sentence is numbered from 0 by itself, and its ids overwrite those of earlier sentences.
    Number on over all sentences together."""
    vocab = {}
    for sentence in sentences:
        vocab.update(reference.build_vocab([sentence]))
    return vocab


@build_vocab.mistake
def all_the_same_id(sentences):
    """Every token gets the same id, 0: the counter never grows. Add 1 for each new token, or use
    len(vocab)."""
    return dict.fromkeys(" ".join(sentences).split(), 0)


@build_vocab.mistake
def numbers_of_the_sentences(sentences):
    """The value is the number of the sentence, so all tokens of a sentence share an id: enumerate
    runs over the sentences. Number the distinct tokens: use len(vocab)."""
    return {token: i for i, sentence in enumerate(sentences) for token in sentence.split()}


@build_vocab.mistake
def counts_instead_of_ids(sentences):
    """The values are counts: how often each token comes. They must be ids: number the distinct
    tokens 0 … V-1."""
    return dict(Counter(" ".join(sentences).split()))


@build_vocab.mistake
def counts_less_one(sentences):
    """Each token has a counter of its own, which grows when the token comes again: the values are
    counts, how often it came before. They must be ids: number the distinct tokens 0 … V-1."""
    return {token: n - 1 for token, n in Counter(" ".join(sentences).split()).items()}


@build_vocab.mistake
def lengths_instead_of_ids(sentences):
    """The values are the lengths of the words. They must be ids: number the distinct tokens 0 …
    V-1."""
    return {token: len(token) for token in " ".join(sentences).split()}


@build_vocab.mistake
def whole_sentences(sentences):
    """The keys are whole sentences. Split each sentence into its words first: sentence.split()."""
    return {sentence: i for i, sentence in enumerate(dict.fromkeys(sentences))}


@build_vocab.mistake
def lower_cased(sentences):
    """The tokens are lower-cased, so "Tea" and "tea" become one. Take tokens as they are: leave out
    lower()."""
    return reference.build_vocab([sentence.lower() for sentence in sentences])


@build_vocab.mistake
def punctuation_split_off(sentences):
    """Punctuation marks are split off as tokens of their own, as tokenize does. Here only white
    space separates tokens: use split()."""
    return reference.build_vocab([" ".join(reference.tokenize(s, lower=False)) for s in sentences])


@build_vocab.mistake
def tokenized(sentences):
    """The sentences are tokenized: lower-cased, and punctuation marks split off. Here only white
    space separates tokens, and capitals stay: use split()."""
    return reference.build_vocab([" ".join(reference.tokenize(s)) for s in sentences])


@build_vocab.mistake
def punctuation_dropped(sentences):
    """The punctuation marks are stripped from the words. White space alone separates tokens:
    "please." keeps its full stop."""
    cleaned = ["".join(c if c.isalnum() else " " for c in s) for s in sentences]
    return reference.build_vocab(cleaned)


@build_vocab.mistake
def cleaned_and_lower_cased(sentences):
    """The words are lower-cased and their punctuation marks dropped. Take tokens as white space
    separates them, unchanged."""
    cleaned = ["".join(c if c.isalnum() else " " for c in s.lower()) for s in sentences]
    return reference.build_vocab(cleaned)


@build_vocab.mistake
def split_at_single_spaces(sentences):
    """split(" ") cuts at every single space, so double spaces leave an empty token, and a line
    break or a tab does not separate. Use split() without an argument."""
    tokens = [token for sentence in sentences for token in sentence.split(" ")]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


@build_vocab.mistake
def spaces_only_without_empty_tokens(sentences):
    """Only spaces separate tokens here, not a line break or a tab. All white space does: use
    split() without an argument."""
    tokens = [token for s in sentences for token in s.split(" ") if token]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


@build_vocab.mistake
def sentences_glued_together(sentences):
    """The last word of a sentence is glued to the first of the next: "".join(sentences) puts no
    space between them. Join with a space, " ".join, or split each sentence by itself."""
    return reference.build_vocab(["".join(sentences)])


@build_vocab.mistake
def one_letter_words_missing(sentences):
    """Words of a single letter are missing. Every token counts, short ones too."""
    tokens = [token for token in " ".join(sentences).split() if len(token) > 1]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


@build_vocab.mistake
def only_tokens_that_repeat(sentences):
    """Only tokens that come more than once are in it. Every distinct token needs an id, rare ones
    too."""
    counts = Counter(" ".join(sentences).split())
    return {token: i for i, token in enumerate(t for t in counts if counts[t] > 1)}


@build_vocab.mistake
def only_tokens_seen_once(sentences):
    """Tokens that come more than once are missing. Every distinct token needs an id, once."""
    counts = Counter(" ".join(sentences).split())
    return {token: i for i, token in enumerate(t for t in counts if counts[t] == 1)}


@build_vocab.mistake
def last_word_missing(sentences):
    """The last word of each sentence is missing: the loop ends one too early. Read all tokens."""
    tokens = [token for sentence in sentences for token in sentence.split()[:-1]]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


@build_vocab.mistake
def first_word_missing(sentences):
    """The first word of each sentence is missing: the loop starts at 1 instead of 0. Read all
    tokens."""
    tokens = [token for sentence in sentences for token in sentence.split()[1:]]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def special_tokens_added(number: int) -> None:
    """Register a vocabulary with so many special tokens, in front or at the end."""

    def special_token_added(sentences):
        """A special token such as <unk> or <pad> is added. Only the tokens of the sentences get an
        id."""
        return reference.build_vocab([*(f"<{i}>" for i in range(number)), *sentences])

    if number > 1:
        special_token_added.__name__ = f"{number}_special_tokens_added"
        special_token_added.__doc__ = """Special tokens such as <pad> and <unk> are added. Only the
        tokens of the sentences get an id."""
    build_vocab.mistake(special_token_added)


for number in (1, 2, 3, 4):
    special_tokens_added(number)


@build_vocab.mistake
def an_empty_token_added(sentences):
    """There is an empty token, "". Leave it out: split() without an argument gives none."""
    tokens = " ".join(sentences).split()
    return {token: i for i, token in enumerate(dict.fromkeys(["", *tokens]))}


@build_vocab.mistake
def ids_as_text(sentences):
    """The ids are texts, "0" instead of 0. An id is a whole number."""
    return {token: str(i) for token, i in reference.build_vocab(sentences).items()}


@build_vocab.mistake
def tokens_of_earlier_calls(sentences):
    """Tokens of earlier calls are still in it: a global dictionary, or a default argument such as
    vocab={}, is kept from call to call. Make an empty vocab inside the function."""
    calls = [probe.args[0] for probe in build_vocab.probes]  # pure, so that it can be run again
    so_far = calls[: calls.index(sentences) + 1]
    return reference.build_vocab([sentence for call in so_far for sentence in call])


@build_vocab.mistake
def arbitrary_order(sentences):
    """The ids are in no order: a set has an arbitrary order, another one in every run of Python.
    Keep the order of first appearance, or sort: sorted(set(…))."""
    tokens = list(reference.build_vocab(sentences))
    return {token: i for i, token in enumerate(tokens[1::2] + tokens[::2])}


@build_vocab.mistake
def reversed_order(sentences):
    """The order of the ids is reversed. Number the tokens in order of first appearance, or sorted,
    from 0 upwards."""
    tokens = list(reference.build_vocab(sentences))
    return {token: i for i, token in enumerate(reversed(tokens))}


@build_vocab.mistake
def most_frequent_first(sentences):
    """The ids are in order of frequency (most_common). Number the tokens in order of first
    appearance, or sorted."""
    ranked = Counter(" ".join(sentences).split()).most_common()
    return {token: i for i, (token, _) in enumerate(ranked)}


@build_vocab.mistake
def order_of_last_appearance(sentences):
    """The ids are in order of last appearance. A token keeps the id it got when it first
    appeared."""
    tokens = " ".join(sentences).split()
    return {token: i for i, token in enumerate([*dict.fromkeys(tokens[::-1])][::-1])}


@build_vocab.mistake
def order_of_length(sentences):
    """The ids are in order of the words' length. Number the tokens in order of first appearance, or
    sorted."""
    tokens = sorted(reference.build_vocab(sentences), key=len)
    return {token: i for i, token in enumerate(tokens)}


# ---------------------------------------------------------------- one_hot

one_hot = Exercise(
    reference.one_hot,
    notebook="01",
    level=2,
    minutes=10,
    task="Write each id as a row with a single 1, but without np.eye and without comparing with "
    "np.arange: begin with zeros and set ones. It must work for one sentence, a batch, and any "
    "further axes in front.",
    hints=(
        "Which axis is new, how long is it, and in which of its places stands the 1 of an id?",
        "Zeros of shape ids.shape + (vocab_size,). To set a 1 per row, flatten all axes but the "
        "last, pair row numbers with ids, and restore the shape; or use np.put_along_axis.",
        "`out = np.zeros((*ids.shape, vocab_size))`, then `np.put_along_axis(out, ids[..., "
        "None], 1, axis=-1)`, then `return out`",
    ),
    whole_numbers=True,
)
one_hot.probe("three ids of a vocabulary of five", np.array([2, 0, 3]), 5)
one_hot.probe("an id that comes twice", np.array([1, 3, 1, 2]), 5)
one_hot.probe("a batch of two sentences", np.array([[2, 0, 1], [3, 3, 1]]), 5)
one_hot.probe("as many sentences as tokens", np.array([[1, 4, 1], [0, 2, 3], [4, 2, 0]]), 6)
one_hot.probe("as many tokens as words", np.array([1, 2, 3, 0]), 4)
one_hot.probe("two axes in front", rng.integers(0, 6, size=(2, 3, 4)), 7)
one_hot.probe("a single token", np.array([2]), 4)
one_hot.probe("the last word of the vocabulary", np.array([4, 0]), 5)
one_hot.probe("fifty tokens of thirty words", rng.integers(0, 30, size=50), 30)


def hot(ids: np.ndarray, size: int) -> np.ndarray:
    """One-hot rows; an id outside gives a row of zeros."""
    return (np.asarray(ids)[..., None] == np.arange(size)).astype(np.float32)


@one_hot.mistake
def ones_in_every_row(ids, vocab_size):
    """Every row holds the ones of all tokens. Either out[:, ids] = 1 set these columns in every
    row, or [row] * T repeated the same list object. Each row needs its own single 1: a fresh row (a
    copy) for each token, or rows and columns indexed together, out[np.arange(T), ids] = 1."""
    out = np.zeros((*ids.shape, vocab_size))
    out[..., ids.ravel()] = 1
    return out


@one_hot.mistake
def ones_of_the_whole_sentence(ids, vocab_size):
    """Every row holds the ones of its whole sentence. Either whole columns were set in every row,
    or [row] * T repeated the same list object. Each row needs its own single 1: a fresh row (a
    copy) for each token, or rows and columns indexed together."""
    out = hot(ids, vocab_size).max(axis=-2, keepdims=True)
    return np.repeat(out, ids.shape[-1], axis=-2)


@one_hot.mistake
def width_from_the_largest_id(ids, vocab_size):
    """The width, the number of columns, comes from the largest id in these ids instead of
    vocab_size (F.one_hot guesses it too, without num_classes). It must be vocab_size, whatever the
    sentence holds."""
    return hot(ids, ids.max() + 1)


@one_hot.mistake
def width_one_too_small(ids, vocab_size):
    """The width is the largest id: one column is missing, as ids count from 0. The number of
    columns is vocab_size."""
    return hot(ids, ids.max())


@one_hot.mistake
def a_column_too_many(ids, vocab_size):
    """There is one column too many: vocab_size + 1. The ids 0 … V-1 need exactly vocab_size
    columns."""
    return hot(ids, vocab_size + 1)


@one_hot.mistake
def a_column_too_few(ids, vocab_size):
    """There is one column too few: vocab_size - 1, and the last word has none. The ids 0 … V-1 need
    vocab_size columns."""
    return hot(ids, vocab_size - 1)


@one_hot.mistake
def ids_renumbered(ids, vocab_size):
    """The ids are renumbered: np.unique relabels those of this sentence as 0, 1, 2 …, and there are
    as many columns as different words. Column j must mean word j in every sentence."""
    values, places = np.unique(ids, return_inverse=True)
    return hot(places.reshape(ids.shape), len(values))


@one_hot.mistake
def ids_renumbered_in_full_width(ids, vocab_size):
    """The ids are renumbered: np.unique relabels those of this sentence as 0, 1, 2 … Column j must
    mean word j in every sentence: use the ids themselves."""
    _, places = np.unique(ids, return_inverse=True)
    return hot(places.reshape(ids.shape), vocab_size)


@one_hot.mistake
def one_row_per_different_word(ids, vocab_size):
    """There is a row for each different word, sorted, instead of one for each token. A token that
    comes again needs its row again, in the order of the sentence."""
    return hot(np.unique(ids), vocab_size)


@one_hot.mistake
def rows_sorted_by_id(ids, vocab_size):
    """The rows are in the order of the ids. Keep the order of the tokens in the sentence."""
    return hot(np.sort(ids, axis=-1), vocab_size)


@one_hot.mistake
def words_as_rows(ids, vocab_size):
    """Rows and columns are swapped, (…, V, T): it is transposed. Tokens are the rows, words the
    columns, (…, T, V)."""
    return np.swapaxes(hot(ids, vocab_size), -1, -2)


@one_hot.mistake
def columns_of_the_unit_matrix(ids, vocab_size):
    """The words are the first axis: columns are taken instead of rows, as by np.eye(V)[:, ids]. The
    words are the last axis, (…, T, V)."""
    return np.moveaxis(hot(ids, vocab_size), -1, 0)


@one_hot.mistake
def one_place_too_far_to_the_left(ids, vocab_size):
    """The 1 stands one place too far left: ids - 1 is used as if ids counted from 1. Id 0 belongs
    to column 0."""
    return hot((ids - 1) % vocab_size, vocab_size)


@one_hot.mistake
def columns_counted_from_one(ids, vocab_size):
    """The columns are counted from 1, as by np.arange(1, V + 1): the 1 stands one place too far
    left, and the rows of id 0 are all zero. Ids start at 0: compare with np.arange(V)."""
    return hot(ids - 1, vocab_size)


@one_hot.mistake
def one_place_too_far_to_the_right(ids, vocab_size):
    """The 1 stands one place too far right: id + 1. Columns count from 0: id i belongs to column
    i."""
    return hot((ids + 1) % vocab_size, vocab_size)


@one_hot.mistake
def id_zero_left_out(ids, vocab_size):
    """The rows of id 0 are all zero, as if it were padding or false. Id 0 is a word like the
    others: its 1 stands in column 0."""
    return hot(np.where(ids == 0, -1, ids), vocab_size)


@one_hot.mistake
def counted_from_the_right(ids, vocab_size):
    """The columns are reversed: the 1 stands in place V - 1 - id. Id 0 belongs to the first
    column."""
    return hot(ids, vocab_size)[..., ::-1]


@one_hot.mistake
def order_of_tokens_reversed(ids, vocab_size):
    """The order of the rows is reversed. Row t belongs to token t."""
    return hot(ids, vocab_size)[..., ::-1, :]


@one_hot.mistake
def summed_over_the_tokens(ids, vocab_size):
    """The rows of a sentence are added up: one row of counts. Keep one row for each token, (…, T,
    V)."""
    return hot(ids, vocab_size).sum(axis=-2)


@one_hot.mistake
def one_row_for_the_sentence(ids, vocab_size):
    """All ones of a sentence stand in one row (multi-hot). Keep one row for each token, (…, T, V):
    index rows and columns together."""
    return hot(ids, vocab_size).max(axis=-2)


@one_hot.mistake
def one_row_per_sentence_of_a_batch(ids, vocab_size):
    """For a batch there is one row for each sentence, with all its ones: the token axis is lost, as
    the loop runs over the first axis. Every id needs its own row: any axes may stand in front."""
    out = np.zeros((len(ids), vocab_size))
    for row, i in zip(out, ids, strict=True):
        row[i] = 1
    return out


@one_hot.mistake
def id_in_place_of_one(ids, vocab_size):
    """The row holds the id itself instead of 1. Set a 1 in the column of the id."""
    return hot(ids, vocab_size) * ids[..., None]


@one_hot.mistake
def zeros_and_ones_swapped(ids, vocab_size):
    """Zeros and ones are inverted: a single 0 among ones. Begin with np.zeros and set a 1 (==
    instead of !=)."""
    return 1 - hot(ids, vocab_size)


@one_hot.mistake
def truth_values(ids, vocab_size):
    """The rows hold True and False. Turn them into numbers: .astype(np.float32)."""
    return ids[..., None] == np.arange(vocab_size)


@one_hot.mistake
def ones_up_to_the_id(ids, vocab_size):
    """All places up to the id are 1 (<= or a slice instead of ==). Only the column of the id is
    1."""
    return (np.arange(vocab_size) <= ids[..., None]).astype(np.float32)


@one_hot.mistake
def ones_from_the_id_on(ids, vocab_size):
    """All places from the id on are 1 (>= or a slice instead of ==). Only the column of the id is
    1."""
    return (np.arange(vocab_size) >= ids[..., None]).astype(np.float32)


@one_hot.mistake
def ones_before_the_id(ids, vocab_size):
    """All places before the id are 1, as with a slice [:id]. Only the column of the id is 1."""
    return (np.arange(vocab_size) < ids[..., None]).astype(np.float32)


@one_hot.mistake
def positions_instead_of_ids(ids, vocab_size):
    """The 1 of token t stands in column t: the ids are ignored, as by np.eye(T, V). Its column is
    the id of the token."""
    places = np.broadcast_to(np.arange(ids.shape[-1]), ids.shape)
    return hot(places, vocab_size)


@one_hot.mistake
def rows_all_ones(ids, vocab_size):
    """Whole rows are set to 1, as by out[t] = 1: the column is missing. Set out[t, id] = 1."""
    return np.ones((*ids.shape, vocab_size))


@one_hot.mistake
def rows_numbered_by_ids(ids, vocab_size):
    """It is a V × V table with whole rows set, as by out[ids] = 1. The row is the token's place,
    the column its id: out[np.arange(T), ids] = 1."""
    out = np.zeros((vocab_size, vocab_size))
    out[ids] = 1
    return out


@one_hot.mistake
def the_unit_matrix(ids, vocab_size):
    """It is the unit matrix, np.eye(V), with a row for each word of the vocabulary. Take one row
    for each token: index with the ids."""
    return np.eye(vocab_size)


@one_hot.mistake
def nothing_set(ids, vocab_size):
    """All numbers are 0: no 1 was set. A copy may have been changed, or == may stand for =."""
    return np.zeros((*ids.shape, vocab_size))


@one_hot.mistake
def only_the_first_token(ids, vocab_size):
    """Only the first token has its 1, as if the return stood in the loop. Set one for every
    token."""
    out = hot(ids, vocab_size)
    out[..., 1:, :] = 0
    return out


@one_hot.mistake
def other_tokens_forgotten(ids, vocab_size):
    """Only the last token has its 1: the zeros are made anew inside the loop. Make them once,
    before the loop."""
    out = hot(ids, vocab_size)
    out[..., :-1, :] = 0
    return out


@one_hot.mistake
def last_token_forgotten(ids, vocab_size):
    """The last token has no 1: the loop stops one too early. Go over all T tokens."""
    out = hot(ids, vocab_size)
    out[..., -1, :] = 0
    return out


@one_hot.mistake
def first_token_forgotten(ids, vocab_size):
    """The first token has no 1: the loop starts at 1 instead of 0. Go over all T tokens."""
    out = hot(ids, vocab_size)
    out[..., 0, :] = 0
    return out


@one_hot.mistake
def each_word_marked_once(ids, vocab_size):
    """A word that comes again has no 1 the second time, as if only its first place were looked up.
    Set a 1 for every token, repeated or not."""
    out = hot(ids, vocab_size)
    return out * (out.cumsum(axis=-2) == 1)


@one_hot.mistake
def ones_pile_up(ids, vocab_size):
    """The ones of earlier tokens stay in later rows: the same row is used again without being
    cleared. Make a fresh row (a copy) of zeros for each token."""
    return np.maximum.accumulate(hot(ids, vocab_size), axis=-2)


@one_hot.mistake
def batch_axes_flattened(ids, vocab_size):
    """For a batch the leading axes are flattened, (B·T, V). Restore them: reshape to ids.shape +
    (vocab_size,), (B, T, V)."""
    return hot(ids.reshape(-1), vocab_size)


@one_hot.mistake
def other_sentences_forgotten(ids, vocab_size):
    """Only the first sentence of a batch is returned. Keep all axes in front: (…, T) gives (…, T,
    V)."""
    return hot(ids[0] if ids.ndim > 1 else ids, vocab_size)


@one_hot.mistake
def ids_of_the_first_sentence(ids, vocab_size):
    """All sentences of a batch get the rows of the first one. Each sentence has its own ids."""
    first = ids.reshape(-1, ids.shape[-1])[0]
    return hot(np.broadcast_to(first, ids.shape), vocab_size)


@one_hot.mistake
def sentences_and_tokens_swapped(ids, vocab_size):
    """The batch and the tokens are swapped, as if the ids had been transposed. Keep the order of
    the axes: (B, T) gives (B, T, V)."""
    return hot(np.swapaxes(ids, -1, -2) if ids.ndim > 1 else ids, vocab_size)


@one_hot.mistake
def a_batch_added(ids, vocab_size):
    """A single sentence comes out with an extra axis, (1, T, V). Add no axis in front: (T,) gives
    (T, V)."""
    out = hot(ids, vocab_size)
    return out[None] if ids.ndim == 1 else out


@one_hot.mistake
def extra_axis(ids, vocab_size):
    """There is an axis of length 1 too many: (…, T, 1, V). Leave out ids[..., None], or the last
    comparison's extra axis."""
    return hot(ids[..., None], vocab_size)


@one_hot.mistake
def as_wide_as_long(ids, vocab_size):
    """The width is the number of tokens T instead of vocab_size. The columns are the words of the
    vocabulary."""
    return hot(ids, ids.shape[-1])


@one_hot.mistake
def reshaped_instead_of_transposed(ids, vocab_size):
    """The rows were made as columns, (V, …), and then reshaped to (…, V), which mixes them up. Move
    the axis instead: transpose, or np.moveaxis."""
    return np.moveaxis(hot(ids, vocab_size), -1, 0).reshape(*ids.shape, vocab_size)


@one_hot.mistake
def flat_places(ids, vocab_size):
    """The ones stand at the ids of the flattened array, as with np.put or out.flat[ids]: all in the
    first rows. Set them row by row: out[t, id]."""
    out = np.zeros((*ids.shape, vocab_size))
    np.put(out, ids, 1)
    return out


@one_hot.mistake
def ids_returned(ids, vocab_size):
    """These are the ids, unchanged. Write each id as a row of vocab_size places with a single 1."""
    return ids.copy()


@one_hot.mistake
def ones_shared_out(ids, vocab_size):
    """Each row is divided by something, so that its 1 is smaller. The rows need no normalisation: a
    single 1 in each."""
    return hot(ids, vocab_size) / ids.shape[-1]


@one_hot.mistake
def minus_one_elsewhere(ids, vocab_size):
    """The other places hold -1. They must be 0."""
    return 2 * hot(ids, vocab_size) - 1


@one_hot.mistake
def sentences_on_top_of_each_other(ids, vocab_size):
    """All sentences of a batch are written into one table (T, V): the batch axis is lost. Any axes
    may stand in front: (B, T) gives (B, T, V)."""
    out = hot(ids, vocab_size)
    return out.reshape(-1, *out.shape[-2:]).max(axis=0)


@one_hot.mistake
def ones_of_all_sentences(ids, vocab_size):
    """In a batch, every sentence holds the ones of all sentences: the index of the batch is
    missing. Index batch, row and column together, or flatten the leading axes first."""
    out = np.zeros((*ids.shape, vocab_size))
    out[..., np.arange(ids.shape[-1]), ids] = 1
    return out


@one_hot.mistake
def single_sentences_by_index(ids, vocab_size):
    """It works for a single sentence only: len(ids), or out[np.arange(T), ids], does not fit a
    batch, where ids has shape (B, T). Flatten the leading axes first and restore them, or use
    np.put_along_axis."""
    out = np.zeros((len(ids), vocab_size))
    out[np.arange(len(ids)), ids] = 1
    return out


@one_hot.mistake
def single_sentences_only(ids, vocab_size):
    """It works for a single sentence only and fails for a batch, where each id in the loop is a
    whole row of ids. Loop over ids.ravel() and restore the shape, or use np.put_along_axis."""
    return np.array([[float(i == j) for j in range(vocab_size)] for i in ids])


@one_hot.mistake
def tokens_of_the_batch_as_columns(ids, vocab_size):
    """The tokens are the columns, (V, T), and a batch is flattened. Tokens are rows: the result is
    (…, T, V)."""
    return hot(ids.ravel(), vocab_size).T


# ---------------------------------------------------------------- embed


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


embed = Exercise(
    reference.embed,
    notebook="01",
    level=1,
    minutes=5,
    task="Fetch the embedding of each token without a product: find the ids again in the one-hot "
    "rows, and look up these rows of the table.",
    hints=(
        "In which place of a one-hot row is its largest number?",
        "argmax along the last axis gives the ids, (…, T). Index the table with them.",
        "`return table[onehot.argmax(axis=-1)]`",
    ),
)
pencil = np.array([[0.3, -1.2], [0.8, 0.5], [-0.6, 1.1], [-0.5, 0.9]], dtype=np.float32)
embed.probe("three tokens", hot([2, 0, 3], 4), pencil)
embed.probe("a token that comes twice", hot([1, 3, 1, 1, 0], 4), pencil)
embed.probe("a batch of two", hot([[2, 0, 3], [1, 1, 2]], 4), pencil)
embed.probe("as many sentences as tokens", hot(rng.integers(0, 5, size=(3, 3)), 5), normal(5, 4))
embed.probe("as many features as words", hot([[1, 3, 0], [2, 2, 1]], 4), normal(4, 4))
embed.probe("as many tokens as words", hot([1, 2, 3, 0], 4), normal(4, 3))
embed.probe("tokens, words and features alike", hot([1, 1, 3, 0], 4), normal(4, 4))
embed.probe("more features than words", hot([2, 0], 3), normal(3, 8))
embed.probe("two axes in front", hot(rng.integers(0, 6, size=(2, 3, 4)), 6), normal(6, 5))
embed.probe("a single token", hot([1], 3), normal(3, 2))


def looked_up(onehot: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The rows of the table."""
    return table[onehot.argmax(axis=-1)]


@embed.mistake
def table_transposed(onehot, table):
    """The table is transposed, table.T. It has one row per word already, (V, D): multiply with the
    table as it is."""
    return onehot @ table.T


@embed.mistake
def columns_of_the_table(onehot, table):
    """Columns of the table are taken, table[:, ids]. A word is a row of the table: table[ids]."""
    return np.moveaxis(table[:, onehot.argmax(axis=-1)], 0, -1)


@embed.mistake
def columns_left_in_front(onehot, table):
    """Columns of the table are taken, table[:, ids], and the features come first, (D, …, T). A word
    is a row of the table: table[ids]."""
    return table[:, onehot.argmax(axis=-1)]


@embed.mistake
def features_before_tokens(onehot, table):
    """The result is transposed, (…, D, T). Each token is a row: (…, T, D)."""
    return np.swapaxes(looked_up(onehot, table), -1, -2)


@embed.mistake
def factors_swapped(onehot, table):
    """The factors are swapped: table @ onehot. The order matters: onehot @ table, so that (T, V)
    meets (V, D)."""
    return table @ onehot


@embed.mistake
def onehot_transposed(onehot, table):
    """The one-hot rows are transposed. Their last axis, the words, must meet the rows of the table:
    onehot @ table."""
    return np.swapaxes(onehot, -1, -2) @ table


@embed.mistake
def argmax_along_the_tokens(onehot, table):
    """argmax runs along the wrong axis, the tokens. The 1 of each row is found along the last axis,
    the words: axis=-1."""
    return table[onehot.argmax(axis=-2)]


@embed.mistake
def argmax_along_the_first_axis(onehot, table):
    """argmax runs along the first axis, axis=0. The 1 of each row is found along the last axis, the
    words: axis=-1."""
    return table[onehot.argmax(axis=0)]


@embed.mistake
def argmax_of_everything(onehot, table):
    """argmax without an axis gives a single number for the whole array, so there is one row only.
    Look for the 1 in each row: axis=-1."""
    return table[onehot.argmax()]


@embed.mistake
def smallest_place(onehot, table):
    """argmin finds a 0 of each row. The id is the place of the 1: argmax."""
    return table[onehot.argmin(axis=-1)]


@embed.mistake
def zeros_and_ones_as_ids(onehot, table):
    """The zeros and ones themselves are used as ids, table[onehot]. Multiply onehot @ table, or
    find the ids with argmax first."""
    return table[onehot.astype(int)]


@embed.mistake
def place_by_place(onehot, table):
    """The product is place by place (*), not a matrix product. Use @: rows of onehot times the
    table."""
    return onehot * table


@embed.mistake
def not_added_up(onehot, table):
    """Each place is multiplied with its row of the table, but the rows are not added up, (…, T, V,
    D). Sum over the words, axis=-2, or use @."""
    return onehot[..., None] * table


@embed.mistake
def added_over_the_features(onehot, table):
    """The sum runs over the features. Sum over the words, axis=-2: each token needs its D
    numbers."""
    return (onehot[..., None] * table).sum(axis=-1)


@embed.mistake
def largest_instead_of_sum(onehot, table):
    """The largest product is taken instead of the sum of the products, so negative numbers become
    0. Add the products over the words."""
    return (onehot[..., None] * table).max(axis=-2)


@embed.mistake
def mean_instead_of_sum(onehot, table):
    """The mean over the words is taken, so that everything is V times too small. Add the products
    over the words: the sum."""
    return looked_up(onehot, table) / len(table)


@embed.mistake
def tokens_added_up(onehot, table):
    """The embeddings of a sentence are added up into one vector: the token axis is lost. Keep one
    row per token, (…, T, D)."""
    return looked_up(onehot, table).sum(axis=-2)


@embed.mistake
def tokens_averaged(onehot, table):
    """The embeddings of a sentence are averaged into one vector: the token axis is lost. Keep one
    row per token, (…, T, D)."""
    return looked_up(onehot, table).mean(axis=-2)


@embed.mistake
def rows_in_sorted_order(onehot, table):
    """The rows are sorted by id. Keep the order of the tokens."""
    return table[np.sort(onehot.argmax(axis=-1), axis=-1)]


@embed.mistake
def each_word_once(onehot, table):
    """There is one row for each different word, in the order of the table. Fetch a row for each
    token, repeated or not, in the order of the sentence."""
    return table[np.unique(onehot.argmax(axis=-1))]


@embed.mistake
def row_before_the_right_one(onehot, table):
    """The row before the right one is fetched: ids - 1, as if ids counted from 1. Id 0 is row 0 of
    the table."""
    return table[onehot.argmax(axis=-1) - 1]


@embed.mistake
def row_after_the_right_one(onehot, table):
    """The row after the right one is fetched: ids + 1. Id i is row i of the table, counted from
    0."""
    return table[(onehot.argmax(axis=-1) + 1) % len(table)]


@embed.mistake
def counted_from_the_end(onehot, table):
    """The table is read from its end: row V - 1 - id. Id i is row i, counted from the top."""
    return table[::-1][onehot.argmax(axis=-1)]


@embed.mistake
def tokens_reversed(onehot, table):
    """The order of the tokens is reversed. Row t belongs to token t."""
    return looked_up(onehot, table)[..., ::-1, :]


@embed.mistake
def features_reversed(onehot, table):
    """The order of the features is reversed. Keep the columns of the table as they are."""
    return looked_up(onehot, table)[..., ::-1]


@embed.mistake
def first_rows_of_the_table(onehot, table):
    """Token t gets row t of the table: the one-hot rows are ignored. Its row is that of its id."""
    shape = (*onehot.shape[:-1], table.shape[1])
    return np.broadcast_to(table[np.arange(onehot.shape[-2]) % len(table)], shape)


@embed.mistake
def the_whole_table(onehot, table):
    """It is the whole table. Pick one row for each token."""
    return table.copy()


@embed.mistake
def onehot_returned(onehot, table):
    """It is the one-hot input, unchanged: the table is not used. Multiply by the table."""
    return onehot.copy()


@embed.mistake
def ids_only(onehot, table):
    """These are the ids of the tokens. Fetch the rows of the table with them: table[ids]."""
    return onehot.argmax(axis=-1)


@embed.mistake
def batch_flattened(onehot, table):
    """For a batch the leading axes are flattened, (B·T, D). Keep them: (B, T, V) gives (B, T,
    D)."""
    return looked_up(onehot, table).reshape(-1, table.shape[1])


@embed.mistake
def token_places_of_a_batch(onehot, table):
    """np.nonzero(onehot)[1] gives the ids only for a single sentence. In a batch its second array
    holds the places of the tokens: take the last one, and restore (B, T)."""
    return table[np.nonzero(onehot)[1]]


@embed.mistake
def rest_of_the_batch_missing(onehot, table):
    """Only the first sentence of a batch is looked up. Keep all axes in front: (…, T, V) gives (…,
    T, D)."""
    return looked_up(onehot[0] if onehot.ndim > 2 else onehot, table)


@embed.mistake
def first_sentence_for_all(onehot, table):
    """All sentences of a batch get the embeddings of the first one. Each sentence has its own
    ids."""
    first = looked_up(onehot.reshape(-1, *onehot.shape[-2:])[0], table)
    return np.broadcast_to(first, (*onehot.shape[:-1], table.shape[1]))


@embed.mistake
def first_token_for_all(onehot, table):
    """All tokens of a sentence get the row of its first token. Each token has its own id."""
    return np.repeat(looked_up(onehot[..., :1, :], table), onehot.shape[-2], axis=-2)


@embed.mistake
def last_token_only(onehot, table):
    """Only the last token is returned: the result is overwritten in every round of the loop. Keep
    one row per token, (…, T, D)."""
    return looked_up(onehot[..., -1, :], table)


@embed.mistake
def first_token_only(onehot, table):
    """Only the first token is returned: the return stands inside the loop. Keep one row per token,
    (…, T, D)."""
    return looked_up(onehot[..., 0, :], table)


@embed.mistake
def batch_and_tokens_swapped(onehot, table):
    """Batch and tokens are swapped. Keep the order of the axes: (B, T, V) gives (B, T, D)."""
    out = looked_up(onehot, table)
    return np.swapaxes(out, -2, -3) if out.ndim > 2 else out


@embed.mistake
def scaled_by_the_width(onehot, table):
    """The rows are multiplied by √D. The look-up gives them as they are: leave the scale out."""
    return looked_up(onehot, table) * np.sqrt(table.shape[1])


@embed.mistake
def reshaped_to_turn_it_over(onehot, table):
    """The table is transposed, and reshaped until the product fits, which mixes the numbers of
    different words. The table is (V, D) already: onehot @ table, without .T and reshape."""
    return onehot @ table.T.reshape(table.shape)


@embed.mistake
def made_unit_length(onehot, table):
    """The rows are divided by their length (norm). The look-up gives them as they are."""
    rows = looked_up(onehot, table)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@embed.mistake
def turned_into_shares(onehot, table):
    """A softmax is taken of the rows. The look-up gives them as they are."""
    e = np.exp(looked_up(onehot, table))
    return e / e.sum(axis=-1, keepdims=True)


@embed.mistake
def cut_to_whole_numbers(onehot, table):
    """The numbers are cut to whole numbers, as in an array of dtype int. Embeddings are floats."""
    return np.trunc(looked_up(onehot, table))


@embed.mistake
def softmax_of_the_onehot_rows(onehot, table):
    """A softmax is taken of the one-hot rows, so every word has a share in every row of the result.
    They are rows of a single 1 already: onehot @ table."""
    e = np.exp(onehot)
    return e / e.sum(axis=-1, keepdims=True) @ table


@embed.mistake
def stored_as_whole_numbers(onehot, table):
    """The result is an array of whole numbers (dtype int), which cuts the decimals of the table
    off. Embeddings are floats: give the array the dtype of the table."""
    return looked_up(onehot, table).astype(int)


@embed.mistake
def id_zero_as_padding(onehot, table):
    """The token with id 0 gets zeros, as if it were padding. Id 0 is a word like the others: its
    embedding is row 0 of the table."""
    return looked_up(onehot, table) * (onehot[..., :1] == 0)


@embed.mistake
def places_added(onehot, table):
    """Something is added to the rows: the place or the id of the token. The look-up gives the rows
    of the table and nothing else."""
    return looked_up(onehot, table) + np.arange(onehot.shape[-2])[:, None]


@embed.mistake
def joined_to_the_input(onehot, table):
    """The embeddings are joined to the one-hot rows, so the result is too wide. Return the rows of
    the table alone."""
    return np.concatenate([onehot, looked_up(onehot, table)], axis=-1)


@embed.mistake
def argmax_along_the_second_axis(onehot, table):
    """argmax along axis=1 is right for a single sentence only: in a batch, axis 1 is the tokens.
    Count from the end: axis=-1, the words."""
    return table[onehot.argmax(axis=1)]


@embed.mistake
def first_token_of_each_sentence(onehot, table):
    """For a batch there is one row for each sentence: the loop runs over the first axis, and argmax
    without an axis sees a whole sentence. Use argmax(axis=-1) on everything at once."""
    return np.array([table[np.argmax(row)] for row in onehot])


@embed.mistake
def single_sentences_alone(onehot, table):
    """It works for a single sentence only and fails for a batch. Any axes may stand in front, (…,
    T, V): use @, argmax(axis=-1), or "..." in einsum."""
    return np.einsum("tv,vd->td", onehot, table)


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
bag.probe("two axes in front", rng.integers(0, 5, size=(2, 3, 4)), 6)
bag.probe("the first and the last word", np.array([0, 4, 0]), 5)
bag.probe("a long text", rng.integers(0, 9, size=200), 12)


@bag.mistake
def there_or_not(ids, vocab_size):
    """A word that comes again counts once: = 1, or counts[ids] += 1, which adds only once for
    repeated ids. Add 1 for every token: sum the one-hot rows, or use a loop or np.add.at."""
    return hot(ids, vocab_size).max(axis=-2)


@bag.mistake
def words_of_all_sentences_in_every_row(ids, vocab_size):
    """counts[..., ids] += 1 adds only once for repeated ids, and in every row the words of all
    sentences. Add 1 for every token: sum the one-hot rows over the tokens, axis=-2."""
    counts = np.zeros((*ids.shape[:-1], vocab_size))
    counts[..., ids] += 1
    return counts


@bag.mistake
def rows_not_added(ids, vocab_size):
    """These are the one-hot rows, (…, T, V). Add them up over the tokens: sum(axis=-2)."""
    return hot(ids, vocab_size)


@bag.mistake
def added_over_the_words(ids, vocab_size):
    """The sum runs over the words, the last axis, and gives 1 for every token. Sum over the tokens:
    axis=-2."""
    return hot(ids, vocab_size).sum(axis=-1)


@bag.mistake
def added_over_the_first_axis(ids, vocab_size):
    """The sum runs over the first axis, which in a batch is the sentences. Sum over the tokens, the
    last axis but one: axis=-2 instead of axis=0."""
    return hot(ids, vocab_size).sum(axis=0)


@bag.mistake
def added_over_the_second_axis(ids, vocab_size):
    """The sum runs over axis=1, which is the tokens only in a batch. Count from the end:
    axis=-2."""
    return hot(ids, vocab_size).sum(axis=1)


@bag.mistake
def whole_batch_in_one_row(ids, vocab_size):
    """All sentences of a batch are counted together. Each sentence needs its own row, (…, V)."""
    return np.bincount(ids.ravel(), minlength=vocab_size)


@bag.mistake
def whole_batch_in_every_row(ids, vocab_size):
    """Every row holds the counts of the whole batch: the row of counts is shared, or not cleared.
    Begin each sentence with fresh zeros."""
    counts = np.bincount(ids.ravel(), minlength=vocab_size)
    return np.broadcast_to(counts, (*ids.shape[:-1], vocab_size))


@bag.mistake
def as_wide_as_the_largest_id(ids, vocab_size):
    """The width comes from the largest id instead of vocab_size: np.bincount needs
    minlength=vocab_size."""
    return hot(ids, ids.max() + 1).sum(axis=-2)


@bag.mistake
def whole_batch_without_width(ids, vocab_size):
    """np.bincount counts the whole batch together, and is as wide as the largest id. Each sentence
    needs its own row, of width vocab_size (minlength)."""
    return np.bincount(ids.ravel())


@bag.mistake
def shares_instead_of_counts(ids, vocab_size):
    """The counts are divided by the number of tokens: the mean is taken instead of the sum. Return
    the counts."""
    return hot(ids, vocab_size).mean(axis=-2)


@bag.mistake
def only_words_that_come(ids, vocab_size):
    """Only words that come are counted (np.unique). Every word of the vocabulary has its place,
    with 0 if it does not come."""
    return np.unique(ids, return_counts=True)[1]


@bag.mistake
def one_place_too_far_left(ids, vocab_size):
    """The counts stand one place too far left, as if ids counted from 1. Id 0 is counted in place
    0."""
    return hot((ids - 1) % vocab_size, vocab_size).sum(axis=-2)


@bag.mistake
def one_place_too_far_right(ids, vocab_size):
    """The counts stand one place too far right: id + 1. Id 0 is counted in place 0."""
    return hot((ids + 1) % vocab_size, vocab_size).sum(axis=-2)


@bag.mistake
def id_zero_not_counted(ids, vocab_size):
    """Id 0 is not counted, as if it were padding. It is a word like the others."""
    return hot(ids, vocab_size).sum(axis=-2) * (np.arange(vocab_size) > 0)


@bag.mistake
def ids_added_up(ids, vocab_size):
    """The ids themselves are added, id times count. Add 1 for each token."""
    return hot(ids, vocab_size).sum(axis=-2) * np.arange(vocab_size)


@bag.mistake
def axis_kept(ids, vocab_size):
    """The axis of the tokens stays with length 1, (…, 1, V). Leave out keepdims."""
    return hot(ids, vocab_size).sum(axis=-2, keepdims=True)


@bag.mistake
def words_before_sentences(ids, vocab_size):
    """The words come before the sentences, (V, B): it is transposed. The words are the last
    axis."""
    return np.moveaxis(hot(ids, vocab_size).sum(axis=-2), -1, 0)


@bag.mistake
def last_token_not_counted(ids, vocab_size):
    """The last token of each sentence is not counted: the loop stops one too early."""
    return hot(ids[..., :-1], vocab_size).sum(axis=-2)


@bag.mistake
def first_token_not_counted(ids, vocab_size):
    """The first token of each sentence is not counted: the loop starts one too late."""
    return hot(ids[..., 1:], vocab_size).sum(axis=-2)


@bag.mistake
def first_row_of_the_batch_only(ids, vocab_size):
    """Only the first sentence of a batch is counted. Each sentence needs its own row, (…, V)."""
    return hot(ids[0] if ids.ndim > 1 else ids, vocab_size).sum(axis=-2)


@bag.mistake
def only_the_last_token(ids, vocab_size):
    """Only the last token is counted: the zeros are made anew inside the loop. Make them once for
    each sentence."""
    return hot(ids[..., -1], vocab_size)


@bag.mistake
def counted_for_each_token(ids, vocab_size):
    """It tells for each token how often it comes, (…, T). Tell it for each word of the vocabulary,
    (…, V)."""
    return (ids[..., None] == ids[..., None, :]).sum(axis=-1)


@bag.mistake
def counted_so_far(ids, vocab_size):
    """The counts are added up along the tokens (cumsum), one row for each. Only the last row is
    needed: take the sum."""
    return hot(ids, vocab_size).cumsum(axis=-2)


@bag.mistake
def one_place_too_many(ids, vocab_size):
    """There is one place too many: vocab_size + 1. The ids 0 … V-1 need vocab_size places."""
    return hot(ids, vocab_size + 1).sum(axis=-2)


@bag.mistake
def begun_at_one(ids, vocab_size):
    """Every count is 1 too large: it begins at one (np.ones). Begin with zeros."""
    return hot(ids, vocab_size).sum(axis=-2) + 1


@bag.mistake
def repeated_ids_of_a_row_once(ids, vocab_size):
    """For a batch, counts[row] += 1 adds to one row for all sentences, and only once for repeated
    ids. Each sentence needs its own row of counts: sum the one-hot rows over the tokens,
    axis=-2."""
    counts = np.zeros(vocab_size)
    for i in ids:
        counts[i] += 1
    return counts


@bag.mistake
def single_sentences_counted(ids, vocab_size):
    """It works for a single sentence only and fails for a batch, as np.bincount does. Each sentence
    needs its own row: sum the one-hot rows over the tokens, axis=-2."""
    return np.bincount(ids, minlength=vocab_size)


@bag.mistake
def single_sentences_without_width(ids, vocab_size):
    """np.bincount alone is as wide as the largest id, and fails for a batch. It needs
    minlength=vocab_size, and each sentence its own row."""
    return np.bincount(ids)
