"""custom.metrics.k8s.io/v1beta2 for the pods of a namespace, read from their /metrics on port 8080
and summed over labels, as prometheus-adapter does it with the rule of deploy/kubernetes/samples.
Stands in for Prometheus and the adapter in tests.

    custom_metrics.py KEYS ADDRESS
"""

import datetime
import json
import ssl
import sys
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.parser import text_string_to_metric_families

from api_server import ApiServer

GROUP = "custom.metrics.k8s.io/v1beta2"
METRIC = "longview_queued_work_seconds"


def scrape(address, name):
    """The sum of a gauge over its labels."""
    with urllib.request.urlopen(f"http://{address}:8080/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return sum(sample.value for family in text_string_to_metric_families(text)
               for sample in family.samples if sample.name == name)


def values(api, namespace, selector, name):
    """MetricValueList of the pods that answer."""
    pods = api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector="
                   + urllib.parse.quote(selector))
    items = []
    for pod in pods["items"]:
        try:
            value = scrape(pod["status"]["podIP"], name)
        except (KeyError, OSError):
            continue
        now = datetime.datetime.now(datetime.timezone.utc)
        items.append({"describedObject": {"kind": "Pod", "apiVersion": "/v1",
                                          "namespace": namespace, "name": pod["metadata"]["name"]},
                      "metric": {"name": name, "selector": None},
                      "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                      "value": f"{round(value * 1000)}m"})
    return {"kind": "MetricValueList", "apiVersion": GROUP, "metadata": {}, "items": items}


def handler(api):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = urllib.parse.urlparse(self.path)
            parts = url.path.strip("/").split("/")
            if len(parts) == 3:  # apis/GROUP/VERSION
                body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP,
                        "resources": [{"name": f"pods/{METRIC}", "singularName": "",
                                       "namespaced": True, "kind": "MetricValueList",
                                       "verbs": ["get"]}]}
            elif len(parts) == 8:  # .../namespaces/NAMESPACE/pods/*/METRIC
                selector = urllib.parse.parse_qs(url.query).get("labelSelector", [""])[0]
                body = values(api, parts[4], selector, parts[7])
            else:
                self.send_error(404)
                return
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def main(keys, address):
    server = ThreadingHTTPServer((address, 6444), handler(ApiServer(keys, address)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{keys}/node.crt", f"{keys}/node.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
