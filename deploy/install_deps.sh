#!/usr/bin/env bash
# Installs what the build needs on Debian 12: system packages, a recent cargo if there is
# none, and LibTorch (the CPU part of a PyPI wheel, 1.2 GB on disk) under .deps/.
# Idempotent; does nothing the second time.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

TORCH_VERSION=2.11.0
OLDEST_CARGO=1.80

# libcurl and civetweb only satisfy prometheus-cpp's CMake file; nothing links them.
install_packages \
  build-essential ca-certificates ccache cmake git ninja-build python3 python3-venv \
  libabsl-dev libboost1.81-dev libc-ares-dev libcivetweb-dev libcurl4-openssl-dev libexif-dev \
  libfmt-dev libgmock-dev libgrpc++-dev libgrpc-dev libgtest-dev libpng-dev libprotobuf-dev \
  libprotoc-dev libre2-dev libspdlog-dev libssl-dev libturbojpeg0-dev libwebp-dev \
  nlohmann-json3-dev pkg-config prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc \
  zlib1g-dev

cargo_version() { cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }
newer() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]; }
if ! newer "$(cargo_version)" "$OLDEST_CARGO"; then
  say "No cargo of at least $OLDEST_CARGO here: installing Debian's maintained one"
  install_packages cargo-web
fi

mkdir -p "$DEPS_DIR"
if [ "$(cat "$DEPS_DIR/libtorch/.version" 2>/dev/null)" != "$TORCH_VERSION" ]; then
  say "Installing LibTorch $TORCH_VERSION to $DEPS_DIR/libtorch (540 MB to download)"
  rm -rf "$DEPS_DIR/libtorch"
  [ -x "$DEPS_DIR/pip/bin/python" ] || python3 -m venv "$DEPS_DIR/pip"
  "$DEPS_DIR/pip/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --no-deps \
    --target "$DEPS_DIR/libtorch" --progress-bar off "torch==$TORCH_VERSION" \
    'nvidia-cuda-cupti==13.0.*' 'nvidia-cuda-runtime==13.0.*' >&2
  printf '%s' "$TORCH_VERSION" >"$DEPS_DIR/libtorch/.version"
fi
