"""A limit of memory around a process: a memory cgroup of its own (version 2 or 1), else RLIMIT_AS."""

import contextlib
import os
import pathlib
import time

GROUPS = pathlib.Path("/sys/fs/cgroup")
NAME = "longview-seeds-"


def _own_group(controller):
    """The path of this process's group; "" names version 2."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.strip("/")
    return ""


def _places():
    """(folder to make a group in, file of its limit): below our own group, then at the top."""
    for root, file, controller in ((GROUPS, "memory.max", ""),
                                   (GROUPS / "memory", "memory.limit_in_bytes", "memory")):
        for parent in (root / _own_group(controller), root):
            yield parent, file


def _sweep(parent):
    """Removes what a run left that was ended from outside."""
    for left in parent.glob(f"{NAME}*"):
        if not pathlib.Path("/proc", left.name.removeprefix(NAME).split("-")[0]).exists():
            with contextlib.suppress(OSError):
                left.rmdir()


class MemoryLimit:
    """Use as a context manager. `prefix` is a command that becomes the process within the limit."""

    def __init__(self, limit):
        self.limit, self.group, self.prefix = limit, None, ("prlimit", f"--as={limit}")
        for parent, file in _places():
            _sweep(parent)
            group = parent / f"{NAME}{os.getpid()}-{time.monotonic_ns()}"
            try:
                group.mkdir()
            except OSError:
                continue
            if (group / file).exists():  # Else no controller of memory is here.
                (group / file).write_text(str(limit))
                self.group = group
                break
            group.rmdir()
        if self.group:
            for swap, value in (("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", str(limit))):
                if (self.group / swap).exists():
                    (self.group / swap).write_text(value)
            self.prefix = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.group / "cgroup.procs"))

    @property
    def kind(self):
        return "cgroup" if self.group else "RLIMIT_AS, for want of a memory cgroup"

    def used(self):
        """Bytes that the group holds and cannot give back; None without a group."""
        if not self.group:
            return None
        file = next(path for path in (self.group / "memory.current", self.group / "memory.usage_in_bytes")
                    if path.exists())
        stat = dict(line.split() for line in (self.group / "memory.stat").read_text().splitlines())
        cached = sum(int(stat.get(f"total_{name}", stat.get(name, 0))) for name in ("active_file", "inactive_file"))
        return int(file.read_text()) - cached

    def killed(self):
        """How often the kernel ended a process of the group for want of memory."""
        for file in ("memory.events", "memory.oom_control"):
            if self.group and (self.group / file).exists():
                stat = dict(line.split() for line in (self.group / file).read_text().splitlines())
                return int(stat.get("oom_kill", 0))
        return 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for _ in range(50 if self.group else 0):
            try:
                self.group.rmdir()
                return
            except OSError:  # Its last process is still being taken down.
                time.sleep(0.1)
