"""A config.json, checked: every entry is asked for, known to change nothing, or refused by name."""

from collections.abc import Callable, Collection
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
# Switches that must stand like this, if they are there at all.
NEEDED = {
    **dict.fromkeys(["is_decoder", "is_encoder_decoder", "add_cross_attention"], False),
    **dict.fromkeys(["scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"], False),
    **dict.fromkeys(["attention_bias", "mlp_bias"], False),
    **{"scale_attn_weights": True, "position_embedding_type": "absolute"},
}
# Keys that change nothing in the forward pass without dropout.
INERT = {
    *("model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "return_dict"),
    *("_name_or_path", "id2label", "label2id", "problem_type", "use_cache", "initializer_range"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "task_specific_params", "n_ctx"),
    *("tie_word_embeddings", "gradient_checkpointing", "chunk_size_feed_forward"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
    *("resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout"),
    *("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels"),
    *("summary_first_dropout", "output_attentions", "output_hidden_states"),
    *("_attn_implementation_autoset", "pretraining_tp", "is_llama_config"),
    *("output_router_logits", "router_aux_loss_coef", "router_jitter_noise"),  # for training
}


class Config:
    """A config.json, whose entries are checked when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self.entries, self.asked = path, read_json(path), set[str]()

    def get(self, name: str, needed: str, fits: Callable[[Any], bool]) -> Any:
        """One entry. Raises ValueError, with what is needed, if it is missing or does not fit."""
        self.asked.add(name)
        if name not in self.entries or not fits(self.entries[name]):
            self.refuse(name, needed)
        return self.entries[name]

    def refuse(self, name: str, needed: str) -> NoReturn:
        """Raise ValueError for one entry, with what is needed."""
        found = repr(self.entries[name]) if name in self.entries else "missing"
        raise ValueError(f"{self.path}: {name} is {found}, but must {needed}")

    def word(self, name: str, words: Collection[str]) -> str:
        """One entry that is one of these words."""
        needed = "be " + " or ".join(map(repr, words))
        return self.get(name, needed, lambda word: word in [*words])  # a list asks for no hash

    def read(self, option: str, name: str) -> Any:
        """One entry, as what this option of our models must be: of most, a size."""
        match option:
            case "activation":
                return ACTIVATIONS[self.word(name, ACTIVATIONS)]
            case "eps":
                between = "be a number between 0 and 1"
                return self.get(name, between, lambda x: type(x) in (int, float) and 0 < x < 1)
            case "tie_weights":
                return self.switch(name)
        return self.size(name)

    def size(self, name: str) -> int:
        """One entry that is a positive whole number."""
        return self.get(name, "be a positive whole number", lambda n: type(n) is int and n >= 1)

    def switch(self, name: str) -> bool:
        """One entry that is true or false."""
        return self.get(name, "be true or false", lambda x: isinstance(x, bool))

    def fill(self, name: str, otherwise: Callable[["Config"], Any]) -> None:
        """Let one entry that is null or absent be what follows from others."""
        if self.entries.get(name) is None:
            self.entries[name] = otherwise(self)

    def share(self, whole: str, parts: str) -> int:
        """How many of `whole` each of `parts` gets; raises ValueError unless it comes out even."""
        if self.size(whole) % self.size(parts):
            self.refuse(parts, f"divide {whole} = {self.entries[whole]}")
        return self.entries[whole] // self.entries[parts]

    def check_rest(self) -> None:
        """Raise ValueError for an entry that nothing asked for, unless it changes nothing here."""
        for name, value in self.entries.items():
            if name in NEEDED and value != NEEDED[name]:
                self.refuse(name, f"be {NEEDED[name]!r}")
            if value and name not in self.asked | INERT | NEEDED.keys():
                what = f"{name} is {value!r}, an option that is not known here"
                raise ValueError(f"{self.path}: {what}")
