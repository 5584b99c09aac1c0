"""The stages of the course, one list for all that speak of them: the map, the checks, the tests."""

from typing import NamedTuple


class Stage(NamedTuple):
    """One stage: the number of its notebook, its name on the map of the course, its title."""

    number: str
    name: str
    title: str


COURSE = (
    Stage("00", "prediction", "Predict the next word"),
    Stage("01", "one-hot", "One-hot vectors"),
    Stage("02", "qkv", "Queries, keys, values"),
    Stage("03", "scores", "Attention scores"),
    Stage("04", "scaling", "Scaling"),
    Stage("05", "softmax", "Softmax"),
    Stage("06", "masking", "Masking"),
    Stage("07", "dropout", "Dropout"),
    Stage("08", "multi-head", "Multi-head"),
    Stage("09", "positions", "Positional encoding"),
    Stage("10", "add-norm", "Add and norm"),
    Stage("11", "feed-forward", "Feed-forward"),
    Stage("12", "decoder", "Decoder prediction"),
    Stage("13", "training", "Train a translator"),
    Stage("14", "pretrained", "Real weights"),
)
STAGES = {stage.name: stage.number for stage in COURSE}
TITLES = {stage.number: stage.title for stage in COURSE}
