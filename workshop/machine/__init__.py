"""The machine: a model as a program of named steps, made of arrays or of PyTorch's modules."""
