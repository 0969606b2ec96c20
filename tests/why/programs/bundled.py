"""The bundled server under load: bundled.py rejected | ok. rejected: its queue is short, and more clients ask at a time than fit into it."""
import json
import os
import re
import subprocess
import sys
import time

from truth import FOLDER

CASE, BUILD, SRC = sys.argv[1], os.environ["WHY_BUILD"], os.environ["WHY_SRC"]
os.chdir(FOLDER)
queue, clients = (3, 16) if CASE == "rejected" else (256, 2)
with open("mlp.yml", "w") as file:
    file.write(f"name: mlp\nmodel: {SRC}/examples/server/mlp.safetensors\nmax_queue_size: {queue}\n"
               f"pool_size: 1\nmax_batch_size: 1\nbatch_coalesce_timeout_ms: 0\nworkers: 1\n"
               f"batching:\n  trace_enabled: true\n  trace_output: {FOLDER}/out\n")
os.environ.update(STARPU_HOME=FOLDER, STARPU_WORKERS_NOBIND="1", HWLOC_COMPONENTS="-pci")
server = subprocess.Popen([f"{BUILD}/stave-server", "--config", "mlp.yml", "--address",
                           "127.0.0.1:0", "--grpc", "off"], stderr=open("err", "w"))
port = None
while not port and server.poll() is None:
    port = re.search(r"^listening on .*:(\d+) ", open("err").read(), re.M)
    time.sleep(0.02)
subprocess.run([f"{BUILD}/stave-load", "-u", f"http://127.0.0.1:{port[1]}", "-n", "3000",
                "-c", str(clients), "-j", "load.json"], check=False)
server.terminate()
server.wait()
load = json.load(open("load.json"))
print(load["requests"])
total, ok = load["requests"]["sent"], load["requests"]["ok"]
refused = total - ok
causes = [{"cause": ["rejected"], "share": round(refused / total, 4), "culprit": [{}]}]
with open(os.environ["WHY_TRUTH"], "w") as file:
    json.dump({"healthy": CASE == "ok", "units": {"kind": "request", "n": total, "marked": True},
               "dur_ns": 0, "causes": causes if CASE == "rejected" else [], "noise": {},
               "allowed": [{"cause": ["queue", "batch"], "share": 1.0},
                           {"cause": ["cpu"], "share": 0.5}]}, file)
