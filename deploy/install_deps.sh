#!/usr/bin/env bash
# Installs what the build needs on Debian 12 or 13: system packages, a recent cargo if there is none, and
# LibTorch (the CPU part of a PyPI wheel) under .deps/. Says what before it does. Idempotent; does nothing
# the second time. Ubuntu 24.04 is known by the names of its packages only (tests/deploy/test_build_hosts.py).
#
#   deploy/install_deps.sh [--tests] [--cuda | --no-cuda]
#
# --tests    also what only tests need (GoogleTest, and clang, which checks who holds which lock).
# --cuda     also the CUDA compiler, under .deps/ (CUDA=1 in the environment does the same): the build
#            then makes the CUDA plugin. Without it, only a machine with an NVIDIA device gets one.
# --no-cuda  no CUDA compiler on any machine (NO_CUDA=1 does the same).
#
# When it returns, the tokenizers crate may still be compiling in the background; the build waits for it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

TORCH_VERSION=2.11.0
CUDA_VERSION=13.0
OLDEST_CARGO=1.85
CRATE=$ROOT/models/text/tokenizer_ffi

cuda=auto
[ "${CUDA:-}" != 1 ] || cuda=yes
[ -z "${NO_CUDA:-}" ] || cuda=no
tests=false
for argument in "$@"; do
  case $argument in
    --tests) tests=true ;;
    --cuda) cuda=yes ;;
    --no-cuda) cuda=no ;;
    *) die "unknown argument '$argument'; see the head of deploy/install_deps.sh" ;;
  esac
done
if [ $cuda = auto ]; then
  if [ -e /dev/nvidia0 ] || [ -e /proc/driver/nvidia ]; then cuda=yes; else cuda=no; fi
fi

# libcurl and civetweb only satisfy prometheus-cpp's CMake file; nothing links them.
packages=(
  build-essential ca-certificates ccache cmake git ninja-build python3 python3-venv
  libabsl-dev libc-ares-dev libcivetweb-dev libcurl4-openssl-dev libexif-dev
  libgrpc++-dev libgrpc-dev libpng-dev libprotobuf-dev
  libprotoc-dev mold libre2-dev libssl-dev libstemmer-dev libjpeg-dev libturbojpeg0-dev libwebp-dev
  nlohmann-json3-dev pkg-config prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc
  zlib1g-dev
)
# Debian 12's default Boost is too old, so versions are named: Debian 12, Ubuntu 24.04 and Debian 13, Debian 13.
packages+=("$(first_offered libboost1.81-dev libboost1.83-dev libboost1.88-dev)")
if $tests; then packages+=(libgmock-dev libgtest-dev "$(first_offered clang-14 clang)"); fi

cargo_version() { cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }
newer() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]; }
# Prints the package of a cargo that will do: the distribution's own, else the one that Debian 12 keeps for
# browsers, else the newest of those that Ubuntu has beside each other.
cargo_package() {
  local versions
  if newer "$(offered cargo)" "$OLDEST_CARGO"; then
    echo cargo
  else
    mapfile -t versions < <(apt-cache pkgnames cargo-1. | sort -rV)
    first_offered cargo-web "${versions[@]}"
  fi
}
# Ubuntu has each cargo, and the rustc that belongs to it, in a folder of its own; models/text/CMakeLists.txt
# looks where the link lies.
use_versioned_cargo() {
  local folder
  newer "$(cargo_version)" "$OLDEST_CARGO" && return
  folder=$(printf '%s\n' /usr/lib/rust-1.*/bin | sort -V | tail -1)
  [ ! -x "$folder/cargo" ] || ln -sfn "$folder" "$DEPS_DIR/rust"
  [ ! -x "$DEPS_DIR/rust/cargo" ] || PATH=$DEPS_DIR/rust:$PATH
}
mkdir -p "$DEPS_DIR"
use_versioned_cargo
newer "$(cargo_version)" "$OLDEST_CARGO" || packages+=("$(cargo_package)")

installed() { [ "$(cat "$DEPS_DIR/$1/.version" 2>/dev/null)" = "$2" ]; }
mapfile -t missing < <(missing_packages "${packages[@]}")
compiles=false
[ ! -f "$CRATE/Cargo.toml" ] || [ -f "$DEPS_DIR/cargo-target/release/liblongview_tokenizer.a" ] || compiles=true
libtorch=false
installed libtorch "$TORCH_VERSION" || libtorch=true
if [ $cuda = yes ] && installed cuda "$CUDA_VERSION"; then cuda=no; fi
if [ ${#missing[@]} = 0 ] && ! $libtorch && [ $cuda = no ]; then exit 0; fi

# The list, before anything of it happens.
if [ ${#missing[@]} -gt 0 ]; then as_root apt-get update -qq; fi
say "Installing what is missing"
if [ ${#missing[@]} -gt 0 ]; then
  needs=$(apt_install --assume-no "${missing[@]}" 2>/dev/null | sed -n \
    -e 's/^Need to get \(.*\) of archives.*/\1 to download/p' \
    -e 's/^After this operation, \(.*\) of additional disk space.*/\1 on disk/p' | paste -sd,) || true
  note "Debian packages: ${missing[*]}"
  note "    and what they depend on: ${needs:-sizes unknown}"
fi
if $libtorch; then note "LibTorch $TORCH_VERSION in $DEPS_DIR/libtorch: 540 MB to download, 1.2 GB on disk"; fi
if [ $cuda = yes ]; then
  note "the CUDA $CUDA_VERSION compiler in $DEPS_DIR/cuda: 104 MB to download, 271 MB on disk (--no-cuda leaves it out)"
fi
if $compiles; then note "the crates of models/text/tokenizer_ffi: 7 MB to download, compiled in the background"; fi

# Installs wheels of PyPI, without what they depend on, to a folder of their own.
# $1: folder under DEPS_DIR, $2: version that it is remembered by, $3...: packages.
wheels() {
  local folder=$DEPS_DIR/$1 version=$2
  shift 2
  rm -rf "$folder"
  "$DEPS_DIR/pip/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --no-deps \
    --no-compile --target "$folder" --progress-bar off "$@"
  printf '%s' "$version" >"$folder/.version"
}
install_wheels() {
  trap - INT
  [ -x "$DEPS_DIR/pip/bin/python" ] || python3 -m venv "$DEPS_DIR/pip"
  if $libtorch; then
    wheels libtorch "$TORCH_VERSION" "torch==$TORCH_VERSION" \
      'nvidia-cuda-cupti==13.0.*' 'nvidia-cuda-runtime==13.0.*'
  fi
  if [ $cuda = yes ]; then
    wheels cuda "$CUDA_VERSION" "nvidia-cuda-nvcc==$CUDA_VERSION.*" "nvidia-cuda-crt==$CUDA_VERSION.*" \
      "nvidia-nvvm==$CUDA_VERSION.*" "nvidia-cuda-runtime==$CUDA_VERSION.*" "nvidia-cuda-cccl==$CUDA_VERSION.*"
  fi
}

# Compiles the tokenizers crate where models/text/CMakeLists.txt looks for it, under the same lock. Its
# errors are left to the build, which repeats the command.
compile_crate() {
  trap - INT
  exec env --unset=CARGO_TARGET_DIR flock --no-fork "$DEPS_DIR/cargo-target.lock" \
    cargo build --release --locked --quiet --manifest-path "$CRATE/Cargo.toml" \
    --target-dir "$DEPS_DIR/cargo-target" >/dev/null 2>&1
}

# Packages, wheels and the crate wait for the network, the disk and the processor by turns, so they run
# beside each other: each of the latter two begins when its tools are there.
wheels="" crate=""
log=$(mktemp)
trap 'rm -f "$log" "$log.apt"; kill $wheels $crate 2>/dev/null || true' EXIT
begin_what_can() {
  if [ -z "$wheels" ] && { $libtorch || [ $cuda = yes ]; } && python3 -c 'import ensurepip, venv' 2>/dev/null; then
    install_wheels >"$log" 2>&1 &
    wheels=$!
  fi
  if $compiles && [ -z "$crate" ] && command -v cc >/dev/null && newer "$(cargo_version)" "$OLDEST_CARGO"; then
    compile_crate &
    crate=$!
  fi
}
begin_what_can
if [ ${#missing[@]} -gt 0 ]; then
  # Files are not synced one by one, which takes longer than the rest.
  apt_install -y -qq -o Dpkg::Options::=--force-unsafe-io "${missing[@]}" >"$log.apt" 2>&1 ||
    { cat "$log.apt" >&2; die "apt-get failed, see above"; }
  use_versioned_cargo
  begin_what_can
fi
if [ -n "$wheels" ]; then
  wait "$wheels" || { cat "$log" >&2; die "pip failed, see above"; }
elif $libtorch || [ $cuda = yes ]; then
  die "python3 has no venv or ensurepip, which Debian's python3-venv brings: $(command -v python3)"
fi
rm -f "$log" "$log.apt"
trap - EXIT
