"""Measure our layers beside PyTorch's own, the key-value cache, MiniLM, tiles, and the memory.

    python tools/bench_layers.py [memory] [PART ...]   rows that have such a part; else all

A row is a race in this process, seven rounds: each measures one side, then the other, and the ratio
is the median of theirs / ours. On a CPU one thread runs and its processor time counts, which other
work disturbs little; on a GPU the clock. Peak memory is measured in a fresh process for each side,
the median of three: what is held at most, as Linux counts it, less what was held after a warm-up.
Exit status 1 if a goal is missed.
"""

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from helpers.attention import attention as numpy_attention
from helpers.attention import tiled_attention
from helpers.decoding import generate
from helpers.layers import EncoderLayer, MultiHeadAttention, unwatched
from helpers.masks import causal_mask
from helpers.models import DecoderOnly
from helpers.pretrained import load_llama, load_minilm, minilm_folder

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BATCH, D, H, ROUNDS = 8, 256, 8, 7
Works = tuple[Callable[[], object], Callable[[], object]]  # ours, theirs


def attention(T: int, causal: bool = False, weights: bool = False) -> Works:
    """One attention layer beside nn.MultiheadAttention, forward and backward."""
    ours = MultiHeadAttention(D, D, H).to(DEVICE)
    theirs = nn.MultiheadAttention(D, H, batch_first=True).to(DEVICE)
    x = torch.randn(BATCH, T, D, device=DEVICE, requires_grad=True)
    options = {"attn_mask": ~causal_mask(T, DEVICE) if causal else None, "is_causal": causal}
    options |= {"need_weights": weights, "average_attn_weights": False}

    def run_ours() -> None:
        out = ours(x, causal=causal)
        assert not weights or ours.weights.shape == (BATCH, H, T, T)
        out.sum().backward()

    return run_ours, lambda: theirs(x, x, x, **options)[0].sum().backward()


def layer(T: int, causal: bool = False) -> Works:
    """One encoder layer beside nn.TransformerEncoderLayer, forward and backward."""
    ours = EncoderLayer(D, H, 4 * D).to(DEVICE)
    theirs = nn.TransformerEncoderLayer(D, H, 4 * D, dropout=0.0, batch_first=True).to(DEVICE)
    x = torch.randn(BATCH, T, D, device=DEVICE, requires_grad=True)
    later = nn.Transformer.generate_square_subsequent_mask(T, device=DEVICE) if causal else None
    return (
        lambda: ours(x, causal=causal).sum().backward(),
        lambda: theirs(x, src_mask=later, is_causal=causal).sum().backward(),
    )


def cached(T: int) -> Works:
    """Writing until T tokens are read, four layers: with the key-value cache beside without."""
    model = DecoderOnly(1000, T, D, H, 4 * D, 4, pre_norm=True).to(DEVICE)
    return lambda: generate(model, [[1]], T), lambda: generate(model, [[1]], T, cached=False)


def llama(T: int, shared: bool) -> Works:
    """A Llama whose heads share keys, beside one where none do, or beside `transformers`."""
    ours, theirs = llama_models(T, H // 4)
    if shared:
        theirs, _ = llama_models(T, H)
        return lambda: generate(ours, [[1]], T), lambda: generate(theirs, [[1]], T)
    told = {"max_new_tokens": T, "do_sample": False}
    ids = torch.tensor([[1]], device=DEVICE)
    return lambda: generate(ours, [[1]], T), torch.no_grad()(lambda: theirs.generate(ids, **told))


def llama_models(T: int, num_kv_heads: int) -> tuple[nn.Module, nn.Module]:
    """The same random Llama, four layers: ours, and that of `transformers`."""
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=D, intermediate_size=704, num_hidden_layers=4,
        num_attention_heads=H, num_key_value_heads=num_kv_heads, max_position_embeddings=2 * T,
        bos_token_id=None, eos_token_id=None)  # fmt: skip
    theirs = transformers.LlamaForCausalLM(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return load_llama(folder).to(DEVICE), theirs.to(DEVICE)


def tiles(T: int) -> Works:
    """Attention of one head in NumPy: the keys read in tiles of 64 beside all at once."""
    Q, K, V = np.random.default_rng(0).normal(size=(3, T, 64)).astype(np.float32)
    return lambda: tiled_attention(Q, K, V, 64), lambda: numpy_attention(Q, K, V)


def minilm(T: int, text: bool) -> Works:
    """MiniLM beside `transformers`, 50 sentences of 3 to T words: one batch, or text to vectors."""
    ours, theirs, tokenizer = minilm_models()
    words = "the small cat sees a red house because it likes to look at old gardens".split()
    sentences = [" ".join((words * 9)[: 3 + 37 * i % (T - 2)]) for i in range(50)]
    if text:
        theirs_of = partial(their_vectors, theirs, tokenizer, sorted(sentences, key=len))
        return lambda: ours.encode(sentences), theirs_of
    ids, real = ours.tokenize(sentences)
    return (
        torch.no_grad()(unwatched(ours)(lambda: ours(ids, real))),  # nobody asks for weights
        torch.no_grad()(lambda: theirs(ids, attention_mask=real.long()).last_hidden_state),
    )


@cache
def minilm_models() -> tuple[nn.Module, nn.Module, Callable]:
    """Ours; that of `transformers`, and its tokenizer."""
    folder = minilm_folder()
    theirs = transformers.AutoModel.from_pretrained(folder).to(DEVICE).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return load_minilm(folder).to(DEVICE), theirs, tokenizer


@torch.no_grad()
def their_vectors(model: nn.Module, tokenizer: Callable, sentences: list[str]) -> Tensor:
    """As the model's card has it: tokens, mean of the vectors, length 1; 32 sentences at a time."""
    found = []
    for start in range(0, len(sentences), 32):
        some = sentences[start : start + 32]
        batch = tokenizer(some, padding=True, truncation=True, return_tensors="pt").to(DEVICE)
        real = batch["attention_mask"][:, :, None].float()
        found.append((model(**batch).last_hidden_state * real).sum(1) / real.sum(1))
    return nn.functional.normalize(torch.cat(found), dim=1).cpu()


class Row(NamedTuple):
    """What is measured, at which lengths, and what the ratio must reach: time, then memory."""

    name: str
    works: Callable[[int], Works]
    raced: tuple[int, ...]
    goal: float = 0.0
    held: tuple[int, ...] = ()
    most: float = 0.0


LENGTHS = (16, 64, 256, 1024)
ROWS = [
    Row("attention, plain", attention, LENGTHS, 1.0, (1024,), 1.0),
    Row("attention, causal", partial(attention, causal=True), LENGTHS, 1.0, (1024,), 1.0),
    Row("attention, with weights", partial(attention, weights=True), LENGTHS, 0.8, (1024,), 1.0),
    Row("layer, plain", layer, LENGTHS, 1.0, (1024,), 1.0),
    Row("layer, causal", partial(layer, causal=True), LENGTHS, 1.0),
    Row("writing, cache beside without", cached, (16, 64, 128, 256)),
    Row("writing, cache beside without", cached, (512,), 5.0, (512,)),
    Row("writing, shared keys beside all", partial(llama, shared=True), (512,), 1.0),
    Row("writing, transformers", partial(llama, shared=False), (512,), 1.0),
    Row("minilm, one batch", partial(minilm, text=False), (40,), 1.0, (120,), 1.0),
    Row("minilm, text to vectors", partial(minilm, text=True), (40,), 1.0, (120,), 1.0),
    Row("tiles, beside at once", tiles, (1024, 4096), 0.0, (1024, 2048, 4096), 1.0),
]


def race(row: Row, T: int) -> np.ndarray:
    """Milliseconds of both sides in every round; the rounds are interleaved: (rounds, 2)."""
    clock = {} if DEVICE.type == "cuda" else {"timer": time.process_time}
    sides = [Timer("work()", globals={"work": work}, **clock) for work in row.works(T)]
    slowest = max(side.timeit(1).mean for side in sides)  # the first time: they warm up
    number = max(1, round(0.05 / slowest))
    return np.array([[side.timeit(number).mean * 1e3 for side in sides] for _ in range(ROUNDS)])


def peaks(row: Row, T: int) -> np.ndarray:
    """Megabytes of both sides, three times, each in a process of its own: (3, 2)."""
    found = []
    for side in (0, 1) * 3:
        with multiprocessing.get_context("spawn").Pool(1, prepare) as pool:
            found.append(pool.apply(peak, (row.works, T, side)))
    return np.reshape(found, (3, 2))


def peak(works: Callable[[int], Works], T: int, side: int) -> float:
    """Megabytes that a work takes at most, more than the process held before."""
    works(8)[side]()  # warmed up with little
    work = works(T)[side]
    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak until now
    before = held("VmRSS")
    work()
    return held("VmHWM") - before


def held(line: str) -> float:
    """Megabytes in memory, as Linux counts them: now (VmRSS), or at most so far (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{line}:")[2].split()[0]) * 1024 / 1e6


def prepare() -> None:
    """One thread, the same numbers every time, and no bars of `transformers`."""
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.manual_seed(0)


def told(name: str, T: int, found: np.ndarray, goal: float) -> bool:
    """Print a row; whether it reaches its goal."""
    ours, theirs = np.median(found, axis=0)
    ratio = round(float(np.median(found[:, 1] / found[:, 0])), 2)
    wanted = f"{goal:5.1f}{'' if ratio >= goal else '  missed'}" if goal else ""
    print(f"{f'{name}, {T}':<38} {ours:9.2f} {theirs:9.2f} {ratio:7.2f} {wanted}", flush=True)
    return ratio >= goal


def main(wanted: list[str]) -> bool:
    """Print both tables, or the parts that are wanted; whether all goals are reached."""
    parts = {row.name.partition(",")[0] for row in ROWS} | {"memory"}
    if unknown := {*wanted} - parts:
        sys.exit(f"{unknown.pop()!r} is none of {', '.join(sorted(parts))}")
    prepare()
    print(f"{DEVICE.type}, batch {BATCH}, {D} features, {H} heads; ratio = theirs / ours")
    head = f"{'ours':>9} {'theirs':>9}   ratio  goal"
    print(f"\n{'milliseconds':<38} {head}")
    chosen = [row for row in ROWS if not wanted or row.name.partition(",")[0] in wanted]
    good = [told(r.name, T, race(r, T), r.goal) for r in chosen for T in r.raced]
    if ("memory" in wanted or not wanted) and (DEVICE.type == "cuda" or sys.platform == "linux"):
        print(f"\n{'peak, megabytes':<38} {head}")
        good += [told(r.name, T, peaks(r, T), r.most) for r in ROWS for T in r.held]
    return all(good)


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
