# shellcheck shell=bash disable=SC2154  # tests/run.sh sets the variables.
# The part of tests/run.sh that runs the cluster's tests. LONGVIEW_BUILD names a folder whose programs
# are tested as they are; else they are built.

begin "Installing what is missing (cluster)"
if [ -z "${LONGVIEW_BUILD:-}" ]; then deploy/install_deps.sh --tests --no-cuda; fi
tests/support/install_clients.sh
tests/support/install_deploy_tools.sh || note "helm is missing: the chart's tests fail"
if [ "$(id -u)" = 0 ] && command -v go >/dev/null; then
  begin "Building Kubernetes"
  tests/support/install_cluster.sh || note "Kubernetes is missing: the cluster's tests are skipped"
fi

if [ -z "${LONGVIEW_BUILD:-}" ]; then
  begin "Building the server (release)"
  cmake --preset release -DLONGVIEW_WERROR=ON >"$results/configure.log" || { cat "$results/configure.log" >&2; exit 1; }
  cmake --build build --target longview-server longview -j "$jobs"
fi
begin "Packing the tarball"
# Where the archive lies is what cpack says: -B and the build's own settings differ between versions.
cpack --config "${LONGVIEW_BUILD:-build}/CPackConfig.cmake" -B "$results/pack" \
  -D CPACK_PACKAGE_DIRECTORY="$results/pack" >"$results/pack.log" || { cat "$results/pack.log" >&2; exit 1; }
LONGVIEW_TARBALL=$(sed -n 's/^CPack: - package: \(.*\.tar\.gz\) generated\.$/\1/p' "$results/pack.log")
[ -f "$LONGVIEW_TARBALL" ] || { cat "$results/pack.log" >&2; die "cpack made no tarball"; }
export LONGVIEW_TARBALL

begin "Tests in a cluster"
run_pytest cluster tests/cluster
