"""Model control from a browser, and how keep-alive clients learn that the server ends."""

import http.client

from server_process import ZOO, Server, wait_until


def post(server, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    connection.request("POST", path, b"", headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_pages_of_other_sites_control_nothing():
    with Server([ZOO / "code-language"], "--server_names=models.example,other") as server:
        unload = "/v2/repository/models/code-language/unload"
        assert post(server, unload, Origin="http://evil.example") == 403
        assert post(server, unload, Host="evil.example:8080") == 403
        assert post(server, unload, Host="evil.example", Origin="http://evil.example") == 403
        assert server.get("/v2/models/code-language/ready")[0] == 200
        load = "/v2/repository/models/code-language/load"
        assert post(server, load, Origin=f"http://127.0.0.1:{server.http_port}") == 200
        assert post(server, load, Host="models.example") == 200
        assert post(server, load, Host="OTHER:80", Origin="http://other") == 200


def test_answers_say_that_the_server_leaves():
    with Server([ZOO / "code-language"], "--drain_seconds=2") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
        connection.request("GET", "/livez")
        answer = connection.getresponse()
        assert answer.getheader("Connection") == "keep-alive" and answer.read()
        assert answer.getheader("Keep-Alive") == "timeout=120"
        server.process.terminate()

        def leaving():
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return False
            assert answer.status == 503 and answer.getheader("Connection") == "close"
            return True

        wait_until(leaving, 2, "an answer that the server leaves")
        connection.close()
        assert server.process.wait(30) == 0
