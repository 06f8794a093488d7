#!/usr/bin/env bash
# MCAP beside PyPI's mcap and rosbags: mcap.sh BUILD_FOLDER. ROUNDS: repetitions (3); MEGABYTES: payload (1000), which
# lies on /dev/shm twice; STROBE_PYTHON: an interpreter with mcap and rosbags.
set -euo pipefail
build=${1:?usage: mcap.sh BUILD_FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$build/bench"
exec "${STROBE_PYTHON:-python3}" "$here/mcap_rates.py" "$build/bin/strobe_mcap_peer" --data "$here/../../../shared/data" -o "$build/bench/mcap.json"
