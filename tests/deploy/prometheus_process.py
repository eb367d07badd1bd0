"""A real Prometheus on a free port, over recorded scrapes or scraping by itself."""

import json
import pathlib
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)$")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def with_labels(exposition, labels):
    """[(series, value)] of a scrape, with more labels, as Prometheus would store it."""
    extra = ",".join(f'{name}="{value}"' for name, value in labels.items())
    for line in exposition.splitlines():
        if line and not line.startswith("#"):
            name, own, value = SAMPLE.match(line).groups()
            yield f"{name}{{{own + ',' if own else ''}{extra}}}", value


def write_blocks(promtool, folder, scrapes, labels):
    """Makes blocks from [(unix time, exposition)]."""
    lines = [f"{series} {value} {moment}" for moment, text in scrapes
             for series, value in with_labels(text, labels)]
    # One series must not be interleaved with others.
    lines.sort(key=lambda line: (line.rsplit(" ", 2)[0], int(line.rsplit(" ", 1)[1])))
    recorded = pathlib.Path(folder) / "recorded.txt"
    recorded.write_text("\n".join(lines) + "\n# EOF\n")
    subprocess.run([promtool, "tsdb", "create-blocks-from", "openmetrics", recorded, folder],
                   check=True, capture_output=True)


class Prometheus:
    """Use as a context manager."""

    def __init__(self, program, folder, config="{}"):
        self.folder = pathlib.Path(folder)
        file = self.folder / "prometheus.yml"
        file.write_text(config)
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = open(self.folder / "prometheus.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, f"--config.file={file}", f"--storage.tsdb.path={folder}",
             "--storage.tsdb.retention.time=10y", f"--web.listen-address={self.url[7:]}"],
            stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                raise RuntimeError(self.log.read())
            time.sleep(0.1)

    def _ready(self):
        try:
            with urllib.request.urlopen(self.url + "/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def get(self, path, **parameters):
        """The `data` of an API answer; an error raises ValueError with Prometheus's words."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()
