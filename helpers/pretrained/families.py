"""BERT, GPT-2, Llama and its kin: a table of what their files call what our models have.

Llama, Mistral, Qwen3, SmolLM3 and Mixtral are one architecture: pre-norm with RMSNorm, RoPE,
SwiGLU, key heads that are shared. Mistral adds a sliding window, Qwen3 normalises queries and keys,
SmolLM3 has layers without RoPE, Mixtral has experts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from helpers.examples import PLACES
from helpers.models import DecoderOnly
from helpers.pretrained.config import Config
from helpers.pretrained.encoder import SentenceEncoder
from helpers.pretrained.files import CONFIG, fitting_tokenizer, read_weights
from helpers.pretrained.tensors import HEAD, Dtypes, Place, Tensors, check_places, filled
from helpers.pretrained.turning import rope_of


@dataclass(frozen=True)
class Family:
    """One kind of checkpoint; where it says "theirs: ours", theirs is what its files have."""

    says: dict[str, str]  # ours: theirs, the options of our model and the keys of config.json
    names: dict[str, str]  # theirs: ours, the parts outside the layers
    layers: tuple[str, str]  # theirs and ours
    layer: dict[str, str]  # theirs: ours, the parts of a layer; {i} is the number of an expert
    unused: str  # which other tensors there may be
    prefix: str = ""  # of all names in a file, or of none
    turned: bool = False  # whether maps are (in, out), as on paper; nn.Linear has (out, in)
    dtypes: Dtypes = (torch.float32,)
    model: type[nn.Module] = DecoderOnly
    options: dict[str, Any] = field(default_factory=dict)  # of our model, and of no config.json
    absent: dict[str, Any] = field(default_factory=dict)  # what a key means that is not there
    null: dict[str, Callable[[Config], Any]] = field(default_factory=dict)  # … or that is null


TABLES = ("tokens", "positions", "segments")  # have no bias
HIDDEN = {"vocab_size": "vocab_size", "context_length": "max_position_embeddings",
          "d_model": "hidden_size", "num_heads": "num_attention_heads", "d_ff": "intermediate_size",
          "num_layers": "num_hidden_layers", "activation": "hidden_act"}  # fmt: skip
BERT = Family(
    model=SentenceEncoder,
    says=HIDDEN | {"num_segments": "type_vocab_size", "eps": "layer_norm_eps"},
    names={part: PLACES[part] for part in PLACES if part.startswith("embeddings.")},
    layers=("encoder.layer", "encoder.layers"),
    layer={part: PLACES[part] for part in PLACES if not part.startswith("embeddings.")},
    unused=r"embeddings\.position_ids|pooler\.dense\.(weight|bias)",
)
GPT2 = Family(
    says={"vocab_size": "vocab_size", "context_length": "n_positions", "d_model": "n_embd",
          "num_heads": "n_head", "d_ff": "n_inner", "num_layers": "n_layer",
          "activation": "activation_function", "eps": "layer_norm_epsilon",
          "tie_weights": "tie_word_embeddings"},
    names={"wte": "tokens", "wpe": "positions", "ln_f": "norm"},
    layers=("h", "layers"),
    layer={"ln_1": "norm1", "ln_2": "norm2",
           "attn.c_attn": "attention.W_qkv", "attn.c_proj": "attention.W_o",  # three maps in one
           "mlp.c_fc": "feed_forward.W1", "mlp.c_proj": "feed_forward.W2"},
    unused=r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias|lm_head\.weight",
    prefix="transformer.",
    turned=True,
    options={"pre_norm": True},
    absent={"tie_word_embeddings": True},
    null={"n_inner": lambda config: 4 * config.size("n_embd")},
)  # fmt: skip
LLAMA = Family(
    says=HIDDEN | {"d_head": "head_dim", "num_kv_heads": "num_key_value_heads",
                   "eps": "rms_norm_eps", "tie_weights": "tie_word_embeddings"},
    names={"model.embed_tokens": "tokens", "model.norm": "norm"},
    layers=("model.layers", "layers"),
    layer={"input_layernorm": "norm1", "post_attention_layernorm": "norm2",
           "self_attn.q_proj": "attention.W_q", "self_attn.k_proj": "attention.W_k",
           "self_attn.v_proj": "attention.W_v", "self_attn.o_proj": "attention.W_o",
           "mlp.gate_proj": "feed_forward.W_gate", "mlp.up_proj": "feed_forward.W1",
           "mlp.down_proj": "feed_forward.W2"},
    unused=r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq|lm_head\.weight",
    dtypes=(torch.float32, torch.bfloat16, torch.float16),
    options={"pre_norm": True, "rms_norm": True, "gated": True, "bias": False},
    absent={"tie_word_embeddings": False},
    null={"num_key_value_heads": lambda config: config.size("num_attention_heads"),
          "head_dim": lambda config: config.share("hidden_size", "num_attention_heads")},
)  # fmt: skip
QK_NORM = {"self_attn.q_norm": "attention.norm_q", "self_attn.k_norm": "attention.norm_k"}
EXPERTS = {
    "block_sparse_moe.gate": "feed_forward.router",
    "block_sparse_moe.experts.{i}.w1": "feed_forward.experts.{i}.W_gate",
    "block_sparse_moe.experts.{i}.w2": "feed_forward.experts.{i}.W2",
    "block_sparse_moe.experts.{i}.w3": "feed_forward.experts.{i}.W1",
}
ATTENTION = {theirs: ours for theirs, ours in LLAMA.layer.items() if "feed_forward" not in ours}
FAMILIES = {
    "bert": BERT,
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen3": replace(LLAMA, layer=LLAMA.layer | QK_NORM, options=LLAMA.options | {"qk_norm": True},
                     absent=LLAMA.absent | {"use_sliding_window": False}),
    "mixtral": replace(LLAMA, layer=ATTENTION | EXPERTS,
                       says=LLAMA.says | {"num_experts": "num_local_experts",
                                          "top_k": "num_experts_per_tok"},
                       absent=LLAMA.absent | {"sliding_window": None}),  # a Mistral must say it
    "smollm3": replace(LLAMA, absent={"tie_word_embeddings": True, "use_sliding_window": False}),
}  # fmt: skip
LLAMAS = ("llama", "mistral", "qwen3", "mixtral", "smollm3")


def load_bert(folder: str | Path, *, max_tokens: int | None = None) -> SentenceEncoder:
    """Load a BERT checkpoint into our encoder, without dropout, ready for use.

    A sentence is cut after `max_tokens` tokens, by default where the positions end. Raises
    FileNotFoundError for a missing file; ValueError for a file that is damaged, a config.json that
    asks for what our layers do not do, and a tensor that is missing, surplus, misshapen, not
    float32 or not finite. Devlin et al. (2019).
    """
    return _load(folder, "bert", max_tokens=max_tokens)


def load_gpt2(folder: str | Path) -> DecoderOnly:
    """Load a GPT-2 checkpoint into our DecoderOnly, without dropout, ready for use.

    The names of its tensors may begin with `transformer.` or not; `lm_head.weight` is the token
    table, unless config.json says otherwise. Raises as `load_bert` does. Radford et al. (2019).
    """
    return _load(folder, "gpt2")


def load_llama(folder: str | Path) -> DecoderOnly:
    """Load a Llama, Mistral, Qwen3, Mixtral or SmolLM3 checkpoint into our DecoderOnly.

    Weights of 16 bits become float32, exactly. Layers may differ in their windows and in having
    RoPE; that may be stretched as "linear", "llama3" or "yarn" do it. Raises as `load_bert` does;
    no tokenizer is needed. Touvron et al. (2023); Jiang et al. (2023, 2024); Yang et al. (2025);
    Bakouch et al. (2025).
    """
    return _load(folder, *LLAMAS)


def _load(folder: str | Path, *kinds: str, **more: Any) -> Any:
    """The model of a checkpoint that is of one of these kinds."""
    folder = Path(folder)
    family, options = read_options(folder / CONFIG, *kinds)
    if family is BERT:
        more["tokenizer"] = fitting_tokenizer(folder, options["vocab_size"])
    path, tensors = read_weights(folder)
    places = check_places(_places(family, options, tensors), path, tensors, family.unused)
    return filled(lambda: family.model(**options, **more), path, tensors, places, family.dtypes)


def read_options(path: Path, *kinds: str) -> tuple[Family, dict[str, Any]]:
    """The family that a config.json names, one of `kinds`, and what our model is told."""
    config = Config(path)
    family = FAMILIES[kind := config.word("model_type", kinds)]
    config.entries = family.absent | config.entries
    for name, otherwise in family.null.items():
        config.fill(name, otherwise)
    options = family.options | {ours: config.read(ours, key) for ours, key in family.says.items()}
    if family.model is DecoderOnly:
        _check_causal(config)
    if kind in LLAMAS:
        options |= _rope_and_window(config, kind, options)
    else:
        config.share(family.says["d_model"], family.says["num_heads"])
    config.check_rest()
    return family, options


def _check_causal(config: Config) -> None:
    """Raise ValueError for a decoder that is told to read both ways, as transformers can."""
    config.asked.add("is_causal")
    if config.entries.get("is_causal", True) is not True:
        config.refuse("is_causal", "be True")


def _rope_and_window(config: Config, kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """What only Llama and its kin have, once their heads come out even."""
    config.share("num_attention_heads", "num_key_value_heads")
    if options["d_head"] % 2:
        config.refuse("head_dim", "be even: RoPE turns pairs of features")
    if options.get("top_k", 0) > options.get("num_experts", 0):
        config.refuse("num_experts_per_tok", f"be at most {options['num_experts']}, all experts")
    rope = rope_of(config, kind)
    if kind == "smollm3":
        rope = [rope if turns else None for turns in _each(config, "no_rope_layers", 0, 1)]
    return {"rope": rope, "window": _window(config, kind)}


def _window(config: Config, kind: str) -> int | list[int | None] | None:
    """How many tokens a query sees, None for all: in every layer, or in each."""
    if kind in ("qwen3", "smollm3"):
        return _windows(config, kind)
    if kind == "llama" or config.entries.get("sliding_window", ...) is None:
        return None
    return config.size("sliding_window")


def _windows(config: Config, kind: str) -> int | list[int | None] | None:
    """The same of those that say it layer by layer; an older Qwen3 may say it of all."""
    config.asked |= {"sliding_window", "layer_types", "max_window_layers", "no_rope_layer_interval"}
    slides, n = config.switch("use_sliding_window"), config.size("num_hidden_layers")
    if config.entries.get("layer_types") is None and (kind == "qwen3" or not slides):
        needed = f"be 0 or at least num_hidden_layers = {n}: only layer_types tells layers apart"
        # So many layers, the first ones, see all.
        slides = slides and not config.get(
            "max_window_layers", needed, lambda m: type(m) is int and (m == 0 or m >= n)
        )
        return config.size("sliding_window") if slides else None
    kinds = _each(config, "layer_types", "full_attention", "sliding_attention")
    if "sliding_attention" not in kinds:
        return None
    if not slides:
        config.refuse("use_sliding_window", "be True, as layer_types says")
    size = config.size("sliding_window")
    return [size if kind == "sliding_attention" else None for kind in kinds]


def _each(config: Config, name: str, *choices: Any) -> list[Any]:
    """One entry that is a list, with one of two choices for each layer."""
    n = config.size("num_hidden_layers")
    needed = f"be a list of {n}, a layer {choices[0]!r} or {choices[1]!r}"
    return config.get(name, needed, lambda said: isinstance(said, list) and len(said) == n
                      and all(each in choices for each in said))  # fmt: skip


def _places(family: Family, options: dict[str, Any], tensors: Tensors) -> Iterator[Place]:
    """Which tensor is for which parameters, as far as the files have them."""
    prefix = family.prefix if any(name.startswith(family.prefix) for name in tensors) else ""
    heads = {"norm_q": 1, "norm_k": 1}  # of the parts whose features RoPE turns
    if "rope" in options:
        heads |= {"W_q": options["num_heads"], "W_k": options["num_kv_heads"]}
    for theirs, ours in _names(family, options):
        part = ours.rpartition(".")[2]
        parts = [ours.replace("qkv", letter) for letter in "qkv"] if part == "W_qkv" else [ours]
        has_bias = part not in TABLES and options.get("bias", True)
        for kind in ("weight", "bias") if has_bias else ("weight",):
            turned = family.turned and kind == "weight" and part.startswith("W")
            names = tuple(f"{name}.{kind}" for name in parts)
            yield Place(f"{prefix}{theirs}.{kind}", names, turned, heads.get(part))
    if not options.get("tie_weights", True):
        yield Place(HEAD, ("output.weight",))


def _names(family: Family, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What each part is called there, and here."""
    yield from family.names.items()
    there, here = family.layers
    for n in range(options["num_layers"]):
        for theirs, ours in family.layer.items():
            for i in range(options["num_experts"] if "{i}" in theirs else 1):
                yield f"{there}.{n}.{theirs.format(i=i)}", f"{here}.{n}.{ours.format(i=i)}"
