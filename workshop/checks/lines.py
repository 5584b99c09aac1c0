"""What a probe saw as JSON, and back: nothing that is read back can run, whoever wrote it."""

import base64
from typing import Any

import numpy as np

from workshop.checks.compare import Opaque, Raised, TimedOut
from workshop.exercises.exercise import About, Untested

TAGGED = {cls.__name__: cls for cls in (Raised, Opaque, TimedOut, About, Untested)}


def pack(x: Any) -> Any:
    """A value that `sandbox.plain` made, as JSON has it."""
    if isinstance(x, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(x)).decode()
        return {"array": data, "dtype": x.dtype.str, "shape": x.shape}
    if isinstance(x, list):
        return [pack(value) for value in x]
    if isinstance(x, dict):
        return {"pairs": [[pack(key), pack(value)] for key, value in x.items()]}
    tag = type(x).__name__
    return {"tag": tag, "fields": vars(x)} if tag in TAGGED else x


def unpack(x: Any) -> Any:
    """The value back; ValueError for anything that `pack` would not make."""
    try:
        return _unpack(x)
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"no value of a probe: {str(x)[:80]}") from error


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
