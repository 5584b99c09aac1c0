"""Answers to an exercise: with a body of one's own, and for tensors alone."""

from learners import load

from workshop.exercises import find


def written(name, text):
    """A learner's answer: a whole definition, or the body of one in which ⏎ begins a line."""
    whole = text.startswith(("def ", "class ", "#"))
    source = text if whole else f"{find(name).header}:\n    {text}\n"
    return load(source.replace(" ⏎ ", "\n    "), name)


TENSORS = """
{header}:
    import numpy as np
    import torch
    from importlib import import_module

    def tensor(x):
        return torch.from_numpy(x) if isinstance(x, np.ndarray) else x

    def array(x):
        if isinstance(x, np.ndarray):
            raise TypeError("tensors only")
        if isinstance(x, dict):
            return {{key: array(value) for key, value in x.items()}}
        if isinstance(x, list | tuple):
            return type(x)(map(array, x))
        if isinstance(x, torch.Generator):
            return np.random.default_rng(torch.randint(2**31, (), generator=x).item())
        if callable(x):
            return lambda *args: array(x(*map(tensor, args)))
        return x.detach().numpy() if isinstance(x, torch.Tensor) else x

    known = import_module("workshop.exercises").find({name!r})
    made = known.reference(*map(array, ({names})))
    return tuple(map(tensor, made)) if isinstance(made, tuple) else tensor(made)
"""


def for_tensors(name):
    """One that is right on tensors only, while the cells after its check go on with arrays."""
    known = find(name)
    if len(known.backends) == 1:  # for a module of PyTorch, or for arrays alone
        return known.solution
    names = "".join(f"{parameter}, " for parameter in known.parameters)
    return TENSORS.format(header=known.header, name=name, names=names).strip()
