"""wall.py STAVE FOLDER PAIRS SCALE [WORKLOAD…]: what `stave record` costs programs that people run.

Each workload runs untraced, with the default set and with --light in turns, PAIRS times each; 0: only the price is measured. As root the training also runs as a user without
privileges, with what `record` does then (set `user`); SETS="default light user always floor floor_light" chooses for all workloads. The floors are programs that do nothing on the tracepoints
of the default set and of --light (bench/record_hooks.c): the least that recording by them can cost. ONLY=wall leaves out the price and the peers. Prints lines `NAME VALUE UNIT` for bench/run:
  record_wall_SET_WORKLOAD    ratio of the medians of the clock, of the workload itself, with its 95 % interval: what starting and writing take is record_true, and part of the price
  record_upper_SET_WORKLOAD   upper end of its 95 % interval (bootstrap) minus 0.02: this has the budget
  record_price_SET_WORKLOAD   (CPU of the recorder + run time of the kernel programs + what their calls cost beyond that) / CPU of the untraced workload
  record_memory_SET_WORKLOAD  the recorder's largest resident memory, MB
  record_PEER_WORKLOAD        the clock under strace, perf trace and bpftrace, once, by the untraced median; without a budget
The price is of three runs of its own, because the kernel's statistics of programs have their price; processes beside the workload count, too, so that a busy machine makes it higher.
A workload or a peer that cannot run here, or takes too long, is named on stderr."""
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import textwrap
import time

STAVE, FOLDER, PAIRS, SCALE = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
PRICE_RUNS = 3
ONLY_WALL = os.environ.get("ONLY") == "wall"
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable  # a user may run it
LONGEST_S = 120  # of a run
STATISTICS = "/proc/sys/kernel/bpf_stats_enabled"


def scaled(n):
    return max(1, int(n * SCALE))


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w") as f:
        f.write(textwrap.dedent(text))
    return path


# ---- workloads: functions that return the command, or None ----

def torch_loaders():
    """Training with four loaders that are forked anew for each epoch."""
    python = next((p for p in (PYTHON, "/usr/bin/python3") if subprocess.run([p, "-c", "import torch"], capture_output=True).returncode == 0), None)
    return python and [python, "-W", "ignore", write("train.py", """
        import sys, torch
        from torch.utils.data import DataLoader, Dataset
        torch.set_num_threads(1)
        class Items(Dataset):
            def __len__(self):
                return 256
            def __getitem__(self, i):
                return torch.full((3, 64, 64), float(i)).sin()
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12288, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(int(sys.argv[1])):
            for batch in DataLoader(Items(), batch_size=16, num_workers=4):
                optimizer.zero_grad()
                net(batch).sum().backward()
                optimizer.step()
        """), str(scaled(5))]


def small_files():
    """Many small files, read one after the other, with some work on each. The work allocates
    nothing large: zlib's buffers are at malloc's limit for giving memory back, so that a byte more
    or less on the heap doubles the time, recorded or not."""
    files = os.path.join(FOLDER, "small")
    os.makedirs(files, exist_ok=True)
    for i in range(scaled(5000)):
        with open(os.path.join(files, str(i)), "wb") as f:
            f.write(bytes([i % 256]) * 8192)
    return [PYTHON, write("small.py", """
        import hashlib, os, sys
        for _ in range(4):
            for entry in os.scandir(sys.argv[1]):
                with open(entry.path, "rb") as f:
                    hashlib.sha256(f.read()).digest()
        """), files]


def mapped_tokens():
    """Samples at random places of mapped token files."""
    tokens = os.path.join(FOLDER, "tokens")
    with open(tokens, "wb") as f:
        for _ in range(scaled(64)):
            f.write(os.urandom(1 << 20))
    return [PYTHON, write("tokens.py", """
        import hashlib, mmap, os, random, sys
        random.seed(1)
        for _ in range(4):
            with open(sys.argv[1], "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as data:
                for _ in range(len(data) // 16384):
                    at = random.randrange(len(data) - 4096)
                    hashlib.sha256(data[at:at + 4096]).digest()
        """), tokens]


def server():
    """A server with a thread for each of 64 connections, and its clients, in one process."""
    return [PYTHON, write("server.py", """
        import hashlib, http.client, http.server, sys, threading
        class Answer(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                body = hashlib.sha256(b"answer " * 5000).hexdigest().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            def log_message(self, *a):
                pass
        at = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        at.daemon_threads = True
        threading.Thread(target=at.serve_forever, daemon=True).start()
        def ask():
            c = http.client.HTTPConnection(*at.server_address)
            for _ in range(int(sys.argv[1])):
                c.request("GET", "/")
                c.getresponse().read()
            c.close()
        clients = [threading.Thread(target=ask) for _ in range(64)]
        [t.start() for t in clients]
        [t.join() for t in clients]
        """), str(scaled(60))]


def make_j2():
    """make -j2 of a C project: a compiler is four processes."""
    if not shutil.which("make") or not shutil.which("cc"):
        return None
    project = os.path.join(FOLDER, "project")
    os.makedirs(project, exist_ok=True)
    n = scaled(150)
    for i in range(n):
        write(f"project/f{i}.c", f"#include <stddef.h>\nint f{i}(int x) {{ return x + {i}; }}\n")
    objects = " ".join(f"f{i}.o" for i in range(n))
    write("project/Makefile", f"all: {objects}\nclean:\n\trm -f {objects}\n")
    return ["sh", "-c", f"make -s -C {project} clean; exec make -s -j2 -C {project}"]


def mpi_job():
    """Four ranks on fewer CPUs: compute and allreduce in turn."""
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return None
    source, program = write("job.c", """
        #include <mpi.h>
        #include <stdlib.h>
        int main(int argc, char **argv)
        {
            static double in[65536], out[65536];
            MPI_Init(&argc, &argv);
            for (int n = atoi(argv[1]); n-- > 0;) {
                for (int k = 0; k < 20; k++)
                    for (int i = 0; i < 65536; i++)
                        in[i] = in[i] * 0.5 + i;
                MPI_Allreduce(in, out, 65536, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            }
            return MPI_Finalize();
        }
        """), os.path.join(FOLDER, "job")
    if subprocess.run(["mpicc", "-O1", source, "-o", program]).returncode != 0:
        return None
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *root, "--oversubscribe", "-n", "4", program, str(scaled(100))]


COMPUTE = ["-c", f"s = 0\nfor i in range({scaled(30000000)}):\n    s += i"]


def idle():
    """A program beside a recording of a process that does nothing: what others pay."""
    return [PYTHON, *COMPUTE]


WORKLOADS = {"torch": torch_loaders, "small_files": small_files, "mmap": mapped_tokens, "server": server, "make": make_j2, "mpi": mpi_job, "idle": idle}


# ---- measuring ----

class TooLong(Exception):
    pass


def timed(command):
    """The command, run by a program that writes its seconds of the clock and of CPU into a file."""
    return [PYTHON, "-S", write("timed.py", """
        import os, sys, time
        start = time.monotonic()
        pid = os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
        _, status, usage = os.wait4(pid, 0)
        with open(sys.argv[1], "w") as f:
            print(time.monotonic() - start, usage.ru_utime + usage.ru_stime, file=f)
        sys.exit(os.waitstatus_to_exitcode(status) & 127)
        """), os.path.join(FOLDER, "seconds"), *command]


def run(command, under=(), may_be=(0,)):
    """Seconds of the clock, and CPU seconds of all its processes: of the command itself, whatever it runs under."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "start_new_session": True}  # mpirun reads its input
    process = subprocess.Popen([*under, *timed(command)], **quiet)
    try:
        code = process.wait(LONGEST_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        raise TooLong from None
    if code not in may_be:
        sys.exit(f"wall.py: {command[:2]}: exit status {code}")
    with open(os.path.join(FOLDER, "seconds")) as f:
        return tuple(map(float, f.read().split()))


# As the user of the set `user`: what it writes, and root before it, is removed first.
AS_USER = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups"] if os.geteuid() == 0 else []
# The set that stays on, with a condition on durations, one on absence and one on a counter.
ALWAYS = ["--always", "--when", "step > 5x median", "--when", "no step for 1h", "--when", "counter 'Memory/used' > 100T"]
FLOORS = {"floor": "default", "floor_light": "light"}
SETS = {"default": ([], []), "light": ([], ["--light"]), "user": (AS_USER, []), "always": ([], ALWAYS)}


def recorder(which):
    for name in "wall.pftrace", "seconds":
        with contextlib.suppress(OSError):
            os.remove(os.path.join(FOLDER, name))
    if which in FLOORS:
        return [os.path.join(os.path.dirname(STAVE), "bench", "record_hooks"), FLOORS[which]]
    under, options = SETS[which]
    return [*under, STAVE, "record", "-q", "--no-summary", *options, "-o", os.path.join(FOLDER, "wall.pftrace"), "--"]


def recorded(which, command):
    return [*recorder(which), *command]


def is_recording(process, which):
    """Its output grows, or it has ended."""
    if which in FLOORS:
        time.sleep(0.5)
    while process.poll() is None and which not in FLOORS and not os.path.exists(os.path.join(FOLDER, "wall.pftrace.part")):
        time.sleep(0.01)


def run_recorded(name, which, command):
    if name != "idle":
        return run(command, recorder(which), (0, 1))[0]
    process = subprocess.Popen(recorded(which, ["sleep", "1000"]), start_new_session=True)
    is_recording(process, which)
    seconds, _ = run(command)
    os.killpg(process.pid, 2)  # a floor does not pass it on
    process.wait()
    return seconds


def programs_of(pid):
    """Run time in ns and number of runs of the kernel programs that a process holds, and its largest memory in kB."""
    ns = runs = memory = 0
    try:
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                fields = dict(line.split(":", 1) for line in f if ":" in line)
            ns += int(fields.get("run_time_ns", 0))
            runs += int(fields.get("run_cnt", 0))
        with open(f"/proc/{pid}/status") as f:
            memory = next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), 0)
    except OSError:
        pass
    return ns, runs, memory


def own_ticks(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])
    except OSError:
        return 0


def price_run(which, command):
    """CPU of the recorder itself to its last instruction; run time and number of runs of its programs and its memory as seen every 20 ms until it ends."""
    process = subprocess.Popen(recorded(which, command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    last = (0, 0, 0)
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        last = tuple(map(max, last, programs_of(process.pid)))
        time.sleep(0.02)
    ticks = own_ticks(process.pid)  # it is not reaped yet
    process.wait()
    return ticks / os.sysconf("SC_CLK_TCK"), *last


@contextlib.contextmanager
def counting():
    """The kernel counts how often and how long its programs run."""
    with open(STATISTICS) as f:
        before = f.read()
    with open(STATISTICS, "w") as f:
        f.write("1")
    try:
        yield
    finally:
        with open(STATISTICS, "w") as f:
            f.write(before)


def hook_ns(which):
    """What a run of a program costs beyond its own time: by a loop of calls that are hooked, and of which no record is made."""
    if which == "user":
        return 0.0
    loop = [PYTHON, "-c", "import os\nfor _ in range(500000): os.getppid()"]
    plain = statistics.median(run(loop)[1] for _ in range(PRICE_RUNS))
    extra = []
    for _ in range(PRICE_RUNS):
        start = os.times()
        with counting():
            cpu, ns, runs, _ = price_run(which, loop)
        end = os.times()
        spent = end.children_user + end.children_system - start.children_user - start.children_system
        extra.append((spent - plain - cpu - ns / 1e9) * 1e9 / max(runs, 1))
    return max(0.0, statistics.median(extra))


def interval(plain, traced):
    """The 95 % interval of the ratio of medians."""
    rng = random.Random(1)
    ratios = sorted(statistics.median(rng.choices(traced, k=len(traced))) / statistics.median(rng.choices(plain, k=len(plain))) for _ in range(2000))
    return ratios[int(len(ratios) * 0.025)], ratios[int(len(ratios) * 0.975)]


def price(name, which, command, each_ns, cpu):
    with counting() if os.geteuid() == 0 else contextlib.nullcontext():
        runs = [price_run(which, ["sleep", str(max(1, cpu))] if name == "idle" else command) for _ in range(PRICE_RUNS)]
    return statistics.median((own + ns / 1e9 + n * each_ns / 1e9) / cpu for own, ns, n, _ in runs), max(r[3] for r in runs) / 1000


PEERS = {
    "strace": ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=%file,%desc,%process"],
    "perf": ["perf", "trace", "-o", "/dev/null"],
    "bpftrace": ["bpftrace", "-q", "-o", "/dev/null", os.path.join(os.path.dirname(__file__), "..", "peer_bpftrace.bt"), "-c"],
}


def run_peer(peer, command):
    """Seconds under another tracer; None: it cannot."""
    if not shutil.which(peer):
        return None
    under = PEERS[peer]
    if peer == "bpftrace":  # one word
        command = ["sh", write("peer.sh", " ".join(f"'{word}'" for word in command) + "\n")]
        result = subprocess.run([*under, " ".join(timed(command))], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONGEST_S)
        with open(os.path.join(FOLDER, "seconds")) as f:
            return float(f.read().split()[0]) if result.returncode == 0 else None
    if subprocess.run([*under, "true"], capture_output=True).returncode != 0:
        return None
    return run(command, under)[0]


def put_peers(name, command, clock):
    for peer in PEERS:
        try:
            seconds = run_peer(peer, command)
        except (TooLong, subprocess.TimeoutExpired):
            print(f"bench: record: {name} under {peer} took more than {LONGEST_S} s", file=sys.stderr)
            continue
        if seconds is None:
            print(f"bench: record: {name} is not measured under {peer}: it does not work here", file=sys.stderr)
        else:
            print(f"record_{peer}_{name} {seconds / clock:.2f} of untraced, clock, once", flush=True)


def put_wall(name, which, clock, traced):
    low, high = interval(clock, traced)
    print(f"record_wall_{which}_{name} {statistics.median(traced) / statistics.median(clock):.3f} of untraced, clock, {PAIRS} pairs, 95 %: {low:.3f} to {high:.3f}")
    print(f"record_upper_{which}_{name} {high - 0.02:.3f} upper end of 95 %, minus 0.02", flush=True)


def measure(name, command, sets, each_ns):
    plain, traced = [], {which: [] for which in sets}
    run(command)  # caches are warm
    for i in range(PAIRS or PRICE_RUNS):
        plain.append(run(command))
        for which in sets[i % len(sets):] + sets[:i % len(sets)] if PAIRS else []:
            traced[which].append(run_recorded(name, which, command))
    clock = [seconds for seconds, _ in plain]
    for which in sets:
        if PAIRS:
            put_wall(name, which, clock, traced[which])
        if which in FLOORS or ONLY_WALL:
            continue
        paid, memory = price(name, which, command, each_ns[which], statistics.median(cpu for _, cpu in plain))
        print(f"record_price_{which}_{name} {paid:.4f} of the workload's CPU")
        print(f"record_memory_{which}_{name} {memory:.0f} MB of the recorder", flush=True)
    if PAIRS and name != "idle" and not ONLY_WALL:
        put_peers(name, command, statistics.median(clock))


def sets_of(name):
    given = os.environ.get("SETS", "").split()
    if os.geteuid() != 0:
        return ["user"]
    return given or ["default", "light", "always", *(["user"] if name == "torch" else [])]


def main():
    os.chmod(FOLDER, 0o777)
    each_ns = {}
    for name in sys.argv[5:] or WORKLOADS:
        command = WORKLOADS[name]()
        if not command:
            print(f"bench: record: {name} is not measured: what it needs is not here", file=sys.stderr)
            continue
        subprocess.run(["chmod", "-R", "a+rwX", FOLDER], check=True)
        sets = sets_of(name)
        each_ns.update({which: hook_ns(which) for which in sets if which not in each_ns and which not in FLOORS and not ONLY_WALL})
        try:
            measure(name, command, sets, each_ns)
        except TooLong:
            print(f"bench: record: {name} took more than {LONGEST_S} s", file=sys.stderr)


if __name__ == "__main__":
    main()
