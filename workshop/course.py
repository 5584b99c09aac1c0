"""The stages of the course, one list for all that speak of them: the checks, `mine`, the tests."""

TITLES = {
    "00": "Predict the next word",
    "01": "One-hot vectors",
    "02": "Queries, keys, values",
    "03": "Attention scores",
    "04": "Scaling",
    "05": "Softmax",
    "06": "Masking",
    "07": "Dropout",
    "08": "Multi-head",
    "09": "Positional encoding",
    "10": "Add and norm",
    "11": "Feed-forward",
    "12": "Decoder prediction",
    "13": "Train a translator",
    "14": "Real weights",
    "15": "Since 2017",
    "16": "What is inside",
    "17": "Memory and speed",
}
