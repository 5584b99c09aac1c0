"""Checkpoints of every family: ours against `transformers`, and all that can be bad in a folder."""

import math
import pickle
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import checkpoints as small
import numpy as np
import pytest
import torch
import transformers
from checkpoints import LLAMAS, change_config, near, rewritten, same, write, write_index
from safetensors.torch import load_file, save_file

from helpers.cache import KeyValueCache
from helpers.decoding import generate
from helpers.latent import Latent
from helpers.models import DecoderOnly
from helpers.pretrained import load_bert, load_gpt2, load_llama, load_tokenizer
from helpers.pretrained.families import FAMILIES
from helpers.rotary import Rope

pytestmark = pytest.mark.slow
WEIGHTS = "model.safetensors"
LOADERS = {"bert": load_bert, "gpt2": load_gpt2, **dict.fromkeys(LLAMAS, load_llama)}
ALL, KIN = (pytest.mark.parametrize("kind", kinds) for kinds in (LOADERS, LLAMAS))
BERT, GPT2, LLAMA, _, QWEN3, *_ = (pytest.mark.parametrize("kind", [kind]) for kind in LOADERS)


@pytest.fixture
def checkpoint(kind, tmp_path) -> Path:
    """A small checkpoint of this kind."""
    write(tmp_path, kind)
    return tmp_path


def refuses(kind: str, folder: Path, match: str, error: type[Exception] = ValueError) -> None:
    with pytest.raises(error, match=match) as caught:
        LOADERS[kind](folder)
    assert str(folder) in str(caught.value)


# ---------------------------------------------------------------- what is computed

BERTS = [{}, {"head": False}, {"hidden_act": "gelu_new", "layer_norm_eps": 0.1},
         {"hidden_act": "silu"},
         {"hidden_act": "relu", "type_vocab_size": 1, "num_attention_heads": 1}]  # fmt: skip
GPT2S = [{}, {"head": False}, {"n_inner": None}, {"tie_word_embeddings": False},
         {"activation_function": "gelu", "layer_norm_epsilon": 0.01}]  # fmt: skip
THETA, LENGTH = {"rope_theta": 1e4}, {"original_max_position_embeddings": 9}
LLAMA3 = THETA | LENGTH | {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 0.05,
                           "high_freq_factor": 1.0}  # fmt: skip
YARN = THETA | LENGTH | {"rope_type": "yarn", "factor": 4.0}
ROPES = [
    THETA | {"rope_type": "linear", "factor": 2.5},
    *(LLAMA3, YARN),
    YARN | {"factor": 8, "beta_fast": 1, "beta_slow": 0.1, "attention_factor": 1.5},
]
DECODERS = [*(("gpt2", 0, says) for says in GPT2S),
            *(("llama", n, {"rope_parameters": says, "head_dim": 16, "max_position_embeddings": 40})
              for n, says in enumerate(ROPES)),
            *((kind, n, small.drawn(kind, n)) for kind in LLAMAS for n in range(10))]  # fmt: skip


@pytest.mark.parametrize("changes", BERTS)
def test_vectors_equal_those_of_transformers(tmp_path, changes):
    theirs, ours = write(tmp_path, "bert", **changes), load_bert(tmp_path)
    sentences = ["a cat", "cats sat a a cat cats cats cats a", "dog"]
    (ids, is_real), (hidden, _) = ours.tokenize(sentences), ours.hidden(sentences)
    assert ids.tolist()[0] == [2, 4, 5, 3] + [0] * 7 and ids.shape == (3, 11)
    with torch.no_grad():
        expected = theirs(ids, is_real.long()).last_hidden_state
    assert near(hidden[is_real], expected[is_real], 1e-5)


@pytest.mark.parametrize(("kind", "seed", "says"), DECODERS)
def test_logits_and_texts_equal_those_of_transformers(kind, seed, says, tmp_path):
    """Read at once, read in pieces with a cache, with padding behind, and going on."""
    theirs, ours = write(tmp_path, kind, seed, **says), LOADERS[kind](tmp_path)
    assert type(ours) is DecoderOnly and not ours.training
    tied = says.get("tie_word_embeddings", kind == "gpt2")
    assert (ours.output.weight is ours.tokens.weight) == tied
    assert all(p.dtype == torch.float32 and p.requires_grad for p in ours.parameters())
    assert sum(p.numel() for p in ours.parameters()) == theirs.num_parameters()
    ids = torch.from_numpy(np.random.default_rng(seed).integers(1, 41, (3, 17)))  # 0 is for padding
    cache, real = KeyValueCache(), torch.arange(17) < torch.tensor([[17], [5], [11]])
    with torch.no_grad():
        expected = theirs(ids).logits
        assert expected.std() > 0.5 and near(ours(ids), expected)
        pieces = [ours(piece, cache) for piece in ids.split([6, 1, 1, 7, 2], dim=1)]
        assert near(torch.cat(pieces, dim=1), expected)
    ask = {"do_sample": False, "max_new_tokens": 9, "eos_token_id": None, "pad_token_id": 0}
    windows = {layer.attention.window for layer in ours.layers}
    ask["use_cache"] = 1 not in windows  # theirs then keeps all, not nothing
    written = theirs.generate(ids, attention_mask=torch.ones_like(ids), **ask)
    assert generate(ours, ids.tolist(), 9) == written[:, 17:].tolist()
    with torch.no_grad():
        ours.pad_id, padded = 0, ids * real
        assert near(ours(padded)[real], theirs(padded, attention_mask=real.long()).logits[real])


@LLAMA
@pytest.mark.parametrize("says", ROPES)
def test_every_layer_of_a_stretched_model_gives_what_theirs_gives(kind, says, tmp_path):
    """Far behind the length that was learned, too. In float64: the vectors grow to 16."""
    theirs = write(tmp_path, kind, rope_parameters=says, head_dim=16, max_position_embeddings=40)
    every_layer_is_near(load_llama(tmp_path).double(), theirs.double(), 40)


FULL, SLIDING, NAN = "full_attention", "sliding_attention", float("nan")
SLIDES = {"use_sliding_window": True, "sliding_window": 4}
MIXED = [("qwen3", SLIDES | {"layer_types": [SLIDING, FULL, SLIDING]}),
         ("smollm3", {"no_rope_layers": [1, 0, 1]}),
         ("smollm3", SLIDES | {"no_rope_layers": [0, 1, 0], "layer_types": [FULL, SLIDING, FULL]}),
         ]  # fmt: skip


@pytest.mark.parametrize(("kind", "says"), MIXED)
def test_every_layer_of_a_model_of_mixed_layers_gives_what_theirs_gives(kind, says, tmp_path):
    theirs = write(tmp_path, kind, **says)
    every_layer_is_near(load_llama(tmp_path).double(), theirs.double(), 17)


def every_layer_is_near(ours: DecoderOnly, theirs: transformers.PreTrainedModel, T: int) -> None:
    ids, found = torch.from_numpy(np.random.default_rng(0).integers(1, 41, (2, T))), []
    for part in (*ours.layers, ours.norm):
        part.register_forward_hook(lambda module, given, out: found.append(out))
    cache = KeyValueCache()
    with torch.no_grad():
        ours(ids)
        *between, _, last = found  # theirs keeps the last layer's vectors after the norm
        _, *expected = (says := theirs(ids, output_hidden_states=True)).hidden_states
        pieces = [ours(piece, cache) for piece in ids.split([T - 3, 1, 2], dim=1)]
    assert expected[-1].std() > 0.5 and near(torch.cat(pieces, dim=1), says.logits, 1e-5)
    assert all(map(near, [*between, last], expected, [1e-5 * x.std() for x in expected]))


Q, KV = "attention.W_q attention.W_q_turned", "attention.W_up_k attention.W_up_v"
DEEPSEEK = FAMILIES["llama"].names | FAMILIES["llama"].layer | {
    "lm_head": "output", "self_attn.q_proj": Q, "self_attn.q_b_proj": Q, "self_attn.kv_b_proj": KV,
    "self_attn.kv_a_proj_with_mqa": "attention.W_down attention.W_turned",
    "self_attn.kv_a_layernorm": "attention.norm_down",
    "self_attn.q_a_proj": "attention.W_down_q", "self_attn.q_a_layernorm": "attention.norm_down_q",
}  # fmt: skip
MSCALE = YARN | {"rope_theta": 100.0, "mscale": 0.7, "mscale_all_dim": 0.7}
TURNS = Rope(100.0, 4.0, 9, 1.0, 32.0, by_pairs=True, louder=0.07 * math.log(4) + 1)


@pytest.mark.parametrize(("says", "rope"), [
    ({"q_lora_rank": None, "rope_theta": 50.0}, 50.0),
    ({"q_lora_rank": 7, "rope_parameters": MSCALE}, TURNS),
])  # fmt: skip
@pytest.mark.parametrize("kind", small.DEEPSEEKS)
def test_every_layer_of_latent_attention_gives_what_that_of_deepseek_gives(
    kind, says, rope, tmp_path
):
    """Plain, and absorbed with a cache. Some maps of theirs hold two of ours, head by head."""
    theirs, state = write(tmp_path, kind, **says).double(), {}
    ours = DecoderOnly(41, 40, 20, 4, 13, 3, pre_norm=True, rms_norm=True, gated=True, rope=rope,
                       activation="silu", bias=False, eps=1e-6, d_head=6,
                       latent=Latent(5, 4, says["q_lora_rank"])).double()  # fmt: skip
    sizes = {name: len(tensor) for name, tensor in ours.state_dict().items()}
    for name, tensor in theirs.state_dict().items():
        home, part, kind = re.fullmatch(
            r"(?:model\.(?=l))?(layers\.\d\.)?(.+)\.(\w+)", name
        ).groups("")
        names = [f"{home}{own}.{kind}" for own in DEEPSEEK[part].split()]
        heads = 4 if DEEPSEEK[part] in (Q, KV) else 1
        rows = tensor.unflatten(0, (heads, -1))
        state |= zip(names, rows.split([sizes[own] // heads for own in names], dim=1), strict=True)
    ours.load_state_dict({name: rows.flatten(0, 1) for name, rows in state.items()})
    every_layer_is_near(ours, theirs, 11)


@LLAMA
@pytest.mark.parametrize("says", ROPES)
def test_older_files_say_in_another_place_how_rope_is_stretched(kind, says, tmp_path):
    write(tmp_path, kind, rope_parameters=says)
    newer = load_llama(tmp_path).layers[0].attention.rope
    older = {"type" if key == "rope_type" else key: value for key, value in says.items()}
    base = older.pop("rope_theta")
    change_config(tmp_path, rope_parameters=..., rope_scaling=older, rope_theta=base)
    assert load_llama(tmp_path).layers[0].attention.rope == newer


@LLAMA
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_16_bits_become_float32_exactly(kind, dtype, checkpoint):
    with rewritten(checkpoint) as tensors:
        tensors |= {name: tensor.to(dtype) for name, tensor in tensors.items()}
        wide = {name: tensor.float() for name, tensor in tensors.items()}
    half = load_llama(checkpoint)
    save_file(wide, checkpoint / WEIGHTS)
    assert same(half, load_llama(checkpoint).state_dict())


@pytest.mark.parametrize(
    ("kind", "table", "more", "says"),
    [
        ("gpt2", "wte.weight", ["h.{}.attn.bias", "h.{}.attn.masked_bias"],
         {"tie_word_embeddings": ...}),
        ("llama", "model.embed_tokens.weight", ["model.layers.{}.self_attn.rotary_emb.inv_freq"],
         {"num_key_value_heads": None, "head_dim": ..., "rope_parameters": ..., "torch_dtype": "x",
          "rope_scaling": None, "pretraining_tp": 1, "is_llama_config": True, "mlp_bias": False,
          "rope_interleaved": False, "attention_dropout": 0.0, "initializer_range": 0.02,
          "max_position_embeddings": 10**30, "rope_theta": 10**25}),
    ],
)  # fmt: skip
def test_what_older_files_leave_out_or_have_besides_is_welcome(kind, table, more, says, tmp_path):
    """Masks, tables of RoPE, and the head, which is the token table; and huge numbers for RoPE."""
    sizes = {"num_key_value_heads": 4, "hidden_size": 24} if kind == "llama" else {"head": False}
    write(tmp_path, kind, tie_word_embeddings=True, **sizes)
    expected = LOADERS[kind](tmp_path).state_dict()
    with rewritten(tmp_path) as tensors:
        tensors |= {name.format(n): torch.ones(2) for name in more for n in range(2)}
        tensors["lm_head.weight"] = tensors[table].clone()
    change_config(tmp_path, **says)
    model = LOADERS[kind](tmp_path)
    assert model.output.weight is model.tokens.weight and same(model, expected)
    assert model(torch.ones(1, 5, dtype=torch.long)).isfinite().all()
    with rewritten(tmp_path) as tensors:
        tensors["lm_head.weight"] += 1e-6
    refuses(kind, tmp_path, r"lm_head\.weight is not the token table")


@KIN
def test_rope_and_window_that_are_not_mentioned_are_those_of_transformers(kind, checkpoint):
    window = {} if kind == "mistral" else {"sliding_window": ...}  # Mistral's must be said
    change_config(checkpoint, rope_parameters=..., rope_theta=..., **window)
    theirs = transformers.AutoConfig.from_pretrained(checkpoint)
    base = (getattr(theirs, "rope_parameters", None) or vars(theirs))["rope_theta"]
    expected = (base, getattr(theirs, "sliding_window", None))
    layers = load_llama(checkpoint).layers
    assert {(layer.attention.rope, layer.attention.window) for layer in layers} == {expected}


WINDOWS = [  # of Qwen3: whether it slides, what else is said, the windows
    (True, {"max_window_layers": 0}, [7] * 3), (True, {"max_window_layers": 3}, [None] * 3),
    (False, {"max_window_layers": 0}, [None] * 3), (True, {"layer_types": [SLIDING] * 3}, [7] * 3),
    (True, {"layer_types": [FULL] * 3}, [None] * 3), (..., {"layer_types": None}, [None] * 3),
    (True, {"layer_types": [SLIDING, FULL, SLIDING]}, [7, None, 7]),
]  # fmt: skip


@QWEN3
@pytest.mark.parametrize(("use", "more", "windows"), WINDOWS)
def test_windows_of_qwen3_are_those_of_transformers(use, more, windows, checkpoint):
    says = {"use_sliding_window": use, "layer_types": ..., "sliding_window": 7} | more
    change_config(checkpoint, **says)
    theirs = transformers.AutoConfig.from_pretrained(checkpoint)
    assert [SLIDING if window else FULL for window in windows] == theirs.layer_types
    assert [layer.attention.window for layer in load_llama(checkpoint).layers] == windows


# ---------------------------------------------------------------- what is refused

DAMAGES = [  # a tensor as it was → as it is then, None for none
    lambda tensor: None,
    lambda tensor: tensor[None],
    lambda tensor: tensor.long(),
    lambda tensor: tensor.double(),
    lambda tensor: (tensor * 1e6).half(),  # infinite, or not float32
    lambda tensor: torch.where(tensor == tensor.max(), torch.nan, tensor),
]


@ALL
def test_every_damaged_tensor_is_named(kind, checkpoint):
    """In each of these ways at least four, and in one way each."""
    whole = load_file(checkpoint / WEIGHTS)
    hit = sorted(whole.keys() - {"pooler.dense.weight", "pooler.dense.bias"})
    for i, name in enumerate(hit):
        changed = whole | {name: DAMAGES[i % 6](whole[name])}
        tensors = {key: tensor for key, tensor in changed.items() if tensor is not None}
        save_file(tensors, checkpoint / WEIGHTS)
        refuses(kind, checkpoint, rf"model\.safetensors: .*{re.escape(name)}\b")
    assert len(hit) >= 24


SURPLUS = [
    ("bert", "encoder.layer.3.output.dense.bias"), ("bert", "xembeddings.position_ids"),
    ("gpt2", "transformer.h.2.ln_1.weight"), ("gpt2", "h.0.ln_1.weight"),  # the other layout
    ("mixtral", "model.layers.0.block_sparse_moe.experts.3.w1.weight"), ("llama", "lm_head.bias"),
    ("mistral", "model.layers.0.self_attn.q_proj.bias"), ("qwen3", "embed_tokens.weight"),
    ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq2"), ("llama", "model.norm.bias"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), SURPLUS)
def test_surplus_tensor_is_named(kind, name, checkpoint):
    with rewritten(checkpoint) as tensors:
        tensors[name] = torch.ones(3)
    refuses(kind, checkpoint, rf"{re.escape(name)} has no place in the model")


@ALL
def test_key_that_is_missing_in_the_config_is_named(kind, checkpoint):
    whole, family = (checkpoint / "config.json").read_text(), FAMILIES[kind]
    for key in {"model_type", *family.says.values()} - family.absent.keys() - family.null.keys():
        change_config(checkpoint, **{key: ...})
        refuses(kind, checkpoint, rf"config\.json: {key} is missing, but must be ('|a )")
        (checkpoint / "config.json").write_text(whole)


ROPE = THETA | {"rope_type": "default"}
# Values of config.json that are refused: each is named, and said as it is.
WRONG = {
    "bert": {"model_type": ["roberta"], "hidden_act": [["gelu"]], "layer_norm_eps": [-1e-12, NAN],
             "num_attention_heads": [7], "is_decoder": [True],
             "position_embedding_type": ["relative_key"], "quantization_config": [{"bits": 4}]},
    "gpt2": {"n_layer": [True], "rotary": [True], "tie_word_embeddings": ["yes", None],
             "activation_function": ["swish"], "scale_attn_by_inverse_layer_idx": [True]},
    "llama": {"model_type": [["llama"]], "rms_norm_eps": ["1e-5"], "mlp_bias": [True],
              "num_key_value_heads": [3, 8, 2.0], "attention_bias": [True], "sliding_window": [4],
              "rope_parameters": [ROPE | {"partial_rotary_factor": 0.5}, [1e4],
                                  {"rope_theta": 1e4}, ROPE | {"rope_type": "dynamic"},
                                  YARN | {"factor": None}, YARN | {"mscale": 1.0},
                                  YARN | {"beta_fast": 0.5}, LLAMA3 | {"factor": 0.5}],
              "rope_scaling": [LLAMA3], "rope_theta": [-1e4, 0, 10**400, NAN, True],
              "rope_interleaved": [True], "is_causal": [False, None],
              "auto_map": [{"AutoModel": "x.y"}]},
    "mistral": {"sliding_window": [0], "layer_types": [[FULL] * 3]},
    "mixtral": {"sliding_window": [-3], "num_experts_per_tok": [0]},
    "qwen3": {"use_sliding_window": ["yes"],
              "layer_types": [[[]] * 3, FULL, ["linear_attention"] * 3]},
    "smollm3": {"no_rope_layers": [None, 1, [1, 0], [1, 1, 2], "110"], "attention_bias": [True],
                "layer_types": [[SLIDING, "x", FULL]], "use_sliding_window": [None]},
}  # fmt: skip
MEAN = "(but must |an option that is not known here)"
SAID = [(kind, {key: value} | ({"rope_parameters": ...} if key == "rope_theta" else {}),
         re.escape(f"config.json: {key} is {value!r}, ") + MEAN)
        for kind in WRONG for key in WRONG[kind] for value in WRONG[kind][key]]  # fmt: skip
CONFIGS = [  # what is needed is said; and what fits in itself must fit the tensors
    ("gpt2", {"model_type": "bert"}, "model_type is 'bert', but must be 'gpt2'"),
    ("gpt2", {"n_head": 5}, "n_head is 5, but must divide n_embd = 12"),
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
    ("llama", {"num_hidden_layers": 2}, "model.layers.2.input_layernorm.weight has no place"),
    ("llama", {"rope_parameters": ROPE | LENGTH}, "must hold rope_type, rope_theta, and no more"),
    ("llama", {"rope_parameters": YARN | {"factor": "4"}}, "hold a positive number as factor"),
    ("llama", {"rope_parameters": YARN | {"beta_slow": 32}}, "least is 32.0, but must be betw"),
    ("llama", {"rope_scaling": YARN}, "rope_scaling is .* must be null beside rope_parameters"),
    ("llama", {"rope_parameters": ROPE | {"rope_theta": -1e4}}, "rope_theta is -10000.0, but must"),
    ("llama", {"rope_theta": 500.0}, "rope_theta is 500.0, but must be 10000.0, as in rope_para"),
    ("llama", {"num_attention_heads": 10**30, "num_key_value_heads": 1}, "impossible sizes"),
    ("mistral", {"sliding_window": ...}, "sliding_window is missing"),
    ("mixtral", {"num_local_experts": 2}, r"experts.2.w1.weight has no place"),
    ("mixtral", {"num_local_experts": 10**12}, "layers.0.block_sparse_moe.experts.3.w1.weight is"),
    ("mixtral", {"num_experts_per_tok": 4}, "num_experts_per_tok is 4, but must be at most 3"),
    ("qwen3", {"layer_types": [FULL] * 2}, "layer_types is .* must be a list of 3, a layer "),
    *((kind, {"layer_types": [FULL, FULL, SLIDING], "use_sliding_window": False},
       "use_sliding_window is False, but must be True") for kind in ("qwen3", "smollm3")),
    ("smollm3", {"no_rope_layers": ...}, "no_rope_layers is missing, but must be a list of 3, a l"),
    ("smollm3", {"layer_types": None, "use_sliding_window": True}, "layer_types is None, but must"),
    ("smollm3", {"num_hidden_layers": 10**12}, "no_rope_layers is .*, but must be a list of 10000"),
    ("qwen3", {"layer_types": [SLIDING] * 3, "use_sliding_window": True, "sliding_window": None},
     "sliding_window is None, but must be a positive"),
    *(("qwen3", {"layer_types": ..., "use_sliding_window": True, "max_window_layers": layers},
       f"max_window_layers is {layers!r}, but must be 0 or at least num_hidden_layers = 3")
      for layers in (2, "0")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "changes", "match"), SAID + CONFIGS)
def test_config_that_does_not_fit_is_refused(kind, changes, match, checkpoint):
    """Huge sizes cost nothing: no layer is made, nor listed, for which there is no tensor."""
    change_config(checkpoint, **changes)
    tracemalloc.start()
    refuses(kind, checkpoint, match)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6


@BERT
def test_files_that_are_missing_cut_or_no_such_file_are_named(kind, checkpoint):
    """Each file as a whole: cut anywhere, with more behind, empty, of another kind, gone."""
    whole, words = (checkpoint / WEIGHTS).read_bytes(), (checkpoint / "tokenizer.json").read_bytes()
    words = words.rstrip()
    assert load_tokenizer(checkpoint).encode("a cats").ids == [2, 4, 5, 7, 3]
    header = 8 + int.from_bytes(whole[:8], "little")
    sizes = {*range(12), *range(12, header, 97), header - 1, header, header + 1}
    odd = b'{"vocab_size": ' + 5000 * b"9" + b"}", b"[" * 100_000, b"\xff\xfe{}", b"\xef\xbb\xbf{}"
    cut = {
        WEIGHTS: [(whole + b"\0")[:n] for n in {*sizes, len(whole) - 1, 10**9}],
        "tokenizer.json": [words[:n] for n in range(0, len(words), 29)] + [b"\xff\xfe{}"],
        "config.json": [b"", b"{", b"[]", b"null", b'{"model_type": "bert"', *odd],
    }
    refuses(kind, checkpoint / "nowhere", r"config\.json", FileNotFoundError)
    for name, contents in cut.items():
        before = (checkpoint / name).read_bytes()
        for content in contents:
            (checkpoint / name).write_bytes(content)
            refuses(kind, checkpoint, rf"{re.escape(name)} (is damaged|holds a)")
        (checkpoint / name).unlink()
        refuses(kind, checkpoint, re.escape(name), FileNotFoundError)
        (checkpoint / name).write_bytes(before)
    small.write_tokenizer(checkpoint, [f"w{i}" for i in range(10)])
    refuses(kind, checkpoint, r"tokenizer\.json has ids up to 13.*vocab_size = 13")


@GPT2
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_are_never_opened(kind, protocol, checkpoint, tmp_path_factory):
    mark = tmp_path_factory.mktemp("mark") / "opened"
    path, bomb = checkpoint / WEIGHTS, small.Bomb(mark)
    path.write_bytes(pickle.dumps(bomb, protocol))  # under the name of a safe file
    refuses(kind, checkpoint, r"model\.safetensors is " + ("a pickle" if protocol else "damaged"))
    torch.save({"wte.weight": bomb}, path)
    refuses(kind, checkpoint, r"model\.safetensors is a pickle")
    path.rename(checkpoint / "pytorch_model.bin")
    refuses(kind, checkpoint, r"pytorch_model\.bin is a pickle", FileNotFoundError)
    write_index(checkpoint, {"wte.weight": "pytorch_model.bin"})
    refuses(kind, checkpoint, r"weight_map names 'pytorch_model\.bin'")
    assert not mark.exists()
    pickle.loads(pickle.dumps(bomb, protocol))
    assert mark.exists()  # the bomb does work


@LLAMA
def test_shards_are_read_as_one_file_beside_their_index(kind, checkpoint, tmp_path_factory):
    shards = tmp_path_factory.mktemp("shards")
    write(shards, kind, shard="3KB")
    assert same(load_llama(shards), load_llama(checkpoint).state_dict())
    whole = small.index_of(shards)
    first, second = (shard for shard, _ in Counter(whole.values()).most_common(2))
    name = next(name for name in whole if whole[name] == first)
    fewer = {key: shard for key, shard in whole.items() if key != name}
    names = ("../x.safetensors", "/x.safetensors", "a/b.safetensors", "..\\x.safetensors", 3, None,
             "x.bin", ".safetensors", "x.safetensors\n")  # fmt: skip
    wrongs = [(w, "do not agree about the tensor ")
              for w in (fewer, whole | {"x.weight": first}, whole | {name: second})]  # fmt: skip
    wrongs += [(wrong, "weight_map is missing or empty") for wrong in (None, {}, [], "x")]
    wrongs += [(whole | {name: wrong}, "weight_map names") for wrong in names]
    for wrong, match in wrongs:
        write_index(shards, wrong)
        refuses(kind, shards, match)
    write_index(shards, whole)
    (shards / second).write_bytes((shards / second).read_bytes()[:-1])
    refuses(kind, shards, rf"{re.escape(second)} is damaged")
    (shards / second).unlink()
    refuses(kind, shards, re.escape(second), FileNotFoundError)
