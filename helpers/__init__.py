"""The reusable code of *Attention, step by step*: what the notebooks build, kept once.

Rooms, in the order of the course; each imports only those before it:

    stages, given                           the list of stages; checks of what a caller hands in
    text → attention → blocks → decoding    NumPy, every function as its formula
    cache → layers → models                 PyTorch modules of the same mathematics
    shown → figures → drawings              printed tables, pictures; attention drawn from arrays
    operations → anatomy → interventions    any model as named steps, and what is changed in them
    training                                a translator, from its sentences to its ablations
    pretrained                              MiniLM, GPT-2, Llama, loaded into the same layers
    widgets                                 attention to touch, in the browser
    exercises, checks                       what to write, and what says which mistake was made
    mine                                    your functions where they are right, else the course's

Importing this package loads none of them, and the NumPy rooms never load PyTorch.
"""

__version__ = "0.1.0"
