"""The clock snapshots of a Perfetto file that is not compressed: how many clocks of sequences it has, and how many
snapshots have a reading before that of the one before. FILE"""
import sys


def fields(b):
    at = 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            c = b[at]
            at += 1
            n |= (c & 127) << shift
            shift += 7
            if c < 128:
                return n

    while at < len(b):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            n = varint()
            at += n
            yield tag >> 3, b[at - n : at]
        else:
            n = {1: 8, 5: 4}[tag & 7]
            at += n
            yield tag >> 3, b[at - n : at]


last, clocks, back = {}, set(), 0
for _, packet in fields(open(sys.argv[1], "rb").read()):
    parts = dict(fields(packet))
    if 6 not in parts:
        continue
    readings = [dict(fields(c)) for i, c in fields(parts[6]) if i == 1]
    ids = [r[1] for r in readings]
    private = [i for i in ids if 64 <= i < 128]
    key = (parts.get(10) if private else None, *ids)
    now = [r[2] for r in readings]
    back += any(a < b for a, b in zip(now, last.get(key, now)))
    last[key] = now
    clocks.update(private)
print(len(clocks), back)
