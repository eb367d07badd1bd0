"""What a process that keeps a core busy costs the server beside it, by kind of request.

    python tests/bench/busy_neighbour.py --rounds 20
    python tests/bench/busy_neighbour.py --server build/bin/longview-server --server OTHER --lm DIR

Answers of all servers are compared first. Rounds alternate between the servers; idle rounds come
first, then those beside a busy loop (or several: --loops). Prints medians, and the means of the busy
rounds: a rare long wait shows there. --quota, as root, gives each server so many CPUs instead, as
Kubernetes does (cgroup, periods of 0.1 s). --lm adds another language model's directory. --ahead, as
root, puts servers and loops before everything else on the machine, for measuring where others work.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "models/zoo"
TEXT = "int value = compute(left, right);\n" * 2000
# What differs between two answers to one request.
VARIES = re.compile(rb'"(id|created|timing)":("[^"]*"|\{[^}]*\}|[\d.e-]+)')


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


class Served:
    def __init__(self, command, models):
        self.name = command
        self.port = free_port()
        self.process = subprocess.Popen(
            [*command.split(), f"--http_port={self.port}", "--grpc_port=-1", *models],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        for _ in range(1200):
            try:
                self.connection.request("GET", "/readyz")
                answer = self.connection.getresponse()
                answer.read()
                if answer.status == 200:
                    return
            except OSError:
                self.connection.close()
            time.sleep(0.1)
        raise SystemExit(f"{command}: not ready")

    def post(self, path, body, content_type="application/json"):
        self.connection.request("POST", path, body, {"Content-Type": content_type})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{self.name}: {path}: {answer.status} {content[:300]!r}")
        return content


def generating(model, tokens, prompts=1):
    body = json.dumps({"model": model, "prompt": [f"def main({i}):" for i in range(prompts)],
                       "max_tokens": tokens, "temperature": 0, "logit_bias": {}})
    return lambda served: served.post("/v1/completions", body)


def embedding(characters):
    body = json.dumps({"model": "code-language", "input": TEXT[:characters], "truncate": True})
    return lambda served: served.post("/v1/embeddings", body)


def cases(lm):
    """name: (the request, how often in a round)."""
    picture = (ZOO / "samples/page.jpg").read_bytes()
    named = {
        "decode, 400 tokens": (generating("code-lm", 400), 1),
        "decode, 8 x 100 tokens": (generating("code-lm", 100, 8), 1),
        "embedding, 16 tokens": (embedding(50), 20),
        "embedding, 128 tokens": (embedding(435), 20),
        "document, 2,048 tokens": (embedding(6960), 2),
        "document, 4,096 tokens": (embedding(14000), 2),
        "image": (lambda served: served.post("/v1/classify?model=page-type", picture,
                                             "image/jpeg"), 2),
    }
    if lm:
        named[f"decode, {pathlib.Path(lm).name}"] = (generating(pathlib.Path(lm).name, 40), 1)
    return named


def step_ahead():
    """Before every other process; a session's processes share one place in the kernel's queue."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    group = pathlib.Path("/proc/self/autogroup")
    if group.exists():
        group.write_text("-20")
    os.nice(-20)


class Quota:
    """A control group that a process is put into; both versions of the kernel's interface. Its weight
    is the highest, so that nothing but the quota limits it."""

    PERIOD = 100_000  # Microseconds.

    def __init__(self, process, cpus):
        root = pathlib.Path("/sys/fs/cgroup")
        unified = (root / "cgroup.controllers").exists()
        self.folder = (root if unified else root / "cpu") / f"longview-bench-{process.pid}"
        if unified:
            (root / "cgroup.subtree_control").write_text("+cpu")
        self.folder.mkdir()
        micros = int(cpus * self.PERIOD)
        if unified:
            (self.folder / "cpu.weight").write_text("10000")
            (self.folder / "cpu.max").write_text(f"{micros} {self.PERIOD}")
        else:
            (self.folder / "cpu.shares").write_text("262144")
            (self.folder / "cpu.cfs_period_us").write_text(str(self.PERIOD))
            (self.folder / "cpu.cfs_quota_us").write_text(str(micros))
        (self.folder / "cgroup.procs").write_text(str(process.pid))

    def remove(self):
        """Once the process has ended."""
        self.folder.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", action="append", help="a command, with flags; may be repeated")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--quota", type=float, help="CPUs")
    parser.add_argument("--lm")
    parser.add_argument("--ahead", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # So that the servers end, too.
    if options.ahead:
        step_ahead()
    models = [str(ZOO / name) for name in ("code-lm", "code-language", "page-type")]
    models += [options.lm] if options.lm else []
    commands = options.server or [str(ROOT / "build/bin/longview-server")]
    servers = [Served(command, models) for command in commands]
    loops, quotas = [], []
    try:
        wanted = cases(options.lm)
        for name, (ask, _) in wanted.items():
            first = [VARIES.sub(b"", ask(served)) for served in servers]
            if any(answer != first[0] for answer in first):
                raise SystemExit(f"{name}: the servers answer differently")
        seconds = {}
        for state in ("warm", "idle", "busy"):
            if state == "busy" and options.quota:
                quotas = [Quota(served.process, options.quota) for served in servers]
            elif state == "busy":
                loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                         for _ in range(options.loops)]
                time.sleep(1)
            for number in range(3 if state == "warm" else options.rounds):
                for name, (ask, times) in wanted.items():
                    for served in servers[::1 if number % 2 else -1]:
                        for _ in range(times):
                            start = time.perf_counter()
                            ask(served)
                            seconds.setdefault((state, name, served), []).append(
                                time.perf_counter() - start)
    finally:
        for process in [*loops, *(served.process for served in servers)]:
            process.kill()
            process.wait()
        for quota in quotas:
            quota.remove()
    print(f"{'':26}" + "".join(f"{served.name[-44:]:>46}" for served in servers))
    for name in wanted:
        line = f"{name:26}"
        for served in servers:
            idle = statistics.median(seconds["idle", name, served])
            busy = seconds["busy", name, served]
            median, mean = statistics.median(busy), statistics.mean(busy)
            line += (f"{idle * 1e3:9.2f} ms, busy {median * 1e3:9.2f} ms, {median / idle:4.2f}x"
                     f" (mean {mean / idle:4.2f}x)")
        print(line)


if __name__ == "__main__":
    main()
