"""Answers of learners to notebooks 06 to 09, written without looking at the checks."""

# ruff: noqa: E501, F811, F821, RUF005, RUF059

from learners import right, wrong


# ---------------------------------------------------------------- 06 causal_mask
@wrong(
    "upper triangle instead of lower",
    r"future|later|upper|triu|transpos|mirror|wrong way|backward|other way",
)
def causal_mask(T):
    return np.triu(np.ones((T, T), dtype=bool))


@wrong("a token does not see itself", r"itself|diagonal|\bown\b")
def causal_mask(T):
    mask = np.zeros((T, T), dtype=bool)
    for query in range(T):
        for key in range(query):
            mask[query, key] = True
    return mask


@wrong(
    "sees one token ahead",
    r"\bone\b.*\b(ahead|too|next|future|later)|next (token|key|word|position)|future|k ?= ?1|off by one",
)
def causal_mask(T):
    return np.tril(np.ones((T, T)), k=1).astype(bool)


@wrong(
    "True marks what is blocked",
    r"invert|opposite|True (mean|is|mark|stand|=|where|for)|flip|negat|~|blocked|forbidden|other way",
)
def causal_mask(T):
    # as in nn.MultiheadAttention
    return torch.triu(torch.ones(T, T), diagonal=1).bool().numpy()


@wrong("ones and zeros, not booleans", r"bool|dtype|float|True")
def causal_mask(T):
    return np.tril(np.ones((T, T)))


@wrong("additive mask of 0 and -inf", r"bool|inf|∞|True|additive")
def causal_mask(T):
    m = np.zeros((T, T))
    m[np.triu_indices(T, 1)] = float("-inf")
    return m


@wrong("extra axes for batch and heads", r"shape|axis|axes|dimension|\(T, ?T\)|\d, ?\d")
def causal_mask(T):
    return torch.tril(torch.ones(T, T)).view(1, 1, T, T).bool()


@wrong(
    "only the token and the one before it",
    r"window|band|earlier|further back|all (the )?(previous|past|keys)|only .*(before|previous|neighbour)|every .*before",
)
def causal_mask(T):
    i = np.arange(T)[:, None]
    j = np.arange(T)[None, :]
    return (j == i) | (j == i - 1)


@wrong("nothing is masked", r"future|later|after it|every|all ")
def causal_mask(T):
    return np.ones((T, T), dtype=np.bool_)


@wrong("block size is not cut to T", r"shape|size|\(T, ?T\)|\d, ?\d|argument|fixed")
def causal_mask(T):
    block_size = 64
    return torch.tril(torch.ones(block_size, block_size)) == 1


@right("comparison of positions")
def causal_mask(T):
    positions = np.arange(T)
    return positions[:, None] >= positions[None, :]


@right("cumulative sum of the identity")
def causal_mask(T):
    return np.cumsum(np.eye(T), axis=0) > 0


@right("list comprehension")
def causal_mask(T):
    rows = [[j <= i for j in range(T)] for i in range(T)]
    return np.array(rows)


@right("torch")
def causal_mask(T):
    blocked = torch.ones(T, T).triu(diagonal=1)
    return blocked == 0


# ---------------------------------------------------------------- 06 masked_softmax
@wrong(
    "reads the mask the other way round",
    r"invert|opposite|other way|revers|wrong way|flip|swap|True (mean|is|mark|stand|=|where|for)|forbidden|blocked|hidden",
)
def masked_softmax(S, mask):
    scores = np.where(mask, -1e9, S)
    return softmax(scores)


@wrong("scores times mask", r"inf|∞|e\^?0|e⁰|exp\(0\)|score.{0,20}\b0\b|zero|infinity")
def masked_softmax(S, mask):
    return softmax(S * mask)


@wrong(
    "masks after the softmax, rows no longer add up to 1",
    r"sum|renormal|normali[sz]|add up|before the softmax|total",
)
def masked_softmax(S, mask):
    weights = softmax(S, axis=-1)
    weights = weights * mask
    return weights


@wrong("fills with -10", r"-10|−10|inf|∞|leak|enough|finite|too small|still")
def masked_softmax(S, mask):
    masked = np.where(mask, S, -10.0)
    e = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("exp without subtracting the maximum", r"overflow|max|stab|large|big")
def masked_softmax(S, mask):
    e = np.exp(S) * mask
    return e / np.sum(e, axis=-1, keepdims=True)


@wrong("adds the boolean mask", r"\badd|plus|\+|inf|∞")
def masked_softmax(S, mask):
    if mask is not None:
        S = S + mask
    return softmax(S)


@wrong("writes -inf into S", r"chang|modif|in[- ]place|copy|overwrit|input")
def masked_softmax(S, mask):
    S[~np.broadcast_to(mask, S.shape)] = -np.inf
    S = S - S.max(-1, keepdims=True)
    return np.exp(S) / np.exp(S).sum(-1, keepdims=True)


@wrong("normalises the columns", r"axis|column|row|last|keys|dim")
def masked_softmax(S, mask):
    S = np.where(mask, S, -1e9)
    e = np.exp(S - S.max())
    return e / (e.sum(axis=-2, keepdims=True) + 1e-12)


@wrong(
    "mask of one sentence does not broadcast over the batch",
    r"broadcast|shape|batch|leading|dimension",
)
def masked_softmax(S, mask):
    scores = S.copy()
    scores[mask == False] = -np.inf  # noqa: E712
    return softmax(scores)


# The next one counts as right, as in the design's catalogue: it differs only next to a masked
# score that is some 750 above all others (100 in float32).
@right("maximum over all keys, normalised after the mask: equal but next to a huge masked score")
def masked_softmax(S, mask):
    shifted = S - np.max(S, axis=-1, keepdims=True)
    numerator = np.exp(shifted) * mask
    return numerator / numerator.sum(axis=-1, keepdims=True)


@wrong("axis 1 is the queries when there is a batch", r"axis|last|-1|−1|batch|column|keys|dim")
def masked_softmax(S, mask):
    S = torch.where(mask, S, torch.tensor(float("-inf")).to(S.dtype))
    return torch.softmax(S, dim=1)


@wrong("always causal, the mask argument is not used", r"causal|argument|own|given|ignor|not use")
def masked_softmax(S, mask):
    T = S.shape[-1]
    causal = np.tril(np.ones((S.shape[-2], T)))
    return softmax(np.where(causal == 1, S, -np.inf))


@right("-1e9 added")
def masked_softmax(S, mask):
    return softmax(S + (1.0 - mask.astype(float)) * -1e9)


@right("log of the mask added")
def masked_softmax(S, mask):
    with np.errstate(divide="ignore"):
        bias = np.log(mask.astype(np.float64))
    z = S + bias
    z = z - np.logaddexp.reduce(z, axis=-1, keepdims=True)
    return np.exp(z)


@right("masked arrays of NumPy")
def masked_softmax(S, mask):
    m = np.ma.masked_array(S, mask=~np.broadcast_to(mask, S.shape))
    e = np.ma.exp(m - m.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).filled(0.0)


@right("torch, masked_fill")
def masked_softmax(S, mask):
    return F.softmax(S.masked_fill(mask.logical_not(), torch.finfo(S.dtype).min), dim=-1)


# ---------------------------------------------------------------- 06 safe_masked_softmax
@wrong("NaN in the empty rows", r"nan|0 ?/ ?0|inf ?[-−] ?inf|∞ ?[-−]")
def safe_masked_softmax(S, mask):
    return F.softmax(S.masked_fill(~mask, float("-inf")), dim=-1)


@wrong(
    "-1e9 spreads the empty rows evenly", r"uniform|equal|even|spread|same|1/|average|1e9|finite"
)
def safe_masked_softmax(S, mask):
    S = np.where(mask, S, -1e9)
    return softmax(S)


@wrong("softmax plus one", r"sum|add.{0,10} to 1|less than 1|denominator|\+ ?1|1 ?\+|extra")
def safe_masked_softmax(S, mask):
    # https: "attention is off by one"
    S = np.where(mask, S, -np.inf)
    m = np.maximum(S.max(axis=-1, keepdims=True), 0)
    e = np.exp(S - m)
    return e / (np.exp(-m) + e.sum(axis=-1, keepdims=True))


@wrong(
    "one empty row makes everything zero",
    r"only|other rows|whole|all (the )?rows|every row|row by row|all zero|everything|everywhere",
)
def safe_masked_softmax(S, mask):
    if not mask.any(axis=-1).all():
        return np.zeros_like(S)
    return masked_softmax(S, mask)


@wrong("an empty row looks at itself", r"zero|\b0\b|itself|diagonal|empty|no allowed|nothing")
def safe_masked_softmax(S, mask):
    m = np.array(np.broadcast_to(mask, S.shape))
    for idx in np.ndindex(*m.shape[:-1]):
        if not m[idx].any():
            m[idx][min(idx[-1], m.shape[-1] - 1)] = True
    return masked_softmax(S, m)


@wrong("exp without subtracting the maximum", r"overflow|max|stab|large|big")
def safe_masked_softmax(S, mask):
    e = np.where(mask, np.exp(S), 0.0)
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@wrong("maximum over masked keys: good rows vanish", r"max|underflow|large|big|vanish")
def safe_masked_softmax(S, mask):
    e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
    total = e.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    return e / total


@wrong("indexes S with the rows of an unbroadcast mask", r"broadcast|shape|batch|leading|dimension")
def safe_masked_softmax(S, mask):
    weights = softmax(np.where(mask, S, -1e9))
    empty = ~mask.any(axis=-1)
    weights[empty] = 0.0
    return weights


@wrong("looks for empty columns, not rows", r"row|axis|nan|column|quer")
def safe_masked_softmax(S, mask):
    with np.errstate(invalid="ignore"):
        weights = softmax(np.where(mask, S, -np.inf))
    some = mask.any(axis=-2, keepdims=True)
    return np.where(some, weights, 0)


@wrong(
    "weights times mask, not normalised again",
    r"sum|renormal|normali[sz]|add up|before the softmax|total",
)
def safe_masked_softmax(S, mask):
    return softmax(S) * mask


@wrong(
    "epsilon of 0.1 in the denominator", r"sum|add.{0,10} to 1|less than 1|denominator|eps|extra|\+"
)
def safe_masked_softmax(S, mask):
    S = np.where(mask, S, -1e30)
    e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
    return e / (e.sum(axis=-1, keepdims=True) + 0.1)


@wrong("writes into S", r"chang|modif|in[- ]place|copy|overwrit|input")
def safe_masked_softmax(S, mask):
    mask = np.broadcast_to(mask, S.shape)
    S[~mask] = -1e9
    return softmax(S) * mask


@right("-1e9 and the mask again after it")
def safe_masked_softmax(S, mask):
    return softmax(np.where(mask, S, -1e9)) * mask


@right("nan_to_num")
def safe_masked_softmax(S, mask):
    with np.errstate(all="ignore"):
        x = np.where(mask, S.astype(np.float64), -np.inf)
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return np.nan_to_num(e / e.sum(axis=-1, keepdims=True), nan=0.0)


@right("row by row")
def safe_masked_softmax(S, mask):
    mask = np.broadcast_to(mask, S.shape)
    out = np.zeros(S.shape)
    for i in np.ndindex(S.shape[:-1]):
        ok = mask[i]
        if ok.sum() == 0:
            continue
        best = max(S[i][ok])
        e = [math.exp(s - best) for s in S[i][ok]]
        out[i][ok] = np.array(e) / sum(e)
    return out


@right("torch")
def safe_masked_softmax(S, mask):
    w = torch.softmax(S.masked_fill(~mask, float("-inf")), -1)
    return torch.where(torch.isnan(w), torch.zeros_like(w), w)


# ---------------------------------------------------------------- 06 padding_mask
@wrong(
    "True for the padding",
    r"invert|opposite|other way|revers|flip|True (mean|is|mark|stand|=|where|for)|!=|real",
)
def padding_mask(ids, pad_id):
    return (ids == pad_id)[:, np.newaxis, :]


@wrong("no axis for the queries", r"axis|shape|dimension|None|\d, ?\d")
def padding_mask(ids, pad_id):
    return ids != pad_id


@wrong("masks queries instead of keys", r"quer|column|axis|shape|last")
def padding_mask(ids, pad_id):
    return np.expand_dims(ids != pad_id, -1)


@wrong("masks padded queries too", r"quer|shape|\(B, ?1, ?T\)|row")
def padding_mask(ids, pad_id):
    real = ids != pad_id
    return real[:, :, None] & real[:, None, :]


@wrong("the padding id is 0 in the code", r"pad_id|argument|fixed|hard|\b0\b")
def padding_mask(ids, pad_id=0):
    return (ids != 0)[:, None, :]


@wrong("greater than the padding id", r"pad_id|greater|larger|smaller|below|less|!=|compar|equal")
def padding_mask(ids, pad_id):
    return (ids > pad_id).reshape(len(ids), 1, -1)


@wrong("an axis for the heads as well", r"axis|axes|shape|dimension|\d, ?\d")
def padding_mask(ids, pad_id):
    return (ids != pad_id).unsqueeze(1).unsqueeze(2)


@wrong("float mask", r"bool|dtype|float|True")
def padding_mask(ids, pad_id):
    seq = np.equal(ids, pad_id).astype(np.float32)
    return 1 - seq[:, None, :]


@wrong("mask of the first sentence for all", r"each|every|own|first|same|sentence|row")
def padding_mask(ids, pad_id):
    B, T = ids.shape
    n = int((ids[0] != pad_id).sum())
    mask = np.zeros((B, 1, T), dtype=bool)
    mask[:, :, :n] = True
    return mask


@wrong(
    "counts tokens, so padding at the front goes wrong",
    r"left|position|front|where|beginning|anywhere|middle|start|place|count|length|end",
)
def padding_mask(ids, pad_id):
    lengths = (ids != pad_id).sum(axis=1)
    return (np.arange(ids.shape[1])[None, :] < lengths[:, None])[:, None, :]


@wrong(
    "everything after the first padding",
    r"left|position|front|where|beginning|anywhere|middle|start|place|after|end|later|first",
)
def padding_mask(ids, pad_id):
    is_pad = (ids == pad_id).astype(int)
    return (np.cumsum(is_pad, axis=1) == 0)[:, None, :]


@wrong("ids with padding as 0", r"bool|dtype|True|ids")
def padding_mask(ids, pad_id):
    return np.where(ids == pad_id, 0, ids)[:, None]


@right("isin and reshape")
def padding_mask(ids, pad_id):
    B, T = ids.shape
    return np.isin(ids, [pad_id], invert=True).reshape(B, 1, T)


@right("lists")
def padding_mask(ids, pad_id):
    return np.array([[[int(i) != int(pad_id) for i in sentence]] for sentence in ids.tolist()])


@right("torch")
def padding_mask(ids, pad_id):
    return torch.ne(ids, pad_id).unsqueeze(-2)


# ---------------------------------------------------------------- 06 padded_weights
@wrong("the axis for the queries is missing", r"axis|None|broadcast|shape|quer")
def padded_weights(S, is_real):
    return masked_softmax(S, is_real)


@wrong("hides padded queries", r"quer|column|key|row|axis")
def padded_weights(S, is_real):
    return safe_masked_softmax(S, is_real[:, :, None])


@wrong("hides padded queries and keys", r"quer|row|nan")
def padded_weights(S, is_real):
    pair = np.einsum("bi,bj->bij", is_real, is_real).astype(bool)
    return masked_softmax(S, pair)


@wrong("softmax first, then zeros", r"sum|renormal|normali[sz]|add up|before the softmax|total")
def padded_weights(S, is_real):
    return softmax(S) * is_real[:, None]


@wrong(
    "True taken for padding",
    r"invert|opposite|other way|revers|flip|swap|True (mean|is|mark|stand|=|where|for)|real",
)
def padded_weights(S, is_real):
    return torch.softmax(S.masked_fill(is_real.unsqueeze(1), -1e9), dim=-1)


@wrong("scores of padding set to 0", r"inf|∞|e\^?0|e⁰|exp\(0\)|score.{0,20}\b0\b|zero")
def padded_weights(S, is_real):
    S = S * is_real[:, None, :].astype(S.dtype)
    return softmax(S)


@wrong("padding of the first sentence for all", r"each|every|own|first|same|sentence|batch")
def padded_weights(S, is_real):
    return masked_softmax(S, is_real[0])


@wrong("softmax over the queries", r"axis|column|row|last|keys|dim")
def padded_weights(S, is_real):
    return F.softmax(S.masked_fill(~is_real[:, None, :], -1e9), dim=1)


@wrong("is_real is not used", r"ignor|is_real|not use|unused|padd")
def padded_weights(S, is_real):
    return softmax(S, axis=-1)


@wrong("cuts padded keys off", r"shape|cut|column|keys|width")
def padded_weights(S, is_real):
    longest = is_real.sum(axis=1).max()
    S = S[:, :, :longest]
    return masked_softmax(S, is_real[:, None, :longest])


@wrong("writes into S", r"chang|modif|in[- ]place|copy|overwrit|input")
def padded_weights(S, is_real):
    for b in range(S.shape[0]):
        for k in range(S.shape[2]):
            if not is_real[b, k]:
                S[b, :, k] = -1e9
    return softmax(S)


@wrong(
    "counts the real tokens and hides the end",
    r"left|position|front|where|beginning|anywhere|middle|start|place|count|length|end",
)
def padded_weights(S, is_real):
    S = S.copy()
    for b, n in enumerate(is_real.sum(-1)):
        S[b, :, n:] = -1e9
    return softmax(S)


@right("renormalises after the softmax, which differs only next to a score of 700 more")
def padded_weights(S, is_real):
    w = softmax(S) * is_real[:, None, :]
    return w / w.sum(-1, keepdims=True)


@right("only the real columns of each sentence")
def padded_weights(S, is_real):
    out = np.zeros_like(S)
    for b in range(len(S)):
        keep = np.flatnonzero(is_real[b])
        out[b][:, keep] = softmax(S[b][:, keep])
    return out


@right("bias of -1e9 through einsum")
def padded_weights(S, is_real):
    bias = np.einsum("q,bk->bqk", np.ones(S.shape[1]), np.where(is_real, 0.0, -1e9))
    x = S + bias
    x = np.exp(x - np.amax(x, axis=2)[..., None])
    return x / np.einsum("bqk->bq", x)[..., None]


@right("torch with repeat")
def padded_weights(S, is_real):
    mask = is_real.unsqueeze(1).repeat(1, S.size(1), 1)
    S = S.clone()
    S[mask == False] = float("-inf")  # noqa: E712
    return nn.Softmax(dim=-1)(S)


# ---------------------------------------------------------------- 07 dropout
@wrong("no division by 1-p", r"1 ?[-−] ?p|scal|divi|mean|expect|average")
def dropout(x, p, training, rng):
    if not training:
        return x
    return x * (rng.random(x.shape) > p)


@wrong("p is the probability of keeping", r"keep|kept|drop.{0,30}\bp\b|\bp\b.{0,40}drop|1 ?[-−] ?p")
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    keep = rng.random(x.shape) < p
    return x * keep / p


@wrong("divides by p", r"1 ?[-−] ?p|divi|scal")
def dropout(x, p, training, rng):
    if training and p > 0:
        mask = rng.binomial(1, 1 - p, size=x.shape)
        return x * mask / p
    return x


@wrong("scales at test time, as in the first paper", r"train|inference|test|unchanged|evaluat")
def dropout(x, p, training, rng):
    if training:
        return x * rng.binomial(1, 1 - p, x.shape)
    else:
        return x * (1 - p)


@wrong("drops outside of training too", r"train|inference|evaluat|test|unchanged")
def dropout(x, p, training, rng):
    q = 1 - p
    return x * (rng.random(x.shape) < q) / q


@wrong("whole tokens", r"element|whole|token|row|vector|entire|number")
def dropout(x, p, training, rng):
    if not training:
        return x
    mask = rng.random(x.shape[:-1])[..., None] >= p
    return np.where(mask, x / (1 - p), 0)


@wrong("global generator", r"rng|np\.random|seed|generator|reproduc")
def dropout(x, p, training, rng):
    if not training:
        return x
    mask = np.random.rand(*x.shape) < (1 - p)
    return x * mask / (1 - p)


@wrong("F.dropout does not take the generator", r"rng|seed|generator|reproduc|random")
def dropout(x, p, training, rng):
    return F.dropout(x, p=p, training=training)


@wrong("writes zeros into x", r"chang|modif|in[- ]place|copy|overwrit|input")
def dropout(x, p, training, rng):
    if not training:
        return x
    x[rng.random(x.shape) < p] = 0
    return x / (1 - p)


@wrong("one mask for the whole batch", r"same|batch|item|share|sentence|each")
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    keep = rng.random(x.shape[-2:]) >= p
    return x * keep / (1 - p)


@wrong("returns the mask as well", r"tuple|two|only|return|mask")
def dropout(x, p, training, rng):
    if training:
        mask = (rng.random(x.shape) >= p) / (1 - p)
        return x * mask, mask
    return x, None


@wrong("new generator with a fixed seed", r"rng|seed|same|generator|each call|every call")
def dropout(x, p, training, rng):
    rng = np.random.default_rng(42)
    if not training:
        return x
    keep_prob = 1.0 - p
    return x * (rng.uniform(size=x.shape) < keep_prob) / keep_prob


@wrong(
    "drops 1-p of the elements", r"compar|<|>|keep|kept|1 ?[-−] ?p|invert|swap|other way|too many"
)
def dropout(x, p, training, rng):
    if p == 0 or not training:
        return x
    keep = torch.rand(x.shape, generator=rng) < p
    return x * keep / (1 - p)


@wrong("a slip in the condition: never drops", r"never|nothing|drop|train|no element|unchanged")
def dropout(x, p, training, rng):
    if not training or p:
        return x
    return x * (rng.random(x.shape) >= p) / (1 - p)


@wrong("training flag the wrong way round", r"train|inference|evaluat|test|invert|other way")
def dropout(x, p, training, rng):
    if training:
        return x
    return x * (rng.random(x.shape) >= p) / (1 - p)


@right("binomial")
def dropout(x, p, training, rng):
    if not training:
        return x
    return x * rng.binomial(n=1, p=1 - p, size=x.shape) / (1 - p)


@right("choice between 0 and the factor")
def dropout(x, p, training, rng):
    if not training or p == 0.0:
        return x
    factor = rng.choice([0.0, 1.0 / (1.0 - p)], size=x.shape, p=[p, 1.0 - p])
    return np.multiply(x, factor)


@right("element by element")
def dropout(x, p, training, rng):
    out = np.array(x, dtype=float)
    if training:
        for idx in np.ndindex(*out.shape):
            out[idx] = 0.0 if rng.uniform() < p else out[idx] / (1 - p)
    return out


@right("torch bernoulli")
def dropout(x, p, training, rng):
    if not training:
        return x
    keep = torch.bernoulli(torch.full_like(x, 1 - p), generator=rng)
    return x.mul(keep).div(1 - p)


# ---------------------------------------------------------------- 08 split_heads
@wrong("reshape to the right shape without a transpose", r"reshape|transpos|mix|swap|order")
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, num_heads, T, D // num_heads)


@wrong("transpose is missing", r"transpos|swap|shape|axis|axes")
def split_heads(x, num_heads):
    B, T, D = x.shape
    d_head = D // num_heads
    return x.view(B, T, num_heads, d_head)


@wrong(
    "heads take every H-th feature",
    r"contigu|interleav|strid|every|slice|order|neighbour|adjacent|next to|block",
)
def split_heads(x, num_heads):
    return np.stack([x[..., h::num_heads] for h in range(num_heads)], axis=1)


@wrong("features before tokens", r"last|swap|axes|transpos|order|token|shape")
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, -1).transpose(0, 2, 3, 1)


@wrong("num_heads used as the width of a head", r"number of heads|width|size|d_head|swap|num_heads")
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, D // num_heads, num_heads).transpose(0, 2, 1, 3)


@wrong("heads before the batch", r"axis|axes|order|batch|first|shape")
def split_heads(x, num_heads):
    return np.array(np.split(x, num_heads, axis=-1))


@wrong("splits the tokens", r"token|feature|shape|axis")
def split_heads(x, num_heads):
    parts = np.array_split(x, num_heads, axis=1)
    return np.stack(parts, axis=1)


@wrong("heads folded into the batch", r"shape|axis|axes|dimension|batch|four|4")
def split_heads(x, num_heads):
    B, T, D = x.shape
    x = x.reshape(B, T, num_heads, D // num_heads).transpose(0, 2, 1, 3)
    return x.reshape(B * num_heads, T, D // num_heads)


@wrong("a list of heads", r"list|stack|array|axis|shape|order|tuple")
def split_heads(x, num_heads):
    size = x.shape[-1] // num_heads
    return [x[:, :, h * size : (h + 1) * size] for h in range(num_heads)]


@wrong("every head gets all features", r"width|D ?/|slice|whole|all|shape|cop")
def split_heads(x, num_heads):
    return np.repeat(x[:, None, :, :], num_heads, axis=1)


@wrong("only the first sentence of the batch", r"batch|item|first|sentence|shape")
def split_heads(x, num_heads):
    x = x[0]
    T, D = x.shape
    heads = np.empty((1, num_heads, T, D // num_heads))
    for h in range(num_heads):
        heads[0, h] = x[:, h * D // num_heads : (h + 1) * D // num_heads]
    return heads


@wrong("order of heads reversed by a negative slice", r"order|revers|first|head 0|head h|last")
def split_heads(x, num_heads):
    d = x.shape[-1] // num_heads
    rest, heads = x, []
    for _ in range(num_heads):
        heads.append(rest[..., -d:])
        rest = rest[..., :-d]
    return np.stack(heads, axis=1)


@right("split and stack")
def split_heads(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1), axis=1)


@right("einsum with selection matrices")
def split_heads(x, num_heads):
    D = x.shape[-1]
    select = np.eye(D).reshape(D, num_heads, D // num_heads)
    return np.einsum("btd,dhk->bhtk", x, select)


@right("torch unflatten")
def split_heads(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3)


@right("feature by feature")
def split_heads(x, num_heads):
    B, T, D = x.shape
    w = D // num_heads
    out = np.zeros((B, num_heads, T, w), dtype=x.dtype)
    for d in range(D):
        out[:, d // w, :, d % w] = x[:, :, d]
    return out


# ---------------------------------------------------------------- 08 merge_heads
@wrong("reshape without the transpose", r"reshape|transpos|mix|swap|order")
def merge_heads(x):
    B, H, T, d = x.shape
    return x.reshape(B, T, H * d)


@wrong(
    "features of the heads interleaved",
    r"contigu|interleav|strid|every|side by side|order|neighbour|adjacent|next to|block|after",
)
def merge_heads(x):
    B, H, T, d = x.shape
    return np.moveaxis(x, 1, -1).reshape(B, T, d * H)


@wrong("still four axes", r"shape|flatten|reshape|join|concat|axes|four|4|dimension|side by side")
def merge_heads(x):
    return x.permute(0, 2, 1, 3).contiguous()


@wrong("mean of the heads", r"mean|average|concat|side by side|shape|width")
def merge_heads(x):
    return x.mean(axis=1)


@wrong("sum of the heads", r"sum|add|concat|side by side|shape|width")
def merge_heads(x):
    return np.einsum("bhtd->btd", x)


@wrong("heads one after another along the tokens", r"token|axis|shape|feature|side by side")
def merge_heads(x):
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=1)


@wrong("one head only", r"first|only|all heads|all the heads|every head|shape|width|lost")
def merge_heads(x):
    for h in range(x.shape[1]):
        out = x[:, h]
        return out


@wrong("no batch axis left", r"batch|shape|axis|dimension")
def merge_heads(x):
    B, H, T, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(-1, H * d)


@wrong("tokens before the batch", r"batch|axis|axes|order|swap|shape")
def merge_heads(x):
    B, H, T, d = x.shape
    return np.transpose(x, (2, 0, 1, 3)).reshape(T, B, H * d)


@wrong("features before tokens", r"swap|transpos|last|shape|token|axes")
def merge_heads(x):
    B, H, T, d = x.shape
    return x.swapaxes(-1, -2).reshape(B, H * d, T)


@wrong("last head first", r"order|revers|first|head 0|last")
def merge_heads(x):
    out = x[:, 0]
    for h in range(1, x.shape[1]):
        out = np.concatenate([x[:, h], out], axis=-1)
    return out


@wrong("axes taken for (B, T, H, d)", r"reshape|transpos|mix|swap|order|axis|axes|shape")
def merge_heads(x):
    return x.flatten(start_dim=2)


@right("concatenate")
def merge_heads(x):
    heads = [x[:, h, :, :] for h in range(x.shape[1])]
    return np.concatenate(heads, axis=-1)


@right("hstack for every sentence")
def merge_heads(x):
    return np.array([np.hstack(list(sentence)) for sentence in x])


@right("torch")
def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)


@right("einsum with selection matrices")
def merge_heads(x):
    H, d = x.shape[1], x.shape[3]
    place = np.eye(H * d).reshape(H, d, H * d)
    return np.einsum("bhtd,hde->bte", x, place, optimize=True)


# ---------------------------------------------------------------- 08 multi_head_attention
@wrong("W_o is not used", r"W_o|output (projection|matrix|weights)")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    kv = x if memory is None else memory
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(kv @ W_k, num_heads)
    V = split_heads(kv @ W_v, num_heads)
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        if mask.ndim == 3:
            mask = mask[:, None]
        scores = np.where(mask, scores, -1e9)
    return merge_heads(softmax(scores) @ V)


@wrong("one big head", r"split|one head|single head|num_heads|heads")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    source = x if memory is None else memory
    Q, K, V = x @ W_q, source @ W_k, source @ W_v
    S = Q @ K.transpose(0, 2, 1) / math.sqrt(Q.shape[-1] // num_heads)
    if mask is not None:
        S = np.where(mask, S, -np.inf)
    return softmax(S) @ V @ W_o


@wrong(
    "scales with the model width",
    r"d_head|d_k|width of (a|one|each) head|scal|sqrt|√|head.{0,20}width",
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    B, T, d_model = x.shape
    memory = x if memory is None else memory
    q = split_heads(np.matmul(x, W_q), num_heads)
    k = split_heads(np.matmul(memory, W_k), num_heads)
    v = split_heads(np.matmul(memory, W_v), num_heads)
    logits = np.matmul(q, np.transpose(k, (0, 1, 3, 2))) / np.sqrt(d_model)
    if mask is not None:
        logits = np.where(mask[:, None] if mask.ndim == 3 else mask, logits, -1e9)
    return np.matmul(merge_heads(np.matmul(softmax(logits), v)), W_o)


@wrong("no scaling", r"scal|sqrt|√|divi")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    q, k, v = x @ W_q, src @ W_k, src @ W_v
    d = W_q.shape[1] // num_heads
    heads = []
    for h in range(num_heads):
        part = slice(h * d, (h + 1) * d)
        s = np.einsum("btd,bsd->bts", q[..., part], k[..., part])
        if mask is not None:
            s = np.where(mask, s, -np.inf)
        heads.append(softmax(s) @ v[..., part])
    return np.concatenate(heads, axis=-1) @ W_o


@wrong(
    "True blocks, as in nn.MultiheadAttention",
    r"invert|opposite|other way|revers|flip|True (mean|is|mark|stand|=|where|for)|forbidden|allowed",
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    if memory is None:
        memory = x
    B, T, D = x.shape
    S = memory.shape[1]
    q = (x @ W_q).view(B, T, num_heads, -1).transpose(1, 2)
    k = (memory @ W_k).view(B, S, num_heads, -1).transpose(1, 2)
    v = (memory @ W_v).view(B, S, num_heads, -1).transpose(1, 2)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        if mask.dim() == 3:
            mask = mask.unsqueeze(1)
        scores = scores.masked_fill(mask, float("-inf"))
    out = F.softmax(scores, dim=-1) @ v
    return out.transpose(1, 2).reshape(B, T, D) @ W_o


@wrong(
    "a mask with a batch axis meets the heads",
    r"mask.{0,80}(axis|batch|head|broadcast|shape|None)|\[:, None|unsqueeze",
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (
        split_heads(x @ W_q, num_heads),
        split_heads(src @ W_k, num_heads),
        split_heads(src @ W_v, num_heads),
    )
    scores = scale_scores(attention_scores(Q, K), Q.shape[-1])
    weights = softmax(scores) if mask is None else masked_softmax(scores, mask)
    return merge_heads(weights @ V) @ W_o


@wrong("memory is not used", r"memory|cross")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    Q, K, V = (split_heads(t, num_heads) for t in project_qkv(x, W_q, W_k, W_v))
    scores = scale_scores(attention_scores(Q, K), Q.shape[-1])
    if mask is not None:
        m = mask if mask.ndim == 2 else mask[:, None]
        scores = np.where(m, scores, -np.inf)
    return merge_heads(softmax(scores) @ V) @ W_o


@wrong("values from x, keys from memory", r"memory.{0,60}value|value.{0,60}memory|W_v|\bV\b")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    keys_from = x if memory is None else memory
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(keys_from @ W_k, num_heads)
    V = split_heads(x @ W_v, num_heads)
    scores = Q @ np.swapaxes(K, 2, 3) / np.sqrt(Q.shape[3])
    if mask is not None:
        scores = np.where(
            np.broadcast_to(mask if mask.ndim == 2 else mask[:, None], scores.shape), scores, -1e9
        )
    return merge_heads(softmax(scores) @ V) @ W_o


@wrong("queries from memory as well", r"quer|W_q|\bQ\b")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    if memory is not None:
        x = memory
    Q, K, V = [split_heads(x @ W, num_heads) for W in (W_q, W_k, W_v)]
    S = Q @ K.transpose(0, 1, 3, 2) / Q.shape[-1] ** 0.5
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong("queries from memory, keys and values from x", r"quer|W_q|\bQ\b|swap|memory")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    target = x if memory is None else memory
    Q = split_heads(target @ W_q, num_heads)
    K = split_heads(x @ W_k, num_heads)
    V = split_heads(x @ W_v, num_heads)
    S = Q @ K.transpose(0, 1, 3, 2) / Q.shape[-1] ** 0.5
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong("heads by reshape alone", r"reshape|transpos|mix|split")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    B, T, D = x.shape
    src = x if memory is None else memory
    d = D // num_heads
    Q = (x @ W_q).reshape(B, num_heads, T, d)
    K = (src @ W_k).reshape(B, num_heads, -1, d)
    V = (src @ W_v).reshape(B, num_heads, -1, d)
    S = Q @ K.swapaxes(-1, -2) / np.sqrt(d)
    if mask is not None:
        S = np.where(mask.reshape(-1, 1, *mask.shape[-2:]), S, -np.inf)
    out = softmax(S) @ V
    return out.reshape(B, T, D) @ W_o


@wrong("heads put together without a transpose", r"reshape|transpos|mix|merge")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    B, T, D = x.shape
    src = x if memory is None else memory
    Q, K, V = (
        split_heads(x @ W_q, num_heads),
        split_heads(src @ W_k, num_heads),
        split_heads(src @ W_v, num_heads),
    )
    S = attention_scores(Q, K) / np.sqrt(D // num_heads)
    if mask is not None:
        S = np.where(mask.reshape(-1, 1, *mask.shape[-2:]), S, -np.inf)
    return (softmax(S) @ V).reshape(B, T, D) @ W_o


@wrong("softmax over the queries", r"axis|column|row|last|each query|dim|softmax")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    q = torch.stack((x @ W_q).chunk(num_heads, dim=-1), 1)
    k = torch.stack((src @ W_k).chunk(num_heads, dim=-1), 1)
    v = torch.stack((src @ W_v).chunk(num_heads, dim=-1), 1)
    s = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~(mask[:, None] if mask.ndim == 3 else mask), -1e9)
    a = F.softmax(s, dim=2)
    return torch.cat((a @ v).unbind(1), -1) @ W_o


@wrong("mask is not used", r"mask")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    return merge_heads(attention(Q, K, V)) @ W_o


@wrong("any mask is taken for a causal one", r"mask")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    q, k, v = (
        t.reshape(t.shape[0], t.shape[1], num_heads, -1).transpose(1, 2)
        for t in (x @ W_q, src @ W_k, src @ W_v)
    )
    out = F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)
    return out.transpose(1, 2).flatten(2) @ W_o


@wrong("transposed weights, as nn.Linear keeps them", r"transpos|\.T\b|x ?@ ?W|from the right|W_q")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q.T, src @ W_k.T, src @ W_v.T))
    S = scale_scores(attention_scores(Q, K), Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o.T


@wrong(
    "mask multiplied into the weights after the softmax",
    r"sum|renormal|normali[sz]|add up|before the softmax|after the softmax",
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    A = attention_weights(Q, K)
    if mask is not None:
        A = A * (mask[:, None] if mask.ndim == 3 else mask)
    return merge_heads(A @ V) @ W_o


@wrong("residual connection inside", r"residual|\badd|x \+|\+ ?x|input")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    S = scale_scores(attention_scores(Q, K), Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return x + merge_heads(softmax(S) @ V) @ W_o


@wrong("values are not projected", r"W_v|value")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (
        split_heads(x @ W_q, num_heads),
        split_heads(src @ W_k, num_heads),
        split_heads(src, num_heads),
    )
    S = scale_scores(attention_scores(Q, K), Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong(
    "the mask only reaches the first head", r"mask.{0,80}head|head.{0,80}mask|every head|each head"
)
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    S = scale_scores(attention_scores(Q, K), Q.shape[-1])
    if mask is not None:
        S[:, 0] = np.where(mask, S[:, 0], -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@right("a loop over sentences and heads")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    B, T, D = x.shape
    d = D // num_heads
    out = np.zeros((B, T, D))
    for b in range(B):
        src = x[b] if memory is None else memory[b]
        for h in range(num_heads):
            cols = slice(h * d, (h + 1) * d)
            s = (x[b] @ W_q[:, cols]) @ (src @ W_k[:, cols]).T / math.sqrt(d)
            if mask is None:
                a = softmax(s)
            else:
                a = safe_masked_softmax(s, mask if mask.ndim == 2 else mask[b])
            out[b, :, cols] = a @ (src @ W_v[:, cols])
    return out @ W_o


@right("einsum, weights split instead of activations, sum over the heads")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    m = x if memory is None else memory
    D = x.shape[-1]
    wq, wk, wv = (W.reshape(D, num_heads, -1) for W in (W_q, W_k, W_v))
    wo = W_o.reshape(num_heads, -1, W_o.shape[1])
    q = np.einsum("btd,dhk->bhtk", x, wq)
    k = np.einsum("bsd,dhk->bhsk", m, wk)
    v = np.einsum("bsd,dhk->bhsk", m, wv)
    s = np.einsum("bhtk,bhsk->bhts", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        w = safe_masked_softmax(s, mask.reshape((-1, 1) + mask.shape[-2:]))
    else:
        w = softmax(s)
    return np.einsum("bhts,bhsk,hkd->btd", w, v, wo, optimize=True)


@right("torch scaled_dot_product_attention")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    q, k, v = (
        y.unflatten(-1, (num_heads, -1)).transpose(1, 2) for y in (x @ W_q, src @ W_k, src @ W_v)
    )
    if mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out.transpose(1, 2).flatten(start_dim=2) @ W_o


@right("heads folded into the batch, queries scaled in advance")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    source = memory if memory is not None else x

    def fold(y):
        return np.concatenate(np.split(y, num_heads, axis=-1), axis=0)

    B = x.shape[0]
    Q = fold(x @ W_q) / np.sqrt(x.shape[-1] / num_heads)
    K, V = fold(source @ W_k), fold(source @ W_v)
    S = Q @ K.transpose(0, 2, 1)
    if mask is None:
        A = softmax(S)
    elif mask.ndim == 2:
        A = safe_masked_softmax(S, mask)
    else:
        A = safe_masked_softmax(S, np.tile(mask, (num_heads, 1, 1)))
    O = A @ V  # noqa: E741
    return np.concatenate([O[h * B : (h + 1) * B] for h in range(num_heads)], axis=-1) @ W_o


# ---------------------------------------------------------------- 09 sinusoidal_positions
@wrong("all sines, then all cosines", r"interleav|halves|half|alternat|even.*odd|in turn|next to")
def sinusoidal_positions(T, D):
    pos = np.arange(T)[:, None]
    i = np.arange(D // 2)[None, :]
    angle = pos / np.power(10000, 2 * i / D)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


@wrong("exponent i/D instead of 2i/D", r"exponent|2i|2 ?\* ?i|i ?/ ?D|frequen|power|wavelength")
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D))
    for pos in range(T):
        for i in range(D // 2):
            pe[pos, 2 * i] = math.sin(pos / 10000 ** (i / D))
            pe[pos, 2 * i + 1] = math.cos(pos / 10000 ** (i / D))
    return pe


@wrong("2·column/D as the exponent", r"exponent|2i|same angle|frequen|pair|column|power")
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D))
    for pos in range(T):
        for i in range(D):
            angle = pos / 10000 ** (2 * i / D)
            pe[pos, i] = np.sin(angle) if i % 2 == 0 else np.cos(angle)
    return pe


@wrong("the cosine has its own exponent", r"same angle|pair|exponent|frequen|share|cos")
def sinusoidal_positions(T, D):
    j = np.arange(D)
    angle = np.arange(T)[:, None] / 10000 ** (j / D)
    return np.where(j % 2 == 0, np.sin(angle), np.cos(angle))


@wrong("positions from 1", r"from 0|start|position 0|first|\b1\b|shift")
def sinusoidal_positions(T, D):
    pos = np.arange(1, T + 1).reshape(-1, 1)
    angle = pos / 10000 ** (np.arange(0, D, 2) / D)
    pe = np.empty((T, D))
    pe[:, ::2], pe[:, 1::2] = np.sin(angle), np.cos(angle)
    return pe


@wrong("cosine in the even columns", r"swap|sin.*cos|cos.*sin|even|exchang")
def sinusoidal_positions(T, D):
    position = torch.arange(T).unsqueeze(1)
    div = torch.exp(torch.arange(0, D, 2) * (-math.log(10000.0) / D))
    pe = torch.zeros(T, D)
    pe[:, 1::2] = torch.sin(position * div)
    pe[:, 0::2] = torch.cos(position * div)
    return pe


@wrong("1000 instead of 10000", r"10[ ,_.]?000|base|constant")
def sinusoidal_positions(T, D):
    angle = np.outer(np.arange(T), 1000.0 ** (-np.arange(0, D, 2) / D))
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(T, D)


@wrong("integer division in the exponent", r"integer|//|exponent|divi|frequen|same (angle|speed)")
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D))
    for p in range(T):
        for c in range(0, D, 2):
            angle = p / 10000 ** (c // D)
            pe[p, c] = np.sin(angle)
            pe[p, c + 1] = np.cos(angle)
    return pe


@wrong("multiplies by the power", r"divi|multipl|negative|1 ?/|minus|sign")
def sinusoidal_positions(T, D):
    position = torch.arange(T).float().unsqueeze(1)
    div_term = torch.exp(torch.arange(0, D, 2).float() * (math.log(10000.0) / D))
    pe = torch.zeros(T, D)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@wrong("(D, T)", r"shape|transpos|\(T, ?D\)|axis|axes|rows")
def sinusoidal_positions(T, D):
    rate = 10000 ** (-np.arange(0, D, 2) / D)
    angle = rate[:, None] * np.arange(T)[None, :]
    pe = np.zeros((D, T))
    pe[0::2] = np.sin(angle)
    pe[1::2] = np.cos(angle)
    return pe


@wrong(
    "frequencies of tensor2tensor: divides by D/2 - 1",
    r"exponent|denominator|frequen|D ?/ ?2|2i ?/ ?D|wavelength",
)
def sinusoidal_positions(T, D):
    n = D // 2
    step = math.log(10000) / max(n - 1, 1)
    inv = np.exp(-step * np.arange(n))
    angle = np.arange(T)[:, None] * inv
    return np.dstack([np.sin(angle), np.cos(angle)]).reshape(T, D)


@wrong("an axis for the batch", r"shape|axis|dimension|batch|\d, ?\d")
def sinusoidal_positions(T, D):
    pe = torch.zeros(T, D)
    position = torch.arange(0, T, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, D, 2).float() * (-math.log(10000.0) / D))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe.unsqueeze(0)


@wrong("not divided by D", r"exponent|/ ?D|divi|frequen|power")
def sinusoidal_positions(T, D):
    rate = np.exp(-np.log(10000.0) * np.arange(0, D, 2))
    angle = np.arange(T)[:, np.newaxis] * rate[np.newaxis, :]
    pe = np.zeros((T, D))
    pe[:, 0::2] = np.sin(angle)
    pe[:, 1::2] = np.cos(angle)
    return pe


@wrong("array of integers", r"integer|int64|\bint\b|trunc|round|dtype|float|whole")
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D), dtype=int)
    for pos in range(T):
        for i in range(D // 2):
            theta = pos / 10000 ** (2 * i / D)
            pe[pos, 2 * i] = np.sin(theta)
            pe[pos, 2 * i + 1] = np.cos(theta)
    return pe


@wrong("sines only", r"cos")
def sinusoidal_positions(T, D):
    angle = np.arange(T)[:, None] / 10000 ** (2 * (np.arange(D) // 2) / D)
    return np.sin(angle)


@right("TensorFlow tutorial")
def sinusoidal_positions(T, D):
    def get_angles(pos, i, d_model):
        angle_rates = 1 / np.power(10000, (2 * (i // 2)) / np.float32(d_model))
        return pos * angle_rates

    rads = get_angles(np.arange(T)[:, np.newaxis], np.arange(D)[np.newaxis, :], D)
    rads[:, 0::2] = np.sin(rads[:, 0::2])
    rads[:, 1::2] = np.cos(rads[:, 1::2])
    return rads


@right("complex numbers")
def sinusoidal_positions(T, D):
    theta = 10000.0 ** (-np.arange(0, D, 2) / D)
    z = np.exp(1j * np.outer(np.arange(T), theta))
    return np.stack((z.imag, z.real), axis=2).reshape(T, D)


@right("sine with a quarter turn, lists")
def sinusoidal_positions(T, D):
    table = []
    for pos in range(T):
        row = []
        for c in range(D):
            i = c // 2
            row.append(math.sin(pos / 10000 ** (2 * i / D) + (c % 2) * math.pi / 2))
        table.append(row)
    return np.array(table)


@right("torch")
def sinusoidal_positions(T, D):
    position = torch.arange(T, dtype=torch.float64)[:, None]
    freq = torch.logspace(0, -4 * (D - 2) / D, D // 2, base=10.0, dtype=torch.float64)
    return (
        torch.stack([(position * freq).sin(), (position * freq).cos()], dim=-1).flatten(1).float()
    )


# ---------------------------------------------------------------- 09 add_positions
@wrong("multiplies", r"multipl|times|product|\badd|\+")
def add_positions(x):
    return x * sinusoidal_positions(*x.shape[-2:])


@wrong("concatenates", r"concat|width|shape|\badd|\+")
def add_positions(x):
    pe = np.broadcast_to(sinusoidal_positions(x.shape[-2], x.shape[-1]), x.shape)
    return np.concatenate([x, pe], axis=-1)


@wrong("reads T and D from the first axes", r"axis|axes|shape|batch|x\.shape|last two|leading")
def add_positions(x):
    return x + sinusoidal_positions(x.shape[0], x.shape[1])


@wrong(
    "table for the swapped shape, transposed back",
    r"swap|transpos|order|shape|T and D|\(T, ?D\)|axes|argument",
)
def add_positions(x):
    T, D = x.shape[-2:]
    return x + sinusoidal_positions(D, T + T % 2).T[:T]


@wrong("the bare index", r"index|number|arange|sin|table")
def add_positions(x):
    return x + np.arange(x.shape[-2])[:, None]


@wrong("x += changes the input", r"chang|modif|in[- ]place|copy|overwrit|input")
def add_positions(x):
    x += sinusoidal_positions(x.shape[-2], x.shape[-1])
    return x


@wrong("only the table", r"only|\badd|\+|without|embedding|x itself|lost|missing")
def add_positions(x):
    return np.zeros_like(x) + sinusoidal_positions(x.shape[-2], x.shape[-1])


@wrong("x times √D first, as in the paper", r"√|sqrt|scal|multipl|factor")
def add_positions(x):
    D = x.shape[-1]
    x = x * math.sqrt(D)
    return x + sinusoidal_positions(x.shape[-2], D)


@wrong(
    "positions go on through the batch",
    r"batch|restart|continu|same table|each sentence|every sentence|item|again from",
)
def add_positions(x):
    flat = x.reshape(-1, x.shape[-1])
    flat = flat + sinusoidal_positions(len(flat), x.shape[-1])
    return flat.reshape(x.shape)


@wrong(
    "the same row for all tokens",
    r"row|same|every (token|position)|first|own|each (token|position)|position 0",
)
def add_positions(x):
    T, D = x.shape[-2:]
    pe = sinusoidal_positions(T, D)
    return x + pe[0]


@wrong("needs a batch axis", r"batch|2-?D|two|unpack|leading|dimension|shape|axes")
def add_positions(x):
    B, T, D = x.shape
    pe = sinusoidal_positions(T, D)
    return x + pe[None]


@wrong("mean of x and the table", r"half|average|mean|divi|scal|halv|/ ?2")
def add_positions(x):
    return np.mean([x, np.broadcast_to(sinusoidal_positions(*x.shape[-2:]), x.shape)], axis=0)


@wrong("first sentence of the batch only", r"first|batch|every|each|item|sentence|all")
def add_positions(x):
    out = x.copy()
    out[0] = out[0] + sinusoidal_positions(x.shape[-2], x.shape[-1])
    return out


@wrong(
    "first token left out, table starts at the second", r"from 0|start|position 0|first|shift|one"
)
def add_positions(x):
    T, D = x.shape[-2], x.shape[-1]
    return x + sinusoidal_positions(T + 1, D)[1:]


@wrong(
    "one table entry for the batch index",
    r"batch|sentence|item|same table|token|each position|axis",
)
def add_positions(x):
    pe = sinusoidal_positions(x.shape[0], x.shape[-1])
    return x + pe.reshape(x.shape[0], *[1] * (x.ndim - 2), x.shape[-1])


@right("loop over the positions")
def add_positions(x):
    pe = sinusoidal_positions(x.shape[-2], x.shape[-1])
    out = np.array(x, dtype=np.float64)
    for pos, row in enumerate(pe):
        out[..., pos, :] += row
    return out


@right("own formula")
def add_positions(x):
    *_, T, D = x.shape
    c = np.arange(D)
    phase = np.arange(T)[:, None] / 10000.0 ** ((c - c % 2) / D)
    return x + np.where(c % 2, np.cos(phase), np.sin(phase))


@right("torch")
def add_positions(x):
    pe = torch.as_tensor(sinusoidal_positions(x.size(-2), x.size(-1)), dtype=x.dtype)
    return x + pe.expand_as(x)
