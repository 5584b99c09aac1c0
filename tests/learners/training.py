"""Answers of learners to the exercises of notebook 13, written without looking at the checks."""
# ruff: noqa: B023, F811, F821, RUF059

from learners import right, wrong

# ---------------------------------------------------------------- lm_pairs


@wrong(
    "does not shift the targets", r"shift|next|one (place|position|step|token|later)|ahead|later"
)
def lm_pairs(ids):
    x = ids[..., :-1]
    y = ids[..., :-1]
    return x, y


@wrong("hands back targets first", r"swap|order|first|wrong way|exchang|revers")
def lm_pairs(ids):
    targets, inputs = ids[..., :-1], ids[..., 1:]
    return inputs, targets


@wrong("slices the batch instead of the tokens", r"batch|axis|sentences|rows")
def lm_pairs(ids):
    return ids[:-1], ids[1:]


@wrong(
    "rolls, so that the last target is the first word",
    r"roll|wrap|last|shorter|T ?[-−–] ?1|first token|drop|cut",
)
def lm_pairs(ids):
    return ids, np.roll(ids, -1, axis=-1)


@wrong("shifts by two", r"\btwo\b|\b2\b|one (place|position|step|token)|by one|next")
def lm_pairs(ids):
    return ids[..., :-2], ids[..., 2:]


@wrong("one target for the whole sentence", r"every|each|all|only the last|last token")
def lm_pairs(ids):
    return ids[..., :-1], ids[..., -1]


@wrong("keeps the last input", r"last|T ?[-−–] ?1|length|cut|shorter|drop")
def lm_pairs(ids):
    return ids, ids[..., 1:]


@wrong("two axes only", r"\.\.\.|any (number|leading)|axes|axis|indices|dimension")
def lm_pairs(ids):
    inputs = ids[:, :-1]
    targets = ids[:, 1:]
    return inputs, targets


@wrong("makes one long text of the batch", r"flat|batch|sentence|axes|axis|reshape|one (row|line)")
def lm_pairs(ids):
    stream = ids.reshape(-1)
    return stream[:-1], stream[1:]


@right("np.delete")
def lm_pairs(ids):
    return np.delete(ids, -1, axis=-1), np.delete(ids, 0, axis=-1)


@right("torch narrow, as a list")
def lm_pairs(ids):
    n = ids.size(-1) - 1
    return [ids.narrow(-1, start, n) for start in (0, 1)]


@right("indices and np.take")
def lm_pairs(ids):
    at = np.arange(ids.shape[-1] - 1)
    return np.take(ids, at, axis=-1), np.take(ids, at + 1, axis=-1)


# ---------------------------------------------------------------- combined_mask


@wrong("forgets the padding", r"padd?|pad_id")
def combined_mask(ids, pad_id):
    B, T = ids.shape
    return np.broadcast_to(causal_mask(T), (B, 1, T, T))


@wrong("forgets the causal part", r"causal|future|later|tril|look ahead")
def combined_mask(ids, pad_id):
    B, T = ids.shape
    real = (ids != pad_id)[:, None, None, :]
    return np.repeat(real, T, axis=2)


@wrong("or instead of and", r"\bor\b|\band\b|&|both|\|")
def combined_mask(ids, pad_id):
    T = ids.shape[1]
    causal = np.tril(np.ones((T, T), dtype=bool))
    return (ids != pad_id)[:, None, None, :] | causal


@wrong("hides padded queries too", r"quer|row")
def combined_mask(ids, pad_id):
    real = ids != pad_id
    pad = real[:, :, None] & real[:, None, :]
    return (pad & causal_mask(ids.shape[1]))[:, None]


@wrong("padding on the query axis", r"quer|key|axis|column|row|transpos")
def combined_mask(ids, pad_id):
    real = (ids != pad_id)[:, None, :, None]
    return real & causal_mask(ids.shape[-1])


@wrong("True where blocked", r"invert|True|opposite|other way|~|not")
def combined_mask(ids, pad_id):
    T = ids.shape[1]
    future = np.triu(np.ones((T, T)), k=1) == 1
    padded = ids == pad_id
    return padded[:, None, None, :] | future[None, None]


@wrong("no axis for the heads", r"head|axis|axes|\(B, 1, T, T\)")
def combined_mask(ids, pad_id):
    T = ids.shape[1]
    return (ids != pad_id)[:, None, :] & causal_mask(T)


@wrong("a word does not see itself", r"itself|diagonal|own|k=")
def combined_mask(ids, pad_id):
    T = ids.shape[1]
    before = np.tril(np.ones((T, T), dtype=bool), k=-1)
    return before & (ids != pad_id)[:, None, None]


@wrong("takes 0 for padding whatever pad_id", r"pad_id|\b0\b|zero")
def combined_mask(ids, pad_id=0):
    causal = np.tril(np.ones((ids.shape[1],) * 2)).astype(bool)
    return (ids > 0)[:, None, None, :] & causal


@wrong("multiplies to a float mask", r"bool|True|float|number")
def combined_mask(ids, pad_id):
    T = ids.shape[1]
    causal = np.tril(np.ones((T, T)))
    real = (ids != pad_id).astype(float)
    return real[:, None, None, :] * causal[None, None]


@right("three loops")
def combined_mask(ids, pad_id):
    B, T = ids.shape
    mask = np.zeros((B, 1, T, T), dtype=bool)
    for b in range(B):
        for q in range(T):
            for k in range(q + 1):
                mask[b, 0, q, k] = ids[b, k] != pad_id
    return mask


@right("comparison of places")
def combined_mask(ids, pad_id):
    place = np.arange(ids.shape[1])
    blocked = (place[None, :] > place[:, None])[None] | (ids == pad_id)[:, None, :]
    return np.logical_not(blocked)[:, np.newaxis]


@right("torch, tril of the expanded padding mask")
def combined_mask(ids, pad_id):
    B, T = ids.shape
    real = ids.ne(pad_id)[:, None, None, :].expand(B, 1, T, T)
    return real.int().tril().bool()


# ---------------------------------------------------------------- train


@wrong(
    "never resets the gradients",
    r"zero_grad|gradients? (is|are|add|pile|accumul|of)|accumul|add up|reset",
)
def train(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@wrong("resets the gradients between backward and step", r"zero_grad & before|after|between|order")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        opt.zero_grad()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong("never steps", r"\bstep\b|update|do(es)? not (change|move|learn)")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    history = []
    for x, y in batches:
        opt.zero_grad()
        out = model(x)
        loss = nn.CrossEntropyLoss()(out.reshape(-1, out.size(-1)), y.reshape(-1))
        loss.backward()
        history.append(float(loss))
    return history


@wrong("plain SGD", r"momentum")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    losses = []
    for x, y in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong(
    "a new optimizer for each batch",
    r"optimi[sz]er|momentum & loop|each|every|once|before|new|lost|forg",
)
def train(model, batches, lr):
    model.train()
    losses = []
    for x, y in batches:
        optim = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        optim.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
        loss.backward()
        optim.step()
        losses += [loss.item()]
    return losses


@wrong(
    "leaves the model in the mode it has", r"model\.train\(\)|train mode|training mode|dropout|mode"
)
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for x, y in batches:
        opt.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong("softmax before the cross-entropy", r"softmax|logits|probabilit")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        probs = torch.softmax(model(x), dim=-1)
        loss = F.cross_entropy(probs.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong("sums the losses of the tokens", r"\bmean\b|\bsum|reduction|average")
def train(model, batches, lr):
    criterion = nn.CrossEntropyLoss(reduction="sum")
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        opt.zero_grad()
        loss = criterion(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong("Adam instead of SGD", r"adam|SGD")
def train(model, batches, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    losses = []
    for x, y in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong(
    "returns inside the loop", r"return|first batch|one batch|indent|every batch|all batches|loop"
)
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        opt.step()
        losses.append(loss.item())
        return losses


@wrong("reshapes (B, T, V) to (B, V, T)", r"reshape|view|transpos|axis|axes|order|permute")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        logits = model(x)
        B, T, V = logits.shape
        loss = F.cross_entropy(logits.reshape(B, V, T), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong("the last token's loss only", r"last|every|each|all (tokens|places|positions)|only")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x)[:, -1], y[:, -1])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong("a learning rate of its own", r"\blr\b|learning rate")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


@wrong("returns the mean of the losses", r"each|every|list|one (loss|number|float)|per batch")
def train(model, batches, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    total, n = 0.0, 0
    for x, y in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        opt.step()
        total, n = total + loss.item(), n + 1
    return total / n


@wrong("measures the loss again after the step", r"after|before|again|twice|step")
def train(model, batches, lr):
    def loss_of(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for x, y in batches:
        opt.zero_grad()
        loss_of(x, y).backward()
        opt.step()
        with torch.no_grad():
            losses.append(loss_of(x, y).item())
    return losses


@right("momentum by hand")
def train(model, batches, lr):
    model.train()
    velocity, losses = {}, []
    for x, y in batches:
        model.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                if p.grad is None:
                    continue
                g = p.grad.clone()
                velocity[p] = 0.9 * velocity[p] + g if p in velocity else g
                p -= lr * velocity[p]
        losses.append(loss.item())
    return losses


@right("log-softmax and gather")
def train(model, batches, lr):
    sgd = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr, 0.9)
    model.train(True)

    def one(x, y):
        logp = model(x).log_softmax(-1)
        loss = -logp.gather(-1, y[..., None]).mean()
        sgd.zero_grad(set_to_none=False)
        loss.backward()
        sgd.step()
        return loss.detach().double().item()

    return [one(x, y) for x, y in batches]


@right("classes to axis 1, gradients reset at the end")
def train(model, batches, lr):
    model = model.train()
    model.zero_grad()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, foreach=False)
    criterion = nn.CrossEntropyLoss()
    losses = []
    for x, y in batches:
        loss = criterion(model(x).permute(0, 2, 1), y)
        losses.append(float(loss.detach()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return losses


@right("a closure for step")
def train(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    model.train()
    losses = []
    for batch in batches:

        def closure():
            optimizer.zero_grad()
            logits = model(batch[0])
            total = F.cross_entropy(logits.flatten(0, -2), batch[1].flatten(), reduction="sum")
            loss = total / batch[1].numel()
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


# ---------------------------------------------------------------- evaluate


@wrong(
    "averages the means of the batches",
    r"batch & token|size|weigh|numel|unequal|different",
)
def evaluate(model, batches):
    mode = model.training
    model.eval()
    losses = []
    with torch.no_grad():
        for x, y in batches:
            losses.append(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item())
    model.train(mode)
    return sum(losses) / len(losses)


@wrong("leaves dropout on", r"eval\(\)|eval mode|dropout|evaluation mode")
def evaluate(model, batches):
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
            n += y.numel()
    return total / n


@wrong("leaves the model in eval mode", r"mode|model\.train|back|training")
def evaluate(model, batches):
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
            n += y.numel()
    return total / n


@wrong("always ends in train mode", r"mode & was|before|back|had|found|always")
def evaluate(model, batches):
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            loss = F.cross_entropy(model(x).transpose(1, 2), y, reduction="sum")
            total += loss.item()
            n += y.numel()
    model.train()
    return total / n


@wrong("calls backward", r"backward|gradient|\.grad")
def evaluate(model, batches):
    was = model.training
    model.eval()
    total, n = 0.0, 0
    for x, y in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        total += loss.item() * y.numel()
        n += y.numel()
    model.train(was)
    return total / n


@wrong("divides by the number of batches", r"token|numel|number of batches|per batch")
def evaluate(model, batches):
    was = model.training
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in batches:
            total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
    model.train(was)
    return total / len(batches)


@wrong("divides by the number of sentences", r"token|sentence|len\(|numel")
def evaluate(model, batches):
    was = model.training
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            logits = model(x)
            total += nn.CrossEntropyLoss(reduction="sum")(logits.flatten(0, 1), y.flatten()).item()
            n += len(x)
    model.train(was)
    return total / n


@wrong("weighs the batches by their sentences", r"token|sentence|len\(|numel|weigh")
def evaluate(model, batches):
    was = model.training
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            total += loss.item() * x.size(0)
            n += x.size(0)
    model.train(was)
    return total / n


@wrong("accuracy instead of the loss", r"accura|argmax|cross.entropy|right|hit")
def evaluate(model, batches):
    was = model.training
    model.eval()
    hits, n = 0, 0
    with torch.no_grad():
        for x, y in batches:
            hits += (model(x).argmax(-1) == y).sum().item()
            n += y.numel()
    model.train(was)
    return hits / n


@wrong("perplexity instead of the loss", r"perplex|exp")
def evaluate(model, batches):
    was = model.training
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
            n += y.numel()
    model.train(was)
    return math.exp(total / n)


@wrong("softmax before the cross-entropy", r"softmax|logits|probabilit")
def evaluate(model, batches):
    was = model.training
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            probs = F.softmax(model(x), dim=-1)
            total += F.cross_entropy(probs.flatten(0, 1), y.flatten(), reduction="sum").item()
            n += y.numel()
    model.train(was)
    return total / n


@wrong("the last batch alone", r"last|all batches|every batch|each batch|over(writ|all)|add|sum")
def evaluate(model, batches):
    was = model.training
    model.eval()
    with torch.no_grad():
        for x, y in batches:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    model.train(was)
    return loss.item()


@wrong("switches gradients off for good", r"grad")
def evaluate(model, batches):
    was = model.training
    model.eval()
    torch.set_grad_enabled(False)
    total, n = 0.0, 0
    for x, y in batches:
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    model.train(was)
    return total / n


@wrong("freezes the parameters", r"grad|frozen|freez")
def evaluate(model, batches):
    was = model.training
    model.eval()
    for p in model.parameters():
        p.requires_grad = False
    total, n = 0.0, 0
    for x, y in batches:
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    model.train(was)
    return total / n


@right("evaluates a copy")
def evaluate(model, batches):
    twin = copy.deepcopy(model).eval()
    losses = []
    with torch.inference_mode():
        for x, y in batches:
            losses.append(F.cross_entropy(twin(x).flatten(0, 1), y.flatten(), reduction="none"))
    return torch.cat(losses).mean().item()


@right("try and finally, gathered log-probabilities")
def evaluate(model, batches):
    mode = model.training
    try:
        model.eval()
        total = count = 0
        for x, y in batches:
            with torch.no_grad():
                logp = torch.log_softmax(model(x).double(), -1)
            total -= logp.gather(2, y.unsqueeze(2)).sum().item()
            count += y.shape[0] * y.shape[1]
        return total / count
    finally:
        model.train(mode)


@right("restores every module, means weighted by tokens")
def evaluate(model, batches):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    means, sizes = [], []
    for x, y in batches:
        with torch.inference_mode():
            means.append(float(F.cross_entropy(model(x).transpose(1, 2), y)))
        sizes.append(y.numel())
    for m, mode in modes:
        m.training = mode
    return float(np.average(means, weights=sizes))


@right("no no_grad, but nothing backward")
def evaluate(model, batches):
    was_training = model.training
    model.train(False)
    pieces = []
    for x, y in batches:
        logits = model(x).detach()
        pieces += F.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), y.reshape(-1), reduction="none"
        ).tolist()
    if was_training:
        model.train()
    return sum(pieces) / len(pieces)
