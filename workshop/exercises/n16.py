"""Notebook 16: a head switched off, what heads look for and copy, patches, a lens."""

import copy
from functools import cache

import numpy as np

from workshop.exercises.exercise import Probe, exercise, numbers

BLOCKS = [[5, 9, 2, 7], [4, 1, 8, 3], [6, 0, 2, 1]]
E = [[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]]  # of three tokens

without_head = exercise(
    """
    def without_head(joined, head, d_head):
        left = joined.clone()
        left[..., (head - 1) * d_head : head * d_head] = 0
        return left
    """,
    hints="""With d_head = 2, which numbers belong to head 1, and which to head 2?
    left = joined.clone(), then left[..., (head - 1) * d_head : head * d_head] = 0.""",
    probes=[("two heads of two numbers, the second off", [[[1.0, 3, 2, 1]]], 2, 2),
            ("three heads, the first off", numbers(2, 3, 6), 1, 2),
            ("three heads, the second off", numbers(2, 7, 6), 2, 2),
            ("three heads, the last off", numbers(2, 4, 12), 3, 4),
            ("an only head", numbers(1, 3, 5), 1, 5)],
    backends=("torch",), story=True, slips="""
    heads-from-zero: (head - 1) → head ⊕ : head * → : (head + 1) *
        The next head is off. Heads count from 1: the slice begins at (head - 1) * d_head.
    only-that-head: joined.clone() → torch.zeros_like(joined) ⊕ \\
            = 0 → = joined[..., (head - 1) * d_head : head * d_head]
        All other heads are off, and this one is on. Zero belongs into its own slice alone.
    one-number: (head - 1) * d_head : head * d_head → head - 1
        One number of each word is zero. A head has d_head numbers, side by side.
    to-the-end: : head * d_head → :
        All heads after it are off, too. Its slice ends at head * d_head.
    from-the-start: (head - 1) * d_head : → :
        All heads before it are off, too. Its slice begins at (head - 1) * d_head.
    interleaved: (head - 1) * d_head : head * d_head → head - 1 :: joined.shape[-1] // d_head
        Numbers of all heads are zero. The d_head numbers of one head stand side by side.
    words-in-place-of-numbers: [..., → [:,
        Words are zero, axis 1. The heads stand side by side in the last axis: [..., own].
    its-own-numbers-alone: return left → return joined[..., (head - 1) * d_head : head * d_head]
        This is the head's slice alone. Return all numbers, with zeros in that slice.
    unchanged: return left → return joined
        Nothing is switched off: these are the numbers as they came. Return the changed copy.
    """,
)  # fmt: skip

repeat_blocks = exercise(
    """
    def repeat_blocks(blocks, lengths, T):
        place = np.arange(T) % lengths[:, None]  # (B, T): which token of its block
        return np.take_along_axis(blocks, place, axis=1)
    """,
    hints="""Which place of its block stands at the places 0, 1, 2, 3, 4 of the text 5 9 5 9 5?
    t % length. np.arange(T) % lengths[:, None] are the places of all rows: np.take_along_axis.""",
    probes=[("one block of two tokens", [[5, 9, 2, 6]], [2], 5),
            ("three blocks of different lengths", BLOCKS, [2, 3, 4], 10),
            ("a block of one token", BLOCKS, [1, 4, 2], 6), ("short texts", BLOCKS, [4, 3, 2], 3),
            ("forty tokens", np.arange(60).reshape(4, 15) % 37, [14, 8, 11, 3], 40)],
    slips="""
    one-length-for-all: % lengths[:, None] → [None] % lengths[0]
        All rows repeat with the length of the first. Each row has its own: lengths[:, None].
    whole-block-repeated: % lengths[:, None] → [None] % blocks.shape[1]
        Whole rows of blocks are repeated. Only the first lengths[b] tokens belong to row b's block.
    last-token-repeated: % lengths[:, None] → .clip(max=lengths[:, None] - 1)
        When its block is over, a text repeats the last token. It must begin again with the first.
    one-too-short: lengths[:, None] → (lengths[:, None] - 1)
        The blocks are one token too short: length 2 means the places 0 and 1.
    each-token-repeated: np.arange(T) % lengths[:, None] → np.arange(T) // -(-T // lengths[:, None])
        Each token is repeated, 5 5 9 9. The block repeats as a whole: 5 9 5 9.
    rows-by-rows: np.take_along_axis(blocks, place, axis=1) → blocks[:, place]
        Every block meets the places of all rows: an axis too many. Row b takes those of its own.
    only-whole-blocks: return → blocks = blocks.copy()⏎    return \\
            (np.arange(T) < T // lengths[:, None] * lengths[:, None]) *
        The end stays empty where the block no longer fits as a whole. Cut it there: T tokens.
    lengths-without-an-axis: lengths[:, None] → lengths
        lengths lies along the tokens. It belongs to the rows: lengths[:, None], a column.
    """,
)  # fmt: skip

induction_pattern = exercise(
    """
    def induction_pattern(ids):
        same = np.tril(ids[:, None] == ids, k=-1)  # (T, T): the query's token, earlier
        wanted = np.zeros_like(same)
        wanted[:, 1:] = same[:, :-1]  # one place after it
        return wanted
    """,
    hints="""In 7 3 5 7 3, where did the token of query 4 stand before? Which key comes next?
    ids[:, None] == ids finds equal tokens. Keep those below the diagonal; move them right.""",
    probes=[("one token twice", [7, 3, 7]), ("a block of three, twice", [7, 3, 5, 7, 3, 5]),
            ("one token three times", [4, 2, 4, 1, 4]), ("no token twice", [3, 0, 2, 1]),
            ("twice in a row", [4, 1, 1, 2]), ("one token only", [6, 6, 6]), ("a single one", [2]),
            ("forty tokens", np.arange(40) * 7 % 11 % 6)],
    slips="""
    the-same-token: wanted[:, 1:] = same[:, :-1] → wanted[:] = same
        This marks the earlier occurrence itself. Wanted is the token right after it.
    the-token-before: wanted[:, 1:] = same[:, :-1] → wanted[:, :-1] = same[:, 1:]
        This marks the token before the earlier occurrence. Wanted is the one right after it.
    moved-down: wanted[:, 1:] = same[:, :-1] → wanted[1:] = same[:-1]
        The pattern is moved down, to the next query. Move it to the right, to the next key.
    itself-counts: , k=-1 → ∅
        A query's own place counts as an earlier one. Only places before it do: below the diagonal.
    later-ones-too: np.tril(ids[:, None] == ids, k=-1) → (ids[:, None] == ids) > np.eye(len(ids))
        Later occurrences count as well. Only an earlier one does: its place k − 1 is below q.
    later-ones-alone: np.tril(ids[:, None] == ids, k=-1) → np.triu(ids[:, None] == ids, k=1)
        Only later occurrences count. Keep the earlier ones: np.tril with k=-1.
    the-last-time-only: = same[:, :-1] → = (same & (same[:, ::-1].cumsum(1)[:, ::-1] == 1))[:, :-1]
        Only the last earlier occurrence counts. Each of them does: a head may read any.
    the-first-time-only: = same[:, :-1] → = (same & (same.cumsum(1) == 1))[:, :-1]
        Only the first occurrence counts. Each earlier one does: compare with all of them.
    wraps-around: wanted[:, 1:] = same[:, :-1] → wanted[:] = (np.roll(ids, 1) == ids[:, None]) \\
            & np.tri(len(ids), dtype=bool)
        Before the first token stands none. np.roll and index −1 take the last of all for it.
    key-before-the-query: return wanted → return np.tril(wanted, k=-1)
        The key need not stand before the query, only the token before it: in 4 1 1 it counts.
    rows-and-columns: return wanted → return wanted.T.copy()
        Queries and keys are exchanged. Rows are the queries: wanted[q, k].
    """,
)  # fmt: skip

copying_score = exercise(
    """
    def copying_score(E, W_v, W_o, U):
        logits = E @ W_v @ W_o @ U  # (V, V): read, raised
        return (logits.argmax(axis=1) == np.arange(len(E))).mean()
    """,
    hints="""A row for each token that is read: which of its entries belongs to the token itself?
    argmax along each row says which is raised most. Compare it with 0, 1, 2, …; take the mean.""",
    probes=[("three tokens, all copied", E, np.eye(2), np.eye(2), np.transpose(E)),
            ("three tokens, one copied", E, np.diag([1.0, -1.0]), np.eye(2), np.transpose(E)),
            ("none copied", E, np.eye(2), -np.eye(2), np.transpose(E)),
            ("random numbers", numbers(7, 5), numbers(5, 3), numbers(3, 5), numbers(5, 7)),
            ("twelve tokens", numbers(12, 6), numbers(6, 4), numbers(4, 6), numbers(6, 12)),
            ("one drowns the others", *[np.eye(5)] * 3, np.eye(5) + 2 * np.eye(5)[2])],
    slips="""
    columns-in-place-of-rows: axis=1 → axis=0
        The largest of each column is sought: who raises this token most? Rows are what is read.
    smallest-of-the-row: argmax → argmin
        The smallest of each row is taken. A head copies where the token's own logit is the largest.
    largest-of-the-table: .argmax(axis=1) == np.arange(len(E)) → .max() == np.diag(logits)
        A token's logit is compared with the largest of all. It must be the largest of its own row.
    mean-probability: (logits.argmax(axis=1) == np.arange(len(E))).mean() → \\
            np.trace(softmax(logits)) / len(E)
        This is the mean probability of the own token. Count how often its logit is the largest.
    raised-at-all: logits.argmax(axis=1) == np.arange(len(E)) → np.diag(logits) > 0
        A token counts as soon as its own logit is above 0. It must be the largest of its row.
    counted-and-not-shared: .mean() → .sum()
        This is how many tokens are copied. Divide by the number of tokens: a share from 0 to 1.
    attention-left-out: @ W_v @ W_o → ∅
        Table and output alone are multiplied. The head stands between them: E W_v W_o U.
    largest-number-of-all: axis=1 → ∅
        argmax has no axis, so it seeks one place in the whole table. Each row has its own: axis=1.
    """,
)  # fmt: skip

patch_layer = exercise(
    """
    def patch_layer(model, ids, other, layer, place):
        patched, kept = model.layers[layer - 1], []
        hook = patched.register_forward_hook(lambda module, args, out: kept.append(out))
        model(other)
        hook.remove()

        def put(module, args, out):
            out = out.clone()  # (B, T, D)
            out[:, place] = kept[0][:, place]
            return out

        hook = patched.register_forward_hook(put)
        logits = model(ids)
        hook.remove()
        return logits
    """,
    hints="""How do you keep what the layer gives for `other`, until the model reads ids?
    One forward hook keeps the output; remove it. Another returns it with [:, place] replaced.""",
    backends=("torch",), slips="""
    unpatched: return out → pass
        These are the logits of ids alone: a hook must return the change. Is the first one removed?
    hook-left: hook.remove() → pass
        A hook is still there, so the model goes on as patched: hook.remove().
    layers-from-zero: layers[layer - 1] → layers[layer]
        It acts one layer too late. Layers count from 1, the list from 0: layers[layer - 1].
    places-from-one: :, place] → :, place - 1]
        The place before is patched. Places count from 0, as Python does.
    texts-exchanged: model(other) → model(id_s) ⊕ model(ids) → model(other) ⊕ id_s → ids
        The two texts are exchanged: the model reads `other`, with one vector from ids.
    batch-in-place-of-token: :, place] → place]
        A text of the batch is replaced, axis 0. The tokens are axis 1: [:, place].
    its-input-patched: append(out) → append(args[0]) ⊕ \\
            forward_hook(put) → forward_pre_hook(lambda m, a: (put(m, a, a[0]),))
        What goes into the layer is replaced. Replace what it gives: a forward hook, not a pre-hook.
    token-exchanged: return out → ⏎    ids = ids.clone()⏎    ids[:, place] = other[:, place]
        The token itself is exchanged. Leave ids alone, and replace a vector that the layer gives.
    all-places: out[:, place] = kept[0][:, place] → out = kept[0]
        These are the logits of `other`: its vectors stand at all places. Replace one: [:, place].
    first-text-for-all: kept[0][:, place] → kept[0][0, place]
        All texts of the batch get the vector of the first. Each has its own: [:, place].
    """,
)  # fmt: skip


def told(ids, other, layer, place):
    """A patch that tells which texts, which layer and which place it was asked for."""
    return float(100 * ids[place] + 10 * other[place] + layer + 0.1 * place)


both_ways = exercise(
    """
    def both_ways(patch, good, bad, layers, places):
        sufficient = [[patch(bad, good, n, t) for t in places] for n in layers]
        necessary = [[patch(good, bad, n, t) for t in places] for n in layers]
        return np.array([sufficient, necessary])
    """,
    hints="""Which text does the model read, and whose is the one vector, in each experiment?
    patch(bad, good, layer, place) for each layer, each place; then patch(good, bad, …).""",
    probes=[("one layer, one place", told, [3, 5, 7], [3, 6, 7], [1], [1]),
            ("two layers, three places", told, [3, 5, 7], [2, 6, 8], [1, 2], [0, 1, 2]),
            ("some places of more", told, [4, 1, 8, 3, 9], [4, 7, 8, 2, 9], [1, 2, 3], [3, 1])],
    slips="""
    experiments-exchanged: [sufficient, necessary] → [necessary, sufficient]
        The experiments are exchanged. First the bad text is read, with one vector of the good.
    bad-into-good-twice: patch(bad, good → patch(good, bad
        Both times the good text is read. First the bad one is, with one vector of the good.
    good-into-bad-twice: patch(good, bad → patch(bad, good
        Both times the bad text is read. In the second experiment the good one is.
    patched-with-itself: patch(bad, good → patch(bad, bad ⊕ patch(good, bad → patch(good, good
        A text is patched with its own vectors, which changes nothing. Take them from the other.
    one-experiment: np.array([sufficient, necessary]) → np.array(sufficient)
        One experiment is missing: return both, the second with the texts exchanged.
    places-first: [sufficient, necessary]) → [sufficient, necessary]).transpose(0, 2, 1)
        Layers and places are exchanged: the shape is (2, layers, places).
    layers-from-zero: , n, t) → , n - 1, t)
        It patches one layer too early. Hand on the layers as they are given.
    places-from-one: , n, t) → , n, t - 1)
        It patches the place before. Hand on the places as they are given.
    """,
)  # fmt: skip

ablate_head = exercise(
    """
    def ablate_head(model, ids, layer, head):
        attention = model.layers[layer - 1].attention
        own = slice((head - 1) * attention.d_head, head * attention.d_head)

        def without(module, args):
            found = args[0].clone()  # (B, T, H · d_head)
            found[..., own] = 0
            return (found,)

        hook = attention.W_o.register_forward_pre_hook(without)
        logits = model(ids)
        hook.remove()
        return logits
    """,
    hints="""Which columns of what W_o gets belong to the head, and which hook sees them before W_o?
    W_o.register_forward_pre_hook: a copy of args[0], 0 in (head - 1) * d_head : head * d_head.""",
    backends=("torch",), slips="""
    whole-model: return (found,) → pass
        These are the whole model's logits. Register the hook first, and let it return the change.
    hook-left: hook.remove() → pass
        The hook is still there, so the model stays without the head: hook.remove().
    layers-from-zero: layers[layer - 1] → layers[layer]
        It acts one layer too late. Layers count from 1, the list from 0: layers[layer - 1].
    heads-from-zero: (head - 1) → head ⊕ , head * → , (head + 1) *
        The next head is off. Heads count from 1: the slice begins at (head - 1) * d_head.
    only-that-head: found[..., own] = 0 → found[...] = 0⏎        found[..., own] = args[0][..., own]
        All other heads are off, and this one is on. Zero belongs into its own slice alone.
    heads-interleaved: own = slice((head - 1) * attention.d_head, head * attention.d_head) → \\
            own = slice(head - 1, None, attention.num_heads)
        Every num_heads-th feature is zero. A head's d_head features stand side by side.
    places-in-place-of-features: [..., own] → [:, own]
        The slice is cut from the tokens. The heads stand side by side in the last axis: [..., own].
    after-w-o: (module, args → (module, _, *args ⊕ (found,) → found ⊕ _pre_hook → _hook
        The slice is cut from what W_o gives, which mixes all heads. Cut from what it gets.
    """,
)  # fmt: skip

logit_lens = exercise(
    """
    def logit_lens(stream, gain, shift, W_U, eps=1e-5):
        mean = stream.mean(axis=-1, keepdims=True)
        variance = stream.var(axis=-1, keepdims=True)
        return ((stream - mean) / np.sqrt(variance + eps) * gain + shift) @ W_U
    """,
    hints="""Which two steps lie between the stream after the last layer and the logits?
    Mean and variance over the features; what is normalised, times gain, plus shift: then W_U.""",
    probes=[("one vector", [[[1.0, 3.0]]], [1.0, 1.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 2.0]]),
            ("three depths", numbers(3, 4, 6), numbers(6) + 1, numbers(6), numbers(6, 5)),
            ("as many tokens as features", numbers(2, 5, 5), numbers(5), numbers(5), numbers(5, 5)),
            ("eps=0.5", 0.1 * numbers(2, 3, 4), numbers(4) + 1, numbers(4), numbers(4, 6), 0.5)],
    slips="""
    no-norm: ((stream - mean) / np.sqrt(variance + eps) * gain + shift) → stream
        The output matrix reads the raw stream. It only knows normalised vectors: norm them first.
    not-normalised: (stream - mean) / np.sqrt(variance + eps) → stream
        Gain and shift are there, but nothing is normalised before them: mean 0, variance 1.
    no-gain-and-shift: * gain + shift → ∅
        Gain and shift are missing. The last norm learned them: multiply by gain, add shift.
    no-shift: + shift → ∅
        The shift is missing: add it after the gain, before W_U.
    over-the-tokens: axis=-1 → axis=-2
        Mean and variance run over the tokens. A norm takes each vector's features: axis=-1.
    eps-outside-the-root: np.sqrt(variance + eps) → (np.sqrt(variance) + eps)
        eps is added after the root. It stands under it, beside the variance.
    variance-with-n-minus-one: stream.var(axis=-1 → stream.var(-1, ddof=1
        The variance divides by D - 1, as torch.var does unless told otherwise. LayerNorm takes D.
    variance-in-place-of-its-root: np.sqrt → ∅
        It divides by the variance. Divide by its root, the standard deviation.
    """,
)  # fmt: skip


@cache
def case(training):
    """A model of 3, 2 and 1 heads, two pairs of texts, and what it says of the first pair."""
    import torch

    from helpers import layers, models
    from workshop.exercises.modules import filled

    sizes = {"d_ff": None, "d_head": 4, "pre_norm": True}
    model = models.DecoderOnly(7, 8, 6, num_heads=3, num_layers=1, **sizes)
    model.layers = layers.Stack(layers.EncoderLayer(6, heads, **sizes) for heads in (3, 2, 1))
    filled(model.double())
    ids, other = torch.arange(20).reshape(2, 2, 5) * 3 % 7  # other tokens at each place
    return model, ids, other, model.train(training)(ids).detach()


def facts(fn, patches, layer, place, training=False):
    """The logits of an answer, and how it leaves its model."""
    model, ids, other, plain = copy.deepcopy(case(training))
    kept = (*model.state_dict().values(), ids, other)
    before = [x.clone() for x in kept]
    y = getattr(fn, "function", fn)(model, ids, *[other] * patches, layer, place)
    logits, parts = y.detach().numpy() if hasattr(y, "detach") else y, [*model.modules()]
    stays = [x.equal(was) for x, was in zip(kept, before, strict=True)]
    return logits if logits is None else {
        "no hook is left": not any(p._forward_hooks or p._forward_pre_hooks for p in parts),
        "each part is in the mode it was in": {p.training for p in parts} == {training},
        "the parameters are what they were": all(stays[:-2]),
        "ids, and `other`, stay as they are": all(stays[-2:]),
        "logits": logits,
        "afterwards the model says what it said before": model(before[-2]).equal(plain),
    }  # fmt: skip


for known, label, *given in [
    (ablate_head, "layer 1, head 1", False, 1, 1), (ablate_head, "layer 1, head 3", False, 1, 3),
    (ablate_head, "layer 2, head 2, in train mode", False, 2, 2, True),
    (ablate_head, "layer 3, its only head", False, 3, 1),
    (patch_layer, "layer 1, place 0", True, 1, 0), (patch_layer, "layer 3, place 4", True, 3, 4),
    (patch_layer, "layer 2, place 3, in train mode", True, 2, 3, True)]:  # fmt: skip
    known.probes.append(Probe(label, lambda fn, given=given: facts(fn, *given)))
