"""A small model that writes: Python's own manual to learn from, pieces of words, kept parameters.

    manual       the prose of this Python's manual: what is learned from, or what is held out
    Pieces       byte-pair encoding: a text cut into frequent pieces, and put together again
    load_writer  the model that `make writer` has trained, kept in the package, with its pieces

The manual differs a little from one Python to the next, and with it every loss measured on it.
"""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pydoc_data.topics import topics
from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch

from helpers.models import DecoderOnly

KEPT = "writer.npz"
# The SHA-256 of that file, which `make writer` writes here.
DIGEST = "fdedf842a013ce7ff01457bd8614131acf4c670d5769ab1c98700fec072af0e7"
CHARACTERS = ["\n", *map(chr, range(ord(" "), ord("~") + 1))]  # of every keyboard
PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "—": "-", "–": "-", "…": "..."})
NO_PROSE = re.compile(r"::=|^\s*(?:[|>.]|\*\*\*|===|---|~~~|\+--)", re.MULTILINE)
WORD = re.compile(r" ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9\s]+|\s")


def manual(held_out: bool = False) -> str:
    """The prose of this Python's manual, a paragraph a line: no code, tables or headings.

    What `help("for")` and the like print, each paragraph once; a tenth of the paragraphs is held
    out, chosen by their own bytes, so that they are the same ones in every Python.
    """
    blocks = [block for name in sorted(topics) for block in re.split(r"\n\s*\n", topics[name])]
    paragraphs = [re.sub(r"\s+", " ", b.translate(PLAIN)).strip() for b in blocks if _is_prose(b)]
    chosen = (p for p in dict.fromkeys(paragraphs) if (crc32(p.encode()) % 10 == 0) == held_out)
    return "\n".join(chosen)


def _is_prose(block: str) -> bool:
    """Whether a block of the manual is a sentence or more, in characters of every keyboard."""
    words = block.translate(PLAIN).strip()
    whole = words[:1].isupper() or words[:1] in '"*('
    return bool(whole and words.isascii() and words.endswith((".", ":")) and words.count(" ") > 5
                and not NO_PROSE.search(block))  # fmt: skip


class Cut(NamedTuple):
    """A text in pieces: their numbers, and what each says."""

    ids: list[int]
    tokens: list[str]


class Pieces(Sequence[str]):
    """The pieces that texts are cut into: characters, and pairs joined again and again.

    `pieces.encode(text).ids` are the numbers of a text's pieces, `pieces.decode(ids)` is the text;
    `pieces[i]` is one piece. Sennrich et al. (2016), section 3.2.
    """

    def __init__(self, joined: Iterable[tuple[str, str]]) -> None:
        self.joined = [(a, b) for a, b in joined]
        self._rank = {pair: rank for rank, pair in enumerate(self.joined)}
        self._pieces = [*CHARACTERS, *(a + b for a, b in self.joined)]
        self._number = {piece: i for i, piece in enumerate(self._pieces)}
        self._cut = cache(self._join_up)  # a text has few different words

    @classmethod
    def learned(cls, text: str, count: int) -> "Pieces":
        """Join the most frequent pair of neighbours in a text until there are `count` pieces.

        Raises ValueError if that is fewer than there are characters, or no pair is left.
        """
        if count < len(CHARACTERS):
            raise ValueError(f"count is {count}, but must be at least {len(CHARACTERS)}")
        words = Counter(WORD.findall(text))
        cuts = {word: [*word] for word in words}
        joined: list[tuple[str, str]] = []
        while len(CHARACTERS) + len(joined) < count:
            joined.append(_most_frequent(cuts, words))
            for word, cut in cuts.items():
                cuts[word] = _join(cut, joined[-1])
        return cls(joined)

    def encode(self, text: str) -> Cut:
        """Cut a text into pieces. Raises ValueError for a character that no piece has."""
        if strange := sorted(set(text) - set(CHARACTERS)):
            raise ValueError(f"text has {strange[0]!r}, which is in none of the pieces")
        tokens = [piece for word in WORD.findall(text) for piece in self._cut(word)]
        return Cut([self._number[piece] for piece in tokens], tokens)

    def decode(self, ids: Iterable[int]) -> str:
        """Put pieces together. Raises ValueError for a number that no piece has."""
        ids = [int(i) for i in ids]
        if wrong := [i for i in ids if not 0 <= i < len(self)]:
            raise ValueError(f"ids has {wrong[0]}, but there are {len(self)} pieces, from 0")
        return "".join(self._pieces[i] for i in ids)

    def __getitem__(self, i: int) -> str:
        return self._pieces[i]

    def __len__(self) -> int:
        return len(self._pieces)

    def _join_up(self, word: str) -> list[str]:
        """A word's pieces: of its pairs, the one learned first is joined first."""
        cut = [*word]
        while known := [pair for pair in pairwise(cut) if pair in self._rank]:
            cut = _join(cut, min(known, key=self._rank.__getitem__))
        return cut


def _most_frequent(cuts: dict[str, list[str]], words: Counter[str]) -> tuple[str, str]:
    """The pair of neighbours that occurs most often; of several, the first in the alphabet."""
    counts: Counter[tuple[str, str]] = Counter()
    for word, cut in cuts.items():
        for pair in pairwise(cut):
            counts[pair] += words[word]
    if not counts:
        raise ValueError("text has no pair of neighbours left to join")
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _join(cut: list[str], pair: tuple[str, str]) -> list[str]:
    """The pieces of a word with a pair of neighbours made one."""
    made: list[str] = []
    for piece in cut:
        if made and (made[-1], piece) == pair:
            made[-1] += piece
        else:
            made.append(piece)
    return made


def load_writer() -> tuple[DecoderOnly, Pieces]:
    """The model that `make writer` trained on the manual, ready to write, and its pieces.

    A `DecoderOnly` of 3 pre-norm layers with 4 heads. Its parameters are kept in half precision,
    never as a pickle. Raises ValueError if the file is not the one that was kept.
    """
    raw = files("helpers").joinpath(KEPT).read_bytes()
    if (found := hashlib.sha256(raw).hexdigest()) != DIGEST:
        raise ValueError(f"{KEPT} has SHA-256 {found[:8]}…, but must have {DIGEST[:8]}…: damaged?")
    return unpacked(raw)


def packed(model: DecoderOnly, sizes: dict[str, int], pieces: Pieces) -> bytes:
    """A model and its pieces as the bytes of an .npz file, in half precision."""
    state = {name: value.half().numpy() for name, value in model.state_dict().items()}
    del state["output.weight"]  # the table of tokens once more
    said = json.dumps({"sizes": sizes, "joined": pieces.joined}).encode()
    np.savez_compressed(file := io.BytesIO(), said=np.frombuffer(said, np.uint8), **state)
    return file.getvalue()


def unpacked(raw: bytes) -> tuple[DecoderOnly, Pieces]:
    """What `packed` made into bytes. Raises ValueError for other bytes."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as kept:
        state = {name: kept[name] for name in kept.files}
    said = json.loads(state.pop("said").tobytes())
    model = empty_writer(**said["sizes"])
    numbers = {name: torch.from_numpy(value).float() for name, value in state.items()}
    model.load_state_dict(numbers | {"output.weight": numbers["tokens.weight"]})
    return model.eval(), Pieces(said["joined"])


def empty_writer(dropout: float = 0.0, **sizes: int) -> DecoderOnly:
    """The model before it has learned: as GPT-2's, small. Radford et al. (2019)."""
    options = {"pre_norm": True, "activation": "gelu_tanh", "dropout": dropout}
    return DecoderOnly(**sizes, tie_weights=True, **options)
