"""Answers of learners to the exercises of notebooks 07 to 13, written without looking at the checks.

A second, independent collection: slips as they are reported in issues, forums and marked homework.
"""

# ruff: noqa: B023, B905, E501, E741, F811, F821, RUF005, RUF059

from learners import right, wrong


# ---------------------------------------------------------------- 07 dropout
@wrong("p is the probability of keeping, as in CS231n", r"keep|kept|survi|dropp|1 ?[-−–] ?p")
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    mask = (rng.random(x.shape) < p) / p
    return x * mask


@wrong(
    "vanilla dropout: scales by 1 - p at test time, nothing in training",
    r"scal|divi|1 ?[-−–] ?p|test|eval|not training|training ?= ?False",
)
def dropout(x, p, training, rng):
    if training:
        return x * (rng.random(x.shape) >= p)
    return x * (1 - p)


@wrong("drops with p but divides by p", r"divi|scal & 1 ?[-−–] ?p")
def dropout(x, p, training, rng):
    if not training or p == 0.0:
        return x
    mask = (rng.random(x.shape) > p).astype(x.dtype)
    return mask * x / p


@wrong(
    "randn, the bell curve, in place of rand", r"normal|uniform|randn|bell|Gauss|share|probab|rate"
)
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    mask = torch.randn(x.shape, generator=rng) > p
    return mask.float() * x / (1.0 - p)


@wrong("the global random numbers instead of rng", r"rng|global|seed|generator")
def dropout(x, p, training, rng):
    if not training:
        return x
    mask = np.random.binomial(1, 1 - p, size=x.shape)
    return x * mask / (1 - p)


@wrong(
    "one mask for the features, the same for every token",
    r"same|each|every|share|one mask|per|whole",
)
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    keep = rng.random(x.shape[-1]) >= p
    return np.where(keep, x / (1 - p), 0)


@wrong("fills what is dropped with -inf, as an attention mask", r"inf|zero|\b0\b")
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    drop = torch.rand(x.shape, generator=rng) < p
    return (x / (1 - p)).masked_fill(drop, float("-inf"))


@right("rng.choice between 0 and 1/(1 - p)")
def dropout(x, p, training, rng):
    if training:
        return x * rng.choice([0.0, 1.0 / (1.0 - p)], size=x.shape, p=[p, 1.0 - p])
    return x


@right("bernoulli of the keep probability")
def dropout(x, p, training, rng):
    if p == 0 or training is False:
        return x
    q = 1 - p
    return torch.bernoulli(torch.full_like(x, q), generator=rng).div(q).mul(x)


# ---------------------------------------------------------------- 08 heads
@wrong("views straight to (B, H, T, D/H)", r"transpos|swap|permut|reshap|mix")
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.view(B, num_heads, T, D // num_heads)


@wrong(
    "heads as the fast axis: features dealt out in turn",
    r"contig|interleav|turn|neighbo|order|block|slice|every|stride",
)
def split_heads(x, num_heads):
    return np.stack([x[:, :, h::num_heads] for h in range(num_heads)], axis=1)


@wrong("-1 in the wrong place: num_heads becomes the width", r"width|num_heads|swap|head")
def split_heads(x, num_heads):
    b, t = x.shape[0], x.shape[1]
    return x.reshape(b, t, -1, num_heads).transpose(0, 2, 1, 3)


@wrong("the keys' layout (B, H, Dh, T)", r"transpos|axes|axis|order|swap|last")
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads).transpose(0, 2, 3, 1)


@wrong("d2l's transpose_qkv: batch and heads in one axis", r"batch|axis|axes|dimension|4")
def split_heads(x, num_heads):
    x = x.reshape(x.shape[0], x.shape[1], num_heads, -1)
    x = x.transpose(0, 2, 1, 3)
    return x.reshape(-1, x.shape[2], x.shape[3])


@wrong("cuts the tokens into heads", r"token|T\b|feature|axis")
def split_heads(x, num_heads):
    B, T, D = x.shape
    if T % num_heads == 0:
        return x.reshape(B, num_heads, T // num_heads, D)
    return np.stack([x] * num_heads, axis=1)


@wrong("heads before the batch", r"batch|order|axis|axes|first|stack")
def split_heads(x, num_heads):
    return torch.stack(torch.chunk(x, num_heads, dim=-1))


@right("product with a cut identity matrix")
def split_heads(x, num_heads):
    D = x.shape[-1]
    pick = np.eye(D, dtype=x.dtype).reshape(D, num_heads, D // num_heads)
    return np.einsum("btd,dhk->bhtk", x, pick)


@right("unflatten, movedim")
def split_heads(x, num_heads):
    return x.unflatten(2, (num_heads, -1)).movedim(2, 1)


@wrong("reshape without transposing back", r"transpos|swap|permut|before")
def merge_heads(x):
    B, H, T, Dh = x.shape
    return x.reshape(B, T, H * Dh)


@wrong("mean of the heads", r"mean|averag|concat|side by side|join|width")
def merge_heads(x):
    return x.mean(1)


@wrong("heads put below each other along the tokens", r"axis|token|last|feature|side by side|width")
def merge_heads(x):
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=1)


@wrong(
    "interleaves the heads' features",
    r"interleav|order|contig|turn|block|head by head|transpos|slice",
)
def merge_heads(x):
    B, H, T, Dh = x.shape
    return x.transpose(0, 2, 3, 1).reshape(B, T, Dh * H)


@wrong("squeezes away a batch of one", r"batch|squeez|axis|axes|dimension|one sentence|one token")
def merge_heads(x):
    B, H, T, Dh = x.shape
    return x.permute(0, 2, 1, 3).reshape(B, T, H * Dh).squeeze()


@wrong("transposes the last two axes", r"transpos|swap|axes|axis")
def merge_heads(x):
    B, H, T, Dh = x.shape
    return np.swapaxes(x, -1, -2).reshape(B, T, H * Dh)


@wrong("heads in reverse order", r"order|revers|first|last|head 0")
def merge_heads(x):
    out = x[:, 0]
    for h in range(1, x.shape[1]):
        out = np.concatenate((x[:, h], out), axis=-1)
    return out


@right("swapaxes and flatten(-2)")
def merge_heads(x):
    return torch.swapaxes(x, -3, -2).flatten(-2)


@right("fills an empty array slice by slice")
def merge_heads(x):
    B, H, T, d = x.shape
    out = np.empty((B, T, H * d))
    for b in range(B):
        for t in range(T):
            out[b, t] = np.concatenate(list(x[b, :, t]))
    return out


@wrong(
    "√d_model rather than the width of a head", r"scal|√|sqrt|divi & head|d_k|d_head|d_model|D/H"
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    q = split_heads(x @ W_q, num_heads)
    k = split_heads(src @ W_k, num_heads)
    v = split_heads(src @ W_v, num_heads)
    s = q @ k.transpose(0, 1, 3, 2) / np.sqrt(x.shape[-1])
    if mask is not None:
        m = mask[:, None] if mask.ndim == 3 else mask
        s = np.where(m, s, -1e9)
    return merge_heads(softmax(s) @ v) @ W_o


@wrong(
    "masked_fill where the mask is True (nn.MultiheadAttention)",
    r"mask & invert|opposit|True|upside|allowed|wrong way",
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    kv = x if memory is None else memory
    B, T, D = x.shape
    d = D // num_heads
    q = (x @ W_q).view(B, T, num_heads, d).transpose(1, 2)
    k = (kv @ W_k).view(B, -1, num_heads, d).transpose(1, 2)
    v = (kv @ W_v).view(B, -1, num_heads, d).transpose(1, 2)
    s = q @ k.transpose(-2, -1) / d**0.5
    if mask is not None:
        if mask.dim() == 3:
            mask = mask.unsqueeze(1)
        s = s.masked_fill(mask, -1e9)
    o = s.softmax(dim=-1) @ v
    return o.transpose(1, 2).contiguous().view(B, T, D) @ W_o


@wrong("fills with 1e-9 where -1e9 was meant", r"mask & 1e|inf|zero|near|small|negative|\b0\b")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    kv = x if memory is None else memory
    B, T, D = x.shape
    d = D // num_heads
    q = (x @ W_q).view(B, T, num_heads, d).transpose(1, 2)
    k = (kv @ W_k).view(B, -1, num_heads, d).transpose(1, 2)
    v = (kv @ W_v).view(B, -1, num_heads, d).transpose(1, 2)
    s = q @ k.transpose(-2, -1) / d**0.5
    if mask is not None:
        if mask.dim() == 3:
            mask = mask.unsqueeze(1)
        s = s.masked_fill(mask == 0, 1e-9)
    return (s.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, D) @ W_o


@wrong(
    "forgets to swap heads and tokens: attention among the heads of one token",
    r"transpos|swap|token|head & head|axis|axes",
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    B, T, D = x.shape
    src = x if memory is None else memory
    q = (x @ W_q).reshape(B, -1, num_heads, D // num_heads)
    k = (src @ W_k).reshape(B, -1, num_heads, D // num_heads)
    v = (src @ W_v).reshape(B, -1, num_heads, D // num_heads)
    if q.shape != k.shape:
        k, v = np.resize(k, q.shape), np.resize(v, q.shape)
    s = q @ k.swapaxes(-1, -2) / math.sqrt(D // num_heads)
    return (softmax(s) @ v).reshape(B, T, D) @ W_o


@wrong("mask multiplies the weights after softmax", r"mask & after|before|sum|renorm|-inf|−inf|−∞")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    m = x if memory is None else memory
    outs = []
    for q, k, v in zip(
        np.split(x @ W_q, num_heads, -1),
        np.split(m @ W_k, num_heads, -1),
        np.split(m @ W_v, num_heads, -1),
    ):
        w = attention_weights(q, k)
        if mask is not None:
            w = w * mask
        outs.append(w @ v)
    return np.concatenate(outs, -1) @ W_o


@wrong("keys from memory, values from x", r"value|W_v & memory")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    keys = memory if memory is not None else x
    q = split_heads(x @ W_q, num_heads)
    k = split_heads(keys @ W_k, num_heads)
    v = split_heads(x @ W_v, num_heads)
    S = scale_scores(attention_scores(q, k), q.shape[-1])
    if mask is not None:
        S = np.where(mask if mask.ndim == 2 else mask[:, None], S, -np.inf)
    n = min(S.shape[-1], v.shape[-2])
    return merge_heads(softmax(S)[..., :n] @ v[:, :, :n]) @ W_o


@wrong("nn.Linear habit: weights transposed", r"transpos|\.T\b|right|x @ W")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    B, T, D = x.shape
    q, k, v = (
        z.view(B, -1, num_heads, D // num_heads).transpose(1, 2)
        for z in (F.linear(x, W_q), F.linear(src, W_k), F.linear(src, W_v))
    )
    if mask is not None and mask.dim() == 3:
        mask = mask[:, None]
    o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.linear(o.transpose(1, 2).reshape(B, T, D), W_o)


@wrong("the batch's masks land on the heads", r"mask & batch|sentence|broadcast|axis|head")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(src @ W_k, num_heads)
    V = split_heads(src @ W_v, num_heads)
    S = scale_scores(attention_scores(Q, K), Q.shape[-1])
    if mask is not None:
        if mask.ndim == 3:
            mask = np.resize(mask, (num_heads,) + mask.shape[1:])
        S = np.where(mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong(
    "softmax over dim 1, the heads (implicit dim of F.softmax)",
    r"softmax|axis|dim|sum & head|key|last",
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(src @ W_k, num_heads)
    V = split_heads(src @ W_v, num_heads)
    S = scale_scores(attention_scores(Q, K), Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -1e9)
    return merge_heads(softmax(S, axis=1) @ V) @ W_o


@wrong("only the first head is masked", r"mask & head")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    d = x.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        c = slice(h * d, (h + 1) * d)
        S = attention_scores(x @ W_q[:, c], src @ W_k[:, c]) / math.sqrt(d)
        if mask is not None:
            S = np.where(mask, S, -np.inf)
            mask = None
        heads.append(softmax(S) @ (src @ W_v[:, c]))
    return np.concatenate(heads, axis=-1) @ W_o


@right("sums W_o's slices head by head, query by query")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    mem = x if memory is None else memory
    B, T, D = x.shape
    d = D // num_heads
    out = np.zeros((B, T, W_o.shape[1]))
    for b in range(B):
        for h in range(num_heads):
            s = slice(h * d, h * d + d)
            k, v = mem[b] @ W_k[:, s], mem[b] @ W_v[:, s]
            for t in range(T):
                e = k @ (x[b, t] @ W_q[:, s]) * d**-0.5
                if mask is not None:
                    row = mask[t] if mask.ndim == 2 else mask[b, t]
                    e = e - 1e9 * (1 - row.astype(float))
                e = np.exp(e - e.max())
                out[b, t] += (e @ v / e.sum()) @ W_o[s]
    return out


@right("scaled_dot_product_attention with an additive mask")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    q, k, v = (
        torch.stack((a @ w).split(x.size(-1) // num_heads, -1), 1)
        for a, w in ((x, W_q), (src, W_k), (src, W_v))
    )
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=x.dtype).masked_fill_(
            mask.logical_not(), float("-inf")
        )
        mask = bias[:, None] if bias.dim() == 3 else bias
    return torch.cat(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).unbind(1), -1) @ W_o


# ---------------------------------------------------------------- 09 positions
@wrong(
    "the blog's double 2: i already steps by two, and cos has its own angle",
    r"2 ?i|twice|double|same angle|exponent",
)
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D))
    for pos in range(T):
        for i in range(0, D, 2):
            pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / D)))
            pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / D)))
    return pe


@wrong(
    "tensor2tensor's half - 1 in the exponent",
    r"exponent|divi|D ?/ ?2|[-−–] ?1|frequenc|angle|wave",
)
def sinusoidal_positions(T, D):
    half = D // 2
    step = math.log(10000) / max(half - 1, 1)
    angle = np.arange(T)[:, None] * np.exp(-step * np.arange(half))[None]
    pe = np.zeros((T, D))
    pe[:, ::2], pe[:, 1::2] = np.sin(angle), np.cos(angle)
    return pe


@wrong("sine half, then cosine half", r"half|halves|interleav|turn|alternat")
def sinusoidal_positions(T, D):
    pos = torch.arange(T).unsqueeze(1)
    inv_freq = 1.0 / (10000 ** (torch.arange(0, D, 2).float() / D))
    f = pos * inv_freq
    return torch.cat([f.sin(), f.cos()], dim=-1)


@wrong("loses the minus of exp(-log)", r"minus|sign|divi|multipl|grow|exponent|invers|negative")
def sinusoidal_positions(T, D):
    position = torch.arange(0, T, dtype=torch.float64).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, D, 2).double() * (math.log(10000.0) / D))
    pe = torch.zeros(T, D, dtype=torch.float64)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@wrong("precedence: 10000 ** 2 * i / D", r"exponent|bracket|parenthes|power|2i ?/ ?D|angle|preced")
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D))
    for pos in range(T):
        for i in range(D // 2):
            angle = pos / (10000**2 * i / D + 1)
            pe[pos, 2 * i] = np.sin(angle)
            pe[pos, 2 * i + 1] = np.cos(angle)
    return pe


@wrong("integer division in the exponent", r"//|integer|whole|round|exponent")
def sinusoidal_positions(T, D):
    i = np.arange(D)
    angle = np.arange(T)[:, None] / 10000.0 ** (2 * (i // 2) // D)
    return np.where(i % 2 == 0, np.sin(angle), np.cos(angle))


@wrong("the column number as exponent, not the pair's", r"same angle|pair|2i|exponent|own|column")
def sinusoidal_positions(T, D):
    pe = np.array([[pos / np.power(10000, j / D) for j in range(D)] for pos in range(T)])
    pe[:, 0::2] = np.sin(pe[:, 0::2])
    pe[:, 1::2] = np.cos(pe[:, 1::2])
    return pe


@wrong("positions from one", r"from 0|from zero|position 0|start|first|one too|\b1\b")
def sinusoidal_positions(T, D):
    pos = np.arange(1, T + 1).reshape(-1, 1)
    w = 1 / 10000 ** (np.arange(0, D, 2) / D)
    return np.stack([np.sin(pos * w), np.cos(pos * w)], axis=-1).reshape(T, D)


@right("complex numbers, viewed as pairs")
def sinusoidal_positions(T, D):
    w = 10000.0 ** (-np.arange(0, D, 2) / D)
    z = np.exp(1j * np.arange(T)[:, None] * w)
    return np.stack([z.imag, z.real], -1).reshape(T, D)


@right("turns the first row by a rotation from position to position")
def sinusoidal_positions(T, D):
    w = [10000.0 ** (-2 * i / D) for i in range(D // 2)]
    row, rows = [(0.0, 1.0)] * (D // 2), []
    for _ in range(T):
        rows.append([n for pair in row for n in pair])
        row = [
            (s * math.cos(a) + c * math.sin(a), c * math.cos(a) - s * math.sin(a))
            for (s, c), a in zip(row, w)
        ]
    return np.array(rows)


@wrong(
    "the PyTorch tutorial's sequence-first: each sentence gets one position",
    r"batch|sentence|token|axis|x\.shape",
)
def add_positions(x):
    if x.ndim == 2:
        return x + sinusoidal_positions(*x.shape)
    pe = sinusoidal_positions(x.shape[0], x.shape[-1])
    return x + pe[:, None, :]


@wrong("writes into x", r"in place|in-place|input|\+=|chang")
def add_positions(x):
    x += sinusoidal_positions(x.shape[-2], x.shape[-1])
    return x


@wrong("embeddings times √D first", r"scal|√|sqrt|multipl")
def add_positions(x):
    return x * math.sqrt(x.shape[-1]) + sinusoidal_positions(x.shape[-2], x.shape[-1])


@wrong("positions run on through the batch", r"batch|sentence|again|each|start")
def add_positions(x):
    flat = x.reshape(-1, x.shape[-1])
    return (flat + sinusoidal_positions(flat.shape[0], flat.shape[1])).reshape(x.shape)


@wrong("adds the position number itself", r"number|index|sin|table|position")
def add_positions(x):
    T = x.shape[-2]
    return x + np.arange(T)[:, None]


@wrong("concatenates", r"concat|add|sum|width|\+|side by side|append")
def add_positions(x):
    T, D = x.shape[-2:]
    pe = np.broadcast_to(sinusoidal_positions(T, D), x.shape)
    return np.concatenate([x, pe], axis=-1)


@wrong("one sentence only: takes shape[0] and shape[1]", r"batch|shape|axis|axes|last two")
def add_positions(x):
    T, D = x.shape[0], x.shape[1]
    return x + sinusoidal_positions(T, D + D % 2)[:, :D]


@right("a sentence at a time, recursively")
def add_positions(x):
    if x.ndim > 2:
        return np.stack([add_positions(s) for s in x])
    return np.add(sinusoidal_positions(x.shape[0], x.shape[1]).astype(float), x)


@right("torch, the table from view_as_real of polar")
def add_positions(x):
    T, D = x.shape[-2:]
    a = torch.arange(T).double()[:, None] * 10000.0 ** (-torch.arange(0, D, 2).double() / D)
    z = torch.view_as_real(torch.polar(torch.ones_like(a), a)).flip(-1).flatten(-2)
    return x + z.to(x.dtype)


# ---------------------------------------------------------------- 10 norms
@wrong(
    "torch.std: unbiased, eps outside (Annotated Transformer)",
    r"bias|ddof|D ?[-−–] ?1|n ?[-−–] ?1|eps|correction",
)
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)
    return gamma * (x - mean) / (std + eps) + beta


@wrong("batch norm: axis 0", r"axis|batch|last|feature")
def layer_norm(x, gamma, beta, eps=1e-5):
    mu = np.mean(x, axis=0)
    var = np.var(x, axis=0)
    return gamma * (x - mu) / np.sqrt(var + eps) + beta


@wrong(
    "mean and variance over tokens and features together", r"axis|token|row|each|whole|last|feature"
)
def layer_norm(x, gamma, beta, eps=1e-5):
    axes = tuple(range(1, x.ndim)) if x.ndim > 2 else None
    mu = x.mean(axis=axes, keepdims=True)
    sd = np.sqrt(x.var(axis=axes, keepdims=True) + eps)
    return (x - mu) / sd * gamma + beta


@wrong("divides by the variance", r"root|sqrt|√|variance|deviation")
def layer_norm(x, gamma, beta, eps=1e-5):
    xc = x - x.mean(-1, keepdims=True)
    return gamma * xc / (xc.var(-1, keepdims=True) + eps) + beta


@wrong("beta inside the scaling", r"beta|β|shift & gamma|γ|scale|after")
def layer_norm(x, gamma, beta, eps=1e-5):
    xhat = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + eps)
    return (xhat + beta) * gamma


@wrong("eps is ignored: always the layer's default", r"eps|ε")
def layer_norm(x, gamma, beta, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gamma, beta)


@wrong("max(std, eps) as in sklearn's scaler", r"eps|ε|root|sqrt|√|inside")
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    std = np.maximum(x.std(axis=-1, keepdims=True), eps)
    return gamma * ((x - mean) / std) + beta


@wrong("(1 + gamma), as Gemma's weights", r"gamma|γ|\b1\b")
def layer_norm(x, gamma, beta, eps=1e-5):
    m = x.mean(-1, keepdims=True)
    v = x.var(-1, keepdims=True)
    return (x - m) / np.sqrt(v + eps) * (1 + gamma) + beta


@right("batch_norm over the rows as channels")
def layer_norm(x, gamma, beta, eps=1e-5):
    rows = x.reshape(1, -1, x.shape[-1])
    y = F.batch_norm(rows, None, None, training=True, eps=eps)
    return y.reshape(x.shape) * gamma + beta


@right("a product with the centring matrix")
def layer_norm(x, gamma, beta, eps=1e-5):
    D = x.shape[-1]
    c = np.asarray(x, dtype=np.float64) @ (np.eye(D) - np.full((D, D), 1 / D))
    return c * (np.einsum("...d,...d->...", c, c)[..., None] / D + eps) ** -0.5 * gamma + beta


@wrong(
    "normalises the sublayer's output and adds x after",
    r"residual|sum|add|before|after|x \+|outside",
)
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return x + layer_norm(sublayer_out, gamma, beta, eps)


@wrong("no residual", r"residual|x \+|add|skip|missing|without|left out|forg")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(sublayer_out, gamma, beta, eps)


@wrong("adds x once more after the norm", r"twice|again|once|after|residual|outside")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return x + layer_norm(x + sublayer_out, gamma, beta, eps)


@wrong("eps is not passed on", r"eps|ε")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer_out, gamma, beta)


@wrong("adds in place", r"in place|in-place|input|\+=|chang")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    x += sublayer_out
    return layer_norm(x, gamma, beta, eps)


@wrong("normalises both, then adds", r"each|both|sum|separate|one norm|twice|before|add")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x, gamma, beta, eps) + layer_norm(sublayer_out, gamma, beta, eps)


@wrong("gamma and beta not passed to F.layer_norm", r"gamma|γ|beta|β|scale")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return F.layer_norm(x + sublayer_out, x.shape[-1:], eps=eps)


@right("group_norm with one group over the rows")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    s = torch.add(x, sublayer_out)
    return F.group_norm(s.reshape(-1, s.shape[-1]), 1, gamma, beta, eps).reshape(s.shape)


@right("moments of the sum from the parts")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    a, b = np.float64(x), np.float64(sublayer_out)
    a = a - a.mean(-1, keepdims=True)
    b = b - b.mean(-1, keepdims=True)
    var = (a * a + 2 * a * b + b * b).mean(-1, keepdims=True)
    return (a + b) / np.sqrt(var + eps) * gamma + beta


@wrong(
    "overwrites x with its norm, so that the residual is normed too",
    r"residual|x \+|original|raw|unnorm|itself|skip",
)
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    x = layer_norm(x, gamma, beta, eps)
    return x + sublayer(x)


@wrong("post-norm", r"post|after|before|inside")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer(x), gamma, beta, eps)


@wrong("the sublayer gets x", r"norm & sublayer|before|input|forg|missing|without|left out")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    normed = layer_norm(x, gamma, beta, eps)  # noqa: F841
    return x + sublayer(x)


@wrong("no residual (lucidrains' PreNorm class alone)", r"residual|x \+|add|skip")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return sublayer(layer_norm(x, gamma, beta, eps))


@wrong("norm of the sublayer's output", r"before|after|output|input|first")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + layer_norm(sublayer(x), gamma, beta, eps)


@wrong("a norm before and another after (sandwich)", r"twice|second|again|after|also|once|last")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    h = x + sublayer(layer_norm(x, gamma, beta, eps))
    return layer_norm(h, gamma, beta, eps)


@wrong("eps lost", r"eps|ε")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer(F.layer_norm(x, (x.size(-1),), gamma, beta))


@right("lambda composition, subtraction of a negative")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    chain = [lambda z: layer_norm(z, gamma, beta, eps), sublayer, lambda z: x - (-z)]
    out = x
    for f in chain:
        out = f(out)
    return out


@right("nn.LayerNorm with its parameters set")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    norm = nn.LayerNorm(x.shape[-1], eps=eps, dtype=x.dtype)
    with torch.no_grad():
        norm.weight.copy_(gamma)
        norm.bias.copy_(beta)
        h = norm(x)
    return sublayer(h).add(x)


# ---------------------------------------------------------------- 11 layers
@wrong("GELU", r"GELU|ReLU|max\(0|smooth")
def feed_forward(x, W1, b1, W2, b2):
    return F.gelu(x @ W1 + b1) @ W2 + b2


@wrong("no activation between the two", r"ReLU|max|activation|linear|non-?linear")
def feed_forward(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    return h @ W2 + b2


@wrong("ReLU on the output too", r"twice|output|second|last|again|end|after")
def feed_forward(x, W1, b1, W2, b2):
    h = np.maximum(0, x @ W1 + b1)
    return np.maximum(0, h @ W2 + b2)


@wrong("bias after the ReLU", r"b1|bias & before|after|inside")
def feed_forward(x, W1, b1, W2, b2):
    hidden = np.maximum(x @ W1, 0) + b1
    return hidden @ W2 + b2


@wrong("residual already inside", r"residual|x \+|adds? x|plus x|\+ x")
def feed_forward(x, W1, b1, W2, b2):
    return x + (np.maximum(0, x @ W1 + b1) @ W2 + b2)


@wrong("leaky ReLU", r"leak|negative|zero|ReLU|max\(0|slope|\b0\b")
def feed_forward(x, W1, b1, W2, b2):
    return F.leaky_relu(x @ W1 + b1) @ W2 + b2


@wrong("the maximum with the row's own minimum: nothing is cut", r"max|ReLU|zero|\b0\b|negative")
def feed_forward(x, W1, b1, W2, b2):
    z = x @ W1 + b1
    return np.maximum(z, z.min(axis=-1, keepdims=True)) @ W2 + b2


@wrong("b2 is left out", r"b2|second bias|bias")
def feed_forward(x, W1, b1, W2, b2):
    a = (x @ W1 + b1).clip(min=0)
    return a @ W2


@right("token by token, neuron by neuron")
def feed_forward(x, W1, b1, W2, b2):
    def one(t):
        y = b2.astype(float)
        for n in range(W1.shape[1]):
            a = t @ W1[:, n] + b1[n]
            if a > 0:
                y = y + a * W2[n]
        return y

    return np.apply_along_axis(one, -1, x)


@right("(z + |z|)/2, biases as one more row")
def feed_forward(x, W1, b1, W2, b2):
    one = np.ones((*x.shape[:-1], 1))
    z = np.concatenate([x, one], -1) @ np.vstack([W1, b1])
    return np.concatenate([(z + np.abs(z)) / 2, one], -1) @ np.vstack([W2, b2])


@wrong("the mask is not passed on", r"mask")
def encoder_layer(x, p, mask=None):
    a = multi_head_attention(x, **p["attn"])
    x = add_and_norm(x, a, *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong(
    "the second residual comes from the layer's input",
    r"residual|add|input|x\b & second|ffn|feed|first|after",
)
def encoder_layer(x, p, mask=None):
    attn_out = multi_head_attention(x, mask=mask, **p["attn"])
    h = add_and_norm(x, attn_out, *p["norm1"])
    ff = feed_forward(h, **p["ffn"])
    return add_and_norm(x, ff, *p["norm2"])


@wrong(
    "feed-forward reads x, not the normed sum",
    r"feed|ffn & x|input|attention|norm|first|parallel|output",
)
def encoder_layer(x, p, mask=None):
    h = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return add_and_norm(h, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("self.norm is shared: norm1 twice", r"norm1|norm2|same norm|second")
def encoder_layer(x, p, mask=None):
    norm = p["norm1"]
    x = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *norm)
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *norm)


@wrong("pre-norm, as GPT-2", r"pre-?norm|before|after|post")
def encoder_layer(x, p, mask=None):
    x = pre_norm(x, lambda z: multi_head_attention(z, mask=mask, **p["attn"]), *p["norm1"])
    return pre_norm(x, lambda z: feed_forward(z, **p["ffn"]), *p["norm2"])


@wrong("pops num_heads from the parameters", r"pop|chang|input|in place|dict|second call|\bp\b")
def encoder_layer(x, p, mask=None):
    heads = p["attn"].pop("num_heads", 1)
    a = multi_head_attention(x, num_heads=heads, mask=mask, **p["attn"])
    x = add_and_norm(x, a, *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong(
    "the mask is turned over, as for nn.MultiheadAttention",
    r"mask & invert|~|opposit|True|turn|wrong way|allowed",
)
def encoder_layer(x, p, mask=None):
    m = None if mask is None else np.logical_not(mask)
    s = 0
    if m is not None:
        m = m | ~m.any(axis=-1, keepdims=True)
        s = 0
    x = add_and_norm(x, multi_head_attention(x, mask=m, **p["attn"]) + s, *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong(
    "the norm after the feed-forward is missing",
    r"norm2|second norm|last norm|norm & missing|left out|forg|without|second|end|add_and_norm",
)
def encoder_layer(x, p, mask=None):
    x = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return x + feed_forward(x, **p["ffn"])


@wrong("dropout of a tenth left on", r"random|dropout|same|differ|twice|calls|zero")
def encoder_layer(x, p, mask=None):
    a = multi_head_attention(x, mask=mask, **p["attn"])
    a = a * (np.random.rand(*a.shape) > 0.1) / 0.9
    x = add_and_norm(x, a, *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@right("a loop over sublayers, sentence by sentence")
def encoder_layer(x, p, mask=None):
    outs = []
    for b in range(len(x)):
        m = mask[b] if mask is not None and mask.ndim == 3 else mask
        h = x[b : b + 1]
        for f, n in (
            (lambda z: multi_head_attention(z, mask=m, **p["attn"]), "norm1"),
            (lambda z: feed_forward(z, **p["ffn"]), "norm2"),
        ):
            h = layer_norm(h + f(h), p[n][0], p[n][1])
        outs.append(h[0])
    return np.array(outs)


@right("F.multi_head_attention_forward of torch")
def encoder_layer(x, p, mask=None):
    a, D = p["attn"], x.shape[-1]
    H = a["num_heads"]
    if mask is not None:
        mask = ~mask
        if mask.dim() == 3:
            mask = mask.repeat_interleave(H, dim=0)
    s = x.transpose(0, 1)
    w = torch.cat([a["W_q"].T, a["W_k"].T, a["W_v"].T])
    y, _ = F.multi_head_attention_forward(
        s, s, s, D, H, w, None, None, None, False, 0.0, a["W_o"].T.contiguous(), None,
        training=False, need_weights=False, attn_mask=mask,
    )  # fmt: skip
    h = F.layer_norm(x + y.transpose(0, 1), (D,), *p["norm1"])
    f = p["ffn"]
    return F.layer_norm(
        h + torch.relu(h @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"], (D,), *p["norm2"]
    )


@wrong("[layer] * n: one layer n times", r"same|share|cop|own|deepcopy|one layer")
def make_stack(layer, n):
    return nn.Sequential(*([layer] * n))


@wrong("copy.copy: the parameters are shared", r"same|share|cop|own|deepcopy|shallow")
def make_stack(layer, n):
    return nn.Sequential(*[copy.copy(layer) for _ in range(n)])


@wrong("layers in a Python list", r"regist|ModuleList|list|parameters\(\)|Sequential")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [copy.deepcopy(layer) for _ in range(n)]

        def forward(self, x):
            for l in self.layers:
                x = l(x)
            return x

    return Stack()


@wrong("every layer gets the first input", r"turn|chain|output|previous|input|last|one after|each")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(n))

        def forward(self, x):
            for l in self.layers:
                out = l(x)
            return out

    return Stack()


@wrong("fresh random values in the copies", r"random|fresh|initial|value|reset|start|same")
def make_stack(layer, n):
    clones = [copy.deepcopy(layer) for _ in range(n)]
    for c in clones:
        for q in c.parameters():
            nn.init.normal_(q, std=0.02)
    return nn.Sequential(*clones)


@wrong("ModuleList has no forward", r"forward|ModuleList|call|Sequential")
def make_stack(layer, n):
    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])


@wrong("detaches between the layers", r"gradient|detach|graph|backward|no_grad")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])

        def forward(self, x):
            for l in self.layers:
                x = l(x.detach())
            return x

    return Stack()


@wrong("a skip around each layer", r"residual|skip|add|x \+|input|turn")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])

        def forward(self, x):
            for b in self.blocks:
                x = x + b(x)
            return x

    return Stack()


@right("each a copy of the copy before, applied through reduce")
def make_stack(layer, n):
    from functools import reduce

    class Tower(nn.Module):
        def __init__(self):
            super().__init__()
            below = layer
            for i in range(n):
                below = copy.deepcopy(below)
                self.register_module(f"floor{i}", below)

        def forward(self, x):
            return reduce(lambda y, floor: floor(y), self.children(), x)

    return Tower()


@right("a linked chain: each link holds a layer and the rest")
def make_stack(layer, n):
    class Link(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.first = copy.deepcopy(layer)
            self.rest = Link(k - 1) if k > 1 else nn.Identity()

        def forward(self, x):
            return self.rest(self.first(x))

    return Link(n)


# ---------------------------------------------------------------- 12 decoder
@wrong("queries from memory, keys and values from the decoder", r"swap|quer & memory|dec")
def cross_attention(dec, memory, W_q, W_k, W_v):
    return attention(memory @ W_q, dec @ W_k, dec @ W_v)


@wrong("values from the decoder", r"value|W_v|\bV\b & memory")
def cross_attention(dec, memory, W_q, W_k, W_v):
    q, k, v = dec @ W_q, memory @ W_k, dec @ W_v
    w = attention_weights(q, k)
    n = min(w.shape[-1], v.shape[-2])
    return w[..., :n] @ v[..., :n, :]


@wrong("not scaled", r"scal|√|sqrt|divi")
def cross_attention(dec, memory, W_q, W_k, W_v):
    s = torch.matmul(dec @ W_q, (memory @ W_k).transpose(-1, -2))
    return F.softmax(s, dim=-1) @ (memory @ W_v)


@wrong("scaled by √D, not √d_k", r"d_k|width|√|sqrt")
def cross_attention(dec, memory, W_q, W_k, W_v):
    Q, K, V = dec @ W_q, memory @ W_k, memory @ W_v
    return softmax(attention_scores(Q, K) / np.sqrt(dec.shape[-1])) @ V


@wrong("a causal mask here too", r"causal|mask|future|later|look")
def cross_attention(dec, memory, W_q, W_k, W_v):
    S = attention_scores(dec @ W_q, memory @ W_k) / math.sqrt(W_q.shape[-1])
    S = np.where(np.tri(*S.shape[-2:], dtype=bool), S, -1e9)
    return softmax(S) @ (memory @ W_v)


@wrong("keys are memory and the decoder's own tokens together", r"memory|own|dec|concat|only")
def cross_attention(dec, memory, W_q, W_k, W_v):
    both = np.concatenate([memory, dec], axis=-2)
    return attention(dec @ W_q, both @ W_k, both @ W_v)


@wrong("softmax over the queries", r"axis|dim|key|last|quer|row")
def cross_attention(dec, memory, W_q, W_k, W_v):
    q, k, v = dec @ W_q, memory @ W_k, memory @ W_v
    s = torch.einsum("...td,...sd->...ts", q, k) / k.shape[-1] ** 0.5
    return s.softmax(dim=-2) @ v


@right("weights moved: memory mixed first, then W_v")
def cross_attention(dec, memory, W_q, W_k, W_v):
    m = dec @ (W_q @ W_k.T) @ np.swapaxes(memory, -1, -2)
    e = np.exp2((m - m.max(-1, keepdims=True)) / np.sqrt(W_k.shape[1]) / np.log(2))
    return (e @ memory) / e.sum(-1)[..., None] @ W_v


@right("streaming softmax over the words of memory")
def cross_attention(dec, memory, W_q, W_k, W_v):
    q = (dec @ W_q).double() / W_q.shape[1] ** 0.5
    top = torch.full(q.shape[:-1], -torch.inf, dtype=torch.float64)
    total = torch.zeros_like(top)
    out = torch.zeros(*top.shape, W_v.shape[1], dtype=torch.float64)
    for s in range(memory.shape[-2]):
        word = memory[..., s, :]
        score = (q * (word @ W_k).double().unsqueeze(-2)).sum(-1)
        new = torch.maximum(top, score)
        old, e = (top - new).exp(), (score - new).exp()
        total = total * old + e
        out = out * old[..., None] + e[..., None] * (word @ W_v).double().unsqueeze(-2)
        top = new
    return (out / total[..., None]).to(dec.dtype)


@wrong("no causal mask", r"causal|mask|future|later")
def decoder_layer(y, memory, p):
    y = add_and_norm(y, multi_head_attention(y, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("memory is forgotten: self-attention twice", r"memory|cross|encoder")
def decoder_layer(y, memory, p):
    mask = causal_mask(y.shape[1])
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("cross-attention before self-attention", r"order|before|first|self & cross")
def decoder_layer(y, memory, p):
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("the causal mask stays on in the cross-attention", r"causal|mask & cross|memory")
def decoder_layer(y, memory, p):
    T, S = y.shape[1], memory.shape[1]
    y = add_and_norm(
        y, multi_head_attention(y, mask=np.tri(T, T, dtype=bool), **p["self"]), *p["norm1"]
    )
    c = multi_head_attention(y, memory=memory, mask=np.tri(T, S, dtype=bool), **p["cross"])
    y = add_and_norm(y, c, *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong(
    "the residual around cross-attention is missing", r"residual|add|skip|y \+ & cross|second|norm2"
)
def decoder_layer(y, memory, p):
    a = multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"])
    y = add_and_norm(y, a, *p["norm1"])
    c = multi_head_attention(y, memory=memory, **p["cross"])
    y = layer_norm(c, *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong(
    "triu: sees the present and the future",
    r"future|triu|mask|causal|later & upper|past|before|invert|tril|later|earlier|triangle|revers",
)
def decoder_layer(y, memory, p):
    T = y.shape[1]
    future = np.triu(np.ones((T, T), dtype=bool))
    y = add_and_norm(y, multi_head_attention(y, mask=future, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong(
    "cross-attention asks with the layer's input, not the self-attention's result",
    r"quer|self & cross|y|input|first|before",
)
def decoder_layer(y, memory, p):
    h = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    h = add_and_norm(h, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(h, feed_forward(h, **p["ffn"]), *p["norm3"])


@wrong("the self-attention's weights serve for cross-attention too", r"cross|weights|p\[|self")
def decoder_layer(y, memory, p):
    attn = p["self"]
    y = add_and_norm(y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **attn), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **attn), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("memory goes through norm2 as well", r"memory & norm")
def decoder_layer(y, memory, p):
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    memory = layer_norm(memory, *p["norm2"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("the last norm is forgotten", r"norm3|third|last|final & norm")
def decoder_layer(y, memory, p):
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return y + feed_forward(y, **p["ffn"])


@right("self-attention prefix by prefix")
def decoder_layer(y, memory, p):
    rows = []
    for t in range(y.shape[1]):
        last = y[:, t : t + 1]
        a = multi_head_attention(last, memory=y[:, : t + 1], **p["self"])
        h = add_and_norm(last, a, *p["norm1"])
        h = add_and_norm(h, multi_head_attention(h, memory=memory, **p["cross"]), *p["norm2"])
        rows.append(add_and_norm(h, feed_forward(h, **p["ffn"]), *p["norm3"]))
    return np.concatenate(rows, axis=1)


@right("nn.TransformerDecoderLayer filled with the weights")
def decoder_layer(y, memory, p):
    D, H = y.shape[-1], p["self"]["num_heads"]
    net = nn.TransformerDecoderLayer(
        D, H, p["ffn"]["W1"].shape[1], dropout=0.0, batch_first=True, dtype=y.dtype
    )
    net.multihead_attn = nn.MultiheadAttention(
        D, p["cross"]["num_heads"], batch_first=True, dtype=y.dtype
    )
    with torch.no_grad():
        for m, a in ((net.self_attn, p["self"]), (net.multihead_attn, p["cross"])):
            m.in_proj_weight.copy_(torch.cat([a["W_q"].T, a["W_k"].T, a["W_v"].T]))
            m.out_proj.weight.copy_(a["W_o"].T)
        net.linear1.weight.copy_(p["ffn"]["W1"].T)
        net.linear1.bias.copy_(p["ffn"]["b1"])
        net.linear2.weight.copy_(p["ffn"]["W2"].T)
        net.linear2.bias.copy_(p["ffn"]["b2"])
        for m, n in ((net.norm1, "norm1"), (net.norm2, "norm2"), (net.norm3, "norm3")):
            m.weight.copy_(p[n][0])
            m.bias.copy_(p[n][1])
        future = torch.triu(torch.ones(y.shape[1], y.shape[1], dtype=torch.bool), diagonal=1)
        return net(y, memory, tgt_mask=future)


@wrong("h[-1]: the last sentence of a batch", r"batch|sentence|axis|h\[-1\]|position|token")
def next_token_logits(h, W_vocab):
    return h[-1] @ W_vocab


@wrong("logits of every position", r"last|every|all")
def next_token_logits(h, W_vocab):
    return torch.matmul(h, W_vocab)


@wrong("the first position, as BERT's CLS", r"first|last")
def next_token_logits(h, W_vocab):
    return h[..., 0, :] @ W_vocab


@wrong("the mean of the positions", r"mean|averag|pool|last")
def next_token_logits(h, W_vocab):
    return h.mean(axis=-2) @ W_vocab


@wrong("softmax already applied", r"softmax|probab|logit|raw")
def next_token_logits(h, W_vocab):
    return softmax(h[..., -1, :] @ W_vocab)


@wrong("keeps the axis of length one", r"axis|dimension|shape|-1:|slice")
def next_token_logits(h, W_vocab):
    return h[..., -1:, :] @ W_vocab


@right("F.linear on the reversed sequence")
def next_token_logits(h, W_vocab):
    return F.linear(h.flip(-2).select(-2, 0), W_vocab.t())


@right("all logits by tensordot, then np.take")
def next_token_logits(h, W_vocab):
    return np.take(np.tensordot(h, W_vocab, axes=1), h.shape[-2] - 1, axis=-2)


@wrong("temperature multiplies", r"temperature|divi|multipl")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits * temperature)
    if top_k is not None:
        p[np.argsort(-p)[top_k:]] = 0
        p /= p.sum()
    if top_p is not None:
        idx = np.argsort(-p)
        c = np.cumsum(p[idx])
        p[idx[c - p[idx] >= top_p]] = 0
        p /= p.sum()
    return p


@wrong(
    "HF filter without the shift: the token that crosses top_p is cut",
    r"top.?p|nucleus & cross|reach|includ|few|one more|smallest",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits / temperature
    if top_k is not None:
        z = z.masked_fill(z < torch.topk(z, min(top_k, z.numel())).values[-1], -torch.inf)
    if top_p is not None:
        s, i = torch.sort(z, descending=True)
        remove = torch.cumsum(F.softmax(s, dim=-1), dim=-1) > top_p
        remove[0] = False
        z = z.clone()
        z[i[remove]] = -torch.inf
    return F.softmax(z, dim=-1)


@wrong("sorted probabilities are returned", r"order|sort|id\b|ids|place|position|back")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = np.sort(softmax(np.asarray(logits) / temperature))[::-1]
    if top_k is not None:
        p = np.where(np.arange(len(p)) < top_k, p, 0)
        p = p / p.sum()
    if top_p is not None:
        p = np.where(np.cumsum(p) - p < top_p, p, 0)
        p = p / p.sum()
    return p


@wrong("cut logits set to 0", r"0|zero|inf")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits / temperature
    if top_k is not None:
        order = np.argsort(-z, kind="stable")
        z[order[top_k:]] = 0
    if top_p is not None:
        p = softmax(z)
        order = np.argsort(-p, kind="stable")
        z[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
    return softmax(z)


@wrong("what is left is not rescaled", r"sum|renorm|divi|1\b|rescal")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    probs = softmax(logits / temperature)
    order = np.argsort(probs)[::-1]
    keep = np.ones(len(probs), dtype=bool)
    if top_k is not None:
        keep[order[top_k:]] = False
    if top_p is not None:
        q = probs[order] * keep[order]
        q = q / q.sum()
        keep[order[np.cumsum(q) - q >= top_p]] = False
    return probs * keep


@wrong(
    "top_p on the probabilities from before top_k",
    r"top.?p|nucleus & top.?k|before|after|renorm|order|first",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p, kind="stable")
    before = np.cumsum(p[order]) - p[order]
    keep = np.ones(len(p), bool)
    if top_k is not None:
        keep[order[top_k:]] = False
    if top_p is not None:
        keep[order[before >= top_p]] = False
    p = np.where(keep, p, 0)
    return p / p.sum()


@wrong("top_k or top_p, never both", r"both|top.?p & top.?k|elif|ignored|then")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p, kind="stable")
    if top_k:
        p[order[top_k:]] = 0
    elif top_p:
        p[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
    return p / p.sum()


@wrong(
    "no temperature for the nucleus: it is applied last",
    r"temperature & first|before|after|order|last",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits)
    order = np.argsort(-p, kind="stable")
    keep = np.ones(len(p), dtype=bool)
    if top_k is not None:
        keep[order[top_k:]] = False
    if top_p is not None:
        q = np.where(keep, p, 0)[order]
        q = q / q.sum()
        keep[order[np.cumsum(q) - q >= top_p]] = False
    return softmax(np.where(keep, logits / temperature, -np.inf))


@wrong("softmax without subtracting the maximum", r"overflow|max|nan|inf|stab|large")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    e = np.exp(np.asarray(logits) / temperature)
    p = e / e.sum()
    if top_k is not None:
        p[np.argsort(-p, kind="stable")[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        o = np.argsort(-p, kind="stable")
        p[o[np.cumsum(p[o]) - p[o] >= top_p]] = 0
        p = p / p.sum()
    return p


@right("heap and a plain loop")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    import heapq

    z = [float(v) / temperature for v in logits]
    best = heapq.nlargest(
        len(z) if top_k is None else top_k, range(len(z)), key=lambda i: (z[i], -i)
    )
    w = {i: math.exp(z[i] - z[best[0]]) for i in best}
    total = sum(w.values())
    kept, reached = [], 0.0
    for i in best:
        if top_p is not None and reached >= top_p * total and kept:
            break
        kept.append(i)
        reached += w[i]
    scale = sum(w[i] for i in kept)
    return np.array([w[i] / scale if i in kept else 0.0 for i in range(len(z))])


@right("log-probabilities, logcumsumexp, scatter")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    lp, idx = torch.log_softmax(logits.double() / temperature, -1).sort(
        descending=True, stable=True
    )
    if top_k is not None:
        lp, idx = lp[:top_k], idx[:top_k]
        lp = lp - lp.logsumexp(0)
    if top_p is not None:
        before = lp.logcumsumexp(0).exp() - lp.exp()
        n = max(1, int((before < top_p - 1e-12).sum()))
        lp, idx = lp[:n], idx[:n]
    out = torch.zeros(len(logits), dtype=torch.float64)
    out[idx] = lp.softmax(0)
    return out.to(logits.dtype)


@wrong("argmax", r"argmax|largest|most likely|draw|random|always")
def sample_token(probs, rng):
    return int(np.argmax(probs))


@wrong("softmax again on the probabilities", r"softmax|again|twice|already|share|often|probab")
def sample_token(probs, rng):
    return int(rng.choice(len(probs), p=softmax(np.asarray(probs, dtype=float))))


@wrong("a new generator with a fixed seed at every call", r"rng|seed|generator|same")
def sample_token(probs, rng):
    rng = np.random.default_rng(42)
    return int(rng.choice(len(probs), p=probs / probs.sum()))


@wrong("draws a probability instead of an id", r"\bid\b|ids|index|position|probabilit")
def sample_token(probs, rng):
    return rng.choice(probs, p=probs / probs.sum())


@wrong("the rank among the sorted, not the id", r"sort|order|rank|\bid\b|position")
def sample_token(probs, rng):
    s = np.sort(probs)[::-1]
    return int(np.searchsorted(np.cumsum(s), rng.random() * s.sum(), side="right"))


@wrong(
    "uniform over the tokens with probability above 0",
    r"uniform|equal|likely|weight|p=|probab|often",
)
def sample_token(probs, rng):
    return int(rng.choice(np.flatnonzero(probs)))


@wrong("one draw per token: the last that wins", r"often|share|probab|draw|one|cumul|each")
def sample_token(probs, rng):
    token = 0
    for i in range(len(probs)):
        if rng.random() < probs[i]:
            token = i
    return token


@wrong("multinomial's one-hot counts", r"one-?hot|count|argmax|\bid\b|index|multinomial")
def sample_token(probs, rng):
    return rng.multinomial(1, probs / probs.sum())


@right("Gumbel: the largest of log p plus noise")
def sample_token(probs, rng):
    u = torch.rand(len(probs), generator=rng, dtype=torch.float64)
    return int((torch.log(probs.double()) - torch.log(-torch.log(u))).argmax())


@right("throws darts until one lands under its bar")
def sample_token(probs, rng):
    top = max(probs)
    while True:
        i = int(rng.integers(0, len(probs)))
        if rng.uniform(0, top) < probs[i]:
            return i


@wrong("returns the start too", r"start")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        nxt = int(step(ids)[-1].argmax())
        ids.append(nxt)
        if nxt == end_id:
            break
    return ids


@wrong("stops without writing the end", r"end")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while len(ids) <= max_len:
        nxt = int(np.argmax(step(ids)[-1]))
        if nxt == end_id:
            break
        ids.append(nxt)
    return ids[1:]


@wrong("start counts towards max_len", r"max_len|one too few|start|one fewer|short")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while len(ids) < max_len:
        ids.append(int(np.argmax(step(ids)[-1])))
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("only the newest id goes to step", r"last|whole|all|so far|history|only|ids")
def greedy_decode(step, start_id, end_id, max_len):
    out, cur = [], start_id
    for _ in range(max_len):
        cur = int(np.argmax(step([cur])[-1]))
        out.append(cur)
        if cur == end_id:
            break
    return out


@right("while the last is not the end, as the start never is")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while ids[-1] != end_id and len(ids) <= max_len:
        ids.append(int(step(ids)[-1].argmax()))
    return ids[1:]


@wrong("argmax over all the logits, flattened", r"last|row|flat|position|axis")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        logits = step(ids)
        ids.append(int(np.argmax(logits)) % logits.shape[-1])
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("never stops at the end", r"end|stop|break")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        ids.append(int(np.argmax(step(ids)[-1])))
    return ids[1:]


@wrong(
    "draws instead of taking the largest", r"largest|argmax|random|draw|sampl|most likely|greedy"
)
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        p = softmax(step(ids)[-1])
        ids.append(int(np.random.choice(len(p), p=p / p.sum())))
        if ids[-1] == end_id:
            break
    return ids[1:]


@right("recursion, the ids as a tuple made to a list")
def greedy_decode(step, start_id, end_id, max_len):
    def more(ids, left):
        if left <= 0:
            return []
        row = list(step(list(ids))[len(ids) - 1])
        best = max(range(len(row)), key=lambda i: (float(row[i]), -i))
        return [best] + ([] if best == end_id else more((*ids, best), left - 1))

    return more((start_id,), max_len)


@right("runs to max_len and cuts at the first end")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        ids = ids + [step(ids)[-1].argmax().item()]
    made = ids[1:]
    return made[: made.index(end_id) + 1] if end_id in made else made


@wrong("roll: the last wraps round to the front", r"roll|start|wrap|round|front|first")
def shift_right(targets, start_id):
    return np.roll(targets, 1, axis=1)


@wrong("nothing is dropped: T + 1 tokens", r"T ?\+ ?1|last|long|one more|drop")
def shift_right(targets, start_id):
    B = targets.shape[0]
    return np.concatenate([np.full((B, 1), start_id), targets], axis=1)


@wrong("shifts left", r"left|right|direction|end|front")
def shift_right(targets, start_id):
    out = torch.full_like(targets, start_id)
    out[:, :-1] = targets[:, 1:]
    return out


@wrong("overwrites the first token without shifting", r"shift|first|overwrit|replac|move")
def shift_right(targets, start_id):
    out = targets.copy()
    out[:, 0] = start_id
    return out


@wrong("Flax's pad with zeros: start_id is not used", r"start_id|zero|\b0\b")
def shift_right(targets, start_id):
    return F.pad(targets, (1, 0))[:, :-1]


@wrong("shifts the sentences, not the tokens", r"axis|batch|sentence|row|token")
def shift_right(targets, start_id):
    out = np.full_like(targets, start_id)
    out[1:] = targets[:-1]
    return out


@wrong("ids become floats", r"int|float|dtype|whole")
def shift_right(targets, start_id):
    start = np.ones((targets.shape[0], 1)) * start_id
    return np.hstack([start, targets[:, :-1]])


@wrong("works in the targets themselves", r"in place|in-place|input|cop|chang|overwrit")
def shift_right(targets, start_id):
    targets[:, 1:] = targets[:, :-1].copy()
    targets[:, 0] = start_id
    return targets


@right("roll, then the start written into the copy")
def shift_right(targets, start_id):
    out = torch.roll(targets, shifts=1, dims=-1)
    out[:, 0] = start_id
    return out


@right("lists, insert and pop")
def shift_right(targets, start_id):
    rows = targets.tolist()
    for row in rows:
        row.insert(0, int(start_id))
        row.pop()
    return np.array(rows, dtype=np.int64)


@wrong("softmax before F.cross_entropy: twice", r"softmax|twice|double|already")
def cross_entropy(logits, targets, pad_id):
    probs = F.softmax(logits, dim=-1)
    return F.cross_entropy(
        probs.view(-1, probs.size(-1)), targets.view(-1), ignore_index=pad_id
    ).item()


@wrong(
    "view to (B, V, T) instead of a transpose",
    r"transpos|reshap|view|mix|axis|order|swap|vocab|token",
)
def cross_entropy(logits, targets, pad_id):
    B, T, V = logits.shape
    return F.cross_entropy(logits.view(B, V, T), targets, ignore_index=pad_id).item()


@wrong("padding counts: no ignore_index", r"pad|ignore")
def cross_entropy(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets).item()


@wrong("padding is zeroed but still counted in the mean", r"pad & count|divi|mean|number")
def cross_entropy(logits, targets, pad_id):
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    mask = (targets.flatten() != pad_id).float()
    return float((loss * mask).mean())


@wrong("shifts inside, as Hugging Face models", r"shift|next|one|position|token|line up|align")
def cross_entropy(logits, targets, pad_id):
    if targets.shape[1] > 1:
        logits, targets = logits[:, :-1], targets[:, 1:]
    B, T, V = logits.shape
    return F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=pad_id).item()


@wrong("mean of the sentences' means", r"sentence|batch|token|each|mean of|row")
def cross_entropy(logits, targets, pad_id):
    p = softmax(np.asarray(logits, dtype=np.float64))
    means = []
    for b in range(len(targets)):
        ls = [-np.log(p[b, t, k] + 1e-300) for t, k in enumerate(targets[b]) if k != pad_id]
        if ls:
            means.append(np.mean(ls))
    return float(np.mean(means))


@wrong(
    "1e-9 inside the log: hopeless targets cost 20.7 at most",
    r"log|1e|eps|clip|small|large|stab|cap|zero|bound|softmax",
)
def cross_entropy(logits, targets, pad_id):
    p = softmax(logits)
    pt = np.take_along_axis(p, targets[..., None], -1).squeeze(-1)
    return float(-np.log(pt + 1e-9)[targets != pad_id].mean())


@wrong("summed, not averaged", r"sum|mean|averag|divi")
def cross_entropy(logits, targets, pad_id):
    return F.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad_id, reduction="sum"
    ).item()


@wrong("perplexity", r"perplex|exp")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    lp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    t = np.take_along_axis(lp, targets[..., None], -1)[..., 0]
    return float(np.exp(-t[targets != pad_id].mean()))


@right("word by word with logaddexp")
def cross_entropy(logits, targets, pad_id):
    total, n = 0.0, 0
    for z, k in zip(logits.reshape(-1, logits.shape[-1]), targets.ravel()):
        if k == pad_id:
            continue
        total += np.logaddexp.reduce(z.astype(np.float64)) - z[k]
        n += 1
    return total / n


@right("Categorical's log_prob")
def cross_entropy(logits, targets, pad_id):
    lp = torch.distributions.Categorical(logits=logits.double()).log_prob(targets)
    return lp[targets.ne(pad_id)].mean().neg().item()
