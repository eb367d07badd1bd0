"""How busy a GPU is while something runs: nvidia-smi's samples between two moments."""

import re
import shutil
import statistics
import subprocess
import threading

FIELDS = ("utilization.gpu", "memory.used", "power.draw")
PERIOD_MS = 200
# The device's part; preprocessing and answers are the host's.
COMPUTED = re.compile(
    r'longview_compute_duration_seconds_sum\{.*phase="(forward|prefill|decode)".*\} ')


def number(text):
    """A field's number; None where the device does not say ("[N/A]")."""
    try:
        return float(text)
    except ValueError:
        return None


class Sampler:
    """Samples of one device; use as a context manager around what is to be watched."""

    def __init__(self, device):
        self.device = str(device)
        self.samples = []

    @staticmethod
    def missing():
        """Why there is nothing to sample; None if there is."""
        return None if shutil.which("nvidia-smi") else "there is no nvidia-smi on the path"

    def __enter__(self):
        self.process = subprocess.Popen(
            ["nvidia-smi", f"--id={self.device}", f"--query-gpu={','.join(FIELDS)}",
             "--format=csv,noheader,nounits", f"--loop-ms={PERIOD_MS}"],
            stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout or ():
            fields = [number(field) for field in line.split(",")]
            if len(fields) == len(FIELDS):
                self.samples.append(fields)

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait()
        self.reader.join()

    def summary(self):
        """{"utilisation": mean percent, "memory_mib": most, "watts": mean, "samples": count};
        what the device does not say is missing."""
        columns = zip(*self.samples) if self.samples else [()] * len(FIELDS)
        said = [[value for value in column if value is not None] for column in columns]
        found: dict = {"samples": len(self.samples)}
        for name, values in zip(("utilisation", "memory_mib", "watts"), said):
            if values:
                found[name] = max(values) if name == "memory_mib" else statistics.fmean(values)
        return found


def computing_share(before, after, seconds):
    """The share of `seconds` that the server's device computed, from two texts of /metrics."""
    def total(text):
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if COMPUTED.match(line))
    return (total(after) - total(before)) / seconds
