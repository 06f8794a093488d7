#!/usr/bin/env bash
# clang-tidy over the files given, or over every source of ours in the build's compile commands.
set -euo pipefail
build=${1:?usage: lint.sh BUILD_FOLDER [FILE...]}
shift
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then mapfile -t files < <(git ls-files 'src/*.cc' 'apps/*.cc' | grep -v '^src/engines/torch/'); else files=("$@"); fi
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet --warnings-as-errors='*'
