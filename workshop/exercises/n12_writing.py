"""Notebook 12: writing an answer word by word, and the loss of a prediction."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from helpers import decoding
from helpers.attention import softmax as weights_of
from workshop.exercises.exercise import Exercise, Probe, Untested, numbers

# ---------------------------------------------------------------- greedy_decode

greedy_decode = Exercise(
    decoding.greedy_decode,
    notebook="12",
    level=2,
    minutes=10,
    task="Write an answer word by word: ask for the next word, take the likeliest, append it, and "
    "ask again with all that is written. The answer ends with end_id, or after max_len words.",
    hints=(
        "How often may the loop run at most, and what must step see each time?",
        "Start from [start_id]; max_len times, append the argmax of the last row of logits, and "
        "leave the loop once it is end_id. Return all but the start.",
        "max_len times `ids.append(int(np.argmax(step(ids)[-1])))`, then "
        "`if ids[-1] == end_id: break`, and after the loop `return ids[1:]`",
    ),
)
greedy_decode.answer("""
    def greedy_decode(step, start_id, end_id, max_len):
        ids = [start_id]
        for _ in range(max_len):
            ids.append(int(np.argmax(step(ids)[-1])))
            if ids[-1] == end_id:
                break
        return ids[1:]
""")
greedy_decode.answer("""
    def greedy_decode(step, start_id, end_id, max_len):
        out = []
        for _ in range(max_len):
            logits = step([start_id] + out)
            word = int(logits[-1].argmax())
            out.append(word)
            if word == end_id:
                break
        return out
""")
greedy_decode.answer("""
    def greedy_decode(step, start_id, end_id, max_len):
        ids = [start_id]
        while len(ids) <= max_len and (len(ids) == 1 or ids[-1] != end_id):
            logits = step(ids)
            word = np.argmax(logits[-1])
            ids.append(int(word))
        return ids[1:]
""")
greedy_decode.answer("""
    def greedy_decode(step, start_id, end_id, max_len):
        ids = [start_id]
        while len(ids) - 1 < max_len:
            nxt = step(ids)[-1].argmax().item()
            ids.append(nxt)
            if nxt == end_id:
                return ids[1:]
        return ids[1:]
""")

greedy_decode.why(
    "ids.append(nxt) | out.append(word) | ids.append(int(word))",
    "Each new word is appended before the test, end_id too: it belongs to the answer, and the "
    "input grows.",
)
greedy_decode.why(
    "[start_id] + out | step(ids) | [start_id] + ids",
    "A transformer keeps no state: each step needs the whole sequence so far, start_id and all "
    "words written, not the newest alone.",
)
greedy_decode.why(
    "step(ids)[-1] | logits[-1]",
    "The last row, the newest position, predicts the next word; the rows before it predict words "
    "that are already written.",
)
greedy_decode.why(
    "np.argmax | logits[-1].argmax()",
    "Greedy means the likeliest word each time: the argmax of the last row alone.",
)
greedy_decode.why(
    "range(max_len) | len(ids) <= max_len | len(ids) - 1 < max_len | max_len | <= | <",
    "max_len counts the generated words, neither one too few nor one too many; the start token "
    "was given and is not counted.",
)
greedy_decode.why(
    "ids[-1] == end_id | word == end_id | ids[-1] != end_id | end_id",
    "end_id ends the answer: the loop must stop once it was written.",
)
greedy_decode.why(
    "ids[1:]",
    "start_id was given, not generated: it is no part of the result.",
)


class Step:
    """A decoder of few words: `choose` says which word follows the ids so far.

    Only the last row of its logits tells; the rows before it point elsewhere, and more loudly.
    """

    def __init__(self, name: str, V: int, choose: Callable[[list[int]], int], low: float = 0.0):
        self.name, self.V, self.choose, self.low = name, V, choose, low

    def __call__(self, ids: Any) -> np.ndarray:
        seen = [int(i) for i in np.ravel(ids)]
        logits = self.low - 1 - np.arange(self.V) / 10 * np.ones((len(seen), 1))
        for row, i in enumerate(seen[:-1]):
            logits[row, (i + row + 3) % self.V] = self.low + 6 + row * 3 % 4 / 2
        wanted = self.choose(seen) if len(seen) <= 40 else self.V - 1
        logits[-1, (wanted + 1) % self.V] = self.low + 4.5  # the second best
        logits[-1, wanted] = self.low + 5
        return logits

    def __repr__(self) -> str:
        return self.name


def chain(*ids: int) -> Callable[[list[int]], int]:
    """Each id is followed by the next one."""
    return lambda seen: dict(pairwise(ids)).get(seen[-1], ids[-1])


def by_number(*words: int) -> Callable[[list[int]], int]:
    """The n-th word, whatever was written."""
    return lambda seen: words[min(len(seen), len(words)) - 1]


def by_history(V: int, length: int) -> Callable[[list[int]], int]:
    """A word that depends on all before and their order; the last id ends it after `length`."""

    def choose(seen: list[int]) -> int:
        total = sum((place + 2) * (i + 1) for place, i in enumerate(seen))
        return V - 1 if len(seen) >= length else total % (V - 1)

    return choose


def decode_probe(label: str, step: Step, start_id: int, end_id: int, max_len: int) -> None:
    """Compare the ids; a list, a tuple or an array of them are all the same."""

    def run(fn: Callable) -> Any:
        ids = fn(step, start_id, end_id, max_len)
        if isinstance(ids, np.ndarray) and ids.ndim == 1:
            return ids.tolist()
        return ids

    greedy_decode.probes.append(Probe(label, run, (step, start_id, end_id, max_len)))


@greedy_decode.experiment("the same call again")
def the_same_call_twice(fn: Callable) -> dict | Untested:
    step = Step("all nearly alike", 30, by_history(30, 9))

    def nearly_alike(ids: Any) -> np.ndarray:
        return step(ids) / 100

    try:
        first, again = (np.ravel(fn(nearly_alike, 4, 29, 8)).tolist() for _ in range(2))
    except Exception:  # the next probe tells
        return Untested()
    same = "both calls give the same ids: the likeliest each time, argmax, none drawn at random"
    return {same: first == again}


of_all, endless = Step("by all before", 11, by_history(11, 6)), by_history(11, 20)
decode_probe(
    "three words, then the end", Step("1 → 3 → 2 → 5", 6, chain(1, 3, 2, 5, 0, 1)), 1, 5, 8
)
decode_probe("words that depend on all before", of_all, 4, 10, 20)
decode_probe("an answer of thirty words", Step("by all before", 11, by_history(11, 30)), 3, 10, 35)
decode_probe("a limit before the end", Step("by all before", 11, endless), 7, 10, 4)
decode_probe("the end at once", Step("7 at once", 8, by_number(7, 3, 1)), 0, 7, 5)
decode_probe("the end as last word allowed", Step("5, 2, 8", 9, by_number(5, 2, 8, 1)), 3, 8, 3)
decode_probe("an end_id of 0", Step("4, 6, 0", 7, by_number(4, 6, 0, 2, 3)), 5, 0, 6)
decode_probe("a max_len of 1", Step("by all before", 11, endless), 2, 10, 1)
decode_probe("the start word once more", Step("3, 1, 2, 4", 5, by_number(3, 1, 2, 4)), 1, 4, 9)
decode_probe("logits below 0", Step("2, 6, 1, 7", 8, by_number(2, 6, 1, 7), -1000.0), 3, 7, 9)
decode_probe("the same word twice", Step("2, 2, 5, 5, 0", 7, by_number(2, 2, 5, 5, 0)), 3, 0, 9)


def written(
    step: Callable,
    start_id: int,
    end_id: int,
    max_len: int,
    given: Callable[[list[int]], list[int]] = list,
    pick: Callable[[np.ndarray], int] = lambda logits: int(np.argmax(logits[-1])),
) -> list[int]:
    """Greedy decoding with another input for step, or another way to choose."""
    ids = [start_id]
    while len(ids) <= max_len:
        ids.append(pick(step(given(ids))))
        if ids[-1] == end_id:
            break
    return ids[1:]


@greedy_decode.mistake
def counts_the_start(step, start_id, end_id, max_len):
    """It stops one word too early, as if the start token were counted. max_len is the number of
    words that may be generated, and start_id was given."""
    return decoding.greedy_decode(step, start_id, end_id, max_len - 1)


@greedy_decode.mistake
def feeds_the_newest_word(step, start_id, end_id, max_len):
    """step sees only the newest word. A transformer keeps no state from call to call, so that it
    has forgotten the others: hand it the whole sequence so far, start_id included."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[-1:])


@greedy_decode.mistake
def leaves_out_the_end(step, start_id, end_id, max_len):
    """The end token is missing in the result. It was generated and belongs to the answer: append
    each word first, then see whether it was end_id."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    return ids[:-1] if ids[-1:] == [end_id] else ids


@greedy_decode.mistake
def returns_the_start_too(step, start_id, end_id, max_len):
    """start_id is part of the result. It was given, not generated: return the new words only, from
    the second id on."""
    return [start_id, *decoding.greedy_decode(step, start_id, end_id, max_len)]


@greedy_decode.mistake
def ignores_the_end(step, start_id, end_id, max_len):
    """It goes on after end_id, until max_len. The decoder says by end_id that the answer is
    complete: stop once it was written."""
    return written(step, start_id, -1, max_len)


@greedy_decode.mistake
def ignores_max_len(step, start_id, end_id, max_len):
    """max_len is ignored: it goes on until end_id comes, if it ever does. A model may never say
    that it is done, so the loop must stop after max_len words too."""
    return written(step, start_id, end_id, 60)


@greedy_decode.mistake
def input_never_grows(step, start_id, end_id, max_len):
    """step always sees the start token only, so it predicts the first word again and again: the
    input never grows. Append each new word, and hand over all of them."""
    return written(step, start_id, end_id, max_len, given=lambda ids: ids[:1])


@greedy_decode.mistake
def argmax_over_all_rows(step, start_id, end_id, max_len):
    """The argmax runs over all rows of the logits, flattened, and what comes out is no id. The next
    word is the largest logit of the last row, the newest position."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z)))


@greedy_decode.mistake
def reads_the_first_row(step, start_id, end_id, max_len):
    """It chooses from the first row of the logits, which predicts the word after the start. The
    next word comes from the last row, the position of the newest word."""
    return written(step, start_id, end_id, max_len, pick=lambda z: int(np.argmax(z[0])))


@greedy_decode.mistake
def fills_with_the_end(step, start_id, end_id, max_len):
    """The result is filled up to max_len with end_id. The answer ends at the first end_id, and may
    be shorter than max_len: stop there."""
    ids = decoding.greedy_decode(step, start_id, end_id, max_len)
    return ids + [end_id] * (max_len - len(ids))


# ---------------------------------------------------------------- cross_entropy

cross_entropy = Exercise(
    decoding.cross_entropy,
    notebook="12",
    level=2,
    minutes=10,
    task="Average -log p(target) over the tokens that are not padding, without computing any "
    "probability: -log p = log Σ exp(z) - z[target]. Subtract the largest logit first, so that "
    "neither large logits nor tiny probabilities break it.",
    hints=(
        "What is left of log(exp(z[target]) / Σ exp(z)) when you write the fraction as a "
        "difference?",
        "z = logits minus their largest along the last axis; log Σ exp(z) minus the logit of the "
        "target; then the mean where targets != pad_id.",
        "`z = logits - logits.max(axis=-1, keepdims=True)`, `loss = np.log(np.exp(z).sum(-1)) "
        "- np.take_along_axis(z, targets[..., None], -1)[..., 0]`, then `return "
        "float(loss[targets != pad_id].mean())`",
    ),
)
cross_entropy.answer("""
    def cross_entropy(logits, targets, pad_id):
        z = logits - logits.max(axis=-1, keepdims=True)
        picked = np.take_along_axis(z, targets[..., None], axis=-1)[..., 0]
        loss = np.log(np.exp(z).sum(axis=-1)) - picked
        return float(loss[targets != pad_id].mean())
""")
cross_entropy.answer("""
    def cross_entropy(logits, targets, pad_id):
        z = logits - logits.max(axis=-1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        real = targets != pad_id
        return float(-np.mean(log_p[real, targets[real]]))
""")
cross_entropy.answer("""
    def cross_entropy(logits, targets, pad_id):
        total, count = 0.0, 0
        for b in range(targets.shape[0]):
            for t in range(targets.shape[1]):
                if targets[b, t] != pad_id:
                    z = logits[b, t] - logits[b, t].max()
                    total += np.log(np.exp(z).sum()) - z[targets[b, t]]
                    count += 1
        return float(total / count)
""")
cross_entropy.answer("""
    def cross_entropy(logits, targets, pad_id):
        z = logits - logits.max(axis=-1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        nll = -np.take_along_axis(log_p, targets[..., None], -1).squeeze(-1)
        real = targets != pad_id
        return float((nll * real).sum() / real.sum())
""")
cross_entropy.answer("""
    import torch.nn.functional as F

    def cross_entropy(logits, targets, pad_id):
        V = logits.shape[-1]
        loss = F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=pad_id)
        return loss.item()
""")

cross_entropy.why(
    "logits[:, :-1] | targets[:, 1:]",
    "Logits and targets belong together place by place: the shift was made before, by shift_right.",
)
cross_entropy.why(
    "targets != pad_id | ignore_index=pad_id | pad_id | real",
    "Padding, whatever its id, is no word to predict: positions whose target is pad_id count "
    "neither in the sum nor in the number.",
)
cross_entropy.why(
    "real.sum() | count | (nll * real).sum() / real.sum() | total / count | reduction | mean",
    "The loss is one number, a mean: the sum divided by the number of real tokens in the batch, "
    "padding not counted.",
)
cross_entropy.why(
    "log_p[real, targets[real]] | z[targets[b, t]] | np.take_along_axis(z, targets[..., None], "
    "axis=-1)[..., 0]",
    "Only the logit of the target counts, at each position its own, not that of the likeliest "
    "word.",
)
cross_entropy.why(
    "-np.mean(log_p[real, targets[real]]) | -log_p | np.log(np.exp(z).sum(axis=-1)) - picked",
    "The minus sign makes the loss positive: log p is negative, for p is below 1.",
)
cross_entropy.why(
    "logits - logits.max(axis=-1, keepdims=True) | logits.max(axis=-1, keepdims=True)",
    "The largest logit of each position is subtracted: it cancels out, and exp can neither "
    "overflow nor all underflow.",
)
cross_entropy.why(
    "np.log(np.exp(z).sum(axis=-1)) | np.log(np.exp(z).sum()) | np.log",
    "-log p is log Σ exp(z) - z[target], with the natural log, not base 2; no tiny probability "
    "is rounded to 0.",
)
cross_entropy.why(
    "logits.reshape(-1, V) | logits",
    "Raw logits go in, each row of V for one token, no softmax before: flatten or transpose; "
    "reshape to (B, V, T) mixes words.",
)

# (1, 2, 4) and (1, 3, 4)
two_words = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1]]])
with_padding = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1], [0.2, 0.1, 0.1, 0.6]]])
FAR = np.array([[[1000], [0], [-500]], [[0], [900], [0]]])
thousands = np.array([[[1000.0, 999.0, -1000.0], [-1000.0, -999.0, -1001.0]]])
lengths = np.array([[0, 6, 3, 2], [5, 2, 2, 2]])
several = np.array([[1, 2, 3], [0, 2, 1], [2, 3, 3]])
far_rows = numbers(2, 3, 5).then(lambda x: x + FAR)
cross_entropy.probe("two words", two_words, np.array([[0, 2]]), 3)
cross_entropy.probe("equal logits", np.zeros((2, 3, 5)), np.array([[1, 0, 4], [2, 2, 0]]), 3)
cross_entropy.probe("two words and padding", with_padding, np.array([[0, 2, 3]]), 3)
cross_entropy.probe("sentences of different lengths", numbers(2, 4, 7), lengths, 2)
cross_entropy.probe("padding in front", numbers(2, 3, 6), np.array([[5, 0, 4], [5, 5, 1]]), 5)
cross_entropy.probe("a pad_id of 0", numbers(2, 4, 5), np.array([[4, 1, 2, 0], [3, 0, 0, 0]]), 0)
cross_entropy.probe("as many sentences as words", 2 * numbers(3, 3, 4), several, 3)
cross_entropy.probe("as many words as positions", numbers(2, 3, 3), several[1:] % 3, 2)
cross_entropy.probe("rows far apart", far_rows, np.array([[1, 4, 0], [2, 3, 0]]), 0)
cross_entropy.probe("logits of ±1,000", thousands, np.array([[1, 0]]), 2)
cross_entropy.probe("no padding", 3 * numbers(3, 2, 6), np.array([[1, 2], [3, 3], [2, 1]]), 5)


@cross_entropy.experiment("a target that looked impossible")
def impossible_target(fn: Callable) -> dict:
    loss = fn(np.array([[[100, 0, -100]]], dtype=np.float32), np.array([[2]]), 1)
    loss = loss if isinstance(loss, float | int) else np.nan
    return {
        "the loss is finite": bool(abs(loss) < 1e30),
        "its size is the difference of the logits, 200": not abs(abs(loss) - 200) > 1e-3,
    }


def log_probs(logits: np.ndarray) -> np.ndarray:
    """Stable logarithms of softmax, in double precision."""
    z = np.asarray(logits, dtype=np.float64)
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def token_losses(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """-log p of each target, padding too: (B, T)."""
    return -of_targets(log_probs(logits), targets)


def of_targets(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The entry of each target: (B, T, V) → (B, T)."""
    return np.take_along_axis(scores, targets[..., None], -1)[..., 0]


@cross_entropy.mistake
def divides_by_all(logits, targets, pad_id):
    """The loss of padding is set to 0 but still counted in the average, so long padding makes the
    loss look small. Divide by the number of real tokens, not of all, B · T."""
    return float((token_losses(logits, targets) * (targets != pad_id)).mean())


@cross_entropy.mistake
def minus_missing(logits, targets, pad_id):
    """The loss is negative: a minus sign is missing or one too many. log p is negative, for p is
    below 1, so the loss, -log p, is positive, and shrinks as p grows."""
    return -decoding.cross_entropy(logits, targets, pad_id)


@cross_entropy.mistake
def softmax_twice(logits, targets, pad_id):
    """The softmax is applied twice: F.cross_entropy and log-softmax contain one, and want logits,
    not probabilities. Hand over the raw logits."""
    return decoding.cross_entropy(weights_of(logits), targets, pad_id)


@cross_entropy.mistake
def sums_up(logits, targets, pad_id):
    """It sums over the tokens, so that long batches have larger losses. Take the mean: divide by
    the number of real tokens."""
    return float(token_losses(logits, targets)[targets != pad_id].sum())


@cross_entropy.mistake
def averages_by_sentence(logits, targets, pad_id):
    """It averages each sentence first, then the sentences, so that the tokens of short ones count
    more. Every real token counts the same: one mean over all of them."""
    real = targets != pad_id
    losses = token_losses(logits, targets) * real
    return float((losses.sum(axis=1) / real.sum(axis=1)).mean())


@cross_entropy.mistake
def shifts_again(logits, targets, pad_id):
    """Logits and targets are shifted by one against each other. They belong together place by
    place: the shift was made before, by shift_right, when the decoder's input was built."""
    if targets.shape[1] > 1:
        logits, targets = logits[:, :-1], targets[:, 1:]
    return decoding.cross_entropy(logits, targets, pad_id)


@cross_entropy.mistake
def log_of_the_mean(logits, targets, pad_id):
    """It takes the log of the mean probability. The loss is the mean of the logs: take -log p of
    each token first, then average."""
    return float(-np.log(np.exp(-token_losses(logits, targets))[targets != pad_id].mean()))


@cross_entropy.mistake
def prefers_its_own_guess(logits, targets, pad_id):
    """It takes the probability of the likeliest word, the maximum, and never looks which word was
    the target. The loss asks how probable the target was."""
    losses = -log_probs(logits).max(axis=-1)
    return float(losses[targets != pad_id].mean())


@cross_entropy.mistake
def caps_the_loss(logits, targets, pad_id):
    """A small number such as 1e-9 inside the log (or clip) caps the loss of unlikely targets. It is
    not needed where log Σ exp(z) - z[target] stands in place of the log of a tiny probability."""
    p = weights_of(np.asarray(logits, dtype=np.float64))
    return float(-np.log(of_targets(p, targets) + 1e-9)[targets != pad_id].mean())


@cross_entropy.mistake
def log_of_zero(logits, targets, pad_id):
    """A tiny probability underflows to 0, and log 0 is infinite. Take the log before any division,
    log Σ exp(z) - z[target], with the largest logit subtracted: that is stable."""
    p = weights_of(logits)
    return float(-np.log(of_targets(p, targets))[targets != pad_id].mean())


@cross_entropy.mistake
def overflows_in_the_loss(logits, targets, pad_id):
    """exp overflows for large logits, and infinity / infinity is nan. Subtract the largest logit of
    each position first, which changes no probability: then it is stable."""
    e = np.exp(logits)
    p = of_targets(e / e.sum(axis=-1, keepdims=True), targets)
    return float(-np.log(p)[targets != pad_id].mean())


@cross_entropy.mistake
def perplexity_instead(logits, targets, pad_id):
    """It returns exp of the loss, the perplexity, which overflows for unlikely targets. Return the
    mean of -log p itself."""
    return float(np.exp(decoding.cross_entropy(logits, targets, pad_id)))
