"""Answers for *Your turn*: what stands around the line of a third hint, and some for tensors.

A hint that is a whole body needs nothing; elsewhere {0}, {1} … are its lines, in their order.
"""

import re
import textwrap

from helpers.exercises import find

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
    "layer_norm": """
        {0}
        variance = ({1}).sum(axis=-1, keepdims=True) / x.shape[-1]
        {2}
    """,
    "pre_norm": """
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        {0}
        {1}
    """,
    "feed_forward": """
        total = b2
        for key, bias, value in zip(W1.T, b1, W2):
            {0}
            {1}
        return total
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
TENSORS = {
    "word_probs": """
import torch


def word_probs(sentence, vocab, table):
    ids = torch.tensor([vocab.index(word) for word in sentence.split()])
    return table.gather(0, ids[:-1, None].expand(-1, table.shape[1])).gather(1, ids[1:, None])[:, 0]
""",
    "perplexity": """
def perplexity(probs):
    return probs.log().mean().neg().exp()
""",
    "one_hot": """
def one_hot(ids, vocab_size):
    return nn.functional.one_hot(ids, vocab_size).float()
""",
    "embed": """
def embed(onehot, table):
    return torch.index_select(table, 0, onehot.argmax(-1).flatten()).unflatten(0, onehot.shape[:-1])
""",
    "add_positions": """
def add_positions(x):
    place = torch.arange(x.size(-2)).double()[:, None]
    angle = place / 10000 ** (torch.arange(0, x.size(-1), 2).double() / x.size(-1))
    return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).to(x.dtype)
""",
    "encoder_layer": """
def encoder_layer(x, p, mask=None):
    a, f, (T, D) = p["attn"], p["ffn"], x.shape[-2:]
    h = a["num_heads"]
    q, k, v = (
        (x @ a[W]).unflatten(-1, (h, -1)).transpose(1, 2) for W in ("W_q", "W_k", "W_v")
    )
    scores = q @ k.transpose(-1, -2) / (D // h) ** 0.5
    if mask is not None:
        mask = mask if mask.dim() == 2 else mask[:, None]
        scores = scores.masked_fill(~mask, float("-inf"))
    heads = scores.softmax(-1).nan_to_num() @ v
    norm = nn.functional.layer_norm
    x = norm(x + heads.transpose(1, 2).flatten(-2) @ a["W_o"], (D,), *p["norm1"])
    return norm(x + (x @ f["W1"] + f["b1"]).relu() @ f["W2"] + f["b2"], (D,), *p["norm2"])
""",
    "decoder_layer": """
def decoder_layer(y, memory, p):
    def attend(source, a, mask=None):
        h = a["num_heads"]
        q, k, v = (
            (z @ a[W]).unflatten(-1, (h, -1)).transpose(1, 2)
            for z, W in ((y, "W_q"), (source, "W_k"), (source, "W_v"))
        )
        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2) @ a["W_o"]

    norm, width, f = nn.functional.layer_norm, y.shape[-1:], p["ffn"]
    later = torch.ones(y.size(1), y.size(1)).triu(1).bool()
    y = norm(y + attend(y, p["self"], later), width, *p["norm1"])
    y = norm(y + attend(memory, p["cross"]), width, *p["norm2"])
    return norm(y + (y @ f["W1"] + f["b1"]).relu() @ f["W2"] + f["b2"], width, *p["norm3"])
""",
    "greedy_decode": """
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        ids.append(step(ids)[-1].argmax(dim=-1).item())
        if ids[-1] == end_id:
            break
    return ids[1:]
""",
    "cross_entropy": """
def cross_entropy(logits, targets, pad_id):
    return nn.functional.cross_entropy(
        logits.double().flatten(0, 1), targets.flatten().long(), ignore_index=pad_id
    ).item()
""",
    "mean_pool": """
def mean_pool(hidden, is_real):
    total = hidden.masked_fill(~is_real.unsqueeze(-1), 0).sum(dim=1)
    return total / is_real.sum(dim=1, keepdim=True).clamp(min=1)
""",
    "cosine_similarity": """
def cosine_similarity(A, B):
    return nn.functional.normalize(A, dim=1) @ nn.functional.normalize(B, dim=1).T
""",
    "head_scores": """
def head_scores(weights, wanted):
    share = weights.masked_fill(~wanted, 0).sum(dim=-1)
    return share.sum(dim=-1) / wanted.any(dim=-1).sum().clamp(min=1)
""",
}
