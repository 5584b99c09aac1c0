"""helpers.decoding.generate and the key–value cache: what is read once gives the same words."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lessons import PATHS, cells, folded_code
from small_models import scrambled
from torch import Tensor, nn

from helpers.cache import KeyValueCache
from helpers.decoding import generate, greedy_decode, next_token_probs, sample_token
from helpers.models import DecoderOnly, Transformer

pytestmark = pytest.mark.slow

FEW = settings(max_examples=8, deadline=None)
SEEDS = st.integers(0, 2**16)
V, CONTEXT = 17, 24
LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=4)
BOTH = pytest.mark.parametrize("cached", [True, False], ids=["cached", "uncached"])


def lively(model: nn.Module, seed: int) -> nn.Module:
    """Scrambled so that the next token depends on the text, and none is often the likeliest."""
    for name, parameter in scrambled(model, seed).named_parameters():
        if name.endswith("bias"):
            parameter.data *= 0.2
    for table in (part for part in model.modules() if isinstance(part, nn.Embedding)):
        table.weight.data *= 4
    centred = model.output.weight.data - model.output.weight.data.mean(dim=0)
    model.output.weight.data = centred / centred.norm(dim=1, keepdim=True)
    return model


def language_model(seed: int = 0, **options) -> DecoderOnly:
    options = {"pre_norm": True} | options
    return lively(DecoderOnly(V, CONTEXT, 12, 3, 20, 2, **options), seed)


def translator(seed: int = 0) -> Transformer:
    return lively(Transformer(13, V, 12, 3, 20, 2, max_len=CONTEXT, pre_norm=True), seed)


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
@given(lengths=LENGTHS, n=st.integers(0, 12), end_id=st.none() | st.integers(0, V - 1), seed=SEEDS)
def test_any_batch_is_the_plain_loop_for_each_prompt(lengths, n, end_id, seed, kind, pad_id):
    """Prompts of different lengths, rows that end early, the token 0 among them."""
    model = language_model(seed, pad_id=pad_id, **KINDS[kind])
    prompts = draw_prompts(lengths, seed)
    whole = [by_hand(model, prompt, n) for prompt in prompts]
    expected = [ids[: ids.index(end_id) + 1] if end_id in ids else ids for ids in whole]
    assert generate(model, prompts, n, end_id=end_id) == expected
    assert generate(model, prompts, n, end_id=end_id, cached=False) == expected


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
    language, translate = language_model(seed).eval(), translator(seed).eval()
    ids = torch.from_numpy(np.random.default_rng(seed).integers(1, V, (B, sum(cuts))))
    src = ids[:, :1] % 12 + 1
    with torch.no_grad():
        memory, real = translate.encode(src), translate.padding_mask(src)
        for read in (language, lambda piece, kept: translate.decode(piece, memory, real, kept)):
            cache = KeyValueCache()
            parts = [read(piece, cache) for piece in ids.split(cuts, dim=1)]
            torch.testing.assert_close(torch.cat(parts, dim=1), read(ids, None))


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


@BOTH
@FEW
@given(seed=SEEDS, temperature=st.floats(0.3, 4), top_k=st.integers(1, V), top_p=st.floats(0.1, 1))
def test_sampling_is_the_lessons_loop(seed, temperature, top_k, top_p, cached):
    """For one prompt, the very draws of sample_token(next_token_probs(…))."""
    model = language_model(seed).eval()
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    rng, ids = np.random.default_rng(seed), [4, 2]
    for _ in range(6):
        logits = model(torch.tensor([ids]))[0, -1].detach().numpy()
        ids.append(sample_token(next_token_probs(logits, **options), rng))
    rng = np.random.default_rng(seed)
    assert generate(model, [[4, 2]], 6, rng=rng, cached=cached, **options) == [ids[2:]]


def test_the_context_can_be_filled_to_its_end():
    """The last token is not read again; a longer prompt beside it takes nothing from a row."""
    model = language_model()
    prompt = draw_prompts([20], 0)[0]
    assert generate(model, [prompt, [3]], 5) == [by_hand(model, prompt, 5), by_hand(model, [3], 5)]
    answers = generate(translator().answering(torch.tensor([[3, 4]])), [[1]], CONTEXT)
    assert len(answers[0]) == CONTEXT


# ---------------------------------------------------------------- guesses of a small model: 17

# After each of three sums of a text: chances whose quotients, large / small, are whole quarters.
SMALL = np.array([[2, 1, 1], [1, 1, 2], [2, 2, 0]]) / 4
LARGE = np.array([[1, 1, 2], [0, 2, 2], [1, 1, 2]]) / 4


@pytest.fixture(scope="module")
def one_trip():
    """The notebook's function, with the answer that it folds."""
    source = {cell["id"]: cell for cell in cells(PATHS[17])}
    scope = {"np": np, "sample_token": sample_token}
    exec(folded_code(source["keep-folded"]) + source["trip-written"]["source"], scope)
    return scope["one_trip"]


class Way:
    """In place of random numbers: the choices of `path`, then the first of each; their chance."""

    def __init__(self, path: list[int]) -> None:
        self.path, self.taken, self.others, self.chance = path, [], [], 1.0

    def choice(self, _: int, p: np.ndarray) -> int:
        at = len(self.taken)
        n, possible = self.path[at] if at < len(self.path) else 0, np.flatnonzero(p)
        self.taken.append(n)
        self.others.append(len(possible) - 1 - n)
        self.chance *= p[possible[n]]
        return int(possible[n])

    def random(self, k: int) -> np.ndarray:
        return np.array([self.choice(4, np.full(4, 0.25)) + 0.5 for _ in range(k)]) / 4


def every_way(run):
    """What run(rng) gives in each way that chance can take, and the chance of that way."""
    path: list[int] | None = []
    while path is not None:
        way = Way(path)
        yield run(way), way.chance
        ends = [i for i, left in enumerate(way.others) if left]
        path = [*way.taken[: ends[-1]], way.taken[ends[-1]] + 1] if ends else None


def model_of(table: np.ndarray):
    """A text -> chances at every place, which depend on all that stands before."""
    return lambda text: table[np.cumsum(text) % 3]


@pytest.mark.parametrize("k", [0, 1, 2])
def test_guesses_change_the_chance_of_no_text(one_trip, k):
    """All ways in which four words can come, added up: the chances of the large model alone."""
    found, models = {(1,): 1.0}, (model_of(LARGE), model_of(SMALL))
    for length in range(1, 5):
        for text in [text for text in found if len(text) == length]:
            before = found.pop(text)
            for added, chance in every_way(lambda rng, text=text: one_trip(text, k, *models, rng)):
                longer = (*text, *added)[:5]
                found[longer] = found.get(longer, 0) + before * chance
    words = [*np.ndindex(3, 3, 3, 3)]
    alone = [LARGE[np.cumsum((1, *four))[:4] % 3, four].prod() for four in words]
    assert [found.get((1, *four), 0) for four in words] == pytest.approx(alone, abs=1e-12)


@FEW
@given(seed=SEEDS, k=st.integers(1, 5))
def test_guesses_do_not_change_the_greedy_text(one_trip, seed, k):
    def likeliest(model):
        return lambda text: np.eye(V)[model(torch.tensor([text]))[0].argmax(dim=-1)]

    large, small = (language_model(seed + i).eval() for i in range(2))
    (text,) = draw_prompts([3], seed)
    ids = text
    while len(ids) < 15:
        ids = ids + one_trip(ids, k, likeliest(large), likeliest(small), np.random.default_rng(0))
    assert ids[3:15] == by_hand(large, text, 12)
