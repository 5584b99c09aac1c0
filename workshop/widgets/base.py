"""What all widgets share: checked arrays on their way to the browser, a picture, and its words."""

import base64
import json
import posixpath
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import anywidget
import numpy as np
import traitlets

from workshop.arguments import as_array, as_floats, as_labels, said
from workshop.figures import Picture
from workshop.widgets.traits import Text

LIMIT = 4_194_304  # numbers in one widget: 12 layers × 12 heads × 170 tokens, or 16 × 512 tokens
SIDE = 1024  # rows or columns of one matrix
SMALL = 128  # the same where all of it is looked at
EXACT = 4096  # arrays up to this size are saved as float32, larger ones in steps
MOST = 0.9  # bytes a number in the saved state: 64 tokens × 12 heads stay below 100 kB
FILES = files("workshop")
IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[a-z_./]+\.js)";\n', re.MULTILINE)


def module(name: str, joined: set[str] | None = None) -> str:
    """Read an ES module, by its path in the workshop, its imports replaced by the modules' texts.

    A notebook holds no files, so a saved widget carries its whole program; comments stay here.
    """
    joined = set() if joined is None else joined
    if name in joined:
        return ""
    joined.add(name)
    home = posixpath.dirname(name)
    text = (FILES / name).read_text("utf-8")
    text = IMPORT.sub(lambda x: module(posixpath.normpath(f"{home}/{x[1]}"), joined), text)
    text = re.sub(r"^export (?!default)|^ *(//.*|/\*\*.*\*/)?\n", "", text, flags=re.MULTILINE)
    return re.sub(r" // .*$", "", text, flags=re.MULTILINE)


def program(name: str, widget: str) -> str:
    """Pack an ES module for `_esm`: its joined text and styles, deflated, in one that inflates it.

    Saved it takes half the room, in base 85, whose signs need no escape in JSON, less than in 64;
    DecompressionStream is in all browsers since 2023.
    """
    text = re.sub("^ +", "", module(name), flags=re.MULTILINE)
    text += f"export const styles = {json.dumps(style(widget))};\n"
    packed = base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    return module("widgets/load.js").replace("PROGRAM", packed)


def style(widget: str) -> str:
    """Read a widget's styles: what all widgets share, then each part headed by this name."""
    shared, *parts = re.split(r"\n\n(?=/\*)", (FILES / "widgets/style.css").read_text("utf-8"))
    own = [part for part in parts if re.match(rf"/\*[^*:]*\b{widget}\b", part)]
    return re.sub(r"(/\*[^*]*\*/|\s)+", " ", "".join([shared, *own])).strip()


def visible(token: str, limit: int = 24) -> str:
    """Write a token in one line: line ends and tabs as signs, no control characters, shortened."""
    token = token.replace("\n", "⏎").replace("\t", "⇥")
    token = "".join(c if c.isprintable() or c in "\u200d\ufe0f" else "·" for c in token)
    return token if len(token) <= limit else token[: limit - 1] + "…"


def check_array(name: str, value: Any, *, masked: bool = False) -> np.ndarray:
    """Turn NumPy, PyTorch or lists into floats; `masked` admits −∞, nothing admits NaN.

    Raises ValueError for too many numbers, for others that are not finite in float32, and TypeError
    for what holds no numbers.
    """
    array = as_array(name, value)
    if array.size > LIMIT or (array.ndim > 1 and max(array.shape[-2:]) > SIDE):
        raise ValueError(
            f"{name} has shape {array.shape}, {array.size:,} numbers, but a widget carries at most "
            f"{LIMIT:,}, and at most {SIDE:,} rows and columns: pass fewer layers or tokens"
        )
    return as_floats(name, array, masked=masked)


def check_small(name: str, value: Any, axes: str, sides: str) -> np.ndarray:
    """Check a matrix that is shown whole, `axes` being its shape and `sides` what these are.

    Raises ValueError for another shape, or more numbers than are saved exactly.
    """
    array = check_array(name, value)
    if array.ndim != 2 or array.size > EXACT or max(array.shape) > SMALL:
        raise ValueError(
            f"{name} has shape {array.shape}, but must be {axes} with at most {EXACT:,} numbers "
            f"and at most {SMALL} {sides}"
        )
    return array


def check_sign(weights: np.ndarray, need: str) -> None:
    """Raise ValueError, with the first place and what is needed, for a weight below 0."""
    if (weights < 0).any():
        place = tuple(int(i) for i in np.argwhere(weights < 0)[0])
        found = f"{weights[place]:.4f} at {place}"
        raise ValueError(f"weights {weights.shape} has {found}, but weights are {need}")


def check_labels(name: str, labels: Sequence[Any] | None, count: int, of: str) -> list[str]:
    """Turn labels into strings, 1, 2, 3 … by default; ValueError unless there are `count`."""
    labels = as_labels(name, range(1, count + 1) if labels is None else labels)
    if len(labels) != count:
        raise ValueError(f"{name} has {len(labels)} entries, but {of} needs {count}")
    return labels


def pack(array: np.ndarray) -> dict[str, Any]:
    """Make an array ready to travel and to be saved: {"shape", "step", "bytes"}.

    Step 0 is float32. A larger array is rounded to whole steps, of 0.0001 where the numbers and
    the size allow, and deflated; −32768 stands for −∞. The exact numbers follow when asked for.
    """
    shape = list(array.shape)
    if array.size <= EXACT:
        return {"shape": shape, "step": 0, "bytes": array.astype("<f4").tobytes()}
    largest = np.abs(array, where=np.isfinite(array), out=np.zeros(shape)).max()
    step = 1e-4
    while largest / step > 32767 or _bytes_each(_halves(array, step)) > MOST:
        step *= 2
    data = zlib.compress(_halves(array, step).tobytes(), 6 if array.size < 200_000 else 1)
    return {"shape": shape, "step": step, "bytes": data}


def _halves(array: np.ndarray, step: float) -> np.ndarray:
    """Whole steps in 16 bits, (2, n): first all low bytes, then all high ones, to compress well."""
    whole = np.where(np.isfinite(array), np.rint(array / step), -32768).astype("<i2")
    return np.ascontiguousarray(whole.reshape(-1, 1).view(np.uint8).T)


def _bytes_each(halves: np.ndarray) -> float:
    """How many bytes a number takes when compressed: the entropy of its two bytes."""
    shares = [np.bincount(half, minlength=256) / half.size for half in halves]
    return sum(-(p[p > 0] * np.log2(p[p > 0])).sum() for p in shares) / 8


class Widget(anywidget.AnyWidget):
    """A picture to touch: arithmetic and drawing run in the browser, with or without a kernel.

    In a notebook its output also carries a static picture and its words, for GitHub, PDF and mail.
    A subclass sets `_esm = program("widgets/its.js", "Its")` and `picture()`.
    """

    _ipython_display_ = None  # in ipywidgets 7, Colab's, it would display without the picture
    words = Text().tag(sync=True)
    arrays = traitlets.Dict().tag(sync=True)

    def __init__(self, words: str, arrays: Mapping[str, np.ndarray], **traits: Any):
        super().__init__(**self.check(**traits))
        self.fill(words, arrays)
        self.on_msg(self._answer)

    def check(self, **values: Any) -> dict[str, Any]:
        """Values of traits as they are kept; ValueError or TypeError for one that no widget has."""
        own = {name: self.traits()[name] for name in values}
        rests = {name for name, x in values.items() if x is None and own[name].allow_none}
        return {name: x if name in rests else own[name].validate(self, x)
                for name, x in values.items()}  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except traitlets.TraitError:
            need = self.traits()[name].info()
            raise TypeError(f"{name} is {said(value)}, but must be {need}") from None

    def fill(self, words: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Show other arrays, and say what they are in words."""
        self._exact = {name: np.asarray(array, dtype="<f4") for name, array in arrays.items()}
        with self.hold_trait_notifications():
            self.words = words
            self.arrays = {name: pack(array) for name, array in arrays.items()}

    def picture(self) -> Picture:
        """Draw what a reader sees where no widget can run; its alt text is `words`."""
        raise NotImplementedError

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """The browser asks for the exact numbers of an array that was packed in steps."""
        if isinstance(message, dict) and message.get("exact") in self._exact:
            name = message["exact"]
            self.send({"exact": name}, [self._exact[name].tobytes()])

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        picture = self.picture()
        data |= {"image/png": base64.b64encode(picture.png).decode(), "text/plain": self.words}
        return data, metadata | {"image/png": {"alt": picture.alt, "width": picture.width}}
