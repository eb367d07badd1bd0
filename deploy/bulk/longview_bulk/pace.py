"""How many calls a server gets at a time: as many as keep its queue filled, and no more."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from typing import Optional

FIRST = 16  # Calls in flight to a server of which nothing is known yet.
_SAMPLE = re.compile(r"^longview_queued_work_seconds(?:\{.*\})? (\S+)$", re.MULTILINE)


def next_limit(limit: int, used: int, queued: float, target: float, refused: bool, batch: int, most: int) -> int:
    """The number of calls in flight for the next interval.

    used: the most that were in flight during this one. queued: predicted seconds of work that wait
    in the server, other clients' included. refused: some call was, or missed its deadline. batch:
    items of the largest batch that answered; predictions sum up items as if each ran alone, so that
    one batch running and one waiting are always let be.
    """
    if refused:
        return max(1, limit // 2)
    if queued > 1.25 * target:
        return min(limit, max(1, 2 * batch, int(limit * max(0.5, target / queued))))
    if queued < target and used >= limit:
        return min(most, max(limit + 1, limit * 3 // 2))
    return limit


def queued_work(metrics: str) -> Optional[float]:
    """The sum over all models, which share the devices; None if there is no sample."""
    samples = [float(value) for value in _SAMPLE.findall(metrics)]
    return sum(samples) if samples else None


async def scrape(host: str, port: int) -> Optional[float]:
    """longview_queued_work_seconds of a server; None if it cannot be had."""
    def get() -> Optional[float]:
        try:
            where = f"[{host}]" if ":" in host else host
            with urllib.request.urlopen(f"http://{where}:{port}/metrics", timeout=2) as answer:
                return queued_work(answer.read().decode())
        except (OSError, ValueError):
            return None
    return await asyncio.to_thread(get)
