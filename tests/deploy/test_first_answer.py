"""From a file of a release to a right answer, in bare systems without network: what each step takes.

In Debian 12 and Debian 13, which have nothing but their essential packages and python3-venv, the wheel
goes into a virtual environment, and into a Python of /usr/local as container images of Python have it;
the tarball is unpacked. The seconds are printed (pytest -s or -rP), not judged."""

import os
import re
import shutil

import bare_root
import pytest

from server_process import ROOT

pytestmark = pytest.mark.slow

# Names a step when it ends.
STEP = 'step() { echo "step $(date +%s.%N) $1"; }\nset -e\nstep begin\n'
ASK = """
until grep -q '^longview ready' /tmp/ready; do kill -0 $server; sleep 0.1; done
step 'server ready'
longview classify --server="127.0.0.1:$(sed -n 's/.*grpc=\\([0-9]*\\).*/\\1/p' /tmp/ready)" \\
  --model=code-language /tmp/sample/plan.h
step 'first answer'
kill $server
wait $server
"""
SERVE = "longview-server >/tmp/ready & server=$!"
VENV = f"""
python3 -m venv /opt/env
step 'virtual environment'
PATH=/opt/env/bin:$PATH
pip install --quiet --no-index /tmp/longview_server-*.whl
step 'pip install'
{SERVE}
"""
IMAGE = f"""
pip install --quiet --no-index --root-user-action=ignore /tmp/longview_server-*.whl
step 'pip install'
{SERVE}
"""
TARBALL = f"""
tar -xzf /tmp/longview-*.tar.gz -C /opt
step 'tar -x'
PATH=$(echo /opt/longview-*/bin):$PATH
{SERVE}
"""


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def root(request, tmp_path_factory, tool):
    """A Debian of this release, for as long as its tests run."""
    if os.geteuid() != 0:
        pytest.skip("needs root for mmdebstrap, unshare and chroot")
    folder = tmp_path_factory.mktemp("root") / request.param
    bare_root.make(tool, request.param, folder, ["python3-venv"])
    shutil.copytree(ROOT / "kernels/span", folder / "tmp/sample")
    yield folder
    shutil.rmtree(folder)


def table(name, printed):
    """The steps that a script has named, with the seconds of each and of all."""
    marks = [(float(at), step) for at, step in re.findall(r"^step (\S+) (.*)$", printed, re.MULTILINE)]
    lines = [f"{now - before:6.1f} s  {step}" for (before, _), (now, step) in zip(marks, marks[1:])]
    return "\n".join([f"\n{name}", *lines, f"{marks[-1][0] - marks[0][0]:6.1f} s  in all"])


@pytest.mark.parametrize("way, script, file", [
    ("tarball", TARBALL, "longview-*.tar.gz"),
    ("wheel, virtual environment", VENV, "longview_server-*.whl"),
    ("wheel, Python in /usr/local", IMAGE, "longview_server-*.whl"),
], ids=["tarball", "environment", "image"])
def test_first_answer(way, script, file, released, root, tool):
    folder, _ = released
    if script is IMAGE:
        made = bare_root.run(tool, root, "python3", "-m", "venv", "/usr/local")
        assert made.returncode == 0, made.stderr
    packed, = folder.glob(file)
    shutil.copy(packed, root / "tmp")
    (root / "tmp/steps.sh").write_text(STEP + script + ASK)
    done = bare_root.run(tool, root, "sh", "/tmp/steps.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    print(table(f"{root.name}: {way}", done.stdout))
    assert re.search(r"plan\.h\tC\+\+", done.stdout), done.stdout + done.stderr
