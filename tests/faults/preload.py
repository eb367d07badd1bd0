"""Libraries for LD_PRELOAD, and the switch in a shared page that turns their fault on and off."""

import mmap
import os
import pathlib
import struct
import subprocess

HERE = pathlib.Path(__file__).parent


def build(name, folder):
    """Compiles HERE/NAME.c once into `folder`; returns the library's path."""
    library = folder / f"{name}.so"
    if not library.exists():
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror",
                        "-o", library, HERE / f"{name}.c", "-ldl"], check=True)
    return library


class Switch:
    """A number that a preloaded library reads at every call: two 64-bit words of a file that both
    processes map. The library counts its faults in the second."""

    def __init__(self, library, folder):
        self.path = folder / "switch"
        self.path.write_bytes(bytes(16))
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 16)
        self.env = {"LD_PRELOAD": str(library), "LONGVIEW_FAULT_SWITCH": str(self.path)}

    def set(self, value):
        self.page[:8] = struct.pack("<q", value)

    @property
    def faults(self):
        return struct.unpack("<q", self.page[8:])[0]
