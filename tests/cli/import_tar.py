#!/usr/bin/env python3
# Makes the archives of import_tar.sh in the current folder, also such as no tar makes: two good files, and what BETWEEN holds between them.
import gzip, io, tarfile

LINES = "".join(f"2022-08-30T21:35:{10 + i}.5 7 832 6120 lib{i}.so\n" for i in range(4)).encode()
MORE = "".join(f"2022-08-30T21:36:{10 + i}.5 8 832 6120 lib{i}.so\n" for i in range(4)).encode()
BLOCK = 512


def header(name, size, kind=b"0", size_field=None, linkname=b"", magic=b"ustar\x0000"):
    h = bytearray(BLOCK)
    h[0:len(name)] = name
    h[100:108] = b"0000644\0"
    h[124:136] = size_field if size_field is not None else b"%011o\0" % size
    h[136:148] = b"%011o\0" % 0
    h[148:156] = b" " * 8
    h[156:157] = kind
    h[157:157 + len(linkname)] = linkname
    h[257:257 + len(magic)] = magic
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h)


def padded(data):
    return data + b"\0" * (-len(data) % BLOCK)


def member(name, data, kind=b"0", **more):
    return header(name, len(data), kind, **more) + padded(data)


def pax(records, kind=b"x"):
    text = b""
    for key, value in records:
        body = b" " + key + b"=" + value + b"\n"
        n = len(body)
        while n != len(body) + len(str(n)):
            n = len(body) + len(str(n))
        text += str(n).encode() + body
    return member(b"pax", text, kind)


def sparse_old():
    # two blocks of map between header and content
    h = bytearray(header(b"sparse", len(MORE), b"S", magic=b"ustar  \0"))
    h[482] = 1
    h[148:156] = b" " * 8
    h[148:156] = b"%06o\0 " % sum(h)
    first, last = bytearray(BLOCK), bytearray(BLOCK)
    first[504] = 1
    return bytes(h) + bytes(first) + bytes(last) + padded(MORE)


END = b"\0" * 2 * BLOCK
GOOD, LAST = member(b"run/read_7", LINES), member(b"run/read_8", MORE)
HUGE = b"\x80" + b"\0" * 5 + b"\x40" + b"\0" * 5

BETWEEN = {
    "none": b"",
    "parent": member(b"../read_9", MORE),
    "parent_inside": member(b"run/x/../../../read_9", MORE),
    "absolute": member(b"/tmp/read_9", MORE),
    "pax_parent": pax([(b"path", b"../../read_9")]) + member(b"run/ok", MORE),
    "gnu_parent": member(b"././@LongLink", b"../" * 60 + b"read_9\0", b"L") + member(b"run/ok", MORE),
    "sparse_old": sparse_old(),
    "sparse_pax": pax([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"run/sparse"), (b"GNU.sparse.realsize", b"9")]) + member(b"GNUSparseFile.0/x", MORE),
    "no_name": member(b"", MORE),
    "long_name": pax([(b"path", b"a/" * 4000 + b"read_9")]) + member(b"run/ok", MORE),
    "unknown_kind": member(b"run/volume", MORE, b"M"),
    "escapes": member(b"../\x1b[31mred\nread_9", MORE),
    # these hold nothing that could be lost
    "link": member(b"run/link", b"", b"2", linkname=b"/etc/passwd") + member(b"run/hard", b"", b"1", linkname=b"../../etc/passwd"),
    "device": member(b"run/null", b"", b"3") + member(b"run/disk", b"", b"4") + member(b"run/pipe", b"", b"6"),
    "through_link": member(b"run/link", b"", b"2", linkname=b"/tmp"),
    "global": pax([(b"comment", b"0123456789")], b"g"),
    "hidden": member(b"run/.read_9", MORE) + member(b".git/read_9", MORE),
    # these end the archive
    "bad_sum": GOOD[:20] + b"x" + GOOD[21:],
    "bad_pax": member(b"pax", b"999 path=x\n", b"x") + member(b"run/ok", MORE),
    "zero_pax": member(b"pax", b"0 path=x\n", b"x") + member(b"run/ok", MORE),
    "long_pax": header(b"pax", 1 << 32, b"x") + member(b"run/ok", MORE),
    "negative": header(b"run/read_9", 0, size_field=b"\xff" * 12) + padded(MORE),
    "huge": header(b"run/read_9", 0, size_field=HUGE) + padded(MORE),
    "huge_pax": pax([(b"size", b"1000000000000000000")]) + member(b"run/read_9", MORE),
    "endless_pax": pax([(b"size", b"9" * 40)]) + member(b"run/read_9", MORE),
}


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def many(n):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(n):
            info = tarfile.TarInfo(f"many/read_{i}")
            data = b"2022-08-30T21:35:%02d.5 %d 832 6120 libc.so\n" % (i % 60, i + 1)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def bomb(path):  # the header says 2 GiB, and 16 MiB of it are there: enough to see that nobody waits for the rest
    with gzip.open(path, "wb", 1) as f:
        f.write(GOOD + header(b"run/zeros", 2 << 30))
        f.write(b"\0" * (16 << 20))


# The last one of a name counts; dots and slashes in names that say nothing.
WHOLE = {
    "twice": member(b"./run//read_7", MORE) + member(b"run/./read_7", LINES) + LAST + END,
    "cut": (GOOD + LAST + END)[:len(GOOD) + BLOCK + 60],
    "no_end": GOOD + LAST,
    "deep": GOOD + member(b"d/" * 9 + b"read_9", MORE) + member(b"d/" * 9 + b"read_10", MORE) + END,
}
for name, between in BETWEEN.items():
    WHOLE[name] = GOOD + between + LAST + END
for name, data in WHOLE.items():
    write(name + ".tar", data)
    with open(name + ".tar.gz", "wb") as f:
        f.write(gzip.compress(data))
write("many.tar", many(10003))
bomb("bomb.tar.gz")
