"""Debian as it is before anything is installed: a folder to change root into, without network."""

import subprocess


def make(tool, suite, folder, include=()):
    """Fills `folder` with the essential packages of a Debian release, and those of `include`."""
    more = [f"--include={','.join(include)}"] if include else []
    subprocess.run([tool("mmdebstrap"), "--variant=essential", "--dpkgopt=force-unsafe-io", *more, suite,
                    folder], check=True, capture_output=True, timeout=900)


def run(tool, root, *command, timeout=600):
    """Runs a command in `root`, with loopback alone, a /proc and a few devices, and no environment."""
    devices = "; ".join(f"mknod -m 666 {root}/dev/{device} c 1 {minor}"
                        for device, minor in (("null", 3), ("zero", 5), ("urandom", 9)))
    inside = (f"ip link set lo up; mount -t proc proc {root}/proc; "
              f"mount -t tmpfs tmpfs {root}/dev; {devices}; "
              f"exec chroot {root} env -i PATH=/usr/local/bin:/usr/bin:/bin timeout {timeout} \"$@\"")
    return subprocess.run([tool("unshare"), "-n", "-m", "sh", "-ec", inside, "sh", *command], text=True,
                          capture_output=True, timeout=2 * timeout)
