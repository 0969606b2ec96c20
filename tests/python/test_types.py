"""The stubs: right for users, complete, and in step with the module."""
import os
import re
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(__file__)
PACKAGE = os.path.join(os.environ["SRC"], "lib", "python")


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    if not shutil.which("mypy"):
        pytest.skip("mypy is not installed (package mypy)")
    cache = str(tmp_path_factory.mktemp("mypy"))
    return lambda *words: subprocess.run(["mypy", "--cache-dir", cache, "--strict", *words], capture_output=True, text=True,
                                         env={**os.environ, "MYPYPATH": PACKAGE, "LD_PRELOAD": ""}, cwd=cache)


def test_users_are_typed(mypy):
    path = os.path.join(HERE, "typed_use.py")
    done = mypy(path)
    with open(path) as f:
        expected = {i for i, line in enumerate(f, 1) if line.rstrip().endswith("# refused")}
    found = {int(n) for n in re.findall(r"typed_use\.py:(\d+): error", done.stdout)}
    assert found == expected, done.stdout + done.stderr


def test_stubs_are_sound(mypy):
    done = mypy("-p", "stave")
    assert not re.search(r"\.pyi:\d+: error", done.stdout), done.stdout


def test_stubs_name_everything():
    import stave
    from stave import _stave
    for module, stub in ((stave, "__init__.pyi"), (_stave, "_stave.pyi")):
        with open(os.path.join(PACKAGE, "stave", stub)) as f:
            text = f.read()
        names = stave.__all__ if module is stave else [n for n in dir(module) if not n.startswith("__")]
        missing = [n for n in names if not re.search(rf"\b{n}\b", text)]
        assert not missing
    for cls in (_stave.Slice, _stave.Track, _stave.Counter, _stave.File):
        with open(os.path.join(PACKAGE, "stave", "_stave.pyi")) as f:
            body = re.search(rf"class {cls.__name__}\b.*?(?=\n(?:@final\n)?(?:class|def) )", f.read(), re.S).group()
        assert not [n for n in vars(cls) if not n.startswith("__") and f"def {n}(" not in body]


def test_package_is_marked_as_typed():
    import stave
    assert os.path.exists(os.path.join(os.path.dirname(stave.__file__), "py.typed"))
    assert sys.version_info >= (3, 11)
