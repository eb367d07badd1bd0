"""Client of the Longview inference server.

    import longview

    with longview.Client("localhost:9000") as client:
        answer = client.classify(open("main.rs").read())
        print(answer.labels[0].name, answer.labels[0].score)

Answers are the messages of longview.v1 (documented in its .proto files).
"""

from longview.client import Client, LongviewError
from longview.retry import RetryPolicy

__all__ = ["Client", "LongviewError", "RetryPolicy"]
