"""Widgets to look at attention and touch it, alive in JupyterLab, Colab and saved notebooks."""

from workshop.widgets.dropout import DropoutLab
from workshop.widgets.heatmap import AttentionHeatmap
from workshop.widgets.predict import folded, predict

__all__ = ["AttentionHeatmap", "DropoutLab", "folded", "predict"]
