#!/usr/bin/env bash
# From a fresh Debian 12 to an answer: installs what is missing, builds, starts the server on
# the bundled models, sends a real request, prints the answer, keeps serving.
#
#   deploy/serve.sh [--once] [longview-server flags]
#
# --once stops after the request. Other arguments go to the server, for example
#   deploy/serve.sh --grpc_port=0 --http_port=0 my-model=/path/to/directory
set -euo pipefail
. "$(dirname "$0")/lib.sh"

once=false
flags=()
for argument in "$@"; do
  if [ "$argument" = --once ]; then once=true; else flags+=("$argument"); fi
done

"$ROOT/deploy/install_deps.sh"

say "Building build/bin/longview-server and build/bin/longview (a few minutes the first time)"
cd "$ROOT"
[ -f build/build.ninja ] || cmake --preset release >&2
cmake --build build --target longview-server longview >&2

say "Starting the server"
ready=$(mktemp)
trap 'rm -f "$ready"' EXIT
build/bin/longview-server ${flags[@]+"${flags[@]}"} >"$ready" &
server=$!
trap 'kill -TERM $server 2>/dev/null || true; rm -f "$ready"' EXIT
trap 'exit 130' INT TERM

until grep -q '^longview ready' "$ready"; do
  kill -0 $server 2>/dev/null || { wait $server || code=$?; die "the server stopped (exit ${code:-0})"; }
  sleep 0.2
done
cat "$ready" >&2
port=$(sed -n 's/.*grpc=\([0-9]*\).*/\1/p' "$ready")

say "A request: which language is server/scheduler/scheduler.h written in?"
note "build/bin/longview classify --server localhost:$port server/scheduler/scheduler.h"
build/bin/longview classify --server "localhost:$port" server/scheduler/scheduler.h

if $once; then
  say "Stopping (--once)"
  kill -INT $server
  wait $server
  trap 'rm -f "$ready"' EXIT
  exit 0
fi
say "Serving; Ctrl-C stops. The console is at http://localhost:$(sed -n 's/.*http=\([0-9-]*\).*/\1/p' "$ready")/"
wait $server
