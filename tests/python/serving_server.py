"""An asyncio inference server with dynamic batching, and the clients that load it: for test_serving.py. Prints what the clients saw, as JSON.

A line "NUMBER\\n" is a request; its answer is "ok NUMBER BATCH-SIZE\\n", "busy\\n" or "error\\n". A negative number fails. Clients of the third kind leave at once.
"""
import asyncio
import collections
import json
import random
import sys
import time

import stave.serving

CLIENTS, EACH, BATCH, QUEUE = 40, 25, 8, 24


class Server:
    def __init__(self, trace):
        self.trace, self.queue = trace, asyncio.Queue(QUEUE)
        self.executor = stave.serving.ThreadPoolExecutor(2)
        trace.worker(0, "cpu")
        trace.worker(1, "cpu")

    async def handle(self, reader, writer):
        while line := await reader.readline():
            number, _, parent = line.decode().strip().partition(" ")
            if self.queue.full():
                self.trace.rejected("net", parent or None)
                writer.write(b"busy\n")
                continue
            answer = asyncio.get_running_loop().create_future()
            try:
                with self.trace.request("net", parent or None) as request:
                    self.queue.put_nowait((request, int(number), answer))
                    waits, leaves = asyncio.ensure_future(answer), asyncio.ensure_future(reader.read(1))
                    await asyncio.wait((waits, leaves), return_when=asyncio.FIRST_COMPLETED)
                    if leaves.done() and not waits.done():
                        raise asyncio.CancelledError
                    leaves.cancel()
                    await asyncio.gather(leaves, return_exceptions=True)
                    result = await answer
                    assert stave.serving.current() is request
                    writer.write(f"ok {number} {result}\n".encode())
            except asyncio.CancelledError:
                break
            except ValueError:
                writer.write(b"error\n")
        writer.close()

    def compute(self, batch, numbers, worker):
        with batch.run(worker):
            time.sleep(0.0005)
            return [len(numbers) if n >= 0 else None for n in numbers]

    async def one_batch(self, taken, worker):
        taken = [t for t in taken if not t[0].ended]  # clients that have left since
        if not taken:
            return
        requests = [r for r, _, _ in taken]
        with self.trace.batch(requests) as batch:
            results = await asyncio.get_running_loop().run_in_executor(self.executor, self.compute, batch, [n for _, n, _ in taken], worker)
            for (_, _, answer), result in zip(taken, results):
                if not answer.done():
                    answer.set_result(result) if result else answer.set_exception(ValueError("a negative number"))
                    answer.exception() if not result else None

    async def batches(self):
        running, turn = set(), 0
        while True:
            taken = [await self.queue.get()]
            taken[0][0].dequeued()
            deadline = time.monotonic() + 0.001
            while len(taken) < BATCH and (left := deadline - time.monotonic()) > 0:
                try:
                    taken.append(await asyncio.wait_for(self.queue.get(), left))
                    taken[-1][0].dequeued()
                except TimeoutError:
                    break
            if len(running) == 2:
                _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            running.add(asyncio.ensure_future(self.one_batch(taken, turn % 2)))
            turn += 1


async def client(port, kind, saw):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for i in range(EACH):
        number = -1 if kind == 1 and i % 5 == 0 else i
        parent = " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" if kind == 3 else ""
        writer.write(f"{number}{parent}\n".encode())
        saw["sent"] += 1
        if kind == 2 and i % 5 == 4:
            writer.close()
            saw["left"] += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            continue
        words = (await reader.readline()).split()
        saw[words[0].decode()] += 1
        if words[0] == b"busy":
            await asyncio.sleep(random.random() / 1000)
    writer.close()


async def main(folder):
    trace = stave.serving.open(folder, server="asyncio server")
    server, saw = Server(trace), collections.Counter()
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    batcher = asyncio.ensure_future(server.batches())
    port = listener.sockets[0].getsockname()[1]
    await asyncio.gather(*(client(port, i % 4, saw) for i in range(CLIENTS)))
    while len(asyncio.all_tasks()) > 2 or not server.queue.empty():  # those whose clients have left
        await asyncio.sleep(0.005)
    batcher.cancel()
    listener.close()
    trace.flush()
    saw["lost"] = trace.counts()["lost"]
    trace.close()
    print(json.dumps(saw))


asyncio.run(main(sys.argv[1]))
