"""Answers of learners to the exercises of notebooks 10 to 13, from layer_norm to cross_entropy.

Written without looking at the checks. Each answer is loaded from its source text alone.
"""
# ruff: noqa: B905, E741, E501, F811, F821, RUF005, RUF059

from learners import right, wrong

# ------------------------------------------------------------------------------- layer_norm


@wrong("eps outside the root", r"eps|ε & root|sqrt|√|outside|inside")
def layer_norm(x, gamma, beta, eps=1e-5):
    mu = np.mean(x, axis=-1, keepdims=True)
    sd = np.std(x, axis=-1, keepdims=True)
    return gamma * ((x - mu) / (sd + eps)) + beta


@wrong("unbiased variance, ddof=1", r"bias|ddof|d[ _-]?−?-?1|n\s*[-−]\s*1|correction|Bessel")
def layer_norm(x, gamma, beta, eps=1e-5):
    D = x.shape[-1]
    mean = x.sum(-1, keepdims=True) / D
    variance = ((x - mean) ** 2).sum(-1, keepdims=True) / (D - 1)
    return (x - mean) / np.sqrt(variance + eps) * gamma + beta


@wrong("torch.var with its unbiased default", r"bias|ddof|n\s*[-−]\s*1|correction|Bessel")
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = torch.mean(x, dim=-1, keepdim=True)
    var = torch.var(x, dim=-1, keepdim=True)
    return gamma * (x - mean) * torch.rsqrt(var + eps) + beta


@wrong("axis 1, which is the tokens once there is a batch", r"axis|batch|last")
def layer_norm(x, gamma, beta, eps=1e-5):
    m = x.mean(1, keepdims=True)
    v = x.var(1, keepdims=True)
    return gamma * (x - m) / (v + eps) ** 0.5 + beta


@wrong(
    "statistics over tokens and features together",
    r"axis|whole|all tokens|every token|each token|each row|per token|last two|one mean|single mean",
)
def layer_norm(x, gamma, beta, eps=1e-5):
    m = x.mean(dim=(-2, -1), keepdim=True)
    v = x.var(dim=(-2, -1), keepdim=True, unbiased=False)
    return gamma * (x - m) / torch.sqrt(v + eps) + beta


@wrong("shift added before the scale", r"beta|β|shift & gamma|γ|scale|order|multipl|outside|last")
def layer_norm(x, gamma, beta, eps=1e-5):
    normalised = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    normalised = normalised + beta
    normalised = normalised * gamma
    return normalised


@wrong("RMS norm: never subtracts the mean", r"mean|cent(er|re)|RMS")
def layer_norm(x, gamma, beta, eps=1e-5):
    rms = np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    return gamma * x / rms + beta


@wrong("subtracts the mean, divides by the root mean square", r"varian|mean|spread|standard dev")
def layer_norm(x, gamma, beta, eps=1e-5):
    centred = x - x.mean(axis=-1)[..., None]
    var = (x * x).mean(axis=-1)[..., None]
    return gamma * centred / np.sqrt(var + eps) + beta


@wrong("own eps in place of the argument", r"eps|ε")
def layer_norm(x, gamma, beta, eps=1e-5):
    EPSILON = 1e-5
    out = np.empty(x.shape)
    for index in np.ndindex(x.shape[:-1]):
        row = x[index]
        out[index] = (row - row.mean()) / math.sqrt(row.var() + EPSILON)
    return out * gamma + beta


@wrong("works on the caller's array", r"in.?place|modif|chang|overwr|caller|input|copy")
def layer_norm(x, gamma, beta, eps=1e-5):
    x -= x.mean(axis=-1, keepdims=True)
    x /= np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
    return x * gamma + beta


@wrong("variance without its root", r"root|sqrt|√|standard dev|varian")
def layer_norm(x, gamma, beta, eps=1e-5):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return gamma * ((x - mean) / (var + eps)) + beta


@wrong("keepdims forgotten", r"keepdim|broadcast|shape|axis")
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = np.mean(x, axis=-1)
    std = np.sqrt(np.var(x, axis=-1) + eps)
    return gamma * (x - mean) / std + beta


@right("F.layer_norm")
def layer_norm(x, gamma, beta, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], weight=gamma, bias=beta, eps=eps)


@right("a centring matrix and einsum, in float64")
def layer_norm(x, gamma, beta, eps=1e-5):
    D = x.shape[-1]
    C = np.eye(D) - np.ones((D, D)) / D
    xc = x.astype(np.float64) @ C
    power = np.einsum("...d,...d->...", xc, xc) / D
    return np.einsum("...d,...,d->...d", xc, 1 / np.sqrt(power + eps), gamma) + beta


@right("flatten to rows, plain loops and lists")
def layer_norm(x, gamma, beta, eps=1e-5):
    D = x.shape[-1]
    rows = []
    for row in x.reshape(-1, D).tolist():
        mu = math.fsum(row) / D
        var = math.fsum((v - mu) ** 2 for v in row) / D
        rows.append([g * (v - mu) / math.sqrt(var + eps) + b for v, g, b in zip(row, gamma, beta)])
    return np.array(rows).reshape(x.shape)


# ----------------------------------------------------------------------------- add_and_norm


@wrong("no residual", r"residual|x \+|skip|add")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(sublayer_out, gamma, beta, eps)


@wrong(
    "normalises what the sublayer gave, then adds x", r"norm & sum|x \+|after|before|order|first"
)
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    mu = sublayer_out.mean(-1, keepdims=True)
    var = sublayer_out.var(-1, keepdims=True)
    return x + (gamma * (sublayer_out - mu) / np.sqrt(var + eps) + beta)


@wrong("normalises x, then adds the sublayer", r"norm & sum|x \+|after|before|order|first")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x, gamma, beta, eps) + sublayer_out


@wrong("normalises both terms alone and adds", r"norm & sum|x \+|after|before|each|once|both|twice")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    a = F.layer_norm(x, x.shape[-1:], gamma, beta, eps)
    b = F.layer_norm(sublayer_out, x.shape[-1:], gamma, beta, eps)
    return a + b


@wrong("gamma and beta handed over in the wrong order", r"gamma|γ|scale & beta|β|shift")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer_out, beta, gamma, eps)


@wrong("eps not handed on", r"eps|ε")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer_out, gamma, beta)


@wrong("adds into the caller's x", r"in.?place|modif|chang|overwr|caller|\+=|copy|input")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    x += sublayer_out
    return layer_norm(x, gamma, beta, eps)


@wrong(
    "residual twice: inside and outside the norm", r"twice|again|second|outside|residual|x \+|after"
)
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    residual = x
    x = layer_norm(x + sublayer_out, gamma, beta, eps)
    return residual + x


@wrong(
    "dropout as in the paper's text, always on",
    r"dropout|random|two calls|each call|each time|twice",
)
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    h = x + F.dropout(sublayer_out, 0.1)
    return F.layer_norm(h, (h.shape[-1],), gamma, beta, eps)


@wrong("multiplies instead of adding", r"multipl|product|sum|add|x \+")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(np.multiply(x, sublayer_out), gamma, beta, eps)


@wrong("averages the two, which eps notices", r"averag|mean|half|halv|sum|scale|divi|eps")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    mixed = (x + sublayer_out) / 2
    return layer_norm(mixed, gamma, beta, eps)


@wrong(
    "own norm of the sum, with torch's std and eps outside",
    r"bias|ddof|n\s*[-−]\s*1|correction|Bessel|eps|ε|standard dev|varian",
)
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    # the annotated transformer's LayerNorm
    z = x + sublayer_out
    mean = z.mean(-1, keepdim=True)
    std = z.std(-1, keepdim=True)
    return gamma * (z - mean) / (std + eps) + beta


@right("one F.layer_norm on arrays, by way of torch")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    t = [torch.tensor(np.asarray(a), dtype=torch.float64) for a in (x, sublayer_out, gamma, beta)]
    return F.layer_norm(t[0] + t[1], (x.shape[-1],), t[2], t[3], eps).numpy()


@right("stack and sum, then the norm written out")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    total = np.stack([x, sublayer_out]).sum(0)
    total = total - np.average(total, axis=-1)[..., np.newaxis]
    return total * (np.mean(np.square(total), -1, keepdims=True) + eps) ** -0.5 * gamma + beta


@right("an nn.LayerNorm filled with gamma and beta")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    norm = nn.LayerNorm(x.shape[-1], eps=eps, dtype=x.dtype)
    with torch.no_grad():
        norm.weight.copy_(gamma)
        norm.bias.copy_(beta)
        return norm(x + sublayer_out)


# --------------------------------------------------------------------------------- pre_norm


@wrong("post-norm", r"post|norm & after|before|outside|inside|first")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer(x), gamma, beta, eps)


@wrong("no residual", r"residual|x \+|skip|add")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    normed = layer_norm(x, gamma, beta, eps)
    return sublayer(normed)


@wrong(
    "residual is the normalised x",
    r"residual|x \+|raw|unnormali|original|itself|before the norm|skip",
)
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    x = layer_norm(x, gamma, beta, eps)
    return x + sublayer(x)


@wrong(
    "norm after the sublayer, inside the residual", r"norm & before|after|first|input|into|order"
)
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + layer_norm(sublayer(x), gamma, beta, eps)


@wrong("never normalises", r"norm")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer(x)


@wrong("pre-norm and post-norm", r"twice|again|second|outer|also|once|post|result|sum")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    def norm(z):
        return F.layer_norm(z, (z.size(-1),), gamma, beta, eps)

    return norm(x + sublayer(norm(x)))


@wrong(
    "sandwich: the sublayer's output normalised as well",
    r"twice|again|second|output|also|once|after",
)
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    inner = sublayer(layer_norm(x, gamma, beta, eps))
    return x + layer_norm(inner, gamma, beta, eps)


@wrong("eps not handed on", r"eps|ε")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer(layer_norm(x, gamma, beta))


@wrong("+= on the caller's x", r"in.?place|modif|chang|overwr|caller|\+=|copy|input")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    x += sublayer(layer_norm(x, gamma, beta, eps))
    return x


@wrong("plain standardisation, gamma and beta unused", r"gamma|γ|beta|β|scale|shift")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return x + sublayer(z)


@wrong("never calls the sublayer", r"sublayer")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + layer_norm(x, gamma, beta, eps)


@wrong(
    "sublayer called for one token at a time",
    r"(each|every|per|one|single) (token|word|row|position)|whole|at once|one at a time|one by one|loop",
)
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    h = layer_norm(x, gamma, beta, eps)
    T = x.shape[-2]
    return x + np.concatenate([sublayer(h[..., t : t + 1, :]) for t in range(T)], axis=-2)


@right("F.layer_norm and torch.add")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return torch.add(sublayer(F.layer_norm(x, [x.shape[-1]], gamma, beta, eps)), x)


@right("add_and_norm with a zero sublayer does the norm")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    out = sublayer(add_and_norm(x, np.zeros_like(x), gamma, beta, eps))
    return np.add(out, x)


@right("row by row norm, sublayer once")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    h = np.zeros_like(x)
    for idx in np.ndindex(*x.shape[:-1]):
        v = x[idx]
        h[idx] = gamma * (v - v.mean()) / np.sqrt(v.var() + eps) + beta
    y = sublayer(h)
    result = x.copy()
    result += y
    return result


# ----------------------------------------------------------------------------- feed_forward


@wrong(
    "ReLU after the second layer too", r"relu|max\w* & second|again|twice|output|last|after|once|W2"
)
def feed_forward(x, W1, b1, W2, b2):
    h = np.maximum(x @ W1 + b1, 0)
    return np.maximum(h @ W2 + b2, 0)


@wrong("no nonlinearity", r"relu|max|non-?linear|negativ")
def feed_forward(x, W1, b1, W2, b2):
    hidden = x @ W1 + b1
    return hidden @ W2 + b2


@wrong("GELU, as in BERT", r"gelu|relu|max|negativ|smooth")
def feed_forward(x, W1, b1, W2, b2):
    return F.gelu(x @ W1 + b1) @ W2 + b2


@wrong("np.max along axis 0 for np.maximum", r"np\.max\b|maximum|axis|shape|largest")
def feed_forward(x, W1, b1, W2, b2):
    hidden = np.max(x @ W1 + b1, 0)
    return hidden @ W2 + b2


@wrong("first bias after the ReLU", r"b1|bias|b₁")
def feed_forward(x, W1, b1, W2, b2):
    return (np.maximum(0, x @ W1) + b1) @ W2 + b2


@wrong("second bias forgotten", r"b2|bias|b₂")
def feed_forward(x, W1, b1, W2, b2):
    h = np.einsum("...d,df->...f", x, W1) + b1
    h = h * (h > 0)
    return np.einsum("...f,fd->...d", h, W2)


@wrong("ReLU6", r"clip|6|upper|bound|large|limit|cap|above")
def feed_forward(x, W1, b1, W2, b2):
    h = (x @ W1 + b1).clip(0, 6)
    return h @ W2 + b2


@wrong("leaky ReLU", r"leak|negativ|0\.01|slope|below|relu|zero")
def feed_forward(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    return np.where(h > 0, h, 0.01 * h) @ W2 + b2


@wrong("ReLU on the input", r"relu|max|input|between|hidden|first & x|order|before|after|W1")
def feed_forward(x, W1, b1, W2, b2):
    return np.maximum(x, 0) @ W1 @ W2 + b1 @ W2 + b2


@wrong("residual inside", r"residual|x \+|\+ x|add|skip")
def feed_forward(x, W1, b1, W2, b2):
    return x + torch.relu(x @ W1 + b1) @ W2 + b2


@wrong("absolute value", r"abs|negativ|relu|max|sign")
def feed_forward(x, W1, b1, W2, b2):
    return abs(x @ W1 + b1) @ W2 + b2


@wrong("weights as nn.Linear keeps them", r"transpos|\.T|F\.linear|linear|shape|\(D")
def feed_forward(x, W1, b1, W2, b2):
    return F.linear(F.relu(F.linear(x, W1, b1)), W2, b2)


@right("nn.functional.linear with transposed weights")
def feed_forward(x, W1, b1, W2, b2):
    return F.linear(F.relu(F.linear(x, W1.t(), b1)), W2.t(), b2)


@right("bias as an extra weight row, half of h + |h|")
def feed_forward(x, W1, b1, W2, b2):
    def affine(z, W, b):
        ones = np.ones((*z.shape[:-1], 1))
        return np.concatenate([z, ones], axis=-1) @ np.vstack([W, b])

    h = affine(x, W1, b1)
    return affine((h + np.abs(h)) / 2, W2, b2)


@right("one hidden unit after another")
def feed_forward(x, W1, b1, W2, b2):
    out = np.zeros((*x.shape[:-1], W2.shape[1])) + b2
    for j in range(W1.shape[1]):
        unit = (x * W1[:, j]).sum(-1) + b1[j]
        unit = np.where(unit < 0, 0.0, unit)
        out = out + unit[..., None] * W2[j]
    return out


# ---------------------------------------------------------------------------- encoder_layer


@wrong("mask not handed on", r"mask")
def encoder_layer(x, p, mask=None):
    attended = multi_head_attention(x, **p["attn"])
    x = add_and_norm(x, attended, *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("pre-norm", r"pre|post|norm & before|after|residual|sum|add")
def encoder_layer(x, p, mask=None):
    x = x + multi_head_attention(layer_norm(x, *p["norm1"]), **p["attn"], mask=mask)
    x = x + feed_forward(layer_norm(x, *p["norm2"]), **p["ffn"])
    return x


@wrong("norms swapped", r"norm1|norm2|first norm|swap & norm")
def encoder_layer(x, p, mask=None):
    h = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm2"])
    return add_and_norm(h, feed_forward(h, **p["ffn"]), *p["norm1"])


@wrong("one norm for both", r"norm1|norm2|same norm|own norm|each")
def encoder_layer(x, p, mask=None):
    gamma, beta = p["norm1"]
    x = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), gamma, beta)
    x = add_and_norm(x, feed_forward(x, **p["ffn"]), gamma, beta)
    return x


@wrong(
    "second residual adds the layer's input",
    r"residual|second|add|skip|x \+ & input|output|result|\bh\b",
)
def encoder_layer(x, p, mask=None):
    h = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    ff = feed_forward(h, **p["ffn"])
    return add_and_norm(x, ff, *p["norm2"])


@wrong(
    "feed-forward reads the layer's input",
    r"feed.?forward|ffn & input|output|read",
)
def encoder_layer(x, p, mask=None):
    attn_out = multi_head_attention(x, mask=mask, **p["attn"])
    h = add_and_norm(x, attn_out, *p["norm1"])
    f = p["ffn"]
    ff_out = np.maximum(0, x @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"]
    return add_and_norm(h, ff_out, *p["norm2"])


@wrong("feed-forward first", r"order|first|before|swap & attention|feed")
def encoder_layer(x, p, mask=None):
    x = add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm1"])
    return add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm2"])


@wrong("both sublayers side by side", r"parallel|side|turn|first|both|attention|order|same")
def encoder_layer(x, p, mask=None):
    a = multi_head_attention(x, mask=mask, **p["attn"])
    f = feed_forward(x, **p["ffn"])
    return layer_norm(layer_norm(x + a + f, *p["norm1"]), *p["norm2"])


@wrong("takes num_heads out of the caller's dict", r"pop|dict|chang|modif|\bp\b|copy|remove|caller")
def encoder_layer(x, p, mask=None):
    attn = p["attn"]
    heads = attn.pop("num_heads")
    out = multi_head_attention(x, attn["W_q"], attn["W_k"], attn["W_v"], attn["W_o"], heads, mask)
    x = add_and_norm(x, out, *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong(
    "mask turned round, as nn.MultiheadAttention wants it",
    r"mask & True|invert|opposite|turned|allow|~|forb|negat|not",
)
def encoder_layer(x, p, mask=None):
    key_padding = None if mask is None else ~mask
    x = add_and_norm(x, multi_head_attention(x, mask=key_padding, **p["attn"]), *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("causal unless told otherwise", r"causal|mask|later|future")
def encoder_layer(x, p, mask=None):
    if mask is None:
        mask = causal_mask(x.shape[1])
    x = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("output projection forgotten", r"W_o|output proj|projection|W_O")
def encoder_layer(x, p, mask=None):
    a = p["attn"]
    identity = np.eye(a["W_o"].shape[0], dtype=x.dtype)
    x = add_and_norm(
        x,
        multi_head_attention(x, a["W_q"], a["W_k"], a["W_v"], identity, a["num_heads"], mask),
        *p["norm1"],
    )
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong(
    "a mask per sentence lines up with the heads",
    r"mask & heads?\b|axis for|\[:, None\]|broadcast",
)
def encoder_layer(x, p, mask=None):
    a = p["attn"]
    H = a["num_heads"]
    Q, K, V = (split_heads(x @ a[name], H) for name in ("W_q", "W_k", "W_v"))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if mask is None:
        weights = softmax(scores)
    else:
        weights = safe_masked_softmax(scores, mask)
    x = add_and_norm(x, merge_heads(weights @ V) @ a["W_o"], *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("no residual around the feed-forward", r"residual|x \+|skip|add")
def encoder_layer(x, p, mask=None):
    x = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return layer_norm(feed_forward(x, **p["ffn"]), *p["norm2"])


@right("one head after another, in float64, norm written out")
def encoder_layer(x, p, mask=None):
    def norm(z, pair):
        z = z - z.mean(-1, keepdims=True)
        return pair[0] * z / np.sqrt((z * z).mean(-1, keepdims=True) + 1e-5) + pair[1]

    a = p["attn"]
    d = x.shape[-1] // a["num_heads"]
    z = x.astype(np.float64)
    out = np.zeros_like(z)
    for h in range(a["num_heads"]):
        cols = slice(h * d, (h + 1) * d)
        q, k, v = (z @ a[n][:, cols] for n in ("W_q", "W_k", "W_v"))
        s = np.einsum("btd,bsd->bts", q, k) / math.sqrt(d)
        m = np.ones(s.shape, bool) if mask is None else np.broadcast_to(mask, s.shape)
        e = np.exp(s - s.max(-1, keepdims=True, where=m, initial=-1e30)) if m.all() else None
        if e is None:
            s = np.where(m, s, -1e9)
            e = np.exp(s - s.max(-1, keepdims=True)) * m
        total = e.sum(-1, keepdims=True)
        out = out + e / np.where(total > 0, total, 1) @ v @ a["W_o"][cols]
    z = norm(z + out, p["norm1"])
    f = p["ffn"]
    return norm(z + np.maximum(z @ f["W1"] + f["b1"], 0) @ f["W2"] + f["b2"], p["norm2"])


@right("through local functions and the keywords")
def encoder_layer(x, p, mask=None):
    sublayers = [
        (lambda z: multi_head_attention(z, mask=mask, memory=None, **dict(p["attn"])), "norm1"),
        (lambda z: feed_forward(z, *[p["ffn"][k] for k in ("W1", "b1", "W2", "b2")]), "norm2"),
    ]
    for sublayer, norm in sublayers:
        gamma, beta = p[norm]
        x = layer_norm(x + sublayer(x), gamma, beta)
    return x


@right("torch with scaled_dot_product_attention, None masks kept")
def encoder_layer(x, p, mask=None):
    B, T, D = x.shape
    a, f = p["attn"], p["ffn"]
    H = a["num_heads"]
    q, k, v = ((x @ a[w]).view(B, T, H, -1).transpose(1, 2) for w in ("W_q", "W_k", "W_v"))
    if mask is None:
        mask = torch.ones(T, T, dtype=torch.bool)
    if mask.ndim == 3:
        mask = mask.unsqueeze(1)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    out = torch.where(mask.any(-1, keepdim=True), out, torch.zeros_like(out))
    out = out.transpose(1, 2).reshape(B, T, D) @ a["W_o"]
    x = F.layer_norm(x + out, (D,), *p["norm1"])
    return F.layer_norm(
        x + torch.relu(x @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"], (D,), *p["norm2"]
    )


# ------------------------------------------------------------------------------- make_stack


@wrong("one layer n times", r"same|shar|copy|own|one layer|deepcopy")
def make_stack(layer, n):
    return nn.Sequential(*[layer] * n)


@wrong("one copy n times", r"same|shar|own|one copy|each|deepcopy|single")
def make_stack(layer, n):
    clone = copy.deepcopy(layer)
    layers = []
    for _ in range(n):
        layers.append(clone)
    return nn.Sequential(*layers)


@wrong("layers in a plain list", r"regist|ModuleList|plain list|list|parameters\(\)")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [copy.deepcopy(layer) for _ in range(n)]

        def forward(self, x):
            for block in self.layers:
                x = block(x)
            return x

    return Stack()


@wrong("shallow copies", r"shallow|deepcopy|copy\.copy|shar|same")
def make_stack(layer, n):
    return nn.Sequential(*(copy.copy(layer) for _ in range(n)))


@wrong("fresh values for each layer", r"values|init|reset|start|random|same|copy")
def make_stack(layer, n):
    def fresh():
        new = copy.deepcopy(layer)
        for parameter in new.parameters():
            nn.init.normal_(parameter, std=0.02)
        return new

    return nn.Sequential(*[fresh() for _ in range(n)])


@wrong(
    "n copies on top of the layer itself",
    r"n layers|one (too many|more|layer too)|n \+ 1|too many|count|number|\bn\b|extra",
)
def make_stack(layer, n):
    stack = nn.Sequential(copy.deepcopy(layer))
    for i in range(n):
        stack.add_module(f"layer{i + 1}", copy.deepcopy(layer))
    return stack


@wrong(
    "every layer reads the first input",
    r"turn|previous|output|chain|same input|original|each other|input",
)
def make_stack(layer, n):
    class Encoder(nn.Module):
        def __init__(self, layer, n):
            super().__init__()
            self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])

        def forward(self, x):
            for l in self.layers:
                out = l(x)
            return out

    return Encoder(layer, n)


@wrong("a bare ModuleList", r"ModuleList|forward|call|Sequential|appl")
def make_stack(layer, n):
    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])


@wrong("a function over copies", r"nn\.Module|Module|function|lambda|parameters")
def make_stack(layer, n):
    layers = [copy.deepcopy(layer) for _ in range(n)]

    def run(x):
        for l in layers:
            x = l(x)
        return x

    return run


@wrong("own Parameters on the same memory", r"memory|storage|shar|clone|\.data|same|own|copy")
def make_stack(layer, n):
    blocks = nn.ModuleList()
    for _ in range(n):
        new = copy.deepcopy(layer)
        for mine, theirs in zip(new.parameters(), layer.parameters()):
            mine.data = theirs.data
        blocks.append(new)
    return nn.Sequential(*blocks)


@wrong("residual around each layer", r"residual|x \+|\+ x|add|skip|in turn|only")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(copy.deepcopy(layer) for _ in range(n))

        def forward(self, x):
            for block in self.blocks:
                x = x + block(x)
            return x

    return Stack()


@wrong("copies that do not learn", r"requires_grad|grad|frozen|freez|train|learn|parameter")
def make_stack(layer, n):
    clones = []
    for _ in range(n):
        clone = copy.deepcopy(layer)
        for parameter in clone.parameters():
            parameter.requires_grad = False
        clones.append(clone)
    return nn.Sequential(*clones)


@right("OrderedDict of named layers")
def make_stack(layer, n):
    from collections import OrderedDict

    return nn.Sequential(OrderedDict((f"layer_{i}", copy.deepcopy(layer)) for i in range(n)))


@right("module with reduce, ModuleDict and load_state_dict")
def make_stack(layer, n):
    from functools import reduce

    class Tower(nn.Module):
        def __init__(self):
            super().__init__()
            self.floors = nn.ModuleDict()
            for i in range(n):
                floor = copy.deepcopy(layer)
                floor.load_state_dict(layer.state_dict())
                self.floors[str(i)] = floor

        def forward(self, x, *args, **kwargs):
            return reduce(lambda h, floor: floor(h, *args, **kwargs), self.floors.values(), x)

    return Tower()


@right("recursive: a copy, then the stack of the rest")
def make_stack(layer, n):
    if n == 1:
        return nn.Sequential(copy.deepcopy(layer))
    return nn.Sequential(copy.deepcopy(layer), make_stack(layer, n - 1))


# -------------------------------------------------------------------------- cross_attention


@wrong("roles of dec and memory swapped", r"swap|quer\w+ & memory|dec")
def cross_attention(dec, memory, W_q, W_k, W_v):
    return attention(memory @ W_q, dec @ W_k, dec @ W_v)


@wrong("self-attention of the decoder", r"memory & key|value|self|never|unused|ignor|dec")
def cross_attention(dec, memory, W_q, W_k, W_v):
    Q, K, V = project_qkv(dec, W_q, W_k, W_v)
    return attention(Q, K, V)


@wrong("no scaling", r"scal|√|sqrt|divi|root")
def cross_attention(dec, memory, W_q, W_k, W_v):
    scores = torch.einsum("...td,...sd->...ts", dec @ W_q, memory @ W_k)
    return torch.softmax(scores, -1) @ (memory @ W_v)


@wrong(
    "scaled by the model width", r"scal|√|sqrt|divi|root & d_k|width|key|dec|model|D\b|d_model|head"
)
def cross_attention(dec, memory, W_q, W_k, W_v):
    q, k, v = dec @ W_q, memory @ W_k, memory @ W_v
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(dec.shape[-1])
    return softmax(s) @ v


@wrong("softmax over the queries", r"axis|quer|softmax|column|row|dim")
def cross_attention(dec, memory, W_q, W_k, W_v):
    q, k, v = dec @ W_q, memory @ W_k, memory @ W_v
    s = scale_scores(attention_scores(q, k), k.shape[-1])
    return softmax(s, axis=-2) @ v


@wrong("W_q and W_k exchanged", r"W_q & W_k")
def cross_attention(dec, memory, W_q, W_k, W_v):
    return attention(dec @ W_k, memory @ W_q, memory @ W_v)


@wrong("values are the memory itself", r"W_v|value|project")
def cross_attention(dec, memory, W_q, W_k, W_v):
    weights = attention_weights(dec @ W_q, memory @ W_k)
    return weights @ memory


@wrong("causal mask on the memory", r"mask|causal|later|all of|every")
def cross_attention(dec, memory, W_q, W_k, W_v):
    q, k, v = dec @ W_q, memory @ W_k, memory @ W_v
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(k.shape[-1])
    allowed = np.tril(np.ones(s.shape[-2:], dtype=bool))
    return masked_softmax(s, allowed) @ v


@wrong("keys and values from both, one after the other", r"concat|only|memory & key|value|dec")
def cross_attention(dec, memory, W_q, W_k, W_v):
    source = np.concatenate([memory, dec], axis=-2)
    return attention(dec @ W_q, source @ W_k, source @ W_v)


@wrong("residual inside", r"residual|\+ dec|dec \+|add|skip")
def cross_attention(dec, memory, W_q, W_k, W_v):
    out = attention(dec @ W_q, memory @ W_k, memory @ W_v)
    if out.shape == dec.shape:
        out = out + dec
    return out


@wrong("exp without the maximum", r"overflow|stab|max|nan|inf|large|big")
def cross_attention(dec, memory, W_q, W_k, W_v):
    q, k, v = dec @ W_q, memory @ W_k, memory @ W_v
    e = np.exp(q @ np.moveaxis(k, -1, -2) / k.shape[-1] ** 0.5)
    return e / e.sum(-1, keepdims=True) @ v


@wrong(".T turns the batch round as well", r"\.T\b|transpos|swapaxes|batch|last two|axes")
def cross_attention(dec, memory, W_q, W_k, W_v):
    Q = np.dot(dec, W_q)
    K = np.dot(memory, W_k)
    V = np.dot(memory, W_v)
    S = Q @ K.T / np.sqrt(K.shape[-1])
    return softmax(S) @ V


@right("F.scaled_dot_product_attention")
def cross_attention(dec, memory, W_q, W_k, W_v):
    return F.scaled_dot_product_attention(dec @ W_q, memory @ W_k, memory @ W_v)


@right("one matrix W_q W_kᵀ for the scores, values projected last")
def cross_attention(dec, memory, W_q, W_k, W_v):
    bilinear = W_q.astype(float) @ W_k.T / W_k.shape[1] ** 0.5
    s = np.einsum("...td,de,...se->...ts", dec, bilinear, memory)
    return softmax(s) @ memory @ W_v


@right("one query at a time")
def cross_attention(dec, memory, W_q, W_k, W_v):
    K, V = memory @ W_k, memory @ W_v
    rows = []
    for t in range(dec.shape[-2]):
        q = dec[..., t, :] @ W_q
        s = (K * q[..., None, :]).sum(-1) / math.sqrt(K.shape[-1])
        w = np.exp(s - s.max(-1, keepdims=True))
        w /= w.sum(-1, keepdims=True)
        rows.append((w[..., None] * V).sum(-2))
    return np.stack(rows, axis=-2)


# ---------------------------------------------------------------------------- decoder_layer


@wrong("self-attention sees the future", r"causal|mask|future|later")
def decoder_layer(y, memory, p):
    y = add_and_norm(y, multi_head_attention(y, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("causal mask over the memory too", r"mask|causal & cross|memory|encoder")
def decoder_layer(y, memory, p):
    T, S = y.shape[1], memory.shape[1]
    y = add_and_norm(y, multi_head_attention(y, mask=causal_mask(T), **p["self"]), *p["norm1"])
    look_back = np.arange(S)[None, :] <= np.arange(T)[:, None]
    c = multi_head_attention(y, mask=look_back, memory=memory, **p["cross"])
    y = add_and_norm(y, c, *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("cross-attention first", r"order|first|before|swap & self|cross")
def decoder_layer(y, memory, p):
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm1"])
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm2"]
    )
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong(
    "cross-attention with the weights of self-attention",
    r"p\[.self.\]|cross|weights|self & weights|cross|own|p\[",
)
def decoder_layer(y, memory, p):
    attn = p["self"]
    y = add_and_norm(y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **attn), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **attn), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("pre-norm", r"pre|post|norm & before|after|residual|sum|add")
def decoder_layer(y, memory, p):
    T = y.shape[1]
    y = y + multi_head_attention(layer_norm(y, *p["norm1"]), mask=causal_mask(T), **p["self"])
    y = y + multi_head_attention(layer_norm(y, *p["norm2"]), memory=memory, **p["cross"])
    y = y + feed_forward(layer_norm(y, *p["norm3"]), **p["ffn"])
    return y


@wrong("cross-attention left out", r"cross|memory|encoder")
def decoder_layer(y, memory, p):
    mask = causal_mask(y.shape[1])
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = layer_norm(y, *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong(
    "queries of the cross-attention are the layer's input",
    r"cross|second|quer & input|output|result|after",
)
def decoder_layer(y, memory, p):
    h = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    c = multi_head_attention(y, memory=memory, **p["cross"])
    h = add_and_norm(h, c, *p["norm2"])
    return add_and_norm(h, feed_forward(h, **p["ffn"]), *p["norm3"])


@wrong("mask as long as the batch", r"mask|batch|shape\[0\]|axis|length|token")
def decoder_layer(y, memory, p):
    mask = causal_mask(len(y))
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong(
    "upper triangle: sees only itself and the future",
    r"mask|triu|tril|future|later|causal|upper|lower",
)
def decoder_layer(y, memory, p):
    T = y.shape[1]
    mask = np.triu(np.ones((T, T))).astype(bool)
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("strict mask: no token sees itself", r"mask|diagonal|itself|k=-1|own|causal")
def decoder_layer(y, memory, p):
    T = y.shape[1]
    mask = np.tril(np.ones((T, T), dtype=bool), k=-1)
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("norm2 and norm3 swapped", r"norm2|norm3|norms? & norm|swap|order|second|third")
def decoder_layer(y, memory, p):
    sa = multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"])
    y = add_and_norm(y, sa, *p["norm1"])
    ca = multi_head_attention(y, memory=memory, **p["cross"])
    y = add_and_norm(y, ca, *p["norm3"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm2"])


@wrong("no residual around the cross-attention", r"residual|y \+|x \+|skip|add")
def decoder_layer(y, memory, p):
    sa = multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"])
    y = add_and_norm(y, sa, *p["norm1"])
    y = layer_norm(multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong(
    "residuals all add the layer's input",
    r"residual|add|skip|y \+ & input|first",
)
def decoder_layer(y, memory, p):
    shortcut = y
    h = add_and_norm(
        shortcut, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    h = add_and_norm(shortcut, multi_head_attention(h, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(shortcut, feed_forward(h, **p["ffn"]), *p["norm3"])


@wrong("feed-forward left out", r"feed.?forward|ffn")
def decoder_layer(y, memory, p):
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    return add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])


@right("a batch mask for self-attention and an all-True one for the memory")
def decoder_layer(y, memory, p):
    B, T, _ = y.shape
    i, j = np.indices((T, T))
    causal = np.repeat((j <= i)[None], B, axis=0)
    full = np.ones((B, T, memory.shape[1]), dtype=bool)
    y = layer_norm(y + multi_head_attention(y, mask=causal, **p["self"]), *p["norm1"])
    y = layer_norm(y + multi_head_attention(y, mask=full, memory=memory, **p["cross"]), *p["norm2"])
    return layer_norm(y + feed_forward(y, **p["ffn"]), *p["norm3"])


@right("encoder_layer does the first sublayer's work by hand, token by token")
def decoder_layer(y, memory, p):
    # each token attends from the prefix that ends with it: no mask needed
    T = y.shape[1]
    steps = [multi_head_attention(y[:, : t + 1], **p["self"])[:, -1:] for t in range(T)]
    h = add_and_norm(y, np.concatenate(steps, axis=1), *p["norm1"])
    h = add_and_norm(h, multi_head_attention(h, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(h, feed_forward(h, **p["ffn"]), *p["norm3"])


@right("torch with is_causal")
def decoder_layer(y, memory, p):
    def mha(x, source, w, causal):
        def heads(z):
            return z.unflatten(-1, (w["num_heads"], -1)).transpose(1, 2)

        q, k, v = heads(x @ w["W_q"]), heads(source @ w["W_k"]), heads(source @ w["W_v"])
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return out.transpose(1, 2).flatten(2) @ w["W_o"]

    D = y.shape[-1]
    y = F.layer_norm(y + mha(y, y, p["self"], True), (D,), *p["norm1"])
    y = F.layer_norm(y + mha(y, memory, p["cross"], False), (D,), *p["norm2"])
    f = p["ffn"]
    return F.layer_norm(y + F.relu(y @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"], (D,), *p["norm3"])


# ------------------------------------------------------------------------ next_token_logits


@wrong("every position", r"last|position|shape|all")
def next_token_logits(h, W_vocab):
    return h @ W_vocab


@wrong("first position", r"first|last|\[0\]|-1|−1")
def next_token_logits(h, W_vocab):
    return h[..., 0, :] @ W_vocab


@wrong("last item of the batch", r"batch|\.\.\.|h\[-1\]|sentence|item|axis|first axis")
def next_token_logits(h, W_vocab):
    return h[-1] @ W_vocab


@wrong("needs a batch", r"batch|2-?D|\(T, D\)|\.\.\.|\[:, -1\]|without|two dim|feature|axis")
def next_token_logits(h, W_vocab):
    return h[:, -1] @ W_vocab


@wrong("probabilities for logits", r"softmax|probabilit")
def next_token_logits(h, W_vocab):
    return torch.softmax(h[..., -1, :] @ W_vocab, dim=-1)


@wrong("mean over the positions", r"mean|averag|pool|last")
def next_token_logits(h, W_vocab):
    pooled = h.mean(axis=-2)
    return pooled @ W_vocab


@wrong("axis of length 1 left over", r"axis|shape|dimension|-1:|1, V|slice|keep")
def next_token_logits(h, W_vocab):
    return h[..., -1:, :] @ W_vocab


@wrong("squeeze takes a batch of one away too", r"squeeze|batch|shape|axis|one (item|sentence)")
def next_token_logits(h, W_vocab):
    logits = h[..., -1:, :] @ W_vocab
    return np.squeeze(logits)


@wrong("last row of the flattened batch", r"batch|item|sentence|flatten|reshape|each|shape|every")
def next_token_logits(h, W_vocab):
    flat = h.reshape(-1, h.shape[-1])
    return flat[-1] @ W_vocab


@wrong("the chosen id for its logits", r"argmax|logits|id\b|shape|scores")
def next_token_logits(h, W_vocab):
    logits = h[..., -1, :] @ W_vocab
    return logits.argmax(-1)


@wrong("tied embedding: W transposed", r"transpos|\.T|\(D, V\)|shape")
def next_token_logits(h, W_vocab):
    return F.linear(h[..., -1, :], W_vocab)


@right("all positions, then the last")
def next_token_logits(h, W_vocab):
    every = np.einsum("...d,dv->...v", h, W_vocab)
    return np.take(every, every.shape[-2] - 1, axis=-2)


@right("transposed product with tensordot, float64")
def next_token_logits(h, W_vocab):
    last = np.moveaxis(h, -2, 0)[-1].astype(np.float64)
    return np.tensordot(last, W_vocab, axes=([-1], [0]))


@right("torch select and F.linear")
def next_token_logits(h, W_vocab):
    return F.linear(h.select(-2, h.size(-2) - 1), W_vocab.T)


# ------------------------------------------------------------------------- next_token_probs


@wrong("multiplies by the temperature", r"temperature|divi|multipl")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits * temperature)
    if top_k is not None:
        p[np.argsort(-p)[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        order = np.argsort(-p)
        sums = np.cumsum(p[order])
        p[order[1:][sums[:-1] >= top_p]] = 0
    return p / p.sum()


@wrong("temperature on the probabilities", r"temperature|logits|softmax")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits) / temperature
    if top_k is not None:
        p[np.argsort(-p)[top_k:]] = 0
    p = p / p.sum()
    if top_p is not None:
        order = np.argsort(-p)
        sums = np.cumsum(p[order])
        p[order[1:][sums[:-1] >= top_p]] = 0
    return p / p.sum()


@wrong("top-p before top-k", r"order|first|before|after|then|top.?k & top.?p|nucleus")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p)
    if top_p is not None:
        sums = np.cumsum(p[order])
        p[order[1:][sums[:-1] >= top_p]] = 0
    if top_k is not None:
        p[order[top_k:]] = 0
    return p / p.sum()


@wrong(
    "nucleus of the untempered distribution",
    r"temperature & top.?p|nucleus|first|before|order|after",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    keep = np.ones(len(logits), dtype=bool)
    base = softmax(logits)
    order = np.argsort(-base)
    if top_k is not None:
        keep[order[top_k:]] = False
        base = np.where(keep, base, 0)
        base = base / base.sum()
    if top_p is not None:
        sums = np.cumsum(base[order])
        keep[order[1:][sums[:-1] >= top_p]] = False
    p = np.where(keep, softmax(logits / temperature), 0)
    return p / p.sum()


@wrong(
    "nucleus stops before the token that reaches top_p",
    r"reach|smallest|cross|includ|too few|one token|first token|empty|short|at least",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    probs = softmax(logits / temperature)
    if top_k is not None:
        probs[np.argsort(-probs)[top_k:]] = 0
        probs = probs / probs.sum()
    if top_p is not None:
        order = np.argsort(-probs)
        keep = np.cumsum(probs[order]) <= top_p
        keep[0] = True
        probs[order[~keep]] = 0
        probs = probs / probs.sum()
    return probs


@wrong(
    "nucleus one token too large",
    r"one (token )?(too many|more)|too many|smallest|extra|reach|too large|already",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    probs = softmax(logits / temperature)
    order = np.argsort(-probs)
    if top_k is not None:
        probs[order[top_k:]] = 0
        probs = probs / probs.sum()
    if top_p is not None:
        cut = int(np.sum(np.cumsum(probs[order]) < top_p)) + 2
        probs[order[cut:]] = 0
    return probs / probs.sum()


@wrong("rest not brought back to 1", r"sum|renormal|normalis|normaliz|divid")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p)
    if top_k is not None:
        p = np.where(np.isin(np.arange(len(p)), order[:top_k]), p, 0)
    if top_p is not None:
        cumulative = np.cumsum(p[order] / p.sum())
        n = np.searchsorted(cumulative, top_p) + 1
        p = np.where(np.isin(np.arange(len(p)), order[:n]), p, 0)
    return p


@wrong("left in sorted order", r"sort|order|position|place|back|which id|vocab")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p, ids = torch.sort(torch.softmax(logits / temperature, -1), descending=True)
    if top_k is not None:
        p[top_k:] = 0
        p = p / p.sum()
    if top_p is not None:
        p[torch.cumsum(p, 0) - p >= top_p] = 0
        p = p / p.sum()
    return p


@wrong(
    "cut logits set to 0",
    r"inf|exp\(0\)|e\^0|set to 0|sets",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits / temperature
    if top_k is not None:
        z[np.argsort(-z)[top_k:]] = 0
    p = softmax(z)
    if top_p is not None:
        order = np.argsort(-p)
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
        p = p / p.sum()
    return p


@wrong(
    "top-k keeps the least likely",
    r"least|smallest|largest|most likely|ascend|highest|argsort|lowest",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits / temperature
    if top_k is not None:
        keep = np.argsort(z)[:top_k]
        filtered = np.full_like(z, -np.inf)
        filtered[keep] = z[keep]
        z = filtered
    p = softmax(z)
    if top_p is not None:
        order = np.argsort(-p)
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
        p = p / p.sum()
    return p


@wrong("either top-k or top-p", r"both|elif|together|either|top.?p & top.?k|also|both|too|ignored")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(p)[::-1]
    if top_k is not None:
        p[order[top_k:]] = 0
    elif top_p is not None:
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
    return p / p.sum()


@wrong(
    "keeps tokens that alone reach top_p",
    r"cumul|running sum|adds? up|added up|smallest set|together|own probability|each token|threshold & top.?p|nucleus",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    if top_k is not None:
        p[np.argsort(-p)[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        keep = p >= top_p
        keep[np.argmax(p)] = True
        p = p * keep
    return p / p.sum()


@wrong("divides the caller's logits", r"in.?place|modif|chang|overwr|caller|/=|copy|input")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    logits /= temperature
    p = softmax(logits)
    if top_k is not None:
        p[np.argsort(-p)[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        order = np.argsort(-p)
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
        p = p / p.sum()
    return p


@wrong("softmax over what is left of the probabilities", r"softmax|twice|again|second|already")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    keep = np.ones(len(p), bool)
    order = np.argsort(-p)
    if top_k is not None:
        keep[order[top_k:]] = False
    if top_p is not None:
        q = np.where(keep, p, 0)
        q = q / q.sum()
        keep[order[np.cumsum(q[order]) - q[order] >= top_p]] = False
    return softmax(np.where(keep, p, -np.inf))


@wrong(
    "nucleus measured before top-k is brought back to 1",
    r"renormal|sum|rest|again|left",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p)
    if top_k is not None:
        p[order[top_k:]] = 0
    if top_p is not None:
        total, i = 0.0, 0
        while i < len(order) and total < top_p:
            total += p[order[i]]
            i += 1
        p[order[i:]] = 0
    return p / p.sum()


@wrong("exp without the maximum", r"overflow|stab|max|nan|inf|large|big")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    e = np.exp(logits / temperature)
    p = e / np.sum(e)
    if top_k is not None:
        p[np.argsort(-p)[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        order = np.argsort(-p)
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
        p = p / p.sum()
    return p


@right("pairs in a plain Python loop")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    scaled = [float(z) / temperature for z in logits]
    biggest = max(scaled)
    weights = [math.exp(z - biggest) for z in scaled]
    ranked = sorted(range(len(weights)), key=lambda i: -weights[i])
    if top_k is not None:
        ranked = ranked[:top_k]
    if top_p is not None:
        goal = top_p * sum(weights[i] for i in ranked)
        kept, mass = [], 0.0
        for i in ranked:
            kept.append(i)
            mass += weights[i]
            if mass >= goal:
                break
        ranked = kept
    total = sum(weights[i] for i in ranked)
    return np.array([weights[i] / total if i in ranked else 0.0 for i in range(len(weights))])


@right("logits masked with -inf, softmax at each step, in torch")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits / temperature
    if top_k is not None:
        best = torch.topk(z, min(top_k, z.numel())).indices
        z = torch.full_like(z, float("-inf")).scatter(0, best, z[best])
    if top_p is not None:
        s, idx = torch.sort(z, descending=True)
        cum = torch.softmax(s, -1).cumsum(-1)
        remove = cum >= top_p
        remove[1:] = remove[:-1].clone()
        remove[0] = False
        z = z.index_fill(0, idx[remove], float("-inf"))
    return torch.softmax(z, -1)


@right("ranks instead of indexing, float64")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = np.asarray(logits, dtype=np.float64) / temperature
    z = z - z.max()
    rank = np.argsort(np.argsort(-z, kind="stable"), kind="stable")
    keep = rank < (len(z) if top_k is None else top_k)
    p = np.exp(z) * keep
    p = p / p.sum()
    if top_p is not None:
        more_likely = rank[None, :] < rank[:, None]
        p = p * ((more_likely * p).sum(1) < top_p)
    return p / p.sum()


# ----------------------------------------------------------------------------- sample_token


@wrong("the most likely token", r"argmax|most likely|random|draw|greedy|always")
def sample_token(probs, rng):
    return int(np.argmax(probs))


@wrong("all tokens alike", r"uniform|p=|probabilit|equal|alike|weights")
def sample_token(probs, rng):
    return int(rng.integers(len(probs)))


@wrong("NumPy's global generator", r"rng|generator|global|np\.random|seed")
def sample_token(probs, rng):
    return int(np.random.choice(np.arange(len(probs)), p=probs / np.sum(probs)))


@wrong("torch's global generator", r"rng|generator|global|seed")
def sample_token(probs, rng):
    return torch.multinomial(probs, num_samples=1).item()


@wrong("draws a probability", r"\bid\b|index|probabilit|position")
def sample_token(probs, rng):
    return rng.choice(probs, p=probs / probs.sum())


@wrong("new generator with a fixed seed", r"rng|seed|same|new|fresh|generator|always")
def sample_token(probs, rng):
    rng = np.random.default_rng(42)
    return int(rng.choice(len(probs), p=probs / probs.sum()))


@wrong("one to the left of the id", r"one|shift|off|neighbour|neighbor|before|left|previous|index")
def sample_token(probs, rng):
    u = rng.random()
    cdf = np.cumsum(probs)
    return int(np.argmax(cdf > u)) - 1


@wrong("softmax of the probabilities", r"softmax|already|again|twice|flat")
def sample_token(probs, rng):
    p = softmax(np.asarray(probs, dtype=np.float64))
    return int(rng.choice(len(p), p=p))


@wrong("ids lost in the sorting", r"sort|order|rank|\bid\b|position")
def sample_token(probs, rng):
    p = np.sort(probs)[::-1]
    u = rng.random() * p.sum()
    for i, threshold in enumerate(np.cumsum(p)):
        if u < threshold:
            return i
    return len(p) - 1


@wrong("Gumbel noise on probabilities", r"log|gumbel|nois|often|frequen|probabilit")
def sample_token(probs, rng):
    noise = rng.gumbel(size=len(probs))
    return int(np.argmax(probs + noise))


@wrong("one-hot draw", r"one.?hot|multinomial|\bid\b|index|argmax|shape")
def sample_token(probs, rng):
    return rng.multinomial(1, probs.astype(np.float64) / probs.astype(np.float64).sum())


@wrong(
    "last token never drawn",
    r"last (id|token|word|one)|never|len\(probs\) ?[-−] ?1",
)
def sample_token(probs, rng):
    u = rng.random()
    acc = 0.0
    for i in range(len(probs) - 2):
        acc += probs[i]
        if u < acc:
            return i
    return len(probs) - 2


@right("inverse of the cumulative sum")
def sample_token(probs, rng):
    cdf = np.cumsum(np.asarray(probs, dtype=np.float64))
    return int(np.searchsorted(cdf, rng.random() * cdf[-1], side="right"))


@right("rejection sampling")
def sample_token(probs, rng):
    top = max(probs)
    while True:
        i = int(rng.integers(0, len(probs)))
        if rng.uniform(0, top) < probs[i]:
            return i


@right("torch.multinomial with the generator")
def sample_token(probs, rng):
    return int(torch.multinomial(probs, 1, generator=rng))


@right("Gumbel trick on log-probabilities")
def sample_token(probs, rng):
    with np.errstate(divide="ignore"):
        return int((np.log(probs) + rng.gumbel(size=probs.shape)).argmax())


# ---------------------------------------------------------------------------- greedy_decode


@wrong("start returned as well", r"start")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        nxt = int(np.argmax(step(ids)[-1]))
        ids.append(nxt)
        if nxt == end_id:
            break
    return ids


@wrong("end left out", r"end")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        nxt = int(np.argmax(step(ids)[-1]))
        if nxt == end_id:
            break
        ids.append(nxt)
    return ids[1:]


@wrong("goes on after end", r"end|stop|break")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        ids.append(int(step(ids)[-1].argmax()))
    return ids[1:]


@wrong(
    "max_len counts the start",
    r"max_len|one (token )?(too )?(few|short|less|fewer)|too short|start",
)
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while len(ids) < max_len:
        ids.append(int(step(ids)[-1].argmax()))
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("one token too many", r"max_len|too (many|long)|one more|at most")
def greedy_decode(step, start_id, end_id, max_len):
    out = []
    while len(out) <= max_len:
        nxt = int(np.argmax(step([start_id, *out])[-1]))
        out.append(nxt)
        if nxt == end_id:
            return out
    return out


@wrong(
    "only the newest id is handed to step",
    r"so far|all|whole|context|history|only|last id|newest|prefix|every id",
)
def greedy_decode(step, start_id, end_id, max_len):
    token, out = start_id, []
    for _ in range(max_len):
        token = int(np.argmax(step([token])[-1]))
        out.append(token)
        if token == end_id:
            break
    return out


@wrong("argmax of the whole table", r"flat|last row|last position|argmax|whole|\[-1\]|row")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while len(ids) <= max_len and (len(ids) == 1 or ids[-1] != end_id):
        ids.append(int(torch.argmax(torch.as_tensor(step(ids)))))
    return ids[1:]


@wrong("first row of the logits", r"first|last|row|position|\[0\]|\[-1\]")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        logits = step(ids)[0]
        ids.append(int(np.argmax(logits)))
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("context never grows", r"append|grow|so far|only|start|again|same|context|generated")
def greedy_decode(step, start_id, end_id, max_len):
    context = [start_id]
    generated = []
    for _ in range(max_len):
        nxt = int(np.argmax(step(context)[-1]))
        generated.append(nxt)
        if nxt == end_id:
            break
    return generated


@wrong("filled up with end", r"pad|fill|length|short|end|stop|repeat")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    done = False
    for _ in range(max_len):
        nxt = end_id if done else int(np.argmax(step(ids)[-1]))
        done = done or nxt == end_id
        ids.append(nxt)
    return ids[1:]


@wrong("never stops without end", r"max_len|stop|forever|endless|infinite|limit|at most")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while ids[-1] != end_id or len(ids) == 1:
        ids.append(int(np.argmax(step(ids)[-1])))
    return ids[1:]


@wrong(
    "draws from softmax",
    r"argmax|random|sampl|most likely|likeliest|draw|greedy|each time|two calls",
)
def greedy_decode(step, start_id, end_id, max_len):
    rng = np.random.default_rng()
    ids = [start_id]
    for _ in range(max_len):
        p = softmax(np.asarray(step(ids)[-1], dtype=np.float64))
        ids.append(int(rng.choice(len(p), p=p)))
        if ids[-1] == end_id:
            break
    return ids[1:]


@right("recursive, with a fresh list for every call")
def greedy_decode(step, start_id, end_id, max_len):
    def rest(prefix, left):
        if left == 0:
            return []
        scores = list(step(list(prefix))[-1])
        best = scores.index(max(scores))
        return [best] if best == end_id else [best, *rest([*prefix, best], left - 1)]

    return rest([start_id], max_len)


@right("torch.argmax and .item()")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    with torch.no_grad():
        while len(ids) <= max_len:
            logits = torch.as_tensor(step(ids))
            ids.append(logits[-1].argmax(dim=-1).item())
            if ids[-1] == end_id:
                break
    del ids[0]
    return ids


@right("a generator of tokens")
def greedy_decode(step, start_id, end_id, max_len):
    def tokens():
        so_far = [start_id]
        for _ in range(max_len):
            so_far = so_far + [int(np.asarray(step(so_far)).argmax(axis=1)[-1])]
            yield so_far[-1]
            if so_far[-1] == end_id:
                return

    return list(tokens())


# ------------------------------------------------------------------------------ shift_right


@wrong("roll: the last token comes round to the front", r"roll|start|wrap|last|round")
def shift_right(targets, start_id):
    return np.roll(targets, 1, axis=1)


@wrong("shifted left", r"left|direction|right|next|front|wrong way")
def shift_right(targets, start_id):
    out = np.full_like(targets, start_id)
    out[:, :-1] = targets[:, 1:]
    return out


@wrong(
    "one column too many", r"last|length|shape|too long|drop|T \+ 1|column|one (token )?too many"
)
def shift_right(targets, start_id):
    first = np.full((len(targets), 1), start_id, dtype=targets.dtype)
    return np.hstack((first, targets))


@wrong("in the caller's array", r"in.?place|modif|chang|overwr|caller|copy|input")
def shift_right(targets, start_id):
    targets[:, 1:] = targets[:, :-1].copy()
    targets[:, 0] = start_id
    return targets


@wrong(
    "first token overwritten, nothing shifted", r"first|shift|last|overwrit|replac|drop|lost|move"
)
def shift_right(targets, start_id):
    shifted = targets.copy()
    shifted[:, 0] = start_id
    return shifted


@wrong("zeros pushed in", r"start_id|zero|\b0\b|start")
def shift_right(targets, start_id):
    return F.pad(targets, (1, 0))[:, :-1]


@wrong(
    "each column copied from the one just written",
    r"overwrit|propagat|start|every|backward|already|copies|copied|same",
)
def shift_right(targets, start_id):
    out = targets.copy()
    out[:, 0] = start_id
    for t in range(1, out.shape[1]):
        out[:, t] = out[:, t - 1]
    return out


@wrong("down the batch", r"axis|batch|row|sentence|column")
def shift_right(targets, start_id):
    first = np.full((1, targets.shape[1]), start_id, dtype=targets.dtype)
    return np.concatenate([first, targets[:-1]], axis=0)


@wrong(
    "start in the first row only",
    r"(every|each|all|first) (the )?(rows?|sentences?)|\[:, 0\]",
)
def shift_right(targets, start_id):
    out = np.roll(targets, 1, axis=1)
    out[0, 0] = start_id
    return out


@wrong("rows run into one another", r"axis|flatten|row|sentence|batch|each|start")
def shift_right(targets, start_id):
    flat = np.insert(targets, 0, start_id)[:-1]
    return flat.reshape(targets.shape)


@wrong("ids become floats", r"float|int|dtype|type")
def shift_right(targets, start_id):
    start = np.ones((targets.shape[0], 1)) * start_id
    return np.concatenate((start, targets[:, :-1]), axis=-1)


@right("flat roll, then the first column")
def shift_right(targets, start_id):
    out = np.roll(targets, 1)
    out[:, 0] = start_id
    return out


@right("lists of ints")
def shift_right(targets, start_id):
    return np.array([[start_id, *row[:-1]] for row in targets.tolist()])


@right("F.pad with a value")
def shift_right(targets, start_id):
    return F.pad(targets[:, :-1], (1, 0), value=start_id)


# ---------------------------------------------------------------------------- cross_entropy


@wrong("padding counted", r"pad")
def cross_entropy(logits, targets, pad_id):
    p = softmax(logits.astype(np.float64))
    picked = np.take_along_axis(p, targets[..., None], axis=-1)
    return float(-np.log(picked).mean())


@wrong("padding zeroed, but divided by all tokens", r"pad|divi|count|real|mean|number")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    B, T = targets.shape
    loss = 0.0
    for b in range(B):
        for t in range(T):
            if targets[b, t] != pad_id:
                loss -= logp[b, t, targets[b, t]]
    return float(loss / (B * T))


@wrong("sum for mean", r"sum|mean|averag|divi")
def cross_entropy(logits, targets, pad_id):
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, reduction="sum"
    ).item()


@wrong("sign forgotten", r"sign|minus|negativ|−log|-log")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    picked = np.take_along_axis(logp, targets[..., None], -1)[..., 0]
    return float(np.mean(picked[targets != pad_id]))


@wrong("mean of the sentences' means", r"sentence|row|mean of|means|token|per|each|length")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logp, targets[..., None], -1)[..., 0]
    real = (targets != pad_id).astype(nll.dtype)
    counts = real.sum(1)
    per_sentence = (nll * real).sum(1) / np.where(counts > 0, counts, 1)
    return float(per_sentence[counts > 0].mean())


@wrong(
    "log of a softmax that underflows",
    r"overflow|underflow|stab|inf|log.?soft|log.?sum|log\(0|large|1,?000|tiny",
)
def cross_entropy(logits, targets, pad_id):
    probs = softmax(logits)
    real = targets != pad_id
    return float(np.mean(-np.log(probs[real, targets[real]])))


@wrong(
    "small number inside the log", r"1e-|eps|clip|small|cap|underflow|tiny|log.?sum|log.?soft|limit"
)
def cross_entropy(logits, targets, pad_id):
    probs = softmax(logits)
    real = targets != pad_id
    return float(-np.mean(np.log(probs[real, targets[real]] + 1e-9)))


@wrong("bits", r"log2|base|bits|natural|ln")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    real = targets != pad_id
    return float(np.mean(-np.log2(p[real, targets[real]])))


@wrong(
    "reshape to (B, V, T) where a transpose is needed",
    r"reshape|transpos|axis|permute|scrambl|swap|order|classes",
)
def cross_entropy(logits, targets, pad_id):
    B, T, V = logits.shape
    return F.cross_entropy(logits.reshape(B, V, T), targets, ignore_index=pad_id).item()


@wrong("softmax before F.cross_entropy", r"softmax|twice|already|logits|again")
def cross_entropy(logits, targets, pad_id):
    probs = torch.softmax(logits, dim=-1)
    return F.cross_entropy(probs.transpose(1, 2), targets, ignore_index=pad_id).item()


@wrong("targets shifted once more", r"shift|position|next|align|offset|already|\[:, 1:\]|:-1")
def cross_entropy(logits, targets, pad_id):
    logits, targets = logits[:, :-1], targets[:, 1:]
    V = logits.shape[-1]
    return float(F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=pad_id))


@wrong("padding is always id 0", r"pad")
def cross_entropy(logits, targets, pad_id):
    x = logits.astype(np.float64)
    lse = np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1)
    nll = lse - np.take_along_axis(x, targets[..., None], -1).squeeze(-1)
    return float(nll[targets != 0].mean())


@wrong("log of the mean probability", r"mean|averag & log|order|before|after|each|inside|token")
def cross_entropy(logits, targets, pad_id):
    p = softmax(logits.astype(np.float64))
    real = targets != pad_id
    return float(-np.log(p[real, targets[real]].mean()))


@wrong("probability of the best token", r"target|argmax|max|most likely|predicted|best")
def cross_entropy(logits, targets, pad_id):
    x = logits.astype(np.float64)
    best = x.max(-1)
    nll = np.log(np.exp(x - best[..., None]).sum(-1))
    return float(nll[targets != pad_id].mean())


@wrong("logit for log-probability", r"softmax|log.?sum|normalis|normaliz|logit|probabilit")
def cross_entropy(logits, targets, pad_id):
    picked = np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return float(-picked[targets != pad_id].mean())


@right("F.cross_entropy with ignore_index")
def cross_entropy(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(-1, -2), targets, ignore_index=pad_id).item()


@right("logaddexp and one-hot einsum")
def cross_entropy(logits, targets, pad_id):
    x = logits.astype(np.float64)
    hot = np.arange(x.shape[-1]) == targets[..., None]
    chosen = np.einsum("btv,btv->bt", x, hot)
    nll = np.logaddexp.reduce(x, axis=-1) - chosen
    weight = (targets != pad_id).astype(float)
    return float((nll * weight).sum() / weight.sum())


@right("token by token, with a running list")
def cross_entropy(logits, targets, pad_id):
    losses = []
    for rows, ids in zip(logits.tolist(), targets.tolist()):
        for row, target in zip(rows, ids):
            if target == pad_id:
                continue
            top = max(row)
            losses.append(top + math.log(math.fsum(math.exp(v - top) for v in row)) - row[target])
    return sum(losses) / len(losses)
