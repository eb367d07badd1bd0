"""The packages whose sources and documentation are installed on this machine.

A package is known by its name alone: all versions and copies of it are one, so that none is on
both sides of the split. Vendored copies and tests are left out.
"""
import hashlib
import os
import pathlib
import re

# Held out whatever the hash says, so that every kind of package is among them.
HELD_OUT = {"sqlalchemy", "requests", "flask", "jedi", "aiohttp", "docutils", "networkx", "werkzeug",
            "regex-automata", "rayon", "serde_json", "itertools", "golang.org/x/net",
            "github.com/spf13/cobra", "google.golang.org/protobuf", "github.com/google/cel-go",
            "absl", "libxml2", "openssl", "uv", "coreutils", "openssh-client", "curl"}
LEFT_OUT = {"google-cloud-cli"}  # Not all of it under a free licence.
HELD_OUT_SHARE = 0.06  # Other packages, by a hash of the name.

SKIPPED_FOLDERS = {"_vendor", "vendored", "vendor", "third_party", "node_modules", "tests", "test",
                   "testing", "testdata", "__pycache__", "site-packages", "dist-packages", "include",
                   "locale", "idlelib", "lib2to3"}
SUFFIXES = {".py", ".go", ".rs", ".h", ".hpp", ".hh", ".js", ".ts", ".java", ".md", ".rst", ".txt"}
LARGEST, MOST_FILES = 400_000, 1500  # Bytes of a file; files of one root.


def held_out(package):
    if package in HELD_OUT:
        return True
    digest = hashlib.sha1(package.encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


def _children(*patterns):
    for pattern in patterns:
        yield from sorted(pathlib.Path("/").glob(str(pattern).lstrip("/")))


def _python(also):
    pyenv = pathlib.Path.home() / ".pyenv/versions/*/lib/python3.*"
    for folder in _children("/usr/lib/python3/dist-packages", pyenv / "site-packages", *also):
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and not re.search(r"\.(dist|egg)-info$|^_|\.libs$|-stubs$", entry.name):
                yield entry.name.lower(), entry
    for folder in _children("/usr/lib/python3.*", pyenv):
        yield "cpython", folder


def _crates(also):
    for folder in _children(pathlib.Path.home() / ".cargo/registry/src/*/*", *also):
        yield re.sub(r"-\d+(\.\d+)+.*$", "", folder.name), folder


def _go(also):
    for folder in _children(pathlib.Path.home() / "go/pkg/mod", *also):
        for path, folders, _ in os.walk(folder):
            folders[:] = sorted(f for f in folders if f != "cache")
            for name in [f for f in folders if "@" in f]:
                folders.remove(name)
                module = os.path.relpath(os.path.join(path, name), folder).split("@")[0]
                yield re.sub(r"/v\d+$", "", module).replace("!", ""), pathlib.Path(path, name)
    for folder in _children("/usr/local/go/src", "/usr/lib/go*/src"):
        yield "go", folder


def _headers(also):
    for entry in _children("/usr/include/*", "/usr/include/c++/*", *(f"{folder}/*" for folder in also)):
        if entry.name not in {"c++", "x86_64-linux-gnu", "python3.11"}:
            yield entry.stem.lower() if entry.is_file() else entry.name.lower(), entry


def _documents(also):
    for folder in _children("/usr/share/doc/*", *also):
        yield re.sub(r"^python3-|-(dev|doc|common|data)$", "", folder.name), folder


KINDS = {"python": _python, "crates": _crates, "go": _go, "headers": _headers, "documents": _documents}


def files(root):
    """The paths below a root that may hold pairs, in path order."""
    if root.is_file():
        return [root] if root.suffix in SUFFIXES else []
    found = []
    for path, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS and f[0] != ".")
        found += [pathlib.Path(path, name) for name in sorted(names)
                  if os.path.splitext(name)[1] in SUFFIXES]
        if len(found) >= MOST_FILES:
            break
    return found[:MOST_FILES]


def manual_pages():
    """(package, path) of the English manual pages, by dpkg's lists."""
    for listing in _children("/var/lib/dpkg/info/*.list"):
        package = listing.stem.split(":")[0]
        if package in LEFT_OUT:
            continue
        for line in listing.read_text().splitlines():
            if re.fullmatch(r"/usr/share/man/man\d/[^/]+\.gz", line) and os.path.isfile(line):
                yield package, pathlib.Path(line)


def packages(also):
    """(name, root), each root once; `also`: {one of KINDS: [more folders to look into]}."""
    seen = set()
    for kind, found in KINDS.items():
        for name, root in found(also.get(kind, [])):
            real = os.path.realpath(root)
            if real not in seen and name not in LEFT_OUT:
                seen.add(real)
                yield name, root
