"""The reusable code of *Attention, step by step*: what the notebooks build, kept once.

Rooms, in the order of the course; each imports only those before it:

    given                                   checks of what a caller hands in
    text → attention → blocks → decoding    NumPy, every function as its formula
    cache → layers → models                 PyTorch modules of the same mathematics
    figures                                 pictures
    operations → anatomy → interventions    any model as named steps, and what is changed in them
    training                                a translator, from its sentences to its ablations
    pretrained                              MiniLM, GPT-2, Llama, loaded into the same layers

What draws, shows, checks and grades stands beside it, in `workshop`, which it never imports.
Importing this package loads none of them, and the NumPy rooms never load PyTorch.
"""

import sys
from importlib.abc import MetaPathFinder

__version__ = "0.1.0"


class _Moved(MetaPathFinder):
    """Tells an older notebook, which asks here for what is in the workshop now, to be renewed."""

    names = frozenset("checks colours drawings exercises mine shown stages widgets".split())

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        home, _, room = name.partition(".")
        if home == "helpers" and room in self.names:
            text = f"{name} is part of `workshop` now: take the newer version of this notebook."
            raise ImportError(text, name=name)


sys.meta_path.append(_Moved())
