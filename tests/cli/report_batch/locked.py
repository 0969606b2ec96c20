"""A server in text, for `stave report batch --why`: 24 requests, each a batch of its own, one after the other on one worker.

Each request waits 2 ms before it runs, of which the worker still runs the one before it for up to 1 ms; then it runs for 4 ms. Every third one waits
6 ms more for a lock that the thread `indexer` holds while it sleeps. With `calls`: no states of threads, but the calls that they wait in."""
import sys

CALLS = {"lock": "futex", "poll": "futex", "sleep": "clock_nanosleep"} if sys.argv[1:] == ["calls"] else {}
print("""# stave text 1
clock boottime
track #1 process uuid=0x1 pid=10 name="server"
track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name="worker"
track #3 custom uuid=0x3 parent=#2 name="{row}"
track #4 thread uuid=0x4 parent=#1 pid=10 tid=11 name="indexer"
track #5 custom uuid=0x5 parent=#4 name="{row}"
track #6 custom uuid=0x6 parent=#1 name="life cycle\"""".replace("{row}", "system calls" if CALLS else "state"))
events = []


def at(ms, what):
    events.append((ms, f"{ms / 1000:.9f} {what}"))


def life(ms, name, args):
    at(ms, f'instant #6 "{name}" cat="serving.life" {{{args}}}')


def state(track, begin, end, name, args=""):
    if CALLS:
        if name != "Sleeping":
            return
        name, args = CALLS[args.split('"')[1]], ""
        events.append((begin, f'{begin / 1000:.9f} slice #{track} "{name}" cat="syscall" dur={(end - begin) / 1000:.9f}'))
        return
    events.append((begin, f'{begin / 1000:.9f} slice #{track} "{name}" cat="thread_state" dur={(end - begin) / 1000:.9f} {args}'))


life(0, "model", 'model=0 name="bert"')
life(0, "worker", 'worker=0 type="cpu" device=-1')
now = 1
state(3, 0, now + 1, "Sleeping", '{reason="poll"}')
for i in range(24):
    locked = i % 3 == 2
    begin, end = now + 1, now + 5 + 6 * locked
    life(now - (i > 0), "enqueued", f"request={i} model=0 flags=0")
    life(begin - 0.4, "dequeued", f"request={i}")
    life(begin - 0.3, "collected", f"batch={i + 1} model=0 requests=1 samples=2 flags=0 took_ns=-1 n=1 r0={i} r1=0 r2=0 r3=0 r4=0 r5=0 r6=0 r7=0")
    life(begin - 0.1, "submitted", f"batch={i + 1}")
    life(begin, "started", f"batch={i + 1} worker=0")
    life(end, "finished", f"batch={i + 1}")
    life(end, "callback", f"batch={i + 1} took_ns=-1")
    life(end, "responded", f"request={i}")
    state(3, begin, begin + 2, "Running")
    if locked:
        state(3, begin + 2, begin + 8, "Sleeping", '{reason="lock"}')
        state(5, begin + 1, begin + 7, "Sleeping", '{reason="sleep"}')
        state(5, begin + 7, begin + 9, "Running")
        state(3, begin + 8, begin + 8.5, "Runnable", '{waker_tid=11 waker="indexer"}')
        state(3, begin + 8.5, end, "Running")
    else:
        state(3, begin + 2, end, "Running")
    now = end + (0 if i % 2 else 1)
    state(3, end, now + 1, "Sleeping", '{reason="poll"}')
for _, line in sorted(events, key=lambda e: e[0]):
    print(line)
