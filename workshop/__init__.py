"""The workshop of *Attention, step by step*: what draws, shows, touches, checks and grades.

    from workshop import check, hint, show, matrix, Machine, predict

This is its one door; a name behind it is loaded when it is first asked for. Rooms, each of which
imports only `helpers`, which never imports it, and the rooms before it:

    course, colours, tables     titles of the notebooks and what they ask; one colour for each thing
    arguments                   what a caller hands in, checked by name
    figures, drawings           pictures; attention drawn from its arrays
    training_charts             the loss while a model learns, and what each training came to
    widgets                     attention to touch, in the browser
    machine                     a whole model to touch: a program of named steps, and its page
    exercises, checks           what to write, and what says which mistake was made
    mine                        your functions where they are right, else the course's
    classroom                   a folder of learners' notebooks, graded
"""

from importlib import import_module
from typing import Any

_DOOR = {
    "workshop.checks": "check hint progress solution",
    "workshop.drawings": "arrows_between arrows_of_scores clock_hands cut_into_heads flow "
    "head holes mask_over matrix moved pick_row plane product river split_qkv writing",
    "workshop.tables": "show",
    "workshop.training_charts": "live_loss spread",
    "workshop.machine.machine": "Machine",
    "workshop.machine.steps": "feed_forward_step next_word_step norm_step positions_step "
    "softmax_step",
    "workshop.widgets": "AttentionHeatmap DropoutLab predict",
    "workshop.figures": "INK Picture bars canvas curves",
    "workshop.arguments": "number",
}
_HOMES = {name: room for room, names in _DOOR.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"workshop has no {name!r}; it offers {', '.join(__all__)}")
    globals()[name] = found = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
