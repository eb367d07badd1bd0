#!/usr/bin/env bash
# Two minutes with the bundled models: each step prints numbers that show what the server is for.
#
#   deploy/demo.sh [--svg FILE]       writes what it prints as a picture, too
#
# Starts a server of its own from build/ (or $LONGVIEW_PREFIX) on free ports and ends it. On a machine that is
# busy with something else the numbers would be that machine's: LONGVIEW_ANY_LOAD=1 insists.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
busy=0.5 # Of the one-minute load.
load=$(cut -d' ' -f1 "${LONGVIEW_LOADAVG:-/proc/loadavg}")
if [ -z "${LONGVIEW_ANY_LOAD:-}" ] && awk "BEGIN { exit !($load > $busy) }"; then
  die "the machine is busy: its load of the last minute is $load, and the numbers are of an idle one (at most $busy).
    Wait a minute, or set LONGVIEW_ANY_LOAD=1 to run all the same."
fi
bin=${LONGVIEW_PREFIX:-$ROOT/build}/bin
[ -x "$bin/longview-server" ] || die "no $bin/longview-server; deploy/serve.sh --once builds it"
ready=$(mktemp)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -f "$ready"' EXIT
"$bin/longview-server" --grpc_port=0 --http_port=0 --log_level=warning "$ROOT/models/zoo" >"$ready" &
server=$!
until grep -q '^longview ready' "$ready"; do
  kill -0 $server 2>/dev/null || die "the server stopped"
  sleep 0.2
done
python3 "$ROOT/deploy/demo/demo.py" "http://localhost:$(sed -n 's/.*http=//p' "$ready")" "$@"
