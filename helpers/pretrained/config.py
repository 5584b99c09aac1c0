"""A config.json, checked: every entry is asked for, known to change nothing, or refused by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from helpers.pretrained.files import read_json

ACTIVATIONS = {  # theirs: ours
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
}
# Keys of a config.json that change nothing in the forward pass without dropout.
INERT = {
    *("model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "return_dict"),
    *("_name_or_path", "id2label", "label2id", "problem_type", "use_cache", "initializer_range"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "task_specific_params", "n_ctx"),
    *("tie_word_embeddings", "gradient_checkpointing", "chunk_size_feed_forward"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
    *("resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout"),
    *("summary_type", "summary_use_proj"),
    *("summary_activation", "summary_proj_to_labels", "summary_first_dropout"),
    *("output_attentions", "output_hidden_states", "_attn_implementation_autoset"),
}


@dataclass(frozen=True)
class Format:
    """How the config.json of one kind of model says what our layers are told."""

    model_type: str
    sizes: dict[str, str]  # ours: theirs
    activation: str
    eps: str
    needed: dict[str, Any]  # switches that must stand like this, if they are there at all
    known: frozenset[str] = frozenset()  # keys that its loader looks at, or that change nothing


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

    def switch(self, name: str, otherwise: bool) -> bool:
        """One entry that is true or false; `otherwise` if it is not there."""
        self.entries.setdefault(name, otherwise)
        return self.get(name, "be true or false", lambda x: isinstance(x, bool))

    def fill(self, name: str, otherwise: Callable[[], Any]) -> None:
        """Let one entry that is null or absent be what follows from others."""
        if self.entries.get(name) is None:
            self.entries[name] = otherwise()

    def share(self, whole: str, parts: str) -> int:
        """How many of `whole` each of `parts` gets; raises ValueError unless it comes out even."""
        if self.size(whole) % self.size(parts):
            self.refuse(parts, f"divide {whole} = {self.entries[whole]}")
        return self.entries[whole] // self.entries[parts]


def read_options(config: Config, form: Format) -> dict[str, Any]:
    """What our layers are told, once nothing in the config.json asks for anything else."""
    if config.entries.get("model_type") != form.model_type:
        config.refuse("model_type", f"be {form.model_type!r}")
    options = {ours: config.size(theirs) for ours, theirs in form.sizes.items()}
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
    known = INERT | {*form.needed, *form.sizes.values(), form.activation, form.eps} | form.known
    for name, value in config.entries.items():
        if value and name not in known:
            raise ValueError(
                f"{config.path}: {name} is {value!r}, an option that is not known here"
            )
