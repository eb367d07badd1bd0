#!/usr/bin/env python3
"""Makes a Python wheel of the tarball: `pip install` of the file puts the programs longview-server
and longview, with the bundled models and all libraries beyond glibc, into an environment.

  deploy/package/wheel.py --tarball build/longview-<version>-linux-x86_64.tar.gz --out FOLDER

Needs Python's standard library alone. Equal tarballs give equal wheels, byte by byte."""

import argparse
import base64
import hashlib
import pathlib
import posixpath
import re
import tarfile
import zipfile

PACKAGE = "longview_server"
TAG = "py3-none-manylinux_2_36_x86_64"
# Debian's glibc, which the programs are linked with, is 2.36.

LAUNCHER = '''"""The programs of the Longview inference server."""

import os
import pathlib
import sys

TREE = pathlib.Path(__file__).resolve().parent / "tree"


def _become(program: str) -> None:
    path = str(TREE / "bin" / program)
    os.execv(path, [path, *sys.argv[1:]])


def server() -> None:
    _become("longview-server")


def client() -> None:
    _become("longview")
'''

METADATA = """Metadata-Version: 2.1
Name: longview-server
Version: {version}
Summary: Inference server for long documents and high-resolution images
License: Apache-2.0
Requires-Python: >=3.8
"""

ENTRY_POINTS = """[console_scripts]
longview-server = longview_server:server
longview = longview_server:client
"""


def files_of(archive):
    """(path below the tarball's folder, bytes, is a program) of what the wheel takes. A wheel has no
    links: a library lies under the name that programs ask for, once."""
    members = {member.name.split("/", 1)[1]: member for member in archive.getmembers()
               if "/" in member.name}
    targets = {}
    for name, member in members.items():
        if member.issym():
            target = name
            while members[target].issym():
                target = posixpath.normpath(
                    posixpath.join(posixpath.dirname(target), members[target].linkname))
            targets[name] = target
    linked = set(targets.values())
    for name in sorted(members):
        source = members[targets.get(name, name)]
        # serve.sh is for the tree as it is unpacked.
        if source.isdir() or name in linked or name.startswith("deploy/"):
            continue
        yield name, archive.extractfile(source).read(), bool(source.mode & 0o100)


class Wheel:
    def __init__(self, path, version):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.info = f"{PACKAGE}-{version}.dist-info"
        self.record = []

    def add(self, name, data, program=False):
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if program else 0o100644) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        record = f"{self.info}/RECORD"
        self.add(record, "\n".join([*self.record, f"{record},,", ""]).encode())
        self.zip.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tarball", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    named = re.fullmatch(r"longview-(\S+)-linux-x86_64\.tar\.gz", options.tarball.name)
    if named is None:
        parser.error(f"--tarball: {options.tarball.name} is not longview-<version>-linux-x86_64.tar.gz")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{PACKAGE}-{named[1]}-{TAG}.whl"
    wheel = Wheel(path, named[1])
    wheel.add(f"{PACKAGE}/__init__.py", LAUNCHER.encode())
    with tarfile.open(options.tarball) as archive:
        for name, data, program in files_of(archive):
            wheel.add(f"{PACKAGE}/tree/{name}", data, program)
    wheel.add(f"{wheel.info}/METADATA", METADATA.format(version=named[1]).encode())
    wheel.add(f"{wheel.info}/WHEEL",
              f"Wheel-Version: 1.0\nGenerator: longview\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode())
    wheel.add(f"{wheel.info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
