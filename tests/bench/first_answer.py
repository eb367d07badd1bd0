"""Seconds from a file of a release, or from the sources, to the first right answer, by each way to run the server.

  deploy/release.sh dist && python3 tests/bench/first_answer.py dist [--source]

Everything goes to a folder that is removed. --source also copies the sources and builds them there without a compiler's
cache (what deploy/install_deps.sh installs must be there); the image is tried where Docker runs.
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASK = ROOT / "kernels/span/plan.h"
PORTS = ["--grpc_port=0", "--http_port=0"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout


def serve_and_ask(server, client):
    """Starts the server, asks it for the language of a source, stops it."""
    process = subprocess.Popen([server, *PORTS, "--log_level=error"], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        while line and not line.startswith("longview ready"):
            line = process.stdout.readline()
        port = line.partition("grpc=")[2].split()[0]
        answer = run(client, "classify", f"--server=127.0.0.1:{port}", "--model=code-language", "--top_k=1", ASK)
        assert "C++" in answer, answer
    finally:
        process.terminate()
        process.wait()


def tarball(dist, folder):
    packed, = dist.glob("longview-*-linux-x86_64.tar.gz")
    run("tar", "-xzf", packed, "-C", folder)
    unpacked, = folder.iterdir()
    serve_and_ask(unpacked / "bin/longview-server", unpacked / "bin/longview")


def wheel(dist, folder):
    packed, = dist.glob("longview_server-*.whl")
    run("python3", "-m", "venv", folder / "env")
    run(folder / "env/bin/pip", "install", "--quiet", "--no-index", packed)
    serve_and_ask(folder / "env/bin/longview-server", folder / "env/bin/longview")


def image(dist, _):
    packed, = dist.glob("longview-*-image.tar.gz")
    name = run("docker", "load", "--input", packed).split()[-1]
    begun = run("docker", "run", "--detach", "--rm", "--volume", f"{ASK}:/plan.h:ro", name).strip()
    try:
        while subprocess.run(["docker", "exec", begun, "longview", "models"], capture_output=True).returncode:
            time.sleep(0.1)
        assert "C++" in run("docker", "exec", begun, "longview", "classify", "--model=code-language", "/plan.h")
    finally:
        run("docker", "kill", begun)


def source(_, folder):
    tree = folder / "tree"
    kept = run("git", "-C", ROOT, "ls-files", "-z").split("\0")[:-1]
    for name in kept:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    shown = run(tree / "deploy/serve.sh", "--once", *PORTS, env={**os.environ, "CCACHE_DISABLE": "1"})
    assert "C++" in shown, shown


def processor():
    """Seconds of all commands that have ended; an image's are those of another process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def why_not(way):
    if way is image and (shutil.which("docker") is None
                         or subprocess.run(["docker", "version"], capture_output=True).returncode):
        return "there is no Docker daemon here"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=pathlib.Path)
    parser.add_argument("--source", action="store_true")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {os.cpu_count()} cores")
    print("| way | seconds to the first answer | of the processor |\n|---|---|---|")
    for way in [tarball, wheel, image] + [source] * arguments.source:
        if reason := why_not(way):
            print(f"| {way.__name__} | {reason} | |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            begin, used = time.monotonic(), processor()
            way(arguments.dist.resolve(), pathlib.Path(folder))
            print(f"| {way.__name__} | {time.monotonic() - begin:.1f} | {processor() - used:.1f} |", flush=True)


if __name__ == "__main__":
    main()
