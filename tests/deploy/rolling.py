"""Two servers, what stands in front of them, and open-loop clients that count every failure."""

import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

from server_process import ROOT, ZOO, Server, wait_until

BALANCING = ROOT / "deploy/balancing"
SERVICE_CONFIG = (BALANCING / "grpc_service_config.json").read_text()
PATIENCE = 600  # Seconds of a call's deadline; a machine may be busy.
SOURCE = "static int area(int width, int height) { return width * height; }\n" * 8


def fixed_ports(address, count):
    """Ports that nobody is handed by chance: below the range the kernel gives to clients."""
    ports = []
    while len(ports) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Place:
    """An address where a server runs, leaves and comes back."""

    def __init__(self, address):
        self.address = address
        self.grpc_port, self.http_port = fixed_ports(address, 2)
        self.server = None

    def start(self):
        self.server = Server([ZOO], f"--host={self.address}", f"--grpc_port={self.grpc_port}",
                             f"--http_port={self.http_port}", "--drain_seconds=1", "--threads=1")

    def answered(self, api, method):
        """Calls of a method that this server has answered."""
        connection = http.client.HTTPConnection(self.address, self.http_port, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return sum(float(line.rpartition(" ")[2]) for line in text.splitlines()
                   if line.startswith("longview_request_duration_seconds_count")
                   and f'api="{api}"' in line and f'method="{method}"' in line)

    def restart(self):
        """SIGTERM, exit status 0, a new process that both kinds of clients have found."""
        status = self.server.stop(15, 120)
        log = self.server.log()[-2000:]
        self.server.__exit__(None)
        assert status == 0, f"exit status {status}\n{log}"
        self.start()
        for api, method in (("grpc", "Classify"), ("http", "/v1/classify")):
            wait_until(lambda: self.answered(api, method) > 0, 120, f"{api} calls come back")


class HaProxy:
    """HAProxy with the configuration of deploy/balancing in front of two places."""

    def __init__(self, program, places, folder):
        self.grpc_port, self.http_port = fixed_ports("127.0.0.1", 2)
        environment = {"GRPC_BIND": f"127.0.0.1:{self.grpc_port}",
                       "HTTP_BIND": f"127.0.0.1:{self.http_port}"}
        for name, place in zip("AB", places):
            environment |= {f"{name}_ADDRESS": place.address,
                            f"{name}_GRPC_PORT": str(place.grpc_port),
                            f"{name}_HTTP_PORT": str(place.http_port)}
        self.log = open(pathlib.Path(folder) / "haproxy.log", "w", encoding="utf-8")
        self.process = subprocess.Popen([program, "-db", "-f", BALANCING / "haproxy.cfg"],
                                        env={**os.environ, **environment}, stdout=self.log,
                                        stderr=self.log)
        wait_until(self._open, 30, "HAProxy answers")

    def _open(self):
        assert self.process.poll() is None, "HAProxy stopped"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.http_port)) == 0

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


class Load:
    """Starts a call every `period` seconds, each on a thread of its own, whatever became of those
    before; `call` raises if it fails."""

    def __init__(self, name, period, call):
        self.name, self.period, self.call = name, period, call
        self.failures, self.done = [], 0
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._calls = []
        self._pace = threading.Thread(target=self._run)
        self._pace.start()

    def _run(self):
        due = time.monotonic()
        while not self._stop.is_set():
            worker = threading.Thread(target=self._one)
            worker.start()
            self._calls.append(worker)
            due += self.period
            self._stop.wait(max(0.0, due - time.monotonic()))

    def _one(self):
        try:
            self.call()
        except Exception as error:  # noqa: BLE001: every failure counts, whatever it is
            with self._lock:
                self.failures.append(f"{self.name}: {error!r}")
            return
        with self._lock:
            self.done += 1

    def stop(self):
        self._stop.set()
        self._pace.join()
        for worker in self._calls:
            worker.join()


def messages(folder):
    """text.proto's messages by name, in a pool of their own: other tests load the same files."""
    file = pathlib.Path(folder) / "text.pb"
    assert protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"--descriptor_set_out={file}",
                        "--include_imports", "longview/v1/text.proto"]) == 0
    pool = descriptor_pool.DescriptorPool()
    for entry in descriptor_pb2.FileDescriptorSet.FromString(file.read_bytes()).file:
        pool.Add(entry)
    return lambda name: message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"longview.v1.{name}"))


def grpc_calls(target, message, credentials=None):
    """(channel, unary call, streamed call) with the service config that we recommend; with TLS where
    there are credentials."""
    options = [
        ("grpc.service_config", SERVICE_CONFIG), ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.dns_min_time_between_resolutions_ms", 1000),
        ("grpc.min_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]
    channel = (grpc.secure_channel(target, credentials, options) if credentials
               else grpc.insecure_channel(target, options))
    service = "/longview.v1.TextService/"
    unary = channel.unary_unary(service + "Classify", message("ClassifyRequest").SerializeToString,
                                message("ClassifyResponse").FromString)
    stream = channel.unary_stream(service + "Generate",
                                  message("GenerateRequest").SerializeToString,
                                  message("GenerateResponse").FromString)

    def classify():
        request = message("ClassifyRequest")(model="code-language", text=SOURCE, top_k=1)
        answer = unary(request, timeout=PATIENCE)
        assert answer.labels
        return [(label.name, label.score) for label in answer.labels]

    def generate():
        request = message("GenerateRequest")(model="code-lm", text=SOURCE, max_tokens=24,
                                             seed=1)
        pieces = list(stream(request, timeout=PATIENCE))
        assert pieces[-1].finish_reason
        return "".join(piece.text for piece in pieces)

    return channel, classify, generate


class Refusal(AssertionError):
    """An answer that is not 200. retry_after: the seconds of its Retry-After; None without one."""

    def __init__(self, status, text, retry_after):
        super().__init__(status, text[:200], retry_after)
        self.retry_after = float(retry_after) if retry_after else None


def poster(port, host="127.0.0.1", seconds=PATIENCE, context=None):
    """post(path, body): the bytes of an answer with status 200, by a connection per call as curl makes
    it. context: returns the SSLContext of a new connection; plaintext without it."""
    def post(path, body):
        connection = (http.client.HTTPSConnection(host, port, timeout=seconds, context=context())
                      if context else http.client.HTTPConnection(host, port, timeout=seconds))
        try:
            connection.request("POST", path, json.dumps(body).encode())
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise Refusal(answer.status, text, answer.getheader("Retry-After"))
            return text
        finally:
            connection.close()
    return post


def http_calls(post):
    """(unary call, streamed call), the same as grpc_calls makes, by a function of `poster`."""
    def classify():
        answer = json.loads(post("/v1/classify", {"model": "code-language", "text": SOURCE}))
        assert answer["labels"]
        return [(label["name"], label["score"]) for label in answer["labels"]]

    def stream():
        text = post("/v1/completions", {"model": "code-lm", "prompt": SOURCE, "max_tokens": 24,
                                        "seed": 1, "stream": True})
        assert text.endswith(b"data: [DONE]\n\n"), text[-200:]
        events = [json.loads(line[6:]) for line in text.decode().splitlines()
                  if line.startswith("data: {")]
        return "".join(choice["text"] for event in events for choice in event["choices"])

    return classify, stream
