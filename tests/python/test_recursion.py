"""Decorated functions that call themselves: as deep as undecorated ones as far as the C stack goes, and never a crash."""
import pytest

PROGRAM = '''
    import sys, threading, stave

    def plain(n):
        return 0 if n == 0 else 1 + plain(n - 1)

    @stave.trace_func
    def traced(n):
        return 0 if n == 0 else 1 + traced(n - 1)

    class Tree:
        @stave.trace_func_args
        def method(self, n):
            return 0 if n == 0 else 1 + self.method(n - 1)

    def deepest(function, most):
        """The greatest depth that works, up to `most`."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            try:
                function(middle)
                low = middle
            except RecursionError:
                high = middle - 1
        return low
'''


@pytest.mark.parametrize("env", [{}, {"STAVE_OUT": "t.pftrace", "STAVE_FULL": "drop"}], ids=["off", "on"])
def test_the_default_limit_is_the_undecorated_one(py, env):
    out = py.run(PROGRAM + '''
    print(deepest(plain, 3000), deepest(traced, 3000))
    ''', env=env)
    plain, traced = map(int, out.split())
    assert 900 < plain and plain - 3 <= traced <= plain


@pytest.mark.parametrize("env", [{}, {"STAVE_OUT": "t.pftrace", "STAVE_FULL": "drop"}], ids=["off", "on"])
def test_a_raised_limit_ends_with_an_exception(py, env):
    out = py.run(PROGRAM + '''
    sys.setrecursionlimit(1_000_000)
    def try_all():
        for function in traced, Tree().method:
            try:
                print(function(200_000))
            except RecursionError as e:
                print(type(e).__name__)
            assert function(100) == 100  # it goes on
    try_all()
    threading.stack_size(256 << 10)
    t = threading.Thread(target=try_all)
    t.start()
    t.join()
    assert traced(5000) == 5000
    ''', env=env)
    assert set(out.split()) <= {"200000", "RecursionError"} and len(out.split()) == 4
