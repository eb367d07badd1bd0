# shellcheck shell=bash
# The frame of gpu.sh and amx.sh: steps that run one after the other into one report. Source it.
#
# The sourcing script sets mode (measure or check) and report, and defines `unmet NEED`, which prints
# why a need is not met, `unneeded NEED`, which succeeds for what the mode does without, and for every
# step measure_NAME and check_NAME.

# shellcheck disable=SC2034,SC2154  # Scripts that source this read or set them.
declare -A SHOWS=() NEEDS=()
STEPS=()

# $1: name, $2: needs (`unmet`), $3: what it shows.
step() {
  STEPS+=("$1")
  NEEDS[$1]=$2
  SHOWS[$1]=$3
}

# Sets names to the steps of the list $1, split by commas; of an empty one, to all.
choose_steps() {
  local name
  names=("${STEPS[@]}")
  [ -n "$1" ] || return 0
  IFS=, read -r -a names <<<"$1"
  for name in "${names[@]}"; do
    [ -n "${SHOWS[$name]:-}" ] || die "there is no step '$name'; --list names them"
  done
}

list_steps() {
  local name
  for name in "${names[@]}"; do
    printf '%-12s %s\n%-12s needs: %s\n' "$name" "${SHOWS[$name]}" "" "${NEEDS[$name]}"
  done
}

# The first reason why step $1 cannot run.
left_out() {
  local need reason
  for need in ${NEEDS[$1]}; do
    ! unneeded "$need" || continue
    reason=$(unmet "$need")
    if [ -n "$reason" ]; then
      echo "$reason"
      return
    fi
  done
}

# Runs a command into the report, with its name and how long it took.
measured() {
  local start=$SECONDS status=0 log
  log=$(mktemp)
  printf '    $ %s\n\n' "${*//"$ROOT/"/}" >>"$report"
  "$@" 2>&1 | tee "$log" >&2 || status=$?
  sed 's/^/    /' "$log" >>"$report"
  rm -f "$log"
  printf '\n%d s%s\n\n' $((SECONDS - start)) "$([ $status = 0 ] || echo ", FAILED ($status)")" >>"$report"
  return $status
}

run_steps() {
  local name reason failed=() missing=()
  for name in "${names[@]}"; do
    printf '## %s: %s\n\n' "$name" "${SHOWS[$name]}" >>"$report"
    reason=$(left_out "$name")
    if [ -n "$reason" ]; then
      say "$name: left out, $reason"
      printf 'Not run: %s.\n\n' "$reason" >>"$report"
      missing+=("$name")
    else
      say "$name: ${SHOWS[$name]}"
      "${mode}_${name//-/_}" || failed+=("$name")
    fi
  done
  say "$((${#names[@]} - ${#failed[@]} - ${#missing[@]})) steps ran, left out: ${missing[*]:-none}, failed: ${failed[*]:-none}"
  [ ${#failed[@]} = 0 ] && { [ $mode = check ] || [ ${#missing[@]} = 0 ]; }
}
