"""Train the translator without one stage after the other, and store the table.

python tools/ablations.py             nine models × three seeds: about five minutes on one core
python tools/ablations.py NAME ...    print these lines only, and store nothing
"""

import argparse
import csv
from pathlib import Path

import torch

from helpers.training.ablations import (
    ABLATIONS,
    SEEDS,
    TABLE,
    Result,
    ablation,
    course_corpus,
)

ROOT = Path(__file__).resolve().parents[1]
COMMENT = "# made by `make ablations`: the translator of notebook 13 with one stage left out\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 'one head'")
    names = parser.parse_args().names
    torch.set_num_threads(1)  # sums in the same order on every machine
    training, held_out = course_corpus()
    results = []
    for name in names or ABLATIONS:
        for seed in SEEDS:
            results.append(ablation(name, seed, training, held_out))
            print("{:20} {}  {:7.2%}  {:.4f}".format(*results[-1]), flush=True)
    if not names:
        write(ROOT / "helpers" / "training" / TABLE, results)


def write(path: Path, results: list[Result]) -> None:
    """Store results as CSV, rounded to what a reader compares."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(COMMENT)
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(Result._fields)
        for name, seed, match, loss in results:
            rows.writerow([name, seed, f"{match:.4f}", f"{loss:.4f}"])


if __name__ == "__main__":
    main()
