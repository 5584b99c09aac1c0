"""Answers of learners to the exercises of notebooks 01 to 06, by a second, independent hand.

Written without looking at the checks: what homework, forum threads and issues about transformers
report. Those that take tensors stand beside those for arrays.
"""

# ruff: noqa: B007, B905, E501, F811, F821, RUF005

from learners import right, wrong

# ---------------------------------------------------------------- build_vocab


@wrong("ids begin at 1", r"\b0|zero & begin|start|first|off by|one too")
def build_vocab(sentences):
    words = []
    for s in sentences:
        for w in s.split():
            if w not in words:
                words.append(w)
    return {w: i for i, w in enumerate(words, start=1)}


@wrong(
    "an id for each occurrence, not for each different word",
    r"gap|repeat|duplicat|twice|again|already|distinct|different|once|last (appear|occur|place)|each word",
)
def build_vocab(sentences):
    tokens = [tok for s in sentences for tok in s.split()]
    word2idx = {tok: idx for idx, tok in enumerate(tokens)}
    return word2idx


@wrong("most frequent word first", r"frequen|common|count|often|order")
def build_vocab(sentences):
    counter = Counter()
    for sentence in sentences:
        counter.update(sentence.split())
    vocab = {}
    for i, (tok, freq) in enumerate(counter.most_common()):
        vocab[tok] = i
    return vocab


@wrong(
    "adds <pad> and <unk>",
    r"special|pad|unk|extra|two more|not in the sentences|nothing else|reserved",
)
def build_vocab(sentences):
    vocab = {"<pad>": 0, "<unk>": 1}
    for sentence in sentences:
        for token in sentence.split():
            if token not in vocab:
                vocab[token] = len(vocab)
    return vocab


@wrong(
    "counts anew in each sentence",
    r"each sentence|every sentence|per sentence|anew|again at 0|across|unique|same id|share|over all",
)
def build_vocab(sentences):
    vocab = {}
    for sentence in sentences:
        for i, token in enumerate(sentence.split()):
            if token not in vocab:
                vocab[token] = i
    return vocab


@wrong(
    "strips punctuation and lower-cases",
    r"lower|case|punctuation|strip|as (it|they) (is|are|stand)|white",
)
def build_vocab(sentences):
    vocab = {}
    for line in sentences:
        for word in line.lower().split():
            word = word.strip(".,!?;:")
            if word and word not in vocab:
                vocab[word] = len(vocab)
    return vocab


@wrong("letters instead of words", r"letter|character|char & split|word|token")
def build_vocab(sentences):
    text = " ".join(sentences)
    chars = sorted(set(text))
    stoi = {ch: i for i, ch in enumerate(chars)}
    return stoi


@right("dict.setdefault with the length so far")
def build_vocab(sentences):
    vocab = {}
    for sent in sentences:
        for tok in sent.strip().split():
            vocab.setdefault(tok, len(vocab))
    return vocab


@right("a sorted set of all joined")
def build_vocab(sentences):
    all_words = sorted(list(set((" ".join(sentences)).split())))
    return dict(zip(all_words, range(len(all_words))))


# ---------------------------------------------------------------- one_hot


@wrong(
    "the width from the largest id, not vocab_size", r"vocab_size|num_classes|width|V|largest|max"
)
def one_hot(ids, vocab_size):
    return F.one_hot(ids).float()


@wrong("flattens the ids, the batch is lost", r"batch|shape|flat|leading|axes|dimension")
def one_hot(ids, vocab_size):
    ids = np.array(ids).reshape(-1)
    out = np.zeros((ids.size, vocab_size), dtype=np.float32)
    out[np.arange(ids.size), ids] = 1
    return out


@wrong("ids counted from 1", r"- ?1\b|off by|one (place|column|too)|shift|from 1")
def one_hot(ids, vocab_size):
    return np.eye(vocab_size)[ids - 1]


@wrong(
    "classes before tokens, as PyTorch's convolutions want",
    r"last|axis|axes|transpos|swap|order|permute",
)
def one_hot(ids, vocab_size):
    oh = F.one_hot(ids.long(), num_classes=vocab_size)
    return oh.transpose(-1, -2).float()


@wrong(
    "sets a whole column for every token",
    r"every row|each row|all rows|column|single|only one|one 1|bag|whole|arange|own",
)
def one_hot(ids, vocab_size):
    onehot = torch.zeros(*ids.shape, vocab_size)
    for i in ids.flatten():
        onehot[..., i] = 1.0
    return onehot


@wrong("a bag of words: the sum over the tokens", r"\bsum|bag|count|added up")
def one_hot(ids, vocab_size):
    vec = np.zeros(ids.shape[:-1] + (vocab_size,))
    for idx in np.ndindex(*ids.shape):
        vec[idx[:-1] + (ids[idx],)] += 1
    return vec


@wrong("id 0 is taken for padding and stays zero", r"(id|word|row|token).{0,5}\b0\b|padd")
def one_hot(ids, vocab_size):
    oh = np.eye(vocab_size, dtype=np.float32)[ids]
    oh[ids == 0] = 0.0
    return oh


@right("compares with arange")
def one_hot(ids, vocab_size):
    return (np.asarray(ids)[..., None] == np.arange(vocab_size)).astype(np.float64)


@right("scatter_ along the last axis")
def one_hot(ids, vocab_size):
    out = torch.zeros(tuple(ids.shape) + (vocab_size,))
    return out.scatter_(-1, ids.unsqueeze(-1).long(), 1.0)


# ---------------------------------------------------------------- embed


@wrong("multiplies by √d_model as the paper's embeddings", r"scal|√|sqrt|root|factor|multipl|times")
def embed(onehot, table):
    d_model = table.shape[-1]
    return (onehot @ table) * math.sqrt(d_model)


@wrong("averages the token vectors of a sentence", r"mean|averag|sum|pool|token|axis")
def embed(onehot, table):
    vectors = torch.matmul(onehot, table)
    return vectors.mean(dim=-2)


@wrong(
    "a fresh nn.Embedding, the table is ignored",
    r"random|ignor|fresh|nn\.Embedding|not used|unused|no part|does not depend on table",
)
def embed(onehot, table):
    V, D = table.shape
    layer = nn.Embedding(V, D)
    ids = onehot.argmax(dim=-1)
    return layer(ids)


@wrong("argmax over the tokens' axis", r"axis|last|argmax|token|column")
def embed(onehot, table):
    ids = onehot.argmax(axis=-2)
    return table[ids]


@wrong(
    "uses the numbers of the one-hot vectors as ids",
    r"as ids|as ind|argmax|look.?up|0 and 1|zeros and ones",
)
def embed(onehot, table):
    return F.embedding(onehot.long(), table)


@wrong("only the first sentence's ids", r"first|own ids|each sentence|every sentence")
def embed(onehot, table):
    if onehot.ndim > 2:
        ids = np.argmax(onehot[0], axis=-1)
        out = np.stack([table[ids]] * onehot.shape[0])
        return out
    return table[np.argmax(onehot, axis=-1)]


@wrong("normalises each vector to length 1", r"norm|length|unit")
def embed(onehot, table):
    e = onehot @ table
    return e / np.linalg.norm(e, axis=-1, keepdims=True)


@right("tensordot")
def embed(onehot, table):
    return np.tensordot(onehot, table, axes=([-1], [0]))


@right("looks the rows up by argmax")
def embed(onehot, table):
    return F.embedding(torch.argmax(onehot, dim=-1), table)


# ---------------------------------------------------------------- project_qkv


@wrong("keys first: K, Q, V", r"order|swap|exchang|Q, K, V|keys?.*quer|quer.*keys?|K and Q|Q and K")
def project_qkv(X, W_q, W_k, W_v):
    keys = X @ W_k
    queries = X @ W_q
    values = X @ W_v
    return keys, queries, values


@wrong(
    "three equal chunks of the joined product", r"d_v|width|equal|third|chunk|split|boundar|where"
)
def project_qkv(X, W_q, W_k, W_v):
    W = torch.cat([W_q, W_k, W_v], dim=1)
    qkv = X @ W
    n = W_q.shape[1]
    q = qkv[..., :n]
    k = qkv[..., n : 2 * n]
    v = qkv[..., 2 * n : 3 * n]
    return q, k, v


@wrong(
    "weights transposed as in nn.Linear, when they fit",
    r"transpos|\.T\b|Wᵀ|right|F\.linear|nn\.Linear",
)
def project_qkv(X, W_q, W_k, W_v):
    def lin(W):
        # nn.Linear stores (out, in)
        if W.shape[0] == W.shape[1]:
            return F.linear(X, W)
        return X @ W

    return lin(W_q), lin(W_k), lin(W_v)


@wrong(
    "the values from W_k, copied line", r"W_v|values? & W_k|key|instead|same|never|not used|unused"
)
def project_qkv(X, W_q, W_k, W_v):
    Q = np.matmul(X, W_q)
    K = np.matmul(X, W_k)
    V = np.matmul(X, W_k)
    return Q, K, V


@wrong("the values are X itself", r"W_v|project|itself")
def project_qkv(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, X


@wrong("scales the queries already here", r"scal|√|sqrt|root|divi")
def project_qkv(X, W_q, W_k, W_v):
    d = W_q.shape[-1]
    q = torch.einsum("...td,dk->...tk", X, W_q) * d**-0.5
    k = torch.einsum("...td,dk->...tk", X, W_k)
    v = torch.einsum("...td,dv->...tv", X, W_v)
    return q, k, v


@wrong(
    "ReLU on the projections",
    r"relu|negativ|maximum|max\(|activation|below 0|non-?linear|cut|zero|clip",
)
def project_qkv(X, W_q, W_k, W_v):
    return tuple(F.relu(X @ W) for W in (W_q, W_k, W_v))


@right("flattened product, reshaped back")
def project_qkv(X, W_q, W_k, W_v):
    flat = X.reshape(-1, X.shape[-1])
    res = []
    for W in [W_q, W_k, W_v]:
        res.append(flat.dot(W).reshape(*X.shape[:-1], W.shape[1]))
    return res[0], res[1], res[2]


@right("F.linear with transposed weights")
def project_qkv(X, W_q, W_k, W_v):
    return F.linear(X, W_q.T), F.linear(X, W_k.T), F.linear(X, W_v.T)


# ---------------------------------------------------------------- attention_scores


@wrong(".T turns all axes round", r"\.T\b|last two|all axes|batch|swapaxes|3|reverse")
def attention_scores(Q, K):
    return Q @ K.T


@wrong(
    "np.dot multiplies every sentence with every other",
    r"np\.dot|every sentence|each sentence|all sentences|other sentence",
)
def attention_scores(Q, K):
    return np.dot(Q, np.swapaxes(K, -1, -2))


@wrong("view instead of transpose", r"reshap|view|transpos|swap")
def attention_scores(Q, K):
    *lead, Tk, d = K.shape
    K_t = K.reshape(*lead, d, Tk)
    return torch.matmul(Q, K_t)


@wrong("keys as rows, queries as columns", r"transpos|swap|row|column|order|\[?k.*q|turned|exchang")
def attention_scores(Q, K):
    return torch.einsum("...qd,...kd->...kq", Q, K)


@wrong("cosine similarity", r"cosin|norm|length|unit|divi")
def attention_scores(Q, K):
    q = F.normalize(Q, dim=-1)
    k = F.normalize(K, dim=-1)
    return q @ k.mT


@wrong("scaled already", r"scal|√|sqrt|root|divi")
def attention_scores(Q, K):
    d_k = Q.shape[-1]
    scores = np.zeros(Q.shape[:-1] + (K.shape[-2],))
    for i in range(Q.shape[-2]):
        for j in range(K.shape[-2]):
            scores[..., i, j] = (Q[..., i, :] * K[..., j, :]).sum(-1) / np.sqrt(d_k)
    return scores


@wrong(
    "loops over as many keys as queries",
    r"Tk|number of (keys|queries)|as many|more keys|loop|all keys",
)
def attention_scores(Q, K):
    T = Q.shape[-2]
    S = np.zeros(Q.shape[:-1] + (K.shape[-2],), dtype=Q.dtype)
    for i in range(T):
        for j in range(min(T, K.shape[-2])):
            S[..., i, j] = np.sum(Q[..., i, :] * K[..., j, :], axis=-1)
    return S


@wrong(
    "an attention kernel for one batch axis only",
    r"batch ax|without a batch|leading|bmm|unbatched|one batch|2-?D",
)
def attention_scores(Q, K):
    return torch.bmm(Q, K.transpose(1, 2))


@right("product and sum over a broadcast axis")
def attention_scores(Q, K):
    return (Q[..., :, None, :] * K[..., None, :, :]).sum(axis=-1)


@right("keys first, then turned")
def attention_scores(Q, K):
    return (K @ Q.transpose(-2, -1)).transpose(-2, -1)


# ---------------------------------------------------------------- scale_scores


@wrong(
    "** 1/2 binds otherwise than meant",
    r"2 ?\*? ?d_k|half|twice|1/2|0\.5|parenthes|bracket|preceden|binds|divi",
)
def scale_scores(S, d_k):
    return S / d_k**1 / 2


@wrong(
    "divides by d_k ** -0.5",
    r"multipl|grow|larger|-0\.5|\*\* ?-|invers|instead of divi|times|product",
)
def scale_scores(S, d_k):
    scale = d_k**-0.5
    return S / scale


@wrong("divides in place", r"in.place|change|input|copy|overwrit|modif|/=")
def scale_scores(S, d_k):
    S /= np.sqrt(d_k)
    return S


@wrong("whole-number root", r"whole|round|int|isqrt|floor|//|exact|trunc|square")
def scale_scores(S, d_k):
    return S / int(d_k**0.5)


@wrong("the number of keys instead of d_k", r"d_k & number of keys|keys|last axis|shape|columns")
def scale_scores(S, d_k):
    return S / math.sqrt(S.size(-1))


@wrong(
    "takes the root of the scores as well",
    r"root of (S|the scores?|the whole|both|everything)|scores? (too|as well|itself|themselves)|inside the root|only d_k|d_k alone",
)
def scale_scores(S, d_k):
    return torch.sign(S) * torch.sqrt(S.abs() / d_k)


@wrong("fixed to the paper's 64", r"64|\b8\b|fixed|constant")
def scale_scores(S, d_k):
    return S / 8.0


@right("torch.rsqrt of a tensor")
def scale_scores(S, d_k):
    return S * torch.rsqrt(torch.tensor(float(d_k), dtype=S.dtype))


@right("exp of half the logarithm")
def scale_scores(S, d_k):
    return np.divide(S, np.exp(0.5 * np.log(d_k))).astype(np.asarray(S).dtype)


# ---------------------------------------------------------------- softmax


@wrong(
    "the quotient inside the exponential",
    r"inside|exponent|parenthes|bracket|(before|after|of|in) (the )?exp",
)
def softmax(x, axis=-1):
    return np.exp(x / np.sum(np.exp(x), axis=axis, keepdims=True))


@wrong(
    "result in an array like x: whole numbers are cut",
    r"int|whole|dtype|trunc|zeros_like|cut|float",
)
def softmax(x, axis=-1):
    x = np.moveaxis(np.asarray(x), axis, -1)
    result = np.zeros_like(x)
    for idx in np.ndindex(*x.shape[:-1]):
        e = np.exp(x[idx] - x[idx].max())
        result[idx] = e / e.sum()
    return np.moveaxis(result, -1, axis)


@wrong("CS231n style: axis 1 whatever the axis", r"axis & 1|ignor|last|fixed|given|argument|always")
def softmax(x, axis=-1):
    x = np.asarray(x, dtype=float)
    if x.ndim == 1:
        x = x - x.max()
        return np.exp(x) / np.exp(x).sum()
    x = x - np.max(x, axis=1, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


@wrong("one maximum for all rows", r"max & (row|axis|each|all|whole|global|one|own)")
def softmax(x, axis=-1):
    x = x.float() if not x.is_floating_point() else x
    e = torch.exp(x - x.max())
    return e / e.sum(dim=axis, keepdim=True)


@wrong("clips instead of subtracting the maximum", r"clip|limit|bound|clamp|subtract|max|large|cut")
def softmax(x, axis=-1):
    z = np.clip(np.asarray(x, dtype=np.float64), -50, 50)
    e = np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)


@wrong(
    "maximum subtracted in the numerator only",
    r"numerator|denominator|both|same|above|below|sum|twice|once",
)
def softmax(x, axis=-1):
    x = torch.as_tensor(x).double()
    m = x.max(dim=axis, keepdim=True).values
    return torch.exp(x - m) / torch.exp(x).sum(dim=axis, keepdim=True)


@wrong("sum over everything", r"sum & each|all entries|whole|every")
def softmax(x, axis=-1):
    shifted = x - np.max(x, axis=axis, keepdims=True)
    exps = np.exp(shifted)
    return exps / exps.sum()


@wrong("a small number in the denominator and no maximum", r"overflow|max|largest|stab")
def softmax(x, axis=-1):
    e = np.exp(np.asarray(x, dtype=np.float32))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-9)


@right("logsumexp")
def softmax(x, axis=-1):
    x = np.asarray(x)
    return np.exp(x - np.logaddexp.reduce(x.astype(np.float64), axis=axis, keepdims=True))


@right("torch's, on a copy with numbers after the point")
def softmax(x, axis=-1):
    if not torch.is_floating_point(x):
        x = x.to(torch.float32)
    return nn.Softmax(dim=axis)(x)


# ---------------------------------------------------------------- attention_weights


@wrong(
    "F.softmax without dim: the first axis of three",
    r"axis 0|first axis|without dim|dim=-1|axis=-1|last axis|wrong axis",
)
def attention_weights(Q, K):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    return F.softmax(scores)


@wrong("d_k from axis 1, the tokens", r"last axis|width|tokens|axis 1|shape\[-1\]|number of keys")
def attention_weights(Q, K):
    d_k = K.size(1)
    return torch.softmax(Q @ K.transpose(-2, -1) / d_k**0.5, dim=-1)


@wrong("scales after the softmax", r"after|before|order|then|sum")
def attention_weights(Q, K):
    S = Q @ np.swapaxes(K, -1, -2)
    return softmax(S) / np.sqrt(Q.shape[-1])


@wrong("divides by the inverse root", r"multipl|scal|divi|-0\.5|invers|times|instead")
def attention_weights(Q, K):
    scale = Q.shape[-1] ** -0.5
    att = np.einsum("...qd,...kd->...qk", Q, K) / scale
    return softmax(att, axis=-1)


@wrong("root of the number of keys", r"d_k|width|number of keys|shape|features|last")
def attention_weights(Q, K):
    S = attention_scores(Q, K)
    return softmax(S / np.sqrt(S.shape[-1]))


@wrong("causal, as in a GPT", r"causal|mask|future|later|tril|triang")
def attention_weights(Q, K):
    S = Q @ K.mT / math.sqrt(Q.shape[-1])
    T, L = S.shape[-2:]
    S = S.masked_fill(torch.tril(torch.ones(T, L)) == 0, float("-inf"))
    return S.softmax(-1)


@wrong("F.dropout that is always on", r"dropout|random|dropped|at random")
def attention_weights(Q, K):
    w = torch.softmax(Q @ K.mT / math.sqrt(K.shape[-1]), dim=-1)
    return F.dropout(w, 0.1)


@wrong("divides by the maximum rather than the sum", r"\bmax|largest|sum & divi|sum")
def attention_weights(Q, K):
    S = scale_scores(attention_scores(Q, K), Q.shape[-1])
    e = np.exp(S - S.max(axis=-1, keepdims=True))
    return e / e.max(axis=-1, keepdims=True)


@right("the fourth root on both sides")
def attention_weights(Q, K):
    r = K.shape[-1] ** 0.25
    return softmax((Q / r) @ np.swapaxes(K / r, -1, -2))


@right("log_softmax, then exp")
def attention_weights(Q, K):
    S = torch.einsum("...id,...jd->...ij", Q, K).mul(1 / math.sqrt(Q.shape[-1]))
    return torch.exp(F.log_softmax(S, dim=-1))


# ---------------------------------------------------------------- attention


@wrong("returns the weights as well", r"tuple|both|pair|two|as well|context")
def attention(Q, K, V):
    w = attention_weights(Q, K)
    return w @ V, w


@wrong("softmax over the queries", r"axis|last|keys|quer|dim|row|column")
def attention(Q, K, V):
    d = Q.size(-1)
    att = F.softmax(Q @ K.transpose(-2, -1) / math.sqrt(d), dim=1 if Q.ndim == 3 else 0)
    return att @ V


@wrong("scales by the width of the values", r"d_v|V\b|values & d_k|width|root|scal|keys")
def attention(Q, K, V):
    scores = attention_scores(Q, K) / np.sqrt(V.shape[-1])
    return softmax(scores) @ V


@wrong("is_causal left on", r"causal|mask|future|later|tril|triang")
def attention(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V, is_causal=True)


@wrong(
    "no softmax",
    r"softmax & (missing|without|left out|never|no |not|forg|skip|raw|plain|scores|sum|before)",
)
def attention(Q, K, V):
    A = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    return A @ V


@wrong("softmax of the output as well", r"softmax & twice|second|output|result|context|V\b")
def attention(Q, K, V):
    out = softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])) @ V
    return softmax(out)


@wrong(
    "keys and values exchanged",
    r"swap|exchang|keys?.*values?|values?.*keys?|K and V|V and K|instead",
)
def attention(Q, K, V):
    # d_k == d_v in the paper
    if V.shape[-1] == Q.shape[-1]:
        K, V = V, K
    return torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1) @ V


@wrong("adds the queries, a residual connection", r"residual|added|skip")
def attention(Q, K, V):
    out = attention_weights(Q, K) @ V
    if out.shape == Q.shape:
        out = out + Q
    return out


@wrong("averages the values of the best key", r"argmax|largest|best|hard|one key|one-hot")
def attention(Q, K, V):
    S = Q @ K.mT
    hard = F.one_hot(S.argmax(-1), K.shape[-2]).to(V.dtype)
    return hard @ V


@right("query by query")
def attention(Q, K, V):
    outs = []
    for i in range(Q.shape[-2]):
        q = Q[..., i : i + 1, :]
        s = (q * K).sum(-1) / math.sqrt(K.shape[-1])
        w = np.exp(s - s.max(axis=-1, keepdims=True))
        w = w / w.sum(axis=-1, keepdims=True)
        outs.append((w[..., None] * V).sum(axis=-2))
    return np.stack(outs, axis=-2)


@right("F.scaled_dot_product_attention")
def attention(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V)


# ---------------------------------------------------------------- causal_mask


@wrong(
    "True is blocked, as in nn.MultiheadAttention",
    r"inver|opposite|allowed|blocked|forbidden|~|not |True",
)
def causal_mask(T):
    return torch.triu(torch.ones(T, T), diagonal=1).bool()


@wrong("0 and −inf to be added", r"bool|True|add|inf|number|float")
def causal_mask(T):
    return nn.Transformer.generate_square_subsequent_mask(T)


@wrong("transposed: sees the future", r"transpos|future|later|upper|triu|tril|row|reverse")
def causal_mask(T):
    mask = np.zeros((T, T), dtype=bool)
    for i in range(T):
        for j in range(i, T):
            mask[i, j] = True
    return mask


@wrong("without the diagonal", r"diagonal|itself|own|0 … i|including|k=0|before|strict")
def causal_mask(T):
    idx = np.arange(T)
    return idx[None, :] < idx[:, None]


@wrong("1.0 and 0.0", r"bool|dtype|True")
def causal_mask(T):
    return np.tril(np.ones((T, T)))


@wrong(
    "an axis in front, as in the Annotated Transformer",
    r"shape|axis|axes|\(T, T\)|dimension|front|batch|leading|1, ",
)
def causal_mask(T):
    attn_shape = (1, T, T)
    subsequent = torch.triu(torch.ones(attn_shape), diagonal=1).type(torch.uint8)
    return subsequent == 0


@wrong(
    "one key too many", r"next|one (key )?(too|more|step)|diagonal|k=1|off by|future|later|after"
)
def causal_mask(T):
    return torch.tril(torch.ones(T, T, dtype=torch.bool), diagonal=1)


@right("counts up and compares")
def causal_mask(T):
    return np.fromfunction(lambda q, k: q - k >= 0, (T, T))


@right("not the upper triangle")
def causal_mask(T):
    return ~torch.ones((T, T), dtype=torch.bool).triu(1)


# ---------------------------------------------------------------- masked_softmax


@wrong("1e-9 for −1e9", r"inf|1e-?9|−∞")
def masked_softmax(S, mask):
    S = S.masked_fill(mask == 0, 1e-9)
    return F.softmax(S, dim=-1)


@wrong("fills where the mask is True", r"inver|opposite|~|True|allowed|blocked|not")
def masked_softmax(S, mask):
    return torch.softmax(S.masked_fill(mask, float("-inf")), dim=-1)


@wrong("zeros after the softmax, sum below 1", r"after|before & softmax|renorm|sum")
def masked_softmax(S, mask):
    w = softmax(S)
    w = np.where(mask, w, 0.0)
    return w


@wrong("adds the mask as a number", r"add|\+|number|0 and 1|where|-inf|−∞|−inf|infin")
def masked_softmax(S, mask):
    return softmax(S + mask)


@wrong("−100 is not low enough", r"inf|100|low|large|huge|enough|finite|small|−∞")
def masked_softmax(S, mask):
    penalty = (1.0 - mask.astype(np.float32)) * -100.0
    return softmax(S + penalty)


@wrong("multiplies the scores by the mask", r"multipl|zero|0|times|−∞|-inf|inf")
def masked_softmax(S, mask):
    S = S * mask
    e = torch.exp(S - S.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


@wrong(
    "writes −inf into the scores given", r"in.place|change|input|copy|overwrit|modif|masked_fill_"
)
def masked_softmax(S, mask):
    S.masked_fill_(~mask, float("-inf"))
    return S.softmax(dim=-1)


@wrong(
    "the maximum of all scores, also the masked ones",
    r"\bmax|largest|underflow & hidden|mask|blocked|allowed|forbidden",
)
def masked_softmax(S, mask):
    e = np.exp(S - S.max(axis=-1, keepdims=True)) * mask
    return e / (e.sum(axis=-1, keepdims=True) + 1e-12)


@right("masked_fill with the dtype's lowest number")
def masked_softmax(S, mask):
    return F.softmax(S.masked_fill(mask.logical_not(), torch.finfo(S.dtype).min), dim=-1)


@right("adds a log of the mask")
def masked_softmax(S, mask):
    with np.errstate(divide="ignore"):
        bias = np.log(mask.astype(S.dtype))
    return softmax(S + bias)


# ---------------------------------------------------------------- safe_masked_softmax


@wrong(
    "nan_to_num on the scores, so an empty row is even",
    r"even|uniform|equal|zeros?|nan_to_num|−?-?1e9|finite|empty|no (allowed )?key",
)
def safe_masked_softmax(S, mask):
    S = np.where(mask, S, -np.inf)
    S = np.nan_to_num(S)
    e = np.exp(S - S.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("NaN in an empty row", r"nan|0 ?/ ?0 & empty|without any|no allowed|no key")
def safe_masked_softmax(S, mask):
    return torch.softmax(S.masked_fill(~mask, -torch.inf), dim=-1)


@wrong("looks only whether the whole mask is empty", r"row|whole|every|each|any|all")
def safe_masked_softmax(S, mask):
    if not mask.any():
        return np.zeros_like(S)
    return softmax(np.where(mask, S, -np.inf))


@wrong("an empty row attends to the first key", r"first|key 0")
def safe_masked_softmax(S, mask):
    mask = mask.expand_as(S).clone()
    dead = ~mask.any(dim=-1)
    mask[..., 0] |= dead
    return torch.softmax(S.masked_fill(~mask, float("-inf")), dim=-1)


@wrong(
    "asks for keys nobody may see, the wrong axis of any",
    r"axis|column|per key|each key|any\( & empty|any\(|no allowed|without any|nobody|no query|axis=-1",
)
def safe_masked_softmax(S, mask):
    mask = np.broadcast_to(mask, S.shape)
    w = softmax(np.where(mask, S, -1e30))
    return w * mask.any(axis=-2, keepdims=True)


@wrong(
    "exponentials without the maximum, with 1e-9 below",
    r"max|overflow|underflow|large|stab|subtract|eps|1e-|small|denominator|inf",
)
def safe_masked_softmax(S, mask):
    e = torch.exp(S) * mask
    return e / (e.sum(dim=-1, keepdim=True) + 1e-9)


@wrong(
    "the mask multiplied on after an unmasked softmax",
    r"after the softmax|before the softmax|renorm|no longer sum",
)
def safe_masked_softmax(S, mask):
    w = softmax(S)
    return w * mask


@wrong("one empty row empties the sentence", r"whole|all|every|other rows & row")
def safe_masked_softmax(S, mask):
    m = torch.broadcast_to(mask, S.shape)
    w = torch.softmax(S.masked_fill(~m, float("-inf")), dim=-1)
    if torch.isnan(w).any():
        return torch.zeros_like(w)
    return w


@right("nan_to_num at the end")
def safe_masked_softmax(S, mask):
    w = F.softmax(S.masked_fill(~mask, float("-inf")), dim=-1)
    return torch.nan_to_num(w, nan=0.0)


@right("a very low number, then times the mask")
def safe_masked_softmax(S, mask):
    w = softmax(np.where(mask, S, np.float32(-1e30)))
    return np.where(mask, w, 0.0)


# ---------------------------------------------------------------- padding_mask


@wrong("True at the padding, as key_padding_mask", r"inver|opposite|!=|==|real|~|True")
def padding_mask(ids, pad_id):
    return (ids == pad_id).unsqueeze(1)


@wrong(
    "the mask for the queries, (B, T, 1)", r"quer|key|axis|1, T|middle|column|shape|row|transpos"
)
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, :, np.newaxis]


@wrong("four axes, for heads", r"shape|ax[ei]s|head|1, 1|B, 1, T|dimension|one .*many|extra")
def padding_mask(ids, pad_id):
    return (ids != pad_id).unsqueeze(1).unsqueeze(2)


@wrong("0 is the padding", r"pad_id & ignor|fixed|whatever|argument|\b0\b")
def padding_mask(ids, pad_id):
    return ids.bool().unsqueeze(-2)


@wrong(
    "counts and assumes padding at the end",
    r"left|end|right|front|begin|length|where|place|count|anywhere",
)
def padding_mask(ids, pad_id):
    lengths = np.sum(ids != pad_id, axis=1)
    T = ids.shape[1]
    return (np.arange(T)[None, :] < lengths[:, None])[:, None, :]


@wrong("queries and keys both real, (B, T, T)", r"quer|both|key|T, T|1, T|shape|square|rows?")
def padding_mask(ids, pad_id):
    real = ids != pad_id
    return real[:, :, None] & real[:, None, :]


@wrong("1.0 and 0.0, TensorFlow's", r"bool|True|dtype|float|number|1\.0|0 and 1")
def padding_mask(ids, pad_id):
    mask = np.where(ids == pad_id, 0.0, 1.0)
    return mask[:, np.newaxis, :]


@right("row by row")
def padding_mask(ids, pad_id):
    rows = []
    for sentence in ids.tolist():
        rows.append([[tok != pad_id for tok in sentence]])
    return np.array(rows, dtype=bool)


@right("torch.ne, reshaped")
def padding_mask(ids, pad_id):
    B, T = ids.size()
    return torch.ne(ids, pad_id).view(B, 1, T)


# ---------------------------------------------------------------- padded_weights


@wrong(
    "unsqueeze(2): hides queries",
    r"padded quer|queries instead|B, T, 1|[Tt]k?, 1\)|:, None\] & axis|None|middle|keys|rows",
)
def padded_weights(S, is_real):
    if S.shape[1] == S.shape[2]:
        m = is_real.unsqueeze(2)
    else:
        m = is_real.unsqueeze(1)
    return torch.softmax(S.masked_fill(~m, -1e9), dim=-1)


@wrong(
    "no axis for the queries: broadcasts the sentences over the queries",
    r"axis|None|unsqueeze|broadcast|line & quer|batch|sentence",
)
def padded_weights(S, is_real):
    try:
        return softmax(np.where(is_real, S, -np.inf))
    except ValueError:
        return softmax(np.where(is_real[:, None], S, -np.inf))


@wrong(
    "zero columns after the softmax", r"after the softmax|before the softmax|renorm|no longer sum"
)
def padded_weights(S, is_real):
    weights = F.softmax(S, dim=-1)
    return weights * is_real[:, None, :].float()


@wrong("hides the padding's rows too", r"quer & row|only the keys|as well|too|also")
def padded_weights(S, is_real):
    w = masked_softmax(S, is_real[:, None, :])
    if S.shape[1] == S.shape[2]:
        w = w * is_real[:, :, None]
    return w


@wrong("sets the scores to zero", r"zero|set to 0|exp\(0\)|multipl & −∞|inf|mask")
def padded_weights(S, is_real):
    S = S * is_real[:, None, :]
    return softmax(S, axis=-1)


@wrong(
    "cuts to the number of real tokens: padding at the end",
    r"left|end|right|front|length|first|count|anywhere|where|place|begin|begins",
)
def padded_weights(S, is_real):
    out = torch.zeros_like(S)
    for b in range(S.size(0)):
        n = int(is_real[b].sum())
        out[b, :, :n] = torch.softmax(S[b, :, :n], dim=-1)
    return out


@wrong("the mask the other way round", r"inver|opposite|~|wrong way")
def padded_weights(S, is_real):
    return torch.softmax(S.masked_fill(is_real.unsqueeze(1), float("-inf")), dim=-1)


@wrong("the first sentence's padding for all", r"first|\[0\]|own")
def padded_weights(S, is_real):
    keep = is_real[0]
    out = np.zeros_like(S)
    out[..., keep] = softmax(S[..., keep])
    return out


@right("sentence by sentence, over the real keys alone")
def padded_weights(S, is_real):
    out = np.zeros(S.shape)
    for b, real in enumerate(is_real):
        out[b][:, real] = softmax(S[b][:, real])
    return out


@right("an additive mask")
def padded_weights(S, is_real):
    bias = torch.zeros(is_real.shape, dtype=S.dtype).masked_fill(~is_real, -torch.inf)
    return torch.softmax(S + bias[:, None], -1)
