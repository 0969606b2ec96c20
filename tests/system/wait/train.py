"""A trainer with two data workers, as PyTorch's DataLoader has them, that knows nothing of Stave. One file makes its worker sleep. wait/train.py FOLDER"""
import multiprocessing
import sys
import time

FOLDER, FILES, SLOW = sys.argv[1], 40, 13


def work(tasks, results):
    for batch in iter(tasks.get, None):
        for i in batch:
            with open(f"{FOLDER}/part-{i:02d}.bin", "rb") as f:
                data = f.read()
            if i == SLOW:
                time.sleep(0.3)
        results.put((batch, data[:1000]))


def main():
    context = multiprocessing.get_context("fork")
    for i in range(FILES):
        with open(f"{FOLDER}/part-{i:02d}.bin", "wb") as f:
            f.write(bytes(65536))
    tasks, results = context.Queue(), context.Queue()
    workers = [context.Process(target=work, args=(tasks, results)) for _ in range(2)]
    for w in workers:
        w.start()
    for first in range(0, FILES, 4):
        tasks.put(list(range(first, first + 4)))
    for _ in range(0, FILES, 4):
        results.get()
    for w in workers:
        tasks.put(None)
    for w in workers:
        w.join()


if __name__ == "__main__":
    main()
