"""Widgets to look at attention and touch it, alive in JupyterLab, Colab and saved notebooks."""

from helpers.widgets.dropout import DropoutLab
from helpers.widgets.heatmap import AttentionHeatmap
from helpers.widgets.machine import Machine
from helpers.widgets.next_token import NextToken
from helpers.widgets.norm import NormLab
from helpers.widgets.positions import PositionExplorer
from helpers.widgets.predict import folded, predict
from helpers.widgets.product import MatrixProduct
from helpers.widgets.softmax import SoftmaxLab

__all__ = ["AttentionHeatmap", "DropoutLab", "Machine", "MatrixProduct", "NextToken", "NormLab",
           "PositionExplorer", "SoftmaxLab", "folded", "predict"]  # fmt: skip
