"""The sentence encoder: BERT's tables, our encoder, and one vector for each sentence."""

from collections.abc import Sequence

import torch
from tokenizers import Encoding, Tokenizer
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from helpers.layers import unwatched
from helpers.models import Encoder
from helpers.shapes import check_positive, need


class SentenceEncoder(nn.Module):
    """BERT's encoder with its tokenizer: sentences in, a vector for each token or sentence out.

    Token, position and segment vectors are added and normalised, then `helpers.models.Encoder`
    works on them: (B, T) ids → (B, T, d_model). `encode` makes one vector of each sentence. A
    sentence is cut after `max_tokens` tokens. Raises what the layers refuse. Devlin et al. (2019).
    """

    def __init__(self, vocab_size: int, context_length: int, num_segments: int, d_model: int,
                 num_heads: int, d_ff: int, num_layers: int, *, tokenizer: Tokenizer,
                 max_tokens: int | None = None, activation: str = "gelu",
                 eps: float = 1e-12) -> None:  # fmt: skip
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.segments = nn.Embedding(num_segments, d_model)
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.encoder = Encoder(d_model, num_heads, d_ff, num_layers, activation=activation, eps=eps)
        self.tokenizer = tokenizer
        enough = max_tokens is None or max_tokens >= 3
        need(enough, "max_tokens", max_tokens, "at least 3: [CLS], a word, [SEP]")
        self.max_tokens = min(max_tokens or context_length, context_length)
        tokenizer.no_padding()  # batches are padded here, to their own longest sentence
        tokenizer.enable_truncation(self.max_tokens)

    def forward(self, ids: Tensor, is_real: Tensor | None = None) -> Tensor:
        """One vector for each token, in the light of all others: (B, T) → (B, T, d_model).

        `is_real` (B, T) bool says which ids are no padding; without it all are. Raises ValueError
        for more tokens than there are positions or shapes that do not fit, IndexError for an id
        outside the vocabulary, TypeError for an `is_real` that is not boolean.
        """
        context_length = self.positions.num_embeddings
        if ids.ndim != 2 or not 0 < ids.shape[1] <= context_length:
            needed = f"(B, T) with T from 1 to {context_length}"
            raise ValueError(f"ids has shape {tuple(ids.shape)}, but must be {needed}")
        x = self.tokens(ids) + self.segments.weight[0] + self.positions.weight[: ids.shape[1]]
        mask = None if is_real is None else is_real[:, None, :]  # (B, 1, T)
        return self.encoder(self.norm(x), mask)

    def tokenize(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Ids of the sentences, padded to the longest, and which are real: (B, T), (B, T) bool.

        Raises TypeError unless given a list of str, ValueError for an empty one.
        """
        return self._pad(self._encodings(sentences))

    def pieces(self, sentence: str) -> list[str]:
        """The tokens of one sentence as text, [CLS] and [SEP] included: T words and word pieces.

        Raises TypeError unless given a str.
        """
        return self._encodings([sentence])[0].tokens

    def hidden(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Vectors of all tokens, and which tokens are no padding: (B, T, d_model), (B, T) bool.

        Afterwards the attention layers hold their `.weights`. Raises as `tokenize` does.
        """
        ids, is_real = self.tokenize(sentences)
        with torch.no_grad():
            return self(ids, is_real), is_real

    def attention(self, sentence: str) -> tuple[list[str], Tensor]:
        """The tokens of one sentence and the weights of every head: (num_layers, H, T, T).

        Raises TypeError unless given a str.
        """
        tokens = self.pieces(sentence)
        self.hidden([sentence])
        weights = [layer.attention.weights[0] for layer in self.encoder.layers]  # (H, T, T) each
        return tokens, torch.stack(weights)

    def encode(self, sentences: Sequence[str], batch_size: int = 16) -> Tensor:
        """One vector of length 1 for each sentence, whose dot products are cosines: (N, d_model).

        The mean over the vectors of its tokens, normalised. Sentences of like length share a batch,
        so that little padding is computed; the result has the order given, on the CPU. Raises as
        `tokenize` does, and ValueError unless batch_size is positive. Reimers and Gurevych (2019).
        """
        check_positive(batch_size=batch_size)
        rows = self._encodings(sentences)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        starts = range(0, len(rows), batch_size)
        batches = [[rows[i] for i in order[start : start + batch_size]] for start in starts]
        with torch.no_grad(), unwatched(self):
            vectors = torch.cat([self._mean_vectors(batch) for batch in batches])  # in that order
        vectors = nn.functional.normalize(vectors, dim=-1).cpu()
        return vectors[torch.tensor(order).argsort()]

    def _mean_vectors(self, rows: list[Encoding]) -> Tensor:
        ids, is_real = self._pad(rows)
        hidden = self(ids, None if is_real.all() else is_real)  # (B, T, d_model)
        real = is_real[:, :, None].to(hidden.dtype)  # (B, T, 1)
        return (hidden * real).sum(dim=1) / real.sum(dim=1)

    def _encodings(self, sentences: Sequence[str]) -> list[Encoding]:
        if isinstance(sentences, str) or not isinstance(sentences, Sequence):
            raise TypeError(f"sentences is a {type(sentences).__name__}, but must be a list of str")
        if not sentences:
            raise ValueError("sentences is empty, but must hold at least one")
        for i, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise TypeError(f"sentences[{i}] is a {type(sentence).__name__}, but must be a str")
        # Half of a surrogate pair, which no file can hold, becomes a question mark.
        whole = [sentence.encode("utf-8", "replace").decode("utf-8") for sentence in sentences]
        return self.tokenizer.encode_batch(whole)

    def _pad(self, rows: list[Encoding]) -> tuple[Tensor, Tensor]:
        device = self.tokens.weight.device
        ids = pad_sequence([torch.tensor(row.ids) for row in rows], True)  # (B, T), zeros behind
        is_real = pad_sequence([torch.tensor(row.attention_mask) for row in rows], True)
        return ids.to(device), is_real.bool().to(device)
