"""BERT's and GPT-2's formats: what their config.json says, and which tensor is which of ours."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from helpers.models import DecoderOnly
from helpers.pretrained.encoder import SentenceEncoder
from helpers.pretrained.files import CONFIG, fitting_tokenizer, read_json, read_weights

ACTIVATIONS = {  # theirs: ours
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
# Keys of a config.json that change nothing in the forward pass without dropout.
INERT = {
    *("model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "return_dict"),
    *("_name_or_path", "id2label", "label2id", "problem_type", "use_cache", "initializer_range"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "task_specific_params", "n_ctx"),
    *("tie_word_embeddings", "gradient_checkpointing", "chunk_size_feed_forward"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
    *("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_type", "summary_use_proj"),
    *("summary_activation", "summary_proj_to_labels", "summary_first_dropout"),
    *("output_attentions", "output_hidden_states"),
}


def load_bert(folder: str | Path, *, max_tokens: int | None = None) -> SentenceEncoder:
    """Load a BERT checkpoint into our encoder, without dropout, ready for use.

    A sentence is cut after `max_tokens` tokens, by default where the positions end. Raises
    FileNotFoundError for a missing file; ValueError for a file that is damaged, a config.json that
    asks for what our layers do not do, and a tensor that is missing, surplus, misshapen, not
    float32 or not finite. Devlin et al. (2019).
    """
    folder = Path(folder)
    options = bert_options(folder / CONFIG)
    tokenizer = fitting_tokenizer(folder, options["vocab_size"])
    path, tensors = read_weights(folder)
    places = _checked(_bert_places(options["num_layers"]), path, tensors, BERT_UNUSED)
    with shapes_only():
        model = SentenceEncoder(**options, tokenizer=tokenizer, max_tokens=max_tokens)
    model.load_state_dict(_values(model, path, tensors, places), assign=True)
    return model.eval()


def load_gpt2(folder: str | Path) -> DecoderOnly:
    """Load a GPT-2 checkpoint into our DecoderOnly, without dropout, ready for use.

    The names of its tensors may begin with `transformer.` or not; `lm_head.weight` is the token
    table, unless config.json says otherwise. Raises as `load_bert` does. Radford et al. (2019).
    """
    options = gpt2_options(Path(folder) / CONFIG)
    path, tensors = read_weights(Path(folder))
    prefix = "transformer." if any(name.startswith("transformer.") for name in tensors) else ""
    places = _gpt2_places(prefix, options["num_layers"], options["tie_weights"])
    places = _checked(places, path, tensors, GPT2_UNUSED)
    with shapes_only():
        model = DecoderOnly(**options, pre_norm=True)
    values = _values(model, path, tensors, places)
    if options["tie_weights"]:
        values["output.weight"] = _tied(values["tokens.weight"], path, tensors)
    model.load_state_dict(values, assign=True)
    if options["tie_weights"]:
        model.output.weight = model.tokens.weight  # one parameter again
    return model.eval()


class _Undrawn(TorchFunctionMode):
    """Skip the start values: on the meta device the first random one costs PyTorch seconds."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)


@contextmanager
def shapes_only() -> Iterator[None]:
    """Within this, a new model has shapes but no values: no memory, and nothing is drawn.

    Its values come with `load_state_dict(…, assign=True)`.
    """
    with torch.device("meta"), _Undrawn():
        yield


# ---------------------------------------------------------------- config.json


@dataclass(frozen=True)
class Format:
    """How the config.json of one kind of model says what our layers are told."""

    model_type: str
    sizes: dict[str, str]  # ours: theirs
    activation: str
    eps: str
    needed: dict[str, Any]  # switches that must stand like this, if they are there at all


BERT = Format(
    model_type="bert",
    sizes={"vocab_size": "vocab_size", "context_length": "max_position_embeddings",
           "num_segments": "type_vocab_size", "d_model": "hidden_size",
           "num_heads": "num_attention_heads", "d_ff": "intermediate_size",
           "num_layers": "num_hidden_layers"},
    activation="hidden_act",
    eps="layer_norm_eps",
    needed={"position_embedding_type": "absolute", "is_decoder": False,
            "is_encoder_decoder": False, "add_cross_attention": False},
)  # fmt: skip
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


class Config:
    """A config.json, whose entries are checked when they are read."""

    def __init__(self, path: Path) -> None:
        self.path, self.entries = path, read_json(path)

    def get(self, name: str, needed: str, fits: Callable[[Any], bool]) -> Any:
        """One entry. Raises ValueError, with what is needed, if it is missing or does not fit."""
        if name not in self.entries:
            raise ValueError(f"{self.path}: {name} is missing")
        if not fits(self.entries[name]):
            self.refuse(name, needed)
        return self.entries[name]

    def refuse(self, name: str, needed: str) -> NoReturn:
        """Raise ValueError for one entry, with what is needed."""
        value = self.entries.get(name)
        raise ValueError(f"{self.path}: {name} is {value!r}, but must {needed}")

    def size(self, name: str) -> int:
        """One entry that is a positive whole number."""
        return self.get(name, "be a positive whole number", lambda n: type(n) is int and n >= 1)


def bert_options(path: Path) -> dict[str, Any]:
    """What SentenceEncoder is told by the config.json at `path`."""
    return _options(Config(path), BERT)


def gpt2_options(path: Path) -> dict[str, Any]:
    """What DecoderOnly is told; n_inner may be null or absent, and then is 4 n_embd."""
    config = Config(path)
    if config.entries.get("n_inner") is None:
        config.entries["n_inner"] = 4 * config.size("n_embd")
    config.entries.setdefault("tie_word_embeddings", True)
    tied = config.get("tie_word_embeddings", "be true or false", lambda x: isinstance(x, bool))
    return _options(config, GPT2) | {"tie_weights": tied}


def _options(config: Config, form: Format) -> dict[str, Any]:
    """What our layers are told, once nothing in the config.json asks for anything else."""
    if config.entries.get("model_type") != form.model_type:
        config.refuse("model_type", f"be {form.model_type!r}")
    options = {ours: config.size(theirs) for ours, theirs in form.sizes.items()}
    if options["d_model"] % options["num_heads"]:
        width = f"{form.sizes['d_model']} = {options['d_model']}"
        config.refuse(form.sizes["num_heads"], f"divide {width}")
    theirs = config.get(
        form.activation,
        f"be one of {[*ACTIVATIONS]}",
        lambda name: isinstance(name, str) and name in ACTIVATIONS,
    )
    eps = config.get(
        form.eps, "be a number between 0 and 1", lambda x: type(x) in (int, float) and 0 < x < 1
    )
    _check_switches(config, form)
    return options | {"activation": ACTIVATIONS[theirs], "eps": eps}


def _check_switches(config: Config, form: Format) -> None:
    for name, needed in form.needed.items():
        if config.entries.get(name, needed) != needed:
            config.refuse(name, f"be {needed!r}")
    known = INERT | {*form.needed, *form.sizes.values(), form.activation, form.eps}
    for name, value in config.entries.items():
        if value and name not in known:
            raise ValueError(
                f"{config.path}: {name} is {value!r}, an option that is not known here"
            )


# ---------------------------------------------------------------- tensors


class Place(NamedTuple):
    """One tensor of theirs, and which parameters of ours its rows are for, in turn."""

    theirs: str
    ours: tuple[str, ...]
    turned: bool = False  # (in, out) there, (out, in) in nn.Linear


KINDS = ("weight", "bias")
BERT_UNUSED = r"embeddings\.position_ids|pooler\.dense\.(weight|bias)"
BERT_START = {
    "word_embeddings.weight": "tokens.weight",
    "position_embeddings.weight": "positions.weight",
    "token_type_embeddings.weight": "segments.weight",
    "LayerNorm.weight": "norm.weight",
    "LayerNorm.bias": "norm.bias",
}
BERT_LAYER = {
    "attention.self.query": "attention.W_q",
    "attention.self.key": "attention.W_k",
    "attention.self.value": "attention.W_v",
    "attention.output.dense": "attention.W_o",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "feed_forward.W1",
    "output.dense": "feed_forward.W2",
    "output.LayerNorm": "norm2",
}
GPT2_UNUSED = r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias|lm_head\.weight"
GPT2_LAYER = {
    "ln_1": ("norm1",),
    "attn.c_attn": ("attention.W_q", "attention.W_k", "attention.W_v"),
    "attn.c_proj": ("attention.W_o",),
    "ln_2": ("norm2",),
    "mlp.c_fc": ("feed_forward.W1",),
    "mlp.c_proj": ("feed_forward.W2",),
}


def _bert_places(num_layers: int) -> Iterator[Place]:
    for theirs, ours in BERT_START.items():
        yield Place(f"embeddings.{theirs}", (ours,))
    for n, kind in product(range(num_layers), KINDS):
        for theirs, ours in BERT_LAYER.items():
            yield Place(
                f"encoder.layer.{n}.{theirs}.{kind}", (f"encoder.layers.{n}.{ours}.{kind}",)
            )


def _gpt2_places(prefix: str, num_layers: int, tied: bool) -> Iterator[Place]:
    yield Place(f"{prefix}wte.weight", ("tokens.weight",))
    yield Place(f"{prefix}wpe.weight", ("positions.weight",))
    for kind in KINDS:
        yield Place(f"{prefix}ln_f.{kind}", (f"norm.{kind}",))
    for n in range(num_layers):
        for (theirs, ours), kind in product(GPT2_LAYER.items(), KINDS):
            turned = kind == "weight" and not theirs.startswith("ln")
            names = tuple(f"layers.{n}.{name}.{kind}" for name in ours)
            yield Place(f"{prefix}h.{n}.{theirs}.{kind}", names, turned)
    if not tied:
        yield Place("lm_head.weight", ("output.weight",))


def _checked(
    places: Iterator[Place], path: Path, tensors: dict[str, Tensor], unused: str
) -> list[Place]:
    """The places, once each has its tensor and each tensor its place."""
    found = []
    for place in places:  # ends at the first that is missing, however many layers are asked for
        if place.theirs not in tensors:
            raise ValueError(f"{path}: the tensor {place.theirs} is missing")
        found.append(place)
    surplus = sorted(tensors.keys() - {place.theirs for place in found})
    surplus = [name for name in surplus if not re.fullmatch(unused, name)]
    if surplus:
        raise ValueError(f"{path}: the tensor {surplus[0]} has no place in the model")
    return found


def _values(
    model: nn.Module, path: Path, tensors: dict[str, Tensor], places: list[Place]
) -> dict[str, Tensor]:
    """What each parameter of ours becomes: a copy, which needs the file no longer."""
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    values = {}
    for place in places:
        first, *_ = parts = [shapes[name] for name in place.ours]
        shape = (sum(part[0] for part in parts), *first[1:])
        tensor = _tensor(path, tensors, place.theirs, shape[::-1] if place.turned else shape)
        rows = (tensor.T if place.turned else tensor).split([part[0] for part in parts])
        for name, part in zip(place.ours, rows, strict=True):
            values[name] = part.clone(memory_format=torch.contiguous_format)
    return values


def _tensor(path: Path, tensors: dict[str, Tensor], name: str, shape: tuple[int, ...]) -> Tensor:
    tensor = tensors[name]
    if tensor.dtype != torch.float32:
        raise ValueError(f"{path}: {name} has dtype {tensor.dtype}, but must have torch.float32")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{path}: {name} has shape {tuple(tensor.shape)}, but must have {shape}")
    if not tensor.isfinite().all():
        raise ValueError(f"{path}: {name} holds numbers that are not finite")
    return tensor


def _tied(table: Tensor, path: Path, tensors: dict[str, Tensor]) -> Tensor:
    """The token table, which lm_head.weight must equal if it is there."""
    if not torch.equal(tensors.get("lm_head.weight", table), table):
        raise ValueError(f"{path}: lm_head.weight is not the token table, but {CONFIG} ties them")
    return table
