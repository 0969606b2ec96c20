#!/usr/bin/env python3
"""plot_batch_summary.py SUMMARY_CSV [-o|--output IMAGE]: the panels of an inference server's batches as one picture.

The command that servers and their users know; `stave plot batch` does the work. Without -o the picture is named like the
summary, with _plots.png instead of _summary.csv, and lies beside it.
"""
import argparse
import os
import pathlib
import shutil
import sys


def program():
    """STAVE, else the one beside this script's tree, else the installed one."""
    built = pathlib.Path(__file__).resolve().parent.parent / "build" / "stave"
    return os.environ.get("STAVE") or (str(built) if os.access(built, os.X_OK) else shutil.which("stave"))


def default_output(summary):
    stem = summary.stem.removesuffix("_summary")
    return summary.with_name(stem + "_plots.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("summary_csv", type=pathlib.Path, help="batching_trace_summary.csv or trace.csv")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="PNG, SVG or PDF (default: beside the summary)")
    given = parser.parse_args()
    stave = program()
    if not stave:
        sys.exit("plot_batch_summary.py: no program stave: install it, or name it in STAVE")
    output = given.output or default_output(given.summary_csv)
    os.execv(stave, [stave, "plot", "batch", str(given.summary_csv), "-o", str(output)])


if __name__ == "__main__":
    main()
