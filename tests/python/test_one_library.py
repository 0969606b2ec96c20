"""A C++ extension that links libstave.so and the Python package in one process: one library, one session, one stack, nothing left behind."""
import os
import re
import subprocess
import sysconfig

import pytest
from conftest import ALONE

BUILD, SRC = os.environ["BUILD"], os.environ["SRC"]

EXTENSION = r"""
#include <Python.h>
#include <stave/file.h>
#include <stave/stave.hpp>
static PyObject *work(PyObject *, PyObject *function)
{
    STAVE_SCOPE("cpp", "in_cpp");
    return PyObject_CallNoArgs(function);
}
static PyObject *start(PyObject *, PyObject *path)
{
    stave_options o = {};
    o.size = sizeof o;
    o.out = PyUnicode_AsUTF8(path);
    return PyLong_FromLong(stave_start(&o, nullptr));
}
static PyObject *file(PyObject *, PyObject *path)
{
    struct stave_file *f = stave_file_open(PyUnicode_AsUTF8(path), nullptr, nullptr);
    return PyLong_FromLong(f ? stave_file_close(f, nullptr) : -1);
}
static PyMethodDef methods[] = {{"work", work, METH_O, nullptr}, {"start", start, METH_O, nullptr}, {"file", file, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "ext", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_ext(void) { return PyModule_Create(&definition); }
"""

BODY = """
def inner():
    with stave.trace("inner"):
        pass

def work():
    with stave.trace("outer"):
        ext.work(inner)
"""


def compile_to(path, source, *flags, language="c++"):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(["g++" if language == "c++" else "gcc", "-x", language, "-", "-x", "none", "-shared", "-fPIC", "-o", str(path), *flags],
                          input=source, text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    path = tmp_path_factory.mktemp("ext") / "ext.so"
    compile_to(path, EXTENSION, "-std=c++17", f"-I{SRC}/include", f"-I{sysconfig.get_paths()['include']}", f"-L{BUILD}", "-lstave",
               "-lstave-file", f"-Wl,-rpath,{BUILD}")
    return path


@pytest.fixture
def both(py, extension):
    """A folder with the extension in it; sessions are in it, too."""
    os.symlink(extension, py.folder / "ext.so")
    py.environment = {"STAVE_SESSION_DIR": str(py.folder / "sessions")}
    return py


def left_behind(py):
    sessions = py.folder / "sessions"
    own = {"ext.so", "prog.py", "sessions", "__pycache__", "t.pftrace"}
    return sorted(p.name for p in py.folder.iterdir() if p.name not in own) + (os.listdir(sessions) if sessions.exists() else [])


def check_one_trace(py):
    trace = py.read()
    assert [(s["name"], s["depth"]) for s in trace.slices] == [("outer", 0), ("in_cpp", 1), ("inner", 2)]
    assert len({s["track_id"] for s in trace.slices}) == 1
    assert left_behind(py) == []


ORDERS = pytest.mark.parametrize("order", ["import stave, ext", "import ext, stave"])


@ORDERS
def test_one_trace_by_the_environment(both, order):
    both.run(f"{order}\n{BODY}\nwork()", env={**both.environment, "STAVE_OUT": "t.pftrace"})
    check_one_trace(both)


@ORDERS
def test_one_trace_by_python(both, order):
    both.run(f"{order}\n{BODY}\nwith stave.open('t.pftrace'):\n    work()", env=both.environment)
    check_one_trace(both)


@ORDERS
def test_one_trace_by_the_extension(both, order):
    both.run(f"{order}\n{BODY}\nassert ext.start('t.pftrace') == 0\nwork()", env=both.environment)
    check_one_trace(both)


@ORDERS
def test_one_trace_by_record(both, order):
    both.run(f"{order}\n{BODY}\nwork()", env=both.environment, command=["-c", ALONE, "record", "-q", "-o", "t.pftrace", "--", "prog.py"])
    check_one_trace(both)


@ORDERS
def test_one_library_is_mapped(both, order):
    names = both.run(f"""
        {order}
        import os
        paths = {{os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps") if "libstave" in line}}
        print(*sorted(os.path.basename(p).split(".so")[0] for p in paths))
        assert ext.file("t.pftrace") == 0
        """, env=both.environment)
    assert names.split() == ["libstave", "libstave-file"]


def test_python_waits_for_space_whoever_started(both):
    """Python's default, nothing is lost, although the library was loaded by another and has begun without it."""
    both.run("""
        import ext, stave
        for i in range(100000):
            stave.instant("i", i=i)
        assert stave.counts()["lost_full"] == 0, stave.counts()
        """, env={**both.environment, "STAVE_OUT": "t.pftrace", "STAVE_BUFFER": "16k"})
    assert both.count("i") == 100000
    assert left_behind(both) == []


def test_what_the_program_chose_is_kept(both):
    both.run("""
        import ext, stave
        for i in range(100000):
            stave.instant("i", i=i)
        """, env={**both.environment, "STAVE_OUT": "t.pftrace", "STAVE_BUFFER": "16k", "STAVE_FULL": "drop"})
    assert left_behind(both) == []
    lost = both.ask("select sum(value) as n from stats where name like '%lost%' or name like '%drop%'")
    assert both.count("i") < 100000, lost


def test_a_second_copy_leaves_nothing_behind(both, tmp_path_factory):
    """An extension with libstave.a inside has a session of its own; under record its events are in the one trace, too."""
    flags = subprocess.run(["pkg-config", "--static", "--libs-only-l", f"{BUILD}/stave.pc"], capture_output=True, text=True).stdout.split()
    (both.folder / "ext.so").unlink()
    compile_to(both.folder / "ext.so", EXTENSION, "-std=c++17", f"-I{SRC}/include", f"-I{sysconfig.get_paths()['include']}",
               f"{BUILD}/libstave.a", "-Wl,--exclude-libs,ALL", *(f for f in flags if not f.startswith("-lstave")))
    both.run(f"import stave, ext\n{BODY}\nwork()", env=both.environment,
             command=["-c", ALONE, "record", "-q", "-o", "t.pftrace", "--", "prog.py"])
    assert sorted(both.read().names()) == ["in_cpp", "inner", "outer"]
    assert left_behind(both) == []


# ---- another version was there first ----

def fake(path, version, functions=()):
    text = f'const char *stave_version(void) {{ return "{version}"; }}\n' + "".join(f"void {f}(void) {{}}\n" for f in functions)
    script = path.with_suffix(".map")
    script.write_text("STAVE_0 { global: stave_*; local: *; };\n")
    compile_to(path, text, "-Wl,-soname,libstave.so.0", f"-Wl,--version-script={script}", language="c")


def needed_functions():
    found = set()
    for name in os.listdir(f"{BUILD}/python/stave"):
        if re.match(r"_stave.*\.so$|libstave-file", name):
            listed = subprocess.run(["nm", "-D", "--undefined-only", f"{BUILD}/python/stave/{name}"], capture_output=True, text=True).stdout
            found |= {w for w in re.findall(r"U (stave_\w+)@STAVE_0$", listed, re.M)}
    assert "stave_i_emit" in found
    return sorted(found - {"stave_version"})


@pytest.mark.skipif("asan" in BUILD, reason="the sanitizer must be the first library")
@pytest.mark.parametrize("version, whole, says", [
    ("0.0.9", True, "this process has loaded libstave 0.0.9 ({path})"),
    ("1.0.0", True, "this process has loaded libstave 1.0.0 ({path})"),
    ("0.0.9", False, "this process has loaded libstave from {path}"),
])
def test_another_version_is_refused(py, version, whole, says):
    path = py.folder / "libstave.so.0"
    fake(path, version, needed_functions() if whole else ())
    py.run(f"import ctypes\nctypes.CDLL({str(path)!r}, mode=ctypes.RTLD_GLOBAL)\nimport stave", code=1)
    assert "ImportError" in py.stderr and says.format(path=path) in py.stderr and "import stave first" in py.stderr, py.stderr
