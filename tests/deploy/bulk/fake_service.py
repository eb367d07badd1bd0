"""A service that answers Classify at a set rate, refuses what it cannot queue and says how much waits.

    python fake_service.py ROWS_PER_SECOND MOST_WAITING [GRPC_PORT]

The label is the text's CRC-32. A text that begins with "bad" is an invalid argument, one that begins with
"worse" an internal error until a file named by FAKE_SERVICE_MENDED exists.
"""

import asyncio
import os
import pathlib
import sys
import zlib

import grpc
import grpc.aio
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from longview.v1 import models_pb2, models_pb2_grpc, text_pb2_grpc, types_pb2

RATE, MOST = float(sys.argv[1]), int(sys.argv[2])
MENDED = pathlib.Path(os.environ.get("FAKE_SERVICE_MENDED", "/nonexistent"))


class Queue:
    """One device that takes 1 / RATE seconds for a row."""

    def __init__(self):
        self.free_at = 0.0
        self.waiting = self.refused = 0

    def seconds(self):
        return max(0.0, self.free_at - asyncio.get_running_loop().time())

    async def serve(self):
        now = asyncio.get_running_loop().time()
        self.free_at = max(self.free_at, now) + 1 / RATE
        # Sleeps shorter than a turn of the loop would only cost.
        if self.free_at - now > 0.002:
            await asyncio.sleep(self.free_at - now)


QUEUE = Queue()


def refusal(seconds):
    info = error_details_pb2.RetryInfo()
    info.retry_delay.FromMilliseconds(int(seconds * 1000))
    packed = any_pb2.Any()
    packed.Pack(info)
    details = status_pb2.Status(code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], details=[packed])
    return (("grpc-status-details-bin", details.SerializeToString()),)


class Text(text_pb2_grpc.TextServiceServicer):
    async def Classify(self, request, context):
        if request.text.startswith("bad"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "text: bad")
        if request.text.startswith("worse") and not MENDED.exists():
            await context.abort(grpc.StatusCode.INTERNAL, "request 1")
        if QUEUE.waiting >= MOST:
            QUEUE.refused += 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "queue full", trailing_metadata=refusal(0.05))
        QUEUE.waiting += 1
        try:
            await QUEUE.serve()
        finally:
            QUEUE.waiting -= 1
        name = str(zlib.crc32(request.text.encode()))
        return types_pb2.ClassifyResponse(model=request.model, version="7", labels=[types_pb2.Label(name=name)])


class Models(models_pb2_grpc.ModelServiceServicer):
    async def ListModels(self, request, context):
        return models_pb2.ListModelsResponse()


async def metrics(reader, writer):
    await reader.readline()
    body = (f'longview_queued_work_seconds{{model="m",version="7"}} {QUEUE.seconds()}\n'
            f'fake_refused_total {QUEUE.refused}\n')
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
    await writer.drain()
    writer.close()


async def main():
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    text_pb2_grpc.add_TextServiceServicer_to_server(Text(), server)
    models_pb2_grpc.add_ModelServiceServicer_to_server(Models(), server)
    port = server.add_insecure_port(f"127.0.0.1:{sys.argv[3] if len(sys.argv) > 3 else 0}")
    http = await asyncio.start_server(metrics, "127.0.0.1", 0)
    await server.start()
    print(f"127.0.0.1:{port}/{http.sockets[0].getsockname()[1]}", flush=True)
    await server.wait_for_termination()


asyncio.run(main())
