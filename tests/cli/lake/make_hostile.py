#!/usr/bin/env python3
"""make_hostile.py FILE [ROWS]: a trace in canonical text with what breaks writers: texts that are empty, hold zero bytes, are no UTF-8, quoted, of 1 MB, many different
ones; integers at the ends of int64; NULLs in runs and alone; more rows than a row group has."""
import sys

rows = int(sys.argv[2]) if len(sys.argv) > 2 else 133_000
texts = ['', 'plain', '\\x00', 'a\\x00b', '\\xff\\xfe', 'ok\\xc3', '\\xed\\xa0\\x80', 'quote\\" \\\\ \\n\\t, ;', 'Ω≈ç√', "x" * 1_000_000, 'NULL', '0', ' ']
numbers = [0, 1, -1, 2**63 - 1, -2**63, 2**53 + 1, 42, -2**62]
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("# stave text 1\nclock unknown\n")
    out.write('track #1 process uuid=0x1 pid=1 name="p\\x00\\xff"\ntrack #2 thread uuid=0x2 parent=#1 pid=1 tid=1\n')
    out.write('track #3 thread uuid=0x3 parent=#1 pid=1 tid=2 name=""\ntrack #4 counter uuid=0x4 parent=#1 name="c"\n')
    out.write('-9223372036.854775807 instant #2 "first of all"\n')
    for i in range(rows):
        name = texts[i] if i < len(texts) else texts[i % 9] if i < 200 else f"name {i}" if i % 3 else "often"
        cat = "" if i % 7 else ' cat="io"'
        args = ""
        if i < 400:
            args = f' {{i={numbers[i % len(numbers)]} t="{texts[i % 9]}" d={i / 3} u={2**64 - 1 - i}u b=true bytes={"7" if i % 2 else chr(34) + "seven" + chr(34)} list=[1 2 [3]]}}'
        elif i < 500:  # what has no row in args: arrows, times of the thread
            args = f' {{@flow:0x{i // 2:x}}}' if i % 3 else f' {{@thread_time:{i} @thread_dur:{500 - i}}}'
        elif i % 50_000 == 0:
            args = ' {path="/alone"}'
        out.write(f'{i // 1000}.{i % 1000 * 1000:09d} slice #{2 + (i & 1)} "{name}"{cat} dur=0.000000{500 - i % 400:03d}{args}\n')
        if i % 1000 == 0:
            out.write(f'{i // 1000}.{i % 1000 * 1000:09d} counter #4 {{{[0.5, -0.0, 1e300, 5e-324, 3][i // 1000 % 5]}}}\n')
    out.write('9223372036.854775806 instant #2 "last of all"\n')
