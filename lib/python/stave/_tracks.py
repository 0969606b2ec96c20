"""Tracks, groups, counters and flows."""
from . import _stave

PROCESS, ROOT = 1, 2


def _parent(parent):
    return PROCESS if parent is None else parent if isinstance(parent, int) else parent.id


def _text(name):
    """A name, whatever it is: making a row raises no more than an event does."""
    try:
        return str(name)
    except Exception:
        return f"<{type(name).__name__}>"


class track(_stave.Track):
    """A row of its own: ``track("Compute").trace("matmul")``. The same name below the same parent is the same row."""

    def __init__(self, name, parent=None, *, order=None):
        self.name = _text(name)
        super().__init__(_stave.track_new(_parent(parent), self.name))
        if order is not None:
            _stave.track_order(self.id, order)

    def track(self, name, *, order=None):
        """A row below this one."""
        return track(name, self, order=order)

    def group(self, name, *, order=None):
        """A group below this one; groups nest to any depth."""
        return group(name, self, order=order)

    def count(self, name, unit=""):
        """A counter below this one."""
        return count(name, unit, parent=self)

    def __reduce__(self):
        raise TypeError("stave: tracks belong to their process; make one where it is used")

    def __repr__(self):
        return f"<stave.{type(self).__name__} {self.name!r}>"


class group(track):
    """A track that others hang below."""


class count(_stave.Counter):
    """A value over time: ``count("memory").count(500)``, ``.increment(100)``. One per parent and name."""

    _all = {}

    def __new__(cls, name, unit="", *, parent=None):
        key = (_parent(parent), _text(name))
        self = cls._all.get(key)
        if self is None:
            self = super().__new__(cls)
            _stave.Counter.__init__(self, _stave.counter_new(key[0], key[1], _text(unit)))
            self.name = key[1]
            self = cls._all.setdefault(key, self)
        return self

    def __init__(self, name, unit="", *, parent=None):
        pass

    def __repr__(self):
        return f"<stave.count {self.name!r} = {self.value}>"


class Flow:
    """An arrow: give it as ``flow=`` to the event where it starts and to each that it passes.

    It is a number, unique across processes; it can be sent to another one and used there.
    """

    __slots__ = ("id",)

    def __init__(self, id=None):
        self.id = _stave.flow_new() if id is None else int(id)

    def __index__(self):
        return self.id

    __int__ = __index__

    def __eq__(self, other):
        return isinstance(other, Flow) and other.id == self.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<stave.Flow {self.id}>"

    def __reduce__(self):
        return Flow, (self.id,)


def flow():
    """A new arrow."""
    return Flow()
