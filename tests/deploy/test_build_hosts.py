"""deploy/install_deps.sh on Debian 12, Debian 13 and Ubuntu 24.04: what it asks apt for is what their archives have.

Programs of a host stand before the real ones on the path; they tell of packages as Debian's archives had them on
2026-11-27, by `apt-cache policy`, and as Ubuntu's names are known.
"""

import os
import re
import subprocess

import pytest

from server_process import ROOT

# Packages that every one of them has by this name.
EVERYWHERE = """build-essential ca-certificates ccache cmake git ninja-build python3 python3-venv libabsl-dev
libc-ares-dev libcivetweb-dev libcurl4-openssl-dev libexif-dev libgrpc++-dev libgrpc-dev libpng-dev libprotobuf-dev
libprotoc-dev mold libre2-dev libssl-dev libstemmer-dev libjpeg-dev libturbojpeg0-dev libwebp-dev nlohmann-json3-dev
pkg-config prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc zlib1g-dev libgmock-dev libgtest-dev""".split()
# What differs, with versions. {host: ({package: version}, what must be asked for besides)}
HOSTS = {
    "bookworm": ({"libboost-dev": "1.74.0.3", "libboost1.74-dev": "1.74.0+ds1-21",
                  "libboost1.81-dev": "1.81.0-5+deb12u1", "cargo": "0.66.0+ds1-1",
                  "cargo-web": "1.96.0+dfsg1-1~deb12u2",
                  "clang-14": "1:14.0.6-12", "clang": "1:14.0-55.7~deb12u1"},
                 {"libboost1.81-dev", "cargo-web", "clang-14"}),
    "trixie": ({"libboost-dev": "1.83.0.2+b2", "libboost1.83-dev": "1.83.0-4.2", "libboost1.88-dev": "1.88.0-1",
                "cargo": "1.85.1+dfsg1-1+deb13u1", "cargo-web": "1.96.0+dfsg1-1~deb13u1+b1",
                "clang": "1:19.0-63"},
               {"libboost1.83-dev", "cargo", "clang"}),
    "noble": ({"libboost-dev": "1.83.0.1ubuntu2", "libboost1.83-dev": "1.83.0-2.1ubuntu3",
               "cargo": "1.75.0+dfsg0ubuntu1-0ubuntu7", "cargo-1.76": "1.76.0+dfsg0ubuntu1", "cargo-1.80": "1.80.1",
               "cargo-1.85": "1.85.1", "clang-14": "1:14.0.6-19build4", "clang": "1:18.0-59~exp2"},
              {"libboost1.83-dev", "cargo-1.85", "clang-14"}),
}
# $HOST_LISTS is a file of lines `package version`; nothing is installed.
PROGRAMS = {
    "dpkg-query": "exit 1",
    "apt-cache": r"""
case $1 in
  policy) version=$(sed -n "s/^$2 //p" "$HOST_LISTS"); printf '%s:\n  Candidate: %s\n' "$2" "${version:-(none)}" ;;
  show) for name; do :; done; grep "^$name " "$HOST_LISTS" ;;
  pkgnames) sed -n "s/^\($2[^ ]*\) .*/\1/p" "$HOST_LISTS" ;;
esac""",
    "apt-get": 'case " $* " in *" update "*) exit 0 ;; esac; exit 1',
    "sudo": 'exec "$@"',
    "cargo": "exit 1",
}


@pytest.fixture
def asked_for(tmp_path):
    """The packages that the script lists on a host whose archive has these, before it fails for want of them."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, script in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)

    def ask(archive):
        lists = tmp_path / "lists"
        lists.write_text("".join(f"{name} {version}\n" for name, version in archive.items()))
        (tmp_path / "deps/libtorch").mkdir(parents=True, exist_ok=True)
        version = re.search(r"^TORCH_VERSION=(.*)", (ROOT / "deploy/install_deps.sh").read_text(), re.MULTILINE)[1]
        (tmp_path / "deps/libtorch/.version").write_text(version)
        done = subprocess.run([ROOT / "deploy/install_deps.sh", "--tests", "--no-cuda"], capture_output=True, text=True,
                              timeout=120, env={**os.environ, "PATH": f"{programs}:/usr/bin:/bin",
                                                "DEPS_DIR": str(tmp_path / "deps"), "HOST_LISTS": str(lists)})
        assert done.returncode != 0 and "apt-get failed" in done.stderr, done.stderr
        return re.search(r"Debian packages: (.*)", done.stderr)[1].split()
    return ask


@pytest.mark.parametrize("host", HOSTS)
def test_every_package_is_in_the_archive(host, asked_for):
    special, wanted = HOSTS[host]
    archive = {**dict.fromkeys(EVERYWHERE, "1"), **special}
    assert set(asked_for(archive)) == {*EVERYWHERE, *wanted}


def test_a_host_without_a_boost_that_will_do_is_told_so(asked_for):
    with pytest.raises(AssertionError, match="apt offers none of: libboost"):
        asked_for({**dict.fromkeys(EVERYWHERE, "1"), "libboost-dev": "1.74", "cargo": "1.85"})
