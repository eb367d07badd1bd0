#!/usr/bin/env bash
# From a fresh Debian 12 or 13 to an answer: starts the server on the bundled models, sends a real
# request, prints the answer, keeps serving. Uses what is there: an unpacked tarball (this script
# lies in one, or $LONGVIEW_PREFIX names one), else a build, which it brings up to date, else it
# installs what is missing and builds.
#
#   deploy/serve.sh [--once] [--build] [longview-server flags]
#
# --once stops after the request; --build builds even where a tarball is unpacked. Other arguments
# go to the server, for example
#   deploy/serve.sh --grpc_port=0 --http_port=0 my-model=/path/to/directory
set -euo pipefail
. "$(dirname "$0")/lib.sh"

once=false
build=false
flags=()
for argument in "$@"; do
  case $argument in
    --once) once=true ;;
    --build) build=true ;;
    *) flags+=("$argument") ;;
  esac
done

# Sets $bin to the folder of the programs.
find_programs() {
  local unpacked said
  for unpacked in "${LONGVIEW_PREFIX:-}" "$ROOT" "$ROOT"/longview-*-linux-x86_64; do
    if ! $build && [ -x "$unpacked/bin/longview-server" ]; then
      bin=$unpacked/bin
      say "Using the programs in $bin"
      [ "$unpacked" = "$ROOT" ] || note "--build builds from the sources instead"
      return
    fi
  done
  cd "$ROOT"
  bin=$ROOT/build/bin
  if [ -x "$bin/longview-server" ] && ! command -v cmake >/dev/null; then
    say "Using the build in $bin (no cmake here to bring it up to date)"
    return
  fi
  [ -x "$bin/longview-server" ] || "$ROOT/deploy/install_deps.sh"
  say "Building build/bin/longview-server and build/bin/longview (a few minutes the first time)"
  if [ ! -f build/build.ninja ]; then
    said=$(cmake --preset release -DLONGVIEW_BUILD_TESTS=OFF 2>&1) || die "cmake: $said"
  fi
  deploy/progress.py build longview-server longview
}
find_programs

say "Starting the server"
ready=$(mktemp)
trap 'rm -f "$ready"' EXIT
"$bin/longview-server" ${flags[@]+"${flags[@]}"} >"$ready" &
server=$!
trap 'kill -TERM $server 2>/dev/null || true; rm -f "$ready"' EXIT
trap 'exit 130' INT TERM

until grep -q '^longview ready' "$ready"; do
  kill -0 $server 2>/dev/null || { wait $server || code=$?; die "the server stopped (exit ${code:-0})"; }
  sleep 0.2
done
cat "$ready" >&2
port=$(sed -n 's/.*grpc=\([0-9]*\).*/\1/p' "$ready")

ask_one_model "$bin/longview" "127.0.0.1:$port"

if $once; then
  say "Stopping (--once)"
  kill -INT $server
  wait $server
  trap 'rm -f "$ready"' EXIT
  exit 0
fi
say "Serving; Ctrl-C stops. The console is at http://localhost:$(sed -n 's/.*http=\([0-9-]*\).*/\1/p' "$ready")/"
wait $server
