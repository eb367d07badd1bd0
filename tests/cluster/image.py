"""Images without Docker: a Dockerfile followed step by step on folders, and the result as OCI archive.

Enough of the language for deploy/docker/Dockerfile with PROGRAMS=tarball: ARG, FROM, WORKDIR, COPY,
RUN (in a chroot), ENV, LABEL, USER, EXPOSE, STOPSIGNAL, ENTRYPOINT. HEALTHCHECK has no place in an
OCI image. The base image is made of Debian's packages, and the image has one layer.
"""

import hashlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tarfile

# The parts of debian:bookworm-slim that a shell script needs.
_BASE = ("base-files base-passwd bash coreutils dash debianutils findutils grep gzip sed tar libc6 "
         "libc-bin libgcc-s1 libselinux1 libpcre2-8-0 libacl1 libattr1 libgmp10 libtinfo6 "
         "libcrypt1").split()


def unpack_packages(folder, packages):
    """Unpacks Debian packages of this machine's release into a root folder; nothing is configured."""
    folder.mkdir(parents=True)
    for name in ("bin", "sbin", "lib"):
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    (folder / "usr/lib64").mkdir()
    (folder / "lib64").symlink_to("usr/lib64")
    downloaded = folder.with_name(folder.name + ".packages")
    downloaded.mkdir(exist_ok=True)
    subprocess.run(["apt-get", "download", "-qq", *packages], cwd=downloaded, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for package in downloaded.glob("*.deb"):
        files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", folder], stdin=files.stdout,
                       check=True)
        assert files.wait() == 0
    shutil.rmtree(downloaded)


def base_folder(cache):
    """The root folder of the base image, made once."""
    folder = cache / "base-image"
    if not folder.exists():
        part = cache / "base-image.part"
        shutil.rmtree(part, ignore_errors=True)
        unpack_packages(part, _BASE)
        # As the package's scripts do it.
        for name in ("opt", "mnt", "srv"):
            (part / name).mkdir(exist_ok=True)
        shutil.copy(part / "usr/share/base-passwd/passwd.master", part / "etc/passwd")
        shutil.copy(part / "usr/share/base-passwd/group.master", part / "etc/group")
        part.rename(folder)
    return folder


def _steps(text):
    """(instruction, rest) of every logical line of a Dockerfile."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            yield instruction.upper(), rest.strip()


class _Stage:
    def __init__(self, root):
        self.root, self.config, self.folder = root, {"Env": [], "Labels": {}}, "/"


def build(dockerfile, context, base, work, arguments):
    """Follows the stages that the last one needs; returns (root folder, OCI config).

    context: the folder that COPY reads. base: the root folder that stands for ${BASE}.
    arguments: values for ARG, as --build-arg gives them.
    """
    steps = list(_steps(pathlib.Path(dockerfile).read_text()))
    needed = _needed(steps, dict(arguments))
    values, stages, stage = dict(arguments), {}, None
    fill = lambda text: re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], m[0]), text)
    for instruction, rest in steps:
        if instruction == "ARG":
            name, _, default = rest.partition("=")
            values.setdefault(name, default)
        elif instruction == "FROM":
            parent, _, name = fill(rest).partition(" AS ")
            stage = None
            if name not in needed:
                continue
            root = work / name
            origin = stages[parent] if parent in stages else _Stage(base)
            subprocess.run(["cp", "-a", "--reflink=auto", origin.root, root], check=True)
            stage = stages[name] = _Stage(root)
            stage.config = json.loads(json.dumps(origin.config))
        elif stage is not None:
            _follow(stage, instruction, fill(rest), context, stages)
    return stage.root, stage.config


def _needed(steps, values):
    """Names of the last stage and of those that it is made from."""
    parents, name, fill = {}, "", None
    for instruction, rest in steps:
        if instruction == "ARG":
            key, _, default = rest.partition("=")
            values.setdefault(key, default)
        elif instruction == "FROM":
            fill = re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], m[0]), rest)
            parent, _, name = fill.partition(" AS ")
            parents[name] = {parent}
        elif instruction == "COPY" and rest.startswith("--from="):
            parents[name].add(rest.split()[0][len("--from="):])
    needed, open_names = set(), [name]
    while open_names:
        current = open_names.pop()
        if current in parents and current not in needed:
            needed.add(current)
            open_names += parents[current]
    return needed


def _follow(stage, instruction, rest, context, stages):
    config = stage.config
    if instruction == "WORKDIR":
        stage.folder = rest
        _inside(stage, rest).mkdir(parents=True, exist_ok=True)
    elif instruction == "RUN":
        subprocess.run(["chroot", stage.root, "/bin/sh", "-c", f"cd {stage.folder} && {rest}"],
                       check=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    elif instruction == "COPY":
        _copy(stage, rest.split(), context, stages)
    elif instruction == "ENV":
        config["Env"] += shlex.split(rest)
    elif instruction == "LABEL":
        config["Labels"] |= dict(part.split("=", 1) for part in shlex.split(rest))
    elif instruction == "USER":
        config["User"] = rest
    elif instruction == "EXPOSE":
        config["ExposedPorts"] = {f"{port}/tcp": {} for port in rest.split()}
    elif instruction == "STOPSIGNAL":
        config["StopSignal"] = rest
    elif instruction == "ENTRYPOINT":
        config["Entrypoint"] = json.loads(rest)
    elif instruction != "HEALTHCHECK":
        raise NotImplementedError(f"{instruction} {rest}")


def _inside(stage, path):
    return stage.root / pathlib.PurePosixPath("/", stage.folder, path).relative_to("/")


def _copy(stage, words, context, stages):
    source = pathlib.Path(context)
    if words[0].startswith("--from="):
        source = stages[words.pop(0)[len("--from="):]].root
    *patterns, target = words
    for pattern in patterns:
        found = sorted(source.glob(pattern.lstrip("/")))
        assert found, f"COPY {pattern}: no such file in {source}"
        for path in found:
            into = _inside(stage, target)
            into.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-aT" if path.is_dir() else "-a", "--reflink=auto", path, into],
                           check=True)


def write(archive, name, root, config):
    """Writes the folder `root` as an OCI archive with one layer, named `name` for containerd."""
    work = pathlib.Path(f"{archive}.parts")
    blobs = work / "blobs/sha256"
    blobs.mkdir(parents=True)
    layer = work / "layer"
    subprocess.run(["tar", "-C", root, "--sort=name", "--mtime=@0", "--numeric-owner", "-cf", layer,
                    "."], check=True)

    def store(kind, data=None):
        path = work / "blob"
        if data is None:
            path = layer
        else:
            path.write_text(json.dumps(data))
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        entry = {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}",
                 "size": path.stat().st_size}
        path.rename(blobs / digest)
        return entry

    packed = store("layer.v1.tar")
    about = store("config.v1+json", {
        "architecture": "amd64", "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [packed["digest"]]}})
    manifest = store("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": about, "layers": [packed]})
    manifest["annotations"] = {"io.containerd.image.name": name}
    (work / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (work / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    with tarfile.open(archive, "w") as file:
        for path in ("oci-layout", "index.json", "blobs"):
            file.add(work / path, path)
    shutil.rmtree(work)
