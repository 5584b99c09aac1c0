"""Widgets to look at attention and touch it, alive in JupyterLab, Colab and saved notebooks."""

from workshop.widgets.dropout import DropoutLab
from workshop.widgets.heatmap import AttentionHeatmap
from workshop.widgets.next_token import NextToken
from workshop.widgets.norm import NormLab
from workshop.widgets.positions import PositionExplorer
from workshop.widgets.predict import folded, predict
from workshop.widgets.product import MatrixProduct
from workshop.widgets.softmax import SoftmaxLab

__all__ = ["AttentionHeatmap", "DropoutLab", "MatrixProduct", "NextToken", "NormLab",
           "PositionExplorer", "SoftmaxLab", "folded", "predict"]  # fmt: skip
