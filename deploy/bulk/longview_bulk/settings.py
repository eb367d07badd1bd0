"""What a run asks for (Question), and whom and how hard (Service)."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Optional, Tuple


class RunError(Exception):
    """The run cannot go on; the message says why. Chunks that are written stay valid."""


class UsageError(RunError):
    """The command line asks for what cannot be; the message names flag, value and limit."""


@dataclasses.dataclass(frozen=True)
class Question:
    """All that decides the answers. A resumed run must have the same."""

    input: str
    task: str
    model: str
    text_column: Optional[str] = None
    ids_column: Optional[str] = None
    image_column: Optional[str] = None
    key_columns: Tuple[str, ...] = ()
    chunk_rows: int = 1000
    options: Tuple[Tuple[str, Any], ...] = ()  # Arguments of the client's method.

    def identity(self) -> Dict[str, Any]:
        """By the names of the flags. The input is known by its files' contents, not by its path."""
        named = {"task": self.task, "model": self.model, "text-column": self.text_column,
                 "ids-column": self.ids_column, "image-column": self.image_column,
                 "key-columns": list(self.key_columns), "chunk-rows": self.chunk_rows}
        return {**named, **{name.replace("_", "-"): value for name, value in self.options}}

    @property
    def column(self) -> str:
        """The column that is asked about."""
        column = self.text_column or self.ids_column or self.image_column
        assert column is not None
        return column


@dataclasses.dataclass(frozen=True)
class Service:
    """Servers, and bounds on what one worker asks of them; times are seconds."""

    servers: Tuple[str, ...]  # host:grpc_port or host:grpc_port/http_port.
    timeout: float = 120.0  # One call.
    attempts: int = 5  # Calls for one row that broke off; refusals with a hint do not count.
    patience: float = 300.0  # A row may be refused, and the whole service be away, for so long.
    queued_seconds: float = 2.0  # Work that may wait in a server: longview_queued_work_seconds.
    max_in_flight: int = 256  # Calls to one server.
    tls: bool = False
    ca: Optional[str] = None
    cert: Optional[str] = None
    key: Optional[str] = None

    @property
    def secured(self) -> bool:
        return self.tls or self.ca is not None or self.cert is not None


def parse(entry: str) -> Tuple[str, int, int]:
    """Host, gRPC port and HTTP port of host:grpc_port[/http_port]."""
    address, _, http = entry.partition("/")
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not (http or "8080").isdigit():
        raise UsageError(f"--servers: {entry[:64]!r} is not HOST:GRPC_PORT or HOST:GRPC_PORT/HTTP_PORT")
    return host.strip("[]"), int(port), int(http or 8080)
