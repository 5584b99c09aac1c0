"""What has changed since 2017, as options of the one layer: each equal to its formula."""

import re

import numpy as np
import pytest
import torch
from small_models import normal, scrambled
from transformers import GptOssConfig
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention

from helpers.adapters import adapted, merged
from helpers.cache import KeyValueCache
from helpers.decoding import generate
from helpers.latent import Latent, LatentAttention
from helpers.layers import MixtureOfExperts, MultiHeadAttention
from helpers.masks import causal_mask
from helpers.models import DecoderOnly, Encoder
from helpers.rotary import rotate
from workshop.exercises import find
from workshop.machine.of_modules import describe
from workshop.machine.program import run

LLAMA = {"pre_norm": True, "rms_norm": True, "rope": 10000.0, "gated": True, "activation": "silu",
         "bias": False}  # fmt: skip


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_rotate_is_that_of_notebook_09(base):
    x = normal(2, 3, 7, 8)
    whole = rotate(x, base)
    np.testing.assert_allclose(whole, find("rotate").reference(x.numpy(), base), atol=1e-12)
    pieces = [rotate(x[:, :, :4], base), rotate(x[:, :, 4:], base, past=4)]
    torch.testing.assert_close(torch.cat(pieces, dim=2), whole)


def test_what_inference_computed_serves_training_too():
    attention = MultiHeadAttention(8, 8, 2, rope=77.0)
    with torch.inference_mode():
        attention(torch.randn(1, 5, 8))
    attention(torch.randn(1, 5, 8)).sum().backward()
    assert attention.W_q.weight.grad is not None


@pytest.mark.parametrize("window", [1, 2, 5, 9, None])
@pytest.mark.parametrize("first", [0, 1, 3, 12])
@pytest.mark.parametrize("cuts", [[9], [1] * 9, [3, 1, 5], [4, 4, 1]])
def test_a_window_is_a_mask_of_newest_and_first_keys_whole_or_in_pieces(window, first, cuts):
    ends = {"window": window, "keep_first": first}
    module, x = MultiHeadAttention(8, 8, 4, num_kv_heads=2, **ends).double(), normal(2, 9, 8)
    wide = MultiHeadAttention(8, 8, 4, num_kv_heads=2).double()
    wide.load_state_dict(module.state_dict())
    real = torch.ones(2, 1, 9, dtype=torch.bool)
    real[1, :, [0, 4]] = False
    band = causal_mask(9, **ends)
    keys = [[j for j in range(i + 1) if j < first or i - j < (window or 9)] for i in range(9)]
    assert [row.nonzero().flatten().tolist() for row in band] == keys
    torch.testing.assert_close(module(x, causal=True), wide(x, band))
    torch.testing.assert_close(module.weights, wide.weights)
    cache, outs = KeyValueCache(room=9), []
    with torch.no_grad():
        for piece, end in zip(x.split(cuts, dim=1), np.cumsum(cuts), strict=True):
            outs.append(module(piece, real[:, :, :end], cache=cache, causal=True))
    torch.testing.assert_close(torch.cat(outs, dim=1), wide(x, band & real))
    tokens = 9 if window is None else min(9, first + window - 1)
    assert cache.nbytes == 2 * 2 * 2 * tokens * 2 * 8  # K and V, texts, heads, features, bytes


@pytest.mark.parametrize("shared", [1, 2, 4])
def test_sinks_take_weight_as_those_of_gpt_oss_do(shared):
    config = GptOssConfig(hidden_size=12, num_attention_heads=4, num_key_value_heads=shared,
                          head_dim=6, attn_implementation="eager")  # fmt: skip
    theirs, x = scrambled(GptOssAttention(config, 1)), normal(2, 7, 12)
    ours = MultiHeadAttention(12, 12, 4, d_head=6, num_kv_heads=shared, sinks=True).double()
    names = {"sinks": "sinks"} | {f"{part}_proj": f"W_{part}" for part in "qkvo"}
    state = theirs.state_dict().items()
    ours.load_state_dict({re.sub(r"^\w+", lambda of: names[of[0]], key): a for key, a in state})
    unplaced = torch.ones(1, 7, 3).double(), torch.zeros(1, 7, 3).double()  # cos and sin of 0
    later = ~causal_mask(7, window=3)[None, None]
    out, weights = theirs(x, unplaced, torch.zeros(1, 1, 7, 7).masked_fill(later, -1e30))
    torch.testing.assert_close(ours(x, ~later), out)
    torch.testing.assert_close(ours.weights, weights.detach())
    assert ours.weights.sum(dim=-1).max() < 1
    out.square().sum().backward()
    ours(x, ~later).square().sum().backward()
    torch.testing.assert_close(ours.sinks.grad, theirs.sinks.grad)
    assert not ours(x, torch.zeros(7, 7, dtype=torch.bool)).sub(ours.W_o.bias).any()


def test_options_may_differ_by_layer_and_the_model_writes_the_same_cached_or_not():
    each = {"rope": [100.0, None, 9.0], "window": [3, None, 2], "keep_first": (1, 0, 2),
            "sinks": [False, True, False]}  # fmt: skip
    model = scrambled(DecoderOnly(9, 20, 8, 2, 16, 3, **LLAMA | each))
    for name, values in each.items():
        own = [getattr(layer.attention, name) for layer in model.layers]
        assert (own if name != "sinks" else [s is not None for s in own]) == [*values]
    prompts = [[1, 2, 3], [4, 5], [6, 7, 8]]
    assert generate(model, prompts, 12) == generate(model, prompts, 12, cached=False)
    assert DecoderOnly(9, 20, 8, 2, 16, 2, rope=[None, None]).positions is None
    for make in (DecoderOnly, lambda _, *sizes, **more: Encoder(*sizes[1:], **more)):
        with pytest.raises(ValueError, match=r"rope is \[5.0, None\], but must be one value, or 3"):
            make(9, 20, 8, 2, 16, 3, rope=[5.0, None])
    with pytest.raises(ValueError, match="keep_first is -1, but must be at least 0"):
        DecoderOnly(9, 20, 8, 2, 16, 2, window=3, keep_first=[0, -1])


def test_a_mixture_learns_and_asks_only_who_was_chosen():
    module, asked = scrambled(MixtureOfExperts(5, 7, 4, 2, activation="silu", gated=True)), []
    for expert in module.experts:
        expert.register_forward_hook(lambda _, args, out: asked.append(len(args[0])))
    x = normal(2, 6, 5).requires_grad_()
    module(x).square().sum().backward()
    assert asked == [n for n in module.chosen.flatten().bincount(minlength=4).tolist() if n]
    assert x.grad.abs().min() > 0 and module.router.weight.grad.abs().max() > 0


def test_with_rope_a_model_has_no_table_of_positions():
    model = DecoderOnly(9, 12, 8, 2, 16, 2, num_experts=4, **LLAMA)
    assert model.positions is None and not any("position" in name for name in model.state_dict())
    assert isinstance(model.layers[1].feed_forward, MixtureOfExperts)


def test_adapters_change_nothing_at_first_and_train_alone():
    model = scrambled(DecoderOnly(9, 12, 8, 2, 16, 2, **LLAMA))
    ids = torch.randint(9, (2, 7))
    before, values = model(ids), {k: v.clone() for k, v in model.state_dict().items()}
    assert adapted(model, ["W_q", "W_v", "W_gate"], rank=2, alpha=6) is model
    torch.testing.assert_close(model(ids), before)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert trained and all(name.endswith((".A", ".B")) for name in trained)
    for p in trained.values():
        p.data = normal(*p.shape)
    after, plain = model(ids), merged(model)
    assert (after - before).abs().max() > 1e-3
    torch.testing.assert_close(plain(ids), after)
    torch.testing.assert_close(model(ids), after)  # merging a copy leaves it adapted
    assert plain.state_dict().keys() == values.keys()
    same = [k for k, v in plain.state_dict().items() if torch.equal(v, values[k])]
    assert {k.split(".")[-2] for k in values.keys() - set(same)} == {"W_q", "W_v", "W_gate"}


def test_an_adapted_model_writes_and_is_drawn_as_the_merged_one():
    model = adapted(DecoderOnly(9, 12, 8, 2, 16, 2, **LLAMA), ["W_q", "W_v", "W_gate"], rank=2)
    model, ids = scrambled(model), [1, 2, 3, 4]
    assert generate(model, [ids], 6) == generate(merged(model), [ids], 6)
    logits = run(describe(model), {"text": ids})["logits"]
    np.testing.assert_allclose(logits, model(torch.tensor([ids]))[0].detach(), atol=1e-9)


@pytest.mark.parametrize("d_query", [None, 7])
def test_latent_attention_is_the_same_from_what_it_keeps_and_keeps_little(d_query):
    latent = Latent(5, 4, d_query)
    module, x = scrambled(LatentAttention(8, 8, 4, latent, rope=9.0, d_head=3)), normal(2, 9, 8)
    whole, weights = module(x, causal=True), module.weights
    cache, real = KeyValueCache(room=9), torch.ones(2, 1, 9, dtype=torch.bool)
    real[1, :, 4] = False
    with torch.no_grad():
        pieces = [module(piece, cache=cache, causal=True) for piece in x.split([4, 1, 1, 3], dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), whole)
        torch.testing.assert_close(module.weights, weights[:, :, -3:])
        masked = module(x, real, causal=True)
        torch.testing.assert_close(module(x, real, cache=KeyValueCache(), causal=True), masked)
    assert cache.nbytes == 2 * 9 * (5 + 4) * 8  # texts, tokens, c and the turned key, bytes
    whole.sum().backward()
    assert all(p.grad.abs().max() > 0 for p in module.parameters())


def test_a_model_with_latent_attention_writes_the_same_cached_or_not():
    model = scrambled(DecoderOnly(9, 20, 8, 2, 16, 2, latent=Latent(6, 2), **LLAMA))
    prompts = [[1, 2, 3], [4, 5], [6, 7, 8]]
    assert generate(model, prompts, 12) == generate(model, prompts, 12, cached=False)


@pytest.mark.parametrize(("options", "match"), [
    ({"latent": Latent(6, 2), "rope": None}, "rope is None, but must be given beside latent"),
    ({"latent": Latent(6, 2), "window": 3}, "window is 3, but must be left out beside latent"),
    ({"latent": 6}, "latent is 6, but must be a helpers.latent.Latent"),
])  # fmt: skip
def test_what_does_not_go_with_latent_attention_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        DecoderOnly(9, 20, 8, 2, 16, 2, **LLAMA | options)
    with pytest.raises(ValueError, match="d_turned is 3, but must be even"):
        Latent(6, 3)
