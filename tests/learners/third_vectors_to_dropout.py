"""Learners' answers to notebooks 01 to 07: the commonest slips, written without the checks."""
# ruff: noqa: B905, F811, F821, RUF005

from learners import right, wrong


# ------- build_vocab
@wrong(
    "ids are places in the text, with gaps",
    r"gap|place|position|repeat|again|duplicat|distinct|each occ",
)
def build_vocab(sentences):
    words = " ".join(sentences).split()
    return {word: i for i, word in enumerate(words)}


@wrong(
    "ids start anew in each sentence",
    r"sentence & start|restart|anew|again|each sentence|per sentence",
)
def build_vocab(sentences):
    vocab = {}
    for sentence in sentences:
        for i, word in enumerate(sentence.split()):
            vocab[word] = i
    return vocab


@wrong("counts instead of ids", r"count|how often|frequen|number of times")
def build_vocab(sentences):
    vocab = {}
    for sentence in sentences:
        for word in sentence.split():
            vocab[word] = vocab.get(word, 0) + 1
    return vocab


@wrong("most frequent first", r"frequen|count|most common|often")
def build_vocab(sentences):
    counts = Counter(word for sentence in sentences for word in sentence.split())
    return {word: i for i, (word, _) in enumerate(counts.most_common())}


@wrong("id keeps counting at known words", r"gap|counter|repeat|again|only .*new|already")
def build_vocab(sentences):
    vocab = {}
    next_id = 0
    for sentence in sentences:
        for word in sentence.split():
            if word not in vocab:
                vocab[word] = next_id
            next_id += 1
    return vocab


@right("dict.fromkeys")
def build_vocab(sentences):
    seen = dict.fromkeys(" ".join(sentences).split())
    return dict(zip(seen, range(len(seen))))


@right("np.unique, sorted")
def build_vocab(sentences):
    words = np.unique([w for s in sentences for w in s.split()])
    return {str(w): int(i) for i, w in enumerate(words)}


# ------- one_hot
@wrong("width is the largest id", r"vocab_size|width|V\b|largest|max")
def one_hot(ids, vocab_size):
    return np.eye(ids.max() + 1)[ids]


@wrong(
    "one vector for the sentence",
    r"one (row|vector)|per token|each token|every token|bag|all .*tokens|row",
)
def one_hot(ids, vocab_size):
    out = np.zeros(ids.shape[:-1] + (vocab_size,))
    for where in np.ndindex(ids.shape):
        out[where[:-1]][ids[where]] = 1
    return out


@wrong("writes the id instead of 1", r"\b1\b|one|id itself|the id")
def one_hot(ids, vocab_size):
    out = np.zeros(ids.shape + (vocab_size,))
    for where in np.ndindex(ids.shape):
        out[where + (ids[where],)] = ids[where]
    return out


@wrong("the batch is flattened", r"flat|batch|leading|shape|reshape|ravel")
def one_hot(ids, vocab_size):
    flat = ids.reshape(-1)
    out = np.zeros((flat.size, vocab_size))
    out[np.arange(flat.size), flat] = 1
    return out


@wrong("ids taken to start at 1", r"from 0|start|off by one|shift|id 0|- ?1|one (place|column)")
def one_hot(ids, vocab_size):
    return (ids[..., None] == np.arange(1, vocab_size + 1)).astype(np.float32)


@right("list comprehension")
def one_hot(ids, vocab_size):
    flat = [[1.0 if v == i else 0.0 for v in range(vocab_size)] for i in np.ravel(ids)]
    return np.array(flat, dtype=float).reshape(*np.shape(ids), vocab_size)


@right("put_along_axis")
def one_hot(ids, vocab_size):
    out = np.zeros((*ids.shape, vocab_size), dtype=np.float32)
    np.put_along_axis(out, ids[..., None], 1, axis=-1)
    return out


# ------- embed
@wrong("times √D as in the paper", r"sqrt|√|scal|multipl")
def embed(onehot, table):
    return onehot @ table * np.sqrt(table.shape[1])


@wrong("sums over the tokens", r"sum|add|pool|token|bag")
def embed(onehot, table):
    return (onehot @ table).sum(axis=-2)


@wrong("argmax over tokens", r"axis|last|token|argmax")
def embed(onehot, table):
    return table[onehot.argmax(axis=-2)]


@wrong("one-hot as row numbers", r"index|ids|row|look|argmax")
def embed(onehot, table):
    return table[onehot.astype(int)]


@wrong("adds the token's place", r"position|place|add")
def embed(onehot, table):
    vectors = onehot @ table
    return vectors + np.arange(vectors.shape[-2])[:, None]


@right("argmax and take")
def embed(onehot, table):
    return np.take(table, np.argmax(onehot, axis=-1), axis=0)


@right("broadcast and sum")
def embed(onehot, table):
    return (onehot[..., :, None] * table).sum(axis=-2)


# ------- project_qkv
@wrong("keys from W_q too", r"W_k|W_q|same")
def project_qkv(X, W_q, W_k, W_v):
    Q = X @ W_q
    K = X @ W_q
    V = X @ W_v
    return Q, K, V


@wrong("V is X itself", r"W_v|V\b|value")
def project_qkv(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, X


@wrong("values made from keys", r"W_v|X\b|key")
def project_qkv(X, W_q, W_k, W_v):
    Q = X @ W_q
    K = X @ W_k
    V = K @ K.swapaxes(-1, -2) @ X @ W_v
    return Q, K, V


@wrong("queries scaled already", r"scal|√|sqrt|divi")
def project_qkv(X, W_q, W_k, W_v):
    return X @ W_q / np.sqrt(W_q.shape[1]), X @ W_k, X @ W_v


@wrong("keys handed back transposed", r"transpos|\.T|swap")
def project_qkv(X, W_q, W_k, W_v):
    return X @ W_q, np.swapaxes(X @ W_k, -1, -2), X @ W_v


@right("one product, then split")
def project_qkv(X, W_q, W_k, W_v):
    all_three = X @ np.hstack([W_q, W_k, W_v])
    d = W_q.shape[1]
    return all_three[..., :d], all_three[..., d : 2 * d], all_three[..., 2 * d :]


@right("torch's linear")
def project_qkv(X, W_q, W_k, W_v):
    X = torch.as_tensor(X)
    return tuple(F.linear(X, torch.as_tensor(W).T) for W in (W_q, W_k, W_v))


# ------- attention_scores
@wrong("scales as well", r"scal|√|sqrt|divi")
def attention_scores(Q, K):
    return Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])


@wrong("cosine", r"cosin|norm|length|unit")
def attention_scores(Q, K):
    Q = Q / np.linalg.norm(Q, axis=-1, keepdims=True)
    K = K / np.linalg.norm(K, axis=-1, keepdims=True)
    return Q @ np.swapaxes(K, -1, -2)


@wrong(".T of a batch", r"\.T|batch|last two|swapaxes|leading|all (the )?axes")
def attention_scores(Q, K):
    return Q @ K.T


@wrong("reshape instead of transpose", r"reshape|transpos|swap")
def attention_scores(Q, K):
    return Q @ K.reshape(K.shape[:-2] + (K.shape[-1], K.shape[-2]))


@wrong("np.dot on a batch", r"np\.dot|batch|every|each sentence")
def attention_scores(Q, K):
    return np.dot(Q, np.swapaxes(K, -1, -2))


@right("inner products by broadcasting")
def attention_scores(Q, K):
    return np.sum(Q[..., :, None, :] * K[..., None, :, :], axis=-1)


@right("keys times queries, turned over")
def attention_scores(Q, K):
    S = K @ np.moveaxis(Q, -2, -1)
    return np.moveaxis(S, -1, -2)


# ------- scale_scores
@wrong("precedence: ** 1/2", r"d_k & (root|sqrt|√|0\.5|power|bracket|parenthes|half)")
def scale_scores(S, d_k):
    return S / d_k**1 / 2


@wrong("multiplies", r"multipl|times|divide")
def scale_scores(S, d_k):
    return S * d_k**0.5


@wrong("number of keys", r"number of keys|S\.shape|keys|d_k")
def scale_scores(S, d_k):
    return S / np.sqrt(S.shape[-1])


@wrong("standardises the scores", r"standard|deviation|std|data|d_k")
def scale_scores(S, d_k):
    return S / S.std()


@wrong("floor division", r"//|floor|whole|round|trunc|integer")
def scale_scores(S, d_k):
    return S // np.sqrt(d_k)


@right("power of -1/2")
def scale_scores(S, d_k):
    return S * d_k**-0.5


@right("np.vectorize")
def scale_scores(S, d_k):
    return np.vectorize(lambda s: float(s) / math.sqrt(d_k), otypes=[float])(S)


# ------- softmax
@wrong("no maximum subtracted", r"max|overflow|nan|inf|stable")
def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@wrong("one maximum for all", r"max & (row|axis|whole|all|each|every)")
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / e.sum(axis=axis, keepdims=True)


@wrong("sum over everything", r"sum & (whole|all|axis|row|every)")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum()


@wrong("axis is always the last", r"axis & (ignor|last|-1|given|argument)")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("takes the mean off, not the maximum", r"mean|max|overflow|stable")
def softmax(x, axis=-1):
    e = np.exp(x - np.mean(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


@right("apply_along_axis")
def softmax(x, axis=-1):
    def one(row):
        e = [math.exp(v - max(row)) for v in row]
        return np.array(e) / sum(e)

    return np.apply_along_axis(one, axis, np.asarray(x, dtype=float))


@right("log-sum-exp")
def softmax(x, axis=-1):
    x = np.asarray(x, dtype=np.float64)
    return np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True))


# ------- attention_weights
@wrong("forgets to scale", r"scal|√|sqrt|divi")
def attention_weights(Q, K):
    return softmax(Q @ np.swapaxes(K, -1, -2))


@wrong("divides by d_k", r"√|root|sqrt")
def attention_weights(Q, K):
    return softmax(attention_scores(Q, K) / K.shape[-1])


@wrong("scales after the softmax", r"after|before|sum to (1|one)|order")
def attention_weights(Q, K):
    return softmax(attention_scores(Q, K)) / np.sqrt(K.shape[-1])


@wrong("softmax over queries", r"axis|queries|column|keys")
def attention_weights(Q, K):
    return softmax(attention_scores(Q, K) / np.sqrt(Q.shape[-1]), axis=-2)


@wrong("stops at the scores", r"softmax|scores|exp|sum to (1|one)")
def attention_weights(Q, K):
    return attention_scores(Q, K) / np.sqrt(Q.shape[-1])


@right("torch")
def attention_weights(Q, K):
    Q, K = torch.as_tensor(Q), torch.as_tensor(K)
    S = torch.matmul(Q, K.transpose(-2, -1)).div(K.size(-1) ** 0.5)
    return F.softmax(S, dim=-1)


@right("einsum, scaled queries")
def attention_weights(Q, K):
    S = np.einsum("...qd,...kd->...qk", Q * Q.shape[-1] ** -0.5, K)
    S = S - S.max(-1, keepdims=True)
    E = np.exp(S)
    return E / np.einsum("...k->...", E)[..., None]


# ------- attention
@wrong("returns the weights too", r"tuple|pair|two|weights|only the output|return")
def attention(Q, K, V):
    weights = attention_weights(Q, K)
    return weights @ V, weights


@wrong("mixes keys", r"keys|K\b|values|V\b")
def attention(Q, K, V):
    return attention_weights(Q, K) @ K


@wrong("scale from the values' width", r"d_k|width|d_v|V\.shape|values")
def attention(Q, K, V):
    S = Q @ np.swapaxes(K, -1, -2) / np.sqrt(V.shape[-1])
    return softmax(S) @ V


@wrong("no scale", r"scal|√|sqrt|divi")
def attention(Q, K, V):
    return softmax(Q @ np.swapaxes(K, -1, -2)) @ V


@wrong("scores, not weights", r"softmax|scores")
def attention(Q, K, V):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    return scores @ V


@right("query by query")
def attention(Q, K, V):
    if Q.ndim > 2:
        return np.stack([attention(q, k, v) for q, k, v in zip(Q, K, V)])
    rows = []
    for q in Q:
        s = np.array([np.dot(q, k) for k in K]) / math.sqrt(len(q))
        e = np.exp(s - s.max())
        rows.append(sum(w * v for w, v in zip(e / e.sum(), V)))
    return np.array(rows)


@right("torch's own function")
def attention(Q, K, V):
    Q, K, V = (torch.as_tensor(z) for z in (Q, K, V))
    return F.scaled_dot_product_attention(Q, K, V)


# ------- causal_mask
@wrong("upper triangle, diagonal included", r"upper|triu|future|later")
def causal_mask(T):
    return np.triu(np.ones((T, T), dtype=bool))


@wrong("PyTorch's forbidden convention", r"invert|opposite|forbid|allowed|True")
def causal_mask(T):
    return np.triu(np.ones((T, T)), k=1).astype(bool)


@wrong("own position left out", r"itself|own|diagonal|k=-1|i\b")
def causal_mask(T):
    return np.tril(np.ones((T, T), dtype=bool), k=-1)


@wrong("additive mask of -inf", r"bool|-inf|−inf|-∞|−∞|number")
def causal_mask(T):
    mask = np.zeros((T, T))
    mask[np.triu_indices(T, 1)] = -np.inf
    return mask


@wrong("ones and zeros", r"bool|True|float|dtype|number")
def causal_mask(T):
    return np.tril(np.ones((T, T)))


@right("list of lists")
def causal_mask(T):
    return np.array([[j <= i for j in range(T)] for i in range(T)], dtype=bool).reshape(T, T)


@right("np.tri")
def causal_mask(T):
    return np.tri(T, dtype=bool)


# ------- masked_softmax
@wrong("1e-9 for -1e9", r"-inf|−inf|-∞|−∞|-1e9|−10⁹|minus|negativ|zero|0")
def masked_softmax(S, mask):
    return softmax(np.where(mask, S, 1e-9))


@wrong("zeroes the weights after the softmax", r"after|renormal|sum to (1|one)|before")
def masked_softmax(S, mask):
    return softmax(S) * mask


@wrong("convention the other way round", r"invert|opposite|True|swap|wrong way|the other way")
def masked_softmax(S, mask):
    return softmax(np.where(mask, -np.inf, S))


@wrong("multiplies the scores by the mask", r"multipl|score of 0|zero|exp|0")
def masked_softmax(S, mask):
    return softmax(S * mask)


@wrong("writes into S", r"in place|copy|input|chang|S itself|overwr")
def masked_softmax(S, mask):
    S[~np.broadcast_to(mask, S.shape)] = -np.inf
    return softmax(S)


@right("additive mask of -1e9")
def masked_softmax(S, mask):
    S = np.asarray(S, dtype=float) + (1.0 - np.asarray(mask, dtype=float)) * -1e9
    e = np.exp(S - S.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@right("torch masked_fill")
def masked_softmax(S, mask):
    S, mask = torch.as_tensor(S), torch.as_tensor(mask)
    return S.masked_fill(mask.logical_not(), float("-inf")).softmax(dim=-1)


# ------- safe_masked_softmax
@wrong("an empty row gives NaN", r"nan|empty|no allowed|0 ?/ ?0|without")
def safe_masked_softmax(S, mask):
    S = np.where(mask, S, -np.inf)
    e = np.exp(S - S.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("an empty row is uniform", r"uniform|even|equal|empty|-1e9|same")
def safe_masked_softmax(S, mask):
    S = np.where(mask, S, -1e9)
    e = np.exp(S - S.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("softmax, then mask", r"after|renormal|sum to (1|one)|before")
def safe_masked_softmax(S, mask):
    e = np.exp(S - S.max(axis=-1, keepdims=True))
    return np.where(mask, e / e.sum(axis=-1, keepdims=True), 0)


@wrong("1 added to the sum", r"\+ ?1|add|denominator|sum|divid")
def safe_masked_softmax(S, mask):
    m = np.where(mask, S, -1e30).max(axis=-1, keepdims=True)
    e = np.where(mask, np.exp(np.minimum(S - m, 0)), 0)
    return e / (1 + e.sum(axis=-1, keepdims=True))


@wrong("one empty row empties all", r"row|every|all|whole")
def safe_masked_softmax(S, mask):
    mask = np.broadcast_to(mask, S.shape)
    if not mask.any(axis=-1).all():
        return np.zeros_like(S)
    return softmax(np.where(mask, S, -np.inf))


@right("nan_to_num")
def safe_masked_softmax(S, mask):
    with np.errstate(invalid="ignore"):
        S = np.where(mask, S, -np.inf)
        e = np.exp(S - S.max(axis=-1, keepdims=True))
        return np.nan_to_num(e / e.sum(axis=-1, keepdims=True))


@right("row by row")
def safe_masked_softmax(S, mask):
    mask = np.broadcast_to(mask, S.shape)
    out = np.zeros(S.shape)
    for row in np.ndindex(S.shape[:-1]):
        allowed = mask[row]
        if allowed.any():
            e = np.exp(S[row][allowed] - S[row][allowed].max())
            out[row][allowed] = e / e.sum()
    return out


# ------- padding_mask
@wrong("True at padding", r"invert|opposite|True|!=|==")
def padding_mask(ids, pad_id):
    return (ids == pad_id)[:, None, :]


@wrong("no axis for the queries", r"axis|\(B, 1, T\)|shape|None")
def padding_mask(ids, pad_id):
    return ids != pad_id


@wrong("masks queries", r"quer|key|axis|\[:, None|last")
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, :, None]


@wrong("pad is 0", r"pad_id|0")
def padding_mask(ids, pad_id):
    return (ids != 0)[:, None, :]


@wrong("Hugging Face's 1s and 0s", r"bool|True|int|number|float")
def padding_mask(ids, pad_id):
    return np.where(ids == pad_id, 0, 1)[:, np.newaxis, :]


@right("np.not_equal, expand_dims")
def padding_mask(ids, pad_id):
    return np.expand_dims(np.not_equal(ids, pad_id), 1)


@right("list of lists")
def padding_mask(ids, pad_id):
    return np.array([[[bool(i != pad_id) for i in row]] for row in ids])


# ------- padded_weights
@wrong("no axis for the queries", r"axis|None|broadcast|\(B, 1, T|sentence")
def padded_weights(S, is_real):
    return softmax(np.where(is_real, S, -np.inf))


@wrong("zeroes the columns afterwards", r"after|renormal|sum to (1|one)|before")
def padded_weights(S, is_real):
    return softmax(S) * is_real[:, None, :]


@wrong("mask ignored", r"ignor|is_real|not used|mask")
def padded_weights(S, is_real):
    return softmax(S)


@wrong("cuts as many keys as are real from the left", r"left|right|end|first|place|count|number of")
def padded_weights(S, is_real):
    lengths = is_real.sum(axis=1)
    seen = np.arange(S.shape[-1]) < lengths[:, None]
    return softmax(np.where(seen[:, None, :], S, -np.inf))


@wrong("scores of padding set to 0", r"0|zero & (-inf|−inf|-∞|−∞|exp|minus)")
def padded_weights(S, is_real):
    return softmax(np.where(is_real[:, None, :], S, 0))


@right("sentence by sentence")
def padded_weights(S, is_real):
    out = np.zeros_like(S)
    for b in range(len(S)):
        out[b][:, is_real[b]] = softmax(S[b][:, is_real[b]])
    return out


@right("exp times mask, divided by its sum, in float64")
def padded_weights(S, is_real):
    keep = is_real[:, None, :]
    S = S.astype(np.float64)
    top = np.max(S, axis=-1, keepdims=True, where=keep, initial=-np.inf)
    e = np.exp(np.minimum(S - top, 0)) * keep
    return e / e.sum(-1, keepdims=True)


# ------- dropout
@wrong("what is kept isn't scaled", r"scal|1 ?[-−] ?p|divi")
def dropout(x, p, training, rng):
    if not training:
        return x
    mask = rng.random(x.shape) >= p
    return x * mask


@wrong("keeps with probability p", r"keep|kept|drop & (p\b|probab)")
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    mask = rng.random(x.shape) < p
    return x * mask / (1 - p)


@wrong(
    "the first paper's: scales at test time",
    r"not training|training=False|test|evaluat|inference|training is False",
)
def dropout(x, p, training, rng):
    if not training:
        return x * (1 - p)
    return x * (rng.random(x.shape) >= p)


@wrong("divides by p", r"1 ?[-−] ?p|/ ?p|by p")
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    mask = rng.random(x.shape) > p
    return x * mask / p


@wrong("global generator", r"rng|generator|np\.random|global|seed")
def dropout(x, p, training, rng):
    if not training or p == 0:
        return x
    mask = np.random.rand(*x.shape) >= p
    return x * mask / (1 - p)


@right("binomial")
def dropout(x, p, training, rng):
    if training and p > 0:
        return x * rng.binomial(1, 1 - p, size=x.shape) / (1 - p)
    return x


@right("uniform, np.where")
def dropout(x, p, training, rng):
    if training is False:
        return x
    return np.where(rng.uniform(size=x.shape) < p, 0.0, x / (1.0 - p))
