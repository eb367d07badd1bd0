"""Source files of one package, through the ordinary client of its registry.

Every function takes the work directory and yields (path, bytes); downloads are kept there. A
package that its registry does not have (mirrors are not always complete) yields nothing, with a
line on stdout.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

SMALLEST, LARGEST = 200, 400_000  # bytes of a file


def _run(package, command, folder):
    """False, and a line about it, if the client fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        print(f"{package}: {command[0]} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
    return done.returncode == 0


def _tar_files(archive):
    for member in archive:
        if member.isreg() and SMALLEST <= member.size <= LARGEST:
            yield member.name, archive.extractfile(member).read()


def _zip_files(path):
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if SMALLEST <= entry.file_size <= LARGEST:
                yield entry.filename, archive.read(entry)


def _fetch_once(folder, package, command):
    """Runs the client unless it did before; the files that it left, in name order."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / ("." + re.sub(r"[^\w.+-]", "_", package) + ".json")
    if not marker.exists():
        before = set(folder.iterdir())
        _run(package, command, folder)
        marker.write_text(json.dumps(sorted(p.name for p in set(folder.iterdir()) - before)))
    return [folder / name for name in json.loads(marker.read_text())]


def _apt(work):
    root = work / "apt"
    options = [f"Dir::Etc::sourcelist={root / 'debian.sources'}", "Dir::Etc::sourceparts=/nonexistent",
               f"Dir::State::lists={root / 'lists'}", f"Dir::Cache={root / 'cache'}",
               "APT::Sandbox::User=root"]
    return ["apt-get", "-q", *[part for option in options for part in ("-o", option)]]


def prepare_apt(work, suite):
    """Package lists under the work directory: the system's stay as they are."""
    root = work / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "debian.sources").write_text(
        f"Types: deb deb-src\nURIs: http://deb.debian.org/debian\nSuites: {suite}\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
    subprocess.run([*_apt(work), "update"], check=True)


def debian_source(work, package):
    """Upstream files and Debian's."""
    command = [*_apt(work), "source", "--download-only", "--only-source", package]
    for path in _fetch_once(work / "debian", package, command):
        if re.search(r"\.tar\.(gz|xz|bz2)$", path.name):
            with tarfile.open(path) as archive:
                yield from _tar_files(archive)


def debian_binary(work, package):
    """Installed files, where they are source: documentation, Ruby, Emacs Lisp."""
    for path in _fetch_once(work / "deb", package, [*_apt(work), "download", package]):
        unpacked = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive:
            yield from _tar_files(archive)


def maven(work, artifact):
    """The sources jar of group:name:version."""
    group, name, version = artifact.split(":")
    folder = work / "maven"
    command = ["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy",
               f"-Dartifact={group}:{name}:{version}:jar:sources", f"-DoutputDirectory={folder}"]
    for path in _fetch_once(folder, artifact, command):
        yield from _zip_files(path)


def npm(work, package):
    """name@version."""
    for path in _fetch_once(work / "npm", package, ["npm", "pack", "--silent", package]):
        with tarfile.open(path) as archive:
            yield from _tar_files(archive)


def crate(work, package):
    """name@version; cargo vendors it beside its dependencies, of which none is read."""
    name, version = package.split("@")
    folder = work / "crates" / name
    if not (folder / "vendor").exists():
        (folder / "src").mkdir(parents=True, exist_ok=True)
        (folder / "src" / "lib.rs").write_text("")
        (folder / "Cargo.toml").write_text('[package]\nname = "none"\nversion = "0.0.0"\n'
                                           f'[dependencies]\n{name} = "={version}"\n[workspace]\n')
        _run(package, ["cargo", "vendor", "--quiet"], folder)
    root = pathlib.Path(folder / "vendor" / name)
    for path in sorted(root.rglob("*")):
        if path.is_file() and SMALLEST <= path.stat().st_size <= LARGEST:
            yield str(path.relative_to(root)), path.read_bytes()


def pypi(work, package):
    """The wheel of name or name==version; none of its dependencies."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", package]
    for path in _fetch_once(work / "pypi", package, command):
        yield from _zip_files(path)


def go(work, module):
    """path@version of a module, without its dependencies."""
    folder = work / "go"
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["go", "mod", "download", "-json", module], cwd=folder, capture_output=True,
                          text=True, env={**os.environ, "GOPATH": str(folder), "GOFLAGS": "-modcacherw"})
    if done.returncode:
        print(f"{module}: go failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return
    yield from _zip_files(json.loads(done.stdout)["Zip"])


def python(_, module):
    """Files of the running Python's standard library, below `module` if it is not `all`; no tests."""
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    for path in sorted((root if module == "all" else root / module).rglob("*.py")):
        parts = path.relative_to(root).parts
        if not {"site-packages", "dist-packages", "test", "tests", "idlelib"} & set(parts) and \
                SMALLEST <= path.stat().st_size <= LARGEST:
            yield str(path.relative_to(root)), path.read_bytes()


FETCHERS = {"debian_source": debian_source, "debian_binary": debian_binary, "maven": maven,
            "npm": npm, "crate": crate, "pypi": pypi, "go": go, "python": python}
