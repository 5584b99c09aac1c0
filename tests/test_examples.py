"""The head that a pencil checks: sentences of its words."""

import numpy as np
import pytest

from helpers.examples import sentence


def test_a_sentence_has_its_words_vectors_queries_keys_and_values():
    words, X, Q, K, V = sentence("apple and laptop")
    assert words == ["apple", "and", "laptop"]
    np.testing.assert_array_equal(X, [[2, 2, 0], [0, 0, 0], [0, 4, 1]])
    np.testing.assert_array_equal(Q, [[2, 2], [0, 0], [0, 4]])
    np.testing.assert_array_equal(K, [[1, 1], [0, 0], [0, 2]])
    np.testing.assert_array_equal(V, Q)


@pytest.mark.parametrize("text, what", [("the red apple", "has 'red'"), (" ", "is ' '")])
def test_what_the_example_does_not_know_is_named(text, what):
    with pytest.raises(ValueError, match=f"text {what}, but must be made of the, shop"):
        sentence(text)
