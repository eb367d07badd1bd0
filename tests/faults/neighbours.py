"""Others who use the server meanwhile: their answers are compared, bit by bit, with recorded ones."""

import json
import shutil
import threading
import time
import urllib.error

from goldens import served_models
from server_process import ZOO

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


def record(server):
    """The answers that every caller must always get."""
    return ([classify(server, ids) for ids in DOCUMENTS]
            + [complete(server, prompt) for prompt in PROMPTS])


class Neighbours:
    """Two clients that ask without end while in scope. Leaving asserts that they got answers and
    that all were the recorded ones. `closing`: refusals (429, 503) and connections that are refused
    or cut are no fault, wrong answers are."""

    def __init__(self, server, recorded, closing=False):
        self.server, self.recorded, self.closing = server, recorded, closing
        self.answers, self.wrong, self.slowest = 0, [], 0.0
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(start,)) for start in (0, 3)]

    def ask(self, index):
        calls = [(classify, ids) for ids in DOCUMENTS] + [(complete, text) for text in PROMPTS]
        while not self.stopped.is_set():
            call, given = calls[index % len(calls)]
            begin = time.monotonic()
            try:
                answer = call(self.server, given)
            except (urllib.error.URLError, OSError) as error:
                if self.closing:
                    return
                self.wrong.append(error)
                return
            self.slowest = max(self.slowest, time.monotonic() - begin)
            if answer == self.recorded[index % len(calls)]:
                self.answers += 1
            elif not (self.closing and isinstance(answer, tuple) and answer[0] in (429, 503)):
                self.wrong.append(answer)
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
