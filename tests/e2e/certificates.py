"""Certificates made for one test run by the openssl program; nothing of them is kept."""

import subprocess

_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def _openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Authority:
    """Signs certificates; `ca` is the file that trusts them."""

    def __init__(self, folder, name="authority"):
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.ca = self.folder / "ca.pem"
        self._key = self.folder / "ca.key"
        self._serial = 0
        _openssl("req", "-x509", *_NEW_KEY, "-keyout", self._key, "-out", self.ca, "-days", 2,
                 "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name, *hosts):
        """For a server on this machine (and on these hosts) or for a client: (certificate, key), two
        paths."""
        self._serial += 1
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        names = ",".join(["DNS:localhost", "IP:127.0.0.1", *(f"DNS:{host}" for host in hosts)])
        extensions.write_text("basicConstraints=critical,CA:FALSE\n"
                              "extendedKeyUsage=serverAuth,clientAuth\n"
                              f"subjectAltName={names}\n")
        _openssl("req", "-new", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        _openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key,
                 "-set_serial", self._serial, "-days", 2, "-out", certificate,
                 "-extfile", extensions)
        return certificate, key


def install(source, target):
    """Puts a file in the place of another at once, as secrets are exchanged."""
    fresh = target.with_name(target.name + ".new")
    fresh.write_bytes(source if isinstance(source, bytes) else source.read_bytes())
    fresh.rename(target)
