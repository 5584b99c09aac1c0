"""Small checkpoints, written by `transformers`, and how tests damage them."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
import transformers

transformers.utils.logging.disable_progress_bar()

V = 41  # words of every decoder
_LLAMA = {"vocab_size": V, "max_position_embeddings": 40, "num_hidden_layers": 3,
          "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 20, "head_dim": 6,
          "intermediate_size": 13, "tie_word_embeddings": False, "rope_theta": 1e4}  # fmt: skip
LLAMAS = ("llama", "mistral", "qwen3", "mixtral", "smollm3")
DEEPSEEKS = ("deepseek_v2", "deepseek_v3")
SIZES = {
    "bert": {"vocab_size": 13, "hidden_size": 30, "num_hidden_layers": 3, "num_attention_heads": 5,
             "intermediate_size": 37, "max_position_embeddings": 11, "type_vocab_size": 3},
    "gpt2": {"vocab_size": V, "n_positions": 40, "n_embd": 12, "n_layer": 2, "n_head": 3,
             "n_inner": 20},
    **dict.fromkeys(LLAMAS, _LLAMA),
    "smollm3": _LLAMA | {"pad_token_id": None},  # theirs is behind so few words
    # The faster way wants rows of 16 bytes.
    "mixtral": _LLAMA | {"num_local_experts": 3, "num_experts_per_tok": 2,
                         "experts_implementation": "eager"},
    **dict.fromkeys(DEEPSEEKS, _LLAMA | {"num_key_value_heads": 4, "kv_lora_rank": 5, "head_dim": 4,
        "qk_nope_head_dim": 6, "v_head_dim": 6, "qk_rope_head_dim": 4,
        "first_k_dense_replace": 3}),
}  # fmt: skip


def write(folder: Path, kind: str, seed: int = 0, *, head: bool = True, shard: str = "1GB",
          **changes: Any):  # fmt: skip
    """Write a small checkpoint of this kind, without its head if so asked: transformers' model."""
    says = SIZES[kind] | {"attn_implementation": "eager"} | changes
    auto = transformers.AutoModel if kind == "bert" else transformers.AutoModelForCausalLM
    pooler = {"add_pooling_layer": head} if kind == "bert" else {}
    model = auto.from_config(transformers.AutoConfig.for_model(kind, **says), **pooler)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():  # gains around 1; what a map makes of size 1, has size 1.5
            start, std = (1, 0.3) if value.ndim == 1 else (0, 1.5 * value.shape[-1] ** -0.5)
            value.copy_(start + std * torch.randn(value.shape, generator=generator))
    (model if head else model.base_model).save_pretrained(folder, max_shard_size=shard)
    if kind == "bert":
        write_tokenizer(folder, ["a", "cat", "sat", "##s"])
    return model.eval()


def drawn(kind: str, seed: int) -> dict[str, Any]:
    """What a config.json of Llama or its kin says, drawn: nothing divides what it need not."""
    rng = np.random.default_rng([seed, LLAMAS.index(kind)])
    shared, group, half = rng.integers(1, 4, 3).tolist()
    H, window = shared * group, None if rng.random() < 0.4 else int(rng.integers(1, 9))
    says = {
        "num_attention_heads": H,
        "num_key_value_heads": shared,
        "head_dim": 2 * half,
        "hidden_size": H * int(rng.integers(2, 7)),
        "intermediate_size": int(rng.integers(5, 40)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "rope_theta": float(rng.choice([2.5, 100, 1e4, 1e6])),
        "rms_norm_eps": float(rng.choice([1e-6, 1e-5, 0.1])),
        "tie_word_embeddings": bool(rng.integers(2)),
    }
    says |= {} if kind == "llama" else {"sliding_window": window}
    if kind == "qwen3":
        more = {"max_window_layers": int(rng.integers(says["num_hidden_layers"] + 1))}
        says |= {"use_sliding_window": window is not None} | more
    if kind == "smollm3":
        places = rng.integers(2, size=says["num_hidden_layers"]).tolist()
        says |= {"use_sliding_window": window is not None, "no_rope_layers": places}
    if kind == "mixtral":
        experts = int(rng.integers(1, 6))
        top_k = int(rng.integers(1, experts + 1))
        says |= {"num_local_experts": experts, "num_experts_per_tok": top_k}
    return says


def write_tokenizer(folder: Path, words: list[str]) -> None:
    """Write a small tokenizer.json of BERT's kind."""
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))


@contextmanager
def rewritten(folder: Path) -> Iterator[dict[str, torch.Tensor]]:
    """`with rewritten(folder) as tensors:` lets the tensors of a checkpoint be changed."""
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    yield tensors
    save_file(tensors, path)


def change_config(folder: Path, **changes: Any) -> None:
    """Change keys of config.json; ... takes one out."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


def index_of(folder: Path) -> dict[str, str]:
    return json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]


def write_index(folder: Path, weight_map: Any) -> None:
    text = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text)


class Bomb:
    """A pickle that creates a file as soon as it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def near(ours: torch.Tensor, theirs: torch.Tensor, apart: float = 1e-4) -> bool:
    return ours.shape == theirs.shape and bool((ours - theirs).abs().max() < apart)


def same(model: torch.nn.Module, expected: dict[str, torch.Tensor]) -> bool:
    """Whether these are all parameters and buffers of the model, to the last bit."""
    found = model.state_dict()
    return found.keys() == expected.keys() and all(
        torch.equal(found[name], value) for name, value in expected.items()
    )
