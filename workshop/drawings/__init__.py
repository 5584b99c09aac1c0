"""Drawings of attention made from its arrays: each is one call and says its numbers in its alt.

    page, cells, sheet    the room that words take, numbers in cells, and what they are put on
    one_head              one word's way through a head, from its vector to its context
    matrices              alone, multiplied, picked from, masked, with holes, cut into heads
    words                 words that ask words; a whole model, step by step; a text that grows
    vectors               points and arrows in a plane, hands of clocks, a stream that is added to

Where a matrix has more features than fit, the last ones are left out with a "…"; more than twelve
tokens are a ValueError.
"""

from workshop.drawings.matrices import (
    cut_into_heads,
    holes,
    mask_over,
    matrix,
    pick_row,
    product,
    split_qkv,
)
from workshop.drawings.one_head import head
from workshop.drawings.vectors import clock_hands, moved, plane, river
from workshop.drawings.words import arrows_between, arrows_of_scores, flow, writing

__all__ = ["arrows_between", "arrows_of_scores", "clock_hands", "cut_into_heads", "flow", "head",
           "holes", "mask_over", "matrix", "moved", "pick_row", "plane", "product",
           "river", "split_qkv", "writing"]  # fmt: skip
