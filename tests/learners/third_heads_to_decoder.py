"""Answers of learners to the exercises of notebooks 08 to 12: the classic slips, written blind."""
# ruff: noqa: B007, B905, E501, E731, E741, F811, F821, RUF059

from learners import right, wrong

# ---------------------------------------------------------------- split_heads


@wrong("reshapes straight to (B, H, T, Dh)", r"reshape|view & transpos|swap|axes|axis|order")
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, num_heads, T, D // num_heads)


@wrong("leaves the heads behind the tokens", r"transpos|swap|axes|axis")
def split_heads(x, num_heads):
    B, T, D = x.shape
    d_head = D // num_heads
    return x.reshape(B, T, num_heads, d_head)


@wrong(
    "deals the features out to the heads in turn",
    r"contiguous|neighbou?r|in a row|in turn|interleav|every|strid|block|slice|next to each other|side by side|together",
)
def split_heads(x, num_heads):
    B, T, D = x.shape
    x = x.reshape(B, T, D // num_heads, num_heads)
    return x.transpose(0, 3, 1, 2)


@wrong("puts the heads before the batch", r"batch & first|before|axes|axis|order|swap|transpos")
def split_heads(x, num_heads):
    heads = np.split(x, num_heads, axis=-1)
    return np.stack(heads)


@right("slices in a list comprehension")
def split_heads(x, num_heads):
    d = x.shape[-1] // num_heads
    return np.array([[s[:, h * d : (h + 1) * d] for h in range(num_heads)] for s in x])


@right("torch chunk and stack")
def split_heads(x, num_heads):
    return torch.stack(torch.chunk(x, num_heads, dim=2), dim=1)


# ---------------------------------------------------------------- merge_heads


@wrong("reshapes without transposing back", r"transpos|swap|axes & reshape|before|back|token")
def merge_heads(x):
    B, H, T, Dh = x.shape
    return x.reshape(B, T, H * Dh)


@wrong("sums the heads", r"\bsum|add & concat|side by side|next to|join|behind|keep")
def merge_heads(x):
    return x.sum(axis=1)


@wrong(
    "moves the heads to the last axis: interleaved",
    r"interleav|in turn|last axis|head by head|order|contiguous|block|side by side|whole head|mix",
)
def merge_heads(x):
    B, H, T, Dh = x.shape
    return x.transpose(0, 2, 3, 1).reshape(B, T, Dh * H)


@wrong("transposes but does not join", r"reshape|concat|join|flatten|side by side|4|four")
def merge_heads(x):
    return np.transpose(x, (0, 2, 1, 3))


@right("concatenates the heads along the features")
def merge_heads(x):
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1)


@right("torch permute and flatten")
def merge_heads(x):
    return x.permute(0, 2, 1, 3).flatten(start_dim=2)


# ---------------------------------------------------------------- multi_head_attention


@wrong("forgets the output projection", r"W_o|output (projection|matrix)")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    kv = x if memory is None else memory
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(kv @ W_k, num_heads)
    V = split_heads(kv @ W_v, num_heads)
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        if mask.ndim == 3:
            mask = mask[:, None]
        scores = np.where(mask, scores, -np.inf)
    return merge_heads(softmax(scores) @ V)


@wrong("scales by the whole width", r"d_head|d_k|head & width|scal|√|sqrt|d_model")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    B, T, D = x.shape
    kv = x if memory is None else memory
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(kv @ W_k, num_heads)
    V = split_heads(kv @ W_v, num_heads)
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(D)
    if mask is not None:
        if mask.ndim == 3:
            mask = mask[:, None]
        scores = np.where(mask, scores, -np.inf)
    return merge_heads(softmax(scores) @ V) @ W_o


@wrong("joins the heads by reshape alone", r"transpos|swap|merge_heads|axes & head|reshape")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    B, T, D = x.shape
    if memory is None:
        memory = x
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(memory @ W_k, num_heads)
    V = split_heads(memory @ W_v, num_heads)
    scores = Q @ K.swapaxes(-1, -2) / math.sqrt(D // num_heads)
    if mask is not None:
        scores = np.where(mask[:, None] if mask.ndim == 3 else mask, scores, -np.inf)
    out = softmax(scores) @ V
    return out.reshape(B, T, D) @ W_o


@wrong("the mask inverted", r"mask & invert|opposite|True|allowed|wrong way|turned")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    q, k, v = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    if mask is not None:
        if mask.ndim == 3:
            mask = mask[:, np.newaxis, :, :]
        scores = np.where(mask, -1e9, scores)
    return merge_heads(softmax(scores) @ v) @ W_o


@right("head by head, each with its rows of W_o")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    d = x.shape[-1] // num_heads
    out = np.zeros_like(x)
    for h in range(num_heads):
        own = slice(h * d, (h + 1) * d)
        S = np.einsum("btd,bsd->bts", x @ W_q[:, own], src @ W_k[:, own]) / d**0.5
        if mask is not None:
            S = np.where(mask, S, -1e30)
        out = out + softmax(S) @ (src @ W_v[:, own]) @ W_o[own]
    return out


@right("torch scaled_dot_product_attention")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory

    def heads(z):
        return z.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    if mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)
    out = F.scaled_dot_product_attention(
        heads(x @ W_q), heads(src @ W_k), heads(src @ W_v), attn_mask=mask
    )
    return out.transpose(1, 2).flatten(2) @ W_o


# ---------------------------------------------------------------- sinusoidal_positions


@wrong(
    "all the sines, then all the cosines",
    r"interleav|in turn|altern|even & half|halves|concat|even|odd|behind|first",
)
def sinusoidal_positions(T, D):
    pos = np.arange(T)[:, None]
    freq = 1 / 10000 ** (np.arange(0, D, 2) / D)
    return np.concatenate([np.sin(pos * freq), np.cos(pos * freq)], axis=1)


@wrong("each column its own frequency", r"same (angle|frequency|exponent|wave)|pair|2i|share")
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D))
    for pos in range(T):
        for i in range(D):
            angle = pos / 10000 ** (i / D)
            pe[pos, i] = np.sin(angle) if i % 2 == 0 else np.cos(angle)
    return pe


@wrong("doubles the exponent twice", r"twice|doubl|2i|factor|exponent|4i")
def sinusoidal_positions(T, D):
    pe = np.zeros((T, D))
    for pos in range(T):
        for i in range(0, D, 2):
            pe[pos, i] = math.sin(pos / 10000 ** (2 * i / D))
            pe[pos, i + 1] = math.cos(pos / 10000 ** (2 * i / D))
    return pe


@wrong("sine and cosine swapped", r"swap|sin.*cos|cos.*sin & even|odd|first|swap|order")
def sinusoidal_positions(T, D):
    pos = np.arange(T)[:, None]
    angle = pos / 10000 ** (np.arange(0, D, 2) / D)
    pe = np.zeros((T, D))
    pe[:, ::2] = np.cos(angle)
    pe[:, 1::2] = np.sin(angle)
    return pe


@right("complex exponentials, real and imaginary parts")
def sinusoidal_positions(T, D):
    z = np.exp(1j * np.outer(np.arange(T), 10000.0 ** (-np.arange(0, D, 2) / D)))
    return np.stack([z.imag, z.real], axis=-1).reshape(T, D)


@right("cosine as a shifted sine")
def sinusoidal_positions(T, D):
    j = np.arange(D)
    return np.sin(np.arange(T)[:, None] / 10000.0 ** ((j - j % 2) / D) + (j % 2) * np.pi / 2)


# ---------------------------------------------------------------- add_positions


@wrong("puts the positions beside the embedding", r"concat|beside|side by side|appen & add|sum|\+")
def add_positions(x):
    pe = np.broadcast_to(sinusoidal_positions(x.shape[-2], x.shape[-1]), x.shape)
    return np.concatenate([x, pe], axis=-1)


@wrong("changes x in place", r"in place|in-place|\+=|input & copy|new array|chang|x \+")
def add_positions(x):
    T, D = x.shape[-2:]
    x += sinusoidal_positions(T, D).astype(x.dtype)
    return x


@wrong(
    "counts sentences rather than tokens", r"shape\[|batch|sentence & token|-2|second.last|position"
)
def add_positions(x):
    pe = sinusoidal_positions(x.shape[0], x.shape[-1])
    while pe.ndim < x.ndim:
        pe = pe[:, None]
    return x + pe


@wrong("scales the embedding by √D first", r"√D|sqrt|scal|multipl|√d")
def add_positions(x):
    T, D = x.shape[-2:]
    return x * math.sqrt(D) + sinusoidal_positions(T, D)


@right("token by token")
def add_positions(x):
    pe = sinusoidal_positions(x.shape[-2], x.shape[-1])
    return np.stack([x[..., t, :] + pe[t] for t in range(x.shape[-2])], axis=-2)


@right("recursion over the batch axes")
def add_positions(x):
    if x.ndim > 2:
        return np.array([add_positions(sentence) for sentence in x])
    return np.add(x, sinusoidal_positions(*x.shape))


# ---------------------------------------------------------------- layer_norm


@wrong("normalises over the batch", r"axis|batch & last|-1|feature|token")
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=0, keepdims=True)
    var = x.var(axis=0, keepdims=True)
    return gamma * (x - mean) / np.sqrt(var + eps) + beta


@wrong("the unbiased variance", r"bias|ddof|n ?[-−] ?1|D ?[-−] ?1|unbiased|correction")
def layer_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    sigma2 = x.var(-1, keepdim=True)
    return gamma * (x - mu) / torch.sqrt(sigma2 + eps) + beta


@wrong("adds eps to the standard deviation", r"eps & root|sqrt|√|inside|outside|deviation|variance")
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    std = x.std(axis=-1, keepdims=True)
    return gamma * (x - mean) / (std + eps) + beta


@wrong("divides by the variance", r"root|sqrt|√|deviation")
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return gamma * ((x - mean) / (var + eps)) + beta


@right("apply_along_axis, row by row")
def layer_norm(x, gamma, beta, eps=1e-5):
    def row(v):
        c = v - v.sum() / v.size
        return c / math.sqrt(np.dot(c, c) / v.size + eps)

    return np.apply_along_axis(row, -1, np.asarray(x, dtype=np.float64)) * gamma + beta


@right("torch's own layer_norm")
def layer_norm(x, gamma, beta, eps=1e-5):
    return F.layer_norm(x, (x.shape[-1],), eps=eps) * gamma + beta


# ---------------------------------------------------------------- add_and_norm


@wrong("normalises the branch only, then adds", r"x \+|add|sum|before|after|first & norm")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return x + layer_norm(sublayer_out, gamma, beta, eps)


@wrong("no residual", r"residual|skip|\badd|x \+|missing|without x|left out|sum")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(sublayer_out, gamma, beta, eps)


@wrong("normalises x before adding", r"norm & before|after|sum|add")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x, gamma, beta, eps) + sublayer_out


@wrong("adds x again after the norm", r"twice|again|second|once|after")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return x + layer_norm(x + sublayer_out, gamma, beta, eps)


@right("sum written out, einsum for the variance")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    s = np.add(x, sublayer_out).astype(np.float64)
    c = s - np.average(s, axis=-1)[..., None]
    var = np.einsum("...d,...d->...", c, c) / s.shape[-1]
    return c * (var[..., None] + eps) ** -0.5 * gamma + beta


@right("nn.LayerNorm with its weights set")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    norm = nn.LayerNorm(x.shape[-1], eps=eps).to(x.dtype)
    with torch.no_grad():
        norm.weight.copy_(gamma)
        norm.bias.copy_(beta)
        return norm(x + sublayer_out)


# ---------------------------------------------------------------- pre_norm


@wrong("post-norm", r"post|before|after|pre & norm")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer(x), gamma, beta, eps)


@wrong("no residual", r"residual|skip|x \+|\badd|missing|left out")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return sublayer(layer_norm(x, gamma, beta, eps))


@wrong(
    "adds the normalised x", r"normali|LayerNorm & x|untouched|itself|original|raw|residual|skip"
)
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    x = layer_norm(x, gamma, beta, eps)
    return x + sublayer(x)


@wrong(
    "norm on the output of the sublayer", r"before|input|first|sublayer\(LayerNorm|pre|of x & norm"
)
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + layer_norm(sublayer(x), gamma, beta, eps)


@right("as a composition of functions")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    norm = lambda z: layer_norm(z, gamma, beta, eps=eps)
    residual = lambda f: lambda z: np.add(f(z), z)
    return residual(lambda z: sublayer(norm(z)))(x)


@right("standard scores by hand")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    h = np.moveaxis(np.array(x), -1, 0)
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + eps)
    h = np.moveaxis(h, 0, -1)
    return sublayer(gamma * h + beta) + x


# ---------------------------------------------------------------- feed_forward


@wrong("no ReLU", r"relu|max|linear|negative")
def feed_forward(x, W1, b1, W2, b2):
    return (x @ W1 + b1) @ W2 + b2


@wrong("a ReLU on the output too", r"relu|max|negative & second|last|output|after|end|twice")
def feed_forward(x, W1, b1, W2, b2):
    relu = lambda z: np.where(z > 0, z, 0)
    return relu(relu(x @ W1 + b1) @ W2 + b2)


@wrong("GELU", r"gelu")
def feed_forward(x, W1, b1, W2, b2):
    return F.gelu(x @ W1 + b1) @ W2 + b2


@wrong("forgets b2", r"b2|second bias|bias")
def feed_forward(x, W1, b1, W2, b2):
    h = np.maximum(0, x @ W1 + b1)
    return h @ W2


@right("F.linear and nn.ReLU")
def feed_forward(x, W1, b1, W2, b2):
    return F.linear(nn.ReLU()(F.linear(x, W1.T, b1)), W2.T, b2)


@right("position by position in float64")
def feed_forward(x, W1, b1, W2, b2):
    def one(v):
        h = v.astype(np.float64) @ W1 + b1
        return h.clip(min=0) @ W2 + b2

    return np.array([one(v) for v in x.reshape(-1, x.shape[-1])]).reshape(*x.shape[:-1], len(b2))


# ---------------------------------------------------------------- encoder_layer


@wrong("pre-norm", r"pre|post|before|after & norm")
def encoder_layer(x, p, mask=None):
    h = layer_norm(x, *p["norm1"])
    x = x + multi_head_attention(h, mask=mask, **p["attn"])
    h = layer_norm(x, *p["norm2"])
    return x + feed_forward(h, **p["ffn"])


@wrong("does not pass the mask on", r"mask")
def encoder_layer(x, p, mask=None):
    x = add_and_norm(x, multi_head_attention(x, **p["attn"]), *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("norm1 for both", r"norm2")
def encoder_layer(x, p, mask=None):
    gamma, beta = p["norm1"]
    a = multi_head_attention(x, mask=mask, **p["attn"])
    x = layer_norm(x + a, gamma, beta)
    f = feed_forward(x, **p["ffn"])
    return layer_norm(x + f, gamma, beta)


@wrong(
    "the second skip starts at the layer's input",
    r"residual|skip|second|\badd & input|first|x|norm1|attention",
)
def encoder_layer(x, p, mask=None):
    attn_out = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    ffn_out = feed_forward(attn_out, **p["ffn"])
    return add_and_norm(x, ffn_out, *p["norm2"])


@right("a loop over (norm, sublayer)")
def encoder_layer(x, p, mask=None):
    steps = [
        (p["norm1"], lambda z: multi_head_attention(z, mask=mask, **p["attn"])),
        (p["norm2"], lambda z: feed_forward(z, **p["ffn"])),
    ]
    for (gamma, beta), f in steps:
        x = layer_norm(np.add(x, f(x)), gamma, beta)
    return x


@right("torch functions throughout")
def encoder_layer(x, p, mask=None):
    a, f = p["attn"], p["ffn"]
    heads = lambda z: z.unflatten(-1, (a["num_heads"], -1)).transpose(1, 2)
    m = mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask
    att = F.scaled_dot_product_attention(
        heads(x @ a["W_q"]), heads(x @ a["W_k"]), heads(x @ a["W_v"]), attn_mask=m
    )
    x = x + att.transpose(1, 2).flatten(2) @ a["W_o"]
    x = F.layer_norm(x, x.shape[-1:], *p["norm1"])
    x = x + torch.relu(x @ f["W1"] + f["b1"]) @ f["W2"] + f["b2"]
    return F.layer_norm(x, x.shape[-1:], *p["norm2"])


# ---------------------------------------------------------------- make_stack


@wrong("the same layer n times", r"same|share|copy|deepcopy")
def make_stack(layer, n):
    return nn.Sequential(*[layer] * n)


@wrong("layers in a plain Python list", r"list & register|ModuleList|parameters|Sequential")
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


@wrong("one layer too many", r"n ?\+ ?1|too many|one more|original|itself|extra")
def make_stack(layer, n):
    stack = nn.Sequential(layer)
    for i in range(n):
        stack.append(copy.deepcopy(layer))
    return stack


@wrong("shallow copies share the weights", r"shallow|copy\.copy|deepcopy|deep")
def make_stack(layer, n):
    return nn.Sequential(*(copy.copy(layer) for _ in range(n)))


@right("a ModuleList in a module of its own")
def make_stack(layer, n):
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList()
            for _ in range(n):
                self.blocks.append(copy.deepcopy(layer))

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    return Encoder()


@right("recursion, a nest of Sequentials")
def make_stack(layer, n):
    if n == 0:
        return nn.Identity()
    return nn.Sequential(copy.deepcopy(layer), make_stack(layer, n - 1))


# ---------------------------------------------------------------- cross_attention


@wrong("queries from memory, keys and values from dec", r"swap|quer|exchang & memory|dec")
def cross_attention(dec, memory, W_q, W_k, W_v):
    return attention(memory @ W_q, dec @ W_k, dec @ W_v)


@wrong("self-attention: memory unused", r"memory")
def cross_attention(dec, memory, W_q, W_k, W_v):
    Q, K, V = dec @ W_q, dec @ W_k, dec @ W_v
    return softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])) @ V


@wrong("no scaling", r"scal|√|sqrt|divi")
def cross_attention(dec, memory, W_q, W_k, W_v):
    Q = dec @ W_q
    K = memory @ W_k
    V = memory @ W_v
    scores = Q @ np.swapaxes(K, -1, -2)
    return softmax(scores) @ V


@wrong("keys and values swapped", r"W_k|keys & W_v|values")
def cross_attention(dec, memory, W_q, W_k, W_v):
    Q, V, K = dec @ W_q, memory @ W_k, memory @ W_v
    if K.shape[-1] != Q.shape[-1]:
        Q, V, K = dec @ W_q, memory @ W_v, memory @ W_k
    return attention(Q, K, V)


@right("einsum all the way")
def cross_attention(dec, memory, W_q, W_k, W_v):
    S = np.einsum("...td,dk,ek,...se->...ts", dec, W_q, W_k, memory, optimize=True)
    S = S / W_k.shape[1] ** 0.5
    S = np.exp(S - S.max(-1, keepdims=True))
    return np.einsum(
        "...ts,...sd,dv->...tv", S / S.sum(-1, keepdims=True), memory, W_v, optimize=True
    )


@right("torch scaled_dot_product_attention")
def cross_attention(dec, memory, W_q, W_k, W_v):
    q, k, v = dec.matmul(W_q), memory.matmul(W_k), memory.matmul(W_v)
    return torch.softmax(q @ k.mT * k.shape[-1] ** -0.5, dim=-1) @ v


# ---------------------------------------------------------------- decoder_layer


@wrong("no causal mask", r"causal|mask|future|later")
def decoder_layer(y, memory, p):
    y = add_and_norm(y, multi_head_attention(y, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("never looks at memory", r"memory")
def decoder_layer(y, memory, p):
    mask = causal_mask(y.shape[1])
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("pre-norm", r"pre|post|before|after & norm")
def decoder_layer(y, memory, p):
    mask = causal_mask(y.shape[1])
    y = y + multi_head_attention(layer_norm(y, *p["norm1"]), mask=mask, **p["self"])
    y = y + multi_head_attention(layer_norm(y, *p["norm2"]), memory=memory, **p["cross"])
    return y + feed_forward(layer_norm(y, *p["norm3"]), **p["ffn"])


@wrong("no skip around cross-attention", r"residual|skip|add|\+ & cross|second|memory")
def decoder_layer(y, memory, p):
    mask = causal_mask(y.shape[1])
    y = add_and_norm(y, multi_head_attention(y, mask=mask, **p["self"]), *p["norm1"])
    y = layer_norm(multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@right("a list of steps")
def decoder_layer(y, memory, p):
    T = y.shape[-2]
    sees = np.arange(T)[:, None] >= np.arange(T)[None]
    for i, f in enumerate(
        [
            lambda z: multi_head_attention(z, mask=sees, **p["self"]),
            lambda z: multi_head_attention(z, memory=memory, **p["cross"]),
            lambda z: feed_forward(z, **p["ffn"]),
        ],
        1,
    ):
        y = add_and_norm(f(y), y, *p[f"norm{i}"])
    return y


@right("through encoder_layer")
def decoder_layer(y, memory, p):
    h = multi_head_attention(y, mask=np.tri(y.shape[1], dtype=bool), **p["self"])
    y = layer_norm(y + h, *p["norm1"])
    y = layer_norm(y + multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    hidden = y @ p["ffn"]["W1"] + p["ffn"]["b1"]
    hidden = hidden * (hidden > 0)
    return layer_norm(y + hidden @ p["ffn"]["W2"] + p["ffn"]["b2"], *p["norm3"])


# ---------------------------------------------------------------- next_token_logits


@wrong("logits of every position", r"last & position|token|every|all")
def next_token_logits(h, W_vocab):
    return h @ W_vocab


@wrong("h[-1]: the last sentence of a batch", r"batch|sentence|h\[-1\]|-2")
def next_token_logits(h, W_vocab):
    return h[-1] @ W_vocab


@wrong("gives probabilities", r"softmax|probabilit & logit")
def next_token_logits(h, W_vocab):
    return softmax(h[..., -1, :] @ W_vocab)


@wrong("the mean of all positions", r"mean|averag & last")
def next_token_logits(h, W_vocab):
    return h.mean(axis=-2) @ W_vocab


@right("all logits by tensordot, then the last")
def next_token_logits(h, W_vocab):
    return np.tensordot(h, W_vocab, axes=1).take(-1, axis=-2)


@right("one-hot for the last position")
def next_token_logits(h, W_vocab):
    pick = np.zeros(h.shape[-2])
    pick[-1] = 1
    return np.einsum("...td,t,dv->...v", h, pick, W_vocab)


# ---------------------------------------------------------------- next_token_probs


@wrong("multiplies by the temperature", r"temperature & divi|multipl|/")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits * temperature)
    if top_k is not None:
        order = np.argsort(-p, kind="stable")
        p[order[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        order = np.argsort(-p, kind="stable")
        p[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
        p = p / p.sum()
    return p


@wrong("does not renormalise", r"sum|normali|1 & (1|one)|renormal|divide|total")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    if top_k is not None:
        order = np.argsort(-p, kind="stable")
        p[order[top_k:]] = 0
    if top_p is not None:
        order = np.argsort(-p, kind="stable")
        total = p.sum()
        p[order[(np.cumsum(p[order]) - p[order]) / total >= top_p]] = 0
    return p


@wrong(
    "drops the token that crosses top_p",
    r"top.?p|nucleus & reach|cross|smallest|exceed|first|empty|one too few|over",
)
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    probs = softmax(logits / temperature)
    if top_k is not None:
        keep = np.argsort(-probs, kind="stable")[:top_k]
        cut = np.zeros_like(probs)
        cut[keep] = probs[keep]
        probs = cut / cut.sum()
    if top_p is not None:
        order = np.argsort(-probs, kind="stable")
        cum = np.cumsum(probs[order])
        keep = order[cum <= top_p]
        if len(keep) == 0:
            keep = order[:1]
        cut = np.zeros_like(probs)
        cut[keep] = probs[keep]
        probs = cut / cut.sum()
    return probs


@wrong("top-k and top-p ignored when both are given", r"top.?p & top.?k|both|then|elif|also|after")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p, kind="stable")
    if top_k is not None:
        p[order[top_k:]] = 0
    elif top_p is not None:
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
    return p / p.sum()


@right("torch topk and sort")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits.double() / temperature
    order = torch.sort(z, descending=True, stable=True).indices
    z = z[order]
    if top_k is not None:
        z[top_k:] = -torch.inf
    if top_p is not None:
        p = torch.softmax(z, 0)
        z = z.masked_fill(p.cumsum(0) - p >= top_p, -torch.inf)
    out = torch.zeros_like(z)
    out[order] = torch.softmax(z, 0)
    return out


@right("a Python loop over the ranked tokens")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(np.asarray(logits, dtype=float) / temperature)
    ranked = sorted(range(len(p)), key=lambda i: -p[i])
    if top_k is not None:
        ranked = ranked[:top_k]
    mass = sum(p[i] for i in ranked)
    kept, reached = [], 0.0
    for i in ranked:
        kept.append(i)
        reached += p[i] / mass
        if top_p is not None and reached >= top_p:
            break
    mass = sum(p[i] for i in kept)
    return np.array([p[i] / mass if i in kept else 0.0 for i in range(len(p))])


# ---------------------------------------------------------------- sample_token


@wrong("argmax", r"argmax|most likely|largest|greedy")
def sample_token(probs, rng):
    return int(np.argmax(probs))


@wrong("uniform draws", r"uniform|equal|same chance|alike|p=|probs|ignor")
def sample_token(probs, rng):
    return int(rng.integers(len(probs)))


@wrong("NumPy's global generator", r"rng|global|np\.random|generator|seed")
def sample_token(probs, rng):
    return int(np.random.choice(len(probs), p=probs / probs.sum()))


@wrong("gives the probability instead of the id", r"id|index|position & probabilit|value|id")
def sample_token(probs, rng):
    return rng.choice(probs, p=probs / probs.sum())


@right("searchsorted in the running sum")
def sample_token(probs, rng):
    cdf = np.cumsum(probs, dtype=np.float64)
    return int(np.searchsorted(cdf, rng.random() * cdf[-1], side="right"))


@right("the Gumbel trick")
def sample_token(probs, rng):
    with np.errstate(divide="ignore"):
        return int(np.argmax(np.log(probs) + rng.gumbel(size=len(probs))))


# ---------------------------------------------------------------- greedy_decode


@wrong("keeps the start token", r"start")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        nxt = int(np.argmax(step(ids)[-1]))
        ids.append(nxt)
        if nxt == end_id:
            break
    return ids


@wrong("feeds the last token only", r"last|whole|all|so far|only & ids|token|step")
def greedy_decode(step, start_id, end_id, max_len):
    out = []
    current = start_id
    for _ in range(max_len):
        current = int(np.argmax(step([current])[-1]))
        out.append(current)
        if current == end_id:
            break
    return out


@wrong("drops the end token", r"end")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        nxt = int(step(ids)[-1].argmax())
        if nxt == end_id:
            break
        ids.append(nxt)
    return ids[1:]


@wrong("never stops at the end token", r"end & stop|break|after|go")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        ids.append(int(np.argmax(step(ids)[-1])))
    return ids[1:]


@right("recursion")
def greedy_decode(step, start_id, end_id, max_len):
    def go(ids, left):
        if left == 0:
            return []
        nxt = int(np.argmax(step(ids), axis=-1)[-1])
        return [nxt] if nxt == end_id else [nxt, *go([*ids, nxt], left - 1)]

    return go([start_id], max_len)


@right("a generator with max over ids")
def greedy_decode(step, start_id, end_id, max_len):
    def words():
        ids = [start_id]
        for _ in range(max_len):
            row = list(step(list(ids))[-1])
            best = max(range(len(row)), key=row.__getitem__)
            yield best
            if best == end_id:
                return
            ids.append(best)

    return list(words())


# ---------------------------------------------------------------- shift_right


@wrong("roll: the last token comes round to the front", r"start_id|roll|last")
def shift_right(targets, start_id):
    return np.roll(targets, 1, axis=1)


@wrong("shifts to the left", r"left|right|front|first|begin")
def shift_right(targets, start_id):
    start = np.full((targets.shape[0], 1), start_id)
    return np.concatenate([targets[:, 1:], start], axis=1)


@wrong("keeps the last token", r"last|longer|T ?\+ ?1|one too")
def shift_right(targets, start_id):
    B, T = targets.shape
    return np.hstack([np.full((B, 1), start_id), targets])


@wrong("changes the targets", r"in place|in-place|copy|input|chang|new array")
def shift_right(targets, start_id):
    targets[:, 1:] = targets[:, :-1].copy()
    targets[:, 0] = start_id
    return targets


@right("F.pad in torch")
def shift_right(targets, start_id):
    return F.pad(targets, (1, -1), value=start_id)


@right("lists")
def shift_right(targets, start_id):
    return np.array([[start_id, *row[:-1]] for row in targets.tolist()], dtype=np.int64)


# ---------------------------------------------------------------- cross_entropy


@wrong("counts the padding", r"pad")
def cross_entropy(logits, targets, pad_id):
    V = logits.shape[-1]
    return F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1)).item()


@wrong("divides by all positions", r"pad & divi|mean|count|number|averag")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    B, T = targets.shape
    nll = -logp[np.arange(B)[:, None], np.arange(T), targets]
    return float((nll * (targets != pad_id)).mean())


@wrong("the sum", r"sum & mean|averag|divi")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    loss = 0.0
    for b in range(targets.shape[0]):
        for t in range(targets.shape[1]):
            if targets[b, t] != pad_id:
                loss -= logp[b, t, targets[b, t]]
    return float(loss)


@wrong("log of exp / sum, unstable", r"stable|overflow|inf|nan|max|large|underflow")
def cross_entropy(logits, targets, pad_id):
    e = np.exp(logits)
    probs = e / e.sum(axis=-1, keepdims=True)
    p = np.take_along_axis(probs, targets[..., None], axis=-1)[..., 0]
    real = targets != pad_id
    return float(-np.log(p[real]).mean())


@right("torch with ignore_index")
def cross_entropy(logits, targets, pad_id):
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=pad_id).item()


@right("logaddexp, a list of surprises")
def cross_entropy(logits, targets, pad_id):
    surprises = [
        np.logaddexp.reduce(z) - z[t]
        for z, t in zip(logits.astype(float).reshape(-1, logits.shape[-1]), targets.ravel())
        if t != pad_id
    ]
    return float(np.mean(surprises))


# ---------------------------------------------------------------- a second round, rarer slips


@wrong(
    "takes num_heads for the width of a head", r"num_heads & width|d_head|features|number of heads"
)
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, D // num_heads, num_heads).transpose(0, 2, 1, 3)


@wrong(
    "copies all features to every head",
    r"each head|every head|slice|all features|cop|repeat|share|D ?/",
)
def split_heads(x, num_heads):
    return np.repeat(x[:, None], num_heads, axis=1)


@wrong("mean of the heads", r"mean|averag & concat|side by side|join|keep")
def merge_heads(x):
    return x.mean(axis=1)


@wrong(
    "stacks the heads along the tokens",
    r"token|axis|last|feature|wrong & concat|behind|long|side by side",
)
def merge_heads(x):
    return np.concatenate(list(x.transpose(1, 0, 2, 3)), axis=1)


@wrong("memory never used", r"memory")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    Q, K, V = (split_heads(x @ W, num_heads) for W in (W_q, W_k, W_v))
    S = attention_scores(Q, K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong("one mask per sentence meets the heads", r"mask & head|axis|None|batch")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    S = attention_scores(Q, K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        S = np.where(mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong("memory gives the keys only", r"memory & value")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    Q = split_heads(x @ W_q, num_heads)
    K = split_heads(src @ W_k, num_heads)
    V = split_heads((x if x.shape == src.shape else src) @ W_v, num_heads)
    S = attention_scores(Q, K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong("no scale at all", r"scal|√|sqrt|divi")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    S = attention_scores(Q, K)
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -np.inf)
    return merge_heads(softmax(S) @ V) @ W_o


@wrong("positions from 1", r"from 0|start|first|1")
def sinusoidal_positions(T, D):
    angle = np.arange(1, T + 1)[:, None] / 10000 ** (np.arange(0, D, 2) / D)
    pe = np.empty((T, D))
    pe[:, 0::2], pe[:, 1::2] = np.sin(angle), np.cos(angle)
    return pe


@wrong("exponent from i rather than 2i", r"exponent|2i|factor|doubl|half|twice")
def sinusoidal_positions(T, D):
    angle = np.arange(T)[:, None] / 10000 ** (np.arange(D // 2) / D)
    pe = np.empty((T, D))
    pe[:, 0::2], pe[:, 1::2] = np.sin(angle), np.cos(angle)
    return pe


@wrong("multiplies by the frequency's inverse", r"multipl|divi|/|inverse|invert|sign|minus")
def sinusoidal_positions(T, D):
    angle = np.arange(T)[:, None] * 10000 ** (np.arange(0, D, 2) / D)
    pe = np.empty((T, D))
    pe[:, 0::2], pe[:, 1::2] = np.sin(angle), np.cos(angle)
    return pe


@wrong("1000 for 10000", r"10[, ]?000")
def sinusoidal_positions(T, D):
    angle = np.arange(T)[:, None] / 1000 ** (np.arange(0, D, 2) / D)
    pe = np.empty((T, D))
    pe[:, 0::2], pe[:, 1::2] = np.sin(angle), np.cos(angle)
    return pe


@wrong("adds the position number itself", r"number|index|sin|0, 1, 2|count|table")
def add_positions(x):
    return x + np.arange(x.shape[-2])[:, None]


@wrong("the first sentence only", r"first|batch|every|all|sentence")
def add_positions(x):
    out = np.array(x)
    table = sinusoidal_positions(*x.shape[-2:])
    if x.ndim == 2:
        return out + table
    out[0] = out[0] + table
    return out


@wrong("statistics over tokens and features", r"token|word|row & last|axis|-1|whole|own")
def layer_norm(x, gamma, beta, eps=1e-5):
    m, v = x.mean(axis=(-2, -1), keepdims=True), x.var(axis=(-2, -1), keepdims=True)
    return (x - m) / np.sqrt(v + eps) * gamma + beta


@wrong("RMS norm: mean not taken off", r"mean|rms|cent")
def layer_norm(x, gamma, beta, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gamma + beta


@wrong("beta multiplied by gamma", r"beta & gamma|bracket|after|scal")
def layer_norm(x, gamma, beta, eps=1e-5):
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return ((x - m) / np.sqrt(v + eps) + beta) * gamma


@wrong("adds 1 to gamma", r"gamma & 1")
def layer_norm(x, gamma, beta, eps=1e-5):
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - m) / np.sqrt(v + eps) * (1 + gamma) + beta


@wrong("eps not passed on", r"eps")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer_out, gamma, beta)


@wrong("norms each, then adds", r"each|both|sum|before & norm")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x, gamma, beta, eps) + layer_norm(sublayer_out, gamma, beta, eps)


@wrong("eps not passed on", r"eps")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer(layer_norm(x, gamma, beta))


@wrong("the sublayer sees the raw x; the norm is added", r"LayerNorm|norm & sub-?layer")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return sublayer(x) + layer_norm(x, gamma, beta, eps)


@wrong("norm again at the end", r"again|end|twice|second|after|nothing & norm")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return layer_norm(x + sublayer(layer_norm(x, gamma, beta, eps)), gamma, beta, eps)


@wrong("b1 after the ReLU", r"b1 & relu|before|inside|after|maximum")
def feed_forward(x, W1, b1, W2, b2):
    return (np.maximum(0, x @ W1) + b1) @ W2 + b2


@wrong("adds x: residual inside", r"residual|x is added|add")
def feed_forward(x, W1, b1, W2, b2):
    return x + np.maximum(0, x @ W1 + b1) @ W2 + b2


@wrong("absolute value for ReLU", r"abs|sign|negative")
def feed_forward(x, W1, b1, W2, b2):
    return np.abs(x @ W1 + b1) @ W2 + b2


@wrong("no residual around attention", r"residual|skip|add & attention|first|x")
def encoder_layer(x, p, mask=None):
    x = layer_norm(multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("feed-forward reads the layer's input", r"feed.forward|ffn & input|output|reads|x|h")
def encoder_layer(x, p, mask=None):
    h = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return add_and_norm(h, feed_forward(x, **p["ffn"]), *p["norm2"])


@wrong("no last norm", r"norm2|second & norm|add")
def encoder_layer(x, p, mask=None):
    h = add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])
    return h + feed_forward(h, **p["ffn"])


@wrong("feed-forward before attention", r"order|before|first|after|swap")
def encoder_layer(x, p, mask=None):
    x = add_and_norm(x, feed_forward(x, **p["ffn"]), *p["norm2"])
    return add_and_norm(x, multi_head_attention(x, mask=mask, **p["attn"]), *p["norm1"])


@wrong("fresh weights in each copy", r"reset|values|initial|random|start|same")
def make_stack(layer, n):
    stack = nn.Sequential(*[copy.deepcopy(layer) for _ in range(n)])
    for m in stack.modules():
        if hasattr(m, "reset_parameters"):
            m.reset_parameters()
    return stack


@wrong("every layer reads the input", r"input|output|before|previous|last|next|in turn|chain")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(n))

        def forward(self, x):
            for block in self.layers:
                out = block(x)
            return out

    return Stack()


@wrong("a ModuleList, which can't be called", r"ModuleList & Sequential|forward|call")
def make_stack(layer, n):
    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])


@wrong("scales by the width of the decoder", r"d_k|width|√|sqrt|scal")
def cross_attention(dec, memory, W_q, W_k, W_v):
    S = (dec @ W_q) @ np.swapaxes(memory @ W_k, -1, -2) / np.sqrt(dec.shape[-1])
    return softmax(S) @ (memory @ W_v)


@wrong("softmax over the decoder's words", r"axis|last|keys|memory")
def cross_attention(dec, memory, W_q, W_k, W_v):
    S = (dec @ W_q) @ np.swapaxes(memory @ W_k, -1, -2) / np.sqrt(W_k.shape[-1])
    return softmax(S, axis=-2) @ (memory @ W_v)


@wrong("returns the weights too", r"two|both|only|alone|weights|tuple")
def cross_attention(dec, memory, W_q, W_k, W_v):
    S = (dec @ W_q) @ np.swapaxes(memory @ W_k, -1, -2) / np.sqrt(W_k.shape[-1])
    A = softmax(S)
    return A @ (memory @ W_v), A


@wrong("norm2 used twice", r"norm3")
def decoder_layer(y, memory, p):
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm2"])


@wrong("cross-attention first", r"order|before|first|after|swap")
def decoder_layer(y, memory, p):
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("self weights for cross too", r"p\['cross'\]|p\[\"cross\"\]|cross")
def decoder_layer(y, memory, p):
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["self"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("memory as the queries", r"quer|memory")
def decoder_layer(y, memory, p):
    y = add_and_norm(
        y, multi_head_attention(y, mask=causal_mask(y.shape[1]), **p["self"]), *p["norm1"]
    )
    if memory.shape == y.shape:
        y = add_and_norm(y, multi_head_attention(memory, memory=y, **p["cross"]), *p["norm2"])
    else:
        y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@wrong("the first position", r"first|position 0 & last")
def next_token_logits(h, W_vocab):
    return h[..., 0, :] @ W_vocab


@wrong("keeps an axis of one position", r"axis|shape|\(B, V\)|1")
def next_token_logits(h, W_vocab):
    return h[..., -1:, :] @ W_vocab


@wrong("the id of the largest", r"argmax|id|index|choose|logits")
def next_token_logits(h, W_vocab):
    return np.argmax(h[..., -1, :] @ W_vocab, axis=-1)


@wrong("top-p first, then top-k", r"order|before|after|first|then & top")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p, kind="stable")
    if top_p is not None:
        p[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
        p = p / p.sum()
    if top_k is not None:
        p[order[top_k:]] = 0
        p = p / p.sum()
    return p


@wrong("cut logits become 0", r"0|zero & -?inf|−∞|logit")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits / temperature
    order = np.argsort(-z, kind="stable")
    if top_k is not None:
        z[order[top_k:]] = 0
    p = softmax(z)
    if top_p is not None:
        order = np.argsort(-p, kind="stable")
        p[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
        p = p / p.sum()
    return p


@wrong("top-p as a threshold for each token", r"sum|cumul|running|together|min.?p & top")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p, kind="stable")
    if top_k is not None:
        p[order[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        keep = p >= top_p
        keep[order[0]] = True
        p = np.where(keep, p, 0)
        p = p / p.sum()
    return p


@wrong("temperature after the softmax", r"temperature & before|softmax|logits")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits) / temperature
    p = p / p.sum()
    order = np.argsort(-p, kind="stable")
    if top_k is not None:
        p[order[top_k:]] = 0
        p = p / p.sum()
    if top_p is not None:
        p[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
        p = p / p.sum()
    return p


@wrong("keeps one too many in top-k", r"top.?k|one too many|k ?\+ ?1")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    p = softmax(logits / temperature)
    order = np.argsort(-p, kind="stable")
    if top_k is not None:
        p[order[top_k + 1 :]] = 0
        p = p / p.sum()
    if top_p is not None:
        p[order[np.cumsum(p[order]) - p[order] >= top_p]] = 0
        p = p / p.sum()
    return p


@wrong("a new generator with a fixed seed", r"rng|seed|generator")
def sample_token(probs, rng):
    rng = np.random.default_rng(0)
    return int(rng.choice(len(probs), p=probs / probs.sum()))


@wrong("softmax on probabilities", r"softmax|again|already|twice")
def sample_token(probs, rng):
    return int(rng.choice(len(probs), p=softmax(probs.astype(float))))


@wrong("ids from 1", r"0|one|shift|from|off")
def sample_token(probs, rng):
    return int(rng.choice(np.arange(1, len(probs) + 1), p=probs / probs.sum()))


@wrong("reads the first row", r"last & first|row|position|-1")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while len(ids) <= max_len:
        ids.append(int(np.argmax(step(ids)[0])))
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("one word too few", r"max_len|too few|one")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while len(ids) < max_len:
        ids.append(int(np.argmax(step(ids)[-1])))
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("one word too many", r"max_len|too many|one")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    while ids[-1] != end_id and len(ids) <= max_len + 1:
        ids.append(int(np.argmax(step(ids)[-1])))
    return ids[1:]


@wrong("argmax of the flattened logits", r"last|row|axis|flatten|whole|\[-1\]")
def greedy_decode(step, start_id, end_id, max_len):
    ids = [start_id]
    for _ in range(max_len):
        logits = step(ids)
        ids.append(int(np.argmax(logits)) % logits.shape[-1])
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("shifts along the batch", r"batch|axis|sentence|row|column")
def shift_right(targets, start_id):
    out = np.full_like(targets, start_id)
    out[1:] = targets[:-1]
    return out


@wrong("replaces the first target", r"first|replac|overwr|shift|lost")
def shift_right(targets, start_id):
    out = targets.copy()
    out[:, 0] = start_id
    return out


@wrong("drops the first instead of the last", r"last|first")
def shift_right(targets, start_id):
    start = np.full((len(targets), 1), start_id)
    return np.concatenate([start, targets[:, 1:]], axis=1)


@wrong("mean of sentence means", r"sentence|each & mean|averag")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logp, targets[..., None], -1)[..., 0]
    real = targets != pad_id
    rows = [n[r].mean() for n, r in zip(nll, real) if r.any()]
    return float(np.mean(rows))


@wrong("no minus", r"minus|sign|negative")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    ll = np.take_along_axis(logp, targets[..., None], -1)[..., 0]
    return float(ll[targets != pad_id].mean())


@wrong("base 2", r"log2|base|natural|bits")
def cross_entropy(logits, targets, pad_id):
    z = logits.astype(float) - logits.max(-1, keepdims=True)
    logp = z / np.log(2) - np.log2(np.exp(z).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logp, targets[..., None], -1)[..., 0]
    return float(nll[targets != pad_id].mean())


@wrong("pad is always 0", r"pad_id|pad & 0|argument|ignor")
def cross_entropy(logits, targets, pad_id):
    V = logits.shape[-1]
    return F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=0).item()


@wrong("log of the mean probability", r"log & mean|averag|each")
def cross_entropy(logits, targets, pad_id):
    p = np.take_along_axis(softmax(logits.astype(float)), targets[..., None], -1)[..., 0]
    return float(-np.log(p[targets != pad_id].mean()))


# ---------------------------------------------------------------- more unusual right answers


@right("fancy index of the features")
def split_heads(x, num_heads):
    D = x.shape[2]
    own = np.arange(D).reshape(num_heads, D // num_heads)
    return np.moveaxis(x[:, :, own], 2, 1)


@right("einsum to the new order, then ravel of each token")
def merge_heads(x):
    B, H, T, d = x.shape
    return np.einsum("bhtd->bthd", x).copy().reshape(B, T, -1)


@right("additive -1e9 mask, scaled queries, heads in the batch axis")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = x if memory is None else memory
    B, T, D = x.shape
    S, d = src.shape[1], D // num_heads
    q = (x @ W_q * d**-0.5).reshape(B, T, num_heads, d).swapaxes(1, 2).reshape(-1, T, d)
    k = (src @ W_k).reshape(B, S, num_heads, d).swapaxes(1, 2).reshape(-1, S, d)
    v = (src @ W_v).reshape(B, S, num_heads, d).swapaxes(1, 2).reshape(-1, S, d)
    scores = q @ k.transpose(0, 2, 1)
    if mask is not None:
        full = np.broadcast_to(mask, (B, T, S))
        scores = scores + np.repeat((1.0 - full) * -1e9, num_heads, axis=0)
    out = (softmax(scores) @ v).reshape(B, num_heads, T, d)
    return np.concatenate(list(out.swapaxes(0, 1)), axis=-1) @ W_o


@right("exp(-log) as in Annotated Transformer, torch float32")
def sinusoidal_positions(T, D):
    pe = torch.zeros(T, D)
    position = torch.arange(0, T).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, D, 2) * -(math.log(10000.0) / D))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@right("np.fromfunction")
def sinusoidal_positions(T, D):
    def entry(pos, j):
        angle = pos / np.power(10000, (2 * (j // 2)) / D)
        return np.where(j % 2 == 0, np.sin(angle), np.cos(angle))

    return np.fromfunction(entry, (T, D))


@right("a loop over places into a copy")
def add_positions(x):
    y = x.astype(np.float64)
    for pos in range(x.shape[-2]):
        for i in range(0, x.shape[-1], 2):
            w = pos / 10000 ** (i / x.shape[-1])
            y[..., pos, i] += math.sin(w)
            y[..., pos, i + 1] += math.cos(w)
    return y


@right("E[x²] − E[x]² in float64, addcdiv style")
def layer_norm(x, gamma, beta, eps=1e-5):
    x = np.asarray(x, dtype=np.float64)
    x = x - x[..., :1]
    mean = np.mean(x, -1, keepdims=True)
    var = np.clip(np.mean(x * x, -1, keepdims=True) - mean**2, 0, None)
    return (x - mean) * (gamma / np.sqrt(var + eps)) + beta


@right("torch.var_mean")
def layer_norm(x, gamma, beta, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return torch.addcmul(beta, gamma.expand_as(x), (x - mean) * torch.rsqrt(var + eps))


@right("F.layer_norm")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return F.layer_norm(x.add(sublayer_out), [x.size(-1)], weight=gamma, bias=beta, eps=eps)


@right("F.layer_norm, in place on its own result")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    out = sublayer(layer_norm(x, gamma, beta, eps))
    return torch.add(out, x) if isinstance(x, torch.Tensor) else np.sum([x, out], axis=0)


@right("bias as a column of ones")
def feed_forward(x, W1, b1, W2, b2):
    one = np.ones((*x.shape[:-1], 1))
    h = np.concatenate([x, one], -1) @ np.vstack([W1, b1])
    h = np.concatenate([(h + abs(h)) / 2, one], -1)
    return h @ np.vstack([W2, b2])


@right("sentence by sentence")
def encoder_layer(x, p, mask=None):
    done = []
    for i in range(len(x)):
        own = mask[i] if mask is not None and mask.ndim == 3 else mask
        s = x[i : i + 1]
        s = add_and_norm(s, multi_head_attention(s, mask=own, **p["attn"]), *p["norm1"])
        done.append(add_and_norm(s, feed_forward(s, **p["ffn"]), *p["norm2"]))
    return np.concatenate(done)


@right("state_dict into copies, OrderedDict")
def make_stack(layer, n):
    stack = nn.Sequential()
    for i in range(n):
        twin = copy.deepcopy(layer)
        twin.load_state_dict(layer.state_dict())
        stack.add_module(f"layer{i}", twin)
    return stack


@right("multi-head attention with one head, identity W_o")
def cross_attention(dec, memory, W_q, W_k, W_v):
    def one(q, m):
        rows = []
        for word in q @ W_q:
            scores = (m @ W_k) @ word / math.sqrt(len(word))
            w = np.exp(scores - scores.max())
            rows.append(w @ (m @ W_v) / w.sum())
        return np.stack(rows)

    if dec.ndim == 2:
        return one(dec, memory)
    return np.stack([cross_attention(d, m, W_q, W_k, W_v) for d, m in zip(dec, memory)])


@right("prefix by prefix, recursion")
def decoder_layer(y, memory, p):
    T = y.shape[1]
    rows = [
        multi_head_attention(y[:, t : t + 1], memory=y[:, : t + 1], **p["self"]) for t in range(T)
    ]
    y = add_and_norm(y, np.concatenate(rows, 1), *p["norm1"])
    y = add_and_norm(y, multi_head_attention(y, memory=memory, **p["cross"]), *p["norm2"])
    return add_and_norm(y, feed_forward(y, **p["ffn"]), *p["norm3"])


@right("torch select and linear")
def next_token_logits(h, W_vocab):
    return F.linear(h.select(-2, h.size(-2) - 1), W_vocab.T)


@right("Hugging Face's way: masked logits, sorted ascending")
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits.double() / temperature
    if top_k is not None:
        keep = torch.argsort(z, descending=True, stable=True)[: min(top_k, len(z))]
        bias = torch.full_like(z, float("-inf"))
        bias[keep] = 0
        z = z + bias
    if top_p is not None:
        sorted_z, index = torch.sort(z, descending=True, stable=True)
        cum = sorted_z.softmax(-1).cumsum(-1)
        remove = cum >= top_p
        remove[1:] = remove[:-1].clone()
        remove[0] = False
        z = z.masked_fill(remove[torch.argsort(index)], float("-inf"))
    return z.softmax(-1)


@right("multinomial counts")
def sample_token(probs, rng):
    p = np.asarray(probs, dtype=np.float64)
    return int(rng.multinomial(1, p / p.sum()).argmax())


@right("torch.multinomial")
def sample_token(probs, rng):
    return torch.multinomial(probs, 1, generator=rng).item()


@right("a race of exponentials")
def sample_token(probs, rng):
    with np.errstate(divide="ignore"):
        return int(np.argmin(rng.exponential(size=len(probs)) / probs))


@right("a loop that walks through the probabilities")
def sample_token(probs, rng):
    r = rng.random() * float(np.sum(probs))
    for i, p in enumerate(probs):
        r -= p
        if r < 0:
            return i
    return int(np.flatnonzero(probs)[-1])


@right("while True")
def greedy_decode(step, start_id, end_id, max_len):
    generated = []
    while True:
        if len(generated) >= max_len or (generated and generated[-1] == end_id):
            return generated
        logits = np.array(step([start_id, *generated]))
        generated += [logits[-1].argmax().item()]


@right("roll, then overwrite")
def shift_right(targets, start_id):
    out = np.roll(targets, shift=1, axis=-1)
    out[:, 0] = start_id
    return out


@right("pad, then cut")
def shift_right(targets, start_id):
    return np.pad(targets, ((0, 0), (1, 0)), constant_values=start_id)[:, :-1]


@right("one-hot times log_softmax in torch")
def cross_entropy(logits, targets, pad_id):
    logp = torch.log_softmax(logits.double(), -1)
    hot = F.one_hot(targets, logits.shape[-1])
    real = (targets != pad_id).double()
    return float(-((logp * hot).sum(-1) * real).sum() / real.sum())


@right("a 0-d array back, nan for padding")
def cross_entropy(logits, targets, pad_id):
    m = logits.max(-1)
    lse = m + np.log(np.exp(logits - m[..., None]).sum(-1))
    B, T = np.indices(targets.shape)
    loss = lse - logits[B, T, targets]
    return np.nanmean(np.where(targets == pad_id, np.nan, loss))


# ---------------------------------------------------------------- a third round


@wrong("returns the list of heads' slices with the tokens last", r"token|transpos|swap|axes|axis")
def split_heads(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads).transpose(0, 2, 3, 1)


@wrong("loses the batch: only the first sentence", r"batch|first|sentence")
def split_heads(x, num_heads):
    T, D = x[0].shape
    return x[0].reshape(T, num_heads, D // num_heads).transpose(1, 0, 2)[None]


@wrong("only the first head", r"first|head|all|other")
def merge_heads(x):
    return x[:, 0]


@wrong("mixes the batch and the tokens", r"batch|sentence|axes|axis|transpos")
def merge_heads(x):
    B, H, T, Dh = x.shape
    return x.transpose(2, 0, 1, 3).reshape(B, T, H * Dh)


@wrong("softmax over the queries", r"axis|last|keys|row")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    S = attention_scores(Q, K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -1e9)
    return merge_heads(softmax(S, axis=-2) @ V) @ W_o


@wrong("mask after the softmax", r"mask & after|before|softmax|sum")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    A = softmax(attention_scores(Q, K) / np.sqrt(Q.shape[-1]))
    if mask is not None:
        A = A * (mask[:, None] if mask.ndim == 3 else mask)
    return merge_heads(A @ V) @ W_o


@wrong("W_o before the heads are joined, transposed", r"W_o|output")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    Q, K, V = (split_heads(z, num_heads) for z in (x @ W_q, src @ W_k, src @ W_v))
    S = attention_scores(Q, K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        S = np.where(mask[:, None] if mask.ndim == 3 else mask, S, -1e9)
    return merge_heads(softmax(S) @ V) @ W_o.T


@wrong("one head only: num_heads ignored", r"num_heads|one head|single|split")
def multi_head_attention(x, W_q, W_k, W_v, W_o, num_heads, mask=None, memory=None):
    src = memory if memory is not None else x
    Q, K, V = x @ W_q, src @ W_k, src @ W_v
    S = attention_scores(Q, K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        S = np.where(mask, S, -1e9)
    return softmax(S) @ V @ W_o


@wrong("sines only", r"cos")
def sinusoidal_positions(T, D):
    j = np.arange(D)
    return np.sin(np.arange(T)[:, None] / 10000 ** (2 * (j // 2) / D))


@wrong("divides by D/2 − 1 as tensor2tensor", r"exponent|D|divi|2i ?/|last")
def sinusoidal_positions(T, D):
    n = D // 2
    w = np.exp(-np.log(10000) * np.arange(n) / max(n - 1, 1))
    angle = np.arange(T)[:, None] * w
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(T, D)


@wrong("degrees", r"degree|radian|π|pi\b")
def sinusoidal_positions(T, D):
    angle = np.deg2rad(np.arange(T)[:, None] / 10000 ** (np.arange(0, D, 2) / D))
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(T, D)


@wrong("transposed table", r"transpos|\(T, D\)|axes|swap|row")
def sinusoidal_positions(T, D):
    angle = np.arange(T)[:, None] / 10000 ** (np.arange(0, D, 2) / D)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(T, D).T


@wrong("only the table comes back", r"x|words|embedding & add|missing|\+|sum")
def add_positions(x):
    return np.broadcast_to(sinusoidal_positions(x.shape[-2], x.shape[-1]), x.shape).copy()


@wrong("multiplies", r"multipl|product & add|\+|sum")
def add_positions(x):
    return x * sinusoidal_positions(x.shape[-2], x.shape[-1])


@wrong("no eps", r"eps")
def layer_norm(x, gamma, beta, eps=1e-5):
    with np.errstate(all="ignore"):
        return gamma * (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) + beta


@wrong("gamma and beta swapped", r"gamma & beta & swap|exchang|order|multipl|wrong way")
def layer_norm(x, gamma, beta, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return beta * c / np.sqrt(x.var(-1, keepdims=True) + eps) + gamma


@wrong("no beta", r"beta")
def layer_norm(x, gamma, beta, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return gamma * c / np.sqrt(x.var(-1, keepdims=True) + eps)


@wrong("no gamma", r"gamma")
def layer_norm(x, gamma, beta, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt(x.var(-1, keepdims=True) + eps) + beta


@wrong("adds in place", r"in place|in-place|\+=|input|copy|chang")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    x += sublayer_out
    return layer_norm(x, gamma, beta, eps)


@wrong("multiplies instead of adding", r"multipl|product & add|sum|\+")
def add_and_norm(x, sublayer_out, gamma, beta, eps=1e-5):
    return layer_norm(x * sublayer_out, gamma, beta, eps)


@wrong("never calls the sublayer", r"sub-?layer & missing|never|call|left out|not")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + layer_norm(x, gamma, beta, eps)


@wrong("no norm at all", r"norm & missing|never|left out|no |without|not")
def pre_norm(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer(x)


@wrong("b1 forgotten", r"b1|first bias")
def feed_forward(x, W1, b1, W2, b2):
    return np.maximum(0, x @ W1) @ W2 + b2


@wrong("ReLU before the first product", r"relu|max & before|x|first|after|place|between")
def feed_forward(x, W1, b1, W2, b2):
    return (np.maximum(0, x) @ W1 + b1) @ W2 + b2


@wrong("sigmoid", r"sigmoid")
def feed_forward(x, W1, b1, W2, b2):
    return 1 / (1 + np.exp(-(x @ W1 + b1))) @ W2 + b2


@wrong("minimum for maximum", r"min|maximum|positive|negative")
def feed_forward(x, W1, b1, W2, b2):
    return np.minimum(0, x @ W1 + b1) @ W2 + b2


@wrong("n − 1 layers", r"n ?[-−] ?1|too few|one layer|number of layers|n layers")
def make_stack(layer, n):
    return nn.Sequential(*[copy.deepcopy(layer) for _ in range(1, n)])


@wrong("residual around each layer", r"residual|add|skip|\+")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(n))

        def forward(self, x):
            for f in self.layers:
                x = x + f(x)
            return x

    return Stack()


@wrong("returns after the first layer", r"first|return|loop|inden")
def make_stack(layer, n):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(n))

        def forward(self, x):
            for f in self.layers:
                return f(x)

    return Stack()


@wrong("one deepcopy, used n times", r"same|share|one copy|each time|deepcopy")
def make_stack(layer, n):
    twin = copy.deepcopy(layer)
    return nn.Sequential(*[twin for _ in range(n)])


@wrong("id and probability", r"two|tuple|alone|only")
def sample_token(probs, rng):
    i = int(rng.choice(len(probs), p=probs / probs.sum()))
    return i, probs[i]


@wrong("random.choices", r"rng|generator|global|seed")
def sample_token(probs, rng):
    return random.choices(range(len(probs)), weights=list(probs))[0]


@wrong("argmax of the whole history", r"start")
def greedy_decode(step, start_id, end_id, max_len):
    ids = []
    for _ in range(max_len):
        if not ids:
            ids.append(int(np.argmax(step([start_id])[-1])))
        else:
            ids.append(int(np.argmax(step(ids)[-1])))
        if ids[-1] == end_id:
            break
    return ids


@wrong("shift along the wrong way: drops T", r"one|short|longer|length|last|start|T")
def shift_right(targets, start_id):
    return targets[:, :-1]


@wrong("start is always 0", r"start_id")
def shift_right(targets, start_id):
    out = np.zeros_like(targets)
    out[:, 1:] = targets[:, :-1]
    return out


@wrong("start added to all", r"start_id|axis|shift")
def shift_right(targets, start_id):
    out = np.full_like(targets, start_id)
    out[:, 2:] = targets[:, :-2]
    return out


@wrong("perplexity", r"exp|perplex")
def cross_entropy(logits, targets, pad_id):
    V = logits.shape[-1]
    return (
        F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), ignore_index=pad_id)
        .exp()
        .item()
    )


@wrong("one loss per token", r"mean|averag|one number|scalar|per token|each")
def cross_entropy(logits, targets, pad_id):
    V = logits.shape[-1]
    return F.cross_entropy(
        logits.reshape(-1, V), targets.reshape(-1), ignore_index=pad_id, reduction="none"
    )


@wrong("softmax, then F.cross_entropy: twice", r"softmax & twice|again|already|logits|second")
def cross_entropy(logits, targets, pad_id):
    p = torch.softmax(logits, -1)
    V = p.shape[-1]
    return F.cross_entropy(p.reshape(-1, V), targets.reshape(-1), ignore_index=pad_id).item()


@wrong("argmax instead of the targets", r"argmax|target|likeliest|best")
def cross_entropy(logits, targets, pad_id):
    z = logits - logits.max(-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    return float(-logp.max(-1)[targets != pad_id].mean())
