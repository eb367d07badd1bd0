"""Client of the Longview inference server.

    import longview

    with longview.Client("localhost:9000") as client:
        answer = client.classify(open("main.rs").read())
        print(answer.labels[0].name, answer.labels[0].score)

AsyncClient has the same calls for asyncio. Answers are the messages of longview.v1 (documented in
its .proto files).
"""

from longview.aio import AsyncClient
from longview.client import Client
from longview.errors import LongviewError
from longview.retry import RetryPolicy

__version__ = "0.1.0"

__all__ = ["AsyncClient", "Client", "LongviewError", "RetryPolicy", "__version__"]
