"""A page of another site, or a name bound anew to this address, controls no model."""

import pytest

UNLOAD = "/v2/repository/models/code-lm/unload"


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example", "Content-Type": "text/plain"},
    {"Origin": "null"},
    {"Host": "evil.example"},
    {"Host": "evil.example:80", "Origin": "http://evil.example"},
    {"Referer": "http://evil.example/page", "Origin": "https://evil.example"},
], ids=["other origin", "no origin", "rebound name", "rebound name and origin", "form of a page"])
def test_other_sites_unload_nothing(victim, headers):
    with victim.watched() as figures:
        status, _, answer = victim.post(UNLOAD, b"{}", headers=headers)
        figures["answer"] = status
        assert status == 403, answer
        assert victim.get("/v2/models/code-lm/ready")[0] == 200


def test_ones_own_clients_still_control_models(victim):
    assert victim.post(UNLOAD, b"{}")[0] == 200
    page = {"Origin": f"http://127.0.0.1:{victim.http_port}"}
    assert victim.post(UNLOAD.replace("unload", "load"), b"{}", headers=page)[0] == 200
