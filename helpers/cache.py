"""What a model that writes keeps: keys and values of the tokens it has read."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class KeyValueCache:
    """Keys and values of the tokens read so far, so that a model that writes reads only new ones.

    Give the same cache to each forward of a model, and to each forward only the tokens that are
    new. Self-attention adds their keys and values to those it has; cross-attention computes those
    of the memory once. One cache serves one batch of texts, without gradients. Room for `room`
    tokens is taken at once, or else by and by.
    """

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.ids: Tensor | None = None  # (B, Tk) all tokens read so far
        self._rooms: dict[nn.Module, Tensor] = {}  # K and V: (2, B, H, room, d_head)
        self._lengths: dict[nn.Module, int] = {}  # how much of its room is taken
        self._memories: dict[nn.Module, Tensor] = {}  # K and V: (2, B, H, S, d_head)

    def length(self, attention: nn.Module) -> int:
        """How many tokens an attention module has read."""
        return self._lengths.get(attention, 0)

    @property
    def nbytes(self) -> int:
        """The bytes that keys and values take, with the room that waits for more."""
        kept = (*self._rooms.values(), *self._memories.values())
        return sum(keys_and_values.untyped_storage().nbytes() for keys_and_values in kept)

    def read(self, ids: Tensor) -> Tensor:
        """Note the new tokens, (B, T), and return all so far, (B, Tk)."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        return self.ids

    def append(
        self, attention: nn.Module, K: Tensor, V: Tensor, window: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Add keys and values of new tokens, (B, H, T, d_head), and return all: (B, H, Tk, d_head).

        With a window, all that the new tokens see; what no later one will see is forgotten. Raises
        ValueError for keys that carry gradients: what is kept is used again and again.
        """
        if K.requires_grad:
            raise ValueError("cache keeps no gradients: use it under torch.no_grad()")
        past = self.length(attention)
        Tk = self._lengths[attention] = past + K.shape[2]
        if window is not None:
            return self._slide(attention, torch.stack([K, V]), window)
        room = self._room(attention, K, past, Tk)
        room[0, :, :, past:Tk], room[1, :, :, past:Tk] = K, V
        return room[0, :, :, :Tk], room[1, :, :, :Tk]

    def _slide(self, attention: nn.Module, new: Tensor, window: int) -> tuple[Tensor, Tensor]:
        """Put new keys and values, (2, B, H, T, d_head), behind those kept; keep window − 1."""
        if attention in self._rooms:
            new = torch.cat([self._rooms[attention], new], dim=3)
        forgotten = max(0, new.shape[3] - window + 1)
        self._rooms[attention] = new[:, :, :, forgotten:].clone()
        return new[0], new[1]

    def once(
        self, attention: nn.Module, project: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory, (B, H, S, d_head): computed the first time, then kept."""
        if attention not in self._memories:
            self._memories[attention] = torch.stack(project())
        K, V = self._memories[attention]
        return K, V

    def keep(self, rows: Tensor) -> None:
        """Go on with some rows of the batch, in the order of their indices `rows`, (N,)."""
        self.ids = None if self.ids is None else self.ids[rows]
        for kept in (self._rooms, self._memories):
            for attention, keys_and_values in kept.items():
                kept[attention] = keys_and_values[:, rows]

    def _room(self, attention: nn.Module, K: Tensor, past: int, needed: int) -> Tensor:
        """Room for `needed` tokens; when it gets tight, twice as much, so that copies are rare."""
        room = self._rooms.get(attention)
        if room is None or room.shape[3] < needed:
            B, H, _, d_head = K.shape
            larger = K.new_empty(2, B, H, max(needed, 2 * past, self.room), d_head)
            if room is not None:
                larger[:, :, :, :past] = room[:, :, :, :past]
            room = self._rooms[attention] = larger
        return room
