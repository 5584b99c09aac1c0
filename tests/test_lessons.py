"""Lesson and library never part: what a notebook builds equals the helper of the same name."""

import ast
import inspect
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from lessons import EVERY, FOLDER, cells, folded_code, is_stub, tree

from helpers import adapters, attention, blocks, cache, decoding, layers, models, text, training

DATA = json.loads((Path(__file__).parent / "data" / "contract_stages.json").read_text("utf-8"))
STAGES = {name: stage for stage, names in DATA.items() for name in names.split()}
ROOMS = {name: getattr(room, name) for room in (text, attention, blocks, decoding) for name in
         dir(room) if inspect.isfunction(getattr(room, name)) and not name.startswith("_")
         and getattr(room, name).__module__ == room.__name__}  # fmt: skip
ROOMS |= {name: getattr(training, name) for name in ("lm_pairs", "combined_mask")}
LOOPS = {"train", "evaluate"}  # of helpers.training, in PyTorch
MODULES = {name: cls for room in (adapters, cache, layers, models)
           for name, cls in vars(room).items()
           if inspect.isclass(cls) and cls.__module__ == room.__name__}  # fmt: skip


def rng():
    return np.random.default_rng(7)


def draw(*shapes):
    generator = rng()
    return [generator.normal(size=shape) for shape in shapes]


def layer_parameters(cross=False):
    generator, names = rng(), ("W_q", "W_k", "W_v", "W_o")

    def attn():
        return {n: generator.normal(size=(6, 6)) / math.sqrt(6) for n in names} | {"num_heads": 2}

    p = {f"norm{i}": (generator.normal(size=6), generator.normal(size=6)) for i in (1, 2, 3)}
    shapes = {"W1": (6, 9), "b1": (9,), "W2": (9, 6), "b2": (6,)}
    p["ffn"] = {n: generator.normal(size=s) for n, s in shapes.items()}
    return p | ({"self": attn(), "cross": attn()} if cross else {"attn": attn()})


SENTENCES = ["you win or you die", "you play the game"]
VOCAB = text.build_vocab(SENTENCES)
IDS = np.array([[1, 4, 2, 0], [3, 3, 0, 0], [5, 1, 1, 2]])
X, MEMORY = draw((3, 4, 6), (3, 5, 6))
SQUARE = draw((6, 6), (6, 6), (6, 6), (6, 6))
SCORES = 3 * draw((3, 4, 5))[0]
HUGE = np.array([[1000.0, -1000.0, 3.0], [0.0, 1.0, -1000.0]])
MASK = rng().random((3, 4, 5)) < 0.5
FULL = MASK | (np.arange(5) == 1)
LOGITS = 2 * draw((7,))[0]


def next_id(ids):
    return np.eye(9)[(np.array(ids) * 2 + 1) % 9]


# The inputs on which lesson and helper must agree: shapes that differ, batches of different rows.
INPUTS = {
    "tokenize": [("The enemy won't wait, or die!",), ("The End", False)],
    "build_vocab": [(SENTENCES,)],
    "encode": [(["die", "or", "win"], VOCAB)],
    "decode": [([3, 0, 1], VOCAB)],
    "bigram_probs": [(SENTENCES, VOCAB), (SENTENCES, VOCAB, 0.5)],
    "one_hot": [(IDS, 6), (IDS[0], 7)],
    "embed": [(text.one_hot(IDS, 6), draw((6, 5))[0])],
    "project_qkv": [(X, *draw((6, 5), (6, 5), (6, 2)))],
    "attention_scores": [(X, MEMORY), (X[0], MEMORY[0])],
    "scale_scores": [(SCORES, 7)],
    "softmax": [(SCORES,), (SCORES, 1), (HUGE,), (np.array([3, 1, 2]),)],
    "attention_weights": [(X, MEMORY)],
    "attention": [(X, MEMORY, draw((3, 5, 2))[0]), (X[0], MEMORY[1], draw((5, 7))[0])],
    "online_softmax": [(SCORES, 2), (HUGE, 1), (HUGE, 5), (np.array([3, 1, 2]), 2)],
    "tiled_attention": [
        (X, MEMORY, draw((3, 5, 2))[0], 2),
        (30 * X[0], MEMORY[1], draw((5, 7))[0], 3),
        (X[:, :1], MEMORY, MEMORY, 9),
    ],
    "causal_mask": [(5,), (1,)],
    "masked_softmax": [(SCORES, FULL), (300 * SCORES, FULL[0])],
    "safe_masked_softmax": [(SCORES, MASK), (SCORES, np.zeros((4, 5), bool)), (300 * SCORES, MASK)],
    "padding_mask": [(IDS, 0), (IDS, 3)],
    "padded_weights": [(SCORES, np.array([[1, 1, 0, 0, 0], [0, 1, 1, 1, 1], [1] * 5], bool))],
    "dropout": [(X, 0.3, True, rng), (X, 0.3, False, rng), (X, 0.0, True, rng)],
    "split_heads": [(X, 2), (X, 3)],
    "merge_heads": [(draw((3, 2, 4, 5))[0],)],
    "multi_head_attention": [
        (X, *SQUARE, 2),
        (X, *SQUARE, 3, attention.causal_mask(4)),
        (X, *SQUARE, 2, FULL, MEMORY),
    ],
    "sinusoidal_positions": [(7, 6), (1, 2)],
    "add_positions": [(X,), (X[0],)],
    "layer_norm": [(X, *draw((6,), (6,))), (X, *draw((6,), (6,)), 0.5)],
    "add_and_norm": [(X, 2 * X[::-1], *draw((6,), (6,)))],
    "pre_norm": [(X, np.tanh, *draw((6,), (6,)))],
    "feed_forward": [(X, *draw((6, 9), (9,), (9, 6), (6,)))],
    "encoder_layer": [
        (X, layer_parameters()),
        (X, layer_parameters(), attention.padding_mask(IDS, 9)),
    ],
    "cross_attention": [(X, MEMORY, *draw((6, 5), (6, 5), (6, 2)))],
    "decoder_layer": [(X, MEMORY, layer_parameters(cross=True))],
    "shift_right": [(IDS, 8)],
    "next_token_logits": [(X, draw((6, 9))[0]), (X[0], draw((6, 9))[0])],
    "next_token_probs": [(LOGITS,), (LOGITS, 0.5, 3), (LOGITS, 1, None, 0.8), (LOGITS, 2, 5, 0.6)],
    "sample_token": [(np.array([0.1, 0.0, 0.6, 0.3]), rng)],
    "greedy_decode": [(next_id, 2, 7, 10), (next_id, 0, 8, 3)],
    "cross_entropy": [(draw((3, 4, 6))[0], IDS, 0), (200 * draw((3, 4, 6))[0], IDS, 3)],
    "lm_pairs": [(IDS,), (IDS[0],), (np.stack([IDS, IDS + 1]),)],
    "combined_mask": [(IDS, 0), (IDS, 1), (IDS[:, :1], 9)],
}  # fmt: skip

# The modules on which lesson and helper must agree: constructor, then several inputs of forward.
CAUSAL, REAL = attention.causal_mask(4), attention.padding_mask(IDS, 0)
READ = np.arange(5)[None, None] < np.array([[[2]], [[5]], [[3]]])  # (3, 1, 5) of the memory
BUILT = {
    "MultiHeadAttention": ((6, 6, 2), [(X,), (X, CAUSAL), (X, REAL), (X, MASK, MEMORY)]),
    "PositionalEncoding": ((6,), [(X,)]),
    "FeedForward": ((6, 9), [(X,)]),
    "EncoderLayer": ((6, 2, 9), [(X,), (X, REAL)]),
    "DecoderLayer": ((6, 2, 9), [(X, MEMORY), (X, MEMORY, REAL), (X, MEMORY, None, READ)]),
    "Decoder": ((6, 2, 9, 2), [(X, MEMORY), (X, MEMORY, REAL, READ)]),
    "Transformer": ((9, 7, 6, 2, 9, 2), [(IDS, IDS[:, 1:])]),
    "DecoderOnly": ((9, 8, 6, 2, 9, 2), [(IDS,), (IDS[:1, :3],)]),
    "MixtureOfExperts": ((6, 9, 5, 2), [(X,), (X[:1],)]),
    "LowRank": ((torch.nn.Linear(6, 5), 2, 3.0), [(X,), (X[0],)]),
}
# The rooms that hold more than the lessons build, and the notebook from which on they are used.
FROM = {"examples": "00", "writer": "12", "translator": "12", "training": "13",
        "pretrained": "14", "inside": "14", "animals": "16", "adapters": "15",
        "rotary": "15", "latent": "17"}  # fmt: skip
# What does more than its lesson: its small form, after which the same notebook may go on with it.
GROWN = {"KeyValueCache": "attend_cached", "generate": "greedy_decode",
         "MultiHeadAttention": "MultiHeadAttention", "EncoderLayer": "EncoderLayer",
         "Transformer": "Transformer", "DecoderOnly": "DecoderOnly"}  # fmt: skip
PARTS = {"ResidualLayer", "Stack"}  # held equal through EncoderLayer and make_stack


def definitions(path):
    """Every function and class that a notebook defines, folded ones too: (cell id, node)."""
    for cell_id, body in lines_of(path):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield cell_id, node


def lines_of(path):
    """The statements of each cell, those of folded code too: (cell id, nodes)."""
    for cell in cells(path):
        if cell["cell_type"] == "code":
            yield cell["id"], tree(cell).body
        elif code := folded_code(cell):
            yield cell["id"], ast.parse(code).body


def is_constant(node):
    """A name in capitals, such as ACTIVATIONS; W_q and X are computed and stay out."""
    return isinstance(node, ast.Assign) and bool(
        re.fullmatch("[A-Z_]{4,}", ast.unparse(node.targets[0]))
    )


def lesson_namespace(path, until):
    """Imports, definitions and CONSTANTS of a notebook up to one cell; no other line is run."""
    namespace = {}
    keep = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    for cell_id, lines in lines_of(path):
        body = [node for node in lines if isinstance(node, keep) or is_constant(node)]
        exec(compile(ast.Module(body, []), cell_id, "exec"), namespace)
        if cell_id == until:
            return namespace
    raise AssertionError(f"no cell {until}")


LESSONS = [
    pytest.param(path, cell_id, node.name, id=f"{path.stem[:2]}-{cell_id}-{node.name}")
    for path in EVERY
    for cell_id, node in definitions(path)
    if node.name in {*ROOMS, *MODULES, *LOOPS, "make_stack"}
    if not is_stub(node)  # an exercise, held equal by its check
]


def fresh(argument):
    """Generators are made anew for each call, arrays are copied."""
    return (
        argument()
        if argument is rng
        else argument.copy()
        if hasattr(argument, "copy")
        else argument
    )


def assert_same(ours, theirs):
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray) and ours.shape == theirs.shape
        assert ours.dtype.kind == theirs.dtype.kind
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    elif isinstance(theirs, float):
        assert math.isclose(ours, theirs, rel_tol=1e-9)
    else:
        assert ours == theirs


@pytest.mark.parametrize(("path", "cell_id", "name"), [p for p in LESSONS if p.values[2] in ROOMS])
def test_lesson_function_equals_helper(path, cell_id, name):
    lesson, helper = lesson_namespace(path, cell_id)[name], ROOMS[name]
    assert list(inspect.signature(lesson).parameters) == list(inspect.signature(helper).parameters)
    for arguments in INPUTS[name]:
        with np.errstate(all="ignore"):
            ours = lesson(*map(fresh, arguments))
        assert_same(ours, helper(*map(fresh, arguments)))


def tensors(inputs):
    """Arrays become float32 tensors; masks stay boolean, None stays None."""
    made = [x if x is None else torch.from_numpy(np.asarray(x)) for x in inputs]
    return [x.float() if x is not None and x.is_floating_point() else x for x in made]


@pytest.mark.parametrize(("path", "cell_id", "name"), [p for p in LESSONS if p.values[2] in BUILT])
def test_lesson_module_equals_helper(path, cell_id, name):
    """After copying the weights, under the same names, both give the same outputs."""
    arguments, calls = BUILT[name]
    torch.manual_seed(0)
    helper = MODULES[name](*arguments).eval()
    for parameter in helper.parameters():
        if not parameter.any():  # zeros would hide what they are multiplied with
            torch.nn.init.normal_(parameter)
    lesson = lesson_namespace(path, cell_id)[name](*arguments).eval()
    lesson.load_state_dict(helper.state_dict())
    for inputs in calls:
        torch.testing.assert_close(lesson(*tensors(inputs)), helper(*tensors(inputs)))


@pytest.mark.parametrize(
    ("path", "cell_id"), [p.values[:2] for p in LESSONS if p.values[2] == "make_stack"]
)
def test_lesson_stack_equals_helper(path, cell_id):
    """Same outputs, masks passed on to every layer, and parameters that are separate."""
    torch.manual_seed(0)
    layer = layers.EncoderLayer(6, 2, 9).eval()
    helper = layers.make_stack(layer, 3)
    lesson = lesson_namespace(path, cell_id)["make_stack"](layer, 3)
    inputs = tensors((X, REAL))
    torch.testing.assert_close(lesson(*inputs), helper(*inputs))
    for stack in (lesson, helper):
        assert len(list(stack.parameters())) == 3 * len(list(layer.parameters()))
        assert not {id(p) for p in stack.parameters()} & {id(p) for p in layer.parameters()}


@pytest.mark.parametrize(("path", "cell_id", "name"), [p for p in LESSONS if p.values[2] in LOOPS])
def test_lesson_loop_equals_helper(path, cell_id, name):
    """Same numbers, and the same model afterwards, for batches of different sizes and dropout."""
    loops = lesson_namespace(path, cell_id)[name], getattr(training, name)
    batches = [(torch.from_numpy(IDS[:n]), torch.from_numpy(IDS[-n:, ::-1].copy())) for n in (1, 3)]
    for mode in (True, False):
        found = []
        for loop in loops:
            torch.manual_seed(0)
            parts = torch.nn.Embedding(6, 5), torch.nn.Dropout(0.4), torch.nn.Linear(5, 6)
            model = torch.nn.Sequential(*parts).train(mode)
            result = loop(model, batches, *([0.3] if name == "train" else []))
            found.append((result, model.training, *model.state_dict().values()))
            assert name == "train" or all(p.grad is None for p in model.parameters())
        torch.testing.assert_close(*found)


@pytest.mark.parametrize(("bits", "group"), [(8, 6), (4, 3), (4, 24)])
def test_quantised_weights_equal_a_plain_loop(bits, group):
    lesson = lesson_namespace(FOLDER / "17_memory_and_speed.ipynb", "bits-quantised")
    W, most, loop = torch.from_numpy(draw((4, 6))[0]), 2 ** (bits - 1) - 1, []
    W[1] = 0  # a group that has no largest
    for start in range(0, 24, group):
        part = W.flatten()[start : start + group].tolist()
        scale = max(map(abs, part)) / most
        loop += [round(w / scale) * scale if scale else 0.0 for w in part]
    whole, scales = lesson["quantised"](W, bits, group)
    assert whole.shape == (24 // group, group) and scales.shape == (24 // group, 1)
    assert torch.equal(whole, whole.round()) and whole.abs().max() == most
    back = torch.tensor(loop, dtype=W.dtype).reshape(4, 6)
    torch.testing.assert_close(lesson["rounded"](W, bits, group), back)


def test_no_definition_escapes_the_comparison():
    compared = set(ROOMS) | set(BUILT) | PARTS | LOOPS | {"make_stack"}
    assert {p.values[2] for p in LESSONS} <= compared


def taken(path):
    """What a notebook takes from helpers, in order: ("import" or "make", room, name).

    Names behind a dot (`layers.Stack`) are taken where they stand, and what it makes is told too.
    """
    rooms = {}
    for _, body in lines_of(path):
        for node in (inner for line in body for inner in ast.walk(line)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield "make", "", node.name
            elif isinstance(node, ast.ImportFrom) and node.module == "helpers":
                rooms |= {alias.asname or alias.name: alias.name for alias in node.names}
                rooms.pop("mine", None)  # what the reader has built
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helpers."):
                for alias in node.names:
                    yield "import", node.module.removeprefix("helpers."), alias.name
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in rooms:
                yield "import", rooms[ast.unparse(node.value)], node.attr


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_helpers_appear_only_after_the_notebook_that_built_them(path):
    """Or with the room that holds more than the lessons build, from its notebook on."""
    made = set()
    for what, room, name in taken(path):
        if what == "make":
            made.add(name)
        elif name in STAGES:
            built = STAGES[name] < path.stem[:2] or GROWN.get(name) in made
            assert built, f"{room}.{name}"
        else:
            assert FROM.get(room, "99") <= path.stem[:2], f"{room}.{name}"


def test_every_contract_function_is_built_in_front_of_the_reader():
    """Each helper is defined in the notebook of its stage, and inputs for it are listed here."""
    built = {(p.values[0].stem[:2], p.values[2]) for p in LESSONS}
    whole = {"check_weight", "generate"}  # the first checks, the second the lesson's own loops show
    due = set(ROOMS) - whole | set(BUILT) | LOOPS | {"make_stack"}
    assert {(stage, name) for name, stage in STAGES.items() if name in due} <= built
    assert set(INPUTS) == set(ROOMS) - whole
