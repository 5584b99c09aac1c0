"""Notebook 00: a query held against a key; the table of bigrams, how well it foresaw a text."""

from helpers import text as course
from workshop.exercises.exercise import Probe, Untested, as_array, exercise, numbers

FRUITS = ["we like plums", "we like pears", "they like plums"], "we they like plums pears".split()

compare = exercise(
    """
    def compare(query, key):
        return (query * key).sum()
    """,
    ways=["""
    def compare(query, key):
        return query @ key
    """],
    hints="""What do 2, 2 and 2, 0 give, multiplied number by number? And these two, added up?
    query * key multiplies number by number; sum(…) makes one number of the products.""",
    probes=[("the query of apple, the key of banana", [2.0, 2], [2, 0.0]),
            ("the query of apple, its own key", [2.0, 2], [1, 1.0]),
            ("three numbers, one below 0", [1.0, -2, 3], [0.5, 1, 2]),
            ("64 numbers", numbers(64), numbers(64))],
    story=True,
    slips="""
    products-not-added: .sum() → ∅
        These are the products, number by number. A score is one number: add them up.
    added-not-multiplied: query * key → query + key
        Query and key are added. Multiply them number by number, and add up the products.
    sums-multiplied: (query * key).sum() → query.sum() * key.sum()
        Each row is added up first. First multiply number by number, then add up the products.
    mean-of-the-products: .sum() → .mean()
        This is the mean of the products. A score is their sum.
    first-product-only: .sum() → [0]
        Only the first two numbers are compared. Multiply all pairs, and add up the products.
    last-product-only: .sum() → [-1]
        Only the last product is left, as when a loop sets the sum anew each time. Add to it.
    last-left-out: (query * key) → (query * key)[:-1]
        The last two numbers are left out: a row of d numbers gives d products.
    largest-product: .sum() → .max()
        This is the largest of the products. A score is their sum.
    product-of-the-products: .sum() → .prod()
        The products are multiplied with each other. Add them up.
    divided-already: .sum() → .sum() / np.sqrt(len(key))
        The score is divided by the root already. That is step 2; here it is the sum alone.
    difference: query * key → abs(query - key)
        This adds up how far the rows are apart. Multiply number by number in place of subtracting.
    cosine: .sum() → .sum() / np.linalg.norm(query) / np.linalg.norm(key)
        The score is divided by the lengths of both rows. It is the sum of the products alone.
    query-with-itself: query * key → query * query
        The query is compared with itself. Its numbers meet those of the key.
    cut-to-a-whole-number: (query * key).sum() → int((query * key).sum())
        The sum is cut to a whole number. A score may have decimals: leave out int.
    """,
)  # fmt: skip

bigram_probs = exercise(
    """
    def bigram_probs(sentences, vocab, smoothing=0.0):
        ids = vocab if isinstance(vocab, dict) else {word: i for i, word in enumerate(vocab)}
        counts = np.full((len(ids), len(ids)), float(smoothing))
        for sentence in sentences:
            for word, following in pairwise(sentence.split()):
                counts[ids[word], ids[following]] += 1
        total = counts.sum(axis=1, keepdims=True)
        return counts / np.where(total == 0, 1, total)
    """,
    course=course.bigram_probs,
    hints="""Which words follow *love*, how many are they? What is a row of zeros divided by?
    Begin counts at smoothing, add 1 per pair; divide each row by its sum, or by 1 if that is 0.""",
    probes=[
        ("three sentences", *FRUITS), ("smoothing=1.5", *FRUITS, 1.5),
        ("the same pair twice", ["go on go on go by"], ["on", "go", "by"]),
        ("a word at an end, one in no sentence", ["b a", "a b d", "d"], ["c", "d", "b", "a"]),
        ("a dictionary of word → id", ["x y z", "x z"], {"z": 2, "x": 0, "y": 1})],
    slips="""
    next-word-in-the-rows: [ids[word], ids[following]] → [ids[following], ids[word]]
        Rows and columns are swapped: the word belongs in the row, what follows it in the column.
    across-sentences: in sentences: → in [" ".join(sentences)]:
        The last word of a sentence is paired with the first of the next. Take each sentence alone.
    counts-not-divided: counts / np.where(total == 0, 1, total) → counts
        These are counts, not probabilities: each row must still be divided by its own sum.
    zero-by-zero: np.where(total == 0, 1, total) → total
        A row that nothing follows becomes 0/0, which is nan. Replace a sum of 0 by 1: 0/1 is 0.
    all-divided-by-one-number: .sum(axis=1, keepdims=True) → .sum()
        All are divided by the number of all pairs. A row is divided by its own sum: axis=1.
    smoothing-after-the-division: float(smoothing) → 0.0 ⊕ total) → total) + smoothing
        Smoothing is added to probabilities, after the division. Add it to the counts, before it.
    only-a-dictionary: vocab if isinstance(vocab, dict) else → vocab or
        A list of words is used like a dictionary. Where vocab is a list, number its words first.
    columns-divided: axis=1 → axis=0
        Each column is divided by its sum. A row, all that followed one word, must sum to 1: axis=1.
    no-keepdims: , keepdims=True → ∅
        The sums lie flat and divide the columns. keepdims=True keeps one beside each row, (V, 1).
    seen-or-not: += 1 → = 1
        Each different pair counts once, however often it came. Every time it comes adds one.
    once-in-a-sentence: pairwise(sentence.split()) → set(pairwise(sentence.split()))
        A pair that comes twice in one sentence counts once. Count pair by pair, or use np.add.at.
    last-pair-missed: pairwise(sentence.split()) → pairwise(sentence.split()[:-1])
        The last pair of each sentence is missed: of T words there are T − 1 pairs.
    numbered-anew: vocab if isinstance(vocab, dict) else  → ∅
        The words of a dictionary are numbered anew. Their ids are its values: take those.
    cut-to-whole-numbers: float(smoothing) → int(smoothing)
        The smoothing is cut to a whole number, as in an array of whole numbers. Count in floats.
    smoothing-once-in-the-sum: = counts.sum(axis=1 → = smoothing + (counts - smoothing).sum(axis=1
        A row's sum grows by smoothing once, though each of its V counts does: sum these counts.
    every-time-the-word-comes: counts.sum(axis=1, keepdims=True) → np.array([[" ".join( \\
            sentences).split().count(w)] for w in sorted(ids, key=ids.get)]) + len(ids) * smoothing
        The divisor counts a word also at the end, where nothing follows it. Take its row's sum.
    """,
)  # fmt: skip

word_probs = exercise(
    """
    def word_probs(sentence, vocab, table):
        ids = np.array([vocab.index(word) for word in sentence.split()])
        return table[ids[:-1], ids[1:]]
    """,
    hints="""In which row, and in which column, stands the probability of *plums* after *like*?
    The words' places in vocab are ids. Rows: all ids but the last; columns: all but the first.""",
    probes=[
        ("three words", "a c b", list("abc"), [[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.0, 0.9, 0.1]]),
        ("words not in alphabetical order", "b c a d b", list("dbca"), numbers(4, 4).then(abs)),
        ("ten words of eight", "d a h h b g a d a c", list("abcdefgh"), numbers(8, 8).then(abs)),
    ],
    slips="""
    every-row-with-every-column: [ids[:-1], ids[1:]] → [ids[:-1]][:, ids[1:]]
        Every row is combined with every column. They belong together pair by pair: one number each.
    row-and-column-exchanged: [ids[:-1], ids[1:]] → [ids[1:], ids[:-1]]
        Row and column are exchanged: the word before chooses the row, the one that came the column.
    so-far: table[ids[:-1], ids[1:]] → np.cumprod(table[ids[:-1], ids[1:]])
        Each number is the product of those so far. Asked for is the probability of each word alone.
    surprises: return table[ids[:-1], ids[1:]] → return -np.log(table[ids[:-1], ids[1:]])
        These are surprises, −log p. Asked for are the probabilities as the table has them.
    made-to-sum-to-one: return → p = table[ids[:-1], ids[1:]]⏎    table = table / p.sum()⏎    return
        They are divided by their sum. They come from different rows, and need no sum of 1.
    one-number-for-all: table[ids[:-1], ids[1:]] → table[ids[:-1], ids[1:]].prod()
        The probabilities are multiplied into one. Asked for is each of them, T − 1 numbers.
    first-place-of-a-word: ids[:-1] → ids[[list(ids).index(i) - 1 for i in ids[1:]]]
        A word that comes again is taken at its first place (`index`). Go on place by place.
    last-pair-left-out: ids[1:]] → ids[1:]] * (np.arange(1, len(ids)) < len(ids) - 1)
        The last word's place stays 0: a loop over T − 1 pairs ends one too early.
    repeated-word-once: table[ids[:-1], ids[1:]] → \\
            np.array([*dict(zip(ids[1:], table[ids[:-1], ids[1:]])).values()])
        A word that comes again is kept once, as by a dictionary. Each place has a number: a list.
    last-before-first: [ids[:-1], ids[1:]] → [np.roll(ids, 1), ids]
        The first word gets a number too, as if the last came before it: index −1 is the end.
    first-pair-skipped: [ids[:-1], ids[1:]] → [ids[1:-1], ids[2:]]
        The first pair is skipped. The second word already has one before it: T words, T − 1 pairs.
    """,
)
for e in (compare, bigram_probs, word_probs):  # a list of numbers, or of such, is right as well
    e.probes = [Probe(p.label, lambda fn, p=p: as_array(p.run(fn)), p.args) for p in e.probes]

perplexity = exercise(
    """
    def perplexity(probs):
        surprise = -np.log(probs)
        return np.exp(surprise.mean())
    """,
    hints="""If every word had probability 1/6, what is each surprise, their mean, and exp of that?
    Three steps: the surprise of each word with np.log, their mean, and exp of the mean.""",
    probes=[("a die, thrown three times", [1 / 6, 1 / 6, 1 / 6]), ("a single word", [0.3]),
            ("a half and an eighth", [1 / 2, 1 / 8]), ("a certain word", [0.9, 0.02, 1, 1e-4, 0.7]),
            ("150 unlikely words", [0.003, 0.006, 0.004] * 50)],
    slips="""
    sum-instead-of-mean: surprise.mean() → surprise.sum()
        Surprises are summed, or probabilities multiplied. Take the mean: it is a number per word.
    mean-before-log: -np.log(probs) → -np.log(probs.mean())
        Probabilities are averaged: a very unlikely word hardly counts. First logs, then the mean.
    exp-before-mean: np.exp(surprise.mean()) → np.exp(surprise).mean()
        exp comes before the mean, so one unlikely word outweighs all. First the mean, then exp.
    product-underflows: np.exp(surprise.mean()) → probs.prod() ** (-1 / len(probs))
        The product of many probabilities becomes 0 in the computer (underflow): add logs instead.
    weighted-by-probability: surprise.mean() → (probs * surprise).sum()
        Surprises are weighted by their probabilities, as in an entropy. Here all count alike.
    sign: -np.log → np.log
        A minus is missing: the surprise is −log p, and a perplexity is never below 1.
    no-exp: np.exp(surprise.mean()) → surprise.mean()
        The last step is missing: exp of the mean surprise.
    two-in-place-of-e: np.exp(surprise.mean()) → 2 ** surprise.mean()
        2 is raised to a natural logarithm. np.log goes with np.exp, and 2** with np.log2.
    zero-left-out: surprise = → probs = probs[probs > 0]⏎    surprise =
        A word of probability 0 makes the perplexity infinite. Neither leave it out nor lift its p.
    """,
)  # fmt: skip


@perplexity.experiment("a word of probability 0")
def no_chance(fn):
    try:
        return {"the perplexity is infinite": fn(as_array([0.5, 0.0])) == float("inf")}
    except Exception:  # as math.log(0) raises: no number is wrong
        return Untested()
