"""Traces with explicit times, for simulators: TraceGenerator and its tracks.

Times are seconds, whatever their type: ``duration(2, 1, "op")``, ``duration(2.0, 1.0, "op")`` and the same with NumPy's numbers are one
slice. Methods whose names end in ``_ns`` take whole nanoseconds, exactly: ``duration_ns(2_000_000_000, 1_000_000_000, "op")``. Events may
come in any order and slices may overlap. Each generator writes its own file; several may be open at once, and none of their identities clash.
"""
import atexit
import dataclasses
import itertools
import operator
import os
import threading
import weakref

from . import _errors, _stave

_open_generators = weakref.WeakSet()
_numbers = itertools.count(1)  # shared by all generators: files of one program can be merged


def _number(t):
    """The int or float that a time is: NumPy's numbers lose their type, so that no arithmetic is done in 32 bits."""
    if isinstance(t, float):
        return float(t)
    try:
        return operator.index(t)
    except TypeError:
        if not hasattr(t, "__float__"):
            raise TypeError(f"stave: a time is a number of seconds, not {type(t).__name__}") from None
        return float(t)


def _ns(seconds):
    """Whole nanoseconds: exact for whole seconds, otherwise rounded once."""
    return seconds * 1_000_000_000 if isinstance(seconds, int) else round(seconds * 1e9)


def _whole(ns):
    try:
        return operator.index(ns)
    except TypeError:
        raise TypeError(f"stave: expected whole nanoseconds, not {type(ns).__name__}; the method without _ns takes seconds") from None


def open_file(path, compress=None):
    """A file with explicit times. OSError with errno where the system refuses, ValueError where the name or an option is not usable."""
    try:
        return _stave.File(path, compress)
    except OSError as error:
        raise _errors.failure(str(error).removeprefix(f"{path}: "), path) from None


def _plain(kwargs):
    if dataclasses.is_dataclass(kwargs) and not isinstance(kwargs, type):
        return {f.name: getattr(kwargs, f.name) for f in dataclasses.fields(kwargs)}
    return kwargs


class BaseTrack:
    """What all tracks have: a name."""

    def __init__(self, parent, row, name):
        self._parent, self._row, self._name = parent, row, name

    @property
    def name(self):
        """As it is in the trace."""
        return self._name


class NormalTrack(BaseTrack):
    """Slices and moments."""

    _plain = staticmethod(_plain)

    def _slice(self, start, dur, annotation, kwargs, flow, category_list):
        if dur < 0:
            raise ValueError(f"stave: {annotation}: the duration is negative")
        self._parent._file.slice(self._row, start, dur, annotation if type(annotation) is str else str(annotation),
                                 None if kwargs is None else self._plain(kwargs), flow, ",".join(category_list) if category_list else "")

    def _instant(self, ts, annotation, kwargs, flow, category_list):
        self._parent._file.instant(self._row, ts, annotation if type(annotation) is str else str(annotation),
                                   None if kwargs is None else self._plain(kwargs), flow, ",".join(category_list) if category_list else "")

    def duration(self, ts, dur, annotation, kwargs=None, flow=None, category_list=None):
        """A slice from `ts`, `dur` long, in seconds. flow: numbers, or stave.Flow objects, of the arrows that pass."""
        # The end is rounded like every start: what touches in the simulator touches in the trace.
        if type(ts) is float and type(dur) is float:
            start, end = round(ts * 1e9), round((ts + dur) * 1e9)
        else:
            ts, dur = _number(ts), _number(dur)
            start, end = _ns(ts), _ns(ts + dur)
        self._slice(start, end - start, annotation, kwargs, flow, category_list)

    def duration_ns(self, ts_ns, dur_ns, annotation, kwargs=None, flow=None, category_list=None):
        """The same in whole nanoseconds."""
        self._slice(_whole(ts_ns), _whole(dur_ns), annotation, kwargs, flow, category_list)

    def instant(self, ts, annotation, kwargs=None, flow=None, category_list=None):
        """A moment at `ts` seconds."""
        self._instant(_ns(_number(ts)), annotation, kwargs, flow, category_list)

    def instant_ns(self, ts_ns, annotation, kwargs=None, flow=None, category_list=None):
        """The same in whole nanoseconds."""
        self._instant(_whole(ts_ns), annotation, kwargs, flow, category_list)


class CounterTrack(BaseTrack):
    """A value over time."""

    def count(self, ts, value):
        """The value from `ts` seconds on."""
        self.count_ns(_ns(_number(ts)), value)

    def count_ns(self, ts_ns, value):
        """The same in whole nanoseconds."""
        self._parent._file.count(self._row, _whole(ts_ns), value)


class GroupTrack(NormalTrack):
    """A track that others hang below; it takes events, too."""

    def create_track(self, name=None, tid=None):
        """A row below this one; without a name it has this one's. `tid` is ignored."""
        return self._parent._create_track(self, name or self._name)

    def create_counter_track(self, name, unit=""):
        """A counter below this one."""
        return self._parent._create_counter_track(self, name, unit)

    def create_group(self, name):
        """A group below this one; groups nest to any depth."""
        return self._parent._create_group_track(self, name)


class Group(BaseTrack):
    """The top: shown as a process."""

    create_track = GroupTrack.create_track
    create_counter_track = GroupTrack.create_counter_track
    create_group = GroupTrack.create_group


class TraceGenerator:
    """Writes `filename` (.pftrace, .perfetto-trace, .json …); complete after close(), or at the end of the program."""

    def __init__(self, filename, gcu_id=0, *, compress=None):
        self.filename, self.gcu_id = os.fspath(filename), gcu_id
        self._file = open_file(self.filename, compress)
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self.tgen_cluster, self.track_map = {}, {}
        _open_generators.add(self)

    def _once(self, key, make):
        with self._lock:
            track = self.track_map.get(key)
            if track is None:
                track = self.track_map[key] = make()
            return track

    def _create_group(self, process_name, track_name=None):
        """A group, shown as a process. The same names are the same group."""
        def make():
            name = track_name or process_name
            return Group(self, self._file.process(self.gcu_id * 100000 + next(_numbers), str(name)), str(name))
        return self._once(("group", process_name, track_name), make)

    create_group = _create_group

    def _create_track(self, parent, name, tid=None):
        return self._once((parent._row, name, "track"),
                          lambda: NormalTrack(self, self._file.track(parent._row, str(name)), str(name)))

    def _create_group_track(self, parent, name):
        return self._once((parent._row, name, "group"),
                          lambda: GroupTrack(self, self._file.track(parent._row, str(name)), str(name)))

    def _create_counter_track(self, parent, name, unit=""):
        return self._once((parent._row, name, "counter"),
                          lambda: CounterTrack(self, self._file.counter(parent._row, str(name), unit), str(name)))

    def get_cluster_tgen(self, die_id=None, cid=None):
        """The group of a cluster of a die; without a cluster the die's own, without a die the one of all."""
        if die_id is None and cid is None:
            name = "Global"
        elif cid is None:
            name = f"Die:{die_id}, Global"
        else:
            name = f"Die:{die_id}, Cluster:{cid}"
        with self._lock:
            group = self.tgen_cluster.get((die_id, cid))
            if group is None:
                group = self.tgen_cluster[die_id, cid] = self._create_group(name)
            return group

    def close(self):
        """The file is complete. Again: nothing happens."""
        _open_generators.discard(self)
        if self._pid == os.getpid():
            self._file.close()

    block_until_all_tasks_done = close

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _close_all():
    for generator in list(_open_generators):
        generator.close()


atexit.register(_close_all)
