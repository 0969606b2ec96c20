"""TraceGenerator and its tracks as Nova's _tgen has them; see stave.compat.nova.

Events go to the file directly, by C code: there is no queue that could overflow and no worker. Children that the program forks while a generator is open
append theirs to an unnamed temporary file that the parent reads at the end, as the original's worker process received them.
"""
import fcntl
import os
import pickle
import struct
import tempfile
import weakref

from .. import generator as _generator

NORMAL, COUNTER, GROUP = 0, 1, 2  # the original's numbers of track types
_FIRST_UUID = 1234567


def _annotations(kwargs):
    """The original shows a list below `data_list`."""
    if isinstance(kwargs, (list, tuple)) and not hasattr(kwargs, "_fields"):
        return {"data_list": kwargs}
    return _generator._plain(kwargs)


class BaseTrack(_generator.BaseTrack):
    """What all tracks have: a name, a number, and submit()."""

    def __init__(self, parent, row, name, uuid):
        super().__init__(parent, row, name)
        self._uuid = uuid

    def submit(self, task_type, task_param):
        """Of the track's generator."""
        self._parent.submit(task_type, task_param)


class NormalTrack(BaseTrack, _generator.NormalTrack):
    """Slices and moments: duration(ts, dur, annotation, kwargs, flow, category_list), instant(ts, annotation, …), in seconds."""

    _plain = staticmethod(_annotations)


class CounterTrack(BaseTrack, _generator.CounterTrack):
    """A value over time: count(ts, value), in seconds."""


def _one(track_name, name, default=None):
    """Of the two words for a name the one that was given."""
    if track_name is not None and name is not None:
        raise TypeError("track_name and name are two words for one thing: give one of them")
    found = name if track_name is None else track_name
    if found is None and default is None:
        raise TypeError("track_name: a name is needed")
    return default if found is None else found


class GroupTrack(NormalTrack):
    """A track that others hang below; it takes events, too."""

    def create_track(self, track_name=None, tid=None, *, name=None):
        """A row below this one; without a name it has this one's. `tid` is ignored, as in the original. `name` is another word for `track_name`."""
        return self._parent._create_track(self._uuid, _one(track_name, name, self._name), NORMAL)

    def create_counter_track(self, track_name=None, *, name=None):
        """A counter below this one."""
        return self._parent._create_counter_track(self._uuid, _one(track_name, name))

    def create_group(self, track_name=None, *, name=None):
        """A group below this one."""
        return self._parent._create_track(self._uuid, _one(track_name, name), GROUP)


class Group(BaseTrack):
    """The top: shown as a process."""

    create_track = GroupTrack.create_track
    create_counter_track = GroupTrack.create_counter_track
    create_group = GroupTrack.create_group


_KINDS = {NORMAL: NormalTrack, COUNTER: CounterTrack, GROUP: GroupTrack}


class _Spool:
    """Takes the place of the file in a forked child. Rows made there have the child's own numbers until the parent reads them."""

    def __init__(self, fd):
        self._fd, self._n = fd, 0

    def _write(self, *record):
        try:
            bytes_ = pickle.dumps(record)
        except Exception:  # an argument that cannot be sent: by its repr, as everything else that is no value
            bytes_ = pickle.dumps(tuple(r if isinstance(r, (str, int, float, tuple, list, type(None))) else repr(r) for r in record))
        os.write(self._fd, struct.pack("=Q", len(bytes_)) + bytes_)  # O_APPEND: whole, whoever else writes

    def _row(self, *record):
        self._n += 1
        row = ("row", os.getpid(), self._n)
        self._write(row, *record)
        return row

    def process(self, pid, name):
        return self._row("process", pid, name)

    def track(self, parent, name):
        return self._row("track", parent, name)

    def counter(self, parent, name, unit=""):
        return self._row("counter", parent, name, unit)

    def slice(self, *args):
        self._write(None, "slice", *args)

    def instant(self, *args):
        self._write(None, "instant", *args)

    def count(self, *args):
        self._write(None, "count", *args)

    def close(self):
        """The parent reads it."""


def _read_spool(generator):
    """What the children wrote, into the file. Groups of one name are one, whoever made them."""
    fd, rows, at = generator._spool.fileno(), {}, 0
    while len(head := os.pread(fd, 8, at)) == 8:
        size, = struct.unpack("=Q", head)
        row, method, *args = pickle.loads(os.pread(fd, size, at + 8))
        at += 8 + size
        if method == "process":
            rows[row] = generator._create_group(args[1])._row
            continue
        args[0] = rows.get(args[0], args[0])
        made = getattr(generator._file, method)(*args)
        if row is not None:
            rows[row] = made


class _Queue:
    """put((task_type, task_param)) is submit(task_type, task_param)."""

    def __init__(self, generator):
        self._generator = weakref.ref(generator)

    def put(self, task):
        self._generator().submit(*task)


class TraceGenerator(_generator.TraceGenerator):
    """Writes `filename`; complete after block_until_all_tasks_done(), or at the end of the program.

    BOSSANOVA_PROTOBUF_MP is accepted and changes nothing: with either value events are written without waiting for Python, and forked children share the file.
    """

    def __init__(self, filename, gcu_id=0):
        super().__init__(filename, gcu_id)
        self.queue = _Queue(self)
        self._spool = tempfile.TemporaryFile(buffering=0)
        fcntl.fcntl(self._spool, fcntl.F_SETFL, fcntl.fcntl(self._spool, fcntl.F_GETFL) | os.O_APPEND)
        self._rows, self._made = {0: 0}, {}
        self.__pid__, self.__uuid__ = 1, _FIRST_UUID
        _all.add(self)

    def __deepcopy__(self, memo):
        """A copy of a simulator does not trace: None, as in the original."""
        return None

    # ---- tracks ----

    def _number(self, uuid):
        if uuid is None:
            uuid, self.__uuid__ = self.__uuid__, self.__uuid__ + 1
        if uuid in self._rows:
            raise ValueError(f"stave: track {uuid} exists already")
        return uuid

    def _row_of(self, parent):
        uuid = getattr(parent, "_uuid", parent)
        if uuid not in self._rows:
            raise ValueError(f"stave: there is no track {uuid}")
        return self._rows[uuid]

    def _make(self, cls, uuid, row, name):
        track = self._made[uuid] = cls(self, row, str(name), uuid)
        self._rows[uuid] = row
        return track

    def _create_group(self, process_name, track_name=None, *, uuid=None):
        """A group, shown as a process. The same names are the same group."""
        def make():
            number, name = self._number(uuid), track_name or process_name
            self.__pid__ += 1
            return self._make(Group, number, self._file.process(self.gcu_id * 100000 + next(_generator._numbers), str(name)), name)
        return self._once(("group", process_name, track_name, uuid), make)

    def _create_track(self, parent_uuid, track_name, ttype=NORMAL, *, uuid=None):
        if ttype not in _KINDS:
            raise ValueError(f"stave: track type {ttype!r}: expected 0 (normal), 1 (counter) or 2 (group)")

        def make():
            parent, number = self._row_of(parent_uuid), self._number(uuid)
            self.__pid__ += 1
            kind = self._file.counter if ttype == COUNTER else self._file.track
            return self._make(_KINDS[ttype], number, kind(parent, str(track_name)), track_name)
        return self._once((getattr(parent_uuid, "_uuid", parent_uuid), track_name, ttype, uuid), make)

    def _create_counter_track(self, parent_uuid, track_name, ttype=COUNTER):
        return self._create_track(parent_uuid, track_name, ttype)

    create_group = _create_group

    # ---- tasks ----

    def submit(self, task_type, task_param):
        """A task as the original's tracks put it into their queue: whole nanoseconds, and `dur` of a duration is its end."""
        task = _TASKS.get(task_type)
        if task is None:
            raise ValueError(f"stave: task {task_type!r}: expected {', '.join(sorted(_TASKS))}")
        task(self, **task_param)

    def _track(self, uuid):
        if uuid not in self._made:
            raise ValueError(f"stave: there is no track {uuid}")
        return self._made[uuid]

    def _duration(self, uuid, ts, dur, annotation, kwargs=None, flow=None, category_list=None):
        self._track(uuid).duration_ns(ts, dur - ts, annotation, kwargs, flow, category_list)

    def _instant(self, uuid, ts, annotation, kwargs=None, flow=None, category_list=None):
        self._track(uuid).instant_ns(ts, annotation, kwargs, flow, category_list)

    def _count(self, uuid, ts, value):
        self._track(uuid).count_ns(ts, value)

    def close(self):
        """The file is complete, with what forked children have written until now. Again: nothing happens."""
        if self._pid == os.getpid() and not self._spool.closed:
            try:
                _read_spool(self)
            finally:
                self._spool.close()
        super().close()

    block_until_all_tasks_done = close


_TASKS = {
    "create_header": lambda t: None,  # a file has its header
    "create_group": lambda t, uuid, pid, process_name, track_name=None: t._create_group(process_name, track_name, uuid=uuid),
    "create_track": lambda t, uuid, tid, parent_uuid, track_name, ttype: t._create_track(parent_uuid, track_name, ttype, uuid=uuid),
    "duration": TraceGenerator._duration,
    "instant": TraceGenerator._instant,
    "count": TraceGenerator._count,
    "exit": TraceGenerator.close,
}

_all = weakref.WeakSet()


def _in_child():
    for generator in list(_all):
        if not generator._spool.closed:
            generator._file = _Spool(generator._spool.fileno())


os.register_at_fork(after_in_child=_in_child)
