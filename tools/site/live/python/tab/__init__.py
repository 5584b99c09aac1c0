"""What a page's Python needs beside the course: a shell for cells, outputs, and words for PyTorch.

IPython and anywidget, in the folder above, are as much of these as the course uses. The worker
imports this once, and then tells `hear` what the page says.
"""

import json
import logging
import traceback
import warnings
from importlib import import_module

from tab import no_torch
from tab.outputs import WIDGETS, post
from tab.shell import shell

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # fonts that packages.zip leaves out
warnings.filterwarnings("ignore", "Unable to import Axes3D")
no_torch.install()
for room in ("IPython", "workshop.checks", "workshop.drawings", "workshop.widgets"):
    import_module(room)  # what every page uses
answers = import_module("tab.answers")


def hear(text: str) -> None:
    """What the page says, as JSON: run a cell, or set or tell a widget of one."""
    told = json.loads(text)
    if told["do"] == "run":
        answers.lay(told["files"])
        how = shell.run(told["source"], told["id"])
        post("done", how=how, files=answers.there())
        return
    try:
        getattr(WIDGETS[told["model"]], f"tab_{told['do']}")(told["told"])
    except Exception:  # what its own checks refuse ends nothing, as in a notebook
        traceback.print_exc()
