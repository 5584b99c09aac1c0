"""Notebook 11: the feed-forward network, the encoder layer twice, its size, its stack."""

import numpy as np

from helpers import blocks as course
from workshop.exercises.exercise import exercise, numbers
from workshop.exercises.modules import reached

W1, W2 = [[1.0, -2.0, 3.0], [2.0, 1.0, -1.0]], [[1.0, 0.0], [4.0, -1.0], [-2.0, 3.0]]
SMALL, PLAIN = (W1, [1.0, -1.0, -2.0], W2, [0.5, -3.0]), (W1, [0.0] * 3, W2, [0.0] * 2)


def layer(D, heads, d_ff, name="attn"):
    attn = {W: numbers(D, D) for W in ("W_q", "W_k", "W_v", "W_o")} | {"num_heads": heads}
    ffn = {"W1": numbers(D, d_ff), "b1": numbers(d_ff), "W2": numbers(d_ff, D), "b2": numbers(D)}
    return {name: attn, "ffn": ffn, "norm1": (ffn["b2"], ffn["b2"]), "norm2": (numbers(D),) * 2}


SIX = layer(6, 2, 7)
MASKS = numbers(2, 4, 4).then(lambda x: (x > 0) | np.eye(4, dtype=bool))  # without a pattern

feed_forward = exercise(
    course.feed_forward,
    hints="""How many numbers has a word between the two matrices, and where does the ReLU stand?
    np.maximum(0, x @ W1 + b1) has one number for each neuron; the rest is @ W2 and + b2.""",
    probes=[("one word, without biases", [[2.0, 1.0]], *PLAIN), ("two words", W2[1:], *SMALL),
            ("neurons that wake strongly", [[2e3, -9e2], [-10.0, 80.0]], *SMALL),
            ("a batch of two sentences", numbers(2, 3, 6), *SIX["ffn"].values()),
            ("as many words as neurons", numbers(4, 4, 4), *layer(4, 1, 4)["ffn"].values())],
    slips="""
    no-relu: np.maximum(0, x @ W1 + b1) → (x @ W1 + b1)
        The ReLU between the layers is missing, and two linear layers in a row are only one.
    relu-of-x: np.maximum(0, x @ W1 + b1) → (np.maximum(0, x) @ W1 + b1)
        The ReLU is applied to the input x. It belongs after the first layer, on the neurons.
    relu-twice: np.maximum(0, x → np.maximum(0, np.maximum(0, x ⊕ + b2 → + b2)
        A ReLU stands on the output, which can then never be negative. It belongs on the neurons.
    strength-lost: np.maximum(0, x @ W1 + b1) → (x @ W1 + b1 > 0)
        A neuron is only on or off. ReLU lets through how far it is above 0.
    b2-for-each-neuron: + b2 → + b2 * len(b1)
        b2 is added once for each neuron. Add it once, to the output of each word.
    relu-before-b1: np.maximum(0, x @ W1 + b1) → (np.maximum(0, x @ W1) + b1)
        The ReLU comes before b1, which moves the threshold of each neuron: add it first.
    max-for-maximum: np.maximum(0, x @ W1 + b1) → np.max(x @ W1 + b1, 0)
        np.max(h, 0) keeps the largest along axis 0. np.maximum(0, h) compares each number with 0.
    gelu: np.maximum( → np.vectorize(lambda _, h: h / 2 * (1 + math.erf(h / 2**0.5)))(
        The activation is GELU, as in BERT. This network has ReLU: what is negative becomes 0.
    gelu-by-tanh: np.maximum( → (lambda _, h: h / (1 + np.exp(-1.595769 * (h + 0.044715 * h**3))))(
        The activation is GELU, as in GPT-2. This network has ReLU: what is negative becomes 0.
    leaky: np.maximum(0, x @ W1 + b1) → np.maximum(0.01 * (h := x @ W1 + b1), h)
        This is a leaky ReLU: negative hidden values shrink. A ReLU makes them 0.
    absolute: np.maximum(0, x @ W1 + b1) → np.abs(x @ W1 + b1)
        Negative hidden values lose their sign. A ReLU makes them 0.
    b1-missing: W1 + b1 → W1
        b1 is missing. Inside the ReLU, it moves the threshold at which each neuron wakes.
    b2-missing: + b2 → ∅
        b2 is missing: it is added once, to the output of each word.
    residual-inside: np.max → x + np.max
        x is added to the result. The residual belongs to Add & Norm, around the network.
    """,
    story=True,
)  # fmt: skip

EncoderLayer = exercise(
    """
    class EncoderLayer(nn.Module):
        def __init__(self, d_model, num_heads, d_ff):
            super().__init__()
            self.attention = MultiHeadAttention(d_model, d_model, num_heads)
            self.norm1 = nn.LayerNorm(d_model)
            self.feed_forward = FeedForward(d_model, d_ff)
            self.norm2 = nn.LayerNorm(d_model)

        def forward(self, x, mask=None):
            h = self.norm1(x + self.attention(x, mask))
            return self.norm2(h + self.feed_forward(h))
    """,
    hints="""Which four parts are made once, and in which order does forward use them?
    h = norm1 of x + attention(x, mask); then norm2 of h + feed_forward(h).""",
    slips="""
    first-residual-missing: norm1(x + → norm1(
        The residual around attention is missing. Add what it has read, x.
    mask-not-passed: (x, mask) → (x)
        The mask has no effect: hand it on to attention.
    mask-turned: (x, mask) → (x, None if mask is None else ~mask)
        The mask is turned round. True means: may read, for our attention too.
    feed-forward-reads-the-input: feed_forward(h) → feed_forward(x)
        The network reads x, the layer's input. It reads what the first Add & Norm gives.
    second-residual-missing: norm2(h + → norm2(
        The residual around the network is missing. Add what the network has read.
    second-residual-from-input: norm2(h + → norm2(x +
        The second residual adds x, the layer's input. Add what the network has read.
    norm-before-the-sum: self.norm1(x + → x + self.norm1( ⊕ self.norm2(h + → h + self.norm2(
        What each part gives is normalised, then x is added. Add first, then normalise the sum.
    pre-norm-layer: self.norm1(x + self.attention(x → (x + self.attention(self.norm1(x) ⊕ \\
            self.norm2(h + self.feed_forward(h)) → h + self.feed_forward(self.norm2(h))
        That is a pre-norm layer: it normalises before each sublayer. Normalise the sums instead.
    last-norm-missing: return self.norm2 → return
        The last sum is not normalised: norm2 comes after the network.
    """,
    backends=("torch",),
)
EncoderLayer.module("its parameters, and two sentences", (4, 2, 7), numbers(2, 3, 4))
EncoderLayer.module("a causal mask", (6, 3, 4), 4 * numbers(2, 5, 6), np.tri(5, dtype=bool))

encoder_layer = exercise(
    course.encoder_layer,
    hints="""There are two additions. To what is the output of the feed-forward network added?
    x = add_and_norm(x, its attention, norm1); then the same with the network of x and norm2.""",
    probes=[("two words and one head", numbers(1, 2, 4), layer(4, 1, 3)),
            ("a batch of two sentences", numbers(2, 3, 6), SIX),
            ("a causal mask", 16 * numbers(2, 5, 6), layer(6, 3, 8), np.tri(5, dtype=bool)),
            ("a mask for each of two sentences", numbers(2, 4, 6), SIX, MASKS)],
    slips="""
    feed-forward-reads-the-input: x = add → a, x = x, add ⊕ feed_forward(x → feed_forward(a
        The feed-forward network reads x, the layer's input: hand it the first Add & Norm's output.
    second-residual-from-input: x = add → a, x = x, add ⊕ (x, feed → (a, feed
        The second residual adds x, the layer's input. Add what the network has read.
    mask-not-passed: mask=mask, → ∅
        The mask has no effect: pass it on to multi_head_attention.
    first-residual-missing: add_and_norm(x, multi → layer_norm(multi
        The residual around attention is missing. Add what it has read, x.
    second-residual-missing: add_and_norm(x, feed → layer_norm(feed
        The residual around the feed-forward network is missing. Add what it has read.
    last-norm-missing: return add_and_norm(x, → return x + ( ⊕ , *p["norm2"]) → )
        The last sum, after the feed-forward network, is not normalised: norm2 is missing.
    norm1-twice: norm2 → norm1
        norm1 serves both sublayers. The second Add & Norm has a gain and bias of its own: norm2.
    pre-norm-layer: x = → x = x + multi_head_attention(layer_norm(x, *p["norm1"]), mask=mask, \\
            **p["attn"])⏎    return x + feed_forward(layer_norm(x, *p["norm2"]), **p["ffn"])⏎    x =
        That is a pre-norm layer: it normalises before each sublayer. Normalise the sums instead.
    feed-forward-first: norm1 → norm2 ⊕ x = → \\
            x = add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm1"])⏎    return
        The feed-forward network comes before attention. First the words gather from each other.
    network-first: x = → x = add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])⏎    return
        The network and its norm come before attention. First the words gather from each other.
    """,
)  # fmt: skip

encoder_parameters = exercise(
    """
    def encoder_parameters(num_layers, d_model, d_ff):
        attention = 4 * (d_model**2 + d_model)
        network = 2 * d_model * d_ff + d_ff + d_model
        norms = 2 * 2 * d_model
        return num_layers * (attention + network + norms)
    """,
    hints="""Which matrices does one layer have, and what are their shapes?
    Four matrices, each with d_model biases; W1 with d_ff, W2 with d_model; 2 gammas, 2 betas.""",
    probes=[("one layer, d_model 2, d_ff 3", 1, 2, 3), ("three such layers", 3, 2, 3),
            ("the paper's encoder", 6, 512, 2048), ("a narrow network", 2, 12, 5)],
    slips="""
    norms-or-attention-biases-missing: norms = 2 * 2 * d_model → norms = 0
        In each layer 4 · d_model numbers are missing: the norms, or the four biases of attention.
    one-norm: 2 * 2 * d_model → 2 * d_model
        In each layer 2 · d_model numbers are missing: two norms have gamma and beta each.
    three-matrices: 4 * (d → 3 * (d
        One of the four matrices of attention is missing, with its bias: W_q, W_k, W_v and W_o.
    biases-of-neurons: + d_ff + d_model → + 2 * d_ff
        Both biases of the network have d_ff numbers. That of W2 has d_model, one for each column.
    layers-of-attention-alone: (attention + network + norms) → attention + network + norms
        Only attention is multiplied by num_layers: brackets around the whole sum are missing.
    layers-of-norms-alone: num_layers * ( → ( ⊕ + norms → + num_layers * norms
        Only the norms are multiplied by num_layers: brackets around the whole sum are missing.
    """,
)  # fmt: skip

make_stack = exercise(
    """
    def make_stack(layer, n):
        return nn.Sequential(*[deepcopy(layer) for _ in range(n)])
    """,
    ways=["""
    def make_stack(layer, n):
        class Stack(nn.ModuleList):
            def forward(self, x):
                for each in self:
                    x = each(x)
                return x

        return Stack([deepcopy(layer) for _ in range(n)])
    """],
    hints="""If you change a weight of the first layer, must the second change as well?
    nn.Sequential of a list, with a star; each of its n places holds a deepcopy of the layer.""",
    slips="""
    one-layer-shared: [deepcopy(layer) for _ in range(n)] → [layer] * n
        All places share the same parameters. Each needs a deep copy of its own.
    one-too-many: range(n) → range(n + 1)
        There is one layer too many: a stack of n has n layers in all.
    one-too-few: range(n) → range(n - 1)
        There is one layer too few: a stack of n has n layers in all.
    module-list: nn.Sequential(* → nn.ModuleList(
        An nn.ModuleList only holds its layers: it has no forward. nn.Sequential has one.
    fresh-values: range(n)]) → range(n)]).apply(lambda m: [*map(nn.init.normal_, m.parameters())])
        The layers start from other values than `layer` has. A deep copy has its values already.
    frozen: range(n)]) → range(n)]).requires_grad_(False)
        The copies are frozen: requires_grad is False, so they cannot learn. Leave it as it is.
    not-registered: nn.ModuleList → nn.Module ⊕ in self → in kept ⊕ return Stack( → \\
            kept = ( ⊕ range(n)]) → range(n)])⏎    return Stack()
        A plain list hides the layers' parameters from PyTorch: use nn.ModuleList or nn.Sequential.
    not-chained: x = each(x) → y = each(x) ⊕ return x → return y
        Each layer gets the original x. Feed every layer the output of the previous one.
    """,
    backends=("torch",),
)  # fmt: skip


@make_stack.experiment("three layers that double, and add 1")
def doubled(fn):
    import torch

    layer = torch.nn.Linear(1, 1)
    layer.load_state_dict({"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])})
    made = fn.function(layer, 3)
    if not isinstance(made, torch.nn.Module):
        return {"the result is an nn.Module": False}
    kept = all(p.item() in (1, 2) for p in made.parameters())
    found = {"the result is an nn.Module": True, "each starts with the values of `layer`": kept}
    if kept:
        found |= {f"from {x} it makes": made(torch.tensor([float(x)])).item() for x in (1, -2)}
    return found


@make_stack.experiment("four networks")
def networks(fn):
    from torch import allclose, linspace, nn

    layer, x = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 5)), linspace(-3, 3, 30)
    made, x = fn.function(layer, 4), x.reshape(2, 3, 5)
    y, own = made(x), {p.data_ptr(): p.numel() for p in made.parameters()}
    return {
        "parameters of its own": sum(own.values()),
        "every one may learn (requires_grad)": all(p.requires_grad for p in made.parameters()),
        "parameters that the gradient reaches": sum(reached(made, y)),
        "it equals layer(layer(layer(layer(x))))": allclose(y, layer(layer(layer(layer(x))))),
    }
