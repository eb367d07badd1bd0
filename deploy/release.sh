#!/usr/bin/env bash
# Everything that a release offers, in one folder: the tarball, the wheel of the server, the wheel of
# the Python client, the bill of materials, the image where Docker is, and SHA256SUMS.
#
#   deploy/release.sh [FOLDER]        (FOLDER: dist)
#
# The same build gives the same bytes; files are dated SOURCE_DATE_EPOCH (the last commit).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
out=$(mkdir -p "${1:-$ROOT/dist}" && cd "${1:-$ROOT/dist}" && pwd)
cd "$ROOT"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
build=${LONGVIEW_BUILD:-$ROOT/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "${LONGVIEW_BUILD:-}" ]; then
  say "Building the programs"
  [ -f build/build.ninja ] || { deploy/install_deps.sh && cmake --preset release -DLONGVIEW_BUILD_TESTS=OFF >&2; }
  deploy/progress.py build longview-server longview
fi

version=$("$build/bin/longview-server" --version | sed -n '1s/^longview //p')
name=longview-$version-linux-x86_64
say "Tarball: $name.tar.gz"
cmake --install "$build" --prefix "$work/$name" --component runtime --strip >/dev/null
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  -C "$work" -c "$name" | gzip -n >"$out/$name.tar.gz"
cp "$work/$name/share/longview/sbom.spdx.json" "$out/longview-$version.spdx.json"

say "Wheel of the server"
python3 deploy/package/wheel.py --tarball "$out/$name.tar.gz" --out "$out" >&2

say "Wheel of the Python client"
python_env "$DEPS_DIR/release" "setuptools>=70" wheel "grpcio-tools>=1.74,<1.76"
cp -rL client/python "$work/python"
"$DEPS_DIR/release/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation \
  --disable-pip-version-check --wheel-dir "$out" "$work/python" >&2

if docker version >/dev/null 2>&1; then
  say "Image longview:$version"
  cp "$out/$name.tar.gz" build/
  docker build --quiet --build-arg PROGRAMS=tarball -f deploy/docker/Dockerfile \
    -t "longview:$version" . >&2
  docker save "longview:$version" | gzip -n >"$out/longview-$version-image.tar.gz"
else
  note "no image: there is no Docker daemon here"
fi

(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort |
  xargs -d '\n' sha256sum >SHA256SUMS)
say "In $out:"
cat "$out/SHA256SUMS"
