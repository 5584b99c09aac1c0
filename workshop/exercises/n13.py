"""Notebook 13: a step, the loop and the measure, the mask of a padded batch, a softer loss."""

from functools import partial
from importlib import import_module

import numpy as np

from workshop.exercises.exercise import exercise, numbers

# The little models, loaded when a check begins: they need PyTorch.
models = partial(import_module, "workshop.exercises.models")

one_step = exercise(
    """
    def one_step(model, optimizer, batch, loss_of):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return loss.item()
    """,
    hints="""Which gradients must be gone before backward adds its own? And which must step find?
    zero_grad, then the loss, then backward, then step; at the end return loss.item().""",
    probes=(), backends=("torch",), seconds=3.0, trains=True, prepare=models, story=True,
    slips="""
    gradients-not-cleared: optimizer.zero_grad() → pass
        Gradients of batches before add up: call optimizer.zero_grad() before backward.
    without-backward: loss.backward() → pass
        The gradients are never computed, so nothing is learned: call loss.backward().
    without-step: optimizer.step() → pass
        The weights never change, though there are gradients: optimizer.step() comes last.
    cleared-too-late: loss.backward() → loss.backward(); optimizer.zero_grad()
        The step finds no gradients: zero_grad belongs before backward, not between it and step.
    loss-after-the-step: return loss.item() → return loss_of(model, batch).item()
        This is the loss after the step. Return the one that was computed before it.
    """,
)  # fmt: skip

for label, words, scale, shape in (  # how it begins, words, scale of the weights, (B, T)
    ("a small batch", 2, 1, (1, 4)),
    ("a larger batch", 5, 1, (3, 2)),
    ("two layers", 7, 1, (2, 6)),
):
    one_step.experiment(label)(lambda fn, case=(words, scale, shape): models().steps_of(fn, *case))

train = exercise(
    """
    def train(model, batches, lr):
        model.train()
        parameters, losses = list(model.parameters()), []
        velocities = [torch.zeros_like(p) for p in parameters]
        for x, y in batches:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p, v in zip(parameters, velocities):
                    v.mul_(0.9).add_(p.grad)
                    p.sub_(lr * v)
            losses.append(loss.item())
        return losses
    """,
    hints="""What must be gone before backward adds this batch's gradients? And what must stay?
    Once: train mode, a zero per parameter. A batch: loss, zero_grad, backward, v, p in place.""",
    probes=(), backends=("torch",), seconds=3.0, trains=True, prepare=models,
    slips="""
    the-momentum-is-lost: mul_(0.9) → mul_(0)
        The momentum is missing, or lost with each batch: make velocities once, before the loop.
    gradients-never-cleared: model.zero_grad() → pass
        Gradients of earlier batches add up: call zero_grad for every batch, before backward.
    gradients-cleared-once: ⏎        model.zero_grad() → ∅ ⊕ for x → model.zero_grad()⏎    for x
        zero_grad is called once only, so gradients add up. Call it in the loop, for every batch.
    cleared-before-the-step: v.mul_(0.9).add_(p.grad) → p.grad = None
        The step finds no gradients, so the weights never change: zero_grad belongs before backward.
    no-backward: loss.backward() → pass ⊕ v.mul_(0.9).add_(p.grad) → pass
        The gradients are never computed, so the weights never change: call loss.backward().
    never-steps: p.sub_(lr * v) → p - lr * v
        The weights never change, though there are gradients. Change the model's own p, in place.
    step-before-backward: model.zero_grad()⏎        loss.backward() → pass ⊕ \\
            (p.grad) → (0 if p.grad is None else p.grad) ⊕ losses.append → \\
            model.zero_grad()⏎        loss.backward()⏎        losses.append
        The step comes before backward, so it uses the gradients of the previous batch.
    adam: torch.zeros_like(p) → torch.optim.Adam([p], lr) ⊕ \\
            v.mul_(0.9).add_(p.grad) → v.step() ⊕ p.sub_(lr * v) → ∅
        This is Adam, which scales each step by past gradients. Take plain SGD with momentum 0.9.
    not-in-train-mode: model.train() → pass
        The model stays in the mode it is in, maybe without dropout. Begin with model.train().
    learns-only-from-the-first-batch: in batches → in batches[:1]
        Only the first batch is used, as where a loop returns too early. Return after the loop.
    trains-on-the-last-token: model(x).flatten(0, 1), y.flatten() → model(x)[:, -1], y[:, -1]
        Only the last token of each sentence counts. The loss is the mean over all B · T tokens.
    softmax-before-cross-entropy: flatten(0, 1) → flatten(0, 1).softmax(-1)
        softmax comes before cross_entropy, which contains one: twice in all. Hand over raw logits.
    vocabulary-reshaped: model(x).flatten(0, 1), y.flatten() → \\
            (z := model(x)).reshape(len(z), z.shape[2], -1), y
        reshape to (B, V, T) mixes tokens and words: swap the axes, or join batch and tokens.
    """,
)  # fmt: skip

evaluate = exercise(
    """
    def evaluate(model, batches):
        was_training = model.training
        model.eval()
        total, count = 0.0, 0
        with torch.no_grad():
            for x, y in batches:
                logits = model(x).flatten(0, 1)
                total += nn.functional.cross_entropy(logits, y.flatten(), reduction="sum").item()
                count += y.numel()
        model.train(was_training)
        return total / count
    """,
    hints="""Does a batch of one token count as much as one of a hundred? Which mode is needed?
    Keep model.training; eval(); no_grad: add summed losses and y.numel(); train(what it was).""",
    probes=(), backends=("torch",), seconds=3.0, trains=True, prepare=models,
    slips="""
    dropout-stays-on: model.eval() → pass
        While a model is trained, dropout is on: put it into eval mode before you measure.
    always-back-to-train-mode: train(was_training) → train()
        It always ends in train mode, even if the model was in eval mode before. Restore that mode.
    stays-in-eval-mode: model.train(was_training) → pass
        The model is left in eval mode, without dropout. Put it back into the mode it was in.
    mean-of-batch-means: , reduction="sum" → ∅ ⊕ y.numel() → 1
        All batches count alike, small and large. Divide the sum over all tokens by their number.
    sums-over-sentences: y.numel() → len(y)
        The sum over all tokens is divided by the number of sentences, not by that of tokens.
    weighted-by-sentences: , reduction="sum").item() → ).item() * len(y) ⊕ y.numel() → len(y)
        A batch counts as often as it has sentences. It must count as often as it has tokens.
    last-batch-alone: total += → total = ⊕ count += → count =
        Only the last batch counts, as it overwrites those before. Add up over all batches.
    id-zero-as-padding: reduction → ignore_index=0, reduction ⊕ y.numel() → (y != 0).sum().item()
        Id 0 is taken for padding. Here every token counts.
    perplexity: return total / count → return np.exp(total / count)
        This is the perplexity. Asked for is the mean loss per token, of which exp would be that.
    accuracy-instead: nn.functional.cross_entropy(logits, y.flatten(), reduction="sum") → \\
            (logits.argmax(-1) == y.flatten()).sum()
        This is the accuracy, the share of right predictions. Asked for is the cross-entropy.
    """,
)  # fmt: skip

SIZES = [(2, 3), (1, 4), (3, 2), (2, 6), (4, 1)]
for label, *case, rate in (  # how it begins, words, scale of the weights, (B, T) of each batch
    ("one batch, equal logits", "train", 2, 0, [(1, 4)], 1.0),
    ("two batches, from eval mode", "eval", 2, 1, [(1, 4), (3, 2)], 1.0),
    ("five batches of different sizes", "train", 5, 1, SIZES, 0.3),
    ("two layers with dropout", "train", 7, 1, SIZES, 0.2),
    ("two layers, from eval mode", "eval", 7, 1, [(2, 3), (1, 4)], 0.1),
    ("small steps", "train", 4, 1, [(2, 3)] * 3, 0.01),
    ("large steps", "train", 4, 1, [(2, 3)] * 3, 2.0),
    ("steep losses", "train", 7, 3, [(1, 3), (1, 2)], 0.1),
    ("as many tokens as words", "train", 3, 1, [(2, 3), (3, 3), (1, 3)], 0.3),
    ("gradients left from before", "gradients", 5, 1, [(2, 3), (3, 2)], 0.1),
):
    train.experiment(label)(lambda fn, case=case, rate=rate: models().outcome(fn, *case, rate))
    if rate in (0.2, 0.3, 1.0) or case[0] == "eval":  # the others are about steps
        evaluate.experiment(label)(lambda fn, case=case: models().outcome(fn, *case))


def tokens(size, *shape):
    """Ids of a vocabulary of this size."""
    return numbers(*shape).then(lambda x: (1000 * x).astype(int) % size)


combined_mask = exercise(
    """
    def combined_mask(ids, pad_id):
        T = ids.shape[1]
        causal = np.tril(np.ones((T, T), dtype=bool))
        return causal & (ids != pad_id)[:, None, None, :]
    """,
    hints="""Of which token does a row tell what it may read? And which tokens does padding hide?
    np.tril for the past, (T, T); ids != pad_id for the keys, as (B, 1, 1, T); joined by &.""",
    probes=[("two words and padding", [[5, 7, 0]], 0), ("a single word", [[3], [4]], 0),
            ("sentences of different lengths", [[5, 7, 4, 9], [3, 6, 1, 1]], 1),
            ("padding in front", [[2, 2, 5, 7, 6], [2, 9, 4, 8, 3], [5, 4, 2, 2, 2]], 2),
            ("no padding, a real word 0", [[0, 3, 0, 5], [4, 0, 1, 0]], 9),
            ("as many sentences as words", [[4, 9, 9], [4, 5, 9], [4, 5, 6]], 9),
            ("ids on both sides of pad_id", [[1, 9, 5, 5], [5, 2, 8, 5], [9, 5, 1, 2]], 5),
            ("a long sentence", numbers(2, 120).then(lambda x: (1000 * x).astype(int) % 6), 3)],
    slips="""
    padding-forgotten: ids != pad_id → ids == ids
        Padding is not hidden: no query may read it. Join the causal mask with `ids != pad_id`.
    causal-part-forgotten: causal & → (causal | True) &
        Later words are not hidden: a query may read itself and the keys before it.
    padding-hides-queries: [:, None, None, :] → [:, None, :, None]
        Padding hides the rows of queries. It must hide keys, the last axis: (B, 1, 1, T).
    padded-queries-too: None, :] → None, :] & (ids != pad_id)[:, None, :, None]
        Rows of padded queries become empty, and softmax makes nan of them. Hide keys alone.
    either-instead-of-both: causal & → causal |
        One mask that allows a key is enough here (or). Both must allow it: join them by `&`, and.
    no-axis-for-the-heads: [:, None, None, :] → [:, None, :]
        The axis for the heads is missing, so sentences would be taken for heads: (B, 1, T, T).
    as-numbers: causal & → 1.0 * causal *
        The mask holds the numbers 1 and 0. It must hold True and False: join such values by `&`.
    zero-is-padding: ids != pad_id → ids != 0
        0 is taken for padding, whatever pad_id says: 0 may be a real word.
    later-words: np.tril → np.triu
        Later words may be read, and earlier ones not. Rows are queries: keep the lower triangle.
    padding-at-the-end: (ids != pad_id) → (np.arange(T) < (ids != pad_id).sum(1)[:, None])
        The real words are counted, as if they came first. Padding may stand in front too.
    first-padding: (ids != pad_id) → (np.arange(T) < (ids == pad_id).argmax(1)[:, None])
        Where there is no padding argmax gives 0 too, and hides everything. And it may stand first.
    without-itself: dtype=bool)) → dtype=bool), k=-1)
        A query may not read itself here. It may: the diagonal belongs to the past.
    """,
)  # fmt: skip

LOG_P = np.log([[[0.5, 0.1, 0.3, 0.1], [0.25, 0.45, 0.2, 0.1], [0.2, 0.1, 0.1, 0.6]]])  # (1, 3, 4)

smoothed_loss = exercise(
    """
    def smoothed_loss(logits, targets, pad_id, smoothing=0.1):
        z = logits - logits.max(axis=-1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        of_target = np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
        loss = -(1 - smoothing) * of_target - smoothing * log_p.mean(axis=-1)
        return float(loss[targets != pad_id].mean())
    """,
    hints="""With smoothing 0.1 and V = 5, which share of the answer does each token get?
    (1 - smoothing) times -log p of the target, plus smoothing times the mean of -log p.""",
    probes=[
        ("two words", LOG_P[:, :2], [[0, 2]], 3, 0.1),
        ("two words and padding", LOG_P, [[0, 2, 3]], 3, 0.2),
        ("sentences of different lengths", numbers(2, 4, 7), [[0, 6, 3, 2], [5, 2, 2, 2]], 2),
        ("padding in front", numbers(2, 3, 6), [[5, 0, 4], [5, 5, 1]], 5, 0.3),
        ("as many sentences as words", numbers(3, 3, 3), [[1, 2, 0], [0, 2, 1], [2, 0, 0]], 2, 0.2),
        ("everything smoothed", numbers(2, 3, 5), [[1, 0, 4], [2, 2, 0]], 3, 1.0),
        ("padding is word 0", numbers(2, 4, 6), [[1, 0, 5, 2], [0, 0, 3, 4]], 0, 0.2),
        ("logits of ±2,000", [[[2e3, 1999, -2e3]], [[-2e3, -1999, -2001]]], [[1], [0]], 2, 0.1),
    ],
    slips="""
    shared-by-the-others: log_p.mean(axis=-1) → \\
            (log_p.sum(axis=-1) - of_target) / (log_p.shape[-1] - 1)
        smoothing is shared by the other tokens, V - 1 of them. All V share it, the target too.
    target-not-lowered: -(1 - smoothing) * of_target → -of_target
        The target counts 1, and smoothing comes on top. It must count 1 - smoothing.
    sum-of-all-tokens: log_p.mean(axis=-1) → log_p.sum(axis=-1)
        smoothing is given to each of the V tokens. They share it: take the mean of log p.
    smoothed-overflow: logits - logits.max(axis=-1, keepdims=True) → logits
        exp overflows, or vanishes, for large logits. Subtract the largest of each place first.
    smoothed-without-softmax: z - np.log(np.exp(z).sum(axis=-1, keepdims=True)) → logits
        Logits are taken for log-probabilities. Subtract the log of the sum of their exponentials.
    smooths-the-probabilities: -(1 - smoothing) * of_target - smoothing * log_p.mean(axis=-1) → \\
            -np.log((1 - smoothing) * np.exp(of_target) + smoothing / logits.shape[-1])
        The prediction is smoothed, inside the log. Smooth the target: a weighted sum of -log p.
    smoothed-per-sentence: loss[targets != pad_id].mean() → \\
            np.mean([a[b].mean() for a, b in zip(loss, targets != pad_id)])
        Each sentence is averaged first, so words of short ones count more. Average once, over all.
    padding-too: loss[targets != pad_id] → loss
        Padding counts as well. Average over the places where the target is not pad_id.
    padding-in-the-number: [targets != pad_id].mean() → [targets != pad_id].sum() / loss.size
        The sum is divided by the number of all places. Divide it by that of the real tokens.
    """,
)  # fmt: skip
