"""Drawings of attention made from its arrays: each is one call and says its numbers in its alt.

    sheet       the words that a drawing is made of: tokens, rows of cells, arrows with a width
    arrays      what a caller hands in, checked
    one_head    one word's way through a head, from its vector to its context
    matrices    alone, multiplied, picked from, masked, with holes, cut into heads
    nodes       words that ask words; a whole model, step by step
    planes      vectors of two features as points and arrows
    clocks      pairs of features as hands that turn
    stream      one word's vector, and what each sublayer adds to it
    loop        a text that grows by its likeliest next words

Where a matrix has more features than fit, the last ones are left out with a "…"; more than twelve
tokens are a ValueError.
"""

from workshop.drawings.clocks import clock_hands
from workshop.drawings.loop import writing
from workshop.drawings.matrices import (
    cut_into_heads,
    holes,
    mask_over,
    matrix,
    pick_row,
    product,
    split_qkv,
)
from workshop.drawings.nodes import arrows_between, arrows_of_scores, flow
from workshop.drawings.one_head import STEPS, head
from workshop.drawings.planes import moved, plane
from workshop.drawings.stream import river

__all__ = ["STEPS", "arrows_between", "arrows_of_scores", "clock_hands", "cut_into_heads", "flow",
           "head", "holes", "mask_over", "matrix", "moved", "pick_row", "plane", "product",
           "river", "split_qkv", "writing"]  # fmt: skip
