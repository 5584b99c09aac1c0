"""GPT-2: what its config.json says, and which of its tensors is which of our DecoderOnly's."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from helpers.models import DecoderOnly
from helpers.pretrained.config import Config, Format, read_options
from helpers.pretrained.files import CONFIG, read_weights
from helpers.pretrained.tensors import HEAD, KINDS, Place, check_places, filled

GPT2 = Format(
    model_type="gpt2",
    sizes={"vocab_size": "vocab_size", "context_length": "n_positions", "d_model": "n_embd",
           "num_heads": "n_head", "d_ff": "n_inner", "num_layers": "n_layer"},
    activation="activation_function",
    eps="layer_norm_epsilon",
    needed={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
            "reorder_and_upcast_attn": False, "is_encoder_decoder": False,
            "add_cross_attention": False},
)  # fmt: skip
UNUSED = r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias|lm_head\.weight"
LAYER = {
    "ln_1": ("norm1",),
    "attn.c_attn": ("attention.W_q", "attention.W_k", "attention.W_v"),
    "attn.c_proj": ("attention.W_o",),
    "ln_2": ("norm2",),
    "mlp.c_fc": ("feed_forward.W1",),
    "mlp.c_proj": ("feed_forward.W2",),
}


def load_gpt2(folder: str | Path) -> DecoderOnly:
    """Load a GPT-2 checkpoint into our DecoderOnly, without dropout, ready for use.

    The names of its tensors may begin with `transformer.` or not; `lm_head.weight` is the token
    table, unless config.json says otherwise. Raises as `load_bert` does. Radford et al. (2019).
    """
    options = gpt2_options(Path(folder) / CONFIG)
    path, tensors = read_weights(Path(folder))
    prefix = "transformer." if any(name.startswith("transformer.") for name in tensors) else ""
    places = _places(prefix, options["num_layers"], options["tie_weights"])
    places = check_places(places, path, tensors, UNUSED)
    return filled(lambda: DecoderOnly(**options, pre_norm=True), path, tensors, places)


def gpt2_options(path: Path) -> dict[str, Any]:
    """What DecoderOnly is told; n_inner may be null or absent, and then is 4 n_embd."""
    config = Config(path)
    config.fill("n_inner", lambda: 4 * config.size("n_embd"))
    tied = config.switch("tie_word_embeddings", True)
    options = read_options(config, GPT2) | {"tie_weights": tied}
    config.share("n_embd", "n_head")
    return options


def _places(prefix: str, num_layers: int, tied: bool) -> Iterator[Place]:
    yield Place(f"{prefix}wte.weight", ("tokens.weight",))
    yield Place(f"{prefix}wpe.weight", ("positions.weight",))
    for kind in KINDS:
        yield Place(f"{prefix}ln_f.{kind}", (f"norm.{kind}",))
    for n in range(num_layers):
        for (theirs, ours), kind in product(LAYER.items(), KINDS):
            turned = kind == "weight" and not theirs.startswith("ln")
            names = tuple(f"layers.{n}.{name}.{kind}" for name in ours)
            yield Place(f"{prefix}h.{n}.{theirs}.{kind}", names, turned)
    if not tied:
        yield Place(HEAD, ("output.weight",))
