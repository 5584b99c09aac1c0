"""BERT: what its config.json says, and which of its tensors is which of our sentence encoder's."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from helpers.examples import PLACES
from helpers.pretrained.config import Config, Format, read_options
from helpers.pretrained.encoder import SentenceEncoder
from helpers.pretrained.files import CONFIG, fitting_tokenizer, read_weights
from helpers.pretrained.tensors import KINDS, Place, check_places, filled

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
UNUSED = r"embeddings\.position_ids|pooler\.dense\.(weight|bias)"
START = {theirs: ours for theirs, ours in PLACES.items() if theirs.startswith("embeddings.")}
LAYER = {theirs: ours for theirs, ours in PLACES.items() if theirs not in START}


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
    places = check_places(_places(options["num_layers"]), path, tensors, UNUSED)

    def make() -> SentenceEncoder:
        return SentenceEncoder(**options, tokenizer=tokenizer, max_tokens=max_tokens)

    return filled(make, path, tensors, places)


def bert_options(path: Path) -> dict[str, Any]:
    """What SentenceEncoder is told by the config.json at `path`."""
    config = Config(path)
    options = read_options(config, BERT)
    config.share("hidden_size", "num_attention_heads")
    return options


def _places(num_layers: int) -> Iterator[Place]:
    for theirs, ours in START.items():
        for kind in KINDS if ours == "norm" else KINDS[:1]:  # a table has no bias
            yield Place(f"{theirs}.{kind}", (f"{ours}.{kind}",))
    for n in range(num_layers):
        for (theirs, ours), kind in product(LAYER.items(), KINDS):
            name = f"encoder.layers.{n}.{ours}.{kind}"
            yield Place(f"encoder.layer.{n}.{theirs}.{kind}", (name,))
