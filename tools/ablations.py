"""Train every line of the table of ablations with every seed, and write it: `make ablations`.

A process for each core; on one core it takes half an hour.
"""

import csv
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from helpers.training.ablations import TABLE, Result, ablation, trainings

PATH = Path(__file__).resolve().parents[1] / "helpers" / "training" / TABLE
COMMENT = "# made by `make ablations`: the translator of notebook 13, its parts and its recipe\n"


def main() -> None:
    """Print each line as soon as it is measured, then write the table."""
    # With one thread each, sums have the same order on every machine.
    with ProcessPoolExecutor(None, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        rows = [Result._fields]
        for name, seed, match, loss in pool.map(ablation, *zip(*trainings(), strict=True)):
            rows.append((name, seed, f"{match:.4f}", f"{loss:.4f}"))
            print("{:36} {}  {}  {}".format(*rows[-1]), flush=True)
    with open(PATH, "w", encoding="utf-8", newline="") as file:
        file.write(COMMENT)
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
