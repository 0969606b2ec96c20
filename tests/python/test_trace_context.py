"""W3C trace context: headers in and out, the current one, and the arguments and arrows of an event."""
import asyncio

import pytest
import stave

VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_header_in_and_out():
    c = stave.trace_context(VALID)
    assert (c.trace_id, c.parent_span_id, c.flags) == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", 1)
    assert c.traceparent == f"00-{c.trace_id}-{c.span_id}-01" and c.span_id != c.parent_span_id
    again = stave.trace_context(c.traceparent.encode())
    assert again.trace_id == c.trace_id and again.parent_span_id == c.span_id


@pytest.mark.parametrize("header", ["", "00", VALID[:-1], VALID + "-more", "ff" + VALID[2:], VALID.upper(), VALID.replace("4", "g"),
                                    "00-" + "0" * 32 + VALID[35:], VALID[:36] + "0" * 16 + "-01", 5, VALID + "\n", "٠٠" + VALID[2:]])
def test_a_header_that_is_not_valid_begins_a_new_trace(header):
    c = stave.trace_context(header)
    assert c.parent_span_id is None and c.trace_id not in VALID and len(c.trace_id) == 32 and len(c.span_id) == 16


def test_the_current_one():
    assert stave.trace_context.current() is None
    with stave.trace_context(VALID) as outer:
        assert stave.trace_context.current() is outer
        with stave.trace_context() as inner:
            assert inner.trace_id == outer.trace_id and inner.parent_span_id == outer.span_id
        assert stave.trace_context.current() is outer

        async def task():
            return stave.trace_context.current()

        assert asyncio.run(task()) is outer
    assert stave.trace_context.current() is None


def test_the_flow_is_that_of_the_c_library():
    c = stave.trace_context(VALID)
    assert c.flows["incoming_flow_ids"] == [0x68C5DFC972E963]


def test_events_have_ids_and_arrows(py):
    t = py.trace('''
import stave
with stave.trace_context() as caller:
    with stave.trace("call", **caller.args, **caller.flows):
        with stave.trace_context(caller.traceparent) as callee:
            with stave.track("server").trace("serve", **callee.args, **callee.flows): pass
''')
    call, serve = ({s["name"]: s for s in t.slices}[n] for n in ("call", "serve"))
    assert call["args"]["span_id"] == serve["args"]["parent_span_id"] and call["args"]["trace_id"] == serve["args"]["trace_id"]
