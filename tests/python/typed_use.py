"""Uses of the API that a type checker must accept; each line marked `refused` must be refused (see test_types.py)."""
import stave
import stave.compat.nova
import stave.serving
import stave.torch

with stave.open("t.pftrace", full="block") as session:
    session.flush()
    with stave.trace("x", 1, {"a": 2}, size=3, flow=stave.flow()) as s:
        s.set(loss=0.5)
        ids: list[int] = s.get_outgoing_flow_ids(2)
    row = stave.track("row").group("g").track("inner", order=1)
    with row.trace("y"):
        pass
    stave.count("c", "B").increment(1.5)
    value: float = stave.count("c").value


@stave.trace_func
def plain(a: int) -> str:
    return str(a)


@stave.trace_func(stave.track("t"))
def on_track(a: int) -> str:
    return str(a)


@stave.trace_func_args(category="nn", name="z")
def named(a: int) -> str:
    return str(a)


text: str = plain(1) + on_track(2) + named(3)
plain("no")  # refused
wrong: int = named(3)  # refused
stave.start(5)  # refused
stave.count("c").count("v")  # refused

with stave.TraceGenerator("g.pftrace", 1) as g:
    engine = g.get_cluster_tgen(0, 1).create_track("engine")
    engine.duration(1.0, 0.5, "op", {"a": 1}, [7], ["c"])
    g.get_cluster_tgen().create_counter_track("bw").count(0, 1.5)
    engine.duration_ns(1, 2, "op")
    engine.duration_ns(1.0, 2, "op")  # refused
    engine.duration("1", 2, "op")  # refused
    engine.count(0, 1)  # refused
stave.TraceWriter.from_env().push("n", "c", 1.5, 3)
for batch in stave.torch.trace_loader([1, 2]):
    n: int = batch
with stave.auto("mine.*", exclude="x", max_depth=3):
    pass
with stave.compat.nova.open("n.perfetto"):
    nova_row = stave.compat.nova.track("r")
    with nova_row.trace("op", 1).get_outgoing_flow_ids(2) as numbers:
        first: int = numbers[0]
    stave.compat.nova.instant("i", {"k": 1}, incoming_flow_ids=numbers)
stave.compat.nova.TraceGenerator("n.pftrace", 0).get_cluster_tgen(0, 0).create_track("e", 0).duration(1, 2, "op")
stave.compat.nova.TraceGenerator("n.pftrace", 0).submit(5, {})  # refused
loaded = stave.load("t.pftrace", strict=True)
found: tuple[object, ...] = loaded.query("select 1")[0]
names: list[object] = loaded.slices["name"]
stave.load("t.pftrace", indexes=True)  # refused
with stave.serving.open("traces", server="s", full="drop") as served:
    with served.request("m", "00-…") as asked, served.batch([asked, 5], samples=2) as formed, formed.run(worker=1):
        header: str = asked.traceparent
    with served.step("engine 0", graph="full") as step:
        step.decode(asked, position=3)
    served.request(None)  # refused
    served.batch(asked)  # refused
    served.open()  # refused
stave.serving.open("traces", full="overwrite")  # refused
carried: list[int] = [stave.serving.carried(len)("abc")]
app: stave.serving.AsgiMiddleware = stave.serving.asgi(print, served)
