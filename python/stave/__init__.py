from . import _stave
