"""Notebook 14: where a parameter of BERT's makers belongs in our model."""

from helpers.examples import PLACES
from workshop.exercises.exercise import Exercise

# ---------------------------------------------------------------- our_name


def our_name(name: str) -> str | None:
    """Our name of the parameter that BERT's makers call `name`; None if our model has no such one.

    PLACES says what the parts are called; those of a layer carry its number.
    """
    part, _, kind = name.rpartition(".")
    home = ""
    if part.startswith("encoder.layer."):
        _, _, n, part = part.split(".", 3)
        home = f"encoder.layers.{n}."
    return f"{home}{PLACES[part]}.{kind}" if part in PLACES else None


renaming = Exercise(
    our_name,
    notebook="14",
    level=2,
    minutes=10,
    task="Say how our model calls the parameter that its makers call `name`: "
    "`encoder.layer.3.attention.self.query.weight` becomes "
    "`encoder.layers.3.attention.W_q.weight`, and `embeddings.LayerNorm.bias` becomes "
    "`norm.bias`. The number of the layer stays, and so does the last word; `PLACES` translates "
    "the part between. (Careful: `attention.output.dense` ends like `output.dense`.) What is not "
    "in `PLACES` has no place with us: `None`. Such is `pooler.dense.weight`, of a last layer for "
    "`[CLS]` alone, through which the mean of the tokens never goes.",
    hints=(
        "Which three things does `encoder.layer.3.output.dense.bias` say, and which of them stays "
        "as it is?",
        'name.rpartition(".") cuts off the last word. What is left begins with "encoder.layer." '
        'or not. If it does, split(".", 3) gives two words, the number, and the part to look up.',
        '`part, _, kind = name.rpartition(".")`, in a layer `_, _, n, part = part.split(".", 3)` '
        'and `home = f"encoder.layers.{n}."`, elsewhere home is empty; then home, PLACES[part], a '
        "dot and the kind, if PLACES has that part.",
    ),
    backends=("numpy",),
)
renaming.answer("""
    from helpers.examples import PLACES

    def our_name(name):
        part, _, kind = name.rpartition(".")
        home = ""
        if part.startswith("encoder.layer."):
            _, _, n, part = part.split(".", 3)
            home = f"encoder.layers.{n}."
        return f"{home}{PLACES[part]}.{kind}" if part in PLACES else None
""")
renaming.answer("""
    from helpers.examples import PLACES

    def our_name(name):
        words = name.split(".")
        kind = words.pop()
        if words[:2] == ["encoder", "layer"]:
            start = "encoder.layers." + words[2] + "."
            words = words[3:]
        else:
            start = ""
        part = PLACES.get(".".join(words))
        if part is None:
            return None
        return start + part + "." + kind
""")
renaming.answer(
    """
    import re
    from helpers.examples import PLACES

    def our_name(name):
        found = re.fullmatch(r"(encoder\\\\.layer\\\\.\\\\d+\\\\.)?(.+)\\\\.(weight|bias)", name)
        if found is None or found[2] not in PLACES:
            return None
        start = (found[1] or "").replace("layer", "layers")
        return f"{start}{PLACES[found[2]]}.{found[3]}"
""".replace("\\\\", "\\")
)
renaming.answer("""
    from helpers.examples import PLACES

    def our_name(name):
        for theirs, ours in PLACES.items():
            for kind in ("weight", "bias"):
                end = f"{theirs}.{kind}"
                if name.endswith(end):
                    start = name[: len(name) - len(end)]
                    return start.replace("layer", "layers") + f"{ours}.{kind}"
        return None
""")
renaming.why(
    'name.rpartition(".") | words.pop() | kind | ("weight", "bias") | found[3]',
    "The last word says whether it is a weight or a bias, and is the same with them and with us.",
)
renaming.why(
    'part.startswith("encoder.layer.") | "encoder.layer." | words[:2] == ["encoder", "layer"] | '
    '["encoder", "layer"]',
    "Only the parts of a layer carry its number; the tables at the start are looked up as they "
    "are.",
)
renaming.why(
    'part.split(".", 3) | words[2] | words[3:] | n | found[1]',
    "The number of the layer may have two figures: split at the dots, and keep it as it is.",
)
renaming.why(
    'PLACES[part] | PLACES.get(".".join(words)) | PLACES[found[2]] | ours | part',
    "The whole part is looked up: attention.output.dense and output.dense are two.",
)
renaming.why(
    'f"encoder.layers.{n}." | "encoder.layers." | '
    'start.replace("layer", "layers") | (found[1] or "").replace("layer", "layers")',
    "Ours lie in a list called layers, inside the encoder.",
)
renaming.why(
    "part in PLACES | part is None | found[2] not in PLACES | None | return None",
    "What our model has no place for gets None, and is left out when the rest is loaded.",
)
for label, asked in (
    ("a query matrix", "encoder.layer.3.attention.self.query.weight"),
    ("a bias", "encoder.layer.0.attention.self.query.bias"),
    ("a key matrix", "encoder.layer.5.attention.self.key.weight"),
    ("the attention's output", "encoder.layer.1.attention.output.dense.weight"),
    ("the feed-forward's output", "encoder.layer.1.output.dense.weight"),
    ("the feed-forward's first bias", "encoder.layer.2.intermediate.dense.bias"),
    ("the norm after the attention", "encoder.layer.4.attention.output.LayerNorm.weight"),
    ("the norm after the feed-forward", "encoder.layer.4.output.LayerNorm.bias"),
    ("a layer with two figures", "encoder.layer.11.attention.self.value.weight"),
    ("the word table", "embeddings.word_embeddings.weight"),
    ("the positions", "embeddings.position_embeddings.weight"),
    ("the first norm", "embeddings.LayerNorm.bias"),
    ("the pooler", "pooler.dense.weight"),
    ("the pooler's bias", "pooler.dense.bias"),
    ("the numbers of the positions", "embeddings.position_ids"),
):
    renaming.probe(label, asked)


@renaming.mistake
def layer_kept(name):
    """The list of layers keeps their name, encoder.layer: with us it is encoder.layers, with an s.
    A strict load would find neither."""
    ours = our_name(name)
    return ours and ours.replace("encoder.layers.", "encoder.layer.")


@renaming.mistake
def encoder_left_out(name):
    """A part of a layer is named from layers on. In our model the layers lie inside the encoder:
    begin with encoder.layers."""
    ours = our_name(name)
    return ours and ours.removeprefix("encoder.")


@renaming.mistake
def one_figure(name):
    """The layer's number is read as a single figure, so that layer 11 becomes layer 1. Split at the
    dots, and take the whole number."""
    ours = our_name(name)
    return ours and ours.replace(".11.", ".1.")


@renaming.mistake
def kind_left_out(name):
    """The last word, weight or bias, is missing, so that both would get one name. Put it behind our
    name of the part."""
    ours = our_name(name)
    return ours and ours.rpartition(".")[0]


@renaming.mistake
def always_weight(name):
    """Each name ends in weight, also that of a bias. The last word stays as the makers wrote it:
    weight or bias."""
    ours = our_name(name)
    return ours and f"{ours.rpartition('.')[0]}.weight"


@renaming.mistake
def layers_alone(name):
    """The parts of the layers are renamed, and the tables at the start get None. PLACES has them
    too: look up what stands outside a layer as well."""
    return our_name(name) if name.startswith("encoder.") else None


@renaming.mistake
def names_without_a_place_kept(name):
    """What has no place in our model keeps its old name, and a strict load refuses it. Give None
    for it, so that it can be left out."""
    return our_name(name) or name


@renaming.mistake
def attention_output_mixed_up(name):
    """attention.output is taken for output, so that two parts get one name. Look up the whole part
    between the layer's number and the last word."""
    return our_name(name.replace("attention.output", "output"))
