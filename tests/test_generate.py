"""helpers.decoding.generate and the key–value cache: what is read once gives the same words."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from helpers.cache import KeyValueCache
from helpers.decoding import generate, greedy_decode, next_token_probs, sample_token
from helpers.layers import MultiHeadAttention, unwatched
from helpers.models import DecoderOnly, Transformer

pytestmark = pytest.mark.slow

FEW = settings(max_examples=8, deadline=None)
SEEDS = st.integers(0, 2**16)
V, CONTEXT = 17, 24
LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=4)
BOTH = pytest.mark.parametrize("cached", [True, False], ids=["cached", "uncached"])


def scramble(model: nn.Module, seed: int = 0) -> nn.Module:
    """Weights with which the next token depends on the text, and on where its words stand."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        gain = name.endswith("weight") and parameter.ndim == 1
        parameter.data.copy_((0.1 if parameter.ndim == 1 else 0.5) * noise + gain)
    for table in (part for part in model.modules() if isinstance(part, nn.Embedding)):
        table.weight.data *= 4
    return model.double()


def even_chances(output: nn.Linear) -> None:
    """No token is the likeliest after most texts."""
    centred = output.weight.data - output.weight.data.mean(dim=0)
    output.weight.data = centred / centred.norm(dim=1, keepdim=True)


def language_model(seed: int = 0, **options) -> DecoderOnly:
    options = {"pre_norm": True} | options
    model = scramble(DecoderOnly(V, CONTEXT, 12, 3, 20, 2, **options), seed)
    even_chances(model.output)
    return model


def translator(seed: int = 0) -> Transformer:
    model = Transformer(13, V, 12, 3, 20, 2, max_len=CONTEXT, pre_norm=True)
    even_chances(scramble(model, seed).output)
    return model


def draw_prompts(lengths: list[int], seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, V, n).tolist() for n in lengths]


@torch.no_grad()
def by_hand(model: DecoderOnly, prompt: list[int], n: int) -> list[int]:
    """The plain loop: all is read again, the likeliest token appended."""
    ids = list(prompt)
    for _ in range(n):
        ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    return ids[len(prompt) :]


LLAMA = {"rms_norm": True, "rope": 100.0, "gated": True, "activation": "silu", "bias": False}
KINDS = {
    "post-norm": {"pre_norm": False},
    "pre-norm": {},
    "shared keys": LLAMA | {"num_kv_heads": 1},
    "window": LLAMA | {"window": 4, "qk_norm": True},
    "experts": LLAMA | {"num_experts": 3},
}


@pytest.mark.parametrize("pad_id", [None, 0])
@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(lengths=LENGTHS, n=st.integers(0, 12), seed=SEEDS)
def test_any_batch_is_the_plain_loop_for_each_prompt(lengths, n, seed, kind, pad_id):
    """Prompts of different lengths, with and without the cache, the token 0 among them."""
    model = language_model(seed, pad_id=pad_id, **KINDS[kind])
    prompts = draw_prompts(lengths, seed)
    expected = [by_hand(model, prompt, n) for prompt in prompts]
    assert generate(model, prompts, n) == expected
    assert generate(model, prompts, n, cached=False) == expected


@FEW
@given(lengths=LENGTHS, n=st.integers(1, 12), end_id=st.integers(0, V - 1), seed=SEEDS)
def test_end_id_ends_its_row_alone(lengths, n, end_id, seed):
    model, prompts = language_model(seed), draw_prompts(lengths, seed)
    whole = generate(model, prompts, n)
    cut = [ids[: ids.index(end_id) + 1] if end_id in ids else ids for ids in whole]
    assert generate(model, prompts, n, end_id=end_id) == cut
    assert generate(model, prompts, n, end_id=end_id, cached=False) == cut


@FEW
@given(lengths=LENGTHS, S=st.integers(1, 6), seed=SEEDS)
def test_translations_in_a_batch_are_greedy_decode_of_each_alone(lengths, S, seed):
    """Sources padded at their right, prompts of different lengths, rows that end early."""
    model = translator(seed).eval()
    rng = np.random.default_rng(seed)
    src = torch.from_numpy(rng.integers(1, 13, (len(lengths), S)))
    src[torch.arange(S) >= torch.from_numpy(rng.integers(1, S + 1, (len(lengths), 1)))] = 0
    prompts = [[max(1, i) for i in prompt] for prompt in draw_prompts(lengths, seed)]
    expected = []
    for row, prompt in enumerate(prompts):
        alone = src[row][src[row] != 0][None]

        def step(ids: list[int], alone: Tensor = alone, prompt: list[int] = prompt) -> np.ndarray:
            return model(alone, torch.tensor([prompt[:-1] + ids]))[0].detach().numpy()

        expected.append(greedy_decode(step, prompt[-1], 5, 9))
    assert generate(model.answering(src), prompts, 9, end_id=5) == expected
    assert generate(model.answering(src), prompts, 9, end_id=5, cached=False) == expected


@FEW
@given(cuts=st.lists(st.integers(1, 5), min_size=1, max_size=4), B=st.integers(1, 3), seed=SEEDS)
def test_a_text_read_in_pieces_gives_the_logits_of_the_whole(cuts, B, seed):
    model, tgt_model = language_model(seed).eval(), translator(seed).eval()
    ids = torch.from_numpy(np.random.default_rng(seed).integers(1, V, (B, sum(cuts))))
    src = ids[:, :1] % 12 + 1
    memory, real = tgt_model.encode(src), tgt_model.padding_mask(src)
    caches = KeyValueCache(), KeyValueCache()
    with torch.no_grad():
        pieces = [
            (model(piece, caches[0]), tgt_model.decode(piece, memory, real, caches[1]))
            for piece in ids.split(cuts, dim=1)
        ]
        wholes = model(ids), tgt_model.decode(ids, memory, real)
    for parts, whole in zip(zip(*pieces, strict=True), wholes, strict=True):
        torch.testing.assert_close(torch.cat(parts, dim=1), whole)


def test_a_cache_refuses_gradients():
    attention = MultiHeadAttention(6, 6, 2)
    with pytest.raises(ValueError, match=r"cache keeps no gradients.*torch\.no_grad"):
        attention(torch.randn(1, 2, 6), cache=KeyValueCache())


def positions_read(model: nn.Module, part: nn.Module, run) -> list[int]:
    """How many positions pass through a part at each of its forwards."""
    counts = []
    hook = part.register_forward_hook(
        lambda module, inputs, out: counts.append(inputs[0].shape[0] * inputs[0].shape[1])
    )
    run(model)
    hook.remove()
    return counts


def test_cost_per_token_is_flat_with_the_cache():
    """One position a token, in every layer and for keys and values; without it, all again."""
    model, n = language_model(), 20
    for part in (model.layers[0], model.layers[1].attention.W_k, model.layers[1].feed_forward):
        cached = positions_read(model, part, lambda m: generate(m, [[1, 2, 3]], n))
        assert cached == [3] + [1] * (n - 1)
        plain = positions_read(model, part, lambda m: generate(m, [[1, 2, 3]], n, cached=False))
        assert plain == list(range(3, 3 + n))
    model, src = translator().eval(), torch.tensor([[3, 4, 5, 6, 7]])
    memory = model.decoder.layers[1].cross_attention.W_k
    assert positions_read(model, memory, lambda m: generate(m.answering(src), [[1]], 8)) == [5]


@BOTH
def test_nothing_is_left_behind(cached):
    """No gradients, no weights, no dropout on the way, and every part in its former mode."""
    model = language_model(dropout=0.5)
    model.train()
    model.layers[1].eval()
    before = {name: part.training for name, part in model.named_modules()}
    first = generate(model, [[1, 2], [3]], 6, cached=cached)
    assert first == generate(copy.deepcopy(model).eval(), [[1, 2], [3]], 6, cached=cached)
    assert {name: part.training for name, part in model.named_modules()} == before
    assert torch.is_grad_enabled()
    assert all(layer.attention.weights is None for layer in model.layers)
    assert all(parameter.grad is None for parameter in model.parameters())
    model(torch.tensor([[1, 2]]))
    assert model.layers[0].attention.weights is not None  # watched again
    with pytest.raises(ValueError), unwatched(model):
        generate(model, [[1, 2], [3]], CONTEXT, cached=cached)
    assert model.training and torch.is_grad_enabled() and model.layers[0].attention.watched


@BOTH
@FEW
@given(seed=SEEDS, temperature=st.floats(0.3, 4), top_k=st.integers(1, V), top_p=st.floats(0.1, 1))
def test_sampling_is_the_lessons_loop(seed, temperature, top_k, top_p, cached):
    """For one prompt, the very draws of sample_token(next_token_probs(…)); and again the same."""
    model = language_model(seed).eval()
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    rng, ids = np.random.default_rng(seed), [4, 2]
    for _ in range(6):
        logits = model(torch.tensor([ids]))[0, -1].detach().numpy()
        ids.append(sample_token(next_token_probs(logits, **options), rng))
    for _ in range(2):
        rng = np.random.default_rng(seed)
        assert generate(model, [[4, 2]], 6, rng=rng, cached=cached, **options) == [ids[2:]]


RNG = np.random.default_rng(0)
BAD_INPUT = [
    ({"prompts": []}, "prompts is empty"),
    ({"prompts": [[1], []]}, r"prompts\[1\] is empty"),
    ({"prompts": [1, 2]}, r"prompts\[0\] is a int"),
    ({"prompts": ["the cat"]}, r"prompts\[0\] is a str, but must be a list of ids"),
    ({"prompts": [[1.5]]}, "float.*integer"),
    ({"prompts": [[1], [V]]}, f"prompts holds the id {V}, .* from 0 to {V - 1}"),
    ({"max_new_tokens": -1}, "max_new_tokens is -1"),
    ({"prompts": [[1], [1] * 20], "max_new_tokens": 6},
     f"max_new_tokens is 6.*25 tokens.*prompt of 20.*context holds {CONTEXT}"),
    ({"temperature": 0.5}, "rng is None"),
    ({"top_p": 0.9}, "rng is None"),
    ({"rng": 3}, "rng is a int, but must be a numpy.random.Generator"),
    ({"rng": RNG, "temperature": 0.0}, "temperature is 0.0"),
    ({"rng": RNG, "top_k": 0}, "top_k is 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), BAD_INPUT)
def test_bad_input_is_named_before_anything_is_read(changed, message):
    model = language_model()

    def run(model: nn.Module) -> None:
        with pytest.raises((ValueError, TypeError), match=message):
            generate(model, **{"prompts": [[1, 2]], "max_new_tokens": 2} | changed)

    assert not positions_read(model, model.layers[0], run)


def test_bad_translations_are_named():
    model, src = translator(), torch.tensor([[3, 4], [5, 0]])
    with pytest.raises(ValueError, match="prompts has 1 rows, but src has 2 sentences"):
        generate(model.answering(src), [[1]], 4)
    with pytest.raises(ValueError, match=f"max_new_tokens is {CONTEXT + 1}"):
        generate(model.answering(src), [[1], [1]], CONTEXT + 1)
    with pytest.raises(ValueError, match="src holds the id 14"):
        generate(model.answering(src + 9), [[1], [1]], 4)
    assert len(generate(model.answering(src), [[1], [1]], CONTEXT)[0]) == CONTEXT


def test_the_context_can_be_filled_to_its_end():
    """The last token is not read again; a longer prompt beside it takes nothing from a row."""
    model = language_model()
    prompt = draw_prompts([20], 0)[0]
    assert generate(model, [prompt, [3]], 5) == [by_hand(model, prompt, 5), by_hand(model, [3], 5)]
