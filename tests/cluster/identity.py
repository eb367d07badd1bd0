"""Certificates of a cluster's components: one authority, a certificate and a kubeconfig for each."""

import subprocess

# name: (subject, alternative names)
_SUBJECTS = {
    "apiserver": ("/CN=kube-apiserver", "DNS:kubernetes,DNS:kubernetes.default,"
                  "DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1,IP:{node},IP:{service}"),
    "admin": ("/O=system:masters/CN=admin", ""),
    "kubelet-client": ("/O=system:masters/CN=apiserver-kubelet-client", ""),
    "front-proxy": ("/CN=front-proxy", ""),
    "controller-manager": ("/CN=system:kube-controller-manager", ""),
    "scheduler": ("/CN=system:kube-scheduler", ""),
    "proxy": ("/CN=system:kube-proxy", ""),
    "node": ("/O=system:nodes/CN=system:node:node1", "DNS:node1,IP:{node}"),
}
_CALLERS = ("admin", "controller-manager", "scheduler", "proxy", "node")
_CONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://{node}:6443", certificate-authority: {ca}}}}}]
users: [{{name: u, user: {{client-certificate: {stem}.crt, client-key: {stem}.key}}}}]
contexts: [{{name: d, context: {{cluster: c, user: u}}}}]
current-context: d
"""


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make(folder, node, service):
    """Writes NAME.crt and NAME.key of every component to `folder`, NAME.conf (a kubeconfig) of those
    that call the API server, ca.crt, and the pair sa.key, sa.pub that signs service accounts.

    node: address of the node. service: address of the Service `kubernetes`.
    """
    folder.mkdir(mode=0o700)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    _openssl("req", "-x509", *key, "-days", 7, "-subj", "/CN=cluster", "-keyout",
             folder / "ca.key", "-out", folder / "ca.crt")
    _openssl("genrsa", "-out", folder / "sa.key", 2048)
    _openssl("rsa", "-in", folder / "sa.key", "-pubout", "-out", folder / "sa.pub")
    for name, (subject, names) in _SUBJECTS.items():
        stem = folder / name
        extensions = "extendedKeyUsage=serverAuth,clientAuth\n"
        if names:
            extensions += "subjectAltName=" + names.format(node=node, service=service) + "\n"
        (folder / "extensions").write_text(extensions)
        _openssl("req", "-new", *key, "-subj", subject, "-keyout", f"{stem}.key", "-out",
                 f"{stem}.csr")
        _openssl("x509", "-req", "-in", f"{stem}.csr", "-CA", folder / "ca.crt", "-CAkey",
                 folder / "ca.key", "-CAcreateserial", "-days", 7, "-extfile",
                 folder / "extensions", "-out", f"{stem}.crt")
        if name in _CALLERS:
            (folder / f"{name}.conf").write_text(
                _CONFIG.format(node=node, ca=folder / "ca.crt", stem=stem))
