"""What drawings refuse: each argument is named, with what it was and what it must be."""

import numpy as np
import pytest
import test_drawings

from workshop import drawings

HOLE = np.where(np.arange(12).reshape(6, 2) == 1, np.nan, test_drawings.V)
BAD = """
head(["a"] * 13, X, Q, K, V, 0)  # tokens has 13 words
head(WORDS, X[:5], Q, K, V, 0)  # X has shape (5, 3), but must be (6, features)
head(WORDS, X, Q, X, V, 0)  # K has shape (6, 3), but must be (6, 2)
head(WORDS, X, Q, K, HOLE, 0)  # V (6, 2) has nan at (0, 1)
head(WORDS, X, Q, K, V, "pear")  # asker is 'pear', but must be one of the, shop
head(WORDS, X, Q, K, V, 0, weights=[0.2] * 5)  # weights has shape (5,), but must be (6,)
head(WORDS, X, Q, K, V, 0, lit="mask")  # lit is 'mask', but must be one of x, k
head(WORDS, X, Q, K, V, 0, num_heads=3)  # num_heads is 3, but must divide the 2 features of Q
head(WORDS, X, Q, K, V, 0, num_heads=2, head=3)  # head is 3, but must be a whole number from 1 to 2
head(WORDS, X, Q, K, V, 0, causal=1)  # TypeError: causal is 1, but must be True or False
matrix(HOLE)  # array (6, 2) has nan
matrix(V, "z")  # name is 'z', but must be one of x, q
matrix(V, rows=["a", "b"])  # rows has 2 labels, but needs 6
matrix(np.ones((13, 1)))  # array has 13 rows, but a drawing has room for 12
product(X, W_Q.T)  # W has shape (2, 3), but must be (3, columns)
product(X, W_Q, lit=(0, 2))  # lit's column is 2
product(X, W_Q, lit=3)  # lit is 3, but must be (row, column)
split_qkv("apple", X[3], W_Q, W_K[:2], W_Q)  # W_k has shape (2, 2)
pick_row(WORDS, X, "pear")  # chosen is 'pear'
arrows_of_scores(WORDS, Q)  # scores has shape (6, 2), but must be (6, 6)
plane(WORDS, V, asker=0)  # asker is 0, but without contexts none
plane(WORDS, V, C[3])  # context has shape (2,), but must be (6, 2)
plane(WORDS, V, C[3], 3, beside=("a b", V[:2], V[0]))  # beside: asker is 3, but must be a whole
plane(WORDS, V, C[3], 3, beside=V)  # TypeError: beside: array
plane(WORDS, V, beside=(WORDS, V, C))  # beside is a second sentence, but the first
matrix(V, lit=6)  # lit's row is 6, but must be a whole number from 0 to 5
moved("apple", V[3], X[3])  # context has shape (3,), but must be (2,)
mask_over(WORDS, S, np.ones((6, 5), bool))  # allowed has shape (6, 5)
cut_into_heads(WORDS, np.ones((6, 13)), 1)  # X has 13 features
arrows_between(WORDS, SOURCE, X[:, 0], 0)  # weights has shape (6,), but must be (5,)
writing([("a", {"b": 1})] * 7)  # steps has 7 entries
writing([])  # steps has 0 entries
writing([(["a"] * 11, {"b": 1})])  # steps[0][0] has 11 words
writing([("a", {"b": 1.5})])  # steps[0][1]['b'] is 1.5, but must be from 0
writing([("a", {"b": 1}), ("c b", {"d": 1})])  # steps[1] has 'c b', but must begin with
writing([("a", {"b": 1}), ("a c", {"d": 1})])  # steps[0] has no probability for 'c'
writing("the")  # TypeError: steps is 'the', but must be a list
writing([("a", [0.1])])  # TypeError: steps[0] has [0.1] (list), but needs wor
clock_hands(WORDS, X)  # X has 3 features, but must have an even
clock_hands(WORDS, V, order="cos, sin")  # order is 'cos, sin', but must be one of sin, cos; x, y
river("a", X[3], dict.fromkeys("abcdefg", X[3]))  # added has 7 sublayers
river("a", X[3], {"b": V[3]})  # added['b'] has shape (2,), but must be (3,)
river("a", X[3], [1, 2])  # TypeError: added is [1, 2] (list), but must be names
river("a", X[3], ADDED, replaced=1)  # TypeError: replaced is 1, but must be True or False
river(3, X[3], ADDED)  # TypeError: token is 3, but must be a string
flow({"reads": ["a", "b"]}, "sum")  # lit is 'sum', but must be one of a, b
"""


@pytest.mark.parametrize("line", BAD.strip().splitlines())
def test_what_does_not_fit_is_named(line):
    call, _, message = line.partition("  # ")
    kind = TypeError if message.startswith("TypeError: ") else ValueError
    with pytest.raises(kind) as error:
        eval(call, vars(test_drawings) | vars(drawings) | {"HOLE": HOLE})
    assert message.removeprefix("TypeError: ") in str(error.value)
