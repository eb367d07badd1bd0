"""One server: its address, its client, how many calls it gets, and how it is found again."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Optional

import longview

from longview_bulk import pace
from longview_bulk.settings import Service


class Server:
    """One address. paused: the time until which it asked to be left alone."""

    def __init__(self, service: Service, host: str, port: int, http_port: int) -> None:
        self.host, self.http_port = host, http_port
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.limit, self.in_flight, self.used, self.paused = pace.FIRST, 0, 0, 0.0
        self.refused, self.waited, self.batch = False, 0.0, 0
        self.reviving: Optional[asyncio.Task[None]] = None
        self._service = service
        self.client = self._connect()

    def _connect(self) -> longview.AsyncClient:
        service = self._service
        # No repetitions in the client: a refused row is asked elsewhere meanwhile.
        return longview.AsyncClient(
            self.address, timeout=service.timeout, api_key=os.environ.get("LONGVIEW_API_KEY"), tls=service.tls,
            ca=service.ca, cert=service.cert, key=service.key, retry=longview.RetryPolicy(max_attempts=1),
            max_in_flight=service.max_in_flight + 1)

    async def revive(self) -> None:
        """Returns when the server answers again."""
        delay, begun, told = 0.2, time.monotonic(), False
        while True:
            try:
                await asyncio.wait_for(self.client.models(), 5)
                if told:
                    print(f"{self.address} answers again", file=sys.stderr)
                return
            except (longview.LongviewError, asyncio.TimeoutError):
                if self.in_flight == 0:  # A new connection does not wait as long as the broken one would.
                    await self.client.close()
                    self.client = self._connect()
            if not told and time.monotonic() - begun > 1:
                told = True
                print(f"{self.address} does not answer", file=sys.stderr)
            await asyncio.sleep(delay)
            delay = min(1.5 * delay, 3.0)
