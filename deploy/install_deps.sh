#!/usr/bin/env bash
# Installs what the build needs on Debian 12: system packages, a recent cargo if there is
# none, LibTorch (the CPU part of a PyPI wheel, 1.2 GB on disk) and the CUDA compiler (271 MB)
# under .deps/. Idempotent; does nothing the second time.
#
#   deploy/install_deps.sh [--no-cuda]
#
# --no-cuda (or NO_CUDA=1 in the environment) leaves the CUDA compiler out: the build then makes no
# CUDA plugin, and the server runs on the CPU.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

TORCH_VERSION=2.11.0
CUDA_VERSION=13.0
OLDEST_CARGO=1.80

no_cuda=${NO_CUDA:-}
for argument in "$@"; do
  case $argument in
    --no-cuda) no_cuda=1 ;;
    *) die "unknown argument '$argument'; see the head of deploy/install_deps.sh" ;;
  esac
done

# libcurl and civetweb only satisfy prometheus-cpp's CMake file; nothing links them.
install_packages \
  build-essential ca-certificates ccache cmake git ninja-build python3 python3-venv \
  libabsl-dev libboost1.81-dev libc-ares-dev libcivetweb-dev libcurl4-openssl-dev libexif-dev \
  libgmock-dev libgrpc++-dev libgrpc-dev libgtest-dev libpng-dev libprotobuf-dev \
  libprotoc-dev libre2-dev libssl-dev libturbojpeg0-dev libwebp-dev \
  nlohmann-json3-dev pkg-config prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc \
  zlib1g-dev

cargo_version() { cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }
newer() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]; }
if ! newer "$(cargo_version)" "$OLDEST_CARGO"; then
  say "No cargo of at least $OLDEST_CARGO here: installing Debian's maintained one"
  install_packages cargo-web
fi

# Installs wheels of PyPI, without what they depend on, to a folder of their own.
# $1: folder under DEPS_DIR, $2: version that it is remembered by, $3...: packages.
wheels() {
  local folder=$DEPS_DIR/$1 version=$2
  shift 2
  rm -rf "$folder"
  [ -x "$DEPS_DIR/pip/bin/python" ] || python3 -m venv "$DEPS_DIR/pip"
  "$DEPS_DIR/pip/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --no-deps \
    --target "$folder" --progress-bar off "$@" >&2
  printf '%s' "$version" >"$folder/.version"
}

mkdir -p "$DEPS_DIR"
if [ "$(cat "$DEPS_DIR/libtorch/.version" 2>/dev/null)" != "$TORCH_VERSION" ]; then
  say "Installing LibTorch $TORCH_VERSION to $DEPS_DIR/libtorch (540 MB to download)"
  wheels libtorch "$TORCH_VERSION" "torch==$TORCH_VERSION" \
    'nvidia-cuda-cupti==13.0.*' 'nvidia-cuda-runtime==13.0.*'
fi
if [ -z "$no_cuda" ] && [ "$(cat "$DEPS_DIR/cuda/.version" 2>/dev/null)" != "$CUDA_VERSION" ]; then
  say "Installing the CUDA $CUDA_VERSION compiler to $DEPS_DIR/cuda (104 MB to download; --no-cuda leaves it out)"
  wheels cuda "$CUDA_VERSION" "nvidia-cuda-nvcc==$CUDA_VERSION.*" "nvidia-cuda-crt==$CUDA_VERSION.*" \
    "nvidia-nvvm==$CUDA_VERSION.*" "nvidia-cuda-runtime==$CUDA_VERSION.*" "nvidia-cuda-cccl==$CUDA_VERSION.*"
fi
