"""Measure our layers beside PyTorch's own, ways of writing beside each other, and the memory.

    python tests/bench_layers.py                   everything: some minutes
    python tests/bench_layers.py attention memory  some of: attention layer writing minilm tiles
                                                   memory
    python tests/bench_layers.py --rounds 3        fewer rounds

Every line is one race in this process: a round measures ours, then theirs, and the ratio of the
line is the median over the rounds of theirs / ours. Above 1, ours is faster (or smaller). On a
CPU one thread runs and its processor time counts, so that other work on the machine disturbs
little; on a GPU the clock counts, after waiting for it.

Peak memory is measured in a fresh process for each side, three times, the median: what the
process has held at most (its resident set as Linux counts it, which includes what PyTorch's
allocator does not know of), less what it held when the work began, warmed up; on a GPU, the most
that was allocated there.
Exit status 1 if a goal is missed.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.benchmark import Timer

from helpers.attention import attention as numpy_attention
from helpers.attention import tiled_attention
from helpers.decoding import generate
from helpers.layers import EncoderLayer, MultiHeadAttention, unwatched
from helpers.masks import causal_mask
from helpers.models import DecoderOnly

ROOT = Path(__file__).resolve().parents[1]
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BATCH, D, H = 8, 256, 8
LENGTHS = (16, 64, 256, 1024)
WRITTEN = (16, 64, 128, 256, 512)
Works = tuple[Callable[[], object], Callable[[], object]]  # ours, theirs


# --------------------------------------------------------------------------------- what is measured
def vectors(T: int) -> Tensor:
    return torch.randn(BATCH, T, D, device=DEVICE, requires_grad=True)


def attention(kind: str, T: int) -> Works:
    """One attention layer beside nn.MultiheadAttention, forward and backward."""
    ours = MultiHeadAttention(D, D, H).to(DEVICE)
    theirs = nn.MultiheadAttention(D, H, batch_first=True).to(DEVICE)
    x, forbidden = vectors(T), ~causal_mask(T, DEVICE)
    options = {"need_weights": kind == "with weights", "average_attn_weights": False}
    if kind == "causal":
        options |= {"attn_mask": forbidden, "is_causal": True}

    def run_ours() -> None:
        out = ours(x, causal=kind == "causal")
        if kind == "with weights":
            assert ours.weights.shape == (BATCH, H, T, T)
        out.sum().backward()

    return run_ours, lambda: theirs(x, x, x, **options)[0].sum().backward()


def layer(kind: str, T: int) -> Works:
    """One encoder layer beside nn.TransformerEncoderLayer, forward and backward."""
    ours = EncoderLayer(D, H, 4 * D).to(DEVICE)
    theirs = nn.TransformerEncoderLayer(D, H, 4 * D, dropout=0.0, batch_first=True).to(DEVICE)
    x, later = vectors(T), nn.Transformer.generate_square_subsequent_mask(T, device=DEVICE)
    if kind == "causal":
        return (
            lambda: ours(x, causal=True).sum().backward(),
            lambda: theirs(x, src_mask=later, is_causal=True).sum().backward(),
        )
    return lambda: ours(x).sum().backward(), lambda: theirs(x).sum().backward()


def writing(kind: str, T: int) -> Works:
    """Writing until T tokens are read, four layers: with the key-value cache beside without.

    Or a Llama of which four heads share keys and values: beside one with all of them, and beside
    `transformers` with the same weights.
    """
    prompt = [[1]]
    if kind == "tokens":
        model = DecoderOnly(1000, T, D, H, 4 * D, 4, pre_norm=True).to(DEVICE)
        return lambda: generate(model, prompt, T), lambda: generate(model, prompt, T, cached=False)
    ours, theirs = llama_models(T, H // 4)
    if kind == "shared keys":
        own, _ = llama_models(T, H)
        return lambda: generate(ours, prompt, T), lambda: generate(own, prompt, T)
    ids = torch.tensor(prompt, device=DEVICE)
    told = {"max_new_tokens": T, "do_sample": False}
    return lambda: generate(ours, prompt, T), torch.no_grad()(lambda: theirs.generate(ids, **told))


def llama_models(T: int, num_kv_heads: int) -> tuple[nn.Module, nn.Module]:
    """The same random Llama, four layers: ours, and that of `transformers`."""
    import transformers

    from helpers.pretrained import load_llama

    transformers.utils.logging.disable_progress_bar()
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=D, intermediate_size=704, num_hidden_layers=4,
        num_attention_heads=H, num_key_value_heads=num_kv_heads, max_position_embeddings=2 * T,
        bos_token_id=None, eos_token_id=None)  # fmt: skip
    theirs = transformers.LlamaForCausalLM(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return load_llama(folder).to(DEVICE), theirs.to(DEVICE)


def tiles(kind: str, T: int) -> Works:
    """Attention of one head in NumPy: the keys read in tiles of 64 beside all at once."""
    Q, K, V = np.random.default_rng(0).normal(size=(3, T, 64)).astype(np.float32)
    return lambda: tiled_attention(Q, K, V, 64), lambda: numpy_attention(Q, K, V)


def minilm(kind: str, T: int) -> Works:
    """MiniLM beside `transformers`, 50 sentences of 3 to T words: one batch, or text to vectors."""
    folder, ours, theirs = minilm_models()
    words = "the small cat sees a red house because it likes to look at old gardens".split()
    sentences = [" ".join((words * 9)[: 3 + 37 * i % (T - 2)]) for i in range(50)]
    if kind == "one batch":
        ids, real = ours.tokenize(sentences)

        def run_ours() -> Tensor:
            with unwatched(ours):  # as `encode` does: nobody asks for weights
                return ours(ids, real)

        return (
            torch.no_grad()(run_ours),
            torch.no_grad()(lambda: theirs(ids, attention_mask=real.long()).last_hidden_state),
        )
    return lambda: ours.encode(sentences), lambda: their_vectors(folder, theirs, sentences)


@cache
def minilm_models() -> tuple[Path, nn.Module, nn.Module]:
    import transformers

    from helpers.pretrained import load_minilm, minilm_folder

    transformers.utils.logging.disable_progress_bar()
    folder = minilm_folder()
    theirs = transformers.AutoModel.from_pretrained(folder).to(DEVICE).eval()
    return folder, load_minilm(folder).to(DEVICE), theirs


@cache
def their_tokenizer(folder: Path) -> Callable:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def their_vectors(folder: Path, model: nn.Module, sentences: list[str]) -> Tensor:
    """As the model's card has it: tokens, mean of the vectors, length 1; sorted, 32 at a time."""
    found, sentences = [], sorted(sentences, key=len)
    for start in range(0, len(sentences), 32):
        batch = their_tokenizer(folder)(
            sentences[start : start + 32], padding=True, truncation=True, return_tensors="pt"
        ).to(DEVICE)
        real = batch["attention_mask"][:, :, None].float()
        found.append((model(**batch).last_hidden_state * real).sum(1) / real.sum(1))
    return nn.functional.normalize(torch.cat(found), dim=1).cpu()


# ----------------------------------------------------------------------------------- how it is done
@dataclass
class Group:
    """Lines of one kind: what builds the two works, and what their ratio must reach."""

    works: Callable[[str, int], Works]
    kind: str
    lengths: tuple[int, ...]
    goal: float | None = None  # of the ratio, at every length
    goals: dict[int, float] = field(default_factory=dict)  # at one
    sides: tuple[str, str] = ("ours", "theirs")

    def least(self, T: int) -> float | None:
        return self.goals.get(T, self.goal)


GROUPS = [
    Group(attention, "plain", LENGTHS, 1.0),
    Group(attention, "causal", LENGTHS, 1.0),
    Group(attention, "with weights", LENGTHS, 0.8),
    Group(layer, "plain", LENGTHS, 1.0),
    Group(layer, "causal", LENGTHS, 1.0),
    Group(writing, "tokens", WRITTEN, goals={512: 5.0}, sides=("cache", "without")),
    Group(writing, "shared keys", (512,), 1.0, sides=("a quarter", "all")),
    Group(writing, "transformers", (512,), 1.0),
    Group(minilm, "one batch", (40,), 1.0),
    Group(minilm, "text to vectors", (40,), 1.0),
    Group(tiles, "NumPy", (1024, 4096), sides=("tiles", "at once")),
]
PEAKS = [
    Group(attention, "plain", (1024,), 1.0),
    Group(attention, "causal", (1024,), 1.0),
    Group(attention, "with weights", (1024,), 1.0),
    Group(layer, "plain", (1024,), 1.0),
    Group(writing, "tokens", (512,), sides=("cache", "without")),
    Group(tiles, "NumPy", (1024, 2048, 4096), 1.0, sides=("tiles", "at once")),
    Group(minilm, "one batch", (120,), 1.0),
    Group(minilm, "text to vectors", (120,), 1.0),
]


def race(works: Works, rounds: int) -> tuple[float, float, float]:
    """Median milliseconds of both, and the median of their ratio; the rounds are interleaved."""
    clock = {} if DEVICE.type == "cuda" else {"timer": time.process_time}
    sides = [Timer("work()", globals={"work": work}, **clock) for work in works]
    slowest = max(side.timeit(1).mean for side in sides)  # the first time: they warm up
    number = max(1, round(0.05 / slowest))
    times = np.array([[side.timeit(number).mean for side in sides] for _ in range(rounds)])
    return *np.median(times, axis=0) * 1e3, float(np.median(times[:, 1] / times[:, 0]))


def peak(work: Callable[[], object]) -> float:
    """Megabytes that a work takes at most, more than the process held before."""
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


def peaks(group: Group, T: int) -> tuple[float, float, float]:
    """Median megabytes of both sides, each in processes of its own, and their ratio."""
    command = [sys.executable, __file__, "--peak", group.works.__name__, group.kind, str(T)]

    def measure(side: str) -> float:
        done = subprocess.run([*command, side], capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])

    ours, theirs = (statistics.median(measure(side) for _ in range(3)) for side in "01")
    return ours, theirs, theirs / ours


def one_peak(name: str, kind: str, T: str, side: str) -> None:
    """In a process of its own: warm up with little, then measure. Prints the megabytes."""
    works, i = WORKS[name], int(side)
    works(kind, 8)[i]()
    work = works(kind, int(T))[i]
    print(peak(work))


def print_group(group: Group, measured: Callable[[int], tuple[float, float, float]]) -> bool:
    """The lines of a group; whether a goal was missed."""
    missed = False
    for T in group.lengths:
        ours, theirs, ratio = measured(T)
        least = group.least(T)
        low = least is not None and round(ratio, 2) < least
        told = "" if least is None else f"{least:5.1f}" + ("  missed" if low else "")
        name = f"{group.works.__name__}, {group.kind}, {T}"
        print(f"{name:<32} {ours:10.2f} {theirs:10.2f} {ratio:7.2f} {told}", flush=True)
        missed |= low
    return missed


WORKS = {works.__name__: works for works in (attention, layer, writing, minilm, tiles)}


def measure(wanted: list[str], rounds: int) -> bool:
    """Print the tables that are wanted; whether a goal was missed."""
    print(f"{DEVICE.type}, batch {BATCH}, {D} features, {H} heads; ratio = theirs / ours")
    missed = False
    for group in (group for group in GROUPS if group.works.__name__ in wanted):
        print(f"\n{'milliseconds':<32} {group.sides[0]:>10} {group.sides[1]:>10}   ratio  goal")
        missed |= print_group(group, lambda T, g=group: race(g.works(g.kind, T), rounds))
    if "memory" in wanted and DEVICE.type == "cpu" and sys.platform != "linux":
        print("\nPeak memory on a CPU is measured on Linux only.")
    elif "memory" in wanted:
        print(f"\n{'peak, megabytes':<32} {'ours':>10} {'theirs':>10}   ratio  goal")
        for group in PEAKS:
            missed |= print_group(group, lambda T, g=group: peaks(g, T))
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"some of {', '.join([*WORKS, 'memory'])}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peak", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.what) - {*WORKS, "memory"}:
        parser.error(f"there is no {', '.join(unknown)} to measure")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if arguments.peak:
        one_peak(*arguments.peak)
        return 0
    return int(measure(arguments.what or [*WORKS, "memory"], arguments.rounds))


if __name__ == "__main__":
    sys.exit(main())
