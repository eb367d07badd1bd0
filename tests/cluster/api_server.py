"""Reads objects from the API server, for what stands in for parts of a cluster."""

import http.client
import json
import ssl
import threading
import time


class ApiServer:
    """get(path) as the cluster's administrator. Safe from several threads.

    keys: folder of admin.crt, admin.key and ca.crt. address: of the node.
    """

    def __init__(self, keys, address, seconds=1.0):
        """seconds: how long an answer is good for."""
        self._context = ssl.create_default_context(cafile=f"{keys}/ca.crt")
        self._context.load_cert_chain(f"{keys}/admin.crt", f"{keys}/admin.key")
        self._address, self._seconds = address, seconds
        self._known, self._lock = {}, threading.Lock()

    def get(self, path):
        """The JSON at a path; None if there is no such object."""
        with self._lock:
            when, value = self._known.get(path, (float("-inf"), None))
            if time.monotonic() - when < self._seconds:
                return value
            connection = http.client.HTTPSConnection(self._address, 6443, timeout=20,
                                                     context=self._context)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read()
            finally:
                connection.close()
            value = json.loads(body) if answer.status == 200 else None
            self._known[path] = time.monotonic(), value
            return value
