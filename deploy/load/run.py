#!/usr/bin/env python3
"""Every load test against a running server, and a report with plots.

  deploy/load/run.sh [--server localhost:9000] [--http localhost:8080] [--seconds 10] [--out DIR]
                     [--outstanding 1,4,16,64] [--only NAME,...] [--ca FILE] [--api_key KEY]
                     [--gpu 0]

1. Every ghz file of this folder whose task some model of the server has (closed loop).
2. Classification with so many requests outstanding, up to the peak rate.
3. `longview bench`, Poisson arrivals at 0.5, 0.8, 1 and 3 times that peak: goodput, tail, refusals.
4. `longview bench` of streams: time to the first token, gaps between tokens.

With --gpu each of 2 and 3 also says how busy the server's GPU was (nvidia-smi's samples) and, with
--http, which share of the time the server computed (its /metrics).

Writes OUT/report.md, OUT/*.json (ghz's format throughout) and, with matplotlib, OUT/*.png. Load
generator and server on one machine take each other's cores: the report says on what it ran.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import figures
import gpu

HERE = pathlib.Path(__file__).resolve().parent
SHARES = (0.5, 0.8, 1.0, 3.0)


def program(name, *places):
    found = next((str(place) for place in places if place.exists()), None) or shutil.which(name)
    if not found:
        sys.exit(f"{name} is not on the path; see deploy/load/README.md")
    return found


def read_http(arguments, path):
    """The server's answer at a path of its HTTP port."""
    trust = ssl.create_default_context(cafile=arguments.ca) if arguments.ca else None
    url = f"{'https' if trust else 'http'}://{arguments.http}{path}"
    with urllib.request.urlopen(url, timeout=10, context=trust) as answer:
        return answer.read().decode()


class Tools:
    def __init__(self, arguments):
        self.arguments = arguments
        root = HERE.parents[1]
        deps = pathlib.Path(os.environ.get("DEPS_DIR", root / ".deps"))
        self.ghz_program = program("ghz", deps / "bin/ghz")
        self.longview = program("longview", HERE.parents[1] / "build/bin/longview",
                                HERE.parents[1] / "bin/longview")
        self.server = arguments.server
        self.out = arguments.out
        self.access: dict = {"insecure": True}
        self.flags = [f"--server={arguments.server}"]
        if arguments.ca:
            self.access = {"insecure": False, "cacert": str(arguments.ca)}
            self.flags += ["--tls", f"--ca={arguments.ca}"]
        if arguments.api_key:
            key = {"authorization": f"Bearer {arguments.api_key}"}
            self.access |= {"metadata": key, "reflect-metadata": key}
            self.flags.append(f"--api_key={arguments.api_key}")

    def save(self, name, report):
        (self.out / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
        return report

    @contextlib.contextmanager
    def watched(self, found):
        """Puts how busy the GPU was into `found`, if one is to be watched."""
        if self.arguments.gpu is None:
            yield
            return
        asked = self.arguments.http
        before, start = read_http(self.arguments, "/metrics") if asked else "", time.monotonic()
        with gpu.Sampler(self.arguments.gpu) as sampler:
            yield
        seconds = time.monotonic() - start
        found.update(sampler.summary())
        if asked:
            after = read_http(self.arguments, "/metrics")
            found["computing"] = gpu.computing_share(before, after, seconds)

    def load(self, run, name, *given):
        """A report of `run` with what was watched meanwhile as its "gpu"."""
        found: dict = {}
        with self.watched(found):
            report = run(name, *given)
        return self.save(name, {**report, "gpu": found}) if found else report

    def ghz(self, name, config):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({**config, **self.access, "host": self.server}, file)
            file.flush()
            done = subprocess.run([self.ghz_program, "--config", file.name, "-O", "json"],
                                  capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"ghz {name}: {done.stderr or done.stdout}")
        report = json.loads(done.stdout)
        report.pop("details", None)
        return self.save(name, report)

    def bench(self, name, *flags):
        done = subprocess.run([self.longview, "bench", "--json", *self.flags, *flags],
                              capture_output=True, text=True)
        # 1 = some requests were refused, which an overload is for.
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f"longview bench {name}: {done.stderr}")
        return self.save(name, json.loads(done.stdout))

    def models(self):
        done = subprocess.run([self.longview, "models", "--json", *self.flags],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"longview models: {done.stderr}")
        models = [json.loads(line) for line in done.stdout.splitlines()]
        return [model for model in models if model["state"] == "READY"]


def named(config):
    """The model that a ghz file names; empty if it leaves the choice."""
    request = config["data"][0]
    return request.get("model") or request.get("model_name") or request.get("name") or ""


def choose(models, task, preferred=""):
    """The model to test a task with, the preferred one if it has it; None if none does."""
    able = [model["name"] for model in models
            if task in (model["task"], *model.get("tasks", []))]
    return preferred if preferred in able else next(iter(able), None)


def with_model(config, model):
    """The configuration with a model's name wherever its requests name one."""
    requests = [{**request, **{key: model for key in ("model", "model_name", "name")
                               if key in request}} for request in config["data"]]
    return {**config, "data": requests}


def run_files(tools, models, only):
    """[(name, report, None) or (name, None, why not)] of every ghz file."""
    for path in sorted(HERE.glob("*.json")):
        config = json.loads(path.read_text())
        if only and path.stem not in only:
            continue
        task = config.get("tags", {}).get("task")
        model = choose(models, task, named(config)) if task else ""
        if task and not model:
            yield path.stem, None, f"no model of this server has the task {task}"
            continue
        if task:
            config = with_model(config, model)
        print(f"ghz {path.stem} {model}", file=sys.stderr)
        yield path.stem, tools.ghz(path.stem, config), None


def run_outstanding(tools, model, counts, seconds):
    """[(requests outstanding, report)]: a closed loop of so many workers."""
    config = with_model(json.loads((HERE / "classify.json").read_text()), model)
    del config["total"]
    for count in counts:
        print(f"ghz classify, {count} outstanding", file=sys.stderr)
        yield count, tools.load(tools.ghz, f"outstanding_{count}", {
            **config, "concurrency": count, "connections": min(count, 8),
            "duration": f"{seconds}s", "duration-stop": "wait"})


def run_arrivals(tools, model, peak, seconds, texts):
    """[(share of the peak, report)]: an open loop of so many arrivals."""
    for share in SHARES:
        rate = max(0.1, share * peak)
        print(f"longview bench classify, {rate:.1f} arrivals a second", file=sys.stderr)
        yield share, tools.load(tools.bench, f"arrivals_{share:g}", "--task=classify",
                                f"--model={model}", f"--rate={rate}", f"--duration={seconds}",
                                "--truncate", *texts)


def write_texts(folder):
    """The documents of classify.json as files, so that both loops send the same."""
    lines = ["def area(width, height):\n    return width * height\n",
             "static int area(int width, int height) { return width * height; }\n",
             "fn area(width: u32, height: u32) -> u32 { width * height }\n",
             '<p class="area">width times height</p>\n']
    paths = []
    for count, line in zip((70, 150, 250, 500), lines):
        paths.append(folder / f"text-{count}.txt")
        paths[-1].write_text(line * count)
    return [str(path) for path in paths]


def about(arguments):
    cpus = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text()
            .splitlines() if line.startswith("model name")]
    version = ""
    if arguments.http:
        version = json.loads(read_http(arguments, "/version"))["version"]
    return {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "server": f"{arguments.server} {version}".strip() + (", TLS" if arguments.ca else ""),
            "load generator": f"{len(cpus)} x {cpus[0] if cpus else platform.machine()}",
            "load average": f"{os.getloadavg()[0]:.2f} before the start"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="localhost:9000")
    parser.add_argument("--http", default="", help="to note the server's version")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("load-report"))
    parser.add_argument("--outstanding", default="1,4,16,64")
    parser.add_argument("--ca", type=pathlib.Path, help="of a server with TLS")
    parser.add_argument("--api_key", default="")
    parser.add_argument("--only", default="", help="names of ghz files; the rest runs as always")
    parser.add_argument("--gpu", help="the server's, as nvidia-smi counts: to watch it meanwhile")
    arguments = parser.parse_args()
    if arguments.gpu is not None and (reason := gpu.Sampler.missing()):
        parser.error(f"--gpu: {reason}")
    return arguments


def main():
    arguments = parse()
    arguments.out.mkdir(parents=True, exist_ok=True)
    tools, facts = Tools(arguments), about(arguments)
    models = tools.models()
    only = [name for name in arguments.only.split(",") if name]
    results = {"about": facts, "files": list(run_files(tools, models, only)),
               "outstanding": [], "arrivals": [], "streams": None}
    with tempfile.TemporaryDirectory() as folder:
        texts = write_texts(pathlib.Path(folder))
        classify = json.loads((HERE / "classify.json").read_text())
        if model := choose(models, "text-classification", named(classify)):
            counts = [int(count) for count in arguments.outstanding.split(",")]
            results["outstanding"] = list(run_outstanding(tools, model, counts, arguments.seconds))
            peak = max(report["rps"] for _, report in results["outstanding"])
            results["arrivals"] = list(run_arrivals(tools, model, peak, arguments.seconds, texts))
        if model := choose(models, "text-generation"):
            results["streams"] = tools.bench(
                "streams", "--task=generate", f"--model={model}", "--rate=2",
                f"--duration={arguments.seconds}", "--max_tokens=32", texts[0])
    report = figures.write_report(arguments.out, results)
    print(f"{report} written", file=sys.stderr)


if __name__ == "__main__":
    main()
