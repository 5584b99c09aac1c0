"""Widgets to look at attention and touch it, alive in JupyterLab, Colab and saved notebooks."""

from workshop.widgets.dropout import DropoutLab
from workshop.widgets.heatmap import AttentionHeatmap
from workshop.widgets.predict import predict

__all__ = ["AttentionHeatmap", "DropoutLab", "predict"]
