"""Values of every kind, limits with right counts, and values that misbehave."""
import pytest


def value(py, expression, setup=""):
    t = py.trace(f"{setup}\nstave.instant('x', {{'v': {expression}}})")
    return t.one("x")["args"]


@pytest.mark.parametrize("expression, expected", [
    ("None", {}),
    ("True", {"v": 1}),
    ("-5", {"v": -5}),
    ("2**63 - 1", {"v": 2**63 - 1}),
    ("-2**63", {"v": -2**63}),
    ("2**200", {"v": str(2**200)}),
    ("-2**64", {"v": str(-2**64)}),
    ("1.5", {"v": 1.5}),
    ("'t\\u00e4xt'", {"v": "t\u00e4xt"}),
    ("''", {"v": ""}),
    ("b'ab\\x00'", {"v": "b'ab\\x00'"}),
    ("b'x' * 200", {"v": "b'" + "x" * 128 + "'... (72 more bytes)"}),
    ("(1, 'a')", {"v[0]": 1, "v[1]": "a"}),
    ("[[1, 2], [3]]", {"v[0][0]": 1, "v[0][1]": 2, "v[1][0]": 3}),
    ("{'a': {'b': [1, {'c': None}]}}", {"v.a.b[0]": 1}),
    ("{1: 2, (3, 4): 5}", {"v.1": 2, "v.(3, 4)": 5}),
    ("{7}", {"v[0]": 7}),
    ("frozenset({7})", {"v[0]": 7}),
    ("ValueError('no')", {"v": "ValueError: no"}),
    ("len", {"v": "len"}),
    ("dict", {"v": "dict"}),
    ("range(3)", {"v": "range(0, 3)"}),
    ("'x' * 5000", {"v": "x" * 4096 + "... (904 more bytes)"}),
])
def test_builtin_types(py, expression, expected):
    assert value(py, expression) == expected


def test_unsigned_of_64_bits(py):
    got = value(py, "2**64 - 1")["v"]
    assert got in (2**64 - 1, -1)  # SQL has no unsigned numbers; the file has


def test_huge_int(py):
    assert value(py, "10**5000")["v"].startswith("0x")


def test_user_types(py):
    setup = """
import enum, dataclasses, collections, pathlib
class Color(enum.Enum): RED = 1
class Level(enum.IntEnum): LOW = 3
class Text(str): pass
class Int(int): pass
@dataclasses.dataclass
class P:
    x: int
    y: list
Q = collections.namedtuple('Q', 'a b')
class Plain:
    def __repr__(self): return '<plain>'
"""
    got = value(py, "{'e': Color.RED, 'l': Level.LOW, 't': Text('t'), 'i': Int(4), 'd': P(1, [2]), 'q': Q(1, 2), 'o': Plain(),"
                    " 'od': collections.OrderedDict(a=1), 'dq': collections.deque([1])}", setup)
    assert got == {"v.e": "Color.RED", "v.l": "Level.LOW", "v.t": "t", "v.i": 4, "v.d.x": 1, "v.d.y[0]": 2, "v.q.a": 1, "v.q.b": 2,
                   "v.o": "<plain>", "v.od.a": 1, "v.dq": "deque([1])"}


@pytest.mark.parametrize("n, shown, more", [(0, 0, None), (255, 255, None), (256, 256, None), (257, 256, 1), (1000, 256, 744)])
def test_limits_count_right(py, n, shown, more):
    got = value(py, f"{{'l': list(range({n})), 'd': dict.fromkeys(map(str, range({n})), 0), 's': set(range({n}))}}")
    for key in "lds":
        mine = {k: v for k, v in got.items() if k.startswith("v." + key)}
        told = [v for v in mine.values() if isinstance(v, str) and "more items" in v]
        assert len(mine) - len(told) == shown
        assert told == ([] if more is None else [f"({more} more items)" if key == "d" else f"... ({more} more items)"])


def test_many_fields_are_counted(py):
    got = value(py, "dataclasses.make_dataclass('D', [(f'f{i}', int, i) for i in range(300)])()", "import dataclasses")
    assert len(got) == 257 and "(44 more items)" in got.values()


def test_what_does_not_fit_is_counted(py):
    got = value(py, "['y' * 1000 for _ in range(100)]")
    whole = [v for v in got.values() if v == "y" * 1000]
    more = [v for v in got.values() if "more items" in v]
    assert 5 < len(whole) < 20 and len(more) == 1
    assert int(more[0].split("(")[1].split()[0]) == 100 - (len(got) - 1)


def test_values_that_misbehave(py):
    t = py.trace('''
        class Repr:
            def __repr__(self): raise ValueError("x")
        class Exit:
            def __repr__(self): raise SystemExit(3)
        class NoText:
            def __repr__(self): return 5
        class Key:
            def __hash__(self): return 1
            def __str__(self): raise ValueError
        class Shape:
            dtype = shape = None
        class Liar(dict):
            def items(self): raise ValueError
        grows = []
        class Grow:
            def __repr__(self):
                grows.clear()
                return "grew"
        grows.extend([Grow(), 1, 2])
        circle = []; circle.append(circle)
        wide = {}
        for i in range(300): wide[i] = wide
        deep = 1
        for _ in range(100000): deep = [deep]
        stave.instant("x", a=Repr(), b=Exit(), c=NoText(), d={Key(): 1}, e=Shape(), f=Liar(a=1), g=grows, h=circle, i=deep)
        stave.instant("wide", w=wide)
        with stave.trace("slice", a=Repr()): pass
        print("alive")
        del deep
    ''')
    assert py.out.strip() == "alive"
    args = t.one("x")["args"]
    assert args["a"] == "<Repr: __repr__ raised ValueError>" and args["b"] == "<Exit: __repr__ raised SystemExit>"
    assert args["c"] == "<NoText: __repr__ raised TypeError>" and args["d.?"] == 1 and args["f.a"] == 1
    assert args["g[0]"] == "grew"
    assert "..." in args.values()
    assert t.one("slice")["args"] == {"a": "<Repr: __repr__ raised ValueError>"}


def test_ctrl_c_in_a_repr_is_not_swallowed(py):
    py.run('''
        import stave
        class R:
            def __repr__(self): raise KeyboardInterrupt
        with stave.open("t.pftrace"):
            try:
                stave.instant("x", r=R())
                for _ in range(100): pass
            except KeyboardInterrupt: print("interrupted")
    ''')


def test_numpy(py):
    np = pytest.importorskip("numpy")
    assert np
    setup = "import numpy as np"
    got = value(py, "{'i': np.int64(3), 'f': np.float32(0.5), 'd': np.float64(0.25), 'b': np.bool_(True),"
                    " 's': np.arange(4).reshape(2, 2), 'l': np.zeros((1000, 3), dtype='float32'), 'e': np.array([])}", setup)
    assert got == {"v.i": 3, "v.f": 0.5, "v.d": 0.25, "v.b": 1, "v.s[0][0]": 0, "v.s[0][1]": 1, "v.s[1][0]": 2, "v.s[1][1]": 3,
                   "v.l.shape[0]": 1000, "v.l.shape[1]": 3, "v.l.dtype": "float32"}


def test_tensors_are_not_touched(py):
    setup = """
class Tensor:   # like torch's: whoever touches the data would wait for the device
    shape, dtype, device = (64, 128), 'torch.float16', 'cuda:0'
    def __repr__(self): raise AssertionError('touched')
    def tolist(self): raise AssertionError('touched')
    def __len__(self): raise AssertionError('touched')
"""
    assert value(py, "Tensor()", setup) == {"v.shape[0]": 64, "v.shape[1]": 128, "v.dtype": "torch.float16", "v.device": "cuda:0"}


def test_reserved_words_are_arguments_in_a_dictionary(py):
    t = py.trace("stave.instant('x', {'category': 1, 'flow': 2}, category='c')")
    assert t.one("x")["category"] == "c" and t.one("x")["args"] == {"category": 1, "flow": 2}
