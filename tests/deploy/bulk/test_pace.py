"""How many calls are in flight, and what the progress line says."""

import io

import pytest
from longview_bulk.pace import next_limit, queued_work
from longview_bulk.parts import Summary
from longview_bulk.progress import Progress


@pytest.mark.parametrize("limit, used, queued, refused, then", [
    (16, 16, 0.1, False, 24),    # Room: more.
    (16, 9, 0.1, False, 16),     # Not used: no more.
    (16, 16, 2.2, False, 16),    # Near the target.
    (100, 100, 4.0, False, 50),  # Twice the target: half.
    (100, 100, 2.6, False, 76),  # In proportion.
    (100, 100, 60.0, False, 50),
    (100, 100, 0.0, True, 50),   # Refused: half, whatever waits.
    (1, 1, 60.0, True, 1),       # One call goes on, or nothing would be learnt.
    (250, 250, 0.0, False, 256),
    (1, 1, 0.0, False, 2)])
def test_the_next_limit(limit, used, queued, refused, then):
    assert next_limit(limit, used, queued, 2.0, refused, 0, 256) == then


def test_a_batch_that_runs_and_one_that_waits_are_let_be():
    assert next_limit(100, 100, 60.0, 2.0, False, 40, 256) == 80
    assert next_limit(60, 60, 60.0, 2.0, False, 40, 256) == 60
    assert next_limit(100, 100, 60.0, 2.0, True, 40, 256) == 50


@pytest.mark.parametrize("rate, cost", [(50, 1 / 50), (1000, 1 / 1000)])
def test_the_queue_settles_at_the_target(rate, cost):
    """By a server whose queue is all that is in flight, as far as 256 calls can fill it."""
    limit = 16
    for _ in range(40):
        limit = next_limit(limit, limit, limit * cost, 2.0, False, 0, 256)
    assert 0.75 * min(2.0, 256 / rate) <= limit * cost <= 1.25 * 2.0


def test_queued_work_is_of_all_models():
    text = ('# TYPE longview_queued_work_seconds gauge\nlongview_queued_work_seconds{model="a",version="1"} 0.5\n'
            'longview_queued_work_seconds{model="b",version="1"} 1.25e0\nlongview_queued_requests{model="a"} 9\n')
    assert queued_work(text) == 1.75 and queued_work("") is None


def test_the_progress_line():
    progress = Progress(1000, io.StringIO())
    progress.skip(200, 2)
    progress.begun(100)
    progress.finished(Summary("a", 100, 1, {}))
    progress.begun(100)
    assert progress.line(10.0) == "400 of 1,000 rows, 20.0 rows/s, 0:00:30 left, 3 errors"
    progress.begun(-100)  # A worker died.
    assert progress.line(10.0) == "300 of 1,000 rows, 10.0 rows/s, 0:01:10 left, 3 errors"
