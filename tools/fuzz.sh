#!/usr/bin/env bash
# Runs every libFuzzer target for so many seconds on its corpus; new inputs stay in the build folder.
set -uo pipefail
build=${1:?usage: fuzz.sh BUILD_FOLDER SECONDS}
seconds=${2:?usage: fuzz.sh BUILD_FOLDER SECONDS}
cd "$(dirname "$0")/.."
failed=0
for target in "$build"/bin/strobe_*_fuzz; do
  noun=$(basename "$target" | sed 's/^strobe_//; s/_fuzz$//')
  found=$build/corpus/$noun
  mkdir -p "$found"
  echo "fuzz: $noun for $seconds s"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
    -artifact_prefix="$found/crash-" "$found" "tests/fuzz/corpus/$noun" || { echo "fuzz: $noun FAILED" >&2; failed=1; }
done
exit $failed
