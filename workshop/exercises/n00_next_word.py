"""Notebook 00: tokens, the table of bigrams, and how well it foresaw a text."""

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from helpers import text as reference
from workshop.exercises.exercise import Draw, Exercise, numbers

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
tokenize.probe("marks inside and in a row", "Rest: play, or not?!")
tokenize.probe("an apostrophe inside a word", "It won't stop, isn't it odd.")
tokenize.probe("double spaces and a line break", "one  two\nthree ")
tokenize.probe("digits and accented letters", "Élan in 42 cafés, über all.")

tokenize.answer(r"""
    import re

    def tokenize(sentence, lower=True):
        tokens = re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", sentence)
        return [token.lower() for token in tokens] if lower else tokens
""")
tokenize.answer(r"""
    import re

    def tokenize(sentence, lower=True):
        if lower:
            sentence = sentence.lower()
        pattern = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
        return [match.group() for match in pattern.finditer(sentence)]
""")
tokenize.why(
    r"""r"\w+(?:['’]\w+)*|[^\w\s]" """,
    "A token is a run of word characters, apostrophes inside it included, or a single mark.",
)
tokenize.why(
    "[token.lower() for token in tokens] | token.lower() | sentence.lower()",
    "Capitals become small letters, so that The and the are one word of the vocabulary.",
)
tokenize.why("lower", "The caller decides: with lower=False, capitals stay as they were written.")
tokenize.why(
    "re.findall | pattern.finditer(sentence) | match.group()",
    "Look for the tokens themselves: cutting between them loses the marks.",
)


@tokenize.mistake
def split_at_spaces_only(sentence, lower=True):
    """Punctuation marks stick to the words, as in "step.": the sentence was split at white space
    only. A mark is a token of its own, so that "step" stays one word wherever it stands."""
    tokens = sentence.split()
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def word_characters_only(sentence, lower=True):
    """The punctuation marks are missing, and an apostrophe cuts a word in two. Besides runs of word
    characters, each mark is a token, and an apostrophe inside a word belongs to it."""
    tokens = re.findall(r"\w+", sentence)
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def only_the_full_stop(sentence, lower=True):
    """Only the full stop is separated from its word. Commas, colons, question marks and all other
    punctuation marks are tokens of their own too."""
    tokens = sentence.replace(".", " . ").split()
    return [token.lower() for token in tokens] if lower else tokens


@tokenize.mistake
def single_characters(sentence, lower=True):
    """The tokens are single characters: to Python a text is a row of its letters. Find whole words
    and marks in the sentence first."""
    return list(sentence.lower() if lower else sentence)


@tokenize.mistake
def lower_ignored(sentence, lower=True):
    """The argument lower has no effect: all is lower-cased, whatever the caller said. With
    lower=False capitals must stay as they were written."""
    return re.findall(WORDS_AND_MARKS, sentence.lower())


# ---------------------------------------------------------------- bigram_probs

bigram_probs = Exercise(
    reference.bigram_probs,
    notebook="00",
    level=2,
    minutes=15,
    task="Count which word follows which, and turn each row of counts into probabilities: row = a "
    "word, column = the word after it. Pairs never reach from one sentence into the next. Every "
    "count begins at `smoothing`; without it, the row of a word that nothing follows stays zero.",
    hints=(
        "Which words follow *love*, and how many are they together? That is what a row is divided "
        "by. And what is a row of zeros divided by?",
        "Begin with counts of `smoothing` everywhere, add the pairs, then divide every row by its "
        "sum. keepdims=True keeps the sums upright, (V, 1); a sum of 0 is replaced by 1.",
        "`total = counts.sum(axis=1, keepdims=True)`, then `return counts / np.where(total == "
        "0, 1, total)`",
    ),
)


def written_with(words: list[str]) -> Callable[[np.ndarray], list[str]]:
    """Sentences of two to six of these words, one for each row of numbers."""

    def sentences(x: np.ndarray) -> list[str]:
        ids = (1000 * x).astype(int) % len(words)
        return [" ".join(words[j] for j in row[: 2 + i % 5]) for i, row in enumerate(ids)]

    return sentences


fruits = ["we like plums", "we like pears", "they like plums"]
fruit_words = ["we", "they", "like", "plums", "pears"]
letters = list("abcdefgh")
twenty = numbers(20, 6)
bigram_probs.probe("three sentences", fruits, fruit_words)
bigram_probs.probe("smoothing=1", fruits, fruit_words, smoothing=1)
bigram_probs.probe("smoothing=0.1", fruits, fruit_words, smoothing=0.1)
bigram_probs.probe("the same pair twice", ["go on and go on on"], ["on", "go", "and"])
bigram_probs.probe(
    "a word within and at end", ["we play", "play we rest", "rest"], ["rest", "we", "play"]
)
bigram_probs.probe("a word in no sentence", ["a b", "b a b"], ["c", "a", "b"])
bigram_probs.probe("a dictionary of word → id", ["x y z", "x z"], {"z": 2, "x": 0, "y": 1})
bigram_probs.probe("twenty sentences", twenty.then(written_with(letters[:6])), letters)
bigram_probs.probe(
    "twenty sentences, smoothed", twenty.then(written_with(letters[:7])), letters, smoothing=2
)

bigram_probs.answer("""
    def bigram_probs(sentences, vocab, smoothing=0.0):
        ids = vocab if isinstance(vocab, dict) else {word: i for i, word in enumerate(vocab)}
        pairs = Counter()
        for sentence in sentences:
            tokens = sentence.split()
            pairs.update(zip(tokens, tokens[1:]))
        counts = np.full((len(ids), len(ids)), float(smoothing))
        for (word, following), n in pairs.items():
            counts[ids[word], ids[following]] += n
        total = counts.sum(axis=1, keepdims=True)
        return counts / np.where(total == 0, 1, total)
""")
bigram_probs.answer("""
    from itertools import pairwise

    def bigram_probs(sentences, vocab, smoothing=0.0):
        ids = vocab if isinstance(vocab, dict) else {word: i for i, word in enumerate(vocab)}
        counts = np.zeros((len(vocab), len(vocab))) + smoothing
        for sentence in sentences:
            for word, following in pairwise(sentence.split()):
                counts[ids[word], ids[following]] += 1
        total = counts.sum(axis=1)
        total[total == 0] = 1
        return counts / total[:, None]
""")
bigram_probs.answer("""
    def bigram_probs(sentences, vocab, smoothing=0.0):
        ids = {word: i for i, word in enumerate(vocab)} if isinstance(vocab, list) else vocab
        counts = np.zeros((len(ids), len(ids)))
        for sentence in sentences:
            tokens = sentence.split()
            for i in range(len(tokens) - 1):
                counts[ids[tokens[i]], ids[tokens[i + 1]]] += 1
        counts += smoothing
        for row in counts:
            if row.sum() > 0:
                row /= row.sum()
        return counts
""")
bigram_probs.answer("""
    import torch

    def bigram_probs(sentences, vocab, smoothing=0.0):
        ids = vocab if isinstance(vocab, dict) else {word: i for i, word in enumerate(vocab)}
        counts = torch.full((len(ids), len(ids)), float(smoothing))
        for sentence in sentences:
            row = [ids[word] for word in sentence.split()]
            for previous, following in zip(row[:-1], row[1:]):
                counts[previous, following] += 1
        total = counts.sum(dim=1, keepdim=True)
        return counts / torch.where(total == 0, 1, total)
""")
bigram_probs.why(
    "zip(tokens, tokens[1:]) | pairwise(sentence.split()) | pairwise(tokens) | tokens[i + 1]"
    " | range(len(tokens) - 1) | zip(row[:-1], row[1:]) | tokens[1:] | row[1:] | row[:-1]",
    "Each word is paired with its right neighbour in the same sentence: T words make T − 1 pairs.",
)
bigram_probs.why(
    "counts[ids[word], ids[following]] | counts[ids[tokens[i]], ids[tokens[i + 1]]]"
    " | counts[previous, following] | (word, following)",
    "The row is the word, the column its follower: then each row is a distribution over next "
    "words.",
)
bigram_probs.why(
    "counts.sum(axis=1, keepdims=True) | counts.sum(axis=1) | counts.sum(dim=1, keepdim=True)"
    " | row.sum() | total[:, None] | axis=1 | keepdims=True | row /= row.sum()",
    "P(next | word) shares out what followed this word: every row is divided by its own sum.",
)
bigram_probs.why(
    "np.where(total == 0, 1, total) | total[total == 0] = 1 | row.sum() > 0"
    " | torch.where(total == 0, 1, total)",
    "A word that nothing follows has the sum 0; its zeros, divided by 1 instead, stay zeros.",
)
bigram_probs.why(
    "float(smoothing) | smoothing | counts += smoothing | np.zeros((len(vocab), len(vocab))) + "
    "smoothing | np.full((len(ids), len(ids)), float(smoothing))",
    "Smoothing is a count given to every pair, seen or not, before any sum is taken.",
)
bigram_probs.why(
    "counts[ids[word], ids[following]] += n | counts[ids[word], ids[following]] += 1"
    " | pairs.items()",
    "A pair counts as often as it came: each time adds one.",
)
bigram_probs.why(
    "{word: i for i, word in enumerate(vocab)} | isinstance(vocab, dict)"
    " | vocab if isinstance(vocab, dict) else {word: i for i, word in enumerate(vocab)}",
    "A dictionary already holds the ids; of a list, the place of a word is its id.",
)


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
    """Rows and columns are swapped: the word belongs in the row and what follows it in the column,
    so that each row is the distribution of the next word."""
    return shares(count(pairs_in(sentences), vocab, smoothing).T)


@bigram_probs.mistake
def across_sentences(sentences, vocab, smoothing=0.0):
    """The last word of a sentence is paired with the first of the next, though nobody wrote them
    side by side. Take the pairs of each sentence by itself, before anything is joined."""
    return shares(count(pairwise(" ".join(sentences).split()), vocab, smoothing))


@bigram_probs.mistake
def counts_not_divided(sentences, vocab, smoothing=0.0):
    """These are counts, not probabilities. One step is missing: each row must be divided by its
    own sum, so that it sums to 1."""
    return count(pairs_in(sentences), vocab, smoothing)


@bigram_probs.mistake
def zero_by_zero(sentences, vocab, smoothing=0.0):
    """A row that nothing follows becomes 0/0, which is nan. Replace a sum of 0 by 1 before the
    division: 0/1 keeps the row at zero."""
    counts = count(pairs_in(sentences), vocab, smoothing)
    return counts / counts.sum(axis=1, keepdims=True)


@bigram_probs.mistake
def once_in_a_sentence(sentences, vocab, smoothing=0.0):
    """A pair that comes twice in one sentence counts once. Adding to an array at a whole list of
    places adds only once where a place repeats: count pair by pair, or with np.add.at."""
    return shares(count([p for s in sentences for p in set(pairs_in([s]))], vocab, smoothing))


@bigram_probs.mistake
def seen_or_not(sentences, vocab, smoothing=0.0):
    """Each different pair counts once, however often it came. How often is what the probabilities
    are made of: every time a pair comes adds one."""
    return shares(count(set(pairs_in(sentences)), vocab, smoothing))


@bigram_probs.mistake
def smoothing_once_in_the_sum(sentences, vocab, smoothing=0.0):
    """The sum of a row grows by smoothing once, though each of its V counts does, so rows do not
    sum to 1. Sum the row after smoothing was added to all its counts."""
    counts = count(pairs_in(sentences), vocab)
    total = counts.sum(axis=1, keepdims=True) + smoothing
    return (counts + smoothing) / np.where(total == 0, 1, total)


@bigram_probs.mistake
def order_of_the_entries(sentences, vocab, smoothing=0.0):
    """A vocabulary may also be a dictionary of word → id, and then its ids say which row belongs to
    which word, not the order in which its entries happen to stand."""
    return shares(count(pairs_in(sentences), list(vocab), smoothing))


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


def rows_of_shares(V: int) -> Draw:
    """A random (V, V) table whose rows sum to 1."""
    return numbers(V, V).then(lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True))


pencil_table = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.0, 0.9, 0.1]])
came.probe("three words", "a c b", ["a", "b", "c"], pencil_table)
came.probe("a word that comes again", "b b a b", ["a", "b", "c"], pencil_table)
came.probe("two words", "c a", ["c", "b", "a"], pencil_table)
came.probe("ten words of eight", "d a h h b g a d a c", letters, rows_of_shares(8))
came.probe("words not in alphabetical order", "b c a d", list("dbca"), rows_of_shares(4))

came.answer("""
    def word_probs(sentence, vocab, table):
        ids = np.array([vocab.index(word) for word in sentence.split()])
        return table[ids[:-1], ids[1:]]
""")
came.answer("""
    from itertools import pairwise

    def word_probs(sentence, vocab, table):
        probs = []
        for word, following in pairwise(sentence.split()):
            probs.append(table[vocab.index(word), vocab.index(following)])
        return np.array(probs)
""")
came.answer("""
    def word_probs(sentence, vocab, table):
        words = sentence.split()
        probs = np.zeros(len(words) - 1)
        for i in range(len(words) - 1):
            row = table[vocab.index(words[i])]
            probs[i] = row[vocab.index(words[i + 1])]
        return probs
""")
came.answer("""
    import torch

    def word_probs(sentence, vocab, table):
        place = {word: i for i, word in enumerate(vocab)}
        ids = torch.tensor([place[word] for word in sentence.split()])
        return torch.as_tensor(table)[ids[:-1], ids[1:]]
""")
came.why(
    "table[ids[:-1], ids[1:]] | table[vocab.index(word), vocab.index(following)]"
    " | table[vocab.index(words[i])] | row[vocab.index(words[i + 1])]",
    "The word before chooses the row, the word that came its column: one number for each pair.",
)
came.why(
    "ids[:-1] | ids[1:] | words[i] | words[i + 1]",
    "Rows are the words before, all but the last; columns those that came, all but the first.",
)
came.why(
    "vocab.index(word) | [vocab.index(word) for word in sentence.split()] | sentence.split()"
    " | {word: i for i, word in enumerate(vocab)} | place[word]",
    "Rows and columns of the table follow the order of vocab: a word's place there is its id.",
)
came.why(
    "np.array | np.array(probs)",
    "An array of numbers, which the perplexity can take the log of: a list knows no arithmetic.",
)
came.why(
    "range(len(words) - 1) | len(words) - 1 | pairwise(sentence.split())",
    "T words have T − 1 neighbours: every word after the first gets a probability.",
)


def places(sentence: str, vocab: list[str]) -> np.ndarray:
    """T words → (T,) their places in vocab."""
    return np.array([vocab.index(word) for word in sentence.split()])


@came.mistake
def a_row_for_each_word(sentence, vocab, table):
    """These are whole rows: the probabilities of all words that could have come. Of each row take
    one number, that of the word that did come."""
    return table[places(sentence, vocab)[:-1]]


@came.mistake
def every_row_with_every_column(sentence, vocab, table):
    """Every row is combined with every column. Rows and columns belong together pair by pair: the
    first row with the first column, the second with the second, one number each."""
    ids = places(sentence, vocab)
    return table[ids[:-1]][:, ids[1:]]


@came.mistake
def the_likeliest_word(sentence, vocab, table):
    """These are the largest numbers of the rows, the probabilities of the likeliest words. The
    question is how probable the word was that really came."""
    return table[places(sentence, vocab)[:-1]].max(axis=1)


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
unsure.probe("words sure and unsure", np.array([0.9, 0.02, 0.5, 1e-4, 0.7]))
unsure.probe("a thousand unlikely words", numbers(1000).then(lambda x: 0.001 + 0.01 * x**2))

unsure.answer("""
    def perplexity(probs):
        surprise = -np.log(probs)
        return np.exp(surprise.mean())
""")
unsure.answer("""
    def perplexity(probs):
        total = 0.0
        for p in probs:
            total += -np.log(p)
        return np.exp(total / len(probs))
""")
unsure.answer("""
    def perplexity(probs):
        bits = -np.log2(probs)
        return 2 ** np.mean(bits)
""")
unsure.answer("""
    def perplexity(probs):
        return np.exp(-np.sum(np.log(probs)) / len(probs))
""")
unsure.answer("""
    import torch

    def perplexity(probs):
        probs = torch.as_tensor(probs)
        return torch.exp(-torch.log(probs).mean())
""")
unsure.why(
    "-np.log(probs) | -np.log(p) | -torch.log(probs) | np.log(probs) | 1 - probs",
    "The surprise is −log p: log p is below 0, so the minus makes unlikely words count more.",
)
unsure.why(
    "surprise.mean() | mean | total / len(probs) | np.sum(np.log(probs)) / len(probs)"
    " | len(probs) - 1",
    "The mean per word: a long text is no less sure than a short one for being long.",
)
unsure.why(
    "np.exp(surprise.mean()) | np.exp | torch.exp | np.exp(total / len(probs))",
    "exp undoes the log: the mean surprise becomes a number of equally likely words.",
)
unsure.why(
    "np.log2(probs) | 2 ** np.mean(bits) | np.log10 | np.log2",
    "The base of the log is that of the power: natural log with exp, log2 with a power of 2.",
)


@unsure.mistake
def sum_instead_of_mean(probs):
    """A long text gets a larger number than a short one: the surprises were added up, or the
    probabilities multiplied. Perplexity is per word: take the mean of the surprises."""
    return np.exp(-np.log(probs).sum())


@unsure.mistake
def mean_before_log(probs):
    """The probabilities are averaged, and so one very unlikely word hardly counts. Each word has
    a surprise of its own: first the logs, then the mean of them."""
    return 1 / probs.mean()


@unsure.mistake
def product_underflows(probs):
    """The product of many probabilities becomes 0 in the computer (underflow), and its root with
    it. Logs of small numbers are moderate: add these instead of multiplying."""
    return probs.prod() ** (-1 / len(probs))
