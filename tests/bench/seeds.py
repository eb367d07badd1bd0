#!/usr/bin/env python3
"""The tables of the five papers on this machine: what the paper says, what Longview does, whether the goal is met.

  tests/bench/seeds.py --table s1 | s1,s8 | all     [--tiny] [--out FOLDER] [--scratch FOLDER] [--no-peers]

Prints each table as Markdown and writes it, with its curves as SVG, into --out (none: nothing is written).
--tiny runs everything at a size of seconds, for a look whether it works; its figures mean nothing. Peers need the
packages of README.md. Exit status 1: a goal was missed without a reason.
"""

import argparse
import importlib
import pathlib
import sys
import tempfile
import time

from tables.table import Options
from timing import machine, versions, wait_for_quiet

TABLES = {
    "s1": "s1_counts", "s2": "s2_longest", "s3": "s3_curves", "s4": "s4_luna", "s5": "s5_lra", "s6": "s6_vision",
    "s7": "s7_windows", "s8": "s8_crossover", "s9": "s9_context", "s10": "s10_dilation", "s11": "s11_roberta"}


def chosen(text):
    names = list(TABLES) if text == "all" else text.split(",")
    for name in names:
        if name not in TABLES:
            raise SystemExit(f"--table: '{name}' is none of {', '.join(TABLES)}, all")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--scratch", default="")
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    names = chosen(arguments.table)
    quiet = arguments.tiny or wait_for_quiet()
    print(f"{machine()}; {versions('torch', 'transformers', 'openvino')}; {time.strftime('%Y-%m-%d')}"
          + ("" if quiet else "; OTHER LOAD: do not quote these figures"), flush=True)
    unexplained = 0
    with tempfile.TemporaryDirectory(prefix="longview-seeds-") as own:
        options = Options(arguments.tiny, arguments.scratch or own, not arguments.no_peers)
        for name in names:
            begun = time.perf_counter()
            table = importlib.import_module(f"tables.{TABLES[name]}").run(options)
            text = table.markdown()
            print(f"\n{text}\n\n{name}: {time.perf_counter() - begun:.0f} s", flush=True)
            if arguments.out:
                arguments.out.mkdir(parents=True, exist_ok=True)
                (arguments.out / f"{name}.md").write_text(text + "\n")
                for file, picture in table.pictures.items():
                    (arguments.out / file).write_text(picture)
            unexplained += sum(not row.why for row in table.missed())
    sys.exit(1 if unexplained and not arguments.tiny else 0)


if __name__ == "__main__":
    main()
