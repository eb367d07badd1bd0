"""The Python client with its stubs, as `pip install client/python` makes it, without an environment."""

import subprocess
import sys

from server_process import ROOT


def make(target):
    """Fills the folder, which a program then finds by PYTHONPATH; returns it."""
    (target / "longview/v1").mkdir(parents=True)
    for file in (ROOT / "client/python/longview").glob("*.py"):
        (target / "longview" / file.name).write_text(file.read_text())
    protos = [f"longview/v1/{name}.proto" for name in ("models", "text", "types", "vision")]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--python_out={target}",
                    f"--grpc_python_out={target}", *protos], check=True, cwd=ROOT / "proto")
    (target / "longview/v1/__init__.py").touch()
    return target
