"""The servers: which of them is asked next, and what becomes of one that refuses or is gone."""

from __future__ import annotations

import asyncio
import collections
import random
import socket
import time
from typing import Any, Deque, Dict, List, Optional, Tuple

from longview_bulk import pace
from longview_bulk.server import Server
from longview_bulk.settings import RunError, Service, parse

_TICK = 0.5  # Seconds between two looks at /metrics.
_RESOLVE = 30.0  # Seconds between two looks at the names.


class Fleet:
    """Hands out servers to calls, each at most as many as its pace allows. Use as a context manager."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.servers: Dict[str, Server] = {}
        self.answered = time.monotonic()  # When any server last gave an answer.
        self._waiting: Deque[asyncio.Future[Server]] = collections.deque()
        self._failure: Optional[RunError] = None
        self._loops: List[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Fleet":
        await self._resolve()
        self._loops = [asyncio.create_task(self._keep_pace()), asyncio.create_task(self._keep_names())]
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._loops, *(server.reviving for server in self.servers.values() if server.reviving)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in self.servers.values():
            await server.client.close()

    async def take(self, again: bool) -> Server:
        """A server with room, which `give_back` ends. again: in front of rows that were never asked."""
        if self._failure:
            raise self._failure
        waiting: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if again else self._waiting.append)(waiting)
        self._grant()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self.give_back(waiting.result())
            raise

    def give_back(self, server: Server) -> None:
        server.in_flight -= 1
        self._grant()

    def note_answer(self, server: Server, queue_seconds: float, batch: int) -> None:
        """How long the item waited, and how many were in its batch."""
        self.answered = time.monotonic()
        server.waited, server.batch = max(server.waited, queue_seconds), max(server.batch, batch)

    def note_refusal(self, server: Server, seconds: float) -> None:
        """The server asked to be left alone for so long."""
        server.refused = True
        wait = seconds * (1 + 0.2 * random.random())
        server.paused = max(server.paused, time.monotonic() + wait)
        asyncio.get_running_loop().call_later(wait + 0.001, self._grant)

    def note_gone(self, server: Server) -> None:
        """The connection broke, or there is none: no calls until the server answers again."""
        if server.reviving is None:
            server.reviving = asyncio.create_task(self._revive(server))

    async def _revive(self, server: Server) -> None:
        await server.revive()
        server.reviving, server.limit = None, pace.FIRST
        self._grant()

    def _grant(self) -> None:
        now = time.monotonic()
        while self._waiting:
            free = [server for server in self.servers.values() if server.reviving is None and server.paused <= now
                    and server.in_flight < server.limit]
            if not free:
                return
            waiting = self._waiting.popleft()
            if waiting.done():
                continue
            # Turns alone would let the slowest server set the pace of all.
            server = max(free, key=lambda server: (1 - server.in_flight / server.limit, random.random()))
            server.in_flight += 1
            server.used = max(server.used, server.in_flight)
            waiting.set_result(server)

    async def _keep_pace(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            await asyncio.gather(*(self._adjust(server) for server in list(self.servers.values())))
            self._grant()
            away = time.monotonic() - self.answered
            if not self._waiting and not any(server.in_flight for server in self.servers.values()):
                self.answered = time.monotonic()
            elif away > self.service.patience:
                self._fail(RunError(f"--patience: no answer from {', '.join(self.servers) or 'any server'} for "
                                    f"{away:.0f} s, the limit is {self.service.patience:g} s"))

    async def _adjust(self, server: Server) -> None:
        queued = None if server.reviving else await pace.scrape(server.host, server.http_port)
        # Without /metrics the longest wait of late answers stands for the queue.
        queued = server.waited if queued is None else queued
        server.limit = pace.next_limit(server.limit, server.used, queued, self.service.queued_seconds, server.refused,
                                       server.batch, self.service.max_in_flight)
        server.used, server.refused, server.waited, server.batch = server.in_flight, False, 0.0, 0

    def _fail(self, error: RunError) -> None:
        self._failure = error
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    async def _keep_names(self) -> None:
        while True:
            await asyncio.sleep(_RESOLVE)
            await self._resolve()

    async def _resolve(self) -> None:
        """Adds servers of new addresses; those that are gone leave once nothing is under way there."""
        found: Dict[str, Tuple[str, int, int]] = {}
        for entry in self.service.servers:
            host, port, http_port = parse(entry)
            for address in await self._addresses(host):
                found[f"{address}:{port}"] = (address, port, http_port)
        for name, where in found.items():
            if name not in self.servers:
                self.servers[name] = Server(self.service, *where)
        for name in [name for name in self.servers if name not in found]:
            server = self.servers[name]
            if server.in_flight == 0 and found:
                del self.servers[name]
                if server.reviving:
                    server.reviving.cancel()
                await server.client.close()
        self._grant()

    async def _addresses(self, host: str) -> List[str]:
        if self.service.secured:
            return [host]  # The certificate is for the name.
        try:
            entries: Any = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            return []
        by_four = [entry[4][0] for entry in entries if entry[0] == socket.AF_INET]
        return sorted(set(by_four or [entry[4][0] for entry in entries]))
