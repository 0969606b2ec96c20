"""Traces in process, by libstave-read: what stave.load() gives. ctypes releases the GIL for the time of each call."""
import ctypes
import html
import json
import os
import re
import threading
import warnings
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p

from . import _stave

__all__ = ["Error", "Explanation", "Finding", "Picture", "Result", "Trace", "load"]

_MAJOR = _stave.version.split(".")[0]
_ROWS_SHOWN = 20  # in a notebook and by print()
_INT, _REAL, _TEXT, _BLOB, _MIXED = range(1, 6)
_EUSAGE, _EMEMORY, _EINPUT, _EINTERRUPTED = -1, -4, -5, -7  # enum stave_code


class Error(RuntimeError):
    """A trace cannot be loaded, drawn or reported on. Bad SQL and unknown names are a ValueError, files that cannot be opened an OSError."""


_WORDS = {  # what the program's messages call --NAME, and what it is here
    "from": "format", "input-format": "format", "strict": "strict=True", "assume": "assume=True", "no-index": "index=False", "memory-limit": "memory_limit",
    "threads": "threads", "time": "time", "width": "width", "height": "height", "top": "top", "title": "title", "unit": "unit"}


def _in_python(text):
    """A message of the library, whose words are options of the program, in words of this module."""
    text = re.sub(r"; --from FORMAT forces one$", "; format='perfetto' (or another one, see stave formats) says what it is", text)
    text = text.replace("only files can be loaded; 'stave query' asks databases", "only files can be loaded; the program asks databases (stave query)")
    return re.sub(r"(?<!stave cut )--([a-z]+(?:-[a-z]+)*)", lambda m: _WORDS.get(m[1], m[0]), text)


class _Error(ctypes.Structure):  # <stave/error.h>
    _fields_ = [("code", c_int), ("os_error", c_int), ("text", ctypes.c_char * 600)]

    def exception(self):
        text = _in_python(self.text.decode(errors="replace"))
        kind = {_EUSAGE: ValueError, _EMEMORY: MemoryError, _EINTERRUPTED: KeyboardInterrupt}.get(self.code, Error)
        return kind(text)


class _Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("from_", c_char_p), ("strict", c_bool), ("assume", c_bool), ("no_index", c_bool),
                ("memory_limit", c_uint64), ("threads", ctypes.c_uint)]


class _Column(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_int), ("has_nulls", c_bool), ("types", c_void_p), ("values", c_void_p), ("reals", c_void_p)]


class _Plot(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("kind", c_char_p), ("names", POINTER(c_char_p)), ("n_names", c_size_t), ("title", c_char_p),
                ("from_ns", c_int64), ("to_ns", c_int64), ("width", c_uint), ("height", c_uint), ("top", c_size_t)]


class _Value(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_int), ("i", c_int64), ("real", c_double), ("bytes", c_char_p), ("len", c_size_t)]


_FUNCTIONS = {  # name: result, arguments
    "version": (c_char_p, []),
    "open": (c_void_p, [POINTER(c_char_p), c_size_t, POINTER(_Options), POINTER(_Error)]),
    "close": (None, [c_void_p]),
    "damage": (c_uint64, [c_void_p]),
    "query_with": (c_void_p, [c_void_p, c_char_p, POINTER(_Value), c_size_t, POINTER(_Error)]),
    "interrupt": (None, [c_void_p]),
    "table_free": (None, [c_void_p]),
    "n_rows": (c_size_t, [c_void_p]),
    "n_columns": (c_size_t, [c_void_p]),
    "column": (POINTER(_Column), [c_void_p, c_size_t]),
    "texts": (c_size_t, [c_void_p, POINTER(c_void_p), POINTER(c_void_p)]),
    "report": (c_void_p, [c_void_p, c_char_p, c_size_t, POINTER(c_size_t), POINTER(_Error)]),
    "explain": (c_void_p, [c_void_p, c_char_p, POINTER(c_size_t), POINTER(_Error)]),
    "picture": (c_void_p, [c_void_p, POINTER(_Plot), c_char_p, c_double, POINTER(c_size_t), POINTER(_Error)]),
    "free": (None, [c_void_p]),
}


def _find():
    """The library beside this file (wheels, the build folder), else where the system looks. STAVE_READ_LIBRARY names another one."""
    given = os.environ.get("STAVE_READ_LIBRARY")
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"libstave-read.so.{_MAJOR}")
    name = given or (beside if os.path.exists(beside) else f"libstave-read.so.{_MAJOR}")
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"stave.load needs the library libstave-read, which cannot be loaded ({error}): install the package or wheel of stave "
                          f"that has it, run 'make install', or name the file with STAVE_READ_LIBRARY=/path/libstave-read.so") from None


class _Library:
    """The functions of the library, loaded at the first use."""

    def __getattr__(self, name):
        library = _find()
        for function, (result, arguments) in _FUNCTIONS.items():
            found = getattr(library, "stave_read_" + function)
            found.restype, found.argtypes = result, arguments
            setattr(self, function, found)
        version = self.version().decode()
        if version != _stave.version:
            vars(self).clear()
            raise ImportError(f"libstave-read is of version {version}, the Python package of {_stave.version}: install both of one version")
        return vars(self)[name]


_lib = _Library()


def _path(path):
    raw = os.fsencode(path)
    if b"\0" in raw:
        raise ValueError("a path has no NUL")
    return raw


def _words(words):
    return (c_char_p * len(words))(*words)


def _text(text):
    if not isinstance(text, str):
        raise TypeError(f"expected a str, not {type(text).__name__}")
    raw = text.encode(errors="surrogateescape")
    if b"\0" in raw:
        raise ValueError("SQL and names have no NUL")
    return raw


def _value(name, value):
    """A parameter of SQL, as sqlite3 takes them; numbers of NumPy are numbers, too."""
    if hasattr(value, "item") and not isinstance(value, (int, float, str, bytes)):
        value = value.item()
    v = _Value(name=None if name is None else _text(name))
    if isinstance(value, int):
        if not -2**63 <= value < 2**63:
            raise OverflowError("a parameter does not fit into 64 bits")
        v.type, v.i = _INT, value
    elif isinstance(value, float):
        v.type, v.real = _REAL, value
    elif isinstance(value, (str, bytes, bytearray, os.PathLike)):
        value = os.fspath(value) if isinstance(value, os.PathLike) else value
        raw = value.encode(errors="surrogateescape") if isinstance(value, str) else bytes(value)
        v.type, v.bytes, v.len = _TEXT if isinstance(value, str) else _BLOB, raw, len(raw)
    elif value is not None:
        raise TypeError(f"a parameter is None, a number, str or bytes, not {type(value).__name__}")
    return v


def _values(params):
    if hasattr(params, "keys"):
        found = [_value(name, params[name]) for name in params]
    elif isinstance(params, (str, bytes)) or not hasattr(params, "__iter__"):
        raise TypeError("params: a sequence or a dictionary of values, as (5,) or {'name': 'read'}")
    else:
        found = [_value(None, value) for value in params]
    return (_Value * len(found))(*found)


def _size(name, value, most=2**32 - 1):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected an int, not {type(value).__name__}")
    if not 0 <= value.__index__() <= most:
        raise ValueError(f"{name}={value}: expected 0 to {most}")
    return value.__index__()


class _Memory:
    """Part of a table's memory for numpy, which keeps this object, and so the table, as long as an array uses it."""

    def __init__(self, owner, address, typestr, count):
        self._owner = owner
        self.__array_interface__ = {"shape": (count,), "typestr": typestr, "data": (address, True), "version": 3}


class _Table:
    """Owns a result of the library."""

    def __init__(self, handle):
        self._handle = handle
        self.n_rows = _lib.n_rows(handle)
        self.columns = [_lib.column(handle, i).contents for i in range(_lib.n_columns(handle))]
        self.names = [c.name.decode(errors="replace") for c in self.columns]
        self._texts = None

    def __del__(self):
        if getattr(self, "_handle", None):
            _lib.table_free(self._handle)
            self._handle = None

    def texts(self):
        """All different texts, as bytes."""
        if self._texts is None:
            where, ends = c_void_p(), c_void_p()
            n = _lib.texts(self._handle, byref(where), byref(ends))
            found, begin = [], 0
            stops = (c_uint64 * n).from_address(ends.value) if n else []
            raw = ctypes.string_at(where.value, stops[n - 1] + 1) if n else b""
            for stop in stops:
                found.append(raw[begin:stop])
                begin = stop + 1
            self._texts = found
        return self._texts

    def strings(self):
        return [t.decode(errors="replace") for t in self.texts()]

    def types(self, column):
        return ctypes.string_at(column.types, self.n_rows) if self.n_rows else b""

    def values(self, column, ctype=c_int64):
        """The 8-byte values as a list."""
        return (ctype * self.n_rows).from_address(column.values)[:] if self.n_rows else []

    def cells(self, column):
        """The column as a list of Python values."""
        if column.type == 0:
            return [None] * self.n_rows
        if column.type == _MIXED:
            return self._mixed(column)
        values = self.values(column, c_double if column.type == _REAL else c_int64)
        if column.type == _TEXT:
            texts = self.strings()
            values = [texts[v] for v in values]
        elif column.type == _BLOB:
            texts = self.texts()
            values = [texts[v] for v in values]
        if column.has_nulls:
            values = [v if t else None for v, t in zip(values, self.types(column))]
        return values

    def _mixed(self, column):
        ints, reals, raw, texts = self.values(column), self.values(column, c_double), self.texts(), self.strings()
        take = [lambda i: None, lambda i: ints[i], lambda i: reals[i], lambda i: texts[ints[i]], lambda i: raw[ints[i]]]
        return [take[t](i) for i, t in enumerate(self.types(column))]


class Result:
    """The rows of a query.

    Iterate over it for tuples; ``len()``, ``r[i]``, ``r["column"]`` (a list), ``r.columns``, ``r.rows()``, ``r.dicts()``,
    ``r.arrays()`` (numpy), ``r.df()`` (pandas). Notebooks show a table.
    """

    def __init__(self, table):
        self._table = table
        self._lists = {}

    @property
    def columns(self):
        """Names of the columns."""
        return list(self._table.names)

    def _column(self, i):
        if i not in self._lists:
            self._lists[i] = self._table.cells(self._table.columns[i])
        return self._lists[i]

    def __len__(self):
        return self._table.n_rows

    def __iter__(self):
        return zip(*(self._column(i) for i in range(len(self._table.names))))

    def __getitem__(self, what):
        if isinstance(what, str):
            if what not in self._table.names:
                raise KeyError(f"no column {what!r}; there are: {', '.join(self._table.names)}")
            return self._column(self._table.names.index(what))
        lists = [self._column(i) for i in range(len(self._table.names))]
        if isinstance(what, slice):
            return list(zip(*(one[what] for one in lists)))
        if not -len(self) <= what < len(self):
            raise IndexError(f"row {what} of {len(self)}")
        return tuple(one[what] for one in lists)

    def rows(self):
        """A list of tuples."""
        return list(self)

    def dicts(self):
        """A list of dictionaries."""
        return [dict(zip(self._table.names, row)) for row in self]

    def _array(self, column, numpy):
        table, n = self._table, self._table.n_rows
        if column.type in (_INT, _REAL):
            if not n:
                return numpy.empty(0, "<i8" if column.type == _INT else "<f8")
            values = numpy.asarray(_Memory(table, column.values, "<i8" if column.type == _INT else "<f8", n))
            if not column.has_nulls:
                return values
            types = numpy.asarray(_Memory(table, column.types, "|u1", n))
            return numpy.ma.MaskedArray(values, mask=types == 0)
        if column.type == _TEXT and not column.has_nulls and n:
            texts = numpy.array(table.strings() + [None], dtype=object)  # the last one keeps numpy from making a table of texts
            return texts[numpy.asarray(_Memory(table, column.values, "<i8", n))]
        array = numpy.empty(n, dtype=object)
        array[:] = table.cells(column)
        return array

    def arrays(self):
        """A dictionary of numpy arrays. Numbers are not copied: the arrays are read-only and keep the result alive. A column of numbers with NULLs is a
        masked array; texts and columns of several types are arrays of objects."""
        import numpy
        return {name: self._array(column, numpy) for name, column in zip(self._table.names, self._table.columns)}

    def df(self):
        """A pandas.DataFrame. Integers with NULLs are of the type Int64, so that they stay exact."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(f"df() needs pandas ({error}): install it (pip install pandas, apt install python3-pandas), or use arrays(), dicts() or "
                              "rows()") from None
        import numpy
        columns = []
        for column in self._table.columns:
            array = self._array(column, numpy)
            if isinstance(array, numpy.ma.MaskedArray):
                mask = numpy.ma.getmaskarray(array)
                array = pandas.arrays.IntegerArray(array.data.copy(), mask) if column.type == _INT else array.filled(numpy.nan)
            columns.append(pandas.Series(array))
        frame = pandas.concat(columns, axis=1) if columns else pandas.DataFrame()
        frame.columns = self._table.names  # two columns may have one name
        return frame

    def _shown(self):
        rows = [["" if v is None else str(v) for v in row] for row in self[:_ROWS_SHOWN]]
        return rows, len(self) - len(rows)

    def __repr__(self):
        rows, more = self._shown()
        lines = [self._table.names] + rows
        widths = [min(40, max(len(line[i]) for line in lines)) for i in range(len(self._table.names))]
        text = "\n".join("  ".join((v if len(v) <= 40 else v[:39] + "…").ljust(w) for v, w in zip(line, widths)).rstrip() for line in lines)
        return text + (f"\n… {more:,} more rows" if more else f"\n({len(self):,} row{'' if len(self) == 1 else 's'})")

    def _repr_html_(self):
        rows, more = self._shown()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._table.names)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(v)}</td>" for v in row) + "</tr>" for row in rows)
        tail = f"<p>… {more:,} more rows</p>" if more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{tail}"


class Finding(dict):
    """One thing that slows a run down: the members of `stave explain --json`, as items and as attributes. ``str(f)`` is its sentence."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the finding has no {name!r}; there are: {', '.join(self)}") from None

    def __str__(self):
        return self["sentence"]

    def __repr__(self):
        return f"<stave finding {self['cause']}, {self['share']:.0%}: {self['sentence']}>"


class Explanation:
    """What slows a run down, the most important first: iterate over it, ``len()``, ``e[0]``; ``print(e)`` prints sentences.

    ``e.slow`` has the findings about units that take unusually long, ``e.json`` is everything that `stave explain --json` prints.
    """

    def __init__(self, json):
        self.json = json
        self.findings = [Finding(f) for f in json.get("findings", ())]
        self.slow = [Finding(f) for f in json.get("slow_units", {}).get("findings", ())]

    def __len__(self):
        return len(self.findings)

    def __iter__(self):
        return iter(self.findings)

    def __getitem__(self, i):
        return self.findings[i]

    def __bool__(self):
        return True  # an explanation without findings is one

    @property
    def can_say(self):
        """False: the trace does not have what an answer needs; ``e.json["not_observed"]`` says what to record."""
        return self.json["can_say"]

    def __str__(self):
        lines = [f"{i}. {finding}" for i, finding in enumerate(self.findings, 1)]
        if not self.can_say:
            lines.append("Cannot say what slows it down: the trace does not have what is needed.")
            lines += [f"Not observed: {m['what']}; {m['how']}" + (f": {m['record']}" if m.get("record") else "") for m in self.json.get("not_observed", ())]
        return "\n".join(lines or ["Nothing slows it down: no wait takes a twentieth of the time."])

    def __repr__(self):
        return f"<stave explanation, {len(self)} finding{'' if len(self) == 1 else 's'}>" + "".join(f"\n{i}. {f}" for i, f in enumerate(self, 1))

    def _repr_html_(self):
        rows = "".join(f"<li>{html.escape(str(f))}<br><small>try: {html.escape(f.get('advice', ''))}</small></li>" for f in self)
        return f"<ol>{rows}</ol>" if rows else f"<p>{html.escape(str(self))}</p>"


class Picture:
    """A picture. Notebooks show it; ``p.save("a.png")`` writes it as the suffix says: .svg, .png or .pdf; ``str(p)`` and ``p.svg`` are its SVG."""

    def __init__(self, svg, make=None):
        self.svg = svg
        self._make = make  # bytes in another form: (form, scale)

    def save(self, path, *, scale=1.0):
        """Writes the picture to a file (.svg, .png, .pdf). scale: pixels of a PNG per pixel of the picture. PNG and PDF need the system's libcairo.so.2."""
        name = os.fspath(path)
        form = os.path.splitext(os.fsdecode(name))[1].lower().removeprefix(".")
        if form not in ("svg", "png", "pdf"):
            raise ValueError(f"{os.fsdecode(name)}: unknown suffix; use .svg, .png or .pdf")
        if not 0.1 <= scale <= 10:
            raise ValueError(f"scale={scale}: expected 0.1 to 10")
        if form != "svg" and self._make is None:
            raise ValueError("this picture is SVG only")
        data = self.svg.encode() if form == "svg" else self._make(form, scale)
        with open(name, "wb") as file:  # not before there is something to write
            file.write(data)

    def png(self, scale=1.0):
        """The picture as PNG, as bytes."""
        if self._make is None:
            raise ValueError("this picture is SVG only")
        return self._make("png", scale)

    def __str__(self):
        return self.svg

    def __repr__(self):
        return f"<stave picture, SVG of {len(self.svg):,} characters: notebooks show it, save('x.svg') writes it (.png, .pdf)>"

    def _repr_html_(self):
        # In a frame of its own: a notebook has other styles and scripts, and runs none of ours in its page.
        height = self.svg[:2000].partition(' height="')[2].partition('"')[0]
        height = int(float(height)) + 20 if height.replace(".", "", 1).isdigit() else 600
        return (f'<iframe sandbox="allow-scripts" style="border:0;width:100%;height:{height}px" '
                f'srcdoc="{html.escape(self.svg)}"></iframe>')


class Trace:
    """A loaded trace; see load(). Any thread may use it; statements of one trace run one after the other, without the GIL."""

    def __init__(self, paths, *, format=None, strict=False, assume=False, index=True, memory_limit=0, threads=0):
        raw = [_path(p) for p in paths]
        memory_limit, threads = _size("memory_limit", memory_limit, 2**63), _size("threads", threads, 64)
        options = _Options(ctypes.sizeof(_Options), _text(format) if format is not None else None, strict, assume, not index, memory_limit, threads)
        error = _Error()
        self._closing = threading.Lock()
        self._used = 0
        self._handle = None
        self.paths = [os.fsdecode(p) for p in raw]
        self._handle = _lib.open(_words(raw), len(raw), byref(options), byref(error))
        if not self._handle:
            if error.code == _EINPUT:
                for one in paths:
                    open(one, "rb").close()  # the exact OSError, where that is the reason
            raise error.exception()
        if damage := _lib.damage(self._handle):
            warnings.warn(f"{self.paths[0]}: damaged at {damage:,} places; t.findings() has details", RuntimeWarning, stacklevel=3)

    def _begin(self):
        with self._closing:
            if not self._handle:
                raise ValueError("the trace is closed")
            self._used += 1
            return self._handle

    def _end(self):
        with self._closing:
            self._used -= 1

    def close(self):
        """Frees the memory of the trace. Results stay valid."""
        with self._closing:
            if self._used:
                raise RuntimeError("another thread uses the trace")
            handle, self._handle = self._handle, None
        if handle:
            _lib.close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def query(self, sql, params=()):
        """Runs SQL (docs/sql.md) and returns the Result of its last statement. Ctrl-C ends it.

        params: values for ? in order, or a dictionary for :name. ``t.query("select * from slice where name = ? and dur > ?", ("read", 1000))``
        """
        raw, values, error, handle = _text(sql), _values(params), _Error(), self._begin()
        try:
            if threading.current_thread() is threading.main_thread():
                found = _interruptible(handle, raw, values, error)
            else:
                found = _lib.query_with(handle, raw, values, len(values), byref(error))
        finally:
            self._end()
        if not found:
            raise error.exception()
        return Result(_Table(found))

    @property
    def slices(self):
        """All slices and instants, as a Result."""
        return self.query("SELECT id, ts, dur, name, category, track_id, depth, parent_id, arg_set_id FROM slice")

    def steps(self):
        """The training steps with their time by kind of work, as `stave steps` finds them, as a Result."""
        return self.query("SELECT * FROM step")

    def findings(self):
        """What was found in the files, damage among it, as a Result."""
        return self.query("SELECT * FROM stats")

    def _bytes(self, call, *arguments):
        length, error, handle = c_size_t(), _Error(), self._begin()
        try:
            found = call(handle, *arguments, byref(length), byref(error))
        finally:
            self._end()
        if not found:
            raise error.exception()
        try:
            return ctypes.string_at(found, length.value)
        finally:
            _lib.free(found)

    def explain(self, *, unit=None):
        """What slows the run down, as an Explanation: its findings have a sentence, a cause, a share, a culprit. unit: the name or glob of the slices that
        are the units; None: steps, requests, turns of a loop or the main thread, whatever is there."""
        return Explanation(json.loads(self._bytes(_lib.explain, _text(unit) if unit is not None else None)))

    def report(self, subject, *, rows=0):
        """What `stave report SUBJECT --json` prints, as a dictionary: io, gpu, ops, batch, llm, comm or wait. At most `rows` rows of each table, 0: all."""
        return json.loads(self._bytes(_lib.report, _text(subject), _size("rows", rows)))

    def plot(self, kind="timeline", *names, title=None, time=None, width=1000, height=0, top=0):
        """A Picture: timeline, flame, hist NAME, counter [NAME…], steps, layers, gpu, comm or llm. `time`: (from, to) in seconds since the start."""
        begin, end = (int((t or 0) * 1e9) for t in (time or (0, 0)))
        if min(begin, end) < 0:
            raise ValueError("time: not before the start of the trace")
        words = _words([_text(name) for name in names])
        plot = _Plot(ctypes.sizeof(_Plot), _text(kind), words, len(names), _text(title) if title is not None else None, begin, end,
                     _size("width", width), _size("height", height), _size("top", top))

        def make(form, scale):
            return self._bytes(_lib.picture, byref(plot), form.encode(), scale)

        return Picture(make("svg", 1.0).decode(errors="replace"), make)

    def _summary(self):
        return self.query("SELECT (SELECT count(*) FROM slice) AS slices, (SELECT count(*) FROM counter) AS counters, (SELECT count(*) FROM thread "
                          "WHERE utid > 0) AS threads, trace_dur() / 1e9 AS seconds")

    def __repr__(self):
        name = ", ".join(self.paths[:3]) + (", …" if len(self.paths) > 3 else "")
        return f"<stave trace {name}>" if self._handle else f"<stave trace {name}, closed>"

    def _repr_html_(self):
        return f"<p>{html.escape(repr(self))}</p>" + (self._summary()._repr_html_() if self._handle else "")


def _interruptible(handle, sql, values, error):
    """The statement in a thread: the main one waits where Python takes signals, and Ctrl-C ends the statement."""
    found, done = [], threading.Event()

    def run():
        found.append(_lib.query_with(handle, sql, values, len(values), byref(error)))
        done.set()

    threading.Thread(target=run, name="stave query", daemon=True).start()
    try:
        while not done.wait(0.2):  # not for ever: a signal may have come to another thread
            pass
    except BaseException:
        while not done.wait(0.01):  # not once: the statement may not have begun yet
            _lib.interrupt(handle)
        if found[0]:
            _lib.table_free(found[0])
        raise
    return found[0]


def load(*paths, format=None, strict=False, assume=False, index=True, memory_limit=0, threads=0):
    """Loads a trace, or several ones as `stave merge` puts them together, and returns a Trace.

    t = stave.load("run.pftrace"); t.query("select name, sum(dur) from slice group by name").df()

    format: of the files, None is by content. strict: damage is an error. assume: use the times of traces whose clocks cannot be related unchanged.
    index: use and make indexes of large traces, as the program does. memory_limit: in bytes, for the loaded trace.
    threads: that load it, 0 is the CPUs that the process may use; the result does not depend on it.
    """
    if not paths:
        raise ValueError("give the path of a trace")
    return Trace(paths, format=format, strict=strict, assume=assume, index=index, memory_limit=memory_limit, threads=threads)
