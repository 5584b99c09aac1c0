"""How the queries and keys of a Llama turn by their places, as its config.json says."""

import math
from typing import Any

from helpers.pretrained.config import Config
from helpers.rotary import Rope

LENGTH = "original_max_position_embeddings"
# Of each rope_type: what must be said besides rope_theta, and what may be.
SAYS: dict[str, tuple[set[str], set[str]]] = {
    "default": (set(), set()),
    "linear": ({"factor"}, set()),
    "llama3": ({"factor", "low_freq_factor", "high_freq_factor"}, {LENGTH}),
    "yarn": ({"factor"}, {LENGTH, "beta_fast", "beta_slow", "attention_factor"}),
}


def rope_of(config: Config, kind: str) -> float | Rope:
    """The base of the speeds, or how they are slowed for longer texts.

    Newer files say it in rope_parameters, older ones in rope_theta and rope_scaling. Raises
    ValueError for what is not known here.
    """
    config.asked |= {"rope_parameters", "rope_scaling"}
    given = [name for name in ("rope_parameters", "rope_scaling")
             if config.entries.get(name) is not None]  # fmt: skip
    if len(given) == 2:
        config.refuse("rope_scaling", "be null beside rope_parameters")
    said = _said(config, given[0]) if given else {"rope_type": "default"}
    base = _base(config, kind, said, *given)
    if said["rope_type"] == "default":
        return base
    number = {name: _number(config, given[0], said, name) for name in said if name != "rope_type"}
    trained = number.get(LENGTH) or config.size("max_position_embeddings")
    match said["rope_type"]:
        case "linear":
            way = {}
        case "llama3":
            way = {"trained": trained, "least": number["low_freq_factor"],
                   "most": number["high_freq_factor"]}  # fmt: skip
        case "yarn":
            louder = number.get("attention_factor") or 0.1 * math.log(number["factor"]) + 1
            way = {"trained": trained, "least": number.get("beta_slow") or 1.0, "by_pairs": True,
                   "most": number.get("beta_fast") or 32.0, "louder": louder}  # fmt: skip
    try:
        return Rope(base, number["factor"], **way)
    except ValueError as error:
        config.refuse(given[0], f"fit: {error}")


def _said(config: Config, name: str) -> dict[str, Any]:
    """What one entry says of turning: a known rope_type, all that it needs, and no more."""
    said = config.entries[name]
    if not isinstance(said, dict):
        config.refuse(name, "be an object with a rope_type")
    said = {"rope_type" if key == "type" else key: value for key, value in said.items()}
    if (kind := said.get("rope_type")) not in [*SAYS]:
        config.refuse(name, f"hold one rope_type of {', '.join(SAYS)}")
    must, may = SAYS[kind]
    must = must | ({"rope_theta"} if name == "rope_parameters" else set())
    if not must <= {*said} - {"rope_type"} <= must | may | {"rope_theta"}:
        more = f", and perhaps {', '.join(sorted(may))}" * bool(may)
        config.refuse(name, f"hold {', '.join(['rope_type', *sorted(must)])}{more}, and no more")
    return said


def _base(config: Config, kind: str, said: dict[str, Any], *names: str) -> float:
    """rope_theta, which newer files keep in rope_parameters."""
    if "rope_theta" in said:
        config.fill("rope_theta", lambda _: said["rope_theta"])
        if config.entries["rope_theta"] != said["rope_theta"]:
            config.refuse("rope_theta", f"be {said['rope_theta']!r}, as in {names[0]}")
    config.fill("rope_theta", lambda _: {"mixtral": 1e6, "smollm3": 2e6}.get(kind, 1e4))
    needed = "be a number from 1 to 1e30"
    base = config.get("rope_theta", needed, lambda x: type(x) in (int, float) and 1 <= x <= 1e30)
    return float(base)  # 10**25 is a number in JSON, but no int64


def _number(config: Config, name: str, said: dict[str, Any], key: str) -> float | None:
    """One number of an entry, null where it may be absent."""
    value, may_be_null = said[key], key in SAYS[said["rope_type"]][1]
    if value is None and may_be_null:
        return None
    if type(value) not in (int, float) or not 0 < value <= 1e30:
        config.refuse(name, f"hold a positive number as {key}")
    return float(value)
