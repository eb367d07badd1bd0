#!/usr/bin/env bash
# Installs what the ring of real checkpoints compares with, under .deps/real. Idempotent.
set -euo pipefail
. "$(dirname "$0")/../../deploy/lib.sh"

say "sentence-transformers and torch (5 GB) in $DEPS_DIR/real"
python_env "$DEPS_DIR/real" -r "$ROOT/tests/real/requirements.txt"
