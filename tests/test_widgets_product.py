"""MatrixProduct in Python: what it accepts, what it says, what it carries, its picture."""

import numpy as np
import pytest
import torch

from helpers.attention import attention_scores
from helpers.widgets.product import MatrixProduct

RNG = np.random.default_rng(5)
Q, K = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2))
ROWS, COLUMNS = ["one", "two", "three"], ["a", "b", "c", "d"]


def test_words_name_the_shapes_and_the_largest_number():
    product = MatrixProduct(
        [[1, 2], [0, 3], [0, 0]], [[4, 0], [0, 5]], rows=ROWS, columns=["x", "y"]
    )
    words = 'MatrixProduct: A (3, 2) @ B (2, 2) = (3, 2); largest: row "two", column "y" 15.0000'
    assert repr(product) == product.words == words
    named = MatrixProduct(Q, K, transposed=True, names=("Q", "K", "scores"))
    assert named.words.startswith("MatrixProduct: Q (3, 2) @ Kᵀ (2, 4) = scores (3, 4); largest: ")


def test_words_do_not_hang_on_a_last_bit():
    """0.1 + 0.2 and 0.3 are the same largest number: the first one is named."""
    product = MatrixProduct([[0.3, 0], [0.1, 0.2]], [[1], [1]], rows=["first", "second"])
    assert 'row "first"' in product.words


def test_a_transposed_matrix_is_the_same_product():
    turned = MatrixProduct(Q, K, transposed=True, names=("Q", "K"), rows=ROWS, columns=COLUMNS)
    plain = MatrixProduct(Q, K.T, names=("Q", "Kᵀ"), rows=ROWS, columns=COLUMNS)
    assert turned.words == plain.words and turned.names == ["Q", "Kᵀ", "Q @ Kᵀ"]
    assert turned.arrays == plain.arrays
    np.testing.assert_allclose(turned.product, attention_scores(Q, K))


def test_tensors_and_numpy_come_in_as_float32():
    product = MatrixProduct(torch.tensor(Q, requires_grad=True), torch.tensor(K).T)
    assert product.arrays["A"]["shape"] == [3, 2] and product.arrays["A"]["step"] == 0
    np.testing.assert_array_equal(
        np.frombuffer(product.arrays["A"]["bytes"], "<f4"), Q.ravel().astype("f4")
    )
    np.testing.assert_allclose(product.product, Q @ K.T)


def test_labels_are_numbers_unless_given():
    product = MatrixProduct(Q, K.T)
    assert (product.rows, product.inner) == (["1", "2", "3"], ["1", "2"])
    assert product.columns == ["1", "2", "3", "4"]


def test_the_largest_matrices_are_saved_exactly():
    product = MatrixProduct(RNG.normal(size=(64, 64)), RNG.normal(size=(64, 64)))
    assert [packed["step"] for packed in product.arrays.values()] == [0, 0]


@pytest.mark.parametrize(
    "A, B, options, message",
    [
        (Q, K, {}, r"A has shape \(3, 2\) and B \(4, 2\), .* as B has rows: add transposed=True\?"),
        (Q, K.T, {"transposed": True}, r"B\.T has rows: leave out transposed=True\?"),
        (Q, np.ones((3, 3)), {}, r"A has shape \(3, 2\) and B \(3, 3\).* as B has rows$"),
        (Q[0], K.T, {}, r"A has shape \(2,\), but must be a matrix"),
        (Q, K[None], {}, r"B has shape \(1, 4, 2\), but must be a matrix"),
        (np.ones((65, 2)), K.T, {}, r"A has shape \(65, 2\).* at most 64.*A\[:64, :64\]"),
        (Q, np.ones((2, 65)), {}, r"B has shape \(2, 65\).* at most 64"),
        (Q * np.nan, K.T, {}, r"A \(3, 2\) has nan at \(0, 0\)"),
        (Q, np.full((2, 4), -np.inf), {}, r"B \(2, 4\) has -inf at \(0, 0\)"),
        (np.ones((0, 2)), K.T, {}, r"A has shape \(0, 2\): there is nothing"),
        (Q, K.T, {"rows": COLUMNS}, r"rows has 4 entries, but A \(3, 2\) @ B \(2, 4\) needs 3"),
        (Q, K.T, {"columns": ROWS}, "columns has 3 entries.* needs 4"),
        (Q, K.T, {"inner": ROWS}, "inner has 3 entries.* needs 2"),
        (Q, K.T, {"names": ["Q"]}, "names is .'Q'., but must be"),
        (Q, K.T, {"selected": (3, 0)}, r"selected is \(3, 0\), but the product has shape \(3, 4\)"),
        (Q, K.T, {"selected": (0, -1)}, r"selected is \(0, -1\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown(A, B, options, message):
    with pytest.raises(ValueError, match=message):
        MatrixProduct(A, B, **options)


@pytest.mark.parametrize("name", ["rows", "names"])
def test_labels_that_are_a_string(name):
    with pytest.raises(TypeError, match=f"{name} is 'abc', but must be a list"):
        MatrixProduct(Q, K.T, **{name: "abc"})


def test_selected_can_be_set_and_watched_and_stays_inside():
    product, seen = MatrixProduct(Q, K.T, selected=(2, 3)), []
    product.observe(lambda change: seen.append(change["new"]), "selected")
    product.selected = [1, 2]
    with pytest.raises(ValueError, match=r"selected is \(1, 4\)"):
        product.selected = (1, 4)
    assert product.selected == (1, 2) and seen == [(1, 2)]


@pytest.mark.parametrize(
    "A, B", [(Q, K.T), ([[2]], [[3]]), (np.ones((64, 64)), np.ones((64, 1))), (Q * 0, K.T)]
)
def test_the_picture_carries_the_words(A, B, recwarn):
    product = MatrixProduct(A, B, columns=["$x$"] * np.shape(B)[1])
    data, metadata = product._repr_mimebundle_()
    assert data["text/plain"] == metadata["image/png"]["alt"] == product.words
    assert metadata["image/png"]["width"] <= 930 and len(data["image/png"]) > 2000
    assert not [str(warning.message) for warning in recwarn]
