"""--search_folder: which files of a folder are listed and read over HTTP, and by whom."""

import json
import os
import subprocess
import urllib.parse

import pytest

from secure_server import SecureServer
from server_process import SERVER, ZOO, Server

KEY, PROBE = "a-key-of-32-characters-for-search", "a-key-of-32-characters-for-probes"
MOST_FILES, MOST_BYTES = 2000, 16 << 20


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    write(outside, {"secret.txt": "not for you\n", "folder/secret.txt": "neither\n"})
    root = tmp_path_factory.mktemp("notes")
    write(root, {
        "read.md": "# Read me\n", "src/a b&c.py": "ä = 1\n", "src/latin.txt": b"caf\xe9\n",
        ".gitignore": "*.log\n/made/\n", "x.log": "x", "made/y.py": "y", ".env": "TOKEN=1\n",
        "build/CMakeCache.txt": "x", "build/z.c": "z", "node_modules/m.js": "m",
        "picture.bin": b"\x89PNG\0\0", "empty.txt": "", "huge.txt": "x" * ((1 << 20) + 1),
        "page.html": "<script>alert(1)</script>\n"})
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "inner.txt").symlink_to(root / "read.md")
    (root / "linked").symlink_to(outside / "folder")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture(scope="module")
def server(folder):
    with Server([ZOO / "code-language"], f"--search_folder={folder}") as running:
        yield running


def read(server, path, **kwargs):
    return server.get("/v1/search/file?path=" + urllib.parse.quote(path, safe=""), **kwargs)


def listed(server):
    status, _, body = server.get("/v1/search/files")
    assert status == 200, body
    return json.loads(body)


def test_the_files_that_people_wrote_are_listed(server, folder):
    listing = listed(server)
    assert listing["folder"] == folder.name and listing["more"] is True, "huge.txt"
    assert {one["path"]: one["bytes"] for one in listing["files"]} == {
        "page.html": 26, "read.md": 10, "src/a b&c.py": 7, "src/latin.txt": 5}


def test_a_listed_file_is_read_as_text(server):
    status, headers, body = read(server, "src/a b&c.py")
    assert (status, body.decode()) == (200, "ä = 1\n")
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert read(server, "src/latin.txt")[2] == b"caf\xe9\n"
    status, headers, _ = read(server, "page.html")
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", [
    "link.txt", "inner.txt", "linked/secret.txt", "pipe", "huge.txt", "picture.bin", ".env", "x.log",
    "made/y.py", "build/z.c", "node_modules/m.js", "src", "nothing", "/etc/passwd", "../notes/read.md",
    "src/../read.md", "./read.md", "read.md/", "/read.md", "..%2fread.md", "read.md\0.txt",
    "../" * 20 + "etc/passwd", "x" * 9000])
def test_nothing_else_is_read(server, path):
    assert read(server, "read.md")[0] == 200
    status, _, body = read(server, path)
    assert status == 404, body
    error = json.loads(body)["error"]
    assert "/v1/search/files" in error["message"] and error["param"] == "path"


def test_a_call_without_a_path_says_so(server):
    for path in ("/v1/search/file", "/v1/search/file?path=", "/v1/search/file?path=%zz"):
        status, _, body = server.get(path)
        assert status == 400 and json.loads(body)["error"]["param"] == "path"


def test_a_link_put_in_a_files_place_is_not_followed(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root, {"a.txt": "a\n", "sub/b.txt": "b\n"})
    write(outside, {"b.txt": "not for you\n"})
    with Server([ZOO / "code-language"], f"--search_folder={root}/") as server:
        assert len(listed(server)["files"]) == 2
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(outside / "b.txt")
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to(outside)
        assert read(server, "a.txt")[0] == 404
        assert read(server, "sub/b.txt")[0] == 404
        assert [one["path"] for one in listed(server)["files"]] == ["was/b.txt"]
        assert read(server, "was/b.txt")[2] == b"b\n"


def test_a_listing_is_bounded_in_files_and_bytes(tmp_path):
    many, large = tmp_path / "many", tmp_path / "large"
    write(many, {f"{number:05}.txt": "x\n" for number in range(MOST_FILES + 10)})
    write(large, {f"{number:02}.txt": "x" * (1 << 20) for number in range(20)})
    with Server([ZOO / "code-language"], f"--search_folder={many}") as server:
        listing = listed(server)
        assert len(listing["files"]) == MOST_FILES and listing["more"] is True
    with Server([ZOO / "code-language"], f"--search_folder={large}") as server:
        listing = listed(server)
        assert sum(one["bytes"] for one in listing["files"]) == MOST_BYTES
        assert listing["more"] is True
        assert read(server, "00.txt")[0] == 200 and read(server, "19.txt")[0] == 404


def test_without_the_flag_there_is_none():
    with Server([ZOO / "code-language"]) as server:
        for path in ("/v1/search/files", "/v1/search/file?path=read.md"):
            status, _, body = server.get(path)
            assert status == 404 and "--search_folder" in json.loads(body)["error"]["message"]


def test_a_key_with_the_role_is_asked_for(folder, tmp_path):
    keys = f"me:{KEY} role=infer\nprobe:{PROBE} role=metrics\n"
    with SecureServer(tmp_path / "secure", f"--search_folder={folder}", keys=keys) as server:
        for path in ("/v1/search/files", "/v1/search/file?path=read.md"):
            assert server.get(path)[0] == 401
            assert server.get(path, headers={"Authorization": f"Bearer {PROBE}"})[0] == 403
            assert server.get(path, headers={"Authorization": f"Bearer {KEY}"})[0] == 200


def test_what_is_no_folder_stops_the_start(tmp_path):
    write(tmp_path, {"file": "x"})
    for path in (tmp_path / "file", tmp_path / "nothing"):
        done = subprocess.run([SERVER, f"--search_folder={path}", ZOO / "code-language"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "search_folder" in done.stderr, done.stderr
