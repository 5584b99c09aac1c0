"""Train every line of the table of ablations with every seed, and write it: `make ablations`.

A process for each core; on one core it takes half an hour.
"""

from seeds import HELPERS, write

from helpers.training.ablations import TABLE, ablation, trainings


def line_of(name: str, seed: int) -> dict:
    """A line of the table: trained and measured."""
    return ablation(name, seed)._asdict()


if __name__ == "__main__":
    what = "`make ablations`: the translator of notebook 13, its parts and its recipe"
    write(HELPERS / "training" / TABLE, what, line_of, trainings(), digits=4)
