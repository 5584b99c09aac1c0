"""Llama and its kin: what their config.json says, and which tensor is which of our DecoderOnly's.

The families are one architecture: pre-norm with RMSNorm, RoPE, SwiGLU, key heads that are shared.
Mistral adds a sliding window, Qwen3 normalises queries and keys, Mixtral has experts.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from helpers.models import DecoderOnly
from helpers.pretrained.config import Config, Format, read_options
from helpers.pretrained.files import CONFIG, read_weights
from helpers.pretrained.tensors import HEAD, Place, check_places, filled

LLAMA = Format(
    model_type="llama",
    sizes={"vocab_size": "vocab_size", "context_length": "max_position_embeddings",
           "d_model": "hidden_size", "num_heads": "num_attention_heads", "d_head": "head_dim",
           "num_kv_heads": "num_key_value_heads", "d_ff": "intermediate_size",
           "num_layers": "num_hidden_layers"},
    activation="hidden_act",
    eps="rms_norm_eps",
    needed={"attention_bias": False, "mlp_bias": False, "rope_scaling": None},
    known=frozenset({"rope_theta", "rope_parameters", "pretraining_tp", "is_llama_config"}),
)  # fmt: skip
WINDOW = {"sliding_window"}
LAYERS_ALIKE = {"use_sliding_window", "max_window_layers", "layer_types"}
ROUTING = {"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"}  # for training
EXPERTS = {"num_experts": "num_local_experts", "top_k": "num_experts_per_tok"}
FORMATS = {
    "llama": LLAMA,
    "mistral": replace(LLAMA, model_type="mistral", known=LLAMA.known | WINDOW),
    "qwen3": replace(LLAMA, model_type="qwen3", known=LLAMA.known | WINDOW | LAYERS_ALIKE),
    "mixtral": replace(LLAMA, model_type="mixtral", known=LLAMA.known | WINDOW | ROUTING,
                       sizes=LLAMA.sizes | EXPERTS),
}  # fmt: skip
BASES = {"mixtral": 1e6}  # of RoPE, where config.json names none; of the others 1e4
DTYPES = (torch.float32, torch.bfloat16, torch.float16)

UNUSED = r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq|lm_head\.weight"
LAYER = {
    "input_layernorm": "norm1",
    "self_attn.q_proj": "attention.W_q",
    "self_attn.k_proj": "attention.W_k",
    "self_attn.v_proj": "attention.W_v",
    "self_attn.o_proj": "attention.W_o",
    "post_attention_layernorm": "norm2",
}
QK_NORM = {"self_attn.q_norm": "attention.norm_q", "self_attn.k_norm": "attention.norm_k"}
FEED_FORWARD = {"gate_proj": "W_gate", "up_proj": "W1", "down_proj": "W2"}
EXPERT = {"w1": "W_gate", "w3": "W1", "w2": "W2"}


def load_llama(folder: str | Path) -> DecoderOnly:
    """Load a Llama, Mistral, Qwen3 or Mixtral checkpoint into our DecoderOnly, ready for use.

    Weights of 16 bits become float32, exactly. Every layer must be alike, and RoPE unscaled. Raises
    as `load_bert` does; no tokenizer is needed. Touvron et al. (2023); Jiang et al. (2023, 2024);
    Yang et al. (2025).
    """
    options = llama_options(Path(folder) / CONFIG)
    path, tensors = read_weights(Path(folder))
    places = check_places(_places(options), path, tensors, UNUSED)
    return filled(lambda: DecoderOnly(**options), path, tensors, places, DTYPES)


def llama_options(path: Path) -> dict[str, Any]:
    """What DecoderOnly is told; heads of keys, if not given, are as many as those of queries."""
    config = Config(path)
    family = config.get("model_type", f"be one of {[*FORMATS]}", lambda name: name in [*FORMATS])
    config.fill("num_key_value_heads", lambda: config.size("num_attention_heads"))
    config.fill("head_dim", lambda: config.share("hidden_size", "num_attention_heads"))
    tied = config.switch("tie_word_embeddings", False)
    options = read_options(config, FORMATS[family])
    config.share("num_attention_heads", "num_key_value_heads")
    if options["d_head"] % 2:
        config.refuse("head_dim", "be even: RoPE turns pairs of features")
    if options.get("top_k", 0) > options.get("num_experts", 0):
        config.refuse("num_experts_per_tok", f"be at most {options['num_experts']}, all experts")
    options |= {"rope": _base(config, family), "window": _window(config, family)}
    options |= {"qk_norm": family == "qwen3", "tie_weights": tied}
    return options | {"pre_norm": True, "rms_norm": True, "gated": True, "bias": False}


def _base(config: Config, family: str) -> float:
    """The base of RoPE's speeds: rope_theta, which newer files keep in rope_parameters."""
    if (said := config.entries.get("rope_parameters")) is None:
        config.fill("rope_theta", lambda: BASES.get(family, 1e4))
    else:
        keys = {"rope_type", "rope_theta"}
        if not isinstance(said, dict) or {*said} != keys or said["rope_type"] != "default":
            config.refuse("rope_parameters", "hold rope_type 'default', rope_theta and no more")
        config.fill("rope_theta", lambda: said["rope_theta"])
        if config.entries["rope_theta"] != said["rope_theta"]:
            config.refuse("rope_theta", f"be {said['rope_theta']!r}, as in rope_parameters")
    needed = "be a number from 1 to 1e30"
    base = config.get("rope_theta", needed, lambda x: type(x) in (int, float) and 1 <= x <= 1e30)
    return float(base)  # 10**25 is a number in JSON, but no int64


def _window(config: Config, family: str) -> int | None:
    """How many tokens a query sees; None: all."""
    if family == "llama" or (family == "qwen3" and not _slides(config)):
        return None
    if family == "mixtral":
        config.entries.setdefault("sliding_window", None)  # Mistral's is 4096: better to be told
    if family != "qwen3" and config.entries.get("sliding_window", ...) is None:
        return None
    return config.size("sliding_window")


def _slides(config: Config) -> bool:
    """Whether each layer of a Qwen3 has a sliding window. Raises ValueError if only some have."""
    slides, n = config.switch("use_sliding_window", False), config.size("num_hidden_layers")
    if (kinds := config.entries.get("layer_types")) is not None:
        alike = isinstance(kinds, list) and len(kinds) == n and all(k == kinds[0] for k in kinds)
        if not alike or kinds[0] not in ("full_attention", "sliding_attention"):
            config.refuse("layer_types", f"name one kind of attention {n} times")
        if not slides and kinds[0] == "sliding_attention":
            config.refuse("use_sliding_window", "be True, as layer_types says")
        return kinds[0] == "sliding_attention"
    if not slides:
        return False
    needed = f"be 0 or at least num_hidden_layers = {n}: all layers are alike here"
    fits = config.get("max_window_layers", needed, lambda m: type(m) is int and (m == 0 or m >= n))
    return fits == 0  # so many layers, the first ones, see all


def _places(options: dict[str, Any]) -> Iterator[Place]:
    H, shared = options["num_heads"], options["num_kv_heads"]
    heads = {"W_q": H, "W_k": shared, "norm_q": 1, "norm_k": 1}  # what RoPE turns
    yield Place("model.embed_tokens.weight", ("tokens.weight",))
    for n in range(options["num_layers"]):
        for theirs, ours in _layer(options):
            name = f"layers.{n}.{ours}.weight"
            rope_heads = heads.get(ours.removeprefix("attention."))
            yield Place(f"model.layers.{n}.{theirs}.weight", (name,), rope_heads=rope_heads)
    yield Place("model.norm.weight", ("norm.weight",))
    if not options["tie_weights"]:
        yield Place(HEAD, ("output.weight",))


def _layer(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The parts of a layer: as they are called there, and as here."""
    yield from LAYER.items()
    if options["qk_norm"]:
        yield from QK_NORM.items()
    if "num_experts" not in options:
        for theirs, ours in FEED_FORWARD.items():
            yield f"mlp.{theirs}", f"feed_forward.{ours}"
        return
    yield "block_sparse_moe.gate", "feed_forward.router"
    for i in range(options["num_experts"]):
        for theirs, ours in EXPERT.items():
            yield f"block_sparse_moe.experts.{i}.{theirs}", f"feed_forward.experts.{i}.{ours}"
