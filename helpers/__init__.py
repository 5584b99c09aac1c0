"""The reusable code of *Attention, step by step*: what the notebooks build, kept once.

Rooms, in the order of the course; each imports only those before it:

    shapes                                  are arguments as the formulas need them?
    text → attention → blocks → decoding    NumPy, every function as its formula
    masks, rotary, cache → modern → layers → latent, adapters → models   PyTorch, the same
    inside                                  heads scored and switched off, activations patched
    training, writer                        a translator, its sentences and ablations; a writer
    translator                              a smaller one, kept, to look into
    pretrained                              MiniLM, GPT-2, Llama, loaded into the same layers

What draws, shows, checks and grades stands beside it, in `workshop`, which it never imports.
Importing this package loads none of them, and the NumPy rooms never load PyTorch.
"""

import sys
from importlib.abc import MetaPathFinder

__version__ = "0.1.0"


class _Moved(MetaPathFinder):
    """Tells an older notebook, which asks here for what is in the workshop now, to be renewed."""

    names = frozenset(
        "anatomy checks colours drawings exercises figures given interventions mine operations "
        "shown stages widgets".split()
    )

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        home, _, room = name.partition(".")
        if home == "helpers" and room in self.names:
            text = f"{name} is part of `workshop` now: take the newer version of this notebook."
            raise ImportError(text, name=name)


sys.meta_path.append(_Moved())
