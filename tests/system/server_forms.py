"""The clients of server_forms.sh, and the comparison of what the server wrote.

    server_forms.py models                        writes the models into this folder
    server_forms.py leave PORT QUEUED COMPUTED    clients that leave: while they are queued, and while their batch is computed; prints how many
    server_forms.py metrics PORT                  what the server counted, as JSON
    server_forms.py rows STAVE FILE               all rows of the tables of requests and batches, one a line
"""
import json
import socket
import struct
import subprocess
import sys
import time
import urllib.request


def model(path, width):
    sizes = {"fc1.weight": [width, 32], "fc2.weight": [width, width], "fc3.weight": [8, width]}
    header, at = {"__metadata__": {"stave.input": "32", "stave.layers": "dense fc1 relu, dense fc2 relu, dense fc3 softmax"}}, 0
    for name, (rows, columns) in sizes.items():
        for key, shape in ((name, [rows, columns]), (name.replace("weight", "bias"), [rows])):
            n = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
            header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
            at += n
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(at))


def metrics(port):
    counts = {}
    for line in urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port).read().decode().splitlines():
        if line[:1] != "#":
            counts[line.rsplit(" ", 1)[0]] = float(line.rsplit(" ", 1)[1])
    return counts


def count(port, name, model):
    return metrics(port).get('%s{model="%s"}' % (name, model), 0)


def pending(port, model):
    m = metrics(port)
    of = lambda name: m['%s{model="%s"}' % (name, model)]
    return of("requests_received_total") - of("inference_completed_total") - of("inference_failures_total") - of("requests_cancelled_total")


def until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.005)
    sys.exit("the condition did not come true")


def begin(port, model, rows):
    body = json.dumps({"inputs": [{"name": "input", "shape": [rows, 32], "datatype": "FP32", "data": [0.5] * (32 * rows)}]}).encode()
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (model.encode(), len(body)) + body)
    return s


# Whether the request was still open when its client had gone: only then is it certain that it must be cancelled.
def leave(port, model, rows, is_there):
    s = begin(port, model, rows)
    until(is_there)
    s.close()
    is_certain = pending(port, model) == 1
    until(lambda: pending(port, model) == 0)
    return is_certain


def leave_all(port, queued, computed):
    certain = 0
    for _ in range(queued):
        before = count(port, "requests_received_total", "late")
        certain += leave(port, "late", 1, lambda: count(port, "requests_received_total", "late") > before)
    for _ in range(computed):
        certain += leave(port, "slow", 256, lambda: count(port, "inference_inflight_tasks", "slow") == 1)
    print(certain)


# Warm-up is not in the CSV, so the tables that have it (is_warmup) are asked for the rest; numbers of rows are those of one file.
QUERIES = {
    "request": "SELECT request_id, name, batch_id, model, outcome, dur, ts - (SELECT min(ts) FROM request) AS ts, scheduled_ts - ts AS scheduled, first_token_ts - ts AS first, "
               "last_token_ts - ts AS last, ttft_ns, tpot_ns, queue_ns, prefill_ns, decode_ns, preempted_ns, transfer_ns, respond_ns, prompt_tokens, cached_tokens, output_tokens, "
               "proposed, accepted, preemptions, steps, load, share_ns, kernel_ns, io_ns, is_warmup FROM request ORDER BY request_id",
    # Where the form has a place for them: not in the server's own JSON and CSV.
    "transport": "SELECT request_id, outcome, read_ns, parse_ns, serialise_ns, write_ns FROM request ORDER BY request_id",
    "batch": "SELECT batch_id, name, model, size, worker, dur, ts - (SELECT min(ts) FROM request) AS ts FROM batch ORDER BY batch_id",
    "engine_request": "SELECT request_id, batch_id, model, outcome, dur FROM engine_request WHERE NOT is_warmup ORDER BY request_id",
    "engine_step": "SELECT number, ts - (SELECT min(ts) FROM request) AS ts, dur, engine, requests, prefill, decode, tokens_in, tokens_out, waiting, kernel_ns, io_ns FROM engine_step "
                   "WHERE NOT is_warmup ORDER BY number",
    "engine_step_member": "SELECT s.number, m.request_id, m.phase, m.tokens_in, m.tokens_out, m.share_ns, m.kernel_ns, m.io_ns FROM engine_step_member m "
                          "JOIN engine_step s ON s.id = m.step_id WHERE NOT s.is_warmup ORDER BY m.request_id",
    "token": "SELECT t.request_id, t.number, t.ts - (SELECT min(ts) FROM request) AS ts, t.gap_ns, s.number AS step FROM token t JOIN engine_step s ON s.id = t.step_id "
             "WHERE NOT s.is_warmup ORDER BY t.request_id, t.number",
}


def rows(stave, path):
    for table, query in QUERIES.items():
        done = subprocess.run([stave, "query", path, "--to", "csv", query], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        for line in done.stdout.splitlines():
            print(table, line)


if __name__ == "__main__":
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "models":
        model("wide.safetensors", 512)
        model("slow.safetensors", 2048)
    elif what == "leave":
        leave_all(*[int(a) for a in arguments])
    elif what == "metrics":
        print(json.dumps(metrics(int(arguments[0]))))
    else:
        rows(*arguments)
