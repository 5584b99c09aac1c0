"""Observations as lines of JSON, and back: nothing that is read back can run."""

import base64
import json
from typing import Any

import numpy as np

from workshop.checks.compare import Opaque, Raised, TimedOut
from workshop.checks.sandbox import Observation
from workshop.exercises.exercise import About, Untested

TAGGED = {cls.__name__: cls for cls in (Raised, Opaque, TimedOut, About, Untested)}


def pack(observation: Observation) -> bytes:
    """Write an observation as one line of JSON."""
    notes = [list(observation.changed), list(observation.remarks)]
    return json.dumps([_pack(observation.value), *notes]).encode()


def unpack(line: bytes) -> Observation:
    """Read an observation; ValueError for anything that `pack` would not write."""
    try:
        value, *notes = json.loads(line)
        changed, remarks = (tuple(map(str, texts)) for texts in notes)
        return Observation(_unpack(value), changed, remarks)
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"not an observation: {line[:80]!r}") from error


def _pack(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(x)).decode()
        return {"array": data, "dtype": x.dtype.str, "shape": x.shape}
    if isinstance(x, list):
        return [_pack(value) for value in x]
    if isinstance(x, dict):
        return {"pairs": [[_pack(key), _pack(value)] for key, value in x.items()]}
    tag = type(x).__name__
    return {"tag": tag, "fields": vars(x)} if tag in TAGGED else x


def _unpack(x: Any) -> Any:
    if isinstance(x, list):
        return [_unpack(value) for value in x]
    if not isinstance(x, dict):
        return x
    if "array" in x:
        dtype = np.dtype(x["dtype"])
        if dtype.kind not in "biuf":
            raise ValueError(f"dtype is {dtype}, but must be of numbers or truth values")
        return np.frombuffer(base64.b64decode(x["array"]), dtype).reshape(x["shape"])
    if "pairs" in x:
        return {_unpack(key): _unpack(value) for key, value in x["pairs"]}
    return TAGGED[x["tag"]](**x["fields"])
