"""Gradients reach a tensor's hooks before those of what it was made of."""
import types


class record_function:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


profiler = types.SimpleNamespace(record_function=record_function)


def _give_gradient(tensor):
    for hook in tensor.hooks:
        hook(None)
    for parent in tensor.parents:
        _give_gradient(parent)


def backward(tensor):
    _give_gradient(tensor)
