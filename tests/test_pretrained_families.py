"""Checkpoints of every family: ours against `transformers`, and all that can be bad in a folder."""

import json
import pickle
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from checkpoints import (
    LLAMAS,
    Bomb,
    V,
    change_config,
    drawn,
    index_of,
    near,
    rewritten,
    same,
    write,
    write_index,
    write_tokenizer,
)
from safetensors.torch import load_file, save_file

from helpers.cache import KeyValueCache
from helpers.decoding import generate
from helpers.models import DecoderOnly
from helpers.pretrained import load_bert, load_gpt2, load_llama, load_tokenizer
from helpers.pretrained.families import FAMILIES, read_options
from helpers.pretrained.tensors import halves_to_pairs, shapes_only
from helpers.rotary import rotate

pytestmark = pytest.mark.slow
WEIGHTS = "model.safetensors"
LOADERS = {"bert": load_bert, "gpt2": load_gpt2, **dict.fromkeys(LLAMAS, load_llama)}
ALL, KIN = (pytest.mark.parametrize("kind", kinds) for kinds in (LOADERS, LLAMAS))
BERT, LLAMA, QWEN3 = (pytest.mark.parametrize("kind", [k]) for k in ("bert", "llama", "qwen3"))


@pytest.fixture
def checkpoint(kind, tmp_path) -> Path:
    """A small checkpoint of this kind."""
    write(tmp_path, kind)
    return tmp_path


def refuses(kind: str, folder: Path, match: str, error: type[Exception] = ValueError) -> None:
    with pytest.raises(error, match=match) as caught:
        LOADERS[kind](folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"head": False},
        {"hidden_act": "gelu_new", "layer_norm_eps": 0.1},
        {"hidden_act": "silu"},
        {"hidden_act": "relu", "type_vocab_size": 1, "num_attention_heads": 1},
    ],
)
def test_vectors_equal_those_of_transformers(tmp_path, changes):
    theirs, ours = write(tmp_path, "bert", **changes), load_bert(tmp_path)
    sentences = ["a cat", "cats sat a a cat cats cats cats a", "dog"]
    (ids, is_real), (hidden, _) = ours.tokenize(sentences), ours.hidden(sentences)
    assert ids.tolist()[0] == [2, 4, 5, 3] + [0] * 7 and ids.shape == (3, 11)
    with torch.no_grad():
        expected = theirs(ids, is_real.long()).last_hidden_state
    assert near(hidden[is_real], expected[is_real], 1e-5)


GPT2S = {
    "with the prefix": {},
    "without the prefix": {"head": False},
    "n_inner is null": {"n_inner": None},
    "erf": {"activation_function": "gelu", "layer_norm_epsilon": 0.01},
    "not tied": {"tie_word_embeddings": False},
}
DECODERS = {name: ("gpt2", 0, says) for name, says in GPT2S.items()} | {
    f"{kind} {seed}": (kind, seed, drawn(kind, seed)) for kind in LLAMAS for seed in range(10)
}
EACH_DECODER = pytest.mark.parametrize(("kind", "seed", "says"), DECODERS.values(), ids=DECODERS)


@EACH_DECODER
def test_logits_equal_those_of_transformers(kind, seed, says, tmp_path):
    """Read at once, read in pieces with a cache, and with padding behind."""
    theirs, ours = write(tmp_path, kind, seed, **says), LOADERS[kind](tmp_path)
    assert type(ours) is DecoderOnly and not ours.training
    assert (ours.positions is None) == (kind != "gpt2")
    tied = says.get("tie_word_embeddings", kind == "gpt2")
    assert (ours.output.weight is ours.tokens.weight) == tied
    assert all(p.dtype == torch.float32 and p.requires_grad for p in ours.parameters())
    assert sum(p.numel() for p in ours.parameters()) == theirs.num_parameters()
    ids = torch.from_numpy(np.random.default_rng(seed).integers(1, V, (3, 17)))  # 0 is for padding
    cache, real = KeyValueCache(), torch.arange(17) < torch.tensor([[17], [5], [11]])
    with torch.no_grad():
        expected = theirs(ids).logits
        assert expected.std() > 0.5 and near(ours(ids), expected)
        pieces = [ours(piece, cache) for piece in ids.split([6, 1, 1, 7, 2], dim=1)]
        assert near(torch.cat(pieces, dim=1), expected)
        ours.pad_id, padded = 0, ids * real
        assert near(ours(padded)[real], theirs(padded, attention_mask=real.long()).logits[real])


@EACH_DECODER
def test_texts_equal_those_of_transformers(kind, seed, says, tmp_path):
    """Prompts of different lengths, with padding before them."""
    theirs, ours = write(tmp_path, kind, seed, **says), LOADERS[kind](tmp_path)
    rng = np.random.default_rng(seed)
    prompts = [rng.integers(1, V, length).tolist() for length in (9, 1, 5)]
    ids = torch.tensor([[0] * (9 - len(prompt)) + prompt for prompt in prompts])
    real = (ids > 0).long()
    places = (real.cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad():
        expected = theirs(ids, attention_mask=real, position_ids=places).logits[:, -1]
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
def test_weights_of_16_bits_become_float32_exactly_or_are_refused(kind, dtype, checkpoint):
    with rewritten(checkpoint) as tensors:
        tensors |= {name: tensor.to(dtype) for name, tensor in tensors.items()}
    if kind not in LLAMAS:
        return refuses(kind, checkpoint, f"has dtype {dtype}, but must have torch.float32$")
    half = load_llama(checkpoint)
    with rewritten(checkpoint) as tensors:
        tensors |= {name: tensor.float() for name, tensor in tensors.items()}
    assert same(half, load_llama(checkpoint).state_dict())
    assert {value.dtype for value in half.parameters()} == {torch.float32}


def test_buffers_and_a_head_that_is_the_token_table_are_welcome(tmp_path):
    """The published file of GPT-2 holds the causal masks as well, and does not mention the head."""
    write(tmp_path, "gpt2", head=False)
    expected = load_gpt2(tmp_path).state_dict()
    with rewritten(tmp_path) as tensors:
        for n in range(2):
            tensors[f"h.{n}.attn.bias"] = torch.ones(1, 1, 23, 23).tril()
            tensors[f"h.{n}.attn.masked_bias"] = torch.tensor(-1e4)
        tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    change_config(tmp_path, tie_word_embeddings=...)
    model = load_gpt2(tmp_path)
    assert model.output.weight is model.tokens.weight and same(model, expected)


def test_what_older_files_leave_out_or_have_besides(tmp_path):
    """Heads and RoPE as they say it, the head that is the table, and tables of RoPE."""
    write(tmp_path, "llama", num_key_value_heads=4, hidden_size=24, tie_word_embeddings=True)
    expected = load_llama(tmp_path).state_dict()
    with rewritten(tmp_path) as tensors:
        for n in range(3):
            tensors[f"model.layers.{n}.self_attn.rotary_emb.inv_freq"] = torch.ones(2)
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    change_config(tmp_path, num_key_value_heads=None, head_dim=..., rope_parameters=...)
    change_config(tmp_path, rope_scaling=None, pretraining_tp=1, is_llama_config=True)
    model = load_llama(tmp_path)
    assert model.output.weight is model.tokens.weight and same(model, expected)
    assert {layer.attention.rope for layer in model.layers} == {1e4}


@KIN
def test_rope_and_window_that_are_not_mentioned_are_those_of_transformers(kind, checkpoint):
    window = {} if kind == "mistral" else {"sliding_window": ...}  # Mistral's must be said
    change_config(checkpoint, rope_parameters=..., rope_theta=..., **window)
    theirs = transformers.AutoConfig.from_pretrained(checkpoint)
    base = (getattr(theirs, "rope_parameters", None) or vars(theirs))["rope_theta"]
    expected = (base, getattr(theirs, "sliding_window", None))
    layers = load_llama(checkpoint).layers
    assert {(layer.attention.rope, layer.attention.window) for layer in layers} == {expected}


# What the published files say, as far as it is asked, and how many numbers those models have.
MORE = {"hidden_act": "silu", "torch_dtype": "bfloat16", "use_cache": True, "rope_scaling": None,
        "attention_dropout": 0.0, "bos_token_id": 1, "initializer_range": 0.02}  # fmt: skip
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads",
         "num_key_value_heads", "num_hidden_layers", "max_position_embeddings", "rms_norm_eps",
         "rope_theta", "sliding_window", "tie_word_embeddings")  # fmt: skip
PUBLISHED = [  # SmolLM2-135M, Qwen3-0.6B, Mistral-7B-v0.1, Mixtral-8x7B-v0.1
    (134_515_008, "llama", (49152, 576, 1536, 9, 3, 30, 8192, 1e-5, 100000, None, True),
     {"is_llama_config": True, "rope_interleaved": False, "pretraining_tp": 1,
      "attention_bias": False}),
    (596_049_920, "qwen3", (151936, 1024, 3072, 16, 8, 28, 40960, 1e-6, 1000000, None, True),
     {"head_dim": 128, "use_sliding_window": False, "max_window_layers": 28,
      "attention_bias": False}),
    (7_241_732_096, "mistral", (32000, 4096, 14336, 32, 8, 32, 32768, 1e-5, 1e4, 4096, False), {}),
    (46_702_792_704, "mixtral", (32000, 4096, 14336, 32, 8, 32, 32768, 1e-5, 1e6, None, False),
     {"num_local_experts": 8, "num_experts_per_tok": 2, "output_router_logits": False,
      "router_aux_loss_coef": 0.02}),
]  # fmt: skip


@pytest.mark.parametrize(("count", "kind", "sizes", "rest"), PUBLISHED)
def test_published_models_have_as_many_numbers(count, kind, sizes, rest, tmp_path):
    says = MORE | dict(zip(SIZES, sizes, strict=True)) | rest | {"model_type": kind}
    (tmp_path / "config.json").write_text(json.dumps(says))
    _, options = read_options(tmp_path / "config.json", *LLAMAS)
    assert options["window"] == says["sliding_window"]
    with shapes_only():
        model = DecoderOnly(**options)
    assert sum(p.numel() for p in model.parameters()) == count


# What no loader takes: a tensor as it was → as it is then, None for none.
DAMAGES = {
    "missing": lambda tensor: None,
    "transposed": lambda tensor: tensor.T.contiguous() if tensor.ndim == 2 else tensor[None],
    "whole numbers": lambda tensor: tensor.long(),
    "of 64 bits": lambda tensor: tensor.double(),
    "infinite in half precision": lambda tensor: (tensor * 1e6).half(),
    "not a number": lambda tensor: torch.where(tensor == tensor.max(), torch.nan, tensor),
}
OPTIONAL = {"pooler.dense.weight", "pooler.dense.bias"}


@ALL
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damaged_tensor_is_named(kind, damage, checkpoint):
    """Turning a square matrix round leaves its shape: no loader can see that without a digest."""
    whole = load_file(checkpoint / WEIGHTS)
    square = {name for name, t in whole.items() if t.ndim == 2 and t.shape[0] == t.shape[1]}
    hit = whole.keys() - OPTIONAL - (square if damage == "transposed" else set())
    assert len(hit) >= 20
    for name in hit:
        changed = whole | {name: DAMAGES[damage](whole[name])}
        tensors = {key: tensor for key, tensor in changed.items() if tensor is not None}
        save_file(tensors, checkpoint / WEIGHTS)
        refuses(kind, checkpoint, rf"model\.safetensors: .*{re.escape(name)}\b")


SURPLUS = [
    ("bert", "encoder.layer.3.output.dense.bias"),
    ("bert", "xembeddings.position_ids"),
    ("gpt2", "transformer.h.2.ln_1.weight"),
    ("gpt2", "h.0.ln_1.weight"),  # the other layout in the same file
    *((kind, name) for kind in LLAMAS for name in (
        "model.layers.3.mlp.up_proj.weight", "model.layers.0.self_attn.q_proj.bias",
        "lm_head.bias", "embed_tokens.weight", "model.layers.0.self_attn.rotary_emb.inv_freq2",
        "model.layers.0.block_sparse_moe.experts.3.w1.weight", "model.norm.bias")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), SURPLUS)
def test_surplus_tensor_is_named(kind, name, checkpoint):
    with rewritten(checkpoint) as tensors:
        tensors[name] = torch.ones(3)
    refuses(kind, checkpoint, rf"{re.escape(name)} has no place in the model")


@pytest.mark.parametrize(
    ("kind", "table"), [("gpt2", "transformer.wte.weight"), ("llama", "model.embed_tokens.weight")]
)
def test_a_head_that_is_not_the_token_table_is_named(kind, table, checkpoint):
    change_config(checkpoint, tie_word_embeddings=True)
    with rewritten(checkpoint) as tensors:
        tensors["lm_head.weight"] = tensors[table] + 1e-6
    refuses(kind, checkpoint, r"lm_head\.weight is not the token table")


@ALL
def test_key_that_is_missing_in_the_config_is_named(kind, checkpoint):
    whole, family = (checkpoint / "config.json").read_text(), FAMILIES[kind]
    for key in {"model_type", *family.says.values()} - family.absent.keys() - family.null.keys():
        change_config(checkpoint, **{key: ...})
        refuses(kind, checkpoint, rf"config\.json: {key} is missing, but must be ('|a )")
        (checkpoint / "config.json").write_text(whole)


FULL, SLIDING, NAN = "full_attention", "sliding_attention", float("nan")
ROPE = {"rope_type": "default", "rope_theta": 1e4}
LLAMA3 = ROPE | {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
# Values of config.json that are refused: each is named, and said as it is.
WRONG = {
    "bert": {"model_type": ["roberta"], "hidden_act": [["gelu"]], "layer_norm_eps": [-1e-12, NAN],
             "num_attention_heads": [7], "is_decoder": [True],
             "position_embedding_type": ["relative_key"], "quantization_config": [{"bits": 4}]},
    "gpt2": {"n_layer": [True], "rotary": [True],
             "tie_word_embeddings": ["yes", None], "activation_function": ["swish"],
             "scale_attn_by_inverse_layer_idx": [True], "scale_attn_weights": [False]},
    "llama": {"model_type": ["gpt2", ["llama"]], "rms_norm_eps": ["1e-5"], "mlp_bias": [True],
              "num_key_value_heads": [3, 8, 2.0], "attention_bias": [True], "sliding_window": [4],
              "rope_parameters": [LLAMA3, ROPE | {"partial_rotary_factor": 0.5}, [1e4],
                                  {"rope_theta": 1e4}, ROPE | {"rope_type": "dynamic"}],
              "rope_scaling": [LLAMA3], "rope_theta": [-1e4, 0, 10**400, NAN, True],
              "rope_interleaved": [True], "auto_map": [{"AutoModel": "x.y"}]},
    "mistral": {"sliding_window": [0], "layer_types": [[FULL] * 3]},
    "mixtral": {"sliding_window": [-3], "num_experts_per_tok": [0, 4]},
    "qwen3": {"use_sliding_window": ["yes"],
              "layer_types": [[FULL, SLIDING, FULL], [FULL] * 2, [[]] * 3, FULL,
                              ["linear_attention"] * 3]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [(kind, key, value) for kind in WRONG for key in WRONG[kind] for value in WRONG[kind][key]],
)
def test_value_in_the_config_that_is_refused_is_said(kind, key, value, checkpoint):
    if key == "rope_theta":
        change_config(checkpoint, rope_parameters=...)
    change_config(checkpoint, **{key: value})
    said = re.escape(f"config.json: {key} is {value!r}, ")
    refuses(kind, checkpoint, said + "(but must |an option that is not known here)")


CONFIGS = [  # what is needed is said; and what fits in itself must fit the tensors
    ("gpt2", {"model_type": "bert"}, "model_type is 'bert', but must be 'gpt2'"),
    ("gpt2", {"n_head": 5}, "n_head is 5, but must divide n_embd = 12"),
    ("gpt2", {"n_head": 0}, "n_head is 0, but must be a positive whole number"),
    ("gpt2", {"tie_word_embeddings": 1}, "tie_word_embeddings is 1, but must be true or false"),
    ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights is False, but must be True"),
    ("gpt2", {"n_embd": ..., "n_inner": None}, "n_embd is missing"),
    ("gpt2", {"n_layer": 10**12}, "transformer.h.2.ln_1.weight is missing"),
    ("gpt2", {"vocab_size": 10**15}, r"wte.weight has shape \(41, 12\), but must have"),
    ("gpt2", {"n_inner": 21}, r"c_fc.weight has shape \(12, 20\), but must have \(12, 21\)"),
    ("bert", {"layer_norm_eps": 1}, "layer_norm_eps is 1, but must be a number between 0 and 1"),
    ("llama", {"model_type": "gpt2"}, "but must be 'llama' or 'mistral' or 'qwen3' or 'mixtral'"),
    ("llama", {"model_type": "qwen3"}, "model.layers.0.self_attn.q_norm.weight is missing"),
    ("llama", {"model_type": "mixtral"}, "num_local_experts is missing"),
    ("qwen3", {"model_type": "llama"}, "layer_types is .* an option that is not known here"),
    ("llama", {"num_attention_heads": 3, "head_dim": ...}, "is 3, but must divide hidden_size = "),
    ("llama", {"num_key_value_heads": 1}, r"k_proj.weight has shape \(12, 20\), but must have \(6"),
    ("llama", {"head_dim": 5}, "head_dim is 5, but must be even"),
    ("llama", {"head_dim": ..., "num_attention_heads": 20}, "head_dim is 1, but must be even"),
    ("llama", {"num_hidden_layers": 2}, "model.layers.2.input_layernorm.weight has no place"),
    ("llama", {"rope_parameters": LLAMA3}, "must hold rope_type 'default', rope_theta and no more"),
    ("llama", {"rope_parameters": ROPE | {"rope_theta": -1e4}}, "rope_theta is -10000.0, but must"),
    ("llama", {"rope_theta": 500.0}, "rope_theta is 500.0, but must be 10000.0, as in rope_para"),
    ("llama", {"vocab_size": 10**18}, "impossible sizes"),
    ("llama", {"intermediate_size": 10**30}, "impossible sizes"),
    ("llama", {"num_attention_heads": 10**30, "num_key_value_heads": 1}, "impossible sizes"),
    ("mistral", {"sliding_window": ...}, "sliding_window is missing"),
    ("mixtral", {"num_local_experts": 2}, r"experts.2.w1.weight has no place"),
    ("mixtral", {"num_local_experts": 10**12}, "layers.0.block_sparse_moe.experts.3.w1.weight is"),
    ("mixtral", {"num_experts_per_tok": 4}, "num_experts_per_tok is 4, but must be at most 3"),
    ("qwen3", {"num_hidden_layers": 10**30, "layer_types": ...}, "model.layers.3.input_layernorm"),
    ("qwen3", {"layer_types": [FULL] * 2}, "layer_types is .* must name one kind of attention 3"),
    ("qwen3", {"layer_types": [SLIDING] * 3, "use_sliding_window": False},
     "use_sliding_window is False, but must be True"),
    ("qwen3", {"layer_types": [SLIDING] * 3, "use_sliding_window": True, "sliding_window": None},
     "sliding_window is None, but must be a positive"),
    *(("qwen3", {"layer_types": ..., "use_sliding_window": True, "max_window_layers": layers},
       f"max_window_layers is {layers!r}, but must be 0 or at least num_hidden_layers = 3")
      for layers in (2, "0")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changes", "match"), CONFIGS)
def test_config_that_does_not_fit_is_refused(kind, changes, match, checkpoint):
    """Huge sizes cost nothing: no layer is made, nor listed, for which there is no tensor."""
    change_config(checkpoint, **changes)
    tracemalloc.start()
    refuses(kind, checkpoint, match)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6


@LLAMA
def test_huge_numbers_that_mean_something_are_welcome(checkpoint):
    """Without a table of positions, nothing is reserved for them; the base of RoPE is any."""
    change_config(checkpoint, max_position_embeddings=10**30)
    change_config(checkpoint, rope_parameters=None, rope_theta=10**25)
    assert load_llama(checkpoint)(torch.ones(1, 5, dtype=torch.long)).isfinite().all()


@QWEN3
@pytest.mark.parametrize(
    ("use", "more", "window"),
    [
        (True, {"max_window_layers": 0}, 7),
        (True, {"max_window_layers": 3}, None),
        (True, {"max_window_layers": 28}, None),
        (False, {"max_window_layers": 0}, None),
        (True, {"layer_types": [SLIDING] * 3}, 7),
        (True, {"layer_types": [FULL] * 3}, None),
        (False, {"layer_types": [FULL] * 3}, None),
        (..., {"layer_types": None}, None),
    ],
)
def test_windows_of_qwen3_are_those_of_transformers(use, more, window, checkpoint):
    says = {"use_sliding_window": use, "layer_types": ..., "sliding_window": 7} | more
    change_config(checkpoint, **says)
    theirs = transformers.AutoConfig.from_pretrained(checkpoint)
    assert {*theirs.layer_types} == ({SLIDING} if window else {FULL})
    assert {layer.attention.window for layer in load_llama(checkpoint).layers} == {window}


@ALL
def test_config_that_is_no_json_object_is_refused(kind, checkpoint):
    numbers = b'{"vocab_size": ' + 5000 * b"9" + b"}"
    odd = (numbers, b"[" * 100_000, b"\xff\xfe{}", "\ufeff{}".encode())
    for content in (b"", b"{", b"[]", b"null", b'{"model_type": "bert"', *odd):
        (checkpoint / "config.json").write_bytes(content)
        refuses(kind, checkpoint, r"config\.json (is damaged|holds a)")


@ALL
def test_missing_file_is_named(kind, checkpoint):
    tokenizer = ["tokenizer.json"] if kind == "bert" else []
    for name in (WEIGHTS, *tokenizer, "config.json"):
        (checkpoint / name).unlink()
        refuses(kind, checkpoint, re.escape(name), FileNotFoundError)
    refuses(kind, checkpoint / "nowhere", r"config\.json", FileNotFoundError)


@BERT
def test_a_tokenizer_that_does_not_fit_is_refused(kind, checkpoint):
    """Cut anywhere, no text at all, or with more words than there are vectors."""
    path = checkpoint / "tokenizer.json"
    assert load_tokenizer(checkpoint).encode("a cats").ids == [2, 4, 5, 7, 3]
    whole = path.read_bytes().rstrip()
    for content in (b"\xff\xfe{}", *(whole[:size] for size in range(0, len(whole), 29))):
        path.write_bytes(content)
        refuses(kind, checkpoint, r"tokenizer\.json is damaged")
    write_tokenizer(checkpoint, [f"w{i}" for i in range(10)])
    refuses(kind, checkpoint, r"tokenizer\.json has ids up to 13.*vocab_size = 13")


@ALL
def test_weights_cut_anywhere_are_refused(kind, checkpoint):
    whole = (checkpoint / WEIGHTS).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    sizes = {*range(12), *range(12, header, 97), header - 1, header, header + 1, len(whole) - 1}
    for size in sizes | {*range(header, len(whole), 1009), len(whole) + 1}:
        (checkpoint / WEIGHTS).write_bytes((whole + b"\0")[:size])
        refuses(kind, checkpoint, r"model\.safetensors is damaged")


@ALL
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_are_never_opened(kind, protocol, checkpoint, tmp_path_factory):
    mark = tmp_path_factory.mktemp("mark") / "opened"
    path, bomb = checkpoint / WEIGHTS, Bomb(mark)
    path.write_bytes(pickle.dumps(bomb, protocol))  # under the name of a safe file
    refuses(kind, checkpoint, r"model\.safetensors is (a pickle|damaged)")
    torch.save({"wte.weight": bomb}, path)
    refuses(kind, checkpoint, r"model\.safetensors is a pickle")
    path.rename(checkpoint / "pytorch_model.bin")
    refuses(kind, checkpoint, r"pytorch_model\.bin is a pickle", FileNotFoundError)
    write_index(checkpoint, {"wte.weight": "pytorch_model.bin"})
    refuses(kind, checkpoint, r"weight_map names 'pytorch_model\.bin'")
    assert not mark.exists()
    pickle.loads(pickle.dumps(bomb, protocol))
    assert mark.exists()  # the bomb does work


@ALL
def test_shards_are_read_as_one_file_beside_their_index(kind, checkpoint, tmp_path_factory):
    shards = tmp_path_factory.mktemp("shards")
    write(shards, kind, shard="3KB")
    assert same(LOADERS[kind](shards), LOADERS[kind](checkpoint).state_dict())
    whole = index_of(shards)
    first, second = (shard for shard, _ in Counter(whole.values()).most_common(2))
    name = next(name for name in whole if whole[name] == first)
    fewer = {key: shard for key, shard in whole.items() if key != name}
    for wrong in (fewer, whole | {"x.weight": first}, whole | {name: second}):
        write_index(shards, wrong)
        refuses(kind, shards, "do not agree about the tensor ")
    for wrong in (None, {}, [], "x"):
        write_index(shards, wrong)
        refuses(kind, shards, "weight_map is missing or empty")
    for wrong in ("../x.safetensors", "/x.safetensors", "a/b.safetensors", "..\\x.safetensors", 3,
                  None, "x.bin", ".safetensors", "x.safetensors\n"):  # fmt: skip
        write_index(shards, whole | {name: wrong})
        refuses(kind, shards, "weight_map names")
    write_index(shards, whole)
    (shards / second).write_bytes((shards / second).read_bytes()[:-1])
    refuses(kind, shards, rf"{re.escape(second)} is damaged")
    (shards / second).unlink()
    refuses(kind, shards, re.escape(second), FileNotFoundError)
