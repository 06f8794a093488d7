#!/usr/bin/env bash
# A LiDAR sweep of 694 kB at 20 Hz between two processes, over each transport: how many arrived, and their latency in ms.
# The library's own defaults take 11 ms a message (docs/ros2.md). Usage: dds.sh [BUILD_FOLDER] [COUNT]
set -euo pipefail
build=$(realpath "${1:-$(dirname "$0")/../../build/release}")
count=${2:-100}
export STROBE_PLUGIN_DIR=$build/lib/strobe
printf '%-14s %9s %8s %8s %8s\n' transport arrived p50_ms p95_ms max_ms
for transport in shared-memory udp all; do
  "$build/bin/strobe_dds_bench" "$transport" "$count" 20
done
