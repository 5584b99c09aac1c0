"""Answers of learners to notebooks 01 to 05, written without looking at the checks."""

# ruff: noqa: B905, E501, F811, F821, RUF005

from learners import right, wrong

# ------------------------------------------------------------------------------- build_vocab


@wrong("ids begin at 1", r"start|from 0|from 1|zero|begin|\b0\b")
def build_vocab(sentences):
    vocab = {}
    i = 1
    for s in sentences:
        for w in s.split():
            if w not in vocab:
                vocab[w] = i
                i += 1
    return vocab


@wrong("a set in whatever order", r"\bset\b|order|first appear|sorted")
def build_vocab(sentences):
    words = set()
    for sentence in sentences:
        words |= set(sentence.split())
    return {word: i for i, word in enumerate(words)}


@wrong("characters in place of words", r"character|letter|split")
def build_vocab(sentences):
    chars = []
    for sentence in sentences:
        for c in sentence:
            if c not in chars and c != " ":
                chars.append(c)
    return {c: i for i, c in enumerate(chars)}


@wrong("most frequent token first, as Keras' Tokenizer", r"frequen|common|count|often")
def build_vocab(sentences):
    counts = Counter(w for s in sentences for w in s.split())
    return {w: i for i, (w, _) in enumerate(counts.most_common())}


@wrong(
    "a word that comes again takes a new number",
    r"already|repeat|again|twice|overwrit|duplicat|new id|second|last (place|position|appear|occur)",
)
def build_vocab(sentences):
    words = " ".join(sentences).split()
    return dict(zip(words, range(len(words))))


@wrong("ids to tokens", r"invert|swap|revers|other way|id(s)? (→|->|to|as) |keys?\b.*values?")
def build_vocab(sentences):
    vocab = []
    for s in sentences:
        for w in s.split():
            if w not in vocab:
                vocab.append(w)
    return dict(enumerate(vocab))


@wrong("lower-cased", r"lower|upper|capital|case")
def build_vocab(sentences):
    vocab = {}
    for sentence in sentences:
        for token in sentence.lower().split():
            vocab.setdefault(token, len(vocab))
    return vocab


@wrong("punctuation taken off", r"punctuation|strip|comma|full stop")
def build_vocab(sentences):
    import re

    vocab = {}
    for sentence in sentences:
        for token in re.findall(r"\w+", sentence):
            if token not in vocab:
                vocab[token] = len(vocab)
    return vocab


@wrong('split(" ")', r"white ?space|split\(|empty (token|string|word)|spaces|tab")
def build_vocab(sentences):
    vocab = {}
    for sentence in sentences:
        for token in sentence.split(" "):
            if token not in vocab:
                vocab[token] = len(vocab)
    return vocab


@wrong("numbers each sentence from 0", r"(each|every|new|per) sentence|restart|start(s|ed)? again")
def build_vocab(sentences):
    vocab = {}
    for s in sentences:
        for i, w in enumerate(s.split()):
            if w not in vocab:
                vocab[w] = i
    return vocab


@wrong("the dictionary is made inside the loop", r"last sentence|inside|loop|each sentence|only")
def build_vocab(sentences):
    for sentence in sentences:
        vocab = {}
        for token in sentence.split():
            if token not in vocab:
                vocab[token] = len(vocab)
    return vocab


@wrong("a <pad> in front", r"pad|unk|special|extra|reserve|never|does not (occur|appear)")
def build_vocab(sentences):
    vocab = {"<pad>": 0}
    for sentence in sentences:
        for token in sentence.split():
            if token not in vocab:
                vocab[token] = len(vocab)
    return vocab


@wrong("how often each word comes", r"count|frequen|often|how many")
def build_vocab(sentences):
    vocab = {}
    for sentence in sentences:
        for word in sentence.split():
            vocab[word] = vocab.get(word, -1) + 1
    return vocab


@right("defaultdict that counts itself")
def build_vocab(sentences):
    from collections import defaultdict

    vocab = defaultdict()
    vocab.default_factory = vocab.__len__
    for s in sentences:
        for w in s.split():
            vocab[w]
    return vocab


@right("np.unique, sorted, ids as int64")
def build_vocab(sentences):
    tokens = np.unique(np.array(" ".join(sentences).split()))
    return dict(zip(tokens.tolist(), np.arange(len(tokens))))


@right("dict.fromkeys keeps the order")
def build_vocab(sentences):
    unique = list(dict.fromkeys(w for s in sentences for w in s.strip().split()))
    return {w: unique.index(w) for w in unique}


# ------------------------------------------------------------------------------- one_hot


@wrong(
    "ids read as beginning at 1",
    r"shift|off by one|from 0|from 1|- ?1|−1|one.*(left|before)|before",
)
def one_hot(ids, vocab_size):
    out = np.zeros((*ids.shape, vocab_size))
    for idx in np.ndindex(ids.shape):
        out[idx][ids[idx] - 1] = 1.0
    return out


@wrong("a column too many", r"vocab_size|width|column|one more|too (many|wide)|\+ ?1")
def one_hot(ids, vocab_size):
    return np.eye(vocab_size + 1)[ids][..., :]


@wrong(
    "one row of counts for the sentence",
    r"one vector|single (row|vector)|bag|count|each token|per token|(each|own) row|\bsum",
)
def one_hot(ids, vocab_size):
    v = np.zeros(ids.shape[:-1] + (vocab_size,), dtype=np.float32)
    np.put_along_axis(v, ids, 1, axis=-1)
    return v


@wrong("works for one sentence only", r"batch|lead|shape|dimension|axes|one sentence|flat")
def one_hot(ids, vocab_size):
    encoded = np.zeros((len(ids), vocab_size))
    encoded[np.arange(len(ids)), ids] = 1
    return encoded


@wrong("tokens and words exchanged", r"transpos|swap|exchang|axis|axes|order of")
def one_hot(ids, vocab_size):
    return (np.arange(vocab_size)[:, None] == ids[..., None, :]).astype(np.float32)


@wrong("vocab_size never used", r"vocab_size|largest|max|ignor|highest|biggest")
def one_hot(ids, vocab_size):
    ids = np.asarray(ids)
    return np.eye(ids.max() + 1, dtype=np.float32)[ids]


@wrong(
    "every row gets the ones of all tokens",
    r"(every|all|each) row|one 1|single 1|more than one|all (the )?(ids|tokens)|several",
)
def one_hot(ids, vocab_size):
    result = np.zeros(ids.shape + (vocab_size,))
    for i in ids.reshape(-1):
        result[..., i] = 1
    return result


@wrong("writes the id and not 1", r"\bid\b|value|instead of (a |the )?1|number|not 1")
def one_hot(ids, vocab_size):
    ids = np.asarray(ids)
    return np.where(ids[..., None] == np.arange(vocab_size), ids[..., None], 0).astype(np.float32)


@wrong(
    "only the ids that occur get a column",
    r"rank|distinct|unique|occur|present|renumber|sorted|column",
)
def one_hot(ids, vocab_size):
    # like pandas.get_dummies, filled up to the width
    _, codes = np.unique(ids, return_inverse=True)
    codes = codes.reshape(np.shape(ids))
    return np.eye(vocab_size)[codes]


@wrong("batch flattened", r"batch|flat|lead|reshape|shape|dimension")
def one_hot(ids, vocab_size):
    return torch.eye(vocab_size)[ids.reshape(-1)]


@wrong("row of zeros for id 0, as padding", r"\b0\b|zero|padding|first (id|word|token)")
def one_hot(ids, vocab_size):
    out = np.eye(vocab_size)[ids]
    out[ids == 0] = 0
    return out


@right("comparison with arange, in float64")
def one_hot(ids, vocab_size):
    return (ids[..., np.newaxis] == np.arange(vocab_size)).astype(float)


@right("torch scatter")
def one_hot(ids, vocab_size):
    out = torch.zeros(*ids.shape, vocab_size)
    return out.scatter_(-1, ids.unsqueeze(-1), 1.0)


@right("nested lists, recursively")
def one_hot(ids, vocab_size):
    def walk(node):
        if isinstance(node, list):
            return [walk(child) for child in node]
        return [1.0 if v == node else 0.0 for v in range(vocab_size)]

    return np.array(walk(ids.tolist()))


@right("F.one_hot")
def one_hot(ids, vocab_size):
    return F.one_hot(ids.long(), num_classes=vocab_size).to(torch.float32)


# ------------------------------------------------------------------------------- embed


@wrong("table transposed", r"transpos|\.T\b")
def embed(onehot, table):
    return onehot @ table.T


@wrong("table on the left", r"order|left|swap|onehot @ table|other way")
def embed(onehot, table):
    return table @ onehot


@wrong("mean over the vocabulary", r"mean|average|divi|vocab")
def embed(onehot, table):
    # pick by multiplying, then pool
    return (onehot[..., :, None] * table).mean(axis=-2)


@wrong("argmax over the tokens", r"axis|last|tokens")
def embed(onehot, table):
    ids = onehot.argmax(axis=-2)
    return table[ids]


@wrong("times √D, as in the paper's section 3.4", r"√|sqrt|scal|root")
def embed(onehot, table):
    d_model = table.shape[-1]
    return (onehot @ table) * np.sqrt(d_model)


@wrong("the row before", r"off by|next|shift|neighbou?r|\+ ?1|[-−] ?1|one row|before|previous")
def embed(onehot, table):
    ids = np.argmax(onehot, axis=-1)
    return table[ids - 1]


@wrong("batch and tokens flattened", r"batch|flat|reshape|shape|lead")
def embed(onehot, table):
    V = onehot.shape[-1]
    return np.dot(onehot.reshape(-1, V), table)


@wrong("the sum over the sentence", r"\bsum|add|bag|pool|each token|per token|tokens")
def embed(onehot, table):
    return np.einsum("...tv,vd->...d", onehot, table)


@wrong("rows brought to length 1", r"length|norm|unit")
def embed(onehot, table):
    vecs = onehot @ table
    return vecs / np.linalg.norm(vecs, axis=-1, keepdims=True)


@wrong(
    "one argmax over everything",
    r"axis|whole|first|single|flat|(each|every) token|one (row|vector)",
)
def embed(onehot, table):
    return table[np.argmax(onehot)]


@wrong("fills an int array", r"\bint|whole|trunc|round|decimal|dtype|fraction|cut")
def embed(onehot, table):
    out = np.zeros((*onehot.shape[:-1], table.shape[1]), dtype=int)
    for pos in np.ndindex(onehot.shape[:-1]):
        out[pos] = table[onehot[pos].argmax()]
    return out


@wrong("id 0 taken for padding", r"padding|id 0|first (row|word|token|id)|token 0|row 0|zero")
def embed(onehot, table):
    ids = onehot.argmax(-1)
    vectors = F.embedding(ids, table)
    return vectors * (ids != 0).unsqueeze(-1)


@right("ids by nonzero, then look up")
def embed(onehot, table):
    ids = np.nonzero(onehot)[-1].reshape(onehot.shape[:-1])
    return np.take(table, ids, axis=0)


@right("nn.Embedding from the table")
def embed(onehot, table):
    layer = nn.Embedding.from_pretrained(table, freeze=True, padding_idx=0)
    return layer(onehot.argmax(dim=-1))


@right("sum of rows, three loops")
def embed(onehot, table):
    V, D = table.shape
    flat = onehot.reshape(-1, V)
    out = np.zeros((len(flat), D))
    for n in range(len(flat)):
        for v in range(V):
            for d in range(D):
                out[n, d] += flat[n, v] * table[v, d]
    return out.reshape(*onehot.shape[:-1], D)


# ------------------------------------------------------------------------------- project_qkv


@wrong("returns K, Q, V", r"order|swap|exchang|Q, K, V")
def project_qkv(X, W_q, W_k, W_v):
    keys = X @ W_k
    queries = X @ W_q
    values = X @ W_v
    return keys, queries, values


@wrong("values from W_k", r"W_v|W_k")
def project_qkv(X, W_q, W_k, W_v):
    Q = np.matmul(X, W_q)
    K = np.matmul(X, W_k)
    V = np.matmul(X, W_k)
    return Q, K, V


@wrong("weights stored as in nn.Linear", r"transpos|\.T\b|Linear")
def project_qkv(X, W_q, W_k, W_v):
    return F.linear(X, W_q), F.linear(X, W_k), F.linear(X, W_v)


@wrong("each from the one before", r"chain|from X|X @|instead of X|from Q|of Q|already|projected")
def project_qkv(X, W_q, W_k, W_v):
    X = X @ W_q
    Q = X
    X = X @ W_k
    K = X
    X = X @ W_v
    return Q, K, X


@wrong("weights on the left", r"left|order|X @ W|swap")
def project_qkv(X, W_q, W_k, W_v):
    return np.matmul(W_q, X), np.matmul(W_k, X), np.matmul(W_v, X)


@wrong("three equal parts of one product", r"d_v|width|equal|third|split|size")
def project_qkv(X, W_q, W_k, W_v):
    W = np.concatenate([W_q, W_k, W_v], axis=1)
    third = W.shape[1] // 3
    out = X @ W
    return out[..., :third], out[..., third : 2 * third], out[..., 2 * third :]


@wrong("queries already divided by √d_k", r"scal|√|sqrt|divi")
def project_qkv(X, W_q, W_k, W_v):
    d_k = W_q.shape[-1]
    return (X @ W_q) * d_k**-0.5, X @ W_k, X @ W_v


@wrong("ReLU after each projection", r"relu|negative|activation|non-?linear|max\(0|linear")
def project_qkv(X, W_q, W_k, W_v):
    return tuple(F.relu(X @ W) for W in (W_q, W_k, W_v))


@wrong("keys come back transposed", r"transpos|swap|rows|axes|\.T\b")
def project_qkv(X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    return Q, np.swapaxes(K, -1, -2), V


@wrong("values are the inputs themselves", r"W_v|X itself|V = X|unproject|not project|without")
def project_qkv(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, X


@wrong(
    "returns one array of everything", r"three|tuple|concat|separat|split|side by side|one array"
)
def project_qkv(X, W_q, W_k, W_v):
    return np.concatenate([X @ W_q, X @ W_k, X @ W_v], axis=-1)


@wrong("mean of each feature taken off X in place", r"in place|-=|chang|mean|overwrit|cent")
def project_qkv(X, W_q, W_k, W_v):
    X -= X.mean(axis=-1, keepdims=True)
    return X @ W_q, X @ W_k, X @ W_v


@wrong("values projected from the keys' input, then W_q again", r"W_q|W_k|same|keys")
def project_qkv(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_q, X @ W_v


@right("one product, split at the true widths, as a list")
def project_qkv(X, W_q, W_k, W_v):
    W = np.hstack((W_q, W_k, W_v))
    cuts = np.cumsum([W_q.shape[1], W_k.shape[1]])
    return np.split(X @ W, cuts, axis=-1)


@right("nn.functional.linear with transposed weights")
def project_qkv(X, W_q, W_k, W_v):
    return [F.linear(X, W.t()) for W in (W_q, W_k, W_v)]


@right("loops over tokens")
def project_qkv(X, W_q, W_k, W_v):
    def project(W):
        rows = [
            [float(np.dot(x, W[:, j])) for j in range(W.shape[1])]
            for x in X.reshape(-1, X.shape[-1])
        ]
        return np.array(rows).reshape(X.shape[:-1] + (W.shape[1],))

    return project(W_q), project(W_k), project(W_v)


# ------------------------------------------------------------------------------- attention_scores


@wrong("no transpose", r"transpos")
def attention_scores(Q, K):
    return np.matmul(Q, K)


@wrong("K.T turns the batch over too", r"batch|last two|swapaxes|all (the )?axes|\.T\b")
def attention_scores(Q, K):
    return np.matmul(Q, K.T)


@wrong("keys by queries", r"transpos|swap|K @ Q|exchang|rows|other way")
def attention_scores(Q, K):
    return K @ np.swapaxes(Q, -2, -1)


@wrong("cosine similarity", r"cosine|length|norm")
def attention_scores(Q, K):
    Qn = Q / np.linalg.norm(Q, axis=-1, keepdims=True)
    Kn = K / np.linalg.norm(K, axis=-1, keepdims=True)
    return Qn @ np.swapaxes(Kn, -1, -2)


@wrong("scaled already", r"√|scal|sqrt|divi|root")
def attention_scores(Q, K):
    return torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))


@wrong("softmaxed already", r"softmax|weights|probabilit")
def attention_scores(Q, K):
    return torch.softmax(Q @ K.transpose(-2, -1), dim=-1)


@wrong(
    "token by token, no pairs", r"element|pair|diagonal|same position|every|each (query|key)|only"
)
def attention_scores(Q, K):
    return (Q * K).sum(axis=-1)


@wrong("as many keys as queries", r"Tk|number of keys|more keys|Tq|as many|square|all (the )?keys")
def attention_scores(Q, K):
    T = Q.shape[-2]
    S = np.zeros((*Q.shape[:-2], T, T))
    for i in range(T):
        for j in range(min(T, K.shape[-2])):
            S[..., i, j] = (Q[..., i, :] * K[..., j, :]).sum(-1)
    return S


@wrong("mean of the products", r"mean|average|divi|\bd\b|\bsum")
def attention_scores(Q, K):
    return (Q[..., :, None, :] * K[..., None, :, :]).mean(-1)


@wrong("tensordot pairs every sentence with every sentence", r"batch|tensordot|sentence|lead")
def attention_scores(Q, K):
    return np.tensordot(Q, K, axes=(-1, -1))


@wrong("reshape for transpose", r"reshape")
def attention_scores(Q, K):
    d, Tk = K.shape[-1], K.shape[-2]
    return Q @ K.reshape(*K.shape[:-2], d, Tk)


@wrong("earlier keys only", r"causal|mask|future|later|triang|after")
def attention_scores(Q, K):
    Tq, Tk = Q.shape[-2], K.shape[-2]
    S = np.zeros(Q.shape[:-2] + (Tq, Tk), dtype=Q.dtype)
    for i in range(Tq):
        for j in range(Tk):
            if j <= i:
                S[..., i, j] = np.einsum("...d,...d->...", Q[..., i, :], K[..., j, :])
    return S


@wrong("negative distance", r"distance|differ|subtract|−|minus")
def attention_scores(Q, K):
    return -torch.cdist(Q, K)


@wrong(
    "the batch's axis is hard-wired",
    r"einsum|batch|lead|dimension|\.\.\.|…|axes|one sentence|2-D|two axes",
)
def attention_scores(Q, K):
    return np.einsum("bqd,bkd->bqk", Q, K)


@right("einsum")
def attention_scores(Q, K):
    return np.einsum("...id,...jd->...ij", Q, K)


@right("all pairs multiplied and added up, in float64")
def attention_scores(Q, K):
    pairs = Q[..., :, None, :].astype(np.float64) * K[..., None, :, :]
    return np.add.reduce(pairs, axis=-1)


@right("torch, by flattening the batch into bmm")
def attention_scores(Q, K):
    Tq, Tk, d = Q.shape[-2], K.shape[-2], Q.shape[-1]
    S = torch.bmm(Q.reshape(-1, Tq, d), K.reshape(-1, Tk, d).permute(0, 2, 1))
    return S.view(*Q.shape[:-2], Tq, Tk)


@right("dot product in a list comprehension")
def attention_scores(Q, K):
    if Q.ndim > 2:
        return np.stack([attention_scores(q, k) for q, k in zip(Q, K)])
    return np.array([[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q])


# ------------------------------------------------------------------------------- scale_scores


@wrong("divides by d_k", r"√|root|sqrt")
def scale_scores(S, d_k):
    return S / d_k


@wrong("multiplies by the root", r"multipl|divi")
def scale_scores(S, d_k):
    return S * math.sqrt(d_k)


@wrong("root of the number of keys", r"keys|shape|width|columns|Tk|last axis")
def scale_scores(S, d_k):
    return S / np.sqrt(S.shape[-1])


@wrong("whole-number division", r"//|floor|whole|integer|round|fraction")
def scale_scores(S, d_k):
    return S // np.sqrt(d_k)


@wrong("isqrt", r"\bint|isqrt|round|whole|trunc|floor|exact")
def scale_scores(S, d_k):
    return S / math.isqrt(d_k)


@wrong("in place", r"in place|/=|chang|overwrit|copy")
def scale_scores(S, d_k):
    S /= np.sqrt(d_k)
    return S


@wrong(
    "d_k**1/2 without brackets",
    r"preceden|bracket|parenthes|\*\* ?1|1 ?/ ?2|0\.5|half|/ ?2|by 2|2 ?d_k|2 ?·",
)
def scale_scores(S, d_k):
    return S / d_k**1 / 2


@wrong("always 8, the paper's √64", r"\b8\b|64|constant|fixed|paper|ignor")
def scale_scores(S, d_k):
    return S / 8.0


@wrong("root of the quotient", r"(root|√|sqrt).*(d_k|only|whole|score)|NaN")
def scale_scores(S, d_k):
    return np.sqrt(S / d_k)


@wrong("divides by the scores' standard deviation", r"std|standard deviation|deviation|spread|data")
def scale_scores(S, d_k):
    return S / S.std()


@wrong("softmax on top", r"softmax|weights|probabilit")
def scale_scores(S, d_k):
    return torch.softmax(S / d_k**0.5, dim=-1)


@wrong("root of d_k + 1", r"\+ ?1|\badd|plus|one (too|more)|small")
def scale_scores(S, d_k):
    return S / np.sqrt(d_k + 1)


@right("times d_k to the power −1/2")
def scale_scores(S, d_k):
    return np.multiply(S, np.power(float(d_k), -0.5))


@right("torch.rsqrt")
def scale_scores(S, d_k):
    return S * torch.rsqrt(torch.tensor(float(d_k)))


@right("twice by the fourth root, element by element")
def scale_scores(S, d_k):
    out = np.empty(np.shape(S), dtype=float)
    for i in np.ndindex(out.shape):
        out[i] = S[i] / d_k**0.25 / d_k**0.25
    return out


# ------------------------------------------------------------------------------- softmax


@wrong("no maximum taken off", r"overflow|max|NaN|\binf|∞|stab|large")
def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@wrong("axis ignored", r"axis")
def softmax(x, axis=-1):
    shifted = x - np.max(x, axis=-1, keepdims=True)
    exps = np.exp(shifted)
    return exps / np.sum(exps, axis=-1, keepdims=True)


@wrong(
    "one sum over everything", r"axis|whole|(all|every).*(entr|number|row|element)|one sum|total"
)
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@wrong(
    "one maximum for all rows",
    r"(own|each|every|per) (row|line|slice)|max.*(axis|row|slice)|underflow|whole|global",
)
def softmax(x, axis=-1):
    e = np.exp(x - x.max())
    return e / e.sum(axis, keepdims=True)


@wrong("keepdims missing in the sum", r"keepdims|broadcast|dimension")
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis)


@wrong("divides by the maximum", r"subtract|divid|minus")
def softmax(x, axis=-1):
    e = np.exp(x / np.abs(x).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@wrong("no exponential", r"\bexp")
def softmax(x, axis=-1):
    x = np.asarray(x, dtype=float)
    x = x - x.min(axis=axis, keepdims=True) + 1e-9
    return x / x.sum(axis=axis, keepdims=True)


@wrong("log-softmax", r"\blog")
def softmax(x, axis=-1):
    return F.log_softmax(x.double(), dim=axis)


@wrong("sigmoid of each", r"sigmoid|1 ?/ ?\(1|sum to 1|own|alone|independent")
def softmax(x, axis=-1):
    return torch.sigmoid(x.float())


@wrong("powers of 2", r"\be\b|base|2 ?\*\*|exp|2\^|2ˣ|powers? of 2")
def softmax(x, axis=-1):
    p = 2.0 ** (x - x.max(axis=axis, keepdims=True))
    return p / p.sum(axis=axis, keepdims=True)


@wrong("in place", r"in place|-=|chang|overwrit|copy")
def softmax(x, axis=-1):
    x -= x.max(axis=axis, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@wrong(
    "result in an array like x, whole numbers for whole numbers",
    r"\bint|zeros_like|dtype|whole|trunc|float",
)
def softmax(x, axis=-1):
    moved = np.moveaxis(x, axis, -1)
    out = np.zeros_like(moved)
    for i in np.ndindex(moved.shape[:-1]):
        row = moved[i]
        e = np.exp(row - row.max())
        out[i] = e / e.sum()
    return np.moveaxis(out, -1, axis)


@wrong("clipped to ±50 for safety", r"clip|cut|limit|large|bound|distinguish|cap")
def softmax(x, axis=-1):
    e = np.exp(np.clip(x, -50, 50))
    return e / e.sum(axis=axis, keepdims=True)


@wrong("mean taken off rather than the maximum", r"mean|average|max|overflow")
def softmax(x, axis=-1):
    e = np.exp(x - x.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@wrong("minus sign, as an energy", r"minus|sign|negativ|[-−]x|smallest|revers")
def softmax(x, axis=-1):
    e = np.exp(x.min(axis=axis, keepdims=True) - x)
    return e / e.sum(axis=axis, keepdims=True)


@wrong("rounded for display", r"round|decimal|digits|places|precision")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.round(e / e.sum(axis=axis, keepdims=True), 2)


@wrong("a small constant in the exponentials' sum", r"1e-|eps|constant|\badd|less than 1|small")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-3)


@wrong("divides by the root of the sum of squares", r"square|norm|length|\bsum")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / np.linalg.norm(e, axis=axis, keepdims=True)


@right("exp of the log-probability")
def softmax(x, axis=-1):
    return np.exp(x - np.logaddexp.reduce(x.astype(float), axis=axis, keepdims=True))


@right("torch, in double")
def softmax(x, axis=-1):
    return nn.Softmax(dim=axis)(x.double())


@right("one line at a time")
def softmax(x, axis=-1):
    def line(v):
        v = [math.exp(float(t) - max(map(float, v))) for t in v]
        return np.array([t / math.fsum(v) for t in v])

    return np.apply_along_axis(line, axis, np.asarray(x, dtype=float))


@right("1 over the sum of exponentials of differences")
def softmax(x, axis=-1):
    x = np.moveaxis(np.asarray(x, dtype=np.float64), axis, -1)
    differences = x[..., None, :] - x[..., :, None]
    with np.errstate(over="ignore"):
        out = 1 / np.exp(differences).sum(-1)
    return np.moveaxis(out, -1, axis)


# ------------------------------------------------------------------------------- attention_weights


@wrong("forgets the division by √d_k", r"scal|√d_k|sqrt|divi")
def attention_weights(Q, K):
    return softmax(attention_scores(Q, K))


@wrong("each key's column sums to 1", r"axis|quer(y|ies)|column|keys")
def attention_weights(Q, K):
    S = attention_scores(Q, K) / np.sqrt(K.shape[-1])
    return softmax(S, axis=-2)


@wrong("divides by d_k", r"√|sqrt|root")
def attention_weights(Q, K):
    d_k = Q.shape[-1]
    return softmax(Q @ np.swapaxes(K, -1, -2) / d_k)


@wrong("scales after softmax", r"after|before|order")
def attention_weights(Q, K):
    d_k = Q.shape[-1]
    return softmax(attention_scores(Q, K)) / np.sqrt(d_k)


@wrong("root of the number of keys", r"number of (the )?keys|shape|width|Tk|how many keys|tokens")
def attention_weights(Q, K):
    n = K.shape[-2]
    return torch.softmax(Q @ K.transpose(-2, -1) / n**0.5, dim=-1)


@wrong("len(Q) for d_k", r"shape|\blen|width|number of (the )?(quer|tok|sent)|batch|Tq|first axis")
def attention_weights(Q, K):
    return softmax(attention_scores(Q, K) / np.sqrt(len(Q)))


@wrong("keys by queries", r"transpos|swap|K @ Q|exchang|rows|other way")
def attention_weights(Q, K):
    return softmax(attention_scores(K, Q) / np.sqrt(K.shape[-1]))


@wrong("dim=1, right for one sentence", r"axis|dim|batch|last|-1")
def attention_weights(Q, K):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(K.shape[-1])
    return F.softmax(scores, dim=1)


@wrong("exponentials that overflow", r"overflow|max|NaN|\binf|∞|stab|large")
def attention_weights(Q, K):
    s = np.einsum("...qd,...kd->...qk", Q, K) / np.sqrt(Q.shape[-1])
    e = np.exp(s)
    return e / e.sum(-1, keepdims=True)


@wrong("causal, as in GPT code", r"causal|mask|future|later")
def attention_weights(Q, K):
    att = (Q @ K.transpose(-2, -1)) * (1.0 / math.sqrt(K.size(-1)))
    T, S = att.shape[-2:]
    att = att.masked_fill(torch.tril(torch.ones(T, S)) == 0, float("-inf"))
    return F.softmax(att, dim=-1)


@wrong("both Q and K divided by √d_k", r"twice|both|once|double|two")
def attention_weights(Q, K):
    scale = K.shape[-1] ** -0.5
    Q = Q * scale
    K = K * scale
    return softmax(Q @ np.swapaxes(K, -1, -2))


@wrong("scores, no softmax", r"softmax")
def attention_weights(Q, K):
    return scale_scores(attention_scores(Q, K), K.shape[-1])


@wrong("softmax twice", r"twice|second|again|two|once")
def attention_weights(Q, K):
    w = softmax(scale_scores(attention_scores(Q, K), K.shape[-1]))
    return softmax(w, axis=-1)


@wrong("Q divided in place", r"in place|/=|chang|overwrit|copy")
def attention_weights(Q, K):
    Q /= np.sqrt(Q.shape[-1])
    return softmax(attention_scores(Q, K))


@wrong("all queries of a sentence share one sum", r"axis|row|whole|\bsum|each query|per query")
def attention_weights(Q, K):
    S = scale_scores(attention_scores(Q, K), K.shape[-1])
    e = np.exp(S - S.max(axis=(-2, -1), keepdims=True))
    return e / e.sum(axis=(-2, -1), keepdims=True)


@wrong(
    "every sentence against the keys of the first",
    r"first (sentence|one|item)|K\[0\]|own (keys|sentence)",
)
def attention_weights(Q, K):
    if Q.ndim == 2:
        return softmax(Q @ K.T / np.sqrt(Q.shape[-1]))
    return np.stack([softmax(q @ K[0].T / np.sqrt(q.shape[-1])) for q in Q])


@wrong("sparse: negative scores set to zero weight", r"negative|relu|below|zero|max\(0")
def attention_weights(Q, K):
    S = scale_scores(attention_scores(Q, K), K.shape[-1])
    return softmax(np.maximum(S, 0))


@right("fourth roots on both sides")
def attention_weights(Q, K):
    r = Q.shape[-1] ** 0.25
    return softmax(np.einsum("...qd,...kd->...qk", Q / r, K / r), axis=-1)


@right("attention over an identity matrix")
def attention_weights(Q, K):
    V = torch.eye(K.shape[-2], dtype=K.dtype).expand(*K.shape[:-1], K.shape[-2])
    return F.scaled_dot_product_attention(Q, K, V)


@right("sentence by sentence, query by query, float64")
def attention_weights(Q, K):
    if Q.ndim > 2:
        return np.array([attention_weights(q, k) for q, k in zip(Q, K)])
    out = np.zeros((len(Q), len(K)))
    for i, q in enumerate(Q):
        s = [float(q @ k) / math.sqrt(len(q)) for k in K]
        top = max(s)
        e = [math.exp(v - top) for v in s]
        out[i] = [v / sum(e) for v in e]
    return out


# ------------------------------------------------------------------------------- attention


@wrong("no softmax", r"softmax")
def attention(Q, K, V):
    return scale_scores(attention_scores(Q, K), K.shape[-1]) @ V


@wrong("no scaling, SDPA with scale=1", r"scal|√|sqrt|divi")
def attention(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V, scale=1.0)


@wrong("queries compared with values", r"(\bV\b|values).*(\bK\b|keys)|(\bK\b|keys).*(\bV\b|values)")
def attention(Q, K, V):
    return attention_weights(Q, V) @ K


@wrong("weights times K", r"(\bV\b|values).*(\bK\b|keys)|(\bK\b|keys).*(\bV\b|values)")
def attention(Q, K, V):
    w = attention_weights(Q, K)
    return w @ K


@wrong(
    "returns output and weights, as TensorFlow's tutorial", r"tuple|two|pair|both|only|one array"
)
def attention(Q, K, V):
    matmul_qk = np.matmul(Q, np.swapaxes(K, -1, -2))
    dk = K.shape[-1]
    attention_weights = softmax(matmul_qk / np.sqrt(dk), axis=-1)
    output = np.matmul(attention_weights, V)
    return output, attention_weights


@wrong("root of the values' width", r"d_v|V\.shape|width")
def attention(Q, K, V):
    d = V.shape[-1]
    return softmax(attention_scores(Q, K) / np.sqrt(d)) @ V


@wrong("softmax over the queries", r"axis|quer(y|ies)|column|dim")
def attention(Q, K, V):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    return scores.softmax(dim=-2) @ V


@wrong("returns the weights", r"\bV\b|values")
def attention(Q, K, V):
    scores = scale_scores(attention_scores(Q, K), K.shape[-1])
    return softmax(scores)


@wrong("divides the output by √d_k", r"after|before|order|softmax|output|result")
def attention(Q, K, V):
    return softmax(attention_scores(Q, K)) @ V / math.sqrt(Q.shape[-1])


@wrong("exponentials never divided by their sum", r"\bsum|normali|divid")
def attention(Q, K, V):
    S = scale_scores(attention_scores(Q, K), K.shape[-1])
    return np.exp(S - S.max(axis=-1, keepdims=True)) @ V


@wrong("the best key's value alone", r"argmax|hard|best|largest|mixture|highest")
def attention(Q, K, V):
    best = attention_scores(Q, K).argmax(axis=-1)
    return np.take_along_axis(V, best[..., None], axis=-2)


@wrong(
    "as many keys as queries in the loop",
    r"Tk|number of keys|more keys|Tq|all (the )?keys|as many|last keys",
)
def attention(Q, K, V):
    w = attention_weights(Q, K)
    T = min(Q.shape[-2], K.shape[-2])
    out = np.zeros((*Q.shape[:-1], V.shape[-1]))
    for i in range(Q.shape[-2]):
        for j in range(T):
            out[..., i, :] += w[..., i, j, None] * V[..., j, :]
    return out


@wrong("output like Q", r"d_v|width of|zeros_like|\bV\b|values")
def attention(Q, K, V):
    w = attention_weights(Q, K)
    out = np.zeros_like(Q)
    for i in range(Q.shape[-2]):
        for f in range(Q.shape[-1]):
            out[..., i, f] = (w[..., i, :] * V[..., :, f]).sum(-1)
    return out


@wrong("is_causal=True", r"causal|mask|future|later")
def attention(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True)


@wrong(
    "one average of all values for each sentence", r"mean|average|pool|one (row|vector)|each query"
)
def attention(Q, K, V):
    out = attention_weights(Q, K) @ V
    return out.mean(axis=-2, keepdims=True)


@wrong("residual added", r"residual|adds?\b|\+ ?V|\+ ?Q|input")
def attention(Q, K, V):
    out = attention_weights(Q, K) @ V
    if out.shape == V.shape:
        out = out + V
    return out


@wrong("weights transposed before the values", r"transpos|swap|\.T\b|keys by queries|axes")
def attention(Q, K, V):
    w = attention_weights(Q, K)
    return np.einsum("...kq,...kd->...qd", w, V)


@wrong("plain exp that overflows", r"overflow|max|NaN|\binf|∞|stab|large")
def attention(Q, K, V):
    S = torch.exp(Q @ K.transpose(-1, -2) / K.shape[-1] ** 0.5)
    return (S / S.sum(-1, keepdim=True)) @ V


@right("F.scaled_dot_product_attention")
def attention(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V)


@right("key by key with a running maximum and sum, as FlashAttention")
def attention(Q, K, V):
    m = np.full(Q.shape[:-1] + (1,), -np.inf)
    z = np.zeros(Q.shape[:-1] + (1,))
    acc = np.zeros(Q.shape[:-1] + (V.shape[-1],))
    for j in range(K.shape[-2]):
        s = (Q * K[..., j : j + 1, :]).sum(-1, keepdims=True) / np.sqrt(Q.shape[-1])
        new = np.maximum(m, s)
        old, now = np.exp(m - new), np.exp(s - new)
        z = z * old + now
        acc = acc * old + now * V[..., j : j + 1, :]
        m = new
    return acc / z


@right("numerator and denominator apart, einsum")
def attention(Q, K, V):
    S = np.einsum("...qd,...kd->...qk", Q, K) * Q.shape[-1] ** -0.5
    e = np.exp(S - S.max(-1)[..., None])
    return np.einsum("...qk,...kv->...qv", e, V) / np.einsum("...qk->...q", e)[..., None]


@right("transposed throughout: columns as tokens")
def attention(Q, K, V):
    q, k, v = (np.swapaxes(a, -1, -2) for a in (Q, K, V))
    S = np.matmul(np.swapaxes(k, -1, -2), q) / math.sqrt(q.shape[-2])
    w = softmax(S, axis=-2)
    return np.swapaxes(v @ w, -1, -2)
