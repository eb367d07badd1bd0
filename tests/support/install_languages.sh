#!/usr/bin/env bash
# Fetches the stock clients of other languages and builds the programs of tests/languages that call
# them, under .deps/languages. Idempotent. A language whose toolchain or registry cannot be had gets
# a file `missing` that says why, one whose program does not compile a file `broken`.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"

SOURCES=$ROOT/tests/languages
BUILT=$DEPS_DIR/languages

# Runs a step of a language. If it fails, the first error that it names goes to a file `missing`, or the end of
# its output to a file `broken`.
# $1: missing or broken, $2...: the command.
step() {
  local fault=$1
  shift
  "$@" >"$folder/install.log" 2>&1 && return
  case $fault in
    missing) grep -m 1 -i error "$folder/install.log" || tail -n 1 "$folder/install.log" ;;
    broken) tail -n 30 "$folder/install.log" ;;
  esac >"$folder/$fault"
  return 1
}

# $1: a language, $2...: programs that it needs on the path.
begin() {
  language=$1
  folder=$BUILT/$language
  mkdir -p "$folder"
  rm -f "$folder/missing" "$folder/broken"
  local program
  for program in "${@:2}"; do
    command -v "$program" >/dev/null || { echo "there is no $program" >"$folder/missing" && return 1; }
  done
}

javascript() {
  begin javascript node npm || return 0
  cp "$SOURCES"/javascript/* "$folder/"
  cd "$folder"
  step missing npm ci --ignore-scripts --no-audit --no-fund || return 0
  step broken node --check clients.mjs || true
}

# Stubs of Go lie beside its program: go.mod finds them as longview.internal/proto.
go_stubs() {
  local plugin
  for plugin in google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc; do
    go build -o "$folder/plugins/" "$plugin"
  done
  PATH=$folder/plugins:$PATH protoc -I "$ROOT/proto" --go_out="$folder/proto" --go-grpc_out="$folder/proto" \
    --go_opt=module=longview.internal/proto --go-grpc_opt=module=longview.internal/proto \
    "$ROOT"/proto/longview/v1/*.proto
}
go_program() {
  export GOTOOLCHAIN=local GOFLAGS=-modcacherw
  begin go go protoc || return 0
  mkdir -p "$folder/proto/longview/v1"
  cp "$SOURCES"/go/* "$folder/"
  cp "$SOURCES/go/proto.mod" "$folder/proto/go.mod"
  cd "$folder"
  step missing go mod download || return 0
  step broken go_stubs || return 0
  step broken go build -o clients . || true
}

rust() {
  begin rust cargo || return 0
  cd "$SOURCES/rust"
  step missing cargo fetch --locked || return 0
  step broken cargo build --locked --offline --target-dir "$folder/target" || true
}

java() {
  begin java java mvn || return 0
  cd "$SOURCES/java"
  step missing mvn -B -q dependency:resolve dependency:resolve-plugins "-Dwork=$folder/target" || return 0
  step broken mvn -B -q process-classes "-Dwork=$folder/target" "-Dprotos=$ROOT/proto" || true
}

say "Clients of other languages in $BUILT"
for language in javascript go_program rust java; do
  ("$language")
done
for fault in "$BUILT"/*/missing "$BUILT"/*/broken; do
  [ ! -f "$fault" ] || note "$(basename "$(dirname "$fault")") is ${fault##*/}: $(cat "$fault")"
done
