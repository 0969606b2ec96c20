"""W3C trace context: the header traceparent in and out.

    with stave.trace_context(headers.get("traceparent")) as context:          # a request arrives
        with stave.trace("handle", **context.args, **context.flows):
            urlopen(Request(url, headers={"traceparent": context.traceparent}))   # one goes out
"""
import contextvars
import os
import re

from ._tracks import Flow

_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII | re.DOTALL)
_MASK = 2**64 - 1
_current = contextvars.ContextVar("stave_trace_context", default=None)


def _mix(x):
    x ^= x >> 32
    x = x * 0xE9846AF9B1A615D & _MASK
    x ^= x >> 32
    x = x * 0xE9846AF9B1A615D & _MASK
    return x ^ x >> 28


def _flow(trace_id, span_id):
    """The number of the flow that leaves a span, as <stave/trace_context.h> makes it."""
    trace, span = int(trace_id, 16), int(span_id, 16)
    return _mix(_mix(_mix(trace >> 64) + (trace & _MASK) & _MASK) + span & _MASK) or 1


def _read(header):
    """(trace_id, span_id, flags) of a header's value, or None where it is not valid."""
    if isinstance(header, bytes):
        header = header.decode("ascii", "replace")
    found = _HEADER.fullmatch(header.strip(" \t")) if isinstance(header, str) else None
    if not found or found[1] == "ff" or (found[1] == "00" and found[5]) or not int(found[2], 16) or not int(found[3], 16):
        return None
    return found[2], found[3], int(found[4], 16)


def _new_id(size):
    while True:
        id = os.urandom(size)
        if any(id):
            return id.hex()


class trace_context:
    """A span of its own, and the context of all that runs in the `with` block (contextvars: also of its asyncio tasks).

    `parent` is the value of a header traceparent, another trace_context, or None: then the current one is, and without one a new trace begins. A header that
    is not valid counts as none, as W3C asks.
    """

    __slots__ = ("trace_id", "span_id", "parent_span_id", "flags", "_tokens")

    def __init__(self, parent=None):
        if parent is None:
            parent = _current.get()
        known = (parent.trace_id, parent.span_id, parent.flags) if isinstance(parent, trace_context) else _read(parent)
        self.trace_id, self.parent_span_id, self.flags = known or (_new_id(16), None, 1)
        self.span_id = _new_id(8)
        self._tokens = []

    @staticmethod
    def current():
        """The context of the code that runs, or None."""
        return _current.get()

    @property
    def traceparent(self):
        """The value of the header for a call."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    @property
    def args(self):
        """For an event: the ids as arguments, by which spans and slices are joined."""
        ids = {"trace_id": self.trace_id, "span_id": self.span_id}
        if self.parent_span_id:
            ids["parent_span_id"] = self.parent_span_id
        return ids

    @property
    def flows(self):
        """For an event: arrows from the caller's span and to the spans that are called."""
        flows = {"flow": Flow(_flow(self.trace_id, self.span_id))}
        if self.parent_span_id:
            flows["incoming_flow_ids"] = [_flow(self.trace_id, self.parent_span_id)]
        return flows

    def __enter__(self):
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *error):
        _current.reset(self._tokens.pop())

    def __repr__(self):
        return f"<stave.trace_context {self.traceparent}>"
