"""What has changed since 2017, as options of the one layer: each equal to its formula."""

import numpy as np
import pytest
import torch
from small_models import normal, scrambled

from helpers.adapters import adapted, merged
from helpers.cache import KeyValueCache
from helpers.decoding import generate
from helpers.layers import MixtureOfExperts, MultiHeadAttention
from helpers.masks import causal_mask
from helpers.models import DecoderOnly
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
@pytest.mark.parametrize("cuts", [[9], [1] * 9, [3, 1, 5], [4, 4, 1]])
def test_a_window_is_a_mask_of_the_newest_keys_whole_or_in_pieces(window, cuts):
    module, x = MultiHeadAttention(8, 8, 4, num_kv_heads=2, window=window).double(), normal(2, 9, 8)
    wide = MultiHeadAttention(8, 8, 4, num_kv_heads=2).double()
    wide.load_state_dict(module.state_dict())
    real = torch.ones(2, 1, 9, dtype=torch.bool)
    real[1, :, 4] = False
    band = causal_mask(9, window=window)
    assert band.sum(dim=1).tolist() == [min(i + 1, window or 9) for i in range(9)]
    torch.testing.assert_close(module(x, causal=True), wide(x, band))
    torch.testing.assert_close(module.weights, wide.weights)
    cache, outs = KeyValueCache(room=9), []
    with torch.no_grad():
        for piece, end in zip(x.split(cuts, dim=1), np.cumsum(cuts), strict=True):
            outs.append(module(piece, real[:, :, :end], cache=cache, causal=True))
    torch.testing.assert_close(torch.cat(outs, dim=1), wide(x, band & real))
    tokens = 9 if window is None else window - 1
    assert cache.nbytes == 2 * 2 * 2 * tokens * 2 * 8  # K and V, texts, heads, features, bytes


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
