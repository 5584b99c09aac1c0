"""The next token: what a model expects, the knobs of sampling, and the text they write."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import traitlets

from helpers.decoding import next_token_probs
from helpers.text import encode
from workshop.arguments import SMALLEST, as_labels, as_switch, as_text, as_whole
from workshop.figures import Picture, bars, number
from workshop.widgets.base import Widget, check_array, program, visible
from workshop.widgets.traits import Labels, Number, Text, Whole

MOST = 4_096  # tokens of a vocabulary
SAVED = 16_384  # logits that a saved notebook keeps
SHOWN = 12  # bars in the picture
LONGEST = 10_000  # tokens to write


class NextToken(Widget):
    """A language model to write with: a bar per likely token, press one to append it.

    `step` gets the tokens so far, a list of strings, and returns one logit per token of
    `vocabulary`: (V,), or (T, V) of which the last row counts. With `probabilities=True` it returns
    probabilities; a row of zeros means that nothing can follow. With `ids=True` it gets ids in
    place of strings, as the step of `greedy_decode`; a PyTorch module gets ids too, (1, T).
    `vocabulary` lists the tokens in the order of their ids, or maps them to their ids.

    Greedy choice and sampling (temperature, top-k, top-p as in `next_token_probs`; random numbers
    from `seed`) run in the browser, the model in Python. `tokens` is what was written after the
    `prompt`, at most `max_tokens`; the text is complete with the token `end`.

    Raises ValueError for more than 4,096 tokens, a prompt at which `step` fails, another shape,
    NaN, or knobs that `next_token_probs` refuses.
    """

    _esm = program("widgets/next_token.js", "NextToken")
    vocabulary = Labels().tag(sync=True)
    prompt = Labels().tag(sync=True)
    end = Text().tag(sync=True)
    max_tokens = Whole(20, min=1, max=LONGEST).tag(sync=True)
    state = Whole().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)
    tokens = Labels(any_number=True).tag(sync=True)
    temperature = Number(1, min=SMALLEST).tag(sync=True)
    top_k = Whole(None, min=1, allow_none=True).tag(sync=True)
    top_p = Number(None, min=SMALLEST, max=1, allow_none=True).tag(sync=True)

    def __init__(self, step: Callable[[list], Any], vocabulary: Sequence[str] | Mapping[str, int],
                 prompt: Sequence[str] = (), *, probabilities: bool = False, ids: bool = False,
                 end: str = "<end>", max_tokens: int = 20, temperature: float = 1.0,
                 top_k: int | None = None, top_p: float | None = None, seed: int = 0):  # fmt: skip
        vocabulary = vocabulary_of(vocabulary)
        prompt, end = as_labels("prompt", prompt), as_text("end", end)
        ids, probabilities = as_switch("ids", ids), as_switch("probabilities", probabilities)
        max_tokens = as_whole("max_tokens", max_tokens, 1, LONGEST)
        state = _scatter(as_whole("seed", seed, 0, 2**32 - 1))
        knobs = self.check(temperature=temperature, top_k=top_k, top_p=top_p)
        self._model = _Model(step, vocabulary, prompt, ids, probabilities)
        first = self._model.first()
        self._first = _choose(first, **knobs)
        steps, path = _greedy(self._model, first, end, max_tokens)
        words = _words(vocabulary, prompt, self._first, path)
        traits = knobs | {"vocabulary": vocabulary, "prompt": prompt, "max_tokens": max_tokens}
        traits |= {"end": end if end in vocabulary else "", "state": state}
        super().__init__(words, steps, **traits)

    @traitlets.validate("tokens")
    def _known(self, proposal: dict) -> list[str]:
        unknown = [token for token in proposal["value"] if token not in self._model.id_of]
        if unknown:
            raise ValueError(f"tokens has {unknown[0]!r}, which is not in the vocabulary")
        return proposal["value"]

    @property
    def probs(self) -> np.ndarray:
        """The probabilities shown now, computed in NumPy: (V,), zeros where nothing can follow."""
        logits = self._model(self.tokens)
        return _choose(logits, self.temperature, self.top_k, self.top_p)

    def picture(self) -> Picture:
        """Draw what can follow the prompt: the most probable tokens, and the sum of the others."""
        order = np.argsort(-self._first, kind="stable")
        order = order[self._first[order] > 0]
        labels = [visible(self.vocabulary[i], 16) for i in order[:SHOWN]]
        values = list(self._first[order[:SHOWN]])
        if len(order) > SHOWN:
            labels.append("others")
            values.append(self._first[order[SHOWN:]].sum())
        title = f"after {_quote(self.prompt, 4)}" + (": nothing" if len(order) == 0 else "")
        return bars({title: values}, labels, ylabel="probability", alt=self.words)

    def _answer(self, widget: Any, message: Any, buffers: Any) -> None:
        """The browser asks for logits by the tokens before them; a failure is said in words."""
        name = message.get("exact") if isinstance(message, dict) else None
        if name is None or name in self._exact:
            return super()._answer(widget, message, buffers)
        self.status = {name: "The model computes …"}
        try:
            logits = self._model(json.loads(name)).astype("<f4")
        except Exception as error:  # whatever a reader's function raises
            self.status = {name: f"The model failed. {_say(error)}"}
        else:
            self.send({"exact": name}, [logits.tobytes()])
            self.status = {}


class _Model:
    """One call for all kinds of steps: tokens after the prompt → logits (V,)."""

    def __init__(
        self, step: Any, vocabulary: list[str], prompt: list[str], ids: bool, probabilities: bool
    ):
        if not callable(step):
            raise TypeError(f"step is {type(step).__name__}, but must be a function or a module")
        self.step, self.prompt, self.size = step, prompt, len(vocabulary)
        self.vocabulary, self.probabilities = vocabulary, probabilities
        self.id_of = {token: i for i, token in enumerate(vocabulary)}
        self.is_module = hasattr(step, "parameters") and hasattr(step, "training")
        self.ids = ids or self.is_module

    def __call__(self, tokens: list[str]) -> np.ndarray:
        tokens = [*self.prompt, *tokens]
        read = encode(tokens, self.id_of).tolist() if self.ids else tokens
        row = _last_row(_run(self.step, read) if self.is_module else self.step(read), self.size)
        return _logs(row) if self.probabilities else _no_probabilities(row)

    def first(self) -> np.ndarray:
        """The logits after the prompt; whatever fails becomes a ValueError that says where."""
        try:
            return self([])
        except Exception as error:
            raise ValueError(
                f"step failed after the prompt {self.prompt}: {_say(error)}"
            ) from error


def _run(step: Any, ids: list[int]) -> Any:
    """What a PyTorch module gives in eval mode, without gradients; its mode stays as it was."""
    import torch  # only those who pass a module need it

    training = step.training
    device = next((p.device for p in step.parameters()), None)
    step.eval()
    try:
        with torch.no_grad():
            return step(torch.tensor([ids], device=device))
    finally:
        step.train(training)


def _last_row(result: Any, size: int) -> np.ndarray:
    """The last row of what a step returned: (V,), (T, V) or (1, T, V) → (V,)."""
    result = np.asarray(result.detach().cpu() if hasattr(result, "detach") else result)
    shape = result.shape
    if not shape or shape[-1] != size or np.prod(shape[:-2]) != 1 or 0 in shape:
        raise ValueError(f"step gave shape {shape}, but must give ({size},) or (T, {size})")
    return check_array("what step gave", result.reshape(-1, size)[-1], masked=True)


def _logs(row: np.ndarray) -> np.ndarray:
    """Probabilities as logits, −∞ for 0; a row of zeros is allowed: nothing follows."""
    if (row < 0).any() or not (np.isclose(row.sum(), 1, atol=1e-4) or not row.any()):
        raise ValueError(
            f"step gave numbers from {row.min():.4f} with sum {row.sum():.4f}, but probabilities "
            "are at least 0 and sum to 1 (or are all 0 where nothing follows)"
        )
    with np.errstate(divide="ignore"):
        return np.log(row)


def _no_probabilities(row: np.ndarray) -> np.ndarray:
    """Logits as they are, unless they must be probabilities: as logits these would mislead."""
    if row.min() >= 0 and abs(row.sum() - 1) < 1e-5 and not np.isin(row, (0, 1)).all():
        raise ValueError("step gave numbers that sum to 1: say so by probabilities=True")
    return row


def _choose(
    logits: np.ndarray, temperature: float, top_k: int | None, top_p: float | None
) -> np.ndarray:
    """As `next_token_probs`, but −∞ becomes 0, and a row of nothing else zeros."""
    probs = next_token_probs(np.maximum(logits, -1e200), temperature, top_k, top_p)
    return np.where(np.isneginf(logits), 0, probs)


def _greedy(
    model: _Model, first: np.ndarray, end: str, max_tokens: int
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The likeliest token again and again: the logits met, named by their tokens, and the path.

    A step that fails ends it; the reader is told when they get there.
    """
    steps, path, row = {_name([]): first}, [], first
    while np.isfinite(row).any():
        path.append(model.vocabulary[int(np.argmax(row.astype("<f4")))])
        full = len(path) == max_tokens or (len(steps) + 1) * model.size > SAVED
        if path[-1] == end or full:
            break
        try:
            steps[_name(path)] = row = model(path)
        except Exception:
            break
    return steps, path


def _name(tokens: list[str]) -> str:
    """What the logits after these tokens are called, as JSON.stringify writes it."""
    return json.dumps(tokens, ensure_ascii=False, separators=(",", ":"))


def vocabulary_of(vocabulary: Sequence[str] | Mapping[str, int]) -> list[str]:
    """The tokens in the order of their ids, checked: each one once, ids 0 … V-1."""
    if isinstance(vocabulary, Mapping):
        ids = {
            token: as_whole("an id of vocabulary", i, 0, MOST) for token, i in vocabulary.items()
        }
        if sorted(ids.values()) != list(range(len(ids))):
            raise ValueError(f"vocabulary has ids that are not 0 … {len(ids) - 1}, each once")
        vocabulary = sorted(ids, key=ids.__getitem__)
    vocabulary = as_labels("vocabulary", vocabulary)
    if not 1 <= len(vocabulary) <= MOST:
        raise ValueError(f"vocabulary has {len(vocabulary):,} tokens, but must have 1 to {MOST:,}")
    if len(set(vocabulary)) < len(vocabulary):
        twice = next(t for i, t in enumerate(vocabulary) if t in vocabulary[:i])
        raise ValueError(f"vocabulary has {twice!r} twice, but each token must be there once")
    return vocabulary


def _scatter(seed: int) -> int:
    """A seed as 31 bits that look random, so that neighbouring seeds draw different tokens."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)


def _say(error: Exception) -> str:
    return f"{type(error).__name__}: {visible(str(error), 300)}"


def _quote(tokens: Sequence[str], most: int) -> str:
    """The last tokens of a text in quotation marks."""
    end = ["…"] * (len(tokens) > most) + [visible(token, 16) for token in tokens[-most:]]
    return f'"{" ".join(end)}"' if tokens else "no token"


def _words(vocabulary: list[str], prompt: list[str], probs: np.ndarray, path: list[str]) -> str:
    ranked = list(enumerate(np.argsort(-probs, kind="stable")[:3]))
    order = [i for rank, i in ranked if probs[i] > 0 and (rank == 0 or probs[i] >= 0.005)]
    likely = [f'"{visible(vocabulary[i], 16)}" {number(probs[i], 2)}' for i in order]
    text = " ".join([visible(token, 16) for token in path[:8]] + ["…"] * (len(path) > 8))
    return f"NextToken: {len(vocabulary)} tokens; after {_quote(prompt, 8)}: " + (
        f'{", ".join(likely)}; the likeliest each time: "{text}"' if likely else "nothing"
    )
