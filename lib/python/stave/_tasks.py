"""Rows for asyncio tasks. Imports nothing of asyncio by itself; the C part calls new_row() at a task's first event."""
import functools

from . import _stave

_free = []  # numbers of rows whose task is done
_made = 0
_group = None


def take_row():
    """The lowest free row: as many rows as tasks at a time."""
    global _made, _group
    if _group is None:
        _group = _stave.track_new(1, "asyncio")
    if _free:
        number = min(_free)
        _free.remove(number)
    else:
        _made += 1
        number = _made
    return number, _stave.track_new(_group, f"task {number}")


def give_row(number):
    _free.append(number)


def _name(task):
    """The coroutine, but not by its name alone: it may be decorated, and its calls are counted by that name. Which task it is would make all names differ."""
    try:
        coro = task.get_coro()
        return f"task {getattr(coro, '__qualname__', None) or type(coro).__name__}"
    except Exception:
        return "task"


def _number(task):
    """N of "Task-N", which asyncio gives, or the name that the program gave."""
    try:
        name = task.get_name()
        number = name.removeprefix("Task-")
        return int(number) if number != name and number.isdigit() else name
    except Exception:
        return None


def _done(number, life, was_new, task):
    if was_new:
        life.set(task=_number(task))
    life.__exit__(None, None, None)
    give_row(number)


def new_row(task, is_new=False):
    """The row of a task, which is a slice on it from now to its end. A new one may get its name after this."""
    if task.done():
        return 0
    number, row = take_row()
    task._stave_row = row
    life = _stave.Track(row).trace(_name(task), {} if is_new else {"task": _number(task)}, category="asyncio")
    life._enter_row()
    task.add_done_callback(functools.partial(_done, number, life, is_new))
    return row


def install(loop=None):
    """A task factory around the loop's own: tasks have their row from the start, whether they trace or not."""
    import asyncio
    loop = loop or asyncio.get_running_loop()
    _stave.look_for_tasks()
    inner = loop.get_task_factory()
    if getattr(inner, "_is_stave", False):
        return

    def factory(loop, coro, **kwargs):
        task = inner(loop, coro, **kwargs) if inner else asyncio.Task(coro, loop=loop, **kwargs)
        if _stave.enabled("asyncio"):
            new_row(task, is_new=True)
        return task

    factory._is_stave = True
    loop.set_task_factory(factory)
