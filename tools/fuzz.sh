#!/usr/bin/env bash
# Runs every libFuzzer target for so many seconds on its corpus, JOBS at a time; new inputs stay in the build folder.
# What a failing target said is printed at the end. FUZZ_SEED: a number other than 0 repeats a run.
set -uo pipefail
usage="usage: fuzz.sh BUILD_FOLDER SECONDS [JOBS]"
build=${1:?$usage}
seconds=${2:?$usage}
jobs=${3:-1}
cd "$(dirname "$0")/.."

fuzz_one() {
  local target=$1 noun found
  noun=$(basename "$target" | sed 's/^strobe_//; s/_fuzz$//')
  found=$build/corpus/$noun
  mkdir -p "$found"
  if "$target" -max_total_time="$seconds" -seed="${FUZZ_SEED:-0}" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$found/crash-" "$found" "tests/fuzz/corpus/$noun" >"$found.log" 2>&1; then
    echo "fuzz: $noun: $(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log") inputs in $seconds s, no fault"
  else
    tail -40 "$found.log"
    echo "fuzz: $noun FAILED; the input is in $found" >&2
    return 1
  fi
}
export -f fuzz_one
export build seconds
printf '%s\0' "$build"/bin/strobe_*_fuzz | xargs -0 -P "$jobs" -I{} bash -c 'fuzz_one {}'
