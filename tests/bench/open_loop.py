"""The server under Poisson arrivals beside the same model called in a loop.

  python tests/bench/open_loop.py [--model models/zoo/code-language] [--seconds 20]
                                  [--device cuda:0]
  python tests/bench/open_loop.py --check         a second of each, without figures

Offline: documents one after the other and in batches of 4 in one process (build/bin/model_pipe);
the better rate counts. Open loop: `longview bench`, arrivals at 0.5, 0.8 and 1.1 times that rate,
random documents of the same lengths, for --seconds or until --requests may be expected. Prints
requests answered per second against the offline rate (goal 0.95 at 1.1) and p50 / p99 from the
intended start; on a GPU also how busy it was. Client and server share the machine.
"""

import argparse
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import time

import timing
from pipe import ROOT, Ours

sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "deploy/load")]
from gpu import Sampler  # noqa: E402
from server_process import CLIENT, Server  # noqa: E402

LENGTHS = (512, 1024, 2048, 3072, 4096)


def offline_rate(arguments):
    """Requests per second without a server."""
    generator = random.Random(5)
    documents = [[generator.randrange(5, 260) for _ in range(n)] for n in LENGTHS]
    pipe = Ours(arguments.model, "auto", 2, arguments.device)
    best = 0
    for size in (1, 4):
        pipe.run(documents[:size])
        count = seconds = 0
        end = time.perf_counter() + arguments.seconds / 2
        while time.perf_counter() < end:
            batch = [documents[(count + i) % len(documents)] for i in range(size)]
            seconds += pipe.run(batch)["seconds"]
            count += size
        if not arguments.check:
            print(f"offline, {size} at a time: {count / seconds:.2f} requests/s")
        best = max(best, count / seconds)
    pipe.close()
    return best


def open_loop(server, arguments, rate):
    seconds = max(arguments.seconds, arguments.requests / rate)
    done = subprocess.run(
        [CLIENT, "bench", f"--server={server.grpc}", f"--rate={rate}", "--json", "--task=classify",
         f"--duration={seconds}", "--lengths=" + ",".join(map(str, LENGTHS))],
        capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"longview bench: {done.stderr}")
    report = json.loads(done.stdout)
    # The client fails where a request was refused, which is part of what is measured here.
    answered = report["statusCodeDistribution"].get("OK", 0)
    if answered == 0:
        raise SystemExit(f"nothing was answered: {report['errorDistribution']}")
    at = {entry["percentage"]: entry["latency"] / 1e6 for entry in report["latencyDistribution"]}
    return answered / (report["total"] / 1e9), at, report["count"] - answered


def watch(device):
    """A context that samples a GPU; nothing is watched on the CPU."""
    return Sampler(device.removeprefix("cuda:")) if device != "cpu" else contextlib.nullcontext()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "models/zoo/code-language")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--requests", type=int, default=100, help="at each rate, on average")
    parser.add_argument("--device", default="cpu", help="cpu, or one such as cuda:0")
    parser.add_argument("--check", action="store_true", help="does it all run: no figures")
    arguments = parser.parse_args()
    if arguments.check:
        arguments.seconds, arguments.requests = 1, 10
    print(timing.machine())
    quiet = arguments.check or timing.wait_for_quiet()
    print("quiet machine" if quiet else "OTHER LOAD: do not quote these figures")
    offline = offline_rate(arguments)
    with Server([arguments.model], "--max_queue_seconds=60",
                f"--device={arguments.device}") as server:
        for share in (0.5, 0.8, 1.1):
            with watch(arguments.device) as sampler:
                rate, at, refused = open_loop(server, arguments, share * offline)
            if arguments.check:
                continue
            busy = ""
            if sampler and "utilisation" in (found := sampler.summary()):
                busy = f", GPU busy {found['utilisation']:.0f} %"
            print(f"arrivals at {share:.1f}: {rate:.2f} requests/s, {rate / offline:.3f} of offline, "
                  f"p50 {at[50]:.1f} ms, p99 {at[99]:.1f} ms, {refused} not answered{busy}")


if __name__ == "__main__":
    main()
