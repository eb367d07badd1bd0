"""A release of the build that is tested."""

import hashlib
import os
import subprocess

from server_process import BUILD, ROOT


def make(folder):
    """Fills `folder` by deploy/release.sh; returns {name: SHA-256} of what is there."""
    subprocess.run([ROOT / "deploy/release.sh", folder], check=True, capture_output=True,
                   timeout=900, env={**os.environ, "LONGVIEW_BUILD": str(BUILD)})
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
