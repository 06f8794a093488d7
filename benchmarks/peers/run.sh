#!/usr/bin/env bash
# Every side-by-side measurement of docs/benchmarks.md. The peers live in a Python environment of their own, since
# OpenCV's last version that reads Darknet files wants an older numpy.
#   VIDEO, CFG, WEIGHTS, KINETO (case hta): what is run; ROUNDS: repetitions; CASES: which (default all); OUT: folder of
#   the results.
set -euo pipefail
build=${1:?usage: run.sh BUILD_FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
data=${STROBE_SHARED_DATA:-$root/../shared/data}
VIDEO=${VIDEO:-$data/video/vtest.avi}
[ -e "$VIDEO" ] || VIDEO=/usr/share/doc/opencv-doc/examples/data/vtest.avi
CFG=${CFG:-$data/models/yolo-fastest-1.1-xl.cfg}
WEIGHTS=${WEIGHTS:-$data/models/yolo-fastest-1.1-xl.weights}
OUT=${OUT:-$build/bench}
KINETO=${KINETO:-$data/traces/kineto/big_v100_216k.json.gz}

# HolisticTraceAnalysis in an environment of its own: its 0.6 is on PyPI as traceinsight.
hta() {
  if [ ! -e "$KINETO" ]; then
    echo "bench: hta skipped: $KINETO is missing: set KINETO" >&2
    return
  fi
  local venv=$root/build/deps/hta-venv
  if [ ! -e "$venv/.complete" ]; then
    echo "bench: HolisticTraceAnalysis into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check traceinsight==0.6.1
    touch "$venv/.complete"
  fi
  mkdir -p "$OUT"
  python3 "$here/hta.py" --build "$build" --python "$venv/bin/python3" --trace "$KINETO" --rounds "${ROUNDS:-3}" \
    --json "$OUT/hta.json"
}
if [[ " ${CASES:-hta} " == *" hta "* ]]; then
  hta
  if [ -n "${CASES:-}" ]; then
    CASES=${CASES//hta/}
    [ -n "${CASES// /}" ] || exit 0
  fi
fi

# MCAP, DDS and nuScenes' metrics beside PyPI's packages. A peer that cannot be had is passed over with a line.
sensors() {
  export STROBE_PYTHON=${STROBE_PYTHON:-$root/build/deps/venv/bin/python3}
  MEGABYTES=${MEGABYTES:-500} "$here/mcap.sh" "$build" || echo "bench: mcap failed" >&2
  "$here/dds.sh" "$build" || echo "bench: dds failed" >&2
  local venv=$root/build/deps/nuscenes-venv
  if [ ! -e "$venv/.complete" ]; then
    echo "bench: nuscenes-devkit into $venv" >&2
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check nuscenes-devkit==1.2.0 &&
      touch "$venv/.complete" || { echo "bench: nuscenes-devkit cannot be installed" >&2; return 0; }
  fi
  "$venv/bin/python3" "$here/nuscenes_metrics.py" "$build/bin/strobe" --python "$venv/bin/python3"
}
if [[ " ${CASES:-sensors} " == *" sensors "* ]]; then
  sensors
  if [ -n "${CASES:-}" ]; then
    CASES=${CASES//sensors/}
    [ -n "${CASES// /}" ] || exit 0
  fi
fi

for file in "$VIDEO" "$CFG" "$WEIGHTS"; do
  [ -e "$file" ] || { echo "bench: $file is missing: set VIDEO, CFG and WEIGHTS" >&2; exit 2; }
done

venv=$root/build/deps/bench-venv
if [ ! -e "$venv/.complete" ]; then
  echo "bench: the peers' Python packages into $venv" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "opencv-python-headless==4.11.0.86" "numpy<2.3" "openvino==2026.2.1"
  touch "$venv/.complete"
fi

mkdir -p "$OUT"
IR=${IR:-$OUT/network.xml}
[ -e "$IR" ] || "$venv/bin/python3" "$here/export_ir.py" "$CFG" "$WEIGHTS" "$IR"
if [[ " ${CASES:-workers} " == *" workers "* ]]; then
  "$venv/bin/python3" "$here/workers.py" --build "$build" --python "$venv/bin/python3" --video "$VIDEO" --ir "$IR" \
    --rounds "${ROUNDS:-3}" --cores "$(nproc)" --json "$OUT/workers.json"
  if [ -n "${CASES:-}" ]; then
    CASES=${CASES//workers/}
    [ -n "${CASES// /}" ] || exit 0
  fi
fi
"$build/bin/strobe_record_bench" --benchmark_out="$OUT/record.json" --benchmark_out_format=json
"$venv/bin/python3" "$here/side_by_side.py" ${CASES:-} --build "$build" --python "$venv/bin/python3" --video "$VIDEO" \
  --cfg "$CFG" --weights "$WEIGHTS" --rounds "${ROUNDS:-3}" --json "$OUT/side_by_side.json" --ir "$IR"
