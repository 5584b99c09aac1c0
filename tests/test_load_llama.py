"""Llama, Mistral, Qwen3 and Mixtral: our layers against `transformers`, and bad checkpoints."""

import json
import os
import pickle
import re
import tracemalloc
from pathlib import Path
from typing import Any

import checkpoints
import numpy as np
import pytest
import torch
from checkpoints import Bomb, change_config, index_of, rewritten, write_index
from safetensors.torch import load_file, save_file

from helpers.cache import KeyValueCache
from helpers.decoding import generate
from helpers.models import DecoderOnly
from helpers.pretrained import load_llama, shapes_only
from helpers.pretrained.llama import llama_options
from helpers.pretrained.tensors import halves_to_pairs
from helpers.rotary import rotate

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
import transformers

transformers.utils.logging.disable_progress_bar()
pytestmark = pytest.mark.slow

V, T = 41, 17
FAMILIES = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    "mixtral": (transformers.MixtralConfig, transformers.MixtralForCausalLM),
}
ALL = pytest.mark.parametrize("family", FAMILIES)
TEN = pytest.mark.parametrize("seed", range(10))


def drawn(family: str, seed: int) -> dict[str, Any]:
    """What a config.json of this family says, drawn: nothing divides what it need not."""
    rng = np.random.default_rng([seed, [*FAMILIES].index(family)])
    shared, group, half = rng.integers(1, 4, 3).tolist()
    H = shared * group
    window = None if rng.random() < 0.4 else int(rng.integers(1, 9))
    says = {
        "num_attention_heads": H,
        "num_key_value_heads": shared,
        "head_dim": 2 * half,
        "hidden_size": H * int(rng.integers(2, 7)),
        "intermediate_size": int(rng.integers(5, 40)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "rope_theta": float(rng.choice([2.5, 100, 1e4, 1e6])),
        "rms_norm_eps": float(rng.choice([1e-6, 1e-5, 0.1])),
        "tie_word_embeddings": bool(rng.integers(2)),
    }
    says |= {} if family == "llama" else {"sliding_window": window}
    if family == "qwen3":
        says |= {"use_sliding_window": window is not None, "max_window_layers": 0}
    if family == "mixtral":
        experts = int(rng.integers(1, 6))
        top_k = int(rng.integers(1, experts + 1))
        says |= {"num_local_experts": experts, "num_experts_per_tok": top_k}
    return says


def small(folder: Path, family: str, seed: int = 0, *, shard: str = "1GB", **changes: Any):
    """Write a small model into a folder; as transformers has it, with numbers of size 1."""
    config, language_model = FAMILIES[family]
    said = {"vocab_size": V, "max_position_embeddings": 40, "attn_implementation": "eager",
            **drawn(family, seed), **changes}  # fmt: skip
    if family == "mixtral":  # the faster way wants rows of 16 bytes
        said["experts_implementation"] = "eager"
    model = language_model(config(**said))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():  # gains around 1; what a map makes of size 1, has size 1.5
            start, std = (1, 0.3) if value.ndim == 1 else (0, 1.5 * value.shape[-1] ** -0.5)
            value.copy_(start + std * torch.randn(value.shape, generator=generator))
    model.eval().save_pretrained(folder, max_shard_size=shard)
    return model


def texts(seed: int, *shape: int) -> torch.Tensor:
    """Ids from 1 on: 0 is for padding."""
    return torch.from_numpy(np.random.default_rng(seed).integers(1, V, shape))


def logits(model, ids: torch.Tensor, **more: Any) -> torch.Tensor:
    """What a model of transformers says, (B, T, V)."""
    with torch.no_grad():
        return model(ids, **more).logits


def near(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return ours.shape == theirs.shape and bool((ours - theirs).abs().max() < 1e-4)


@ALL
@TEN
def test_logits_equal_those_of_transformers(family, seed, tmp_path):
    """Read at once, read in pieces with a cache, and with padding behind."""
    theirs, ours = small(tmp_path, family, seed), load_llama(tmp_path)
    assert type(ours) is DecoderOnly and not ours.training and ours.positions is None
    assert all(p.dtype == torch.float32 and p.requires_grad for p in ours.parameters())
    assert sum(p.numel() for p in ours.parameters()) == theirs.num_parameters()
    ids = texts(seed, 3, T)
    expected = logits(theirs, ids)
    assert expected.std() > 0.5
    cache, real = KeyValueCache(), torch.arange(T) < torch.tensor([[T], [5], [11]])
    with torch.no_grad():
        assert near(ours(ids), expected)
        pieces = [ours(piece, cache) for piece in ids.split([6, 1, 1, 7, 2], dim=1)]
        assert near(torch.cat(pieces, dim=1), expected)
        ours.pad_id, padded = 0, ids * real
        theirs_padded = logits(theirs, padded, attention_mask=real.long())
        assert near(ours(padded)[real], theirs_padded[real])


@ALL
@TEN
def test_texts_equal_those_of_transformers(family, seed, tmp_path):
    """Prompts of different lengths, with padding before them."""
    theirs, ours = small(tmp_path, family, seed), load_llama(tmp_path)
    lengths = (9, 1, 5)
    prompts = [texts(seed + i, length).tolist() for i, length in enumerate(lengths)]
    ids = torch.tensor([[0] * (9 - len(prompt)) + prompt for prompt in prompts])
    real = (ids > 0).long()
    places = (real.cumsum(dim=1) - 1).clamp(min=0)
    expected = logits(theirs, ids, attention_mask=real, position_ids=places)[:, -1]
    ask = {"do_sample": False, "max_new_tokens": 20, "eos_token_id": None, "pad_token_id": 0}
    ask["use_cache"] = ours.layers[0].attention.window != 1  # theirs then keeps all, not nothing
    written = theirs.generate(ids, attention_mask=real, **ask)[:, 9:].tolist()
    for cached in (True, False):
        with ours.continuation(prompts, 20, cached) as step:
            assert near(torch.from_numpy(step({})), expected)
        assert generate(ours, prompts, 20, cached=cached) == written


def test_pairs_turn_as_halves_did():
    """q · k of every two places, once as transformers turns them and once as we do."""
    q, k = torch.randn(2, 7, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    speed = 100.0 ** -(torch.arange(3, dtype=torch.float64) / 3)
    angle = torch.arange(7)[:, None] * torch.cat([speed, speed])

    def turned(x: torch.Tensor) -> torch.Tensor:
        return x * angle.cos() + torch.cat([-x[:, 3:], x[:, :3]], dim=1) * angle.sin()

    ours = [rotate(halves_to_pairs(x.T, 1).T, 100.0) for x in (q, k)]
    torch.testing.assert_close(ours[0] @ ours[1].T, turned(q) @ turned(k).T)
    rows = torch.arange(8)
    assert halves_to_pairs(rows, 2).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert halves_to_pairs(rows[:, None], 1).flatten().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@ALL
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_16_bits_become_float32_exactly(family, dtype, tmp_path):
    small(tmp_path, family, 3)
    with rewritten(tmp_path) as tensors:
        for name in tensors:
            tensors[name] = tensors[name].to(dtype)
    half = load_llama(tmp_path).state_dict()
    with rewritten(tmp_path) as tensors:
        for name in tensors:
            tensors[name] = tensors[name].float()
    full = load_llama(tmp_path).state_dict()
    assert half.keys() == full.keys()
    for name, value in half.items():
        assert value.dtype == torch.float32 and torch.equal(value, full[name])


def test_what_files_leave_out_or_have_besides(tmp_path):
    """Heads and RoPE as older files say it, the head that is the table, and old tables of RoPE."""
    small(tmp_path, "llama", num_attention_heads=3, num_key_value_heads=3, hidden_size=12,
          head_dim=4, rope_theta=1e4, tie_word_embeddings=True)  # fmt: skip
    expected = load_llama(tmp_path).state_dict()
    with rewritten(tmp_path) as tensors:
        for n in range(3):
            tensors[f"model.layers.{n}.self_attn.rotary_emb.inv_freq"] = torch.ones(2)
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    change_config(tmp_path, num_key_value_heads=None, head_dim=..., rope_parameters=...)
    change_config(tmp_path, rope_scaling=None, pretraining_tp=1, is_llama_config=True)
    model = load_llama(tmp_path)
    assert model.output.weight is model.tokens.weight
    assert {layer.attention.rope for layer in model.layers} == {1e4}
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())


@ALL
def test_rope_that_is_not_mentioned_is_that_of_transformers(family, checkpoint):
    change_config(checkpoint, rope_parameters=..., rope_theta=...)
    theirs = FAMILIES[family][0].from_pretrained(checkpoint)
    base = (getattr(theirs, "rope_parameters", None) or vars(theirs))["rope_theta"]
    assert {layer.attention.rope for layer in load_llama(checkpoint).layers} == {base}


# What the published files say, as far as it is asked, and how many numbers those models have.
MORE = {"hidden_act": "silu", "torch_dtype": "bfloat16", "use_cache": True, "rope_scaling": None,
        "attention_dropout": 0.0, "bos_token_id": 1, "initializer_range": 0.02}  # fmt: skip
PUBLISHED = {
    "SmolLM2-135M": (134_515_008, MORE | {
        "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49152,
        "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
        "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000,
        "tie_word_embeddings": True, "is_llama_config": True, "rope_interleaved": False,
        "pretraining_tp": 1, "attention_bias": False}),
    "Qwen3-0.6B": (596_049_920, MORE | {
        "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "head_dim": 128,
        "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
        "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
        "rope_theta": 1000000, "tie_word_embeddings": True, "use_sliding_window": False,
        "max_window_layers": 28, "sliding_window": None, "attention_bias": False}),
    "Mistral-7B-v0.1": (7_241_732_096, MORE | {
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "vocab_size": 32000, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": False}),
    "Mixtral-8x7B-v0.1": (46_702_792_704, MORE | {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "vocab_size": 32000, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0, "sliding_window": None, "num_local_experts": 8,
        "num_experts_per_tok": 2, "output_router_logits": False, "router_aux_loss_coef": 0.02}),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_as_many_numbers(name, tmp_path):
    count, says = PUBLISHED[name]
    (tmp_path / "config.json").write_text(json.dumps(says))
    options = llama_options(tmp_path / "config.json")
    assert options["window"] == says.get("sliding_window")
    with shapes_only():
        model = DecoderOnly(**options)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.fixture
def checkpoint(family, tmp_path) -> Path:
    """A small checkpoint of this family, of three layers, whose output is a table of its own."""
    mixture = {"num_local_experts": 3, "num_experts_per_tok": 2} if family == "mixtral" else {}
    small(tmp_path, family, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
          hidden_size=20, head_dim=6, intermediate_size=13, tie_word_embeddings=False,
          rope_theta=1e4, **mixture)  # fmt: skip
    return tmp_path


DAMAGES = checkpoints.DAMAGES | {
    "of 64 bits": lambda tensor: tensor.double(),
    "infinite in half precision": lambda tensor: (tensor * 1e6).half(),
}


@ALL
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damaged_tensor_is_named(family, damage, checkpoint):
    path = checkpoint / "model.safetensors"
    whole = load_file(path)
    assert len(whole) >= 30
    for name in whole:
        changed = whole | {name: DAMAGES[damage](whole[name])}
        save_file({key: t for key, t in changed.items() if t is not None}, path)
        with pytest.raises(ValueError, match=rf"model\.safetensors: .*{re.escape(name)}\b"):
            load_llama(checkpoint)


@ALL
@pytest.mark.parametrize(
    "name",
    ["model.layers.3.mlp.up_proj.weight", "model.layers.0.self_attn.q_proj.bias", "lm_head.bias",
     "embed_tokens.weight", "model.layers.0.self_attn.rotary_emb.inv_freq2",
     "model.layers.0.block_sparse_moe.experts.3.w1.weight", "model.norm.bias"],
)  # fmt: skip
def test_surplus_tensor_is_named(family, name, checkpoint):
    with rewritten(checkpoint) as tensors:
        tensors[name] = torch.ones(3)
    with pytest.raises(ValueError, match=rf"{re.escape(name)} has no place in the model"):
        load_llama(checkpoint)


@pytest.mark.parametrize("family", ["llama"])
def test_a_head_that_is_not_the_token_table_is_named(checkpoint):
    change_config(checkpoint, tie_word_embeddings=True)
    with pytest.raises(ValueError, match=r"lm_head\.weight is not the token table"):
        load_llama(checkpoint)


ROPE = {"rope_type": "default", "rope_theta": 1e4}
LLAMA3 = ROPE | {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
FULL, SLIDING = "full_attention", "sliding_attention"
CONFIGS = [
    ("llama", {"model_type": "gpt2"}, "model_type is 'gpt2', but must be one of .'llama', 'mistr"),
    ("llama", {"model_type": ["llama"]}, "model_type is .'llama'., but must be one of"),
    ("llama", {"model_type": ...}, "model_type is missing"),
    ("llama", {"model_type": "qwen3"}, r"model.layers.0.self_attn.q_norm.weight is missing"),
    ("qwen3", {"model_type": "llama"}, "layer_types is .* an option that is not known here"),
    ("llama", {"model_type": "mixtral"}, "num_local_experts is missing"),
    ("llama", {"hidden_size": ...}, "hidden_size is missing"),
    ("llama", {"max_position_embeddings": ...}, "max_position_embeddings is missing"),
    ("llama", {"rms_norm_eps": ...}, "rms_norm_eps is missing"),
    ("llama", {"rms_norm_eps": "1e-5"}, "rms_norm_eps is '1e-5'"),
    ("llama", {"hidden_act": "swish"}, "hidden_act is 'swish'"),
    ("llama", {"num_attention_heads": 0}, "num_attention_heads is 0"),
    ("llama", {"num_attention_heads": 3, "head_dim": ...}, "heads is 3, but must divide hidden_si"),
    ("llama", {"num_key_value_heads": 3}, "num_key_value_heads is 3, but must divide num_attenti"),
    ("llama", {"num_key_value_heads": 8}, "num_key_value_heads is 8, but must divide num_attenti"),
    ("llama", {"num_key_value_heads": 1}, r"k_proj.weight has shape \(12, 20\), but must have \(6"),
    ("llama", {"num_key_value_heads": 2.0}, "num_key_value_heads is 2.0, but must be a positive"),
    ("llama", {"head_dim": 5}, "head_dim is 5, but must be even"),
    ("llama", {"head_dim": ..., "num_attention_heads": 20}, "head_dim is 1, but must be even"),
    ("llama", {"head_dim": 8}, r"q_proj.weight has shape \(24, 20\), but must have \(32, 20\)"),
    ("llama", {"intermediate_size": 14}, r"gate_proj.weight has shape \(13, 20\), but must have"),
    ("llama", {"num_hidden_layers": 2}, "model.layers.2.input_layernorm.weight has no place"),
    ("llama", {"num_hidden_layers": True}, "num_hidden_layers is True"),
    ("llama", {"tie_word_embeddings": 1}, "tie_word_embeddings is 1, but must be true or false"),
    ("llama", {"attention_bias": True}, "attention_bias is True, but must be False"),
    ("llama", {"mlp_bias": True}, "mlp_bias is True, but must be False"),
    ("llama", {"rope_scaling": LLAMA3}, "rope_scaling is .*'llama3'.* but must be None"),
    ("llama", {"rope_parameters": LLAMA3}, "rope_parameters is .*must hold rope_type 'default'"),
    ("llama", {"rope_parameters": ROPE | {"partial_rotary_factor": 0.5}}, "rope_parameters is"),
    ("llama", {"rope_parameters": {"rope_theta": 1e4}}, "rope_parameters is"),
    ("llama", {"rope_parameters": ROPE | {"rope_type": "dynamic"}}, "rope_parameters is"),
    ("llama", {"rope_parameters": [1e4]}, "rope_parameters is"),
    ("llama", {"rope_parameters": ROPE | {"rope_theta": -1e4}}, "rope_theta is -10000.0, but must"),
    ("llama", {"rope_theta": 500.0}, "rope_theta is 500.0, but must be 10000.0, as in rope_para"),
    ("llama", {"rope_parameters": ..., "rope_theta": -1e4}, "rope_theta is -10000.0, but must be"),
    ("llama", {"rope_parameters": ..., "rope_theta": 0}, "rope_theta is 0, but must be a number"),
    ("llama", {"rope_parameters": ..., "rope_theta": 10**400}, "rope_theta is 1000"),
    ("llama", {"rope_parameters": ..., "rope_theta": float("nan")}, "rope_theta is nan"),
    ("llama", {"rope_parameters": ..., "rope_theta": True}, "rope_theta is True"),
    ("llama", {"rope_interleaved": True}, "rope_interleaved is True, an option that is not known"),
    ("llama", {"sliding_window": 4}, "sliding_window is 4, an option that is not known here"),
    ("llama", {"quantization_config": {"bits": 4}}, "quantization_config is"),
    ("llama", {"auto_map": {"AutoModel": "x.y"}}, "auto_map is"),
    ("mistral", {"sliding_window": ...}, "sliding_window is missing"),
    ("mistral", {"sliding_window": 0}, "sliding_window is 0, but must be a positive whole number"),
    ("mistral", {"layer_types": [FULL] * 3}, "layer_types is .* not known here"),
    ("mixtral", {"sliding_window": -3}, "sliding_window is -3"),
    ("mixtral", {"num_local_experts": 2}, r"experts.2.w1.weight has no place"),
    ("mixtral", {"num_experts_per_tok": 4}, "num_experts_per_tok is 4, but must be at most 3"),
    ("mixtral", {"num_experts_per_tok": 0}, "num_experts_per_tok is 0"),
    ("qwen3", {"use_sliding_window": "yes"}, "use_sliding_window is 'yes'"),
    ("qwen3", {"layer_types": [FULL, SLIDING, FULL]}, "layer_types is .* one kind of attention 3"),
    ("qwen3", {"layer_types": [FULL] * 2}, "layer_types is .* must name one kind of attention 3"),
    ("qwen3", {"layer_types": [[]] * 3}, "layer_types is"),
    ("qwen3", {"layer_types": "full_attention"}, "layer_types is 'full_attention'"),
    ("qwen3", {"layer_types": ["linear_attention"] * 3}, "layer_types is .'linear_attention'"),
    ("qwen3", {"layer_types": [SLIDING] * 3, "use_sliding_window": False},
     "use_sliding_window is False, but must be True"),
    ("qwen3", {"layer_types": [SLIDING] * 3, "use_sliding_window": True, "sliding_window": None},
     "sliding_window is None, but must be a positive"),
    ("qwen3", {"layer_types": ..., "use_sliding_window": True, "max_window_layers": 2},
     "max_window_layers is 2, but must be 0 or at least num_hidden_layers = 3"),
    ("qwen3", {"layer_types": ..., "use_sliding_window": True, "max_window_layers": "0"},
     "max_window_layers is '0'"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "changes", "match"), CONFIGS)
def test_config_that_asks_for_something_else_is_refused(family, changes, match, checkpoint):
    change_config(checkpoint, **changes)
    with pytest.raises(ValueError, match=match) as caught:
        load_llama(checkpoint)
    assert str(checkpoint) in str(caught.value)


@pytest.mark.parametrize("family", ["qwen3"])
@pytest.mark.parametrize(
    ("says", "window"),
    [
        ({"use_sliding_window": True, "max_window_layers": 0}, 7),
        ({"use_sliding_window": True, "max_window_layers": 3}, None),
        ({"use_sliding_window": True, "max_window_layers": 28}, None),
        ({"use_sliding_window": False, "max_window_layers": 0}, None),
        ({"use_sliding_window": True, "layer_types": [SLIDING] * 3}, 7),
        ({"use_sliding_window": True, "layer_types": [FULL] * 3}, None),
        ({"use_sliding_window": False, "layer_types": [FULL] * 3}, None),
        ({"use_sliding_window": ..., "layer_types": None}, None),
    ],
)
def test_windows_of_qwen3_are_those_of_transformers(says, window, checkpoint):
    change_config(checkpoint, **{"layer_types": ..., "sliding_window": 7} | says)
    theirs = transformers.Qwen3Config.from_pretrained(checkpoint)
    kinds = {SLIDING} if window else {FULL}
    assert {*theirs.layer_types} == kinds
    assert {layer.attention.window for layer in load_llama(checkpoint).layers} == {window}


HUGE = [
    ("llama", {"num_hidden_layers": 10**12}, "model.layers.3.input_layernorm.weight is missing"),
    ("qwen3", {"num_hidden_layers": 10**30, "layer_types": ...}, "model.layers.3.input_layernorm"),
    ("mixtral", {"num_local_experts": 10**12}, "layers.0.block_sparse_moe.experts.3.w1.weight is"),
    ("llama", {"vocab_size": 10**15}, r"embed_tokens.weight has shape \(41, 20\), but must have"),
    ("llama", {"vocab_size": 10**18}, "impossible sizes"),
    ("llama", {"intermediate_size": 10**30}, "impossible sizes"),
    ("llama", {"num_attention_heads": 10**30, "num_key_value_heads": 1}, "impossible sizes"),
    ("llama", {"head_dim": 10**18}, "impossible sizes"),
]


@pytest.mark.parametrize(("family", "changes", "match"), HUGE)
def test_huge_sizes_cost_nothing(family, changes, match, checkpoint):
    """No layer is made, nor listed, for which there is no tensor."""
    change_config(checkpoint, **changes)
    tracemalloc.start()
    with pytest.raises(ValueError, match=match) as caught:
        load_llama(checkpoint)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6 and str(checkpoint) in str(caught.value)


@pytest.mark.parametrize("family", ["llama"])
def test_huge_numbers_that_mean_something_are_welcome(checkpoint):
    """Without a table of positions, nothing is reserved for them; the base of RoPE is any."""
    change_config(checkpoint, max_position_embeddings=10**30)
    change_config(checkpoint, rope_parameters=None, rope_theta=10**25)
    assert load_llama(checkpoint)(texts(1, 1, 5)).isfinite().all()


@pytest.mark.parametrize("family", ["llama"])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_missing_or_cut_file_is_named(checkpoint, name):
    path = checkpoint / name
    whole = path.read_bytes()
    for size in (0, 1, 9, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=rf"{re.escape(name)} is damaged"):
            load_llama(checkpoint)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        load_llama(checkpoint)


@pytest.mark.parametrize("family", ["llama"])
def test_config_with_a_number_of_too_many_figures_is_named(checkpoint):
    (checkpoint / "config.json").write_text('{"vocab_size": ' + 5000 * "9" + "}")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        load_llama(checkpoint)


@pytest.mark.parametrize("family", ["llama"])
def test_pickles_are_never_opened(checkpoint, tmp_path_factory):
    mark = tmp_path_factory.mktemp("mark") / "opened"
    path = checkpoint / "model.safetensors"
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ValueError, match=r"model\.safetensors is (a pickle|damaged)"):
        load_llama(checkpoint)
    path.rename(checkpoint / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"pytorch_model\.bin is a pickle"):
        load_llama(checkpoint)
    assert not mark.exists()


@ALL
def test_shards_are_read_beside_their_index_and_nowhere_else(family, tmp_path):
    theirs = small(tmp_path, family, 4, shard="3KB")
    ids, whole = texts(4, 2, 9), index_of(tmp_path)
    assert len({*whole.values()}) > 2
    with torch.no_grad():
        assert near(load_llama(tmp_path)(ids), logits(theirs, ids))
    (tmp_path / "in").mkdir()
    for where in ("../x.safetensors", "/x.safetensors", "in/x.safetensors", "x.bin", 3):
        write_index(tmp_path, whole | {"model.norm.weight": where})
        with pytest.raises(ValueError, match="weight_map names"):
            load_llama(tmp_path)
    write_index(tmp_path, whole | {"model.norm.weight": "x.safetensors"})
    with pytest.raises(ValueError, match=r"x\.safetensors|do not agree"):
        load_llama(tmp_path)
