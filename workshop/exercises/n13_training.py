"""Notebook 13: training without an optimizer; the reference stands here, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workshop.exercises.exercise import Exercise, Untested
from workshop.exercises.n13_models import (
    all_equal,
    batch,
    batches_of,
    bigrams,
    called,
    error_of,
    everywhere,
    mean_loss,
    network,
    nothing,
    two_numbers,
    watched,
    weights,
)

if TYPE_CHECKING:
    from torch import Tensor, nn


def train(model: nn.Module, batches: list, lr: float) -> list[float]:
    """Take a step of gradient descent with momentum 0.9 for each batch (x, y); the losses before.

    model(x) gives logits (B, T, V), y holds the targets (B, T); the loss is their mean
    cross-entropy in nats. By hand, without an optimizer of PyTorch. Sutskever et al. (2013).
    """
    import torch
    from torch.nn.functional import cross_entropy

    parameters, losses = list(model.parameters()), []
    velocities = [torch.zeros_like(p) for p in parameters]
    model.train()
    for x, y in batches:
        loss = cross_entropy(model(x).flatten(0, 1), y.flatten())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p, v in zip(parameters, velocities, strict=True):
                v.mul_(0.9).add_(p.grad)
                p.sub_(lr * v)
        losses.append(loss.item())
    return losses


def load_optimizers() -> None:
    """Load what PyTorch loads with its first optimizer; it takes seconds."""
    import torch

    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)


training = Exercise(
    train,
    notebook="13",
    level=3,
    minutes=20,
    task="Write the training loop, with momentum: keep a velocity for each parameter, at first "
    "zero, and for each batch let v = 0.9 v + gradient, then p = p - lr v, in place. Put the model "
    "in train mode, and return the loss of each batch as a float.",
    hints=(
        "What must be gone before backward adds the gradients of this batch? And what must "
        "stay from batch to batch?",
        "Before the loop: model.train(), a list of the parameters, a zero tensor for each. In it: "
        "the mean cross-entropy of logits (B·T, V) and targets (B·T); zero_grad, backward; then, "
        "under torch.no_grad(), new velocities and steps.",
        "`for p, v in zip(parameters, velocities): v.mul_(0.9).add_(p.grad); p.sub_(lr * v)`",
    ),
    backends=("torch",),
    seconds=3.0,
    trains=True,
    prepare=load_optimizers,
)


training.answer("""
    def train(model, batches, lr):
        model.train()
        parameters, losses = list(model.parameters()), []
        velocities = [torch.zeros_like(p) for p in parameters]
        for x, y in batches:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p, v in zip(parameters, velocities):
                    v.mul_(0.9).add_(p.grad)
                    p.sub_(lr * v)
            losses.append(loss.item())
        return losses
""")
training.answer("""
    def train(model, batches, lr):
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        model.train()
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x).transpose(1, 2), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses
""")
training.answer("""
    def train(model, batches, lr):
        model.train()
        v = [0.0 for p in model.parameters()]
        losses = []
        for x, y in batches:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for i, p in enumerate(model.parameters()):
                    v[i] = 0.9 * v[i] + p.grad
                    p -= lr * v[i]
            losses.append(float(loss))
        return losses
""")
training.why(
    "model.zero_grad() | optimizer.zero_grad()",
    "backward adds to the gradients that are there: clear them in every step, before backward, or "
    "those of earlier batches add up.",
)
training.why(
    "loss.backward()",
    "backward computes the gradients of this batch's loss, once: after zero_grad, before the step.",
)
training.why(
    "v.mul_(0.9).add_(p.grad) | 0.9 * v[i] + p.grad | v.mul_(0.9) | 0.9 * v | momentum=0.9",
    "Momentum: the velocity keeps 0.9 of itself and adds the whole new gradient.",
)
training.why(
    "[torch.zeros_like(p) for p in parameters] | [0.0 for p in model.parameters()] | "
    "torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)",
    "Velocities must outlast a batch: made once, before the loop, one for each parameter, or the "
    "momentum is lost.",
)
training.why(
    "p.sub_(lr * v) | p -= lr * v[i] | optimizer.step() | lr * v | -lr | lr=lr",
    "A step for each batch: lr times the velocity, subtracted in place, downhill, from the model's "
    "own parameters.",
)
training.why(
    "model.train()",
    "Train mode switches dropout on in every part; the last evaluation may have left it off.",
)
training.why(
    "list(model.parameters())",
    "parameters() is a generator, used up after one loop; a list can be walked again and again.",
)
training.why(
    "torch.no_grad()",
    "The step is no part of the model: recorded by autograd, it raises an error.",
)
training.why(
    "model(x).flatten(0, 1) | model(x).transpose(1, 2) | logits.reshape(-1, logits.shape[-1]) | "
    "y.flatten() | y.reshape(-1)",
    "cross_entropy wants a row of V logits for each target: join batch and tokens, keep every "
    "vocabulary row whole.",
)
training.why(
    "nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()) | "
    "nn.functional.cross_entropy",
    "The loss is the mean of -log p over all tokens, from raw logits: softmax, log and mean are in "
    "cross_entropy.",
)
training.why(
    "loss.item() | float(loss) | losses.append(loss.item())",
    "Note each batch's loss as a float, before its step; a tensor would keep its whole graph.",
)
training.why("return losses", "All batches are learned from, and each leaves its loss in the list.")


@training.experiment("one step from equal logits")
def one_step(fn: Callable) -> dict:
    model = two_numbers()
    losses = called(fn, model, [batch([[1, 0, 0, 0]], [[0, 0, 0, 1]])], 1.0)
    return {"losses": losses, "a": model.a.item(), "b": model.b.item()}


@training.experiment("what the model is asked")
def what_is_asked(fn: Callable) -> dict:
    model = network(p=0.5).eval()
    seen, shapes = watched(model), [(2, 3), (1, 4), (3, 2)]
    called(fn, model, batches_of(7, *shapes), 0.1)
    asked = [shape for shape, _, _ in seen]
    return {
        "model(x) is called for every batch": set(shapes) <= set(asked),
        "the batches come in the given order": [s for s in shapes if s in asked]
        == list(dict.fromkeys(asked)),
        "each batch comes once": asked == shapes,
        "the model and all its parts are in train mode": all(mode for _, mode, _ in seen),
    }


@training.experiment("a second step, with momentum")
def two_steps(fn: Callable) -> dict:
    model = two_numbers()
    steps = [batch([[1, 0, 0, 0]], [[0, 0, 0, 1]]), batch([[0, 1], [1, 1], [0, 0]], [[1, 1]] * 3)]
    losses = called(fn, model, steps, 1.0)
    return {"losses": losses, "a": model.a.item(), "b": model.b.item()}


@training.experiment("five batches of different sizes")
def a_table(fn: Callable) -> dict:
    model = bigrams(5)
    losses = called(fn, model, batches_of(5, (2, 3), (1, 4), (3, 2), (2, 6), (4, 1)), 0.3)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("a network of two layers")
def two_layers(fn: Callable) -> dict:
    model = network()
    losses = called(fn, model, batches_of(7, (2, 3), (3, 5), (2, 2), (1, 6)), 0.2)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("small and large steps")
def learning_rates(fn: Callable) -> dict:
    found = {}
    for lr in (0.01, 2.0):
        model = bigrams(4)
        found[f"losses for lr={lr}"] = called(fn, model, batches_of(4, *[(2, 3)] * 3), lr)
        found[f"weights for lr={lr}"] = weights(model)
    return found


@training.experiment("steep losses")
def steep(fn: Callable) -> dict:
    model = two_numbers(0.5, -0.5, slope=40.0)
    batches = [batch([[0, 0, 0]], [[1, 1, 0]]), batch([[0, 0]], [[1, 0]])]
    losses = called(fn, model, batches, 0.1)
    return {"losses": losses, "a": model.a.item(), "b": model.b.item()}


@training.experiment("a model in eval mode")
def from_eval_mode(fn: Callable) -> dict:
    model = network(p=0.5).eval()
    losses = called(fn, model, batches_of(7, (2, 3), (1, 4)), 0.1)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("the mode afterwards")
def mode_afterwards(fn: Callable) -> dict:
    model = network(p=0.5)
    called(fn, model, batches_of(7, (2, 3), (1, 4)), 0.1)
    return {"a model that was in train mode is in train mode": everywhere(model, True)}


@training.experiment("gradients left from before")
def stale_gradients(fn: Callable) -> dict:
    import torch

    model = bigrams(5)
    model.weight.grad = torch.ones(5, 5)
    losses = called(fn, model, batches_of(5, (2, 3), (3, 2)), 0.1)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("as many tokens as words")
def square_logits(fn: Callable) -> dict:
    model = bigrams(3)
    losses = called(fn, model, batches_of(3, (2, 3), (3, 3), (1, 3)), 0.3)
    return {"losses": losses, "weights": weights(model)}


@training.experiment("two models, one after the other")
def two_models(fn: Callable) -> dict:
    found = {}
    for name in ("first", "second"):
        model, batches = bigrams(4), batches_of(4, (2, 3), (2, 2))
        copies = [(x.clone(), y.clone()) for x, y in batches]
        found[f"losses of the {name}"] = called(fn, model, batches, 0.5)
        found[f"weights of the {name}"] = weights(model)
        found[f"batches of the {name} unchanged"] = all_equal(copies, batches)
    return found


@training.experiment("why nothing is learned")
def why_nothing_is_learned(fn: Callable) -> Any:
    """Tells apart what has the same effect: nothing for an answer whose weights do change."""
    model, computed = two_numbers(), []
    model.a.register_hook(lambda gradient: computed.append(1))
    called(fn, model, [batch([[1, 0, 0, 0]], [[0, 0, 0, 1]])], 1.0)
    if model.a.item() != 0:
        return Untested()
    left = model.a.grad is not None and model.a.grad.item() != 0
    return {"the gradient is computed (backward)": bool(computed), "the gradient is left": left}


@training.experiment("what PyTorch says where it stops")
def where_it_stops(fn: Callable) -> Any:
    """Tells errors apart by their text: nothing for an answer that returns."""
    return error_of(fn, two_numbers(), [batch([[1, 0, 0], [0, 1, 1]], [[0, 0, 1], [1, 0, 0]])], 1.0)


# A learner's loop, of which each mistake replaces a part.


def sgd(parameters: Any, lr: float, momentum: float = 0.9) -> Any:
    """The optimizer that does what is asked for."""
    import torch

    return torch.optim.SGD(parameters, lr=lr, momentum=momentum)


def zero(optimizer: Any) -> None:
    optimizer.zero_grad()


def backward_and_step(loss: Tensor, optimizer: Any) -> None:
    loss.backward()
    optimizer.step()


def loop(
    model: nn.Module,
    batches: list,
    lr: float,
    make: Callable = sgd,
    mode: Callable = lambda model: model.train(),
    loss_of: Callable = mean_loss,
    clear: Callable = zero,
    learn: Callable = backward_and_step,
    told: Callable = float,
) -> list:
    """Train; each of the last arguments is a part of the loop that a mistake replaces."""
    optimizer, losses = make(model.parameters(), lr), []
    mode(model)
    for x, y in batches:
        clear(optimizer)
        loss = loss_of(model(x), y)
        learn(loss, optimizer)
        losses.append(told(loss))
    return losses


@training.mistake
def the_momentum_is_lost(model, batches, lr):
    """The momentum is missing or lost: it is left out, or a new optimizer (or velocity) is made for
    each batch and forgets the ones before. Make it once, before the loop; 0.9 of it stays."""
    return loop(model, batches, lr, make=lambda p, lr: sgd(p, lr, momentum=0))


@training.mistake
def gradients_never_cleared(model, batches, lr):
    """zero_grad is missing: backward adds to the gradients that are there, so those of all earlier
    batches add up (accumulate). Clear them in every step, before backward."""
    return loop(model, batches, lr, clear=nothing)


@training.mistake
def not_in_train_mode(model, batches, lr):
    """The model stays in the mode it is in while it learns: after an evaluation, in eval mode,
    dropout is off. Call model.train() first, before the loop."""
    return loop(model, batches, lr, mode=nothing)


@training.mistake
def never_steps(model, batches, lr):
    """The weights never change, though gradients are there: the step is missing, or makes a new p
    beside the model's own, or meets no parameters. Step after backward, and change p in place."""
    return loop(model, batches, lr, learn=lambda loss, optimizer: loss.backward())


@training.mistake
def gradients_cleared_once(model, batches, lr):
    """zero_grad is called once only, before the loop: the gradients of earlier batches add up
    (accumulate). It belongs inside the loop, once per batch, before backward."""
    model.zero_grad()
    return loop(model, batches, lr, clear=nothing)


@training.mistake
def softmax_before_cross_entropy(model, batches, lr):
    """softmax is applied before cross_entropy, which contains one already: twice in all, and the
    model hardly learns. Hand over the raw logits."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z.softmax(-1), y))


@training.mistake
def learns_only_from_the_first_batch(model, batches, lr):
    """Only the first batch is used, as where a loop returns or ends too early (indentation). Learn
    from all batches, and return after the loop."""
    return loop(model, batches[:1], lr)


@training.mistake
def trains_on_the_last_token(model, batches, lr):
    """Only the last token of each sentence counts. Every place of every sentence predicts its next
    token: the loss is the mean over all B · T of them."""
    return loop(model, batches, lr, loss_of=lambda z, y: mean_loss(z[:, -1:], y[:, -1:]))


@training.mistake
def vocabulary_reshaped(model, batches, lr):
    """The logits are reshaped to (B, V, T) instead of transposed, so that numbers of different
    tokens and words are mixed. Swap the axes, or join batch and tokens to (B·T, V)."""

    def loss_of(logits, y):
        B, T, V = logits.shape
        return plain_cross_entropy(logits.reshape(B, V, T), y)

    return loop(model, batches, lr, loss_of=loss_of)


def plain_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits, y)


@training.mistake
def losses_after_the_step(model, batches, lr):
    """The losses are measured after the step, with a second forward pass. Note the loss of the
    batch before its step: that of the forward pass it learns from."""
    optimizer, losses = sgd(model.parameters(), lr), []
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        backward_and_step(mean_loss(model(x), y), optimizer)
        losses.append(mean_loss(model(x), y).item())
    return losses


@training.mistake
def mean_of_the_losses(model, batches, lr):
    """It returns the mean of the losses, one number. Return the list of all, one loss per batch:
    it shows how they fall."""
    return sum(losses := loop(model, batches, lr)) / len(losses)


@training.mistake
def step_before_backward(model, batches, lr):
    """step comes before backward, so it uses the gradients of the previous batch, one batch late
    (in a network backward fails: modified by an inplace operation). First backward, then step."""

    def learn(loss, optimizer):
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()

    return loop(model, batches, lr, clear=nothing, learn=learn)
