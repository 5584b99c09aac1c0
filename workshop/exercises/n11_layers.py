"""Notebook 11: feed-forward, the encoder layer and its size, in NumPy."""

import math
from typing import Any

import numpy as np

from helpers import attention, blocks
from helpers.attention import multi_head_attention
from workshop.exercises.exercise import Draw, Exercise, numbers


def relu(h: np.ndarray) -> np.ndarray:
    return np.maximum(0, h)


# ---------------------------------------------------------------- feed_forward

feed_forward = Exercise(
    blocks.feed_forward,
    notebook="11",
    level=2,
    minutes=10,
    task="Build the network for one sentence (T, d) or a batch (B, T, d). Each neuron asks every "
    "word its question, a column of W1, and adds its bias; the ReLU leaves the yes; then each "
    "writes its row of W2, as strongly as it is awake. b2 comes on top, once.",
    hints=(
        "How many numbers does a word have between the two matrices, and where does the ReLU "
        "stand?",
        "x @ W1 + b1 has one number for each neuron. np.maximum(0, …) leaves those that are "
        "awake, and the product with W2 adds up what they write.",
        "`return np.maximum(0, x @ W1 + b1) @ W2 + b2`",
    ),
)
feed_forward.answer("""
    def feed_forward(x, W1, b1, W2, b2):
        hidden = x @ W1 + b1
        hidden = np.maximum(0, hidden)
        return hidden @ W2 + b2
""")
feed_forward.answer("""
    def feed_forward(x, W1, b1, W2, b2):
        total = b2
        for key, bias, value in zip(W1.T, b1, W2):
            awake = np.maximum(0, x @ key + bias)
            total = total + awake[..., None] * value
        return total
""")
feed_forward.answer("""
    def feed_forward(x, W1, b1, W2, b2):
        out = np.zeros_like(x) + b2
        for i in range(W1.shape[1]):
            unit = x @ W1[:, i] + b1[i]
            unit = np.where(unit > 0, unit, 0)
            out = out + unit[..., None] * W2[i]
        return out
""")
feed_forward.answer("""
    def feed_forward(x, W1, b1, W2, b2):
        h = np.einsum("...d,df->...f", x, W1) + b1
        h = h.clip(min=0)
        return np.einsum("...f,fd->...d", h, W2) + b2
""")
feed_forward.answer("""
    import torch.nn.functional as F

    def feed_forward(x, W1, b1, W2, b2):
        return F.linear(F.relu(F.linear(x, W1.T, b1)), W2.T, b2)
""")

feed_forward.why(
    "W1.T | W2.T",
    "W1 is (d, d_ff), W2 (d_ff, d), and x multiplies from the left; only F.linear and nn.Linear "
    "want them transposed.",
)
feed_forward.why(
    "np.maximum | torch.relu | F.relu | h.clip(min=0) | np.where(unit > 0, unit, 0) | clip(0) | "
    "np.maximum(0, hidden)",
    "ReLU, not GELU or a sigmoid: negative hidden values become 0, others stay; without this "
    "non-linearity two linear layers are one.",
)
feed_forward.why(
    "x @ W1 + b1 | x @ key + bias | x @ W1[:, i] + b1[i] | b1",
    "The first bias b1 is added inside the ReLU, never missing: it moves the threshold at which "
    "each neuron wakes.",
)
feed_forward.why(
    "hidden @ W2 + b2 | np.zeros_like(x) + b2 | b2",
    "The second bias b2, never missing, shifts the output of each word once, after all neurons "
    "are added up.",
)
feed_forward.why(
    "awake[..., None] | unit[..., None]",
    "A neuron is awake with one number per word; it needs an axis of length 1 to multiply a "
    "whole row of features.",
)
feed_forward.why(
    "total + awake[..., None] * value | out + unit[..., None] * W2[i]",
    "The output is a sum over all neurons: each adds its value to what the others wrote.",
)
feed_forward.why(
    "W1[:, i] | key | W2[i] | value",
    "Neuron i has its key in column i of W1 and writes row i of W2, as strongly as it is awake.",
)


def network(D: int, d_ff: int) -> dict[str, Draw]:
    sizes = {"W1": (D, d_ff), "b1": (d_ff,), "W2": (d_ff, D), "b2": (D,)}
    return {name: numbers(*size) for name, size in sizes.items()}


W1 = np.array([[1.0, -2.0, 3.0], [2.0, 1.0, -1.0]])
W2 = np.array([[1.0, 0.0], [4.0, -1.0], [-2.0, 3.0]])
b1, b2 = np.array([1.0, -1.0, -2.0]), np.array([0.5, -3.0])
small = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}
feed_forward.probe("one word, without biases", np.array([[2.0, 1.0]]), W1, 0 * b1, W2, 0 * b2)
feed_forward.probe("one word and three neurons", np.array([[2.0, 1.0]]), **small)
feed_forward.probe("two words", np.array([[2.0, 1.0], [-1.0, 3.0]]), **small)
feed_forward.probe("neurons that wake strongly", np.array([[2e3, -9e2], [-10.0, 80.0]]), **small)
feed_forward.probe("neurons that all sleep", np.array([[-9.0, 0.0]]), W1, b1 - 30, W2, b2)
feed_forward.probe("neurons that are half awake", np.array([[0.1, 0.0]]), W1, b1 / 9, W2, b2)
feed_forward.probe("neurons that barely wake", np.array([[1e-3, 2e-3]]), W1, 0 * b1, W2, b2)
feed_forward.probe("a batch of two sentences", numbers(2, 3, 4), **network(4, 7))
feed_forward.probe("fewer neurons than features", numbers(2, 3, 6), **network(6, 2))
feed_forward.probe("as many neurons as features", numbers(3, 5), **network(5, 5))
feed_forward.probe("as many words as neurons", numbers(4, 4, 4), **network(4, 4))


@feed_forward.mistake
def no_relu(x, W1, b1, W2, b2):
    """The ReLU between the two layers is missing, the non-linearity (activation). Two linear layers
    in a row are only one linear layer, so the network learns nothing that a single matrix could
    not."""
    return (x @ W1 + b1) @ W2 + b2


@feed_forward.mistake
def residual_inside(x, W1, b1, W2, b2):
    """x is added to the result: the residual connection is inside. It belongs to Add & Norm, around
    the network; here only what the neurons write comes back."""
    return x + relu(x @ W1 + b1) @ W2 + b2


@feed_forward.mistake
def relu_twice(x, W1, b1, W2, b2):
    """There is a second ReLU at the end, on the output, which can then never be negative. Only the
    hidden values, between the two layers, go through the ReLU."""
    return relu(relu(x @ W1 + b1) @ W2 + b2)


@feed_forward.mistake
def relu_of_x(x, W1, b1, W2, b2):
    """The ReLU is applied to the input x. It belongs after the first layer, on the hidden values;
    the negative features of a word carry meaning and must reach the neurons."""
    return (relu(x) @ W1 + b1) @ W2 + b2


@feed_forward.mistake
def gelu_by_tanh(x, W1, b1, W2, b2):
    """The activation is GELU, in its form with tanh, as in GPT-2. The paper's network has ReLU:
    negative hidden values become 0, all others stay as they are."""
    h = x @ W1 + b1
    return h / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3))) @ W2 + b2


@feed_forward.mistake
def sums_into_b2(x, W1, b1, W2, b2):
    """The sum is collected in b2 itself, which changes the parameter in place: the next call finds
    another bias. Start from a copy, or make a new array for each sum."""
    out = relu(x @ W1 + b1) @ W2
    b2 += out
    return b2


# ---------------------------------------------------------------- encoder_layer

encoder_layer = Exercise(
    blocks.encoder_layer,
    notebook="11",
    level=3,
    minutes=12,
    task="Assemble the layer: attention, then the network, each followed by its own Add & Norm. "
    "multi_head_attention, add_and_norm, layer_norm and feed_forward are at hand. p holds the "
    "parameters: p['attn'] and p['ffn'] are dictionaries with the arguments of the two, p['norm1'] "
    "and p['norm2'] are pairs of gain and bias. A mask is for attention.",
    hints=(
        "There are two additions. To what is the output of the feed-forward network added?",
        "Attention reads x (and the mask); h = layer_norm(x + attention). The network reads h, and "
        "the second sum is h + network, not x + network.",
        '`h = layer_norm(x + multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])`, '
        'then `return layer_norm(h + feed_forward(h, **p["ffn"]), *p["norm2"])`',
    ),
)
encoder_layer.answer("""
    def encoder_layer(x, p, mask=None):
        attended = multi_head_attention(x, mask=mask, **p["attn"])
        h = layer_norm(x + attended, *p["norm1"])
        concluded = feed_forward(h, **p["ffn"])
        return layer_norm(h + concluded, *p["norm2"])
""")
encoder_layer.answer("""
    def encoder_layer(x, p, mask=None):
        x = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
        x = add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])
        return x
""")
encoder_layer.answer("""
    def encoder_layer(x, p, mask=None):
        a, f = p["attn"], p["ffn"]
        gamma1, beta1 = p["norm1"]
        gamma2, beta2 = p["norm2"]
        out = multi_head_attention(
            x, a["W_q"], a["W_k"], a["W_v"], a["W_o"], a["num_heads"], mask
        )
        h = layer_norm(x + out, gamma1, beta1)
        out = np.maximum(0, h @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"]
        return layer_norm(h + out, gamma2, beta2)
""")
encoder_layer.answer("""
    import torch.nn.functional as F

    def encoder_layer(x, p, mask=None):
        a, f, width = p["attn"], p["ffn"], x.shape[-1:]
        q, k, v = (
            (x @ a[W]).unflatten(-1, (a["num_heads"], -1)).transpose(1, 2)
            for W in ("W_q", "W_k", "W_v")
        )
        mask = mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = F.layer_norm(x + heads.transpose(1, 2).flatten(2) @ a["W_o"], width, *p["norm1"])
        out = F.relu(x @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"]
        return F.layer_norm(x + out, width, *p["norm2"])
""")

encoder_layer.why(
    "W_o | num_heads",
    "Attention has four matrices and its number of heads; the output projection W_o mixes the "
    "joined heads at the end.",
)
encoder_layer.why(
    'norm2 | layer_norm(h + concluded, *p["norm2"])',
    "Each Add & Norm has a gain and a bias of its own: norm1 after attention, norm2 after the "
    "feed-forward network.",
)
encoder_layer.why(
    "mask=mask | mask",
    "The mask goes to attention as it is: True means allowed (the opposite of "
    "nn.MultiheadAttention), and None that all words may be seen.",
)
encoder_layer.why(
    "h + concluded | h + out | x + feed_forward | h + feed_forward",
    "The second residual connection adds what went into the feed-forward network: the output of "
    "the first Add & Norm.",
)
encoder_layer.why(
    "x + attended | x + out | x + multi_head_attention",
    "The first residual connection adds the input of attention, x, to its output, so that the "
    "word itself is kept.",
)
encoder_layer.why(
    'norm1 | layer_norm(x + attended, *p["norm1"])',
    "Post-norm: each sum is normalised after the addition, the first one, after attention, with "
    "norm1.",
)
encoder_layer.why(
    'feed_forward(h, **p["ffn"])',
    "The feed-forward network reads what the first Add & Norm gives, not the layer's input.",
)
encoder_layer.why(
    'multi_head_attention(x, mask=mask, **p["attn"]) | attended',
    "Attention comes first: words gather from each other before the network draws its conclusions.",
)


def parameters(D: int, num_heads: int, d_ff: int) -> dict[str, Any]:
    """Weights of an encoder layer."""
    matrices = {name: numbers(D, D) for name in ("W_q", "W_k", "W_v", "W_o")}
    return {
        "attn": matrices | {"num_heads": num_heads},
        "norm1": (numbers(D), numbers(D)),
        "ffn": network(D, d_ff),
        "norm2": (numbers(D), numbers(D)),
    }


def allowed(*shape: int) -> Draw:
    """A mask without a pattern, in which each query may at least see its own word."""
    return numbers(*shape).then(lambda x: (x > 0) | np.eye(shape[-1], dtype=bool))


CAUSAL = np.tri(5, dtype=bool)
LEFT_PADDED = np.array([[True, True, True], [False, True, True]])[:, None].repeat(3, axis=1)
four = parameters(4, 2, 7)
deaf = four | {"attn": four["attn"] | {"W_v": 0 * numbers(4, 4)}}
idle = four | {"ffn": {name: 0 * W for name, W in four["ffn"].items()}}
quiet = {  # attention and network add nothing, so that both norms see little
    "attn": {W: np.zeros((4, 4)) for W in ("W_q", "W_k", "W_v", "W_o")} | {"num_heads": 2},
    "norm1": (np.array([0.002, 0.003, -0.001, 0.002]), np.array([1.0, 1.0, 1.001, 1.0])),
    "ffn": {"W1": np.zeros((4, 5)), "b1": np.zeros(5), "W2": np.zeros((5, 4)), "b2": np.zeros(4)},
    "norm2": (np.array([2.0, 1.5, 0.5, -1.0]), np.array([0.5, 0.0, -1.0, 0.2])),
}
alike = numbers(1, 2, 4).then(lambda x: 1 + x.astype(float) / 300)
encoder_layer.probe("two words and one head", numbers(1, 2, 4), parameters(4, 1, 3))
encoder_layer.probe("a batch of two sentences", numbers(2, 3, 4), four)
encoder_layer.probe("a causal mask", 16 * numbers(2, 5, 6), parameters(6, 3, 8), mask=CAUSAL)
encoder_layer.probe("a mask without a pattern", numbers(2, 3, 4), four, mask=allowed(3, 3))
encoder_layer.probe("padding on the left", numbers(2, 3, 4), four, mask=LEFT_PADDED)
encoder_layer.probe("a mask for each sentence", numbers(3, 4, 4), four, mask=allowed(3, 4, 4))
encoder_layer.probe("as many sentences as words", numbers(3, 3, 4), four, mask=allowed(3, 3, 3))
encoder_layer.probe("as many sentences as heads", numbers(2, 4, 4), four, mask=allowed(2, 4, 4))
encoder_layer.probe("as many neurons as features", numbers(2, 3, 4), parameters(4, 2, 4))
encoder_layer.probe("large scores", 6 * numbers(2, 3, 4), four)
encoder_layer.probe("a network that adds nothing", numbers(2, 3, 4), idle)
encoder_layer.probe("attention that adds nothing", numbers(2, 3, 4), deaf)
encoder_layer.probe("nearly equal features", alike, quiet)


def attend(x: np.ndarray, p: dict, mask: np.ndarray | None = None) -> np.ndarray:
    return multi_head_attention(x, mask=mask, **p["attn"])


def think(x: np.ndarray, p: dict) -> np.ndarray:
    return blocks.feed_forward(x, **p["ffn"])


def norm1(x: np.ndarray, p: dict) -> np.ndarray:
    return blocks.layer_norm(x, *p["norm1"])


def norm2(x: np.ndarray, p: dict) -> np.ndarray:
    return blocks.layer_norm(x, *p["norm2"])


@encoder_layer.mistake
def feed_forward_reads_the_input(x, p, mask=None):
    """The feed-forward network reads x, the layer's input, so it knows nothing of what attention
    gathered. The two follow each other: it must read h, the output of the first Add & Norm."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(h + think(x, p), p)


@encoder_layer.mistake
def second_residual_from_input(x, p, mask=None):
    """The second residual adds x, the layer's input, and loses what attention gathered. A residual
    connection adds what went into its own sub-layer: here h, the output of the first Add & Norm."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(x + think(h, p), p)


@encoder_layer.mistake
def mask_not_passed(x, p, mask=None):
    """The mask has no effect: it never reaches the attention, so padding and later words are read
    as well. Pass it on to multi_head_attention."""
    return blocks.encoder_layer(x, p)


@encoder_layer.mistake
def pre_norm_layer(x, p, mask=None):
    """That is a pre-norm layer, as in GPT-2: it normalises before each sub-layer. The paper's layer
    is post-norm: add the sub-layer's output first, then normalise the sum."""
    h = x + attend(norm1(x, p), p, mask)
    return h + think(norm2(h, p), p)


@encoder_layer.mistake
def norm1_twice(x, p, mask=None):
    """norm1 serves both sub-layers. Each Add & Norm has learned a gain and a bias of its own: the
    second one, after the feed-forward network, is norm2."""
    return blocks.encoder_layer(x, p | {"norm2": p["norm1"]}, mask)


@encoder_layer.mistake
def takes_from_p(x, p, mask=None):
    """It changes the dictionary p in place, as pop does: the next call, or the next layer, finds
    other parameters. Read from p without changing it, or make a copy first."""
    y = blocks.encoder_layer(x, p, mask)
    p["attn"].pop("num_heads")
    return y


@encoder_layer.mistake
def feed_forward_first(x, p, mask=None):
    """The order is swapped: the feed-forward network comes before attention. First the words gather
    from each other, then the network works on what each of them has gathered."""
    h = norm1(x + think(x, p), p)
    return norm2(h + attend(h, p, mask), p)


@encoder_layer.mistake
def feed_forward_first_with_its_norm(x, p, mask=None):
    """The order is swapped: the feed-forward network with norm2 comes first, attention with norm1
    after it. First the words gather from each other; the network then reads what they gathered."""
    h = norm2(x + think(x, p), p)
    return norm1(h + attend(h, p, mask), p)


@encoder_layer.mistake
def side_by_side(x, p, mask=None):
    """Attention and the feed-forward network run side by side, both from the layer's input. They
    follow each other: the network reads the output of the first Add & Norm, and has its own."""
    return norm2(norm1(x + attend(x, p, mask) + think(x, p), p), p)


@encoder_layer.mistake
def mask_without_axis_for_heads(x, p, mask=None):
    """A mask for each sentence, (B, T, T), meets scores (B, H, T, T), and its sentences line up
    with the heads. Give the mask an axis of length 1 for the heads."""
    a = p["attn"]
    Q, K, V = (attention.split_heads(x @ a[W], a["num_heads"]) for W in ("W_q", "W_k", "W_v"))
    S = attention.attention_scores(Q, K) / math.sqrt(Q.shape[-1])
    weights = attention.safe_masked_softmax(S, np.bool_(True) if mask is None else mask)
    h = norm1(x + attention.merge_heads(weights @ V) @ a["W_o"], p)
    return norm2(h + think(h, p), p)


# ---------------------------------------------------------------- encoder_parameters


def encoder_parameters(num_layers: int, d_model: int, d_ff: int) -> int:
    """How many numbers an encoder learns: four matrices of attention, two of the network, with
    their biases, and the gain and bias of two norms, in each layer.

    Neither the number of heads nor that of words matters. Paper, section 3.
    """
    attention = 4 * (d_model * d_model + d_model)
    neurons = d_model * d_ff + d_ff + d_ff * d_model + d_model
    gains = 2 * 2 * d_model
    return num_layers * (attention + neurons + gains)


count = Exercise(
    encoder_parameters,
    notebook="11",
    level=1,
    minutes=6,
    task="How many numbers does an encoder of num_layers layers learn? Count all matrices, each "
    "with its bias, and the gains and biases of the norms.",
    hints=(
        "Which matrices does one layer have, and what are their shapes?",
        "Attention has W_q, W_k, W_v and W_o, each d_model × d_model with d_model biases; the "
        "network W1 and W2 with d_ff and d_model biases; two norms have gamma and beta each.",
        "one layer is `4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 2 * "
        "2 * d_model`",
    ),
)
count.answer("""
    def encoder_parameters(num_layers, d_model, d_ff):
        attention = 4 * (d_model**2 + d_model)
        network = 2 * d_model * d_ff + d_ff + d_model
        norms = 2 * 2 * d_model
        return num_layers * (attention + network + norms)
""")
count.answer("""
    def encoder_parameters(num_layers, d_model, d_ff):
        layer = 4 * d_model * d_model + 4 * d_model
        layer += d_model * d_ff + d_ff
        layer += d_ff * d_model + d_model
        layer += 2 * d_model + 2 * d_model
        return num_layers * layer
""")
count.answer("""
    def encoder_parameters(num_layers, d_model, d_ff):
        shapes = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
        total = 0
        for rows, columns in shapes:
            total += rows * columns + columns
        total += 4 * d_model
        return num_layers * total
""")

count.why(
    "4 * (d_model**2 + d_model) | 4 * d_model * d_model + 4 * d_model | [(d_model, d_model)] * 4 | "
    "d_model**2 + d_model",
    "Attention has four matrices, W_q, W_k, W_v and W_o: d_model × d_model each, with d_model "
    "biases.",
)
count.why(
    "2 * d_model * d_ff | d_model * d_ff | d_ff * d_model",
    "The network has two matrices: W1 is d_model × d_ff, W2 is d_ff × d_model.",
)
count.why(
    "d_ff + d_model | d_model * d_ff + d_ff | d_ff * d_model + d_model | "
    "rows * columns + columns | columns | 2 * d_model * d_ff + d_ff + d_model",
    "A bias has one number for each column of its matrix: d_ff for W1, d_model for W2.",
)
count.why(
    "2 * 2 * d_model | 2 * d_model + 2 * d_model | 4 * d_model | 2 * d_model",
    "A layer has two norms, and each learns a gain gamma and a bias beta for every feature.",
)
count.why(
    "num_layers * (attention + network + norms) | num_layers * layer | num_layers * total | "
    "num_layers",
    "Layers share nothing: each has its own attention, network and norms, so all of it is "
    "multiplied.",
)

count.probe("one layer, d_model 2, d_ff 3", 1, 2, 3)
count.probe("three such layers", 3, 2, 3)
count.probe("the paper's encoder", 6, 512, 2048)
count.probe("a narrow network", 2, 12, 5)
count.probe("one feature and one neuron", 1, 1, 1)


@count.mistake
def norms_or_attention_biases_missing(num_layers, d_model, d_ff):
    """In each layer 4 · d_model numbers are missing: as many as the two norms have (gamma and beta
    each), and as many as the biases of the four attention matrices. Count both."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * 4 * d_model


@count.mistake
def one_norm(num_layers, d_model, d_ff):
    """In each layer 2 · d_model numbers of the norms are missing. A layer has two norms, one after
    attention and one after the network, and each has both gamma and beta."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * 2 * d_model


@count.mistake
def network_biases_missing(num_layers, d_model, d_ff):
    """The biases of the feed-forward network are missing. Its matrices have them as those of
    attention do: d_ff numbers for W1, d_model for W2."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * (d_ff + d_model)


@count.mistake
def one_number_per_gain(num_layers, d_model, d_ff):
    """gamma and beta are counted as single numbers. A norm learns one gain and one bias for every
    feature of a word, d_model of each."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * 4 * (d_model - 1)


@count.mistake
def layers_of_attention_alone(num_layers, d_model, d_ff):
    """Only attention is multiplied by num_layers. Each layer has a network and norms of its own
    too: brackets around the whole sum of one layer are missing."""
    whole, attention = encoder_parameters(1, d_model, d_ff), 4 * (d_model**2 + d_model)
    return num_layers * attention + whole - attention
