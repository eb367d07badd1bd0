"""Fetches the documentation packages of packages.json and unpacks them.

    python collect.py --work DIR

Needs apt-get and dpkg-deb, no root. Writes DIR/unpacked/PACKAGE; a package that is there stays.
"""

import argparse
import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
SPLITS = ("train", "held_out")
_BYTES = (2500, 250_000)  # Of a page that has something on it, and that a browser opens at once.
_LISTS = ("genindex", "search", "class-use", "package-tree", "overview-tree", "allclasses", "deprecated-list",
          "index-all", "functions_", "globals_", "_source", "package-frame", "overview-frame", "hierarchy",
          "constant-values", "-members", "package-use", "src-html", "doc-index", "/src/", "_8h_source", "modindex")


def packages(split):
    return json.loads((HERE / "packages.json").read_text())[split]


def fetch(work, names):
    debs, unpacked = work / "debs", work / "unpacked"
    debs.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not (unpacked / name).exists() and not list(debs.glob(f"{name}_*"))]
    for first in range(0, len(missing), 20):
        subprocess.run(["apt-get", "download", "-qq", *missing[first:first + 20]], cwd=debs, check=True)
    for name in names:
        if not (unpacked / name).exists():
            partial = unpacked / f"{name}.partial"
            subprocess.run(["dpkg-deb", "-x", next(debs.glob(f"{name}_*")), partial], check=True)
            partial.rename(unpacked / name)


def pages(folder):
    """A package's pages in the order of their paths, without indexes and lists of names."""
    found = [path for path in folder.rglob("*") if path.suffix in (".html", ".htm") and path.is_file()]
    return sorted(path for path in found if _BYTES[0] <= path.stat().st_size <= _BYTES[1] and
                  not any(part in str(path.relative_to(folder)) for part in _LISTS))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    for split in SPLITS:
        names = packages(split)
        fetch(options.work, names)
        print(f"{split}: {len(names)} packages, "
              f"{sum(len(pages(options.work / 'unpacked' / name)) for name in names)} pages")


if __name__ == "__main__":
    main()
