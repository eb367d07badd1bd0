"""The wall clock jumps, as when it is set by hand or by NTP: nobody's deadline moves with it."""

import functools
import json
import time
import urllib.request

import pytest

from neighbours import Neighbours, generate, models, over_grpc, record
from preload import Switch
from server_process import Server, wait_until
from wire import field

HOUR, YEAR = 3600, 365 * 86400


@pytest.mark.parametrize("step", [HOUR, -HOUR, 10 * YEAR, -2 * YEAR])
def test_the_wall_clock_jumps(step, preload, tmp_path):
    fault = Switch(preload("step_clock"), tmp_path)
    with Server(models(), "--drain_seconds=1", "--shutdown_seconds=10", env=fault.env) as server:
        recorded = record(server)
        with Neighbours(server, recorded) as neighbours:
            neighbours.wait_for(4)
            for value in (step, 0, step):
                fault.set(value)
                neighbours.wait_for(6)
                assert server.get("/livez")[0] == server.get("/readyz")[0] == 200
            # Abseil looks at the clock again every few seconds only.
            wait_until(lambda: fault.faults > 0, 30)
        assert fault.faults > 0, "nobody read the clock: the test showed nothing"
        assert neighbours.slowest < 30
        # Leaving takes what the flags say, by whichever clock.
        begin = time.monotonic()
        assert server.stop(15, 40) == 0
        assert time.monotonic() - begin < 15


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_calls_over_grpc_do_not_move_with_the_clock(step, preload, tmp_path):
    """A stream goes on to its end, and short calls and messages of megabytes are answered, whenever the clock
    jumps: what a call waits for is timed by the clock that nobody sets."""
    fault = Switch(preload("step_clock"), tmp_path)
    with Server(models(), env=fault.env) as server:
        stream = functools.partial(generate, server, "a", 600, timeout=600)
        whole = stream()
        assert isinstance(whole, list), whole
        assert stream(on_piece=lambda pieces: fault.set(step if pieces > 3 else 0)) == whole
        recorded = record(server)
        large = field(1, "classifier") + field(3, "x" * (4 << 20)) + field(5, 1)

        def send():
            """Read as a whole, then refused: the model has no tokenizer."""
            return over_grpc(server, "/longview.v1.TextService/Classify", large, 60, list)

        refused = send()
        assert refused[0] == "INVALID_ARGUMENT", refused
        with Neighbours(server, recorded) as neighbours:
            for turn in range(20):
                fault.set(step * (turn % 2))
                assert send() == refused, turn
            neighbours.wait_for(8)
        fault.set(0)
        assert stream() == whole


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_stream_keeps_its_deadline(step, preload, tmp_path):
    """A stream under a deadline of its client goes on to its end when the clock jumps."""
    fault = Switch(preload("step_clock"), tmp_path)
    with Server(models(), env=fault.env) as server:
        record(server)
        body = json.dumps({"model": "code-lm", "prompt": "a", "max_tokens": 1500, "seed": 3,
                           "stream": True, "temperature": 0.8, "ignore_eos": True}).encode()

        def text(on_piece):
            call = urllib.request.Request(f"{server.url}/v1/completions", body,
                                          {"Grpc-Timeout": "600S"})
            found = []
            with urllib.request.urlopen(call, timeout=60) as answer:
                for line in answer:
                    if line.startswith(b"data: {"):
                        found.append(json.loads(line[6:])["choices"][0]["text"])
                        on_piece(len(found))
            return "".join(found)

        whole = text(lambda pieces: None)
        assert text(lambda pieces: fault.set(step if pieces > 3 else 0)) == whole
        fault.set(0)
        assert text(lambda pieces: None) == whole
