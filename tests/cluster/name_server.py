"""A records of Services in *.svc.cluster.local: the address of the Service, or those of the ready
pods of a headless one. Stands in for CoreDNS in tests.

    name_server.py KEYS ADDRESS
"""

import socket
import struct
import sys

from api_server import ApiServer

LIVES_SECONDS = 2


def addresses(api, name):
    """The addresses of a name; None if it does not exist."""
    parts = name.lower().rstrip(".").split(".")
    if len(parts) != 5 or parts[2:] != ["svc", "cluster", "local"]:
        return None
    service, namespace = parts[:2]
    found = api.get(f"/api/v1/namespaces/{namespace}/services/{service}")
    if found is None:
        return None
    if found["spec"]["clusterIP"] != "None":
        return [found["spec"]["clusterIP"]]
    slices = api.get(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
                     f"?labelSelector=kubernetes.io/service-name%3D{service}")
    return [address for part in slices["items"] for endpoint in part.get("endpoints") or []
            if endpoint["conditions"].get("ready") for address in endpoint["addresses"]]


def answer(query, lookup):
    """The answer to a query of one question; both are DNS messages."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind, = struct.unpack(">H", query[at + 1:at + 3])
    found = lookup(".".join(labels))
    listed = found or [] if kind == 1 else []
    missing = 3 if found is None else 0
    records = b"".join(b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", LIVES_SECONDS, 4)
                       + socket.inet_aton(address) for address in listed)
    header = query[:2] + struct.pack(">HHHHH", 0x8580 | missing, 1, len(listed), 0, 0)
    return header + query[12:at + 5] + records


def main(keys, address):
    api = ApiServer(keys, address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        while True:
            query, client = server.recvfrom(1500)
            try:
                server.sendto(answer(query, lambda name: addresses(api, name)), client)
            except Exception as error:  # noqa: BLE001: the next query is another one
                print(repr(error), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
