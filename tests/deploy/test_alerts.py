"""Recording rules and alerts: valid, each fires when it must and stays quiet when it must."""

import json
import re
import subprocess

import pytest
import yaml

from alert_cases import CASES
from server_process import ROOT

MONITORING = ROOT / "deploy/monitoring"
RULES = sorted((MONITORING / "rules").glob("*.yml"))


def rules(kind):
    return [rule for path in RULES for group in yaml.safe_load(path.read_text())["groups"]
            for rule in group["rules"] if kind in rule]


def test_rules_are_valid(tool):
    done = subprocess.run([tool("promtool"), "check", "rules", *RULES], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_of_compose_is_valid(tool, tmp_path):
    config = (MONITORING / "prometheus.yml").read_text()
    assert "/etc/prometheus/rules/" in config
    file = tmp_path / "prometheus.yml"
    file.write_text(config.replace("/etc/prometheus/rules/", f"{MONITORING}/rules/"))
    done = subprocess.run([tool("promtool"), "check", "config", file], capture_output=True,
                          text=True)
    assert done.returncode == 0 and "2 rule files found" in done.stdout, done.stdout + done.stderr


def test_every_alert_has_a_case_a_severity_and_a_runbook():
    book = (MONITORING / "runbooks.md").read_text()
    sections = set(re.findall(r"^## (\w+)$", book, re.MULTILINE))
    alerts = rules("alert")
    names = [alert["alert"] for alert in alerts]
    assert set(names) == set(CASES) == sections
    for alert in alerts:
        assert alert["labels"]["severity"] in ("critical", "warning")
        anchor = "deploy/monitoring/runbooks.md#" + alert["alert"].lower()
        assert alert["annotations"]["runbook_url"] == anchor
        assert alert["annotations"]["summary"]


def case_file(alert, minutes):
    """promtool's input: at `minutes` the bad series fire, and nothing else does."""
    bad, good, _ = CASES[alert]
    firing = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    quiet = f'count(ALERTS{{alertname="{alert}", alertstate="firing", {job_of(good)}}})'
    return {"rule_files": [str(path) for path in RULES], "evaluation_interval": "1m", "tests": [{
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in bad + good],
        "promql_expr_test": [
            {"expr": firing, "eval_time": f"{minutes}m",
             "exp_samples": [{"labels": "{}", "value": 1}]},
            {"expr": quiet, "eval_time": "60m", "exp_samples": []},
            {"expr": firing, "eval_time": "0m", "exp_samples": []},
        ]}]}


def job_of(series):
    """A selector of the good series: their instance if they share the bad ones' job."""
    label = "instance" if 'instance="b"' in series[0][0] else "job"
    return re.search(label + r'="\w+"', series[0][0])[0]


@pytest.mark.parametrize("alert", CASES)
def test_fires_and_does_not_fire(tool, tmp_path, alert):
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case_file(alert, CASES[alert][2])))
    done = subprocess.run([tool("promtool"), "test", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
