# shellcheck shell=bash
# Shared by the scripts of this project: talk, find the folders, run as root where needed.
# Source it; it sets ROOT (the checkout) and DEPS_DIR (what is not a system package).

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export DEPS_DIR=${DEPS_DIR:-$ROOT/.deps}

say() { printf '\n==> %s\n' "$*" >&2; }
note() { printf '    %s\n' "$*" >&2; }
die() {
  printf '\nerror: %s\n' "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "need root (or sudo) for: $*"
  fi
}

# Prints those of the named Debian packages that are not there.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# Prints the first of the named Debian packages that is installed, or else that apt offers.
first_offered() {
  local package again
  for package in "$@"; do
    if [ -z "$(missing_packages "$package")" ]; then
      echo "$package"
      return
    fi
  done
  # A fresh machine has no lists of packages, and an old one may have old lists.
  for again in false true; do
    ! $again || as_root apt-get update -qq >&2
    for package in "$@"; do
      if [ -n "$(apt-cache show --no-all-versions "$package" 2>/dev/null)" ]; then
        echo "$package"
        return
      fi
    done
  done
  die "apt offers none of: $* (see deploy/README.md for the systems that can build it)"
}

# Prints the version of a package that is installed or that apt would install; nothing where it knows none.
offered() { LC_ALL=C apt-cache policy "$1" | sed -n 's/^  Candidate: \([^(].*\)/\1/p'; }

apt_install() { as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get install --no-install-recommends "$@"; }

# Installs the named Debian packages that are not there yet, and says which.
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  apt_install -y -qq "${missing[@]}" >&2
}

# A virtual environment of the system's Python, made once.
# $1: folder, $2...: arguments of pip install; reinstalls when they or the files they name change.
python_env() {
  local folder=$1 argument
  shift
  local wanted="$*"
  for argument in "$@"; do
    [ ! -f "$argument" ] || wanted+=" $(sha256sum <"$argument" | cut -c1-16)"
  done
  [ "$(cat "$folder/.installed" 2>/dev/null)" = "$wanted" ] && return 0
  note "python packages: $wanted"
  [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check "$@" >&2
  printf '%s' "$wanted" >"$folder/.installed"
}

# Prints "name task" of each model that is ready; code-language, of which a question is at hand, first.
# $1: the program longview, $2: host:port.
ready_models() {
  "$1" models --json --server "$2" |
    sed -n '/"state":"READY"/s/^{"name":"\([^"]*\)".*"task":"\([^"]*\)".*/\1 \2/p' |
    awk '$1 == "code-language" {print; next} {rest = rest $0 "\n"} END {printf "%s", rest}'
}

# Prints a file to send: a source, or with the argument "picture" a page; nothing if there is none.
sample_of() {
  local file
  if [ "${1:-}" = picture ]; then
    set -- "$ROOT/models/zoo/samples/page.jpg" "$ROOT/share/longview/zoo/samples/page.jpg"
  else
    set -- "$ROOT/kernels/span/plan.h" "$ROOT/deploy/serve.sh"
  fi
  for file in "$@"; do
    [ ! -f "$file" ] || { echo "$file" && return; }
  done
}

# Sends a request that suits the task to a model that is there, and prints the answer, of which long
# lines are cut. $1: the program longview, $2: host:port.
ask_one_model() {
  local longview=$1 server=$2 model task picture text
  picture=$(sample_of picture)
  text=$(sample_of)
  while read -r model task; do
    case $task in
      text-classification) set -- classify --truncate "$text" ;;
      image-classification) set -- classify "$picture" ;;
      object-detection) set -- detect "$picture" ;;
      rerank) set -- rerank --truncate --query "How is a plan made?" "$text" ;;
      text-generation | text2text-generation) set -- generate --truncate --max_tokens 32 "$text" ;;
      image-*) set -- estimate --width 640 --height 480 ;;
      *) set -- embed --truncate "$text" ;;
    esac
    [ -n "${*: -1}" ] || continue
    if [ "$model" = code-language ]; then
      say "A request: which language is $(basename "$text") written in?"
    else
      say "A request to $model ($task)"
    fi
    note "$longview $1 --server $server --model $model ${*:2}"
    "$longview" "$1" --server "$server" --model "$model" "${@:2}" | cut -c1-200 && return
    # Of token ids alone, for example.
    note "and what such a request would cost:"
    "$longview" estimate --server "$server" --model "$model" --tokens 100 && return
  done < <(ready_models "$longview" "$server")
  note "the models here:"
  "$longview" models --server "$server"
}
