"""Make everything ready for the first cell; the worker imports this once."""

import logging
import os
import warnings
from importlib import import_module

from tab import no_torch

os.environ["MPLCONFIGDIR"] = "/tmp"
logging.getLogger("matplotlib").setLevel(logging.ERROR)  # fonts that packages.zip leaves out
warnings.filterwarnings("ignore", "Unable to import Axes3D")
no_torch.install()
for room in ("IPython", "workshop.checks", "workshop.drawings", "workshop.widgets"):
    import_module(room)  # what every page uses
