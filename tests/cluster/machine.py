"""What a test run brings to a cluster, and what a machine looks like before and after one."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import image
from node import PARTS, ROOT, pod_cgroups

BUILD = pathlib.Path(os.environ.get("LONGVIEW_BUILD", ROOT / "build"))
IMAGE = "docker.io/library/longview:0.1.0"
NEXT_IMAGE = "docker.io/library/longview:0.1.1"
CURL_IMAGE = "docker.io/curlimages/curl:8.11.0"


def newest_tarball():
    """LONGVIEW_TARBALL, or the newest one of the build; None if there is none."""
    if named := os.environ.get("LONGVIEW_TARBALL"):
        return pathlib.Path(named)
    found = sorted(BUILD.glob("longview-*-linux-x86_64.tar.gz"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def load_server_image(node, tarball):
    """Makes the project's image as deploy/docker/Dockerfile says, under two tags: the second is the
    same programs with another version in the image's labels, for updates."""
    base = image.base_folder(PARTS)
    with tempfile.TemporaryDirectory(dir=node.state) as work:
        work = pathlib.Path(work)
        context = work / "context"
        (context / "build").mkdir(parents=True)
        shutil.copy(tarball, context / "build")
        root, config = image.build(ROOT / "deploy/docker/Dockerfile", context, base, work,
                                   {"PROGRAMS": "tarball", "BASE": "base"})
        for name, version in ((IMAGE, "0.1.0"), (NEXT_IMAGE, "0.1.1")):
            config["Labels"]["org.opencontainers.image.version"] = version
            archive = work / "image.tar"
            image.write(archive, name, root, config)
            node.load(archive)
            archive.unlink()


def load_curl_image(node):
    """The chart's image for downloads: this machine's curl with its libraries on the base image."""
    with tempfile.TemporaryDirectory(dir=node.state) as work:
        root = pathlib.Path(work, "root")
        subprocess.run(["cp", "-a", image.base_folder(PARTS), root], check=True)
        program = shutil.which("curl")
        linked = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        for path in [program, *re.findall(r"=> (/\S+)", linked)]:
            target = root / path.lstrip("/")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
        archive = pathlib.Path(work, "image.tar")
        image.write(archive, CURL_IMAGE, root, {"Env": ["PATH=/usr/bin:/bin"]})
        node.load(archive)


def processes():
    """Command lines of all processes, by process id."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            found[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def namespaces():
    """Identities of the network, mount and process namespaces that processes are in."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/ns"):
        for kind in ("net", "mnt", "pid"):
            try:
                found.add(os.readlink(path / kind))
            except OSError:
                continue
    return found


def rules(program):
    """The firewall rules of this machine as nft's JSON text."""
    done = subprocess.run([program, "-j", "list", "ruleset"], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{PARTS}/root/usr/lib/x86_64-linux-gnu"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def links():
    return sorted(os.listdir("/sys/class/net"))


def picture():
    """What a cluster could leave behind on this machine, by kind."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return {"mounts": sorted(line.split()[4] for line in mounts),
            "interfaces": links(), "rules": rules(PARTS / "root/usr/sbin/nft"),
            "control groups": [str(path) for path in pod_cgroups()],
            "settings": [pathlib.Path("/proc/sys", name).read_text() for name in (
                "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")],
            "folders": sorted(pathlib.Path(tempfile.gettempdir()).glob("lv-node-*"))}
