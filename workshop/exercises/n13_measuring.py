"""Notebook 13: measuring a model; the reference stands here, from the means of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from workshop.exercises.exercise import Exercise
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
    from torch import nn


def evaluate(model: nn.Module, batches: list) -> float:
    """Measure a model: its mean cross-entropy per token over all batches, in nats.

    Each batch's mean counts as often as the batch has tokens. Dropout is off, no gradient is
    computed, and the model is back in the mode it was in.
    """
    import torch
    from torch.nn.functional import cross_entropy

    was_training, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for x, y in batches:
            mean = cross_entropy(model(x).flatten(0, 1), y.flatten())
            total += mean.item() * y.numel()
            count += y.numel()
    model.train(was_training)
    return total / count


evaluation = Exercise(
    evaluate,
    notebook="13",
    level=2,
    minutes=12,
    task="Measure a model: its mean cross-entropy per token over all batches, where a batch counts "
    "as often as it has tokens. Dropout is off, no gradient is left, and afterwards the model is "
    "in the mode it was in.",
    hints=(
        "A batch with one token and a batch with a hundred: should their means count the same? And "
        "who tells the model afterwards in which mode it was?",
        "Remember model.training; model.eval(); under torch.no_grad() add mean · y.numel() to a "
        "total and y.numel() to a count; model.train(what you remembered).",
        "`total += nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).item() * "
        "y.numel()`",
    ),
    backends=("torch",),
    seconds=3.0,
    trains=True,
)


evaluation.answer("""
    def evaluate(model, batches):
        was_training, total, count = model.training, 0.0, 0
        model.eval()
        with torch.no_grad():
            for x, y in batches:
                mean = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
                total += mean.item() * y.numel()
                count += y.numel()
        model.train(was_training)
        return total / count
""")
evaluation.answer("""
    def evaluate(model, batches):
        was_training = model.training
        model.eval()
        total, count = 0.0, 0
        with torch.no_grad():
            for x, y in batches:
                logits = model(x).transpose(1, 2)
                total += nn.functional.cross_entropy(logits, y, reduction="sum").item()
                count += y.numel()
        model.train(was_training)
        return total / count
""")
evaluation.answer("""
    def evaluate(model, batches):
        mode = model.training
        model.eval()
        means, sizes = [], []
        for x, y in batches:
            with torch.no_grad():
                logits = model(x)
                logits = logits.reshape(-1, logits.shape[-1])
                means.append(nn.functional.cross_entropy(logits, y.reshape(-1)).item())
            sizes.append(y.numel())
        model.train(mode)
        return sum(m * n for m, n in zip(means, sizes)) / sum(sizes)
""")
evaluation.why(
    "model.eval()",
    "Measuring needs eval mode in every part, before the first batch: dropout is off, and the same "
    "model gives the same loss.",
)
evaluation.why(
    "was_training = model.training | model.training | mode = model.training",
    "The mode before must be remembered before model.eval() changes it.",
)
evaluation.why(
    "model.train(was_training) | model.train(mode) | model.train()",
    "Afterwards the model goes back to the mode it was in: training goes on with dropout, a model "
    "in use without.",
)
evaluation.why(
    "torch.no_grad()",
    "Measuring learns nothing: without gradients no graph is kept, and none is left behind.",
)
evaluation.why(
    "mean.item() * y.numel() | m * n",
    "A batch counts as often as it has tokens: its mean times their number is its sum.",
)
evaluation.why(
    'y.numel() | sum(sizes) | total / count | reduction="sum"',
    "The mean per token divides by the number of all tokens, not of batches or sentences, whose "
    "sizes differ.",
)
evaluation.why(
    "total += mean.item() * y.numel() | count += y.numel() | total +=",
    "Add up over all batches; otherwise the last batch alone is left.",
)
evaluation.why(
    "model(x).flatten(0, 1) | y.flatten() | model(x).transpose(1, 2) | y.reshape(-1) | "
    "logits.reshape(-1, logits.shape[-1])",
    "cross_entropy wants a row of V logits for each target: join batch and tokens, keep every "
    "vocabulary row whole.",
)
evaluation.why(
    "nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()) | nn.functional.cross_entropy"
    " | mean.item()",
    "The loss is -log p of the targets, from raw logits: cross_entropy contains the softmax.",
)


@evaluation.experiment("batches of one and three tokens")
def one_and_three(fn: Callable) -> dict:
    model = two_numbers(float(np.log(3)), 0.0)  # p = 3/4 and 1/4
    loss = called(fn, model, [batch([[0]], [[0]]), batch([[0, 1, 1]], [[1, 1, 1]])])
    return {"loss per token": loss}


@evaluation.experiment("what the model is asked")
def what_evaluate_asks(fn: Callable) -> dict:
    model = network(p=0.5)
    seen, shapes = watched(model), [(2, 3), (1, 4), (3, 2)]
    called(fn, model, batches_of(7, *shapes))
    asked = [shape for shape, _, _ in seen]
    return {
        "model(x) is called for every batch": set(shapes) <= set(asked),
        "the model and all its parts are in eval mode": all(mode for _, _, mode in seen),
    }


@evaluation.experiment("four batches of different sizes")
def sizes(fn: Callable) -> dict:
    return {"loss": called(fn, bigrams(5), batches_of(5, (2, 3), (1, 4), (3, 2), (4, 6)))}


@evaluation.experiment("a network with dropout")
def with_dropout(fn: Callable) -> dict:
    return {"loss": called(fn, network(p=0.5), batches_of(7, (2, 3), (3, 5), (1, 2)))}


@evaluation.experiment("a network in eval mode")
def already_in_eval_mode(fn: Callable) -> dict:
    return {"loss": called(fn, network(p=0.5).eval(), batches_of(7, (2, 3), (3, 5), (1, 2)))}


@evaluation.experiment("the mode afterwards")
def modes_afterwards(fn: Callable) -> dict:
    found = {}
    for mode, training_mode in (("train", True), ("eval", False)):
        model = network(p=0.5).train(training_mode)
        called(fn, model, batches_of(7, (2, 3), (1, 4)))
        found[f"a model in {mode} mode is in {mode} mode again"] = model.training == training_mode
        found[f"and so are all its parts, in {mode} mode"] = everywhere(model, training_mode)
    return found


@evaluation.experiment("what is left behind")
def left_behind(fn: Callable) -> dict:
    import torch

    model, batches = network(p=0.5), batches_of(7, (2, 3), (1, 4))
    before, copies = weights(model), [(x.clone(), y.clone()) for x, y in batches]
    with torch.enable_grad():
        getattr(fn, "function", fn)(model, batches)
        enabled = torch.is_grad_enabled()
    now = weights(model)
    return {
        "the weights are unchanged": all(map(np.array_equal, before, now)),
        "no gradient is left": all(p.grad is None for p in model.parameters()),
        "all parameters may still learn": all(p.requires_grad for p in model.parameters()),
        "gradients are switched on again": enabled,
        "nothing is gathered as in train mode (buffers)": not any(map(torch.any, model.buffers())),
        "the dropout keeps its p": all(part.p == 0.5 for part in dropouts(model)),
        "the batches are unchanged": all_equal(copies, batches),
    }


def dropouts(model: nn.Module) -> list[nn.Module]:
    """The parts that are nn.Dropout."""
    from torch import nn

    return [part for part in model.modules() if isinstance(part, nn.Dropout)]


@evaluation.experiment("as many tokens as words")
def square_logits_measured(fn: Callable) -> dict:
    return {"loss": called(fn, bigrams(3), batches_of(3, (2, 3), (3, 3), (1, 3)))}


@evaluation.experiment("one batch of one sentence")
def one_sentence(fn: Callable) -> dict:
    return {"loss": called(fn, bigrams(6), batches_of(6, (1, 5)))}


@evaluation.experiment("a second model, then again")
def again(fn: Callable) -> dict:
    batches = batches_of(4, (2, 3), (5, 2))
    return {
        "loss of another model": called(fn, bigrams(4, seed=5), batches),
        "loss of the first": called(fn, bigrams(4, seed=6), batches),
        "loss of the first again": called(fn, bigrams(4, seed=6), batches),
    }


@evaluation.experiment("what PyTorch says where it stops")
def where_measuring_stops(fn: Callable) -> Any:
    """Tells errors apart by their text: nothing for an answer that returns."""
    return error_of(fn, two_numbers(), [batch([[1, 0, 0], [0, 1, 1]], [[0, 0, 1], [1, 0, 0]])])


def measured(
    model: nn.Module,
    batches: list,
    loss_of: Callable = mean_loss,
    before: Callable = lambda model: model.eval(),
    after: Callable = lambda model, was: model.train(was),
) -> tuple[list[float], list[int]]:
    """The loss of each batch and its number of tokens; a mistake replaces a part."""
    import torch

    was_training = model.training
    before(model)
    with torch.no_grad():
        losses = [loss_of(model(x), y).item() for x, y in batches]
    after(model, was_training)
    return losses, [y.numel() for _, y in batches]


def per_token(losses: list[float], counts: list[int]) -> float:
    """The mean over all tokens."""
    return sum(loss * n for loss, n in zip(losses, counts, strict=True)) / sum(counts)


def total(losses: list[float], counts: list[int]) -> float:
    """The sum over all tokens."""
    return per_token(losses, counts) * sum(counts)


@evaluation.mistake
def dropout_stays_on(model, batches):
    """Dropout is active while it measures: the model is in train mode, so the loss differs from
    call to call. Put it into eval mode first: a call, with brackets."""
    return per_token(*measured(model, batches, before=nothing))


@evaluation.mistake
def always_back_to_train_mode(model, batches):
    """The model always ends in train mode, even if it was in eval mode before. Remember the mode
    before you change it, and restore that one."""
    return per_token(*measured(model, batches, after=lambda model, was: model.train()))


@evaluation.mistake
def stays_in_eval_mode(model, batches):
    """The model is left in eval mode: dropout would be off for the rest of the training. Remember
    the mode it was in, and put it back into that one."""
    return per_token(*measured(model, batches, after=nothing))


@evaluation.mistake
def mean_of_batch_means(model, batches):
    """It averages the means of the batches, so that tokens of small batches count more. Average per
    token: weight each mean by its number of tokens, and divide by that of all."""
    losses, _ = measured(model, batches)
    return sum(losses) / len(losses)


@evaluation.mistake
def sums_over_batches(model, batches):
    """The sum over all tokens is divided by the number of batches. Divide by the number of tokens:
    a mean per token is asked for."""
    return total(*measured(model, batches)) / len(batches)


@evaluation.mistake
def gradients_left(model, batches):
    """Gradients are left in the parameters: backward is called while it measures. Measuring needs
    no gradient at all: leave backward out, and run the model under torch.no_grad()."""
    loss = per_token(*measured(model, batches))
    for p in model.parameters():
        p.grad = p.detach()
    return loss


@evaluation.mistake
def last_batch_alone(model, batches):
    """Only the last batch counts: what came before is overwritten instead of added up. Add the sums
    and the numbers of tokens over all batches."""
    return measured(model, batches)[0][-1]


@evaluation.mistake
def first_batch_alone(model, batches):
    """Only the first batch is measured, as where a loop returns or ends too early (indentation).
    Measure all batches, and return after the loop."""
    return measured(model, batches[:1])[0][0]


@evaluation.mistake
def accuracy_instead(model, batches):
    """It returns the accuracy, the share of right predictions (argmax). Return the mean
    cross-entropy, -log p of the targets: it also tells how sure the model is."""
    hits = lambda z, y: (z.argmax(-1) == y).float().mean()  # noqa: E731
    return per_token(*measured(model, batches, hits))


@evaluation.mistake
def parameters_left_frozen(model, batches):
    """requires_grad is switched off and stays off: the parameters are frozen and could not learn
    any more. torch.no_grad() around the loop ends by itself."""
    model.requires_grad_(False)
    return per_token(*measured(model, batches))


@evaluation.mistake
def restored_in_the_loop(model, batches):
    """The mode is restored inside the loop (indentation), after the first batch: for the others
    dropout is on again. Restore it once, after the loop."""
    first = measured(model, batches[:1])
    rest = measured(model, batches[1:], before=nothing)
    return per_token(*(a + b for a, b in zip(first, rest, strict=True)))


@evaluation.mistake
def stays_in_eval_mode_with_the_mean_of_means(model, batches):
    """Two things: the model is left in eval mode, not in the mode it was in; and the means of the
    batches are averaged, though a batch must count as often as it has tokens."""
    losses, _ = measured(model, batches, after=nothing)
    return sum(losses) / len(losses)
