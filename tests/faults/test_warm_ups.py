"""Models come and go beside a stream: the gaps between its tokens stay under what the server plans."""

import http.client
import json
import threading
import time

from goldens import served_models
from server_process import ZOO, Server, wait_until

OTHERS = ("code-language", "page-layout", "page-type")
SLACK = 0.1  # A machine that is shared, and the client's own time.


class Stream:
    """Completions without end over one connection; `gaps`: (end, seconds) between two tokens."""

    def __init__(self, server):
        self.gaps, self.stop = [], threading.Event()
        self.thread = threading.Thread(target=self.listen, args=(server.http_port,))
        self.thread.start()

    def listen(self, port):
        while not self.stop.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/v1/completions", json.dumps({
                "model": "code-lm", "prompt": "def main():", "max_tokens": 20_000, "stream": True,
                "temperature": 1, "ignore_eos": True}), {"Content-Type": "application/json"})
            answer, last = connection.getresponse(), None
            while not self.stop.is_set() and (line := answer.readline()):
                if not line.startswith(b"data: {"):
                    continue
                now = time.monotonic()
                if last is not None:
                    self.gaps.append((now, now - last))
                last = now
            connection.close()

    def longest_since(self, start):
        return max((seconds for end, seconds in self.gaps if end - seconds >= start), default=0)

    def end(self):
        self.stop.set()
        self.thread.join()


def test_streams_go_on_while_models_load_and_unload():
    models = [f"code-lm={ZOO / 'code-lm'}", *(f"{name}={ZOO / name}" for name in OTHERS),
              f"classifier={served_models('longformer')['classification']}"]
    with Server(models, "--allow_model_control=true") as server:
        stream = Stream(server)
        try:
            wait_until(lambda: len(stream.gaps) > 200, 60, "a stream")
            idle = stream.longest_since(0)
            start = time.monotonic()
            for name in (*OTHERS, "classifier") * 2:
                for what in ("unload", "load"):
                    path = f"/v2/repository/models/{name}/{what}"
                    status, answer = server.post_json(path, {}, timeout=120)
                    assert status == 200, answer
            longest = stream.longest_since(start)
            ceiling = server.metric("longview_inter_token_ceiling_seconds", model="code-lm")
        finally:
            stream.end()
    print(f"gaps of at most {idle:.3f} s before, {longest:.3f} s beside loads; "
          f"ceiling {ceiling:.3f} s")
    assert longest <= ceiling + max(SLACK, idle)
