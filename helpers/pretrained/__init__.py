"""Real weights in our own layers: the sentence encoder MiniLM-L6, GPT-2, and Llama with its kin.

A checkpoint is a folder as the `transformers` library writes it: config.json, the weights in
model.safetensors (or in several files with an index), tokenizer.json. A model comes back only after
every file was checked, every tensor found its place, and none was left over. Pickled weights
(pytorch_model.bin) can run code as soon as they are opened: they never are.
Needs `pip install "attention-step-by-step[pretrained]"`.
"""

INSTALL = 'pip install "attention-step-by-step[pretrained]"'
try:
    from helpers.pretrained.encoder import SentenceEncoder
    from helpers.pretrained.families import load_bert, load_gpt2, load_llama
    from helpers.pretrained.files import load_tokenizer
    from helpers.pretrained.hub import download_gpt2, load_minilm, minilm_folder
except ModuleNotFoundError as error:
    error.msg = f"{error.name} is not installed: {INSTALL}"
    raise

__all__ = ["SentenceEncoder", "download_gpt2", "load_bert", "load_gpt2", "load_llama",
           "load_minilm", "load_tokenizer", "minilm_folder"]  # fmt: skip
