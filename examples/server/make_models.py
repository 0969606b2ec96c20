#!/usr/bin/env python3
"""Writes the sample models of this folder: safetensors files with weights from a seed. Needs nothing but Python.

    make_models.py [--seed N] [--folder DIR]

The same seed gives the same bytes on every machine. The file's metadata has the connections of the layers (docs/server.md).
"""
import argparse
import json
import math
import os
import struct


class Random:
    """SplitMix64: the same numbers everywhere, whatever Python's own generator does."""

    def __init__(self, seed):
        self.state = seed & (2**64 - 1)

    def uniform(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        z ^= z >> 31
        return ((z >> 11) / float(1 << 53) * 2 - 1) * limit


def weights(random, shape, fan_in):
    n = math.prod(shape)
    limit = math.sqrt(3.0 / fan_in)
    return shape, [random.uniform(limit) for _ in range(n)]


def layer(tensors, random, name, shape):
    fan_in = math.prod(shape[1:])
    tensors[name + ".weight"] = weights(random, shape, fan_in)
    tensors[name + ".bias"] = weights(random, shape[:1], fan_in * 10)


def write(path, tensors, given, layers):
    header, data = {"__metadata__": {"stave.input": given, "stave.layers": layers}}, b""
    for name, (shape, values) in tensors.items():
        begin = len(data)
        data += struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", default=os.path.dirname(os.path.abspath(__file__)))
    options = parser.parse_args()

    random, mlp = Random(options.seed), {}
    layer(mlp, random, "fc1", (64, 32))
    layer(mlp, random, "fc2", (64, 64))
    layer(mlp, random, "fc3", (8, 64))
    write(os.path.join(options.folder, "mlp.safetensors"), mlp, "32",
          "dense fc1 relu, dense fc2 relu, dense fc3 softmax")

    random, conv = Random(options.seed + 1), {}
    layer(conv, random, "c1", (8, 1, 3, 3))
    layer(conv, random, "c2", (16, 8, 3, 3))
    layer(conv, random, "fc", (10, 16))
    write(os.path.join(options.folder, "conv.safetensors"), conv, "1x16x16",
          "conv c1 relu, maxpool 2, conv c2 relu, avgpool, dense fc softmax")

    random, tokens = Random(options.seed + 2), {}
    tokens["words.weight"] = weights(random, (64, 16), 16)
    layer(tokens, random, "fc", (4, 16))
    write(os.path.join(options.folder, "tokens.safetensors"), tokens, "tokens", "embed words, dense fc softmax")


if __name__ == "__main__":
    main()
