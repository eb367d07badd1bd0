#!/usr/bin/env python3
"""Says what an installed tree is made of: an SPDX 2.3 bill of materials and all licence texts.

  deploy/package/sbom.py --prefix DIR --libraries lib/longview --libtorch DIR --version 0.1.0 \
      --cargo-lock FILE --out share/longview

Reads the Debian packages that own the libraries under DIR, the wheels under --libtorch and the
crates of --cargo-lock. Writes OUT/sbom.spdx.json and OUT/licences/ (Debian's copyright files, the
wheels' licences), paths relative to the prefix. Runs on Debian, with the standard library only.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib



def spdx_expression(text):
    """Whether a licence is an expression of SPDX's own names; other text goes into a comment."""
    name = r"\(?[A-Za-z0-9.+-]+\)?"
    return "LicenseRef" not in text and re.fullmatch(f"{name}( (AND|OR|WITH) {name})*", text)


def owner(library):
    """(package, version) of the Debian package that has a library of this name, or None."""
    found = subprocess.run(["dpkg-query", "-S", f"*/x86_64-linux-gnu/{library}"],
                           capture_output=True, text=True)
    for line in found.stdout.splitlines():
        names, _, path = line.partition(": ")
        if os.path.basename(path) == library:
            package = names.split(",")[0].strip()
            version = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], check=True,
                                     capture_output=True, text=True).stdout
            return package.split(":")[0], version
    return None


def debian_packages(folder):
    """{package: (version, [libraries])} of the libraries directly in a folder."""
    packages: dict = {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file() or path.name.startswith("liblongview"):
            continue
        found = owner(path.name)
        if found is None:
            raise SystemExit(f"sbom: no Debian package owns {path.name}")
        packages.setdefault(found[0], (found[1], []))[1].append(path)
    return packages


def wheels(root):
    """[(name, version, licence, dist-info folder)] of the installed wheels."""
    for folder in sorted(root.glob("*.dist-info")):
        metadata = (folder / "METADATA").read_text(encoding="utf-8", errors="replace")
        fields = dict(re.findall(r"^(Name|Version|License|License-Expression): (.*)$", metadata,
                                 re.MULTILINE))
        licence = fields.get("License-Expression") or fields.get("License") or "NOASSERTION"
        yield fields["Name"], fields["Version"], licence, folder


def crates(lock):
    """[(name, version, licence)]; licences are known where cargo has the sources at hand."""
    asked = subprocess.run(
        ["cargo", "metadata", "--offline", "--locked", "--format-version=1",
         "--filter-platform=x86_64-unknown-linux-gnu",
         f"--manifest-path={lock.parent / 'Cargo.toml'}"], capture_output=True, text=True)
    known = json.loads(asked.stdout)["packages"] if asked.returncode == 0 else []
    licences = {(crate["name"], crate["version"]): crate["license"] for crate in known}
    for package in tomllib.loads(lock.read_text())["package"]:
        if "source" in package:
            key = package["name"], package["version"]
            yield *key, licences.get(key) or "NOASSERTION"


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Document:
    """Collects packages; everything is contained in the first."""

    def __init__(self, version):
        self.packages = []
        self.relationships = []
        self.add("longview", version, "Apache-2.0", None)

    def add(self, name, version, licence, locator, comment=""):
        identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", f"{name}-{version}")
        package = {"SPDXID": identifier, "name": name, "versionInfo": version,
                   "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                   "licenseConcluded": "NOASSERTION",
                   "licenseDeclared": licence if spdx_expression(licence) else "NOASSERTION"}
        if locator:
            package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER",
                                        "referenceType": "purl", "referenceLocator": locator}]
        if comment:
            package["comment"] = comment
        self.packages.append(package)
        source = "SPDXRef-DOCUMENT" if len(self.packages) == 1 else self.packages[0]["SPDXID"]
        self.relationships.append({
            "spdxElementId": source, "relatedSpdxElement": identifier,
            "relationshipType": "DESCRIBES" if len(self.packages) == 1 else "CONTAINS"})

    def json(self, created, seed):
        return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                "name": "longview",
                "documentNamespace": f"https://spdx.org/spdxdocs/longview-{seed}",
                "creationInfo": {"created": created, "creators": ["Tool: deploy/package/sbom.py"]},
                "packages": self.packages, "relationships": self.relationships}


def copy_wheel_licences(folder, target):
    for path in folder.rglob("*"):
        if path.is_file() and re.match(r"(LICEN|NOTICE|COPYING|EULA)", path.name.upper()):
            shutil.copyfile(path, target / f"{folder.name.split('-')[0]}-{path.name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--libtorch", type=pathlib.Path, required=True)
    parser.add_argument("--cargo-lock", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    out = arguments.prefix / arguments.out
    licences = out / "licences"
    licences.mkdir(parents=True, exist_ok=True)

    document = Document(arguments.version)
    packages = debian_packages(arguments.prefix / arguments.libraries)
    for package, (version, files) in packages.items():
        sums = "; ".join(f"{path.name} sha256:{sha256(path)}" for path in files)
        document.add(package, version, "NOASSERTION",
                     f"pkg:deb/debian/{package}@{version}?arch=amd64", sums)
        copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
        if copyright_file.exists():
            shutil.copyfile(copyright_file, licences / f"{package}.copyright")
    for name, version, licence, folder in wheels(arguments.libtorch):
        document.add(name, version, licence, f"pkg:pypi/{name}@{version}", licence)
        copy_wheel_licences(folder, licences)
    for name, version, licence in crates(arguments.cargo_lock):
        document.add(name, version, licence.replace("/", " OR "), f"pkg:cargo/{name}@{version}")

    newest = int(os.environ.get("SOURCE_DATE_EPOCH",
                                (arguments.prefix / "bin/longview-server").stat().st_mtime))
    created = subprocess.run(["date", "-u", "-d", f"@{newest}", "+%Y-%m-%dT%H:%M:%SZ"], check=True,
                             capture_output=True, text=True).stdout.strip()
    seed = sha256(arguments.prefix / "bin/longview-server")[:32]
    (out / "sbom.spdx.json").write_text(json.dumps(document.json(created, seed), indent=1) + "\n")
    print(f"sbom: {len(document.packages)} packages in {out / 'sbom.spdx.json'}")


if __name__ == "__main__":
    main()
