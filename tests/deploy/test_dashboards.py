"""Dashboards and rules against the server's metrics: each name is there, each query answers."""

import json
import re
import subprocess
import sys
import time

import pytest
import yaml

from prometheus_process import Prometheus, write_blocks
from server_process import CLIENT, ROOT, ZOO, Server, wait_until

MONITORING = ROOT / "deploy/monitoring"
DASHBOARDS = sorted((MONITORING / "grafana/dashboards").glob("*.json"))
LABELS = {"job": "longview", "instance": "server:8080", "namespace": "longview",
          "pod": "longview-0"}
# PromQL's own words inside expressions; everything else that looks like a metric must exist.
METRIC = re.compile(r"\b((?:longview|process)_\w+)\b")


def groups():
    for path in sorted((MONITORING / "rules").glob("*.yml")):
        yield from yaml.safe_load(path.read_text())["groups"]


def recordings():
    return {rule["record"]: rule["expr"] for group in groups() for rule in group["rules"]
            if "record" in rule}


def panel_queries():
    """[(dashboard: panel, expression with Grafana's variables filled in)]"""
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                expression = re.sub(r"\$(job|model)", ".*", target["expr"])
                expression = expression.replace("$__rate_interval", "5m")
                yield f"{path.stem}: {panel['title']}", expression


def expanded(expression):
    """An alert's expression with recorded series replaced by what they record."""
    for name, recorded in recordings().items():
        expression = expression.replace(name, f"({recorded})")
    return expression


def alert_queries():
    for group in groups():
        for rule in group["rules"]:
            if "alert" in rule:
                yield rule["alert"], expanded(rule["expr"])


def use(server):
    """A little of everything: answers, streams, refusals."""
    source = "def main():\n    return 1\n" * 20
    server.post_json("/v1/classify", {"model": "code-language", "text": source})
    server.post_json("/v1/embeddings", {"model": "code-language", "input": source})
    server.post("/v1/completions", {"model": "code-lm", "prompt": source, "max_tokens": 8,
                                    "stream": True})
    server.post("/v1/classify", {"model": "code-language", "text": source, "no_such_field": 1})


@pytest.fixture(scope="module")
def scrape(zoo_server):
    """Two scrapes of a live server with some use between them."""
    use(zoo_server)
    first = zoo_server.get("/metrics")[2].decode()
    for _ in range(3):
        use(zoo_server)
    return first, zoo_server.get("/metrics")[2].decode()


@pytest.fixture(scope="module")
def recorded(scrape, tool, tmp_path_factory):
    """A Prometheus whose last half hour are these scrapes; (prometheus, the time to ask for)."""
    folder = tmp_path_factory.mktemp("tsdb")
    end = int(time.time()) // 60 * 60 - 3600
    scrapes = [(moment, scrape[0] if moment < end - 240 else scrape[1])
               for moment in range(end - 1800, end + 1, 60)]
    write_blocks(tool("promtool"), folder, scrapes, LABELS)
    with Prometheus(tool("prometheus"), folder) as prometheus:
        yield prometheus, end


def test_dashboards_are_what_the_generator_writes(tmp_path):
    subprocess.run([sys.executable, MONITORING / "grafana/generate.py", tmp_path], check=True)
    assert len(DASHBOARDS) == 3
    for path in DASHBOARDS:
        assert path.read_text() == (tmp_path / path.name).read_text(), path.name


def test_every_metric_named_exists(scrape):
    offered = set(re.findall(r"^# TYPE (\S+)", scrape[1], re.MULTILINE))
    offered |= {name + suffix for name in offered for suffix in ("_bucket", "_sum", "_count")}
    texts = [path.read_text() for folder in ("monitoring", "kubernetes", "helm")
             for path in (ROOT / "deploy" / folder).rglob("*")
             if path.suffix in (".json", ".yml", ".yaml", ".md") and path.is_file()]
    named = {name for text in texts for name in METRIC.findall(text)}
    assert len(named) > 25
    assert not named - offered


@pytest.mark.parametrize("kind", ["panels", "recordings", "alerts"])
def test_every_query_answers_on_a_recorded_scrape(recorded, kind):
    prometheus, moment = recorded
    queries = {"panels": panel_queries, "recordings": lambda: recordings().items(),
               "alerts": alert_queries}[kind]
    empty = []
    for name, expression in queries():
        answer = prometheus.get("query", query=expression, time=moment)
        if not answer["result"]:
            empty.append(f"{name}: {expression}")
    # Alerts compare, so an answer without samples is what a healthy server gives.
    assert kind == "alerts" or not empty, "\n".join(empty)


@pytest.mark.slow
def test_an_overload_makes_the_alert_fire(tool, tmp_path):
    """The rules as they are, but with minutes for hours: windows of 20 s, patience of 5 s."""
    for path in (MONITORING / "rules").glob("*.yml"):
        text = re.sub(r"\[\d+[mh]\]", "[20s]", path.read_text())
        text = re.sub(r"for: \w+", "for: 5s", text)
        text = re.sub(r"interval: \w+", "interval: 2s", text)
        (tmp_path / path.name).write_text(text)
    with Server([ZOO / "code-language"], "--max_queue_seconds=0.2") as server:
        config = {"global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
                  "rule_files": [str(tmp_path / "*.yml")],
                  "scrape_configs": [{"job_name": "longview",
                                      "static_configs": [{"targets": [server.http]}]}]}
        folder = tmp_path / "tsdb"
        folder.mkdir()
        with Prometheus(tool("prometheus"), folder, yaml.safe_dump(config)) as prometheus:
            load = subprocess.Popen(
                [CLIENT, "bench", f"--server={server.grpc}", "--rate=100", "--duration=90",
                 "--lengths=2048,4096", "--json", "--task=classify"], stdout=subprocess.DEVNULL)
            try:
                wait_until(lambda: "LongviewOverloaded" in {
                    alert["labels"]["alertname"] for alert in prometheus.get("alerts")["alerts"]
                    if alert["state"] == "firing"}, 120, "LongviewOverloaded fires")
            finally:
                load.kill()
                load.wait()
