"""Others who use the server meanwhile, over HTTP and gRPC: their answers are compared, bit by bit, with
recorded ones."""

import json
import shutil
import struct
import threading
import time
import urllib.error

import grpc

from goldens import served_models
from server_process import ZOO
from wire import field, fields, varint

CLASSIFIER = served_models("longformer")["classification"]
LM = ZOO / "code-lm"
DOCUMENTS = [[4 + (7 * i + i * i // 3) % 86 for i in range(n)] for n in (1, 33, 200, 900)]
PROMPTS = ["def main():", "#include <stdio.h>\nint main("]


def models(folder=None):
    """The flags' list of models; with `folder`, copies there that a test may damage."""
    found = {"classifier": CLASSIFIER, "code-lm": LM}
    if folder is not None:
        found = {name: shutil.copytree(path, folder / name) for name, path in found.items()}
    return [",".join(f"{name}={path}" for name, path in found.items())]


def classify(server, ids, model="classifier", timeout=60):
    """The answer's numbers as printed: the shortest decimal that is the float, so equal text is
    equal bits. An error is (status, message)."""
    status, body = server.post_json(f"/v2/models/{model}/infer", {"inputs": [
        {"name": "input_ids", "datatype": "INT64", "shape": [1, len(ids)], "data": ids}]},
        timeout=timeout)
    if status != 200:
        return status, str(body)
    return json.dumps(body["outputs"])


def complete(server, prompt, tokens=40, model="code-lm", timeout=60):
    """Text and end of a sampled completion; equal seeds give equal tokens."""
    status, body = server.post_json("/v1/completions", {
        "model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0.8, "seed": 5},
        timeout=timeout)
    if status != 200:
        return status, str(body)
    return json.dumps([[choice["text"], choice["finish_reason"]] for choice in body["choices"]])


def over_grpc(server, method, request, timeout, read, compression=None):
    """`read` of the answers to a call over a connection of its own. An error is (code, message)."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(server.grpc, options) as channel:
        try:
            return read(list(channel.unary_stream(method)(request, timeout=timeout,
                                                          compression=compression)))
        except grpc.RpcError as error:
            return error.code().name, str(error.details())


def infer(server, ids, model="classifier", timeout=60):
    """The bytes of the answer's tensors."""
    tensor = (field(1, "input_ids") + field(2, "INT64") + field(3, varint(1) + varint(len(ids)))
              + field(5, field(3, b"".join(map(varint, ids)))))
    request = field(1, model) + field(5, tensor)
    return over_grpc(server, "/inference.GRPCInferenceService/ModelInfer", request, timeout,
                     lambda answers: [value.hex() for number, value in fields(answers[0])
                                      if number in (5, 6)])


def generate(server, prompt, tokens=40, model="code-lm", timeout=60, on_piece=lambda pieces: None):
    """Text, tokens and end of a stream of pieces; `on_piece` is told how many have come."""
    request = (field(1, model) + field(3, prompt) + field(9, tokens)
               + bytes([10 << 3 | 5]) + struct.pack("<f", 0.8) + field(14, 5))
    kept = {5: b"", 6: b"", 8: b""}
    with grpc.insecure_channel(server.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        try:
            call = channel.unary_stream("/longview.v1.TextService/Generate")
            for count, piece in enumerate(call(request, timeout=timeout), 1):
                for number, value in fields(piece):
                    if number in kept:
                        kept[number] += value
                on_piece(count)
        except grpc.RpcError as error:
            return error.code().name, str(error.details())
    return [value.hex() for value in kept.values()]


# Every kind of call by turns.
CALLS = [call for ids, prompt in zip(DOCUMENTS, PROMPTS * 2) for call in
         ((classify, ids), (infer, ids), (complete, prompt), (generate, prompt))]


def record(server):
    """The answers that every caller must always get."""
    return [call(server, given) for call, given in CALLS]


def of_documents(recorded):
    """Those of HTTP about documents."""
    return [answer for (call, _), answer in zip(CALLS, recorded) if call is classify]


REFUSALS = (429, 503, "UNAVAILABLE", "RESOURCE_EXHAUSTED")


class Neighbours:
    """Two clients that ask over both transports without end while in scope. Leaving asserts that they
    got answers over each, and that all were the recorded ones. `closing`: refusals and connections that
    are refused or cut are no fault, wrong answers are."""

    def __init__(self, server, recorded, closing=False):
        self.server, self.recorded, self.closing = server, recorded, closing
        self.answers, self.wrong, self.slowest, self.kinds = 0, [], 0.0, set()
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(start,)) for start in (0, 7)]

    def ask(self, index):
        while not self.stopped.is_set():
            call, given = CALLS[index % len(CALLS)]
            begin = time.monotonic()
            try:
                answer = call(self.server, given)
            except (urllib.error.URLError, OSError) as error:
                if self.closing:
                    return
                self.wrong.append(error)
                return
            self.slowest = max(self.slowest, time.monotonic() - begin)
            if answer == self.recorded[index % len(CALLS)]:
                self.answers += 1
                self.kinds.add(call.__name__)
            elif self.closing and isinstance(answer, tuple) and answer[0] in REFUSALS:
                time.sleep(0.02)
            else:
                self.wrong.append((call.__name__, answer))
            index += 1

    def wait_for(self, count, seconds=60):
        """Until `count` more answers came."""
        end, goal = time.monotonic() + seconds, self.answers + count
        while self.answers < goal and not self.wrong:
            assert time.monotonic() < end, f"{self.answers} of {goal} answers in {seconds} s"
            time.sleep(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exception):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)
        if exception[0] is None:
            assert not self.wrong, self.wrong[:3]
            assert self.answers > 0
            assert self.closing or self.answers < len(CALLS) or len(self.kinds) == 4, self.kinds
