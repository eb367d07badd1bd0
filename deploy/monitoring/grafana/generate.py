#!/usr/bin/env python3
"""Writes dashboards/*.json: deploy/monitoring/grafana/generate.py [FOLDER].

A dashboard is a list of rows, a row a title and its panels, a panel a title, a unit and its
queries as (legend, PromQL). `$selector` stands for the labels that the variables choose.
"""

import json
import pathlib
import sys

FLEET = 'job=~"$job"'
MODEL = 'job=~"$job", model=~"$model"'


def rate(metric, by, labels="$selector"):
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def quantile(q, metric, by=""):
    grouping = f"{by}, le" if by else "le"
    buckets = rate(f"{metric}_bucket", grouping)
    return f"histogram_quantile({q}, {buckets})"


def quantiles(metric):
    return [(name, quantile(q, metric)) for name, q in
            (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))]


def mean(metric):
    return f"{rate(metric + '_sum', 'model')} / {rate(metric + '_count', 'model')}"


DASHBOARDS = {
    "fleet": ("Longview fleet", FLEET, [
        ("Traffic", [
            ("Requests by code", "reqps",
             [("{{code}}", rate("longview_request_duration_seconds_count", "code"))]),
            ("Requests by model", "reqps",
             [("{{model}}", rate("longview_request_duration_seconds_count", "model"))]),
            ("Time to the answer, all models", "s", quantiles("longview_request_duration_seconds")),
            ("Refused", "reqps", [("{{reason}}", rate("longview_rejected_total", "reason"))]),
        ]),
        ("Load", [
            ("Work that waits, by server", "s",
             [("{{instance}}", "sum by (instance) (longview_queued_work_seconds{$selector})")]),
            ("Waiting and running", "short",
             [("waiting", "sum(longview_queued_requests{$selector})"),
              ("running", "sum(longview_running_requests{$selector})")]),
            ("Tokens", "short", [("{{kind}}", rate("longview_tokens_total", "kind"))]),
            ("Images", "short", [("{{model}}", rate("longview_images_total", "model"))]),
        ]),
        ("Servers", [
            ("CPU cores used", "short",
             [("{{instance}}", rate("process_cpu_seconds_total", "instance"))]),
            ("Resident memory", "bytes",
             [("{{instance}}", "process_resident_memory_bytes{$selector}")]),
            ("Open files", "short", [("{{instance}}", "process_open_fds{$selector}")]),
            ("Versions", "short",
             [("{{version}} {{commit}} {{device}}",
               "count by (version, commit, device) (longview_build_info{$selector})")]),
            ("Up for", "s", [("{{instance}}", "time() - process_start_time_seconds{$selector}")]),
            ("Models ready", "short",
             [("{{model}}", "sum by (model) (longview_model_ready{$selector})")]),
        ]),
    ]),
    "model": ("Longview model", MODEL, [
        ("Answers", [
            ("Requests by method and code", "reqps",
             [("{{method}} {{code}}",
               rate("longview_request_duration_seconds_count", "method, code"))]),
            ("Time to the answer", "s", quantiles("longview_request_duration_seconds")),
            ("Time in the queue", "s", quantiles("longview_queue_duration_seconds")),
            ("Cancelled and refused", "reqps",
             [("cancelled {{stage}}", rate("longview_cancelled_total", "stage")),
              ("refused {{reason}}", rate("longview_rejected_total", "reason"))]),
            ("Answered of a part of the text", "reqps",
             [("{{model}}", rate("longview_truncated_requests_total", "model"))]),
            ("Tokens cut off", "short",
             [("{{model}}", rate("longview_truncated_tokens_total", "model"))]),
        ]),
        ("Compute", [
            ("Compute by phase, p95", "s",
             [("{{phase}}", quantile(0.95, "longview_compute_duration_seconds", "phase"))]),
            ("Tokens in a batch, mean", "short", [("{{model}}", mean("longview_batch_tokens"))]),
            ("Items in a batch, mean", "short", [("{{model}}", mean("longview_batch_items"))]),
            ("Predicted over actual seconds", "short",
             quantiles("longview_predicted_vs_actual_ratio")),
            ("Padding", "percentunit",
             [("{{model}}", "avg by (model) (longview_padding_ratio{$selector})")]),
            ("Pixels", "short", [("{{model}}", rate("longview_pixels_total", "model"))]),
        ]),
        ("Memory", [
            ("Weights", "bytes",
             [("{{model}} {{instance}}", "longview_model_memory_bytes{$selector}")]),
            ("Last load took", "s",
             [("{{model}} {{instance}}", "longview_model_load_seconds{$selector}")]),
        ]),
    ]),
    "generation": ("Longview generation", MODEL, [
        ("Streams", [
            ("Time to the first token", "s", quantiles("longview_time_to_first_token_seconds")),
            ("Time between tokens", "s",
             [*quantiles("longview_inter_token_latency_seconds"),
              ("planned ceiling", "max(longview_inter_token_ceiling_seconds{$selector})")]),
            ("Tokens", "short", [("{{kind}}", rate("longview_tokens_total", "kind"))]),
            ("Prompt tokens found in the cache", "percentunit",
             [("{{model}}",
               rate("longview_tokens_total", "model", '$selector, kind="cached"') + " / " + rate(
                   "longview_tokens_total", "model", '$selector, kind=~"cached|prompt"'))]),
        ]),
        ("State", [
            ("Generation state", "bytes",
             [("{{model}} {{instance}}", "longview_generation_cache_bytes{$selector}")]),
            ("Share of the room", "percentunit",
             [("{{model}} {{instance}}", "longview_generation_cache_usage_ratio{$selector}")]),
            ("Running sequences", "short",
             [("{{model}} {{instance}}", "longview_running_requests{$selector}")]),
            ("Wasted tokens", "short",
             [("{{reason}}", rate("longview_wasted_tokens_total", "reason"))]),
            ("Prefill and decode, p95", "s",
             [("{{phase}}", "histogram_quantile(0.95, " + rate(
                 "longview_compute_duration_seconds_bucket", "phase, le",
                 '$selector, phase=~"prefill|decode"') + ")")]),
        ]),
    ]),
}


def variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "query": query, "refresh": 2,
            "datasource": {"type": "prometheus", "uid": "prometheus"}, "multi": True,
            "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}


def panel(number, x, y, title, unit, queries, selector):
    targets = [{"refId": chr(ord("A") + i), "legendFormat": legend,
                "expr": expression.replace("$selector", selector)}
               for i, (legend, expression) in enumerate(queries)]
    return {"id": number, "type": "timeseries", "title": title,
            "datasource": {"type": "prometheus", "uid": "prometheus"},
            "gridPos": {"x": x, "y": y, "w": 8, "h": 8},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 8}},
                            "overrides": []},
            "options": {"legend": {"displayMode": "list", "placement": "bottom"},
                        "tooltip": {"mode": "multi", "sort": "desc"}},
            "targets": targets}


def dashboard(uid, title, selector, rows):
    panels, y, number = [], 0, 1
    for name, content in rows:
        panels.append({"id": number, "type": "row", "title": name, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        number, y = number + 1, y + 1
        for i, (panel_title, unit, queries) in enumerate(content):
            panels.append(panel(number, 8 * (i % 3), y + 8 * (i // 3), panel_title, unit, queries,
                                selector))
            number += 1
        y += 8 * ((len(content) + 2) // 3)
    variables = [variable("job", "Job", "label_values(longview_build_info, job)")]
    if "$model" in selector:
        known = 'label_values(longview_model_ready{job=~"$job"}, model)'
        variables.append(variable("model", "Model", known))
    return {"uid": f"longview-{uid}", "title": title, "tags": ["longview"], "schemaVersion": 39,
            "editable": True, "refresh": "30s", "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": variables}, "panels": panels,
            "links": [{"type": "dashboards", "tags": ["longview"], "title": "Longview",
                       "asDropdown": True, "includeVars": True}]}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else (
        pathlib.Path(__file__).parent / "dashboards")
    folder.mkdir(parents=True, exist_ok=True)
    for uid, (title, selector, rows) in DASHBOARDS.items():
        text = json.dumps(dashboard(uid, title, selector, rows), indent=1)
        (folder / f"{uid}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
