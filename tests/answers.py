"""Answers for *Your turn*: what stands around the line of a third hint, and some for tensors.

A hint that is a whole body needs nothing; elsewhere {0}, {1} … are its lines, in their order.
"""

import re
import textwrap

from workshop.exercises import find

AROUND = {
    "bigram_probs": """
        pairs = Counter(pair for text in sentences for pair in pairwise(text.split()))
        ids = vocab if isinstance(vocab, dict) else {word: i for i, word in enumerate(vocab)}
        counts = np.full((len(ids), len(ids)), float(smoothing))
        for (a, b), n in pairs.items():
            counts[ids[a], ids[b]] += n
        {0}
        {1}
    """,
    "multi_head_attention": """
        source, d, heads = x if memory is None else memory, W_q.shape[1] // num_heads, []
        mask = np.ones((x.shape[1], source.shape[1]), dtype=bool) if mask is None else mask
        for h in range(num_heads):
            own = slice(h * d, (h + 1) * d)
            Q, K, V = x @ W_q[:, own], source @ W_k[:, own], source @ W_v[:, own]
            scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(d)
            {0}
        {1}
    """,
    "induction_score": """
        found = []
        for i in range(len(ids)):
            before = np.flatnonzero(ids[:i] == ids[i])
            if len(before) > 0:
                {0}
        {1}
    """,
    "encoder_parameters": """
        return num_layers * ({0})
    """,
    "greedy_decode": """
        ids = [start_id]
        for _ in range(max_len):
            {0}
            {1}
        {2}
    """,
    "next_token_probs": """
        z = np.array(logits, dtype=float) / temperature
        order = np.argsort(-z, kind="stable")
        if top_k is not None:
            {0}
        if top_p is not None:
            p = softmax(z)
            {1}
            {2}
        {3}
    """,
    "decoder_layer": """
        {0}
        {1}
        y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
        return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])
    """,
    "attend_cached": """
        {0}
        if kept is not None:
            {1}
        {2}
        {3}
        {4}
    """,
    "smoothed_loss": """
        z = logits - logits.max(axis=-1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        log_p_of_target = np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
        {0}
        {1}
    """,
    "evaluate": """
        was_training, total, count = model.training, 0.0, 0
        model.eval()
        with torch.no_grad():
            for x, y in batches:
                {0}
                count += y.numel()
        model.train(was_training)
        return total / count
    """,
    "train": """
        parameters, losses = list(model.parameters()), []
        velocities = [torch.zeros_like(p) for p in parameters]
        model.train()
        for x, y in batches:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                {0}
            losses.append(loss.item())
        return losses
    """,
    "our_name": """
        from helpers.examples import PLACES
        {0}
        home = ""
        if part.startswith("encoder.layer."):
            {1}
            {2}
        return f"{home}{PLACES[part]}.{kind}" if part in PLACES else None
    """,
    "word_pieces": """
        pieces, start = [], 0
        while start < len(word):
            for end in {0}:
                {1}
                if piece in vocab:
                    {2}
                    break
            else:
                {3}
        return pieces
    """,
    "online_softmax": """
        largest, total = -np.inf, 0.0
        for start in range(0, x.shape[-1], tile):
            part = x[..., start : start + tile]
            higher = np.maximum(largest, part.max(axis=-1, keepdims=True))
            {0}
            {1}
        {2}
    """,
}


def hinted(name):
    """The answer that a third hint leads to, written into the notebook's stub without imports."""
    lines = re.findall(r"`([^`]+)`", find(name).hints[2])
    around = textwrap.dedent(AROUND.get(name, "\n".join(f"{{{i}}}" for i in range(len(lines)))))
    assert re.findall(r"\{(\d)\}", around) == [str(i) for i in range(len(lines))], name
    for i, line in enumerate(lines):
        around = around.replace(f"{{{i}}}", line)
    return f"def {name}({header(name)}):\n{textwrap.indent(around.strip(), '    ')}"


def header(name):
    """The parameters of an exercise with their defaults, without annotations."""
    import inspect

    parameters = inspect.signature(find(name).reference).parameters.values()
    return ", ".join(str(p.replace(annotation=p.empty)) for p in parameters)


# Right on tensors only, while the cells after their checks go on with arrays.
# Right on tensors only, while the cells after their checks go on with arrays.
TENSORS = """
def {name}({parameters}):
    import numpy as np
    import torch
    from workshop.exercises import find

    def array(x):
        if isinstance(x, np.ndarray):
            raise TypeError("tensors only")
        if isinstance(x, dict):
            return {{key: array(value) for key, value in x.items()}}
        if isinstance(x, tuple):
            return tuple(map(array, x))
        if isinstance(x, list) and x and callable(x[0]):
            return [array(sublayer) for sublayer in x]
        if callable(x) and {name!r}.startswith("pre_norm"):  # a sublayer
            return lambda h: array(x(torch.from_numpy(h)))
        if isinstance(x, torch.Generator):
            return np.random.default_rng(torch.randint(2**31, (), generator=x).item())
        return x.detach().numpy() if isinstance(x, torch.Tensor) else x

    made = find({name!r}).reference(*map(array, ({names})))
    return torch.from_numpy(made) if isinstance(made, np.ndarray) else made
"""


def for_tensors(name):
    """An answer that is right on tensors only; PyTorch's own exercises have no other."""
    if find(name).backends == ("torch",):
        return hinted(name)
    names = "".join(f"{p}, " for p in find(name).parameters)
    return TENSORS.format(name=name, parameters=header(name), names=names).strip()
