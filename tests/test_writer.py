"""The model that writes: its text, its pieces, its kept parameters, what it is worth."""

import hashlib
import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from helpers import writer

KEPT = Path(writer.__file__).with_name(writer.KEPT)
TEXT = "the shop sells apple and the shop sells banana and the laptop"
keyboard = st.text(st.sampled_from(writer.CHARACTERS), max_size=60)


@pytest.fixture(scope="module")
def kept():
    return writer.load_writer()


def test_the_manual_is_prose_and_what_is_held_out_is_in_no_line_of_the_rest():
    learned, held_out = (set(writer.manual(held).split("\n")) for held in (False, True))
    assert not learned & held_out
    assert 0.05 < len(held_out) / len(learned | held_out) < 0.15
    for paragraph in learned | held_out:
        assert paragraph.isascii() and paragraph[-1] in ".:" and "::=" not in paragraph
        assert "  " not in paragraph and "\t" not in paragraph


@given(keyboard)
def test_cut_and_put_together_again(text):
    """By pieces that are joined from the most frequent neighbours."""
    few = writer.Pieces.learned("aab aab ab", len(writer.CHARACTERS) + 3)
    assert few.joined == [("a", "b"), ("a", "ab"), (" ", "aab")]
    pieces = writer.Pieces.learned(TEXT, len(writer.CHARACTERS) + 20)
    cut = pieces.encode(text)
    assert pieces.decode(cut.ids) == text == "".join(cut.tokens)
    assert [pieces[i] for i in cut.ids] == cut.tokens


def test_pieces_are_those_of_the_library(kept):
    """With the same pairs, `tokenizers` cuts each word of the held-out manual alike."""
    tokenizers = pytest.importorskip("tokenizers")
    _, pieces = kept
    numbers = {piece: i for i, piece in enumerate(pieces)}
    theirs = tokenizers.models.BPE(numbers, [tuple(pair) for pair in pieces.joined])
    for word in set(writer.WORD.findall(writer.manual(held_out=True))):
        assert [t.id for t in theirs.tokenize(word)] == pieces.encode(word).ids, word


def test_what_is_kept_is_small_whole_and_no_pickle(kept):
    """And packed again it is the same."""
    raw = KEPT.read_bytes()
    assert len(raw) <= 1_000_000 and hashlib.sha256(raw).hexdigest() == writer.DIGEST
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        assert all(arrays[name].dtype in (np.float16, np.uint8) for name in arrays.files)
    model, pieces = kept
    assert not model.training and model.tokens.weight is model.output.weight
    sizes = {"vocab_size": 512, "context_length": 96, "d_model": 96, "num_heads": 4, "d_ff": 384,
             "num_layers": 3}  # fmt: skip
    again, same = writer.unpacked(writer.packed(model, sizes, pieces))
    assert list(same) == list(pieces) and len(pieces) == 512
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


@pytest.mark.parametrize("change", [lambda raw: raw[:-1], lambda raw: raw[:900] + b"?" + raw[901:]])
def test_a_damaged_file_is_refused(monkeypatch, tmp_path, change):
    (tmp_path / writer.KEPT).write_bytes(change(KEPT.read_bytes()))
    monkeypatch.setattr(writer, "files", lambda _: tmp_path)
    with pytest.raises(ValueError, match=r"writer\.npz has SHA-256 .* damaged\?"):
        writer.load_writer()


def test_it_has_learned_more_than_counts_say(kept):
    """Held out: half a nat a piece below the table of pairs, and that below the counts."""
    model, pieces = kept
    learned, held_out = (pieces.encode(writer.manual(held)).ids for held in (False, True))
    counts = Counter(learned)
    share = np.array([counts[i] + 0.1 for i in range(len(pieces))])
    unigram = -np.log(share / share.sum())[held_out].mean()
    table = np.full((len(pieces), len(pieces)), 0.01)
    np.add.at(table, (learned[:-1], learned[1:]), 1)
    table /= table.sum(axis=1, keepdims=True)
    bigram = -np.log(table[held_out[:-1], held_out[1:]]).mean()
    end = (len(held_out) - 1) // 96 * 96  # in rows as long as the context
    rows, targets = torch.tensor(held_out[:end]).view(-1, 96), torch.tensor(held_out[1 : end + 1])
    with torch.no_grad():
        loss = F.cross_entropy(model(rows).flatten(0, 1), targets).item()
    assert loss < bigram - 0.5 < bigram < unigram
