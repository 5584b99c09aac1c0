"""Notebook 00: tokens, the table of bigrams, and how well it foresaw a text."""

import re
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from helpers import text as reference
from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(0)

# ---------------------------------------------------------------- tokenize

WORDS_AND_MARKS = r"\w+(?:['’]\w+)*|[^\w\s]"

tokenize = Exercise(
    reference.tokenize,
    notebook="00",
    level=1,
    minutes=5,
    task="Split a sentence into words and punctuation marks. Capitals become small letters, unless "
    "`lower=False`.",
    hints=(
        "What should happen to the full stop that follows the last word?",
        "Find all runs of word characters, or single characters that are neither word characters "
        "nor white space. Then lower each token, if asked to.",
        '`tokens = re.findall(r"' + WORDS_AND_MARKS + '", sentence)`, '
        "then `return [token.lower() for token in tokens] if lower else tokens`",
    ),
    backends=("numpy",),
)
tokenize.probe("three words", "rest on Sunday")
tokenize.probe("a full stop", "A step is a step.")
tokenize.probe("capitals that stay, lower=False", "Today, Ann and ANN rest.", lower=False)
tokenize.probe("marks inside a sentence, and several in a row", "Rest: play, or not?!")
tokenize.probe("an apostrophe inside a word", "It won't stop, isn't it odd.")
tokenize.probe("double spaces and a line break", "one  two\nthree ")
tokenize.probe("digits and letters beyond a to z", "Élan in 42 cafés, über all.")


@tokenize.mistake
def split_at_spaces_only(sentence, lower=True):
    """Punctuation marks stick to the words, as in "step.": split() cuts at white space only. Make
    each punctuation mark a token of its own."""
    tokens = sentence.split()
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def punctuation_dropped(sentence, lower=True):
    """The punctuation marks are missing. They are tokens too: keep each of them as a token."""
    tokens = re.findall(r"\w+(?:'\w+)*", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def word_characters_only(sentence, lower=True):
    """The punctuation marks are missing, and an apostrophe cuts a word in two: \\w+ finds word
    characters only. Keep the marks as tokens, and an apostrophe inside its word."""
    tokens = re.findall(r"\w+", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def cut_at_the_marks(sentence, lower=True):
    """Splitting at everything that is no word character drops the punctuation marks, and leaves
    empty tokens. Find the tokens (re.findall) instead of cutting between them."""
    tokens = re.split(r"\W+", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def spaces_as_tokens(sentence, lower=True):
    """The white space between the words is among the tokens. Leave it out: only words and
    punctuation marks are tokens."""
    tokens = re.findall(r"\w+(?:'\w+)*|[^\w]", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def single_characters(sentence, lower=True):
    """The tokens are single characters: list(sentence), or a loop over a string, gives its letters.
    Split the sentence into words first."""
    return list(sentence.lower() if lower else sentence)


@tokenize.mistake
def single_letters(sentence, lower=True):
    """The tokens are single characters, without the spaces: a + is missing in the pattern. A word
    is a run of letters, \\w+."""
    return re.findall(r"\S", sentence.lower() if lower else sentence)


@tokenize.mistake
def apostrophe_splits(sentence, lower=True):
    """An apostrophe inside a word, as in "won't", must not split it: keep "won't" as one token."""
    tokens = re.findall(r"\w+|[^\w\s]", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def marks_in_a_lump(sentence, lower=True):
    """Punctuation marks in a row, as in "?!", are one token. Each mark is a token of its own: no +
    after the class of marks."""
    tokens = re.findall(r"\w+(?:'\w+)*|[^\w\s]+", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def letters_a_to_z_only(sentence, lower=True):
    """Only the letters a to z and A to Z count as parts of words, so digits and letters such as é
    are cut out as marks. Use \\w, which knows all letters and digits."""
    tokens = re.findall(r"[a-zA-Z]+(?:'[a-zA-Z]+)*|[^a-zA-Z\s]", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def letters_a_to_z_without_rest(sentence, lower=True):
    """Only words of the letters a to z are found: punctuation marks, digits and letters such as é
    are missing. Use \\w for words, and [^\\w\\s] for marks."""
    tokens = re.findall(r"[a-zA-Z']+", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def only_the_full_stop(sentence, lower=True):
    """Only the full stop is separated. Commas, question marks and all other punctuation marks are
    tokens too."""
    tokens = sentence.replace(".", " . ").split()
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def capitals_kept(sentence, lower=True):
    """The tokens keep their capitals. Turn them into small letters with lower(), unless
    lower=False."""
    return re.findall(WORDS_AND_MARKS, sentence)


@tokenize.mistake
def lower_ignored(sentence, lower=True):
    """The argument lower is ignored: with lower=False the capitals must stay."""
    return re.findall(WORDS_AND_MARKS, sentence.lower())


@tokenize.mistake
def lower_inverted(sentence, lower=True):
    """lower works the other way round: lower=True makes small letters, lower=False keeps
    capitals."""
    tokens = re.findall(WORDS_AND_MARKS, sentence)
    return tokens if lower else [token.lower() for token in tokens]


@tokenize.mistake
def upper_case(sentence, lower=True):
    """The tokens are in capitals. Use lower(), not upper()."""
    tokens = re.findall(WORDS_AND_MARKS, sentence)
    return [token.upper() for token in tokens] if lower else tokens


@tokenize.mistake
def each_token_once(sentence, lower=True):
    """Words that come again are missing. A list of tokens keeps every one, repeated or not: that is
    for the vocabulary to sort out."""
    tokens = re.findall(WORDS_AND_MARKS, sentence)
    return list(dict.fromkeys(token.lower() if lower else token for token in tokens))


@tokenize.mistake
def tokens_sorted(sentence, lower=True):
    """The tokens are sorted. Keep the order of the sentence."""
    tokens = re.findall(WORDS_AND_MARKS, sentence)
    return sorted(token.lower() if lower else token for token in tokens)


@tokenize.mistake
def joined_again(sentence, lower=True):
    """It returns one text instead of a list of tokens: leave out the join."""
    tokens = re.findall(WORDS_AND_MARKS, sentence)
    return " ".join(token.lower() if lower else token for token in tokens)


# ---------------------------------------------------------------- bigram_probs


def random_text(words: list[str], count: int) -> list[str]:
    """Sentences of two to six words, drawn at random."""
    return [" ".join(rng.choice(words, size=rng.integers(2, 7))) for _ in range(count)]


bigram_probs = Exercise(
    reference.bigram_probs,
    notebook="00",
    level=2,
    minutes=15,
    task="Build the table once more, another way: count all pairs in one `Counter` first, then "
    "fill the table and divide. Pairs never reach from one sentence into the next, and a row "
    "that nothing follows stays zero without smoothing.",
    hints=(
        "Which words follow *love*, and how many are they together? That is what a row is divided "
        "by. And what is a row of zeros divided by?",
        "Begin with counts of `smoothing` everywhere, add the pairs, then divide every row by its "
        "sum. keepdims=True keeps the sums upright, (V, 1); a sum of 0 is replaced by 1.",
        "`total = counts.sum(axis=1, keepdims=True)`, then `return counts / np.where(total == "
        "0, 1, total)`",
    ),
)
fruits = ["we like plums", "we like pears", "they like plums"]
fruit_words = ["we", "they", "like", "plums", "pears"]
bigram_probs.probe("three sentences", fruits, fruit_words)
bigram_probs.probe("smoothing=1", fruits, fruit_words, smoothing=1)
bigram_probs.probe("smoothing=0.5", fruits, fruit_words, smoothing=0.5)
bigram_probs.probe("the same pair twice in a sentence", ["go on and go on on"], ["on", "go", "and"])
bigram_probs.probe(
    "a word inside and at the end", ["we play", "play we rest"], ["rest", "we", "play"]
)
bigram_probs.probe("a word that is in no sentence", ["a b", "b a b"], ["c", "a", "b"])
bigram_probs.probe("capitals", ["Will will", "will Will go"], ["Will", "will", "go"])
bigram_probs.probe("a vocabulary of word → id", ["x y z", "x z"], {"z": 2, "x": 0, "y": 1})
letters = list("abcdefgh")
bigram_probs.probe("twenty sentences", random_text(letters[:6], 20), letters)
bigram_probs.probe("twenty sentences, smoothed", random_text(letters[:7], 20), letters, smoothing=2)


def pairs_in(sentences: Iterable[str]) -> list[tuple[str, str]]:
    """Each word with the next one of its sentence."""
    return [pair for sentence in sentences for pair in pairwise(sentence.split())]


def count(pairs: Iterable, vocab: dict | list, smoothing: float = 0.0) -> np.ndarray:
    """(V, V) counts of the pairs, each begun at `smoothing`."""
    ids = vocab if isinstance(vocab, dict) else {word: i for i, word in enumerate(vocab)}
    counts = np.full((len(ids), len(ids)), float(smoothing))
    for word, following in pairs:
        counts[ids[word], ids[following]] += 1
    return counts


def shares(counts: np.ndarray) -> np.ndarray:
    """Each row divided by its sum."""
    total = counts.sum(axis=1, keepdims=True)
    return counts / np.where(total == 0, 1, total)


@bigram_probs.mistake
def next_word_in_the_rows(sentences, vocab, smoothing=0.0):
    """Rows and columns are swapped: the row is the previous word, the column the next word. Use
    counts[word, following], not counts[following, word]."""
    return shares(count(pairs_in(sentences), vocab, smoothing).T)


@bigram_probs.mistake
def columns_sum_to_one(sentences, vocab, smoothing=0.0):
    """The columns sum to 1 instead of the rows. Divide each row by its own sum: axis=1, not
    axis=0."""
    return shares(count(pairs_in(sentences), vocab, smoothing).T).T


@bigram_probs.mistake
def transposed_result(sentences, vocab, smoothing=0.0):
    """The table is transposed: the columns hold what the rows should. Row = previous word."""
    return shares(count(pairs_in(sentences), vocab, smoothing)).T


@bigram_probs.mistake
def keepdims_missing(sentences, vocab, smoothing=0.0):
    """The sums of the rows lie down as (V,), so column j is divided by the sum of row j. Keep them
    upright, (V, 1), with keepdims=True."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    total = counts.sum(axis=1)
    return counts / np.where(total == 0, 1, total)


@bigram_probs.mistake
def one_total(sentences, vocab, smoothing=0.0):
    """All entries together sum to 1. P(next | word) needs the sum of each row: sum(axis=1,
    keepdims=True) instead of sum()."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    return counts / counts.sum()


@bigram_probs.mistake
def counts_not_divided(sentences, vocab, smoothing=0.0):
    """These are counts, not probabilities: the division of each row by its sum is missing."""
    return count(pairs_in(sentences), vocab, smoothing)


@bigram_probs.mistake
def zero_by_zero(sentences, vocab, smoothing=0.0):
    """A row that nothing follows becomes 0/0, nan. Replace a sum of 0 by 1 before you divide, and
    the row stays zero."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    return counts / counts.sum(axis=1, keepdims=True)


@bigram_probs.mistake
def empty_rows_made_even(sentences, vocab, smoothing=0.0):
    """A row that nothing follows gives every word the same probability. Without smoothing it must
    stay all zero."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    counts[counts.sum(axis=1) == 0] = 1
    return shares(counts)


@bigram_probs.mistake
def small_number_in_the_sum(sentences, vocab, smoothing=0.0):
    """Something is added to every sum against division by zero (or max is taken with it), so that
    rows with successors no longer sum to 1. Replace only the sums that are 0."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    return counts / (counts.sum(axis=1, keepdims=True) + 1)


@bigram_probs.mistake
def across_sentences(sentences, vocab, smoothing=0.0):
    """The last word of a sentence is paired with the first of the next sentence. Count pairs within
    each sentence only, before the sentences are joined."""
    return shares(count(pairwise(" ".join(sentences).split()), vocab, smoothing))


@bigram_probs.mistake
def back_to_the_start(sentences, vocab, smoothing=0.0):
    """The last word of each sentence is followed by the first one of it, as in a ring (np.roll, or
    the index -1). Nothing follows the last word."""
    tokens = [sentence.split() for sentence in sentences]
    pairs = [pair for row in tokens for pair in zip(row, row[1:] + row[:1], strict=True)]
    return shares(count(pairs, vocab, smoothing))


@bigram_probs.mistake
def two_places_away(sentences, vocab, smoothing=0.0):
    """The pairs skip a word: it counts words two places away. Pair each word with its right
    neighbour, tokens[i] with tokens[i + 1]."""
    tokens = [sentence.split() for sentence in sentences]
    pairs = [pair for row in tokens for pair in zip(row, row[2:], strict=False)]
    return shares(count(pairs, vocab, smoothing))


@bigram_probs.mistake
def all_later_words(sentences, vocab, smoothing=0.0):
    """Every later word of the sentence is counted. Only the next word follows: the right
    neighbour."""
    tokens = [sentence.split() for sentence in sentences]
    pairs = [(row[i], b) for row in tokens for i in range(len(row)) for b in row[i + 1 :]]
    return shares(count(pairs, vocab, smoothing))


@bigram_probs.mistake
def both_neighbours(sentences, vocab, smoothing=0.0):
    """The left neighbours are counted as well, so the counts are symmetric. Only the word after
    counts: the right neighbour."""
    pairs = pairs_in(sentences)
    return shares(count(pairs + [pair[::-1] for pair in pairs], vocab, smoothing))


@bigram_probs.mistake
def last_pair_missing(sentences, vocab, smoothing=0.0):
    """The last pair of each sentence is missing: the loop stops one too early. T tokens make T - 1
    pairs."""
    pairs = [pair for s in sentences for pair in pairwise(s.split()[:-1])]
    return shares(count(pairs, vocab, smoothing))


@bigram_probs.mistake
def first_pair_missing(sentences, vocab, smoothing=0.0):
    """The first pair of each sentence is missing: the loop starts one too late, at 1 instead of
    0."""
    pairs = [pair for s in sentences for pair in pairwise(s.split()[1:])]
    return shares(count(pairs, vocab, smoothing))


@bigram_probs.mistake
def only_the_first_sentence(sentences, vocab, smoothing=0.0):
    """Only the first sentence is counted: the return is indented into the loop. Read all sentences
    before you return."""
    return shares(count(pairs_in(sentences[:1]), vocab, smoothing))


@bigram_probs.mistake
def only_the_last_sentence(sentences, vocab, smoothing=0.0):
    """Only the last sentence is counted: the counts begin anew inside the loop. Make the empty
    table once, before the loop."""
    return shares(count(pairs_in(sentences[-1:]), vocab, smoothing))


@bigram_probs.mistake
def seen_or_not(sentences, vocab, smoothing=0.0):
    """Each pair counts once, however often it came: = 1, or a set of pairs, instead of += 1. Add 1
    for every time."""
    return shares(count(set(pairs_in(sentences)), vocab, smoothing))


@bigram_probs.mistake
def once_in_a_sentence(sentences, vocab, smoothing=0.0):
    """A pair that comes twice in one sentence counts once: counts[rows, columns] += 1 with arrays
    adds only once for repeated places. Use a loop, a Counter or np.add.at."""
    return shares(count([p for s in sentences for p in set(pairs_in([s]))], vocab, smoothing))


@bigram_probs.mistake
def divided_by_occurrences(sentences, vocab, smoothing=0.0):
    """A row is divided by how often its word occurs, ends of sentences included. Divide by how
    often anything follows it: the sum of the row."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    seen = count(((word, word) for s in sentences for word in s.split()), vocab).diagonal()
    total = (seen + smoothing * len(vocab))[:, None]
    return counts / np.where(total == 0, 1, total)


@bigram_probs.mistake
def row_sum_shrinks(sentences, vocab, smoothing=0.0):
    """The row is summed again after some of its entries were divided. Compute the sum of a row
    once, before you divide any of it."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    for i, j in np.ndindex(counts.shape):
        if counts[i].sum() > 0:
            counts[i, j] /= counts[i].sum()
    return counts


@bigram_probs.mistake
def whole_number_division(sentences, vocab, smoothing=0.0):
    """The probabilities are cut down to whole numbers, as by // or an array of dtype int. Divide
    floats with /."""
    return np.floor(shares(count(pairs_in(sentences), vocab, smoothing)))


@bigram_probs.mistake
def exponentials(sentences, vocab, smoothing=0.0):
    """A softmax of the counts is taken. The counts themselves are divided by the sum of their row,
    without exp."""
    e = np.exp(count(pairs_in(sentences), vocab, smoothing))
    return e / e.sum(axis=1, keepdims=True)


@bigram_probs.mistake
def previous_word_ignored(sentences, vocab, smoothing=0.0):
    """All rows are equal: how often the next word comes, whatever came before. Count pairs, one row
    for each previous word."""
    counts = count(pairs_in(sentences), vocab, smoothing).sum(axis=0, keepdims=True)
    return np.repeat(counts / counts.sum(), len(vocab), axis=0)


@bigram_probs.mistake
def smoothing_ignored(sentences, vocab, smoothing=0.0):
    """The argument smoothing is ignored. Add it to every count before you divide."""
    return shares(count(pairs_in(sentences), vocab))


@bigram_probs.mistake
def always_add_one(sentences, vocab, smoothing=0.0):
    """1 is added to every count, whatever smoothing says. Add smoothing; its default 0 adds
    nothing."""
    return shares(count(pairs_in(sentences), vocab, 1))


@bigram_probs.mistake
def one_when_smoothing(sentences, vocab, smoothing=0.0):
    """With smoothing, 1 is added to every count. Add smoothing itself, which need not be 1."""
    return shares(count(pairs_in(sentences), vocab, 1 if smoothing else 0))


@bigram_probs.mistake
def smoothing_after_the_division(sentences, vocab, smoothing=0.0):
    """smoothing is added to the probabilities, after the division, so rows no longer sum to 1. Add
    it to the counts, before the division."""
    return shares(count(pairs_in(sentences), vocab)) + smoothing


@bigram_probs.mistake
def smoothing_after_then_divided(sentences, vocab, smoothing=0.0):
    """smoothing is added to the probabilities, which are then divided again. Add it to the counts,
    before the first division."""
    return shares(shares(count(pairs_in(sentences), vocab)) + smoothing)


@bigram_probs.mistake
def smoothing_not_in_the_sum(sentences, vocab, smoothing=0.0):
    """smoothing is in the counts but not in the sums they are divided by, so rows do not sum to 1.
    Sum each row after adding smoothing."""
    counts = count(pairs_in(sentences), vocab)
    total = counts.sum(axis=1, keepdims=True)
    return (counts + smoothing) / np.where(total == 0, 1, total)


@bigram_probs.mistake
def smoothing_once_in_the_sum(sentences, vocab, smoothing=0.0):
    """The sum of a row grows by smoothing once, but each of its V counts does. Add V · smoothing to
    the sum, or sum the row after adding smoothing."""
    counts = count(pairs_in(sentences), vocab)
    total = counts.sum(axis=1, keepdims=True) + smoothing
    return (counts + smoothing) / np.where(total == 0, 1, total)


@bigram_probs.mistake
def vocabulary_size_in_the_sum(sentences, vocab, smoothing=0.0):
    """The sum of a row grows by V, which is right for smoothing=1 only. Add V · smoothing, or sum
    the row after adding smoothing."""
    counts = count(pairs_in(sentences), vocab)
    total = counts.sum(axis=1, keepdims=True) + (len(vocab) if smoothing else 0)
    return (counts + smoothing) / np.where(total == 0, 1, total)


@bigram_probs.mistake
def smoothing_on_seen_pairs(sentences, vocab, smoothing=0.0):
    """Only pairs that were seen get smoothing. It is for the others: add it to every count, the
    zeros too."""
    counts = count(pairs_in(sentences), vocab)
    return shares(np.where(counts > 0, counts + smoothing, 0))


@bigram_probs.mistake
def smoothing_on_unseen_pairs(sentences, vocab, smoothing=0.0):
    """Only pairs that were never seen get smoothing. Add it to every count, those of seen pairs
    too."""
    counts = count(pairs_in(sentences), vocab)
    return shares(np.where(counts > 0, counts, smoothing))


@bigram_probs.mistake
def no_smoothing_of_empty_rows(sentences, vocab, smoothing=0.0):
    """With smoothing, the row of a word that nothing follows must be filled as well: add smoothing
    to the counts of every row."""
    counts = count(pairs_in(sentences), vocab)
    return shares(np.where(counts.sum(axis=1, keepdims=True) > 0, counts + smoothing, 0))


@bigram_probs.mistake
def smoothing_for_each_sentence(sentences, vocab, smoothing=0.0):
    """smoothing is added once for every sentence. Add it once: before the loop, not inside."""
    return shares(count(pairs_in(sentences), vocab, smoothing * len(sentences)))


@bigram_probs.mistake
def vocabulary_sorted(sentences, vocab, smoothing=0.0):
    """Rows and columns follow the sorted words. Use the order of vocab: the ids that it gives."""
    return shares(count(pairs_in(sentences), sorted(vocab), smoothing))


@bigram_probs.mistake
def order_of_the_entries(sentences, vocab, smoothing=0.0):
    """For a vocab of word → id, the order of its entries is used instead of its ids. The row of a
    word is vocab[word]."""
    return shares(count(pairs_in(sentences), list(vocab), smoothing))


@bigram_probs.mistake
def lists_only(sentences, vocab, smoothing=0.0):
    """It works for a list of words only. vocab may also be a dictionary of word → id, which has no
    index(): make such a dictionary of a list first."""
    return shares(count(pairs_in(sentences), {w: vocab.index(w) for w in vocab}, smoothing))


@bigram_probs.mistake
def dictionaries_only(sentences, vocab, smoothing=0.0):
    """It works for a dictionary of word → id only: vocab[word] finds nothing in a list of words.
    Make a dictionary of a list first: {word: i for i, word in enumerate(vocab)}."""
    return shares(count(pairs_in(sentences), {w: vocab[w] for w in vocab}, smoothing))


@bigram_probs.mistake
def smoothing_cut_to_a_whole_number(sentences, vocab, smoothing=0.0):
    """smoothing=0.5 adds nothing: the counts are whole numbers, dtype int, which cut it to 0. Begin
    with counts of floats."""
    return shares(count(pairs_in(sentences), vocab, int(smoothing)))


@bigram_probs.mistake
def capitals_lowered(sentences, vocab, smoothing=0.0):
    """The words are made lower-case, so a capital is no longer found in vocab. Take the words as
    they are, split at white space."""
    lowered = [sentence.lower() for sentence in sentences]
    return shares(count(pairs_in(lowered), vocab, smoothing))


# ---------------------------------------------------------------- word_probs


def word_probs(sentence: str, vocab: list[str], table: np.ndarray) -> np.ndarray:
    """Look up what a bigram table gave each word that came: T words, (V, V) → (T-1,).

    Entry i is the probability of word i + 1 after word i. The first word has none.
    """
    ids = np.array([vocab.index(word) for word in sentence.split()])
    return table[ids[:-1], ids[1:]]


came = Exercise(
    word_probs,
    notebook="00",
    level=1,
    minutes=8,
    task="How probable did a table of bigrams find a sentence, word by word? Return the "
    "probability of each word after the one before it; the first word has none, so T words "
    "give T - 1 numbers.",
    hints=(
        "In which row, and in which column, stands the probability of *plums* after *like*?",
        "Turn the words into their places in vocab. Rows: all but the last. Columns: all but the "
        "first.",
        "`ids = np.array([vocab.index(word) for word in sentence.split()])`, then `return "
        "table[ids[:-1], ids[1:]]`",
    ),
)
pencil_table = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.0, 0.9, 0.1]])
came.probe("three words", "a c b", ["a", "b", "c"], pencil_table)
came.probe("a word that comes again", "b b a b", ["a", "b", "c"], pencil_table)
came.probe("two words", "c a", ["c", "b", "a"], pencil_table)
letter_table = rng.dirichlet(np.ones(8), size=8)
came.probe("ten words of eight", "d a h h b g a d a c", letters, letter_table)
came.probe(
    "words in another order than the alphabet", "b c a d", list("dbca"), letter_table[:4, :4]
)


def places(sentence: str, vocab: list[str]) -> np.ndarray:
    """T words → (T,) their places in vocab."""
    return np.array([vocab.index(word) for word in sentence.split()])


@came.mistake
def row_and_column_swapped(sentence, vocab, table):
    """Row and column are swapped: the row is the previous word, the column the next one. Use
    table[previous, next]."""
    ids = places(sentence, vocab)
    return table[ids[1:], ids[:-1]]


@came.mistake
def a_row_for_each_word(sentence, vocab, table):
    """It returns whole rows, the probabilities of all words. Take one number of each row, in the
    column of the word that came."""
    return table[places(sentence, vocab)[:-1]]


@came.mistake
def every_row_with_every_column(sentence, vocab, table):
    """Every row is combined with every column. Index pair by pair: row i with column i, as
    table[ids[:-1], ids[1:]]."""
    ids = places(sentence, vocab)
    return table[ids[:-1]][:, ids[1:]]


@came.mistake
def the_likeliest_word(sentence, vocab, table):
    """These are the largest numbers of the rows, the probabilities of the likeliest words. Take
    that of the word that came."""
    return table[places(sentence, vocab)[:-1]].max(axis=1)


@came.mistake
def each_word_after_itself(sentence, vocab, table):
    """Each word is looked up after itself, on the diagonal. The column is the next word:
    ids[1:]."""
    ids = places(sentence, vocab)[:-1]
    return table[ids, ids]


@came.mistake
def always_after_the_first(sentence, vocab, table):
    """All words are looked up in the row of the first word. Each word belongs to the row of the
    word just before it."""
    ids = places(sentence, vocab)
    return table[ids[0], ids[1:]]


@came.mistake
def two_words_before(sentence, vocab, table):
    """It pairs words two places apart. Pair each word with its right neighbour."""
    ids = places(sentence, vocab)
    return table[ids[:-2], ids[2:]]


@came.mistake
def last_word_missing(sentence, vocab, table):
    """The last word has no number: the loop stops one too early. T words give T - 1 numbers."""
    ids = places(sentence, vocab)
    return table[ids[:-2], ids[1:-1]]


@came.mistake
def second_word_missing(sentence, vocab, table):
    """The second word has no number: the loop starts one too late. T words give T - 1 numbers."""
    ids = places(sentence, vocab)
    return table[ids[1:-1], ids[2:]]


@came.mistake
def a_number_for_the_first_word(sentence, vocab, table):
    """There is a number for the first word too, 1. No word comes before it: leave it out."""
    ids = places(sentence, vocab)
    return np.concatenate([[1.0], table[ids[:-1], ids[1:]]])


@came.mistake
def around_the_end(sentence, vocab, table):
    """The first word is looked up after the last one: the index -1, or np.roll, goes round the end.
    Leave the first word out."""
    ids = places(sentence, vocab)
    return table[np.roll(ids, 1), ids]


@came.mistake
def multiplied_together(sentence, vocab, table):
    """The probabilities are multiplied into one number. Return them one by one, T - 1 numbers."""
    ids = places(sentence, vocab)
    return table[ids[:-1], ids[1:]].prod()


@came.mistake
def added_together(sentence, vocab, table):
    """The probabilities are added into one number. Return them one by one, T - 1 numbers."""
    ids = places(sentence, vocab)
    return table[ids[:-1], ids[1:]].sum()


@came.mistake
def averaged(sentence, vocab, table):
    """The probabilities are averaged into one number. Return them one by one, T - 1 numbers."""
    ids = places(sentence, vocab)
    return table[ids[:-1], ids[1:]].mean()


@came.mistake
def multiplied_so_far(sentence, vocab, table):
    """The probabilities are multiplied up along the sentence (cumprod). Each number stands
    alone."""
    ids = places(sentence, vocab)
    return table[ids[:-1], ids[1:]].cumprod()


@came.mistake
def backwards(sentence, vocab, table):
    """The order is reversed: the numbers run from the last word to the first. Keep the order of the
    sentence."""
    ids = places(sentence, vocab)
    return table[ids[:-1], ids[1:]][::-1]


@came.mistake
def sorted_words_for_places(sentence, vocab, table):
    """The words are looked up in sorted order, or in that of the sentence. The place of a word is
    its place in vocab: vocab.index(word)."""
    return word_probs(sentence, sorted(vocab), table)


@came.mistake
def each_pair_once(sentence, vocab, table):
    """A pair that comes again is left out. Every word of the sentence after the first has its
    number."""
    ids = places(sentence, vocab)
    pairs = dict.fromkeys(pairwise(ids.tolist()))
    return np.array([table[pair] for pair in pairs])


# ---------------------------------------------------------------- perplexity


def perplexity(probs: np.ndarray) -> float:
    """Measure how unsure a model was about words that came: (T,) probabilities → number.

    exp of the mean surprise -log p. Who guesses evenly among n words gets n. Jelinek, Mercer,
    Bahl and Baker (1977).
    """
    return np.exp(-np.log(probs).mean())


unsure = Exercise(
    perplexity,
    notebook="00",
    level=2,
    minutes=10,
    task="The surprise of a word that had probability p is −log p: 0 if it was certain, large if "
    "it was unlikely. Turn the probabilities that a model gave to the words that came into "
    "its **perplexity**, exp of the mean surprise: 6 means as unsure as before the throw of "
    "a die.",
    hints=(
        "If every word had probability 1/6, what is each surprise, the mean of them, and exp of "
        "it?",
        "Three steps: the surprise of each word with np.log, their mean, and exp of the mean.",
        "`return np.exp(-np.log(probs).mean())`",
    ),
)
unsure.probe("a die, thrown three times", np.array([1 / 6, 1 / 6, 1 / 6]))
unsure.probe("a half and an eighth", np.array([1 / 2, 1 / 8]))
unsure.probe("one certain word of three", np.array([1.0, 0.1, 0.4]))
unsure.probe("a single word", np.array([0.3]))
unsure.probe("words sure and unsure", np.array([0.9, 0.02, 0.5, 1e-6, 0.7]))
unsure.probe("a thousand unlikely words", rng.uniform(0.001, 0.02, size=1000))


@unsure.mistake
def minus_missing(probs):
    """The minus is missing: a surprise is -log p, and the perplexity is never below 1."""
    return np.exp(np.log(probs).mean())


@unsure.mistake
def exp_missing(probs):
    """This is the mean surprise itself: the last step, exp, is missing."""
    return -np.log(probs).mean()


@unsure.mistake
def mean_log_only(probs):
    """This is the mean of log p: both the minus and the last step, exp, are missing."""
    return np.log(probs).mean()


@unsure.mistake
def a_surprise_for_each_word(probs):
    """It returns a number for each word. Take the mean of the surprises before exp."""
    return 1 / probs


@unsure.mistake
def sum_instead_of_mean(probs):
    """The surprises are added (or the probabilities multiplied, without the T-th root), so a long
    text gets a larger number than a short one. Take the mean instead of the sum: divide by T."""
    return np.exp(-np.log(probs).sum())


@unsure.mistake
def mean_before_log(probs):
    """The probabilities are averaged first, then the log is taken. Take log of each probability,
    then the mean: the order matters."""
    return 1 / probs.mean()


@unsure.mistake
def mean_after_exp(probs):
    """The mean is taken after exp, so this is the mean of 1/p. Take the mean of the surprises
    first, then exp of it."""
    return (1 / probs).mean()


@unsure.mistake
def product_underflows(probs):
    """The product of many probabilities becomes 0 in the computer, and its root too. Add logs
    instead of multiplying."""
    return probs.prod() ** (-1 / len(probs))


@unsure.mistake
def square_root(probs):
    """The square root of the product is taken, right for two words only. Take the T-th root: the
    mean of the logs."""
    return 1 / np.sqrt(probs.prod())


@unsure.mistake
def logs_to_base_two(probs):
    """The logs are to base 2, but exp has base e. Take np.log with np.exp, or np.log2 with 2 **
    …"""
    return np.exp(-np.log2(probs).mean())


@unsure.mistake
def two_to_the_natural_log(probs):
    """The logs are natural, base e, but 2 ** … has base 2. Take np.exp with np.log, or 2 ** with
    np.log2."""
    return 2 ** -np.log(probs).mean()


@unsure.mistake
def logs_to_base_ten(probs):
    """The logs are to base 10, but exp has base e. Take np.log."""
    return np.exp(-np.log10(probs).mean())


@unsure.mistake
def weighted_with_p(probs):
    """Each surprise is multiplied by its probability, and then added (the entropy). Here every word
    that came counts alike: the mean."""
    return np.exp(-(probs * np.log(probs)).sum())


@unsure.mistake
def weighted_with_p_and_averaged(probs):
    """Each surprise is multiplied by its probability. Every word that came counts alike: the plain
    mean of -log p."""
    return np.exp(-(probs * np.log(probs)).mean())


@unsure.mistake
def one_minus_p(probs):
    """It takes 1 - p for the surprise of a word. The surprise is -log p."""
    return np.exp((1 - probs).mean())


@unsure.mistake
def log_of_one_plus_p(probs):
    """np.log1p(p) is log(1 + p). Take np.log(p)."""
    return np.exp(-np.log1p(probs).mean())


@unsure.mistake
def median_instead_of_mean(probs):
    """The median of the surprises is taken. Take their mean."""
    return np.exp(-np.median(np.log(probs)))


@unsure.mistake
def last_word_only(probs):
    """Only the last word is looked at: the sum begins anew in each round of the loop. Take the mean
    over all words."""
    return 1 / probs[-1]


@unsure.mistake
def first_word_only(probs):
    """Only the first word is looked at: the return stands inside the loop. Take the mean over all
    words."""
    return 1 / probs[0]


@unsure.mistake
def worst_word(probs):
    """This is the largest surprise. Take the mean of the surprises."""
    return 1 / probs.min()


@unsure.mistake
def divided_by_one_less(probs):
    """The sum is divided by T - 1 instead of T. There is one probability for each word: divide by
    len(probs)."""
    return np.exp(-np.log(probs).sum() / (len(probs) - 1))


@unsure.mistake
def divided_by_one_more(probs):
    """The sum is divided by T + 1 instead of T. Divide by len(probs)."""
    return np.exp(-np.log(probs).sum() / (len(probs) + 1))


@unsure.mistake
def rounded(probs):
    """The result is cut or rounded to a whole number. A perplexity is any number from 1 up."""
    return float(np.round(np.exp(-np.log(probs).mean())))


@unsure.mistake
def unlikely_words_raised(probs):
    """Something is added to p before the log, or p is kept above a limit (np.clip), so that very
    unlikely words surprise too little. Take the log of p itself."""
    return np.exp(-np.log(np.clip(probs, 1e-3, None)).mean())


@unsure.mistake
def normalised_first(probs):
    """The probabilities are divided by their sum first. They belong to different rows and need not
    sum to 1: leave them as they are."""
    return np.exp(-np.log(probs / probs.sum()).mean())
