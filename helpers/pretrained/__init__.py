"""Real weights in our own layers: the sentence encoder MiniLM-L6, GPT-2, and Llama with its kin.

A checkpoint is a folder as the `transformers` library writes it: config.json, the weights in
model.safetensors (or in several files with an index), tokenizer.json. A model comes back only after
every file was checked, every tensor found its place, and none was left over. Pickled weights
(pytorch_model.bin) can run code as soon as they are opened: they never are.
Needs `pip install "attention-step-by-step[pretrained]"`.
"""

INSTALL = 'pip install "attention-step-by-step[pretrained]"'
try:
    import safetensors.torch  # noqa: F401
    import tokenizers  # noqa: F401

    from helpers.pretrained.bert import load_bert
    from helpers.pretrained.encoder import SentenceEncoder, mean_vector
    from helpers.pretrained.files import load_tokenizer
    from helpers.pretrained.gpt2 import load_gpt2
    from helpers.pretrained.hub import download_gpt2, load_minilm, minilm_folder
    from helpers.pretrained.llama import load_llama
    from helpers.pretrained.tensors import shapes_only
except ModuleNotFoundError as error:
    error.msg = f"{error.name} is not installed: {INSTALL}"
    raise

__all__ = ["SentenceEncoder", "download_gpt2", "load_bert", "load_gpt2", "load_llama",
           "load_minilm", "load_tokenizer", "mean_vector", "minilm_folder",
           "shapes_only"]  # fmt: skip
