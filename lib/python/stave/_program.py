"""The command `stave` of an installed package: the program that is in the wheel, with the arguments as they are."""
import os
import sys


def path():
    """The program's file; None: this package was built from source, which builds the libraries only."""
    found = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_program", "stave")
    return found if os.access(found, os.X_OK) else None


def main():
    """Becomes the program. Exits with 1 where there is none."""
    program = path()
    if program is None:
        print("stave: this package was built without the program stave: install a wheel of it, or the project (make install)",
              file=sys.stderr)
        return 1
    os.execv(program, ["stave", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
