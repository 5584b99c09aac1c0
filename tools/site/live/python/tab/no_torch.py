"""PyTorch does not run in a browser: its names can be imported, and say so when they are used.

Nothing named torch comes into `sys.modules`: whoever looks there finds that it is not loaded.
"""

import builtins
import sys
from typing import Any

QUIET = ("torch.set_num_threads", "torch.manual_seed")  # in front of cells that need no more
real_import = builtins.__import__


class NeedsTorch(Exception):
    """A cell that uses PyTorch."""

    def __init__(self, name: str) -> None:
        self.missing = name
        super().__init__(f"{name} needs PyTorch, which does not run in a browser")


class Missing:
    """A name of PyTorch, or of what is made of it: to use it says what is missing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "Missing":
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> None:
        if self._name not in QUIET:
            raise NeedsTorch(self._name)

    __mro_entries__ = __neg__ = __iter__ = __enter__ = __call__

    def __instancecheck__(self, _: Any) -> bool:
        return False

    def __or__(self, _: Any) -> "Missing":  # in the types of a signature
        return self

    __ror__ = __getitem__ = __or__


def importing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (),
              level: int = 0) -> Any:  # fmt: skip
    """`import`, but of PyTorch, and of rooms of the course that are made of it."""
    if level == 0 and is_torch(name):
        return Missing(name if fromlist else "torch")
    try:
        return real_import(name, globals, locals, fromlist, level)
    except (NeedsTorch, ModuleNotFoundError) as error:
        is_there = getattr(error, "name", "") != name  # but what it is made of is not
        if not (name.startswith("helpers.") and fromlist and is_there):
            raise
        return Missing(name)


def is_torch(name: str) -> bool:
    return name.split(".")[0] in ("torch", "transformers")


class Finder:
    """For `import_module`, the same words."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if is_torch(name):
            raise NeedsTorch(name)


def install() -> None:
    """From here on, every import asks here first."""
    builtins.__import__ = importing
    sys.meta_path.insert(0, Finder)
