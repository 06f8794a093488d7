#!/usr/bin/env bash
# Fast checks of the source tree: format, the order of the rooms, public headers. Prints what is wrong, exits 1.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

if command -v clang-format >/dev/null; then
  bad=$(git ls-files '*.cc' '*.h' '*.c' | xargs clang-format --dry-run --Werror 2>&1 | grep -oE '^[^ :]+:[0-9]+' | sort -u | head -10)
  if [ -n "$bad" ]; then
    printf 'format: run `make format`; first places:\n%s\n' "$bad" >&2
    failed=1
  fi
else
  echo "check: clang-format is absent: the format was not checked" >&2
fi

python3 tools/check_rooms.py || failed=1
exit $failed
