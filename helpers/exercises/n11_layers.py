"""Notebook 11: feed-forward and the encoder layer, in NumPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import blocks as reference
from helpers.attention import multi_head_attention
from helpers.exercises import n08_heads as heads
from helpers.exercises import n10_norms as norms
from helpers.exercises.exercise import Exercise

rng = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    """Float32 numbers to try a function on."""
    return rng.normal(size=shape).astype(np.float32)


def relu(h: np.ndarray) -> np.ndarray:
    return np.maximum(0, h)


# ---------------------------------------------------------------- feed_forward

feed_forward = Exercise(
    reference.feed_forward,
    notebook="11",
    level=2,
    minutes=10,
    task="Write the network again as a sum over its neurons, one at a time: each wakes as far as "
    "its key, a column of W1, matches the word, and then adds its value, a row of W2. "
    "It must work for a sentence (T, d) and for a batch (B, T, d).",
    hints=(
        "How strongly does neuron i wake for each word, and what does it then write?",
        "Go through W1.T, b1 and W2 together with zip. x @ key + bias has one number per word; "
        "after max(0, …), multiply it by the row `value`. b2 is added once, not for every neuron.",
        "`awake = np.maximum(0, x @ key + bias)`, then `total = total + awake[..., None] * "
        "value`, where total starts as b2",
    ),
)


def network(D: int, d_ff: int) -> dict[str, np.ndarray]:
    return {"W1": normal(D, d_ff), "b1": normal(d_ff), "W2": normal(d_ff, D), "b2": normal(D)}


W1 = np.array([[1.0, -2.0, 3.0], [2.0, 1.0, -1.0]])
W2 = np.array([[1.0, 0.0], [4.0, -1.0], [-2.0, 3.0]])
b1, b2 = np.array([1.0, -1.0, -2.0]), np.array([0.5, -3.0])
small = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}
norms.without_chance(feed_forward, np.arange(-6.0, 6).reshape(6, 2), W1, b1, W2, b2)
feed_forward.probe("one word, without biases", np.array([[2.0, 1.0]]), W1, 0 * b1, W2, 0 * b2)
feed_forward.probe("one word and three neurons", np.array([[2.0, 1.0]]), **small)
feed_forward.probe("two words", np.array([[2.0, 1.0], [-1.0, 3.0]]), **small)
feed_forward.probe("neurons that wake strongly", np.array([[20.0, -9.0], [-1.0, 8.0]]), **small)
feed_forward.probe("neurons that all sleep", np.array([[-9.0, 0.0]]), W1, b1 - 30, W2, b2)
feed_forward.probe("neurons that are half awake", np.array([[0.1, 0.0]]), W1, b1 / 9, W2, b2)
feed_forward.probe("a batch of two sentences", normal(2, 3, 4), **network(4, 7))
feed_forward.probe("as many neurons as features", normal(3, 5), **network(5, 5))
feed_forward.probe("as many words as neurons and features", normal(2, 4, 4), **network(4, 4))


def bends_otherwise(bend: Callable, name: str, message: str) -> None:
    """Add a mistake: another function in the place of the ReLU."""

    def function(x, W1, b1, W2, b2):
        return bend(x @ W1 + b1) @ W2 + b2

    function.__name__, function.__doc__ = name, message
    feed_forward.mistake(function)


INSTEAD = "Put a ReLU between the two layers: np.maximum(0, …)."


@np.vectorize
def gelu(h: float) -> float:
    return h * (1 + math.erf(h / math.sqrt(2))) / 2


def gelu_by_tanh(h: np.ndarray) -> np.ndarray:
    return h / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))


def softmax(h: np.ndarray) -> np.ndarray:
    e = np.exp(h - h.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


bends_otherwise(
    lambda h: h,
    "no_relu",
    "There is no ReLU between the layers, the activation (non-linearity) is missing: two linear "
    f"layers in a row are one. {INSTEAD}",
)
bends_otherwise(gelu, "gelu", f"That is GELU, as in BERT, instead of ReLU. {INSTEAD}")
bends_otherwise(
    gelu_by_tanh,
    "gelu_by_tanh",
    f"That is GELU (with tanh, as in GPT-2) instead of ReLU. {INSTEAD}",
)
bends_otherwise(
    lambda h: h / (1 + np.exp(-h)),
    "silu",
    f"That is SiLU (Swish), h · sigmoid(h), instead of ReLU. {INSTEAD}",
)
bends_otherwise(
    lambda h: np.where(h > 0, h, 0.01 * h),
    "leaky_relu",
    "That is a leaky ReLU: negative hidden values are only shrunk (times 0.01). ReLU sets them "
    "to 0.",
)
bends_otherwise(
    lambda h: np.where(h > 0, h, 0.1 * h),
    "leaky_relu_tenth",
    "That is a leaky ReLU: negative hidden values are only shrunk (times 0.1). ReLU sets them "
    "to 0.",
)
bends_otherwise(
    lambda h: np.where(h > 0, h, 0.2 * h),
    "leaky_relu_fifth",
    "That is a leaky ReLU: negative hidden values are only shrunk (times 0.2). ReLU sets them "
    "to 0.",
)
bends_otherwise(
    lambda h: np.where(h > 0, h, np.exp(np.minimum(h, 0)) - 1),
    "elu",
    f"That is ELU: negative hidden values leave something below 0. ReLU sets them to 0. {INSTEAD}",
)
bends_otherwise(
    lambda h: 1 / (1 + np.exp(-h)), "sigmoid", f"That is a sigmoid instead of ReLU. {INSTEAD}"
)
bends_otherwise(np.tanh, "tanh", f"That is tanh instead of ReLU. {INSTEAD}")
bends_otherwise(
    softmax, "softmax_of_the_neurons", f"That is a softmax over the neurons, no ReLU. {INSTEAD}"
)
bends_otherwise(
    lambda h: np.logaddexp(0, h), "softplus", f"That is softplus, log(1 + exp(h)). {INSTEAD}"
)
bends_otherwise(
    np.abs,
    "absolute_value",
    "That is the absolute value: negative hidden values turn positive. ReLU sets them to 0.",
)
bends_otherwise(
    lambda h: relu(h) ** 2,
    "squared",
    "The hidden values are squared after the ReLU. ReLU is max(0, h) alone.",
)
bends_otherwise(
    lambda h: np.clip(h, 0, 1),
    "clipped_at_one",
    "The hidden values are clipped between 0 and 1. ReLU has no upper limit: max(0, h).",
)
bends_otherwise(
    lambda h: np.clip(h, 0, 6),
    "relu6",
    "The hidden values are clipped at 6 (ReLU6). ReLU has no upper limit: max(0, h).",
)
bends_otherwise(
    lambda h: (h > 0).astype(h.dtype),
    "step",
    "The neurons give only 0 or 1 (h > 0, a step). ReLU keeps the positive values: max(0, h).",
)
bends_otherwise(
    lambda h: np.minimum(0, h),
    "minimum",
    "It keeps the negative hidden values: the condition is inverted (minimum instead of maximum). "
    "ReLU keeps the positive ones, max(0, h).",
)
bends_otherwise(
    lambda h: -relu(h),
    "relu_negated",
    "The sign of the hidden values is wrong: max(0, h), no minus.",
)
bends_otherwise(
    lambda h: relu(-h),
    "relu_of_minus_h",
    "The sign inside the ReLU is wrong, inverted: max(0, h), not max(0, -h).",
)
bends_otherwise(
    lambda h: np.maximum(1, h),
    "maximum_with_one",
    "It takes the maximum with 1. ReLU takes the maximum with 0: np.maximum(0, h).",
)
bends_otherwise(
    lambda h: np.where(h > 1, h, 0),
    "threshold_at_one",
    "The threshold is 1: values between 0 and 1 are lost. ReLU keeps all above 0.",
)
bends_otherwise(
    lambda h: h * (h.sum(-1, keepdims=True) > 0),
    "relu_by_word",
    "It switches whole words off, not single hidden values. ReLU looks at each number on its own: "
    "np.maximum(0, h).",
)
bends_otherwise(
    lambda h: h * (h == h.max(-1, keepdims=True)),
    "strongest_neuron_only",
    "Only the strongest neuron of each word counts (h.max). ReLU keeps every positive hidden "
    "value: np.maximum(0, h).",
)
bends_otherwise(
    norms.plain,
    "norm_instead_of_relu",
    f"The hidden values are normalised, there is no ReLU. {INSTEAD}",
)
bends_otherwise(
    lambda h: norms.plain(relu(h)),
    "norm_inside",
    "The hidden values are normalised after the ReLU. LayerNorm belongs to Add & Norm, outside the "
    "network.",
)


@feed_forward.mistake
def relu_at_the_end(x, W1, b1, W2, b2):
    """The ReLU comes at the end, after the second layer. It belongs between the two: max(0, …)
    after b1, before W2."""
    return relu((x @ W1 + b1) @ W2 + b2)


@feed_forward.mistake
def relu_twice(x, W1, b1, W2, b2):
    """There is a second ReLU at the end, after W2 and b2, so the output is never negative. Only the
    hidden values, between the layers, go through the ReLU."""
    return relu(relu(x @ W1 + b1) @ W2 + b2)


@feed_forward.mistake
def largest_for_maximum(x, W1, b1, W2, b2):
    """np.max(h, 0) takes the largest value along axis 0, over the words. ReLU compares each number
    with 0: np.maximum(0, h)."""
    return np.max(x @ W1 + b1, 0) @ W2 + b2


@feed_forward.mistake
def relu_before_b2(x, W1, b1, W2, b2):
    """A second ReLU follows W2, before b2 is added. Only the hidden values, between the layers, go
    through the ReLU."""
    return relu(relu(x @ W1 + b1) @ W2) + b2


@feed_forward.mistake
def relu_of_x(x, W1, b1, W2, b2):
    """The ReLU is applied to the input x. It belongs after the first layer: max(0, x W1 + b1)."""
    return (relu(x) @ W1 + b1) @ W2 + b2


@feed_forward.mistake
def relu_of_x_too(x, W1, b1, W2, b2):
    """The input x goes through a ReLU too. Only the hidden values do: max(0, x W1 + b1)."""
    return relu(relu(x) @ W1 + b1) @ W2 + b2


@feed_forward.mistake
def relu_of_the_weights(x, W1, b1, W2, b2):
    """The ReLU is applied to the weights W1. It belongs around the hidden values, the result:
    max(0, x W1 + b1)."""
    return (x @ relu(W1) + b1) @ W2 + b2


@feed_forward.mistake
def b1_after_relu(x, W1, b1, W2, b2):
    """b1 is added after the ReLU. Add the first bias before it, inside: max(0, x W1 + b1)."""
    return (relu(x @ W1) + b1) @ W2 + b2


@feed_forward.mistake
def b1_missing(x, W1, b1, W2, b2):
    """The first bias b1 is not added, it is missing: max(0, x W1 + b1)."""
    return relu(x @ W1) @ W2 + b2


@feed_forward.mistake
def b2_missing(x, W1, b1, W2, b2):
    """The second bias b2 is not added, it is missing: … W2 + b2."""
    return relu(x @ W1 + b1) @ W2


@feed_forward.mistake
def both_biases_missing(x, W1, b1, W2, b2):
    """Both biases are missing, b1 and b2 are never added: max(0, x W1 + b1) W2 + b2."""
    return relu(x @ W1) @ W2


@feed_forward.mistake
def biases_and_relu_missing(x, W1, b1, W2, b2):
    """Both biases and the ReLU are missing: x W1 W2 is one linear map. The network is
    max(0, x W1 + b1) W2 + b2."""
    return x @ W1 @ W2


@feed_forward.mistake
def relu_and_b1_missing(x, W1, b1, W2, b2):
    """The ReLU (activation) and the first bias b1 are missing: max(0, x W1 + b1)."""
    return x @ W1 @ W2 + b2


@feed_forward.mistake
def relu_and_b2_missing(x, W1, b1, W2, b2):
    """The ReLU (activation) between the layers and the second bias b2 are missing:
    max(0, x W1 + b1) W2 + b2."""
    return (x @ W1 + b1) @ W2


@feed_forward.mistake
def b1_subtracted(x, W1, b1, W2, b2):
    """b1 is subtracted: the sign is wrong. Add the first bias: x W1 + b1."""
    return relu(x @ W1 - b1) @ W2 + b2


@feed_forward.mistake
def b2_subtracted(x, W1, b1, W2, b2):
    """b2 is subtracted: the sign is wrong. Add the second bias: … W2 + b2."""
    return relu(x @ W1 + b1) @ W2 - b2


@feed_forward.mistake
def biases_swapped(x, W1, b1, W2, b2):
    """The biases are swapped: b1 (one per neuron) belongs to the first layer, b2 to the second."""
    return relu(x @ W1 + b2) @ W2 + b1


@feed_forward.mistake
def b1_twice(x, W1, b1, W2, b2):
    """b1 is used in both layers, and b2 never. The second layer adds b2."""
    return relu(x @ W1 + b1) @ W2 + b1


@feed_forward.mistake
def weights_swapped(x, W1, b1, W2, b2):
    """The matrices are swapped: W1 comes first, W2 second."""
    return relu(x @ W2 + b1) @ W1 + b2


@feed_forward.mistake
def layers_swapped(x, W1, b1, W2, b2):
    """The layers are swapped, in the wrong order: W1 and b1 come first, W2 and b2 second."""
    return relu(x @ W2 + b2) @ W1 + b1


@feed_forward.mistake
def weights_transposed(x, W1, b1, W2, b2):
    """Both matrices are transposed (.T): nn.Linear stores them so, but here it is x @ W1 and @ W2.
    The columns of W1 are the keys, the rows of W2 the values."""
    return relu(x @ W1.T + b1) @ W2.T + b2


@feed_forward.mistake
def first_transposed(x, W1, b1, W2, b2):
    """W1 is transposed, its rows are taken instead of its columns: x @ W1, without .T. Neuron i
    has the column W1[:, i]."""
    return relu(x @ W1.T + b1) @ W2 + b2


@feed_forward.mistake
def second_transposed(x, W1, b1, W2, b2):
    """W2 is transposed, its columns are taken instead of its rows: @ W2, without .T. Neuron i
    writes the row W2[i]."""
    return relu(x @ W1 + b1) @ W2.T + b2


@feed_forward.mistake
def first_weights_again(x, W1, b1, W2, b2):
    """The second layer uses W1 again instead of W2."""
    return relu(x @ W1 + b1) @ W1 + b2


@feed_forward.mistake
def tied_weights(x, W1, b1, W2, b2):
    """The second layer uses W1 transposed, W1.T, instead of W2: the way back has its own matrix."""
    return relu(x @ W1 + b1) @ W1.T + b2


@feed_forward.mistake
def stops_after_the_first_layer(x, W1, b1, W2, b2):
    """The second layer is missing: it returns the hidden values. Go on with W2 and b2, back to D
    features."""
    return relu(x @ W1 + b1)


@feed_forward.mistake
def residual_inside(x, W1, b1, W2, b2):
    """x is added to the result: the residual is inside. It comes later, in Add & Norm, not in
    here."""
    return x + relu(x @ W1 + b1) @ W2 + b2


@feed_forward.mistake
def normalised(x, W1, b1, W2, b2):
    """The result is normalised. LayerNorm comes later, in Add & Norm, not in here."""
    return norms.plain(relu(x @ W1 + b1) @ W2 + b2)


@feed_forward.mistake
def input_normalised(x, W1, b1, W2, b2):
    """The input x is normalised first. LayerNorm is outside the network: use x as it is."""
    return relu(norms.plain(x) @ W1 + b1) @ W2 + b2


@feed_forward.mistake
def softmax_of_the_output(x, W1, b1, W2, b2):
    """A softmax is applied to the output. The network ends with … W2 + b2, which may be
    negative."""
    return softmax(relu(x @ W1 + b1) @ W2 + b2)


@feed_forward.mistake
def scaled(x, W1, b1, W2, b2):
    """The result is divided by √d_ff, the number of neurons. There is no scaling here: that belongs
    to the attention scores."""
    return relu(x @ W1 + b1) @ W2 / math.sqrt(W1.shape[1]) + b2


@feed_forward.mistake
def average_of_the_neurons(x, W1, b1, W2, b2):
    """It takes the mean over the neurons. Their values are summed, not divided by d_ff."""
    return relu(x @ W1 + b1) @ W2 / W1.shape[1] + b2


@feed_forward.mistake
def b2_for_every_neuron(x, W1, b1, W2, b2):
    """b2 is added for every neuron, inside the loop. Add it once, outside (start with it)."""
    return relu(x @ W1 + b1) @ W2 + len(b1) * b2


@feed_forward.mistake
def last_neuron_alone(x, W1, b1, W2, b2):
    """Only the last neuron counts: each one overwrites the result of those before. Sum them up:
    total = total + …"""
    return relu(x @ W1 + b1)[..., -1:] * W2[-1] + b2


@feed_forward.mistake
def first_neuron_alone(x, W1, b1, W2, b2):
    """Only the first neuron counts: the return stands inside the loop. Return after the loop, when
    all are summed."""
    return relu(x @ W1 + b1)[..., :1] * W2[0] + b2


@feed_forward.mistake
def one_neuron_too_few(x, W1, b1, W2, b2):
    """The last neuron is left out: the loop ends one too early. There are d_ff of them, as many as
    W1 has columns and W2 rows."""
    return relu(x @ W1 + b1)[..., :-1] @ W2[:-1] + b2


@feed_forward.mistake
def as_many_neurons_as_features(x, W1, b1, W2, b2):
    """The loop runs over the features, d, instead of the neurons: x.shape[-1] or len(W1). There are
    d_ff neurons, as many as W1 has columns: W1.shape[1]."""
    d = x.shape[-1]
    return relu(x @ W1[:, :d] + b1[:d]) @ W2[:d] + b2


@feed_forward.mistake
def neurons_without_an_axis(x, W1, b1, W2, b2):
    """A neuron is awake with one number per word, (…, T), and a * W2[i] lines these up with the
    features instead: it fails, or mixes both. Give them an axis: a[..., None] * W2[i]."""
    total = np.zeros(x.shape)
    for key, bias, value in zip(W1.T, b1, W2, strict=True):
        total = total + relu(x @ key + bias) * value
    return total + b2


@feed_forward.mistake
def neurons_without_an_axis_from_b2(x, W1, b1, W2, b2):
    """A neuron is awake with one number per word, (…, T), and a * W2[i] lines these up with the
    features instead: the words are lost, or it fails. Give them an axis: a[..., None] * W2[i]."""
    total = b2
    for key, bias, value in zip(W1.T, b1, W2, strict=True):
        total = total + relu(x @ key + bias) * value
    return total


@feed_forward.mistake
def first_neuron_left_out(x, W1, b1, W2, b2):
    """The first neuron is left out: the loop starts at 1. Start at 0."""
    return relu(x @ W1 + b1)[..., 1:] @ W2[1:] + b2


@feed_forward.mistake
def first_bias_for_all(x, W1, b1, W2, b2):
    """All neurons share one bias, b1[0]. Neuron i has its own, b1[i]."""
    return relu(x @ W1 + b1[0]) @ W2 + b2


@feed_forward.mistake
def bias_times_weights(x, W1, b1, W2, b2):
    """b1 is added to the weights W1, so that it is multiplied by x. Multiply first, then add the
    bias: x W1 + b1."""
    return relu(x @ (W1 + b1)) @ W2 + b2


@feed_forward.mistake
def second_bias_times_weights(x, W1, b1, W2, b2):
    """b2 is added to the weights W2, so that it is multiplied by the hidden values: brackets.
    Multiply by W2 first, then add the bias b2."""
    return relu(x @ W1 + b1) @ (W2 + b2)


@feed_forward.mistake
def sums_into_b2(x, W1, b1, W2, b2):
    """The sum starts as b2 itself, and += changes b2 in place. Start with a copy, b2.copy(), or
    write total = total + …"""
    out = relu(x @ W1 + b1) @ W2
    b2 += out
    return b2


# ---------------------------------------------------------------- encoder_layer

encoder_layer = Exercise(
    reference.encoder_layer,
    notebook="11",
    level=3,
    minutes=12,
    task="Assemble the layer again, this time without add_and_norm: write both additions yourself, "
    "and hand each sum to layer_norm. multi_head_attention and feed_forward are yours to call.",
    hints=(
        "There are two additions. To what is the output of the feed-forward network added?",
        "Attention reads x (and the mask); h = layer_norm(x + attention). The network reads h, and "
        "the second sum is h + network, not x + network.",
        '`h = layer_norm(x + multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])`, '
        'then `return layer_norm(h + feed_forward(h, **p["ffn"]), *p["norm2"])`',
    ),
)


def parameters(D: int, num_heads: int, d_ff: int) -> dict[str, Any]:
    """Weights of an encoder layer."""
    matrices = {name: normal(D, D) for name in ("W_q", "W_k", "W_v", "W_o")}
    return {
        "attn": matrices | {"num_heads": num_heads},
        "norm1": (normal(D), normal(D)),
        "ffn": network(D, d_ff),
        "norm2": (normal(D), normal(D)),
    }


def allowed(*shape: int) -> np.ndarray:
    """A mask without a pattern, in which each query may at least see its own word."""
    return (rng.random(shape) < 0.5) | np.eye(shape[-1], dtype=bool)


CAUSAL = np.tri(5, dtype=bool)
LEFT_PADDED = np.array([[True, True, True], [False, True, True]])[:, None].repeat(3, axis=1)
four = parameters(4, 2, 7)
norms.without_chance(encoder_layer, normal(2, 3, 4), four)
encoder_layer.probe("two words and one head", normal(1, 2, 4), parameters(4, 1, 3))
encoder_layer.probe("a batch of two sentences", normal(2, 3, 4), four)
encoder_layer.probe(
    "a causal mask and large scores", 16 * normal(2, 5, 6), parameters(6, 3, 8), mask=CAUSAL
)
encoder_layer.probe("a mask without a pattern", normal(2, 3, 4), four, mask=allowed(3, 3))
encoder_layer.probe("padding on the left of one sentence", normal(2, 3, 4), four, mask=LEFT_PADDED)
encoder_layer.probe("a mask for each sentence", normal(3, 4, 4), four, mask=allowed(3, 4, 4))
encoder_layer.probe("as many sentences as words", normal(3, 3, 4), four, mask=allowed(3, 3, 3))
encoder_layer.probe("as many sentences as heads", normal(2, 4, 4), four, mask=allowed(2, 4, 4))
encoder_layer.probe("as many neurons as features", normal(2, 3, 4), parameters(4, 2, 4))
encoder_layer.probe("large scores", 6 * normal(2, 3, 4), four)
idle = parameters(4, 2, 5)
encoder_layer.probe(
    "a network that adds nothing",
    normal(2, 3, 4),
    idle | {"ffn": {name: 0 * W for name, W in idle["ffn"].items()}},
)
encoder_layer.probe(
    "attention that adds nothing",
    normal(2, 3, 4),
    idle | {"attn": idle["attn"] | {"W_v": 0 * idle["attn"]["W_v"]}},
)
quiet = {  # attention and network add nothing, so that both norms see little; in float64
    "attn": idle["attn"] | {name: np.zeros((4, 4)) for name in ("W_q", "W_k", "W_v", "W_o")},
    "norm1": (np.array([0.002, 0.003, -0.001, 0.002]), np.array([1.0, 1.0, 1.001, 1.0])),
    "ffn": {name: 0.0 * W.astype(float) for name, W in idle["ffn"].items()},
    "norm2": (np.array([2.0, 1.5, 0.5, -1.0]), np.array([0.5, 0.0, -1.0, 0.2])),
}
encoder_layer.probe("nearly equal features", 1 + normal(1, 2, 4).astype(float) / 300, quiet)


def attend(x: np.ndarray, p: dict, mask: np.ndarray | None = None, **changed: Any) -> np.ndarray:
    """The attention of an encoder layer, with some of its parameters changed."""
    return multi_head_attention(x, mask=mask, **(p["attn"] | changed))


def think(x: np.ndarray, p: dict) -> np.ndarray:
    return reference.feed_forward(x, **p["ffn"])


def norm1(x: np.ndarray, p: dict) -> np.ndarray:
    return reference.layer_norm(x, *p["norm1"])


def norm2(x: np.ndarray, p: dict) -> np.ndarray:
    return reference.layer_norm(x, *p["norm2"])


@encoder_layer.mistake
def mask_not_passed(x, p, mask=None):
    """The mask is ignored: it never reaches the attention. Pass it on: mask=mask."""
    return reference.encoder_layer(x, p)


@encoder_layer.mistake
def mask_inverted(x, p, mask=None):
    """The mask is inverted (~mask): True means that attention is allowed. Pass it on as it is."""
    return reference.encoder_layer(x, p, None if mask is None else ~mask)


@encoder_layer.mistake
def mask_transposed(x, p, mask=None):
    """The mask is transposed: queries and keys are swapped. Its rows are queries, its columns
    keys, the last axis; pass it on as it is."""
    return reference.encoder_layer(x, p, None if mask is None else mask.swapaxes(-1, -2))


@encoder_layer.mistake
def mask_of_the_first_sentence(x, p, mask=None):
    """All sentences get the mask of the first one, mask[0]. Each sentence of the batch has its own:
    pass the whole mask on."""
    one = mask is not None and mask.ndim == 3
    return reference.encoder_layer(x, p, mask[0] if one else mask)


@encoder_layer.mistake
def first_query_for_all(x, p, mask=None):
    """All queries get the mask of the first query, one row. Each row of the mask belongs to its own
    query: pass the whole mask on."""
    return reference.encoder_layer(x, p, None if mask is None else first_rows(mask))


def first_rows(mask: np.ndarray) -> np.ndarray:
    return np.repeat(mask[..., :1, :], mask.shape[-2], axis=-2)


@encoder_layer.mistake
def always_causal(x, p, mask=None):
    """A causal mask is always applied instead of the one that was given. An encoder sees the whole
    sentence; use the argument mask, which may be None."""
    return reference.encoder_layer(x, p, np.tri(x.shape[1], dtype=bool))


@encoder_layer.mistake
def causal_by_default(x, p, mask=None):
    """Without a mask it applies a causal one. mask=None means that every word may see all words,
    later ones too: an encoder is not causal. Pass None on."""
    return reference.encoder_layer(x, p, np.tri(x.shape[1], dtype=bool) if mask is None else mask)


@encoder_layer.mistake
def causal_too(x, p, mask=None):
    """A causal mask is applied besides the given one: no word sees a later one. That is for
    decoders; an encoder uses the argument mask alone."""
    causal = np.tri(x.shape[1], dtype=bool)
    return reference.encoder_layer(x, p, causal if mask is None else causal & mask)


@encoder_layer.mistake
def mask_multiplies_the_words(x, p, mask=None):
    """The mask is not given to the attention; it sets words to 0 instead. Their keys would still be
    read: pass the mask on to the attention, mask=mask."""
    keep = 1.0 if mask is None else np.diagonal(mask, axis1=-2, axis2=-1)[..., None]
    return reference.encoder_layer(x, p) * keep


@encoder_layer.mistake
def pre_norm_layer(x, p, mask=None):
    """That is a pre-norm layer: it normalises before each sub-layer. Here it is post-norm: add
    first, then normalise the sum, after each sub-layer."""
    h = x + attend(norm1(x, p), p, mask)
    return h + think(norm2(h, p), p)


@encoder_layer.mistake
def norm_before_adding(x, p, mask=None):
    """Each sub-layer's output is normalised, and then the residual is added. The order is add, then
    norm: normalise the sum, LayerNorm(x + sub-layer)."""
    h = x + norm1(attend(x, p, mask), p)
    return h + norm2(think(h, p), p)


@encoder_layer.mistake
def norms_swapped(x, p, mask=None):
    """norm1 and norm2 are swapped: norm1 follows attention, norm2 the feed-forward network."""
    return reference.encoder_layer(x, p | {"norm1": p["norm2"], "norm2": p["norm1"]}, mask)


@encoder_layer.mistake
def norm1_twice(x, p, mask=None):
    """norm1 is used twice. The second Add & Norm, after the feed-forward network, has its own gamma
    and beta: norm2."""
    return reference.encoder_layer(x, p | {"norm2": p["norm1"]}, mask)


@encoder_layer.mistake
def norm2_twice(x, p, mask=None):
    """norm2 is used twice. The first Add & Norm, after attention, has its own gamma and beta:
    norm1."""
    return reference.encoder_layer(x, p | {"norm1": p["norm2"]}, mask)


@encoder_layer.mistake
def gains_left_out(x, p, mask=None):
    """gamma and beta are not used, they are ignored: hand norm1 and norm2 to layer_norm,
    *p["norm1"] and *p["norm2"]."""
    h = norms.plain(x + attend(x, p, mask))
    return norms.plain(h + think(h, p))


@encoder_layer.mistake
def gains_swapped(x, p, mask=None):
    """gamma and beta are swapped. A norm is (gamma, beta), in this order:
    gamma, beta = p["norm1"]."""
    swapped = {name: p[name][::-1] for name in ("norm1", "norm2")}
    return reference.encoder_layer(x, p | swapped, mask)


@encoder_layer.mistake
def feed_forward_first(x, p, mask=None):
    """The feed-forward network comes first, attention second: the order is swapped. Attention comes
    first, the feed-forward network after it."""
    h = norm1(x + think(x, p), p)
    return norm2(h + attend(h, p, mask), p)


@encoder_layer.mistake
def feed_forward_first_with_its_norm(x, p, mask=None):
    """The order is swapped: the feed-forward network with norm2 comes first, attention with norm1
    after it. Attention comes first, and the network reads what the first Add & Norm gives."""
    h = norm2(x + think(x, p), p)
    return norm1(h + attend(h, p, mask), p)


@encoder_layer.mistake
def attention_alone(x, p, mask=None):
    """The feed-forward network and the second Add & Norm are missing: it stops after attention."""
    return norm1(x + attend(x, p, mask), p)


@encoder_layer.mistake
def feed_forward_alone(x, p, mask=None):
    """Attention and the first Add & Norm are missing, or their result is lost: the feed-forward
    network reads x, the layer's input, and is added to x. It reads h, the output of the first
    Add & Norm, and is added to h."""
    return norm2(x + think(x, p), p)


@encoder_layer.mistake
def attention_as_it_is(x, p, mask=None):
    """It returns the output of attention. Both Add & Norm and the feed-forward network are missing:
    residual, norm1, feed-forward, residual, norm2."""
    return attend(x, p, mask)


@encoder_layer.mistake
def no_add_and_norm(x, p, mask=None):
    """Both Add & Norm are missing, the residuals and the norms: the feed-forward network reads the
    raw output of attention. Add and normalise after each sub-layer."""
    return think(attend(x, p, mask), p)


@encoder_layer.mistake
def first_add_and_norm_missing(x, p, mask=None):
    """The first Add & Norm is missing, residual and norm1: after attention add x and normalise,
    before the feed-forward network reads it."""
    a = attend(x, p, mask)
    return norm2(a + think(a, p), p)


@encoder_layer.mistake
def second_add_and_norm_missing(x, p, mask=None):
    """The second Add & Norm is missing, residual and norm2: after the feed-forward network add its
    input h and normalise the sum."""
    return think(norm1(x + attend(x, p, mask), p), p)


@encoder_layer.mistake
def one_add_and_norm_around_both(x, p, mask=None):
    """One Add & Norm stands around attention and feed-forward together. Each sub-layer has its own:
    the first, with norm1, comes before the feed-forward network."""
    return norm2(x + think(attend(x, p, mask), p), p)


@encoder_layer.mistake
def feed_forward_skipped(x, p, mask=None):
    """The feed-forward network is missing: nothing but a second norm follows attention. Add
    feed_forward(h, …) before norm2."""
    return norm2(norm1(x + attend(x, p, mask), p), p)


@encoder_layer.mistake
def attention_skipped(x, p, mask=None):
    """Attention is missing: the words never meet. Add multi_head_attention(x, …) before norm1."""
    h = norm1(x, p)
    return norm2(h + think(h, p), p)


@encoder_layer.mistake
def attention_twice(x, p, mask=None):
    """Attention is applied twice, and the feed-forward network never: it is missing in the second
    half."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(h + attend(h, p, mask), p)


@encoder_layer.mistake
def feed_forward_twice(x, p, mask=None):
    """The feed-forward network is applied twice. One application follows attention, once per
    layer."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(h + think(think(h, p), p), p)


@encoder_layer.mistake
def second_residual_from_input(x, p, mask=None):
    """The second residual adds x, the layer's input. It must add what went into the feed-forward
    network: h, the output of the first Add & Norm."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(x + think(h, p), p)


@encoder_layer.mistake
def feed_forward_reads_the_input(x, p, mask=None):
    """The feed-forward network reads x, the layer's input. It must read h, the output of the first
    Add & Norm."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(h + think(x, p), p)


@encoder_layer.mistake
def side_by_side(x, p, mask=None):
    """Attention and the feed-forward network run side by side, both from x, the layer's input. One
    follows the other: the network reads the output of the first Add & Norm."""
    return norm2(norm1(x + attend(x, p, mask) + think(x, p), p), p)


@encoder_layer.mistake
def parallel_sum(x, p, mask=None):
    """Attention and the feed-forward network both read x, and their outputs are added to it, with
    one norm. One follows the other, each with its own Add & Norm."""
    return norm1(x + attend(x, p, mask) + think(x, p), p)


@encoder_layer.mistake
def feed_forward_reads_attention(x, p, mask=None):
    """The feed-forward network reads the raw output of attention. It must read the output of the
    first Add & Norm."""
    a = attend(x, p, mask)
    return norm2(norm1(x + a, p) + think(a, p), p)


@encoder_layer.mistake
def second_residual_from_attention(x, p, mask=None):
    """The second residual adds the raw output of attention. It must add what went into the
    feed-forward network: h, the output of the first Add & Norm."""
    a = attend(x, p, mask)
    return norm2(a + think(norm1(x + a, p), p), p)


@encoder_layer.mistake
def second_residual_not_normalised(x, p, mask=None):
    """The second residual adds the sum before its norm, x + attention. It must add what went into
    the feed-forward network: h, the normalised sum, the output of the first Add & Norm."""
    a = x + attend(x, p, mask)
    return norm2(a + think(norm1(a, p), p), p)


@encoder_layer.mistake
def residuals_missing(x, p, mask=None):
    """Both residuals are missing: nothing is added to what the sub-layers give. Add their inputs
    before each norm: x + attention, h + feed-forward."""
    return norm2(think(norm1(attend(x, p, mask), p), p), p)


@encoder_layer.mistake
def first_residual_missing(x, p, mask=None):
    """The first residual is missing: x is not added to the output of attention before norm1."""
    h = norm1(attend(x, p, mask), p)
    return norm2(h + think(h, p), p)


@encoder_layer.mistake
def second_residual_missing(x, p, mask=None):
    """The second residual is missing: h, what went into the feed-forward network, is not added to
    its output before norm2."""
    return norm2(think(norm1(x + attend(x, p, mask), p), p), p)


@encoder_layer.mistake
def residual_around_everything(x, p, mask=None):
    """There is one residual around the whole layer. Each sub-layer needs its own: x + attention,
    and after the first norm h + feed-forward."""
    return norm2(x + think(norm1(attend(x, p, mask), p), p), p)


@encoder_layer.mistake
def input_added_again(x, p, mask=None):
    """The second sum adds the layer's input x besides h. Only h, the output of the first Add &
    Norm, is added to the feed-forward network's output."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(x + h + think(h, p), p)


@encoder_layer.mistake
def first_residual_twice(x, p, mask=None):
    """x is added twice to the output of attention. The residual adds it once."""
    h = norm1(x + x + attend(x, p, mask), p)
    return norm2(h + think(h, p), p)


@encoder_layer.mistake
def second_residual_twice(x, p, mask=None):
    """h is added twice to the output of the feed-forward network. The residual adds it once."""
    h = norm1(x + attend(x, p, mask), p)
    return norm2(h + h + think(h, p), p)


@encoder_layer.mistake
def norms_missing(x, p, mask=None):
    """Both norms are missing: the sums are never normalised. Hand each sum to layer_norm, with
    norm1 and norm2."""
    h = x + attend(x, p, mask)
    return h + think(h, p)


@encoder_layer.mistake
def first_norm_missing(x, p, mask=None):
    """The first norm is missing: x + attention is not normalised before the feed-forward network
    reads it. Use norm1 there."""
    h = x + attend(x, p, mask)
    return norm2(h + think(h, p), p)


@encoder_layer.mistake
def second_norm_missing(x, p, mask=None):
    """The second norm is missing: the last sum is not normalised. Use norm2 at the end."""
    h = norm1(x + attend(x, p, mask), p)
    return h + think(h, p)


@encoder_layer.mistake
def second_sum_as_pre_norm(x, p, mask=None):
    """The second half is pre-norm, the first post-norm. In both halves add first, then normalise
    the sum: norm2 comes last."""
    h = norm1(x + attend(x, p, mask), p)
    return h + think(norm2(h, p), p)


@encoder_layer.mistake
def second_output_normalised_only(x, p, mask=None):
    """The output of the feed-forward network is normalised and then h is added. Normalise the sum:
    LayerNorm(h + feed-forward)."""
    h = norm1(x + attend(x, p, mask), p)
    return h + norm2(think(h, p), p)


@encoder_layer.mistake
def first_output_normalised_only(x, p, mask=None):
    """The output of attention is normalised and then x is added. Normalise the sum:
    LayerNorm(x + attention)."""
    h = x + norm1(attend(x, p, mask), p)
    return norm2(h + think(h, p), p)


@encoder_layer.mistake
def one_head(x, p, mask=None):
    """num_heads is ignored: there is one head. Pass the number of heads on, p["attn"]["num_heads"];
    **p["attn"] does."""
    h = norm1(x + attend(x, p, mask, num_heads=1), p)
    return norm2(h + think(h, p), p)


@encoder_layer.mistake
def queries_and_keys_swapped(x, p, mask=None):
    """W_q and W_k are swapped, in the wrong order: queries are made with the keys' matrix. Pass
    them by name, **p["attn"]."""
    attn = p["attn"]
    return reference.encoder_layer(x, with_attention(p, W_q=attn["W_k"], W_k=attn["W_q"]), mask)


@encoder_layer.mistake
def keys_and_values_swapped(x, p, mask=None):
    """W_k and W_v are swapped, in the wrong order: keys are made with the values' matrix. Pass them
    by name, **p["attn"]."""
    attn = p["attn"]
    return reference.encoder_layer(x, with_attention(p, W_k=attn["W_v"], W_v=attn["W_k"]), mask)


def with_attention(p: dict, **changed: Any) -> dict:
    return p | {"attn": p["attn"] | changed}


@encoder_layer.mistake
def output_projection_missing(x, p, mask=None):
    """The output projection W_o is missing: the joined heads are used as they are."""
    width = p["attn"]["W_o"].shape[0]
    h = norm1(x + attend(x, p, mask, W_o=np.eye(width)), p)
    return norm2(h + think(h, p), p)


@encoder_layer.mistake
def words_and_sentences_mixed(x, p, mask=None):
    """The batch is mixed up: the words attend to the other sentences' words, across the first axis.
    Each sentence is on its own: (B, T, d), words are axis 1."""
    swapped = reference.encoder_layer(x.swapaxes(0, 1), p)
    return swapped.swapaxes(0, 1)


@encoder_layer.mistake
def first_sentence_only(x, p, mask=None):
    """All sentences get the result of the first one. Each sentence of the batch has its own."""
    one = mask is not None and mask.ndim == 3
    y = reference.encoder_layer(x[:1], p, mask[:1] if one else mask)
    return np.repeat(y, len(x), axis=0)


@encoder_layer.mistake
def residual_in_place(x, p, mask=None):
    """x += … changes x in place, the array that was given. Make a new array: x + attention."""
    y = reference.encoder_layer(x, p, mask)
    x += attend(x, p, mask)
    return y


@encoder_layer.mistake
def takes_from_p(x, p, mask=None):
    """It changes p in place, with pop or an assignment to p["attn"]: the next call finds other
    parameters. Read p["attn"] without changing it, or make a copy, dict(p["attn"])."""
    y = reference.encoder_layer(x, p, mask)
    p["attn"].pop("num_heads")
    return y


@encoder_layer.mistake
def layer_twice(x, p, mask=None):
    """The whole layer is applied twice. One layer is attention and feed-forward, once each."""
    return reference.encoder_layer(reference.encoder_layer(x, p, mask), p, mask)


def layer_with(norm: Callable) -> Callable:
    """An encoder layer with another layer_norm."""

    def function(x, p, mask=None):
        h = norm(x + attend(x, p, mask), *p["norm1"])
        return norm(h + think(h, p), *p["norm2"])

    return function


norms.norms_inside(
    encoder_layer,
    layer_with,
    only=(
        norms.unbiased,
        norms.unbiased_and_eps_outside,
        norms.eps_outside,
        norms.eps_missing,
        norms.divides_by_variance,
        norms.gamma_ignored,
        norms.beta_ignored,
        norms.over_everything,
        norms.over_the_sentence,
        norms.over_the_words,
        norms.rms_norm,
    ),
)


def attention_inside(known: Callable) -> None:
    """Add a mistake of multi_head_attention to the encoder layer."""

    def function(x, p, mask=None):
        h = norm1(x + known(x, **p["attn"], mask=mask), p)
        return norm2(h + think(h, p), p)

    function.__name__, function.__doc__ = known.__name__, known.__doc__
    encoder_layer.mistake(function)


for known_function in (
    heads.not_scaled,
    heads.scaled_by_d_model,
    heads.scaled_without_root,
    heads.softmax_overflows,
    heads.split_by_reshape_only,
    heads.split_and_merge_by_reshape_only,
    heads.merge_by_reshape_only,
    heads.mask_added,
    heads.masked_after_the_softmax,
    heads.masked_after_the_softmax_and_renormalised,
    heads.masked_scores_zero,
    heads.mask_without_axis_for_heads,
):
    attention_inside(known_function)


def network_inside(known: Callable) -> None:
    """Add a mistake of feed_forward to the encoder layer."""

    def function(x, p, mask=None):
        h = norm1(x + attend(x, p, mask), p)
        return norm2(h + known(h, **p["ffn"]), p)

    function.__name__, function.__doc__ = known.__name__, known.__doc__
    encoder_layer.mistake(function)


for known in feed_forward.mistakes:
    if known.id in ("no-relu", "gelu", "relu-twice", "relu-at-the-end", "b1-missing", "b2-missing"):
        network_inside(known.function)
for known_function in (both_biases_missing, biases_swapped, weights_swapped):
    network_inside(known_function)


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
count.probe("one layer, d_model 2 and d_ff 3", 1, 2, 3)
count.probe("three such layers", 3, 2, 3)
count.probe("the paper's encoder", 6, 512, 2048)
count.probe("a narrow network", 2, 12, 5)
count.probe("a layer of one feature and one neuron", 1, 1, 1)


@count.mistake
def biases_missing(num_layers, d_model, d_ff):
    """The biases are missing, those of attention and those of the network. Each of the six matrices
    has one bias per column."""
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 4 * d_model)


@count.mistake
def norms_or_attention_biases_missing(num_layers, d_model, d_ff):
    """4 · d_model numbers per layer are missing: as many as the two norms have (gamma and beta
    each), and as many as the biases of attention (W_q, W_k, W_v, W_o). Count both."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * 4 * d_model


@count.mistake
def network_biases_missing(num_layers, d_model, d_ff):
    """The biases of the feed-forward network are missing: b1 has d_ff numbers, b2 has d_model."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * (d_ff + d_model)


@count.mistake
def output_bias_missing(num_layers, d_model, d_ff):
    """b2 is missing, the second bias of the feed-forward network: d_model numbers."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * d_model


@count.mistake
def hidden_bias_missing(num_layers, d_model, d_ff):
    """b1 is missing, the first bias of the feed-forward network: d_ff numbers, one per neuron."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * d_ff


@count.mistake
def hidden_bias_as_wide_as_the_word(num_layers, d_model, d_ff):
    """b1 is counted with d_model numbers. A bias has one for each column of its matrix: d_ff for
    W1, d_model for W2."""
    return encoder_parameters(num_layers, d_model, d_ff) + num_layers * (d_model - d_ff)


@count.mistake
def one_number_per_gain(num_layers, d_model, d_ff):
    """gamma and beta are counted as single numbers. Each has one for every feature: d_model."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * 4 * (d_model - 1)


@count.mistake
def layers_of_attention_alone(num_layers, d_model, d_ff):
    """num_layers multiplies the numbers of attention only: brackets are missing. Each layer has a
    network and norms of its own: num_layers * (attention + network + norms)."""
    whole, attention = encoder_parameters(1, d_model, d_ff), 4 * (d_model**2 + d_model)
    return num_layers * attention + whole - attention


@count.mistake
def one_norm(num_layers, d_model, d_ff):
    """One norm of two is missing (or only the gains are counted, without beta). Each layer has two
    norms, with gamma and beta of d_model numbers each."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * 2 * d_model


@count.mistake
def matrices_alone(num_layers, d_model, d_ff):
    """Only the matrices are counted: the biases and the norms (gamma, beta) are missing."""
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff)


@count.mistake
def three_matrices(num_layers, d_model, d_ff):
    """Attention has four matrices: W_o, the output projection (with its bias), is missing."""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * (d_model**2 + d_model)


@count.mistake
def one_matrix_of_the_network(num_layers, d_model, d_ff):
    """The network has two matrices: W2, d_ff × d_model, is missing. Or was it counted once only?"""
    return encoder_parameters(num_layers, d_model, d_ff) - num_layers * d_model * d_ff


@count.mistake
def network_missing(num_layers, d_model, d_ff):
    """The feed-forward network is missing: W1, b1, W2 and b2."""
    return num_layers * (4 * (d_model**2 + d_model) + 4 * d_model)


@count.mistake
def attention_missing(num_layers, d_model, d_ff):
    """Attention is missing: W_q, W_k, W_v and W_o with their biases."""
    return num_layers * (2 * d_model * d_ff + d_ff + d_model + 4 * d_model)


@count.mistake
def width_assumed(num_layers, d_model, d_ff):
    """d_ff is ignored: 4 · d_model is assumed. Use the argument d_ff."""
    return encoder_parameters(num_layers, d_model, 4 * d_model)


@count.mistake
def one_layer_only(num_layers, d_model, d_ff):
    """num_layers is ignored: this is one layer. Each layer has parameters of its own, so multiply
    by num_layers."""
    return encoder_parameters(1, d_model, d_ff)


@count.mistake
def norms_counted_once(num_layers, d_model, d_ff):
    """The norms are counted once for the whole stack: brackets. Each layer has two of its own;
    multiply the whole sum by num_layers."""
    return encoder_parameters(num_layers, d_model, d_ff) - (num_layers - 1) * 4 * d_model


@count.mistake
def last_norm_added(num_layers, d_model, d_ff):
    """One norm too many is counted, a last one after the stack. The post-norm encoder has none:
    two norms per layer."""
    return encoder_parameters(num_layers, d_model, d_ff) + 2 * d_model


@count.mistake
def square_network(num_layers, d_model, d_ff):
    """The matrices of the network are taken as d_ff × d_ff. They are d_model × d_ff and
    d_ff × d_model."""
    change = 2 * d_ff**2 - 2 * d_model * d_ff
    return encoder_parameters(num_layers, d_model, d_ff) + num_layers * change
