#!/usr/bin/env bash
# Installs a Kubernetes node for tests/cluster under $DEPS_DIR/cluster: etcd, containerd, runc, CNI
# plugins and nftables unpacked from Debian's packages, and Kubernetes itself compiled from its Go
# module (about 15 minutes of one core; 0.4 GB stay). Idempotent, and an interrupted build goes on
# where it stopped. Nothing is installed on the machine and nothing is started.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"

KUBERNETES=1.34.4
PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
PACKAGES=(etcd-server containerd runc containernetworking-plugins nftables libnftables1 libjansson4
  libnftnl11 libmnl0 libedit2 conntrack libnfnetlink0 libnetfilter-conntrack3 libxtables12)

home=$DEPS_DIR/cluster
mkdir -p "$home/bin"

if [ ! -e "$home/root/.complete" ]; then
  say "Unpacking ${#PACKAGES[@]} Debian packages to $home/root"
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  chmod 755 "$unpacked"
  (
    cd "$unpacked"
    apt-get download -qq "${PACKAGES[@]}" >&2 ||
      { as_root apt-get update -qq && apt-get download -qq "${PACKAGES[@]}" >&2; }
  )
  for package in "$unpacked"/*.deb; do dpkg -x "$package" "$home/root"; done
  touch "$home/root/.complete"
fi

# The pods' sandbox: a process that waits, without a library.
if [ ! -x "$home/bin/pause" ]; then
  printf '%s\n' '#include <signal.h>' '#include <unistd.h>' \
    'static void leave(int s) { (void)s; _exit(0); }' \
    'int main(void) { signal(SIGTERM, leave); signal(SIGINT, leave); for (;;) pause(); }' |
    cc -x c -static -Os -s -o "$home/bin/pause" -
fi

missing=()
for program in "${PROGRAMS[@]}"; do [ -x "$home/bin/$program" ] || missing+=("$program"); done
[ ${#missing[@]} -gt 0 ] || exit 0

go=$(command -v go || find "$DEPS_DIR/go" -path '*bin/go' -type f 2>/dev/null | head -1)
[ -n "$go" ] || die "there is no Go here"
export GOPATH=$home/gopath GOCACHE=$home/gocache GOTOOLCHAIN=local CGO_ENABLED=0 \
  GOFLAGS="-mod=mod -modcacherw -buildvcs=false"
module=k8s.io/kubernetes
staging=v0.${KUBERNETES#1.}

# Kubernetes' main module points at folders of its own checkout, which the module proxy does not
# carry. A module beside it asks for the same versions, and takes the published ones for these.
mkdir -p "$home/source"
cd "$home/source"
if [ ! -e go.mod ]; then
  "$go" mod download "$module@v$KUBERNETES"
  upstream=$GOPATH/pkg/mod/$module@v$KUBERNETES
  install -m 644 "$upstream/go.sum" go.sum
  {
    printf 'module longview.test/node\n\ngo 1.24.0\n\ngodebug default=go1.24\n\n'
    printf 'require %s v%s\n' "$module" "$KUBERNETES"
    sed -n '/^require (/,/^)/p' "$upstream/go.mod"
    sed -nE "s|^\s(k8s\.io/\S+) => \./staging/.*|replace \1 => \1 $staging|p" "$upstream/go.mod"
  } >go.mod.part
  mv go.mod.part go.mod
fi

# Without a version the programs say v0.0.0, and Helm finds no supported Kubernetes.
facts=(gitVersion="v$KUBERNETES" gitMajor=1 gitMinor="$(cut -d. -f2 <<<"$KUBERNETES")"
  gitTreeState=clean buildDate=1970-01-01T00:00:00Z)
linked="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  for fact in "${facts[@]}"; do linked+=" -X $package.$fact"; done
done
say "Compiling Kubernetes $KUBERNETES: ${missing[*]}"
for program in "${missing[@]}"; do
  nice -n 10 "$go" build -p "$(nproc)" -trimpath -ldflags "$linked" -o "$home/bin/$program.part" \
    "$module/cmd/$program" >&2
  mv "$home/bin/$program.part" "$home/bin/$program"
done
rm -rf "$home/gocache" "$home/gopath" "$home/source"
