#!/usr/bin/env python3
"""A training loop that is slow for a reason that tracing finds: the program of docs/tutorial.md.

    python3 examples/slow_training.py [--read BYTES] [--steps N]

A loader process reads sample files and sends batches through a pipe; the trainer waits for a batch and computes. The loader reads each file in
pieces of BYTES. The default, one record of 256 bytes at a time, is what makes it slow. Nothing sleeps; only the standard library is needed.
If the package `stave` is there, the trainer marks its steps with it; everything else is seen by `stave record` without changes to the program."""
import argparse
import contextlib
import os
import sys
import tempfile
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/python"))  # where `make` puts the package
try:
    import stave
except ImportError:
    stave = None

FILES, FILE_BYTES, FILES_PER_BATCH, BATCH_BYTES = 32, 1 << 19, 4, 1 << 16  # the pipe holds one batch


def mark(name, category):
    """A slice in the trace, if there is a trace."""
    return stave.trace(name, category=category) if stave else contextlib.nullcontext()


def write_samples(folder):
    block = bytes(range(256)) * (FILE_BYTES // 256)
    for i in range(FILES):
        with open(f"{folder}/sample-{i:02}.bin", "wb") as file:
            file.write(block)


def load_batch(folder, batch, piece):
    """Reads the files of a batch and returns what the trainer needs of them."""
    check = 0
    for i in range(FILES_PER_BATCH):
        fd = os.open(f"{folder}/sample-{(batch * FILES_PER_BATCH + i) % FILES:02}.bin", os.O_RDONLY)
        while data := os.read(fd, piece):
            check = zlib.crc32(data, check)
        os.close(fd)
    return check.to_bytes(4, "little") * (BATCH_BYTES // 4)


def start_loader(folder, steps, piece):
    """A process that loads the batches; returns the end of the pipe from which the trainer reads them."""
    source, sink = os.pipe()
    if os.fork() == 0:
        os.close(source)
        with open(sink, "wb", buffering=0) as pipe:
            for batch in range(steps):
                pipe.write(load_batch(folder, batch, piece))
        os._exit(0)
    os.close(sink)
    return open(source, "rb", buffering=0)


def compute(batch):
    total = 0
    for value in batch[::2]:
        total += value * value
    return total


def next_batch(pipe):
    batch = b""
    while len(batch) < BATCH_BYTES:
        batch += pipe.read(BATCH_BYTES - len(batch))
    return batch


def train(pipe, steps):
    for step in range(steps):
        with mark(f"step {step}", "step"):
            with mark("wait for data", "dataloader"):
                batch = next_batch(pipe)
            for phase in "forward", "backward":
                with mark(phase, "compute"):
                    compute(batch)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--read", type=int, default=256, help="bytes that the loader reads at a time (256)")
    options.add_argument("--steps", type=int, default=40)
    options = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="samples-") as folder:
        write_samples(folder)
        with start_loader(folder, options.steps, options.read) as pipe:
            train(pipe, options.steps)
        os.wait()
    print(f"{options.steps} steps")


if __name__ == "__main__":
    main()
