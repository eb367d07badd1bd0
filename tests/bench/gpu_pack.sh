# shellcheck shell=bash
# gpu.sh --pack: programs, scripts and fixtures as one folder that runs where nothing can be built.
# Source it behind gpu.sh's own.
#
# LibTorch is not in it: a GPU machine has torch 2.11.0 with CUDA for the peers, and that is the
# build the programs were linked with.

# Libraries that a program of the folder $1 needs, but for the compiler's, glibc's and LibTorch's.
needed_libraries() {
  ldd "$1"/* 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    grep -Ev '/lib(stdc\+\+|gcc_s|c|m|dl|rt|pthread|resolv|util)\.so|/lib(torch|c10|gomp|cupti|cudart|cudnn)' || true
}

# Writes the tarball $1.
pack() {
  local file=$1 folder name top
  top=longview-gpu
  folder=$(mktemp -d)
  # shellcheck disable=SC2064  # The folder is a local variable: gone when the trap runs.
  trap "rm -rf '$folder'" EXIT
  mkdir -p "$folder/$top"/{build/bin,lib,tests,deploy,models}
  for name in $(packed_programs); do
    [ -e "$BIN/$name" ] || die "$BIN/$name is not built"
    cp -L "$BIN/$name" "$folder/$top/build/bin/"
  done
  needed_libraries "$folder/$top/build/bin" | xargs -r cp -L -t "$folder/$top/lib"
  cp -r "$ROOT/tests/bench" "$ROOT/tests/support" "$folder/$top/tests/"
  cp -rL "${LONGVIEW_GOLDEN:-$ROOT/tests/golden}" "$folder/$top/tests/golden"
  mkdir -p "$folder/$top/tests/e2e" "$folder/$top/models/zoo"
  cp "$ROOT/tests/e2e/server_process.py" "$folder/$top/tests/e2e/"
  cp -r "$ROOT/deploy/load" "$ROOT/deploy/lib.sh" "$folder/$top/deploy/"
  cp -r "$ROOT/models/zoo/code-language" "$folder/$top/models/zoo/"
  cp "$ROOT/LICENSE" "$folder/$top/"
  git -C "$ROOT" describe --always --dirty >"$folder/$top/VERSION"
  if name=$(PATH=$DEPS_DIR/bin:$PATH command -v ghz); then
    mkdir -p "$folder/$top/.deps/bin"
    cp -L "$name" "$folder/$top/.deps/bin/"
  else
    note "there is no ghz here: the step 'load' will need one there"
  fi
  find "$folder" -name __pycache__ -prune -exec rm -rf {} +
  tar -C "$folder" -czf "$file" "$top"
  say "$file: $(du -h "$file" | cut -f1); there: tar xzf, then PYTHON=... $top/tests/bench/gpu.sh"
}

# The parts of the build that the steps need.
packed_programs() {
  local name need
  for name in "${STEPS[@]}"; do
    for need in ${NEEDS[$name]}; do
      case $need in bin:*) echo "${need#bin:}" ;; esac
    done
  done
  device_tests | xargs -r -n 1 basename
}
