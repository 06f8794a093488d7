#!/usr/bin/env bash
# clang-tidy over the files given, or over every source of ours that the build compiles.
set -euo pipefail
build=${1:?usage: lint.sh BUILD_FOLDER [FILE...]}
shift
cd "$(dirname "$0")/.."
files=("$@")
if [ $# -eq 0 ]; then
  mapfile -t files < <(git ls-files 'src/*.cc' 'apps/*.cc' | grep -v '^src/engines/torch/' |
    while read -r file; do if grep -qF "/$file\"" "$build/compile_commands.json"; then echo "$file"; fi; done)
fi
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*'
