"""Servers leave and come back one after the other under load, and no call fails.

Unary calls and streams in an open loop: a gRPC client that balances by itself, and HTTP and gRPC
through HAProxy, both with the configurations of deploy/balancing.
"""

import pytest

from rolling import HaProxy, Load, Place, grpc_calls, http_calls, messages, poster


@pytest.mark.parametrize("restarts", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_no_call_fails(tool, tmp_path, restarts):
    program = tool("haproxy")
    message = messages(tmp_path)
    places = [Place("127.0.0.2"), Place("127.0.0.3")]
    loads, channels, proxy = [], [], None
    try:
        for place in places:
            place.start()
        proxy = HaProxy(program, places, tmp_path)
        target = "ipv4:" + ",".join(f"{place.address}:{place.grpc_port}" for place in places)
        balanced, classify, generate = grpc_calls(target, message)
        proxied, proxied_classify, proxied_generate = grpc_calls(
            f"127.0.0.1:{proxy.grpc_port}", message)
        channels = [balanced, proxied]
        http_classify, http_stream = http_calls(poster(proxy.http_port))
        loads = [Load("gRPC", 0.05, classify), Load("gRPC stream", 0.3, generate),
                 Load("gRPC by HAProxy", 0.1, proxied_classify),
                 Load("gRPC stream by HAProxy", 0.5, proxied_generate),
                 Load("HTTP", 0.1, http_classify), Load("HTTP stream", 0.5, http_stream)]
        for i in range(restarts):
            places[i % 2].restart()
    finally:
        for load in loads:
            load.stop()
        for channel in channels:
            channel.close()
        if proxy:
            proxy.stop()
        for place in places:
            if place.server:
                place.server.__exit__(None, None, None)
    failures = [failure for load in loads for failure in load.failures]
    assert not failures, failures[:10]
    assert all(load.done > restarts for load in loads), [(load.name, load.done) for load in loads]
