"""The command `stave` of an installed package: the program that is in the wheel, with the arguments as they are."""
import os
import shutil
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _is_own(found):
    """A script that runs this very file would call itself for ever."""
    try:
        with open(found, "rb") as file:
            return file.read(4) != b"\x7fELF"
    except OSError:
        return True


def path():
    """The program's file: in the wheel, beside the build folder's package, or in PATH; None: this package was built from source, which builds the libraries only."""
    beside = os.path.join(os.path.dirname(os.path.dirname(_HERE)), "stave")
    for found in (os.path.join(_HERE, "_program", "stave"), beside, shutil.which("stave")):
        if found and os.path.isfile(found) and os.access(found, os.X_OK) and not _is_own(found):
            return found
    return None


def become(words):
    """Becomes the program. Returns 1 where there is none."""
    program = path()
    if program is None:
        print("stave: this package was built without the program stave: install a wheel of it, or the project (make install)",
              file=sys.stderr)
        return 1
    sys.stdout.flush()
    os.execv(program, ["stave", *words])


def main():
    return become(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
