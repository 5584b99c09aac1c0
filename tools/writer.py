"""Train the model that writes on Python's manual, half an hour on one core: `make writer`."""

import hashlib
import math
import re
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers import writer
from helpers.models import DecoderOnly
from helpers.training.learning import evaluating

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"vocab_size": 512, "context_length": 96, "d_model": 96, "num_heads": 4, "d_ff": 384,
         "num_layers": 3}  # fmt: skip
STEPS, BATCH, PEAK, WARM_UP, DROPOUT = 5000, 32, 3e-3, 100, 0.15


def main() -> None:
    """Train it, and keep it in the package."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    pieces = writer.Pieces.learned(writer.manual(), SIZES["vocab_size"])
    texts = [torch.tensor(pieces.encode(writer.manual(held)).ids) for held in (False, True)]
    model = writer.empty_writer(DROPOUT, **SIZES)
    train(model, *texts)
    keep(writer.packed(model, SIZES, pieces))


def train(model: DecoderOnly, learned: Tensor, held_out: Tensor) -> None:
    """AdamW with warm-up, cosine, clipping and decay, as large models are trained."""
    optimizer = torch.optim.AdamW(groups(model), betas=(0.9, 0.95))
    reach = torch.arange(SIZES["context_length"])
    model.train()
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:  # up in a line, down in half a cosine
            down = 0.525 + 0.475 * math.cos(math.pi * step / STEPS)
            group["lr"] = PEAK * min(step / WARM_UP, down)
        rows = torch.randint(len(learned) - len(reach), (BATCH, 1)) + reach  # (B, T)
        loss = loss_of(model, learned[rows], learned[rows + 1])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"{step:5} {loss.item():.4f} {measured(model, held_out):.4f}", flush=True)


def groups(model: DecoderOnly) -> list[dict]:
    """Matrices decay, biases and norms do not."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]


def loss_of(model: DecoderOnly, ids: Tensor, following: Tensor) -> Tensor:
    return F.cross_entropy(model(ids).flatten(0, 1), following.flatten())


def measured(model: DecoderOnly, held_out: Tensor) -> float:
    """Mean loss on the text that is held out, in nats a piece."""
    T = SIZES["context_length"]
    count = (len(held_out) - 1) // T * T
    with evaluating(model):
        rows = held_out[:count].reshape(-1, T), held_out[1 : count + 1].reshape(-1, T)
        return loss_of(model, *rows).item()


def keep(raw: bytes) -> None:
    """Write the file, and its digest into the code that reads it."""
    (ROOT / "helpers" / writer.KEPT).write_bytes(raw)
    code = ROOT / "helpers" / "writer.py"
    line = f'DIGEST = "{hashlib.sha256(raw).hexdigest()}"'
    code.write_text(re.sub(r'DIGEST = "\w*"', line, code.read_text("utf-8")), "utf-8")
    print(f"{len(raw):,} bytes kept")


if __name__ == "__main__":
    main()
