"""Builds the extension with libstave inside: its sources are compiled here, so that nothing needs to be installed but a C compiler and
zlib's headers. The build of the project (CMakeLists.txt) makes the same module for use from the build folder."""
import os
import re
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def sources(*patterns):
    found = sorted(path for pattern in patterns for path in glob(os.path.join(ROOT, pattern)))
    if not found:
        raise SystemExit(f"stave: no {patterns[0]} above lib/python/: install from the project's folder")
    return found


def version():
    with open(os.path.join(ROOT, "include/stave/stave.h")) as header:
        return ".".join(re.findall(r"^#define STAVE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read(), re.M))


def has_header(name):
    return any(os.path.exists(os.path.join(folder, name)) for folder in ("/usr/include", "/usr/local/include"))


# The same files as in CMakeLists.txt: the SDK and the core.
LIBRARY = ("lib/sdk/*.c", "lib/sdk/hot/*.c", "lib/sdk/writing/*.c", "lib/sdk/standalone/compress_by_name.c", "lib/sdk/standalone/file_writer.c", "lib/sdk/standalone/trace_writer.c", "core/*/*.c")


class Build(build_ext):
    """Object files go to the temporary folder, wherever the sources are."""

    def build_extension(self, ext):
        flags = ["-std=gnu17", "-O2", "-fvisibility=hidden", "-fno-strict-aliasing", "-ffunction-sections", "-fdata-sections",
                 "-Wno-missing-field-initializers", "-fno-common"]
        macros = [("_GNU_SOURCE", None), ("_FILE_OFFSET_BITS", "64"), ("SV_HAVE_ZLIB", "1")]
        if has_header("zstd.h"):
            macros.append(("SV_HAVE_ZSTD", "1"))
        ext.extra_objects = self.compiler.compile(sources(*LIBRARY), output_dir=self.build_temp, macros=macros, extra_postargs=flags,
                                                  include_dirs=[ROOT, os.path.join(ROOT, "lib"), os.path.join(ROOT, "include")])
        ext.extra_compile_args = flags
        super().build_extension(ext)


setup(
    version=version(),
    cmdclass={"build_ext": Build},
    ext_modules=[Extension(
        "stave._stave",
        [os.path.relpath(path, HERE) for path in sources("lib/python/src/*.c")],
        include_dirs=[os.path.join(ROOT, "include")],
        depends=sources("lib/python/src/*.h", "include/stave/*.h"),
        extra_link_args=["-Wl,--gc-sections", "-Wl,--strip-debug", "-Wl,--version-script=" + os.path.join(HERE, "src/extension.map"), "-pthread", "-ldl", "-lm"],
    )],
)
