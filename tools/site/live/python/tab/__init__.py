"""What a page's Python needs beside the course: a shell for cells, outputs, and words for PyTorch.

IPython and anywidget, in the folder above, are as much of these as the course uses.
"""
