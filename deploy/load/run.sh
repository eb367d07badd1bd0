#!/usr/bin/env bash
# All load tests against a running server: installs ghz and matplotlib under .deps/ if they are
# missing, then runs run.py with the arguments given (--help lists them).
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
[ -x "$DEPS_DIR/bin/ghz" ] || command -v ghz >/dev/null || "$ROOT/tests/support/install_clients.sh"
python_env "$DEPS_DIR/load" 'matplotlib>=3.9'
exec "$DEPS_DIR/load/bin/python" "$ROOT/deploy/load/run.py" "$@"
