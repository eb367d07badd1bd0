"""Interleaved timing of several functions, and facts of the machine for the record."""

import os
import platform
import statistics
import time
from importlib import metadata


def machine():
    """The processor, its relevant flags and the cores."""
    model, flags = "?", set()
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags":
                flags = set(value.split())
                break
    wanted = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    return f"{model}, {os.cpu_count()} cores, {' '.join(f for f in wanted if f in flags)}"


def versions(*names):
    found = [f"python {platform.python_version()}"]
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            pass
    return ", ".join(found)


def busy_cores():
    """(seconds all cores were busy, seconds stolen) since boot."""
    with open("/proc/stat") as file:
        ticks = [int(x) for x in file.readline().split()[1:9]]
    hertz = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / hertz, ticks[7] / hertz


def wait_for_quiet(limit_s=60):
    """Waits until nobody else uses the cores, at most limit_s; returns whether it is quiet."""
    end = time.perf_counter() + limit_s
    while time.perf_counter() < end:
        before, start = busy_cores()[0], time.perf_counter()
        time.sleep(0.4)
        if (busy_cores()[0] - before) / (time.perf_counter() - start) < 0.25:
            return True
    return False


def working(functions):
    """Those that run; a peer that does not is named with its error and left out."""
    found = {}
    for name, function in functions.items():
        try:
            function()
            found[name] = function
        except RuntimeError as error:  # PyTorch's, of memory and of its compiler too.
            print(f"  {name} left out: {str(error).strip().splitlines()[0]}")
    return found


def interleave(functions, repeats, warmup=1):
    """name -> list of seconds, run A B C A B C ... so that slow minutes hit all alike.

    A function may return its own seconds (a subprocess that times itself); else the wall
    clock is taken.
    """
    for _ in range(warmup):
        for function in functions.values():
            function()
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            own = function()
            elapsed = time.perf_counter() - start
            times[name].append(own if isinstance(own, float) else elapsed)
    return times


def spread(values):
    """'median (min .. max)' in milliseconds."""
    return (f"{statistics.median(values) * 1e3:9.1f} ms "
            f"({min(values) * 1e3:.1f} .. {max(values) * 1e3:.1f})")
