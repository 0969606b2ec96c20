"""Decorators. Plain functions become C objects; coroutines and generators are wrapped here, since they stop in the middle."""
import functools
import inspect

from . import _stave, _tasks


def _on(track, name, category):
    """How to open a slice: on the given track, or on the thread's or task's."""
    open_slice = _stave.Track(track).trace if track else _stave.trace
    return functools.partial(open_slice, name, category="function" if category is None else category)


def named(function, args, kwargs):
    """Names and values of the arguments, defaults included, as one dictionary."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        if "self" in values:
            values["self"] = type(values["self"]).__name__
        return (values,)
    except Exception:
        return ({"args": args, **kwargs},)


def _wrap_coroutine(function, track, arguments, slice_of):
    _stave.look_for_tasks()

    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        if not _stave.enabled():
            return await function(*args, **kwargs)
        extra = arguments(function, args, kwargs) if arguments else ()
        if track or _stave.look_for_tasks() and _stave.current_row():
            with slice_of(*extra):
                return await function(*args, **kwargs)
        number, row = _tasks.take_row()  # no asyncio task: a row for this call
        try:
            with _stave.Track(row).trace(slice_of.args[0], *extra, **slice_of.keywords):
                return await function(*args, **kwargs)
        finally:
            _tasks.give_row(number)

    return wrapper


def _wrap_generator(function, arguments, slice_of):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        extra = arguments(function, args, kwargs) if arguments and _stave.enabled() else ()
        inner = function(*args, **kwargs)
        step, value = inner.send, None
        while True:  # a slice per run: from each resume to the next yield
            try:
                with slice_of(*extra):
                    got = step(value)
            except StopIteration as stop:
                return stop.value
            try:
                step, value = inner.send, (yield got)
            except GeneratorExit:
                with slice_of(*extra):
                    inner.close()
                raise
            except BaseException as error:
                step, value = inner.throw, error

    return wrapper


def _wrap_async_generator(function, arguments, slice_of):
    _stave.look_for_tasks()

    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        extra = arguments(function, args, kwargs) if arguments and _stave.enabled() else ()
        inner = function(*args, **kwargs)
        step, value = inner.asend, None
        while True:
            try:
                with slice_of(*extra):
                    got = await step(value)
            except StopAsyncIteration:
                return
            try:
                step, value = inner.asend, (yield got)
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as error:
                step, value = inner.athrow, error

    return wrapper


def _wrap_plain(function, arguments, slice_of):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not _stave.enabled():
            return function(*args, **kwargs)
        with slice_of(*(arguments(function, args, kwargs) if arguments else ())):
            return function(*args, **kwargs)

    return wrapper


def decorate(function, track, arguments, name, category, on=_on):
    """The function with a slice around each call. `arguments` makes its arguments (None: none), `on` opens it."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorate(function.__func__, track, arguments, name, category, on))
    if isinstance(function, type):
        raise TypeError(f"stave: {function.__name__} is a class; decorate its methods, or use stave.auto()")
    if not callable(function):
        raise TypeError(f"stave: cannot trace {function!r}: it is not callable")
    number = 0 if track is None else track.id
    name = name or getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(function, arguments, on(number, name, category))
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(function, number, arguments, on(number, name, category))
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(function, arguments, on(number, name, category))
    if on is not _on:
        return _wrap_plain(function, arguments, on(number, name, category))
    return functools.update_wrapper(_stave.wrap(function, number, arguments is not None, name, category), function)


def _decorator(function, track, arguments, name, category):
    if isinstance(function, _stave.Track):  # @trace_func(track)
        function, track = None, function
    if function is None:
        return lambda f: decorate(f, track, arguments, name, category)
    return decorate(function, track, arguments, name, category)


def trace_func(function=None, track=None, *, name=None, category=None):
    """Every call is a slice: ``@trace_func``, ``@trace_func(track)``, ``@trace_func(name=…, category=…)``.

    An exception is recorded in the slice and raised again. Of an async function each call is one slice on the row of its task, from the first
    step to the end; of a generator, each run from a resume to the next yield is one.
    """
    return _decorator(function, track, None, name, category)


def trace_func_args(function=None, track=None, *, name=None, category=None):
    """Like trace_func, with the names and values of the arguments, defaults included."""
    return _decorator(function, track, named, name, category)
