#!/usr/bin/env bash
# The recorder beside its peers in one run: starts an LTTng session of its own where LTTng is installed, runs
# strobe_record_bench and prints the ratios of the medians. OUT: folder of the results; ROUNDS: repetitions (3); further
# words go to the benchmark.
set -euo pipefail
build=${1:?usage: recorders.sh BUILD_FOLDER [BENCHMARK OPTIONS]}
shift
here=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:-$build/bench}
mkdir -p "$OUT"

session=strobe-bench-$$
scratch=$(mktemp -d)
daemon=
clean_up() {
  if [ -n "$daemon" ]; then
    lttng destroy "$session" --no-wait >/dev/null 2>&1 || true
    # Only a daemon that this script started.
    [ "$daemon" = running ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; } || true
  fi
  rm -rf "$scratch"
}
trap clean_up EXIT

if command -v lttng-sessiond >/dev/null; then
  if lttng list >/dev/null 2>&1; then
    daemon=running
  else
    lttng-sessiond --no-kernel >"$scratch/sessiond.log" 2>&1 &
    daemon=$!
    for _ in $(seq 50); do
      lttng list >/dev/null 2>&1 && break
      sleep 0.1
    done
  fi
  # Buffers that hold a whole burst of every thread: an event that is dropped would be a cheap one.
  lttng create "$session" --output="$scratch/trace" >/dev/null
  lttng enable-channel --userspace --session="$session" --discard --subbuf-size=16M --num-subbuf=8 burst >/dev/null
  lttng enable-event --userspace --session="$session" --channel=burst 'strobe_bench:*' >/dev/null
  lttng start "$session" >/dev/null
  export LTTNG_UST_REGISTER_TIMEOUT=3000
fi

"$build/bin/strobe_record_bench" --benchmark_repetitions=${ROUNDS:-3} --benchmark_out="$OUT/record.json" --benchmark_out_format=json "$@" >"$OUT/record.txt"
if [ -n "$daemon" ]; then
  lttng stop "$session" >/dev/null
  lost=$(lttng list "$session" | sed -n 's/.*Discarded events: *//p' | head -1)
  echo "LTTng discarded ${lost:-0} events"
fi
python3 "$here/recorders.py" "$OUT/record.json"
