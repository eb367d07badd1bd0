#!/usr/bin/env python3
"""Hours of mixed clients against the real server: nothing may grow, be lost or be mixed up.

  tests/soak/soak.py [--hours H | --minutes M] [--cores C] [--out FOLDER]

Random lengths, picture sizes, samplings, cancelled calls, loads, unloads and keys over HTTP and gRPC;
every answer is compared with the one recorded at the start, bit by bit. --cores keeps the server's
use of processor time near C. From time to time nobody asks for a moment, and the server gives unused
memory back: what it holds then must not grow. Writes samples.csv, soak.svg and report.txt into FOLDER (a new one under
the current folder) and exits with 1 if anything grew, was lost or was wrong. Run by the environment's
Python of tests/run.sh ($DEPS_DIR/clients/bin/python), for gRPC."""

import argparse
import csv
import datetime
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

import curve
import work
from server_process import Server

WORKERS = 4
# Seconds between two rests, and of one at least: the server looks once a second, and twice. It is
# over when resident memory has stayed for STILL seconds, or after MOST_REST.
REST_EVERY, REST, STILL, MOST_REST = 120, 6, 4, 30
# Growth allowed in the settled part of a run, by its fitted line.
MEMORY_GROWTH, DESCRIPTOR_GROWTH = 24 << 20, 6
REFUSALS = (429, 503)


class Soak:
    """One run; `sample` every few seconds, `report` at the end."""

    def __init__(self, server, cores, seed):
        self.server, self.cores = server, cores
        self.rng = random.Random(seed)
        self.calls = work.calls(self.rng)
        self.recorded = [work.ask(server, call, "ada") for call in self.calls]
        failed = [answer for answer in self.recorded if answer[0] != 200]
        assert not failed, failed[:3]
        self.counts = dict.fromkeys(("answered", "refused", "left", "absent", "loads"), 0)
        self.wrong, self.samples = [], []
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.awake = threading.Event()  # Cleared while nobody asks.
        self.awake.set()
        self.begin = time.monotonic()
        self.pause = 0.0  # Between two calls of a worker.

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def one(self, rng):
        index, key = rng.randrange(len(self.calls)), rng.choice(list(work.KEYS))
        call = self.calls[index]
        if rng.random() < 0.15:
            work.leave(self.server, call, key, rng.choice([0, 0.001, 0.01, 0.1]))
            return self.count("left")
        status, answer = work.ask(self.server, call, key)
        if status == 200 and (status, answer) == self.recorded[index]:
            return self.count("answered")
        if status in REFUSALS:
            return self.count("refused")
        if status == 404 and work.model_of(call) == work.EXTRA:
            return self.count("absent")
        self.wrong.append(f"{call[0]} call {index}: {status} {answer}"[:400])

    def worker(self, seed):
        rng = random.Random(seed)
        while not self.stopped.wait(self.pause * rng.uniform(0.5, 1.5)):
            self.awake.wait()
            try:
                self.one(rng)
            except Exception as error:  # pylint: disable=broad-except  # A lost answer, whatever why.
                self.wrong.append(f"lost: {error!r}")

    def churn(self, seed):
        """Loads and unloads the extra model."""
        rng = random.Random(seed)
        while not self.stopped.wait(rng.uniform(1, 20)):
            self.awake.wait()
            self.control(rng.choice(["load", "load", "unload"]))

    def control(self, action):
        """Loads or unloads the extra model."""
        try:
            status, _, body = self.server.post(
                f"/v2/repository/models/{work.EXTRA}/{action}", {}, timeout=300,
                headers={"Authorization": f"Bearer {work.KEYS['ada']}"})
        except Exception as error:  # pylint: disable=broad-except  # As for workers.
            return self.wrong.append(f"{action}: {error!r}")
        self.count("loads")
        if status != 200:
            self.wrong.append(f"{action}: {status} {body[:200]}")

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text().split(") ")[1]
        return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def rest(self):
        """A sample of the server at rest, with the same models each time."""
        self.awake.clear()
        self.control("unload")
        self.stopped.wait(REST)
        seen = []
        while len(seen) < MOST_REST - REST and not self.stopped.wait(1):
            seen.append(self.server.resident_bytes())
            if seen[-STILL:] == [seen[-1]] * STILL:
                break
        self.sample(at_rest=1)
        self.awake.set()

    def sample(self, at_rest=0):
        process = pathlib.Path(f"/proc/{self.server.process.pid}")
        self.samples.append((time.monotonic() - self.begin, self.server.resident_bytes() / (1 << 20),
                             len(list((process / "fd").iterdir())),
                             len(list((process / "task").iterdir())), self.counts["answered"],
                             at_rest))

    def run(self, seconds):
        threads = [threading.Thread(target=self.worker, args=(i,)) for i in range(WORKERS)]
        threads.append(threading.Thread(target=self.churn, args=(99,)))
        for thread in threads:
            thread.start()
        interval, used = min(10.0, seconds / 60), self.processor_seconds()
        next_rest = rest_every = min(REST_EVERY, seconds / 12)
        while time.monotonic() - self.begin < seconds and self.server.process.poll() is None:
            self.stopped.wait(interval)
            self.sample()
            now = self.processor_seconds()
            share, used = (now - used) / interval, now
            if self.cores:  # Towards the wanted share, slowly.
                self.pause = min(5, max(0.001, self.pause * 0.8 + 0.2 * (self.pause or 0.05)
                                        * share / self.cores))
            if time.monotonic() - self.begin >= next_rest:
                next_rest += rest_every
                self.rest()
                used = self.processor_seconds()
        self.stopped.set()
        for thread in threads:
            thread.join(180)

    def report(self, out, command):
        """Writes the files; returns the faults found."""
        times, memory, files, tasks, answers, at_rest = map(list, zip(*self.samples))
        settled = times[-1] * 0.25
        late = [i for i, t in enumerate(times) if t >= settled]
        length = times[-1] - settled

        def growth(values, among):
            return curve.slope([times[i] for i in among], [values[i] for i in among])

        rests = [i for i in late if at_rest[i]]
        memory_growth, files_growth = growth(memory, rests), growth(files, late)
        bytes_grown, files_grown = memory_growth * length * (1 << 20), files_growth * length
        lines = [f"{datetime.date.today()}  {command}",
                 f"{times[-1] / 60:.1f} minutes, {self.counts}",
                 f"resident memory at rest {memory_growth * 3600:+.2f} MiB/h "
                 f"(at work {growth(memory, late) * 3600:+.2f}), "
                 f"descriptors {files_growth * 3600:+.2f}/h, over the last {length / 60:.1f} minutes",
                 f"wrong or lost: {len(self.wrong)}", *self.wrong[:20]]
        (out / "report.txt").write_text("\n".join(lines) + "\n")
        print("\n".join(lines), flush=True)
        with open(out / "samples.csv", "w", newline="") as file:
            csv.writer(file).writerows([("seconds", "MiB", "descriptors", "threads", "answers",
                                         "at rest"),
                                        *self.samples])
        rested = [i for i, rest in enumerate(at_rest) if rest]
        (out / "soak.svg").write_text(curve.picture("; ".join(lines[:3]).replace("&", "&amp;"), {
            "resident MiB at rest": ([times[i] for i in rested], [memory[i] for i in rested]),
            "resident MiB": (times, memory), "descriptors": (times, files),
            "threads": (times, tasks), "answers, all compared": (times, answers)}, settled))
        faults = list(self.wrong[:5])
        if bytes_grown > MEMORY_GROWTH:
            faults.append(f"resident memory at rest grew by {bytes_grown / (1 << 20):.1f} MiB")
        if files_grown > DESCRIPTOR_GROWTH:
            faults.append(f"descriptors grew by {files_grown:.1f}")
        if self.server.process.poll() is not None:
            faults.append(f"the server left with {self.server.process.returncode}")
        return faults


def soak(seconds, cores, out, command, seed=1):
    """Runs against a server of its own; returns what was wrong."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder) / "keys"
        keys.write_text("".join(f"{name}:{key}\n" for name, key in work.KEYS.items()))
        models = {**work.MODELS, work.EXTRA: work.MODELS["classifier"]}
        with Server([",".join(f"{name}={path}" for name, path in models.items())],
                    f"--api_keys_file={keys}", "--allow_model_control=true", "--threads=2",
                    "--cache_bytes=256MiB", "--drain_seconds=0") as server:
            run = Soak(server, cores, seed)
            run.run(seconds)
            faults = run.report(out, command)
            if server.process.poll() is None and server.stop() != 0:
                faults.append("the server did not leave with 0")
            return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--hours", type=float, default=0)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--cores", type=float, default=0, help="0: as fast as four clients ask")
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(f"longview-soak-{datetime.datetime.now():%Y%m%d-%H%M}"))
    arguments = parser.parse_args()
    seconds = arguments.hours * 3600 or arguments.minutes * 60
    command = " ".join(["tests/soak/soak.py", *sys.argv[1:]])
    faults = soak(seconds, arguments.cores, arguments.out, command)
    print("\n".join(faults) or "nothing grew, nothing was lost, nothing was mixed up")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
