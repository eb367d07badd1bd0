"""Models at work in processes of their own: documents, medians by turns, memory, predicted cost."""

import contextlib
import random
import statistics

import timing
from pipe import Ours

from . import plain, served

THREADS = 2
DTYPE = "fp32"
SETTINGS = f"{DTYPE}, {THREADS} threads"
RETURNS_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": "131072"}  # Fixed: else glibc keeps what was freed, up to a point.
MOST_KEPT, PATIENCE = 64 << 20, 16  # Of models/dense/scratch_pool.h: bytes, and runs that use less than half.


def documents(count, tokens, seed=7):
    """Random token ids; none is a special one of any family here."""
    draw = random.Random(seed)
    return [[draw.randrange(4, 250) for _ in range(tokens)] for _ in range(count)]


def make(options, folder, configs):
    """name -> model directory with random weights."""
    return {name: served.make(f"{options.scratch}/{folder}-{name.replace(' ', '-')}", config, zeros=False)
            for name, config in configs.items()}


@contextlib.contextmanager
def running(directories, extra=None):
    """name -> Ours."""
    ours = {}
    try:
        for name, directory in directories.items():
            ours[name] = Ours(directory, DTYPE, THREADS, extra=extra)
        yield ours
    finally:
        for process in ours.values():
            process.close()


def checked(options, directories, ours, tokens):
    """Compares each model's answer with that of plain PyTorch; the sentence that says so."""
    if not plain.available(options):
        return "Answers were not compared: PyTorch, transformers or safetensors is not installed."
    plain.check_all(directories, ours, documents(1, tokens)[0])
    return (f"Answers at {tokens} tokens agree with the same weights in plain PyTorch to {plain.TOLERANCE:g} of the "
            "largest logit.")


def seconds(process, batch, times=1):
    """A function of no arguments: mean seconds of so many runs in a row."""
    return lambda: statistics.fmean(float(process.run(batch)["seconds"]) for _ in range(times))


def medians(functions, repeats, warmup=1):
    """name -> median seconds of functions that take turns."""
    return {name: statistics.median(values)
            for name, values in timing.interleave(functions, repeats, warmup).items()}


def peak_bytes(directory, batch, workspace):
    """Resident memory that a batch of so much workspace adds to a process that has read its tables and holds no
    scratch: that of the batch before went back at once, or by the last of PATIENCE short documents."""
    with running({"": directory}, RETURNS_BLOCKS) as ours:
        ours[""].run(batch)
        for _ in range(PATIENCE if workspace <= MOST_KEPT else 0):
            ours[""].run(documents(1, 16))
        return ours[""].run(batch)["peak_bytes"]


def estimates(directories, lengths):
    """(name, tokens) -> EstimateResponse of a document, under the settings of the processes here."""
    with served.serving(directories, f"--threads={THREADS}", f"--dtype={DTYPE}", "--device=cpu") as server:
        return {(name, n): server.estimate(name, num_tokens=n) for name in directories for n in lengths}
