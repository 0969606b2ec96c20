"""Builds the extension and, beside it, the libraries that it loads: their sources are compiled here, so that nothing needs to be installed but
a C compiler and the headers of zlib and, for stave.load, SQLite. The build of the project (CMakeLists.txt) makes the same for use from the build folder and for wheels.

The C sources are in c/ (a source distribution, tools/make-wheel) or in the project above lib/python/."""
import hashlib
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "c")
if not os.path.isdir(ROOT):
    ROOT = os.path.dirname(os.path.dirname(HERE))


def sources(*patterns):
    found = sorted(path for pattern in patterns for path in glob(os.path.join(ROOT, pattern), recursive=True))
    if not found:
        raise SystemExit(f"stave: no {patterns[0]} in {ROOT}: install from the project's folder or from a source distribution")
    return found


def version():
    with open(os.path.join(ROOT, "include/stave/stave.h")) as header:
        return ".".join(re.findall(r"^#define STAVE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read(), re.M))


def has_header(name):
    return any(os.path.exists(os.path.join(folder, name)) for folder in ("/usr/include", "/usr/local/include"))


# The same files as in CMakeLists.txt: what each library has besides the core, and its list of exported names.
BY_NAME = "lib/sdk/standalone/compress_by_name.c"
SDK = [f"lib/sdk/{folder}/*.c" for folder in ("emit", "ring", "drain", "write", "collect", "session", "recover")]
LIBRARIES = {
    "libstave": ((*SDK, BY_NAME), "lib/sdk/libstave.map"),
    "libstave-file": (("lib/compat/*.c", "lib/sdk/standalone/file_writer.c", "lib/sdk/session/say.c", "lib/sdk/session/quiet.c",
                       "lib/sdk/session/destination.c", "lib/sdk/session/folders.c", "lib/sdk/session/stream_address.c", "lib/sdk/drain/drain_items.c", BY_NAME),
                      "lib/sdk/standalone/libstave-file.map"),
    "libstave-serving": (("lib/serving/*.c",), "lib/serving/libstave-serving.map"),
}
# libstave-read takes what it needs out of an archive of these: all but the files of the commands that are not for reading.
READ = (*(f"src/{folder}/*.c" for folder in ("read", "threads", "store", "clocks", "why", "stats", "sql", "subjects", "subjects/*", "formats", "formats/*", "cli",
                                            "files", "plot", "explain")), "lib/compat/ferrum.c", "src/cmd/report.c", "src/cmd/plot*.c", "src/cmd/first_rows.c", "src/cmd/query_options.c")
FLAGS = ["-std=gnu17", "-O2", "-fvisibility=hidden", "-fno-strict-aliasing", "-ffunction-sections", "-fdata-sections",
         "-Wno-missing-field-initializers", "-fno-common"]
LINK = ["-Wl,--gc-sections", "-Wl,--strip-debug", "-Wl,--as-needed", "-Wl,-z,relro,-z,now", "-pthread", "-ldl", "-lm"]


class Build(build_ext):
    """Object files go to the temporary folder, wherever the sources are."""

    def compiled(self, *patterns):
        return self.compiled_files(sources(*patterns))

    def compiled_files(self, files):
        macros = [("_GNU_SOURCE", None), ("_FILE_OFFSET_BITS", "64"), ("SV_HAVE_ZLIB", "1"), ("SV_VERSION", f'"{version()}"')]
        for header, macro in (("zstd.h", "SV_HAVE_ZSTD"), ("sqlite3.h", "SV_HAVE_SQLITE")):
            if has_header(header):
                macros.append((macro, "1"))
        for path in self.compiler.object_filenames(files, output_dir=self.build_temp):
            os.makedirs(os.path.dirname(path), exist_ok=True)

        def compile_one(path):
            return self.compiler.compile([path], output_dir=self.build_temp, macros=macros, extra_postargs=FLAGS,
                                         include_dirs=[os.path.join(ROOT, folder) for folder in ("", "lib", "src", "include")])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [made for all_made in pool.map(compile_one, files) for made in all_made]

    def sources_hash(self):
        """As tools/cmake/sources_hash.cmake: an index of a trace is used only by what was built from the same sources."""
        all_of_it = hashlib.sha256(" ".join(["setup.py", *FLAGS, str(has_header("zstd.h"))]).encode())
        for path in sources("core/*/*.[ch]", "src/**/*.[ch]"):
            with open(path, "rb") as source:
                all_of_it.update(source.read())
        os.makedirs(self.build_temp, exist_ok=True)
        path = os.path.join(self.build_temp, "sources_hash.c")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f'#include "files/kept.h"\n\nconst uint64_t sv_kept_build = 0x{all_of_it.hexdigest()[:16]};\n')
        return path

    def link_read(self, folder, core):
        if not has_header("sqlite3.h"):
            print("stave: sqlite3.h is absent (package libsqlite3-dev): without libstave-read, stave.load will not work", file=sys.stderr)
            return
        parts = self.compiled(*READ) + self.compiled_files([self.sources_hash()])
        self.compiler.create_static_lib(parts, "parts", output_dir=self.build_temp)
        self.link("libstave-read", folder, [o for o in parts if "/src/read/" in o] + core + [os.path.join(self.build_temp, "libparts.a")],
                  "src/read/libstave-read.map", ["-Wl,--no-undefined", "-Wl,--exclude-libs,ALL", "-lz", "-lsqlite3", *(["-lzstd"] if has_header("zstd.h") else [])])

    def link_library(self, name, folder, core, needed):
        patterns, names = LIBRARIES[name]
        return self.link(name, folder, self.compiled(*patterns) + core + needed, names, ["-Wl,-z,nodelete"])

    def link(self, name, folder, objects, names, options):
        soname = f"{name}.so.{version().split('.')[0]}"
        path = os.path.join(folder, soname)
        self.compiler.link_shared_object(objects, path, extra_postargs=[
            *LINK, *options, f"-Wl,-soname,{soname}", "-Wl,-rpath,$ORIGIN", f"-Wl,--version-script={os.path.join(ROOT, names)}"])
        return path

    def build_libraries(self, folder):
        os.makedirs(folder, exist_ok=True)
        core, self.libraries_made = self.compiled("core/*/*.c"), {}
        for name in LIBRARIES:
            self.libraries_made[name] = self.link_library(name, folder, core, list(self.libraries_made.values()))
        self.link_read(folder, core)

    def build_extension(self, ext):
        if not hasattr(self, "libraries_made"):
            self.build_libraries(os.path.dirname(os.path.abspath(self.get_ext_fullpath(ext.name))))
        ext.extra_objects = [self.libraries_made[name] for name in EXTENSIONS[ext.name][1]]
        ext.extra_compile_args = [*FLAGS, "-fno-plt"]
        super().build_extension(ext)


# The folder of each extension's sources, and the libraries that it loads.
EXTENSIONS = {"stave._stave": ("src", ("libstave", "libstave-file")), "stave._serving": ("src/serving", ("libstave", "libstave-serving"))}

setup(
    version=version(),
    cmdclass={"build_ext": Build},
    ext_modules=[Extension(
        name,
        [os.path.relpath(path, HERE) for path in sorted(glob(os.path.join(HERE, folder, "*.c")))],
        include_dirs=[os.path.join(ROOT, "include")],
        depends=sorted(glob(os.path.join(HERE, folder, "*.h"))) + sources("include/stave/*.h"),
        extra_link_args=[*LINK, "-Wl,-rpath,$ORIGIN", "-Wl,--version-script=" + os.path.join(HERE, "src/extension.map")],
    ) for name, (folder, _) in EXTENSIONS.items()],
)
