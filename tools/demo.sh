#!/usr/bin/env bash
# The main job on a real video: OpenCV's pedestrians (Debian's opencv-doc package).
set -euo pipefail
build=${1:?usage: demo.sh BUILD_FOLDER OUT_FOLDER}
out=${2:?usage: demo.sh BUILD_FOLDER OUT_FOLDER}
video=/usr/share/doc/opencv-doc/examples/data/vtest.avi
[ -e "$video" ] || video=$(dpkg -L opencv-doc 2>/dev/null | grep -m1 'vtest.avi' || true)
[ -n "$video" ] || { echo "demo: vtest.avi is missing: apt-get install opencv-doc" >&2; exit 2; }
mkdir -p "$out"
case $video in
  *.gz) gunzip -c "$video" >"$out/vtest.avi"; video=$out/vtest.avi ;;
esac
engines=$("$build/bin/strobe" info --format json | "${STROBE_PYTHON:-python3}" -c '
import json, sys
built = [e["name"] for e in json.load(sys.stdin)["engines"] if e["built"]]
print(",".join(name for name in ("torch", "openvino") if name in built) or ",".join(built[:1]))')
[ -n "$engines" ] || { echo "demo: no engine is built; see \`strobe doctor\`" >&2; exit 2; }
echo "demo: $video through our own person detector on $engines, 300 frames each"
"$build/bin/strobe" run --input "$video" --model person-tiny --engine "$engines" --frames 300 -o "$out"
traces=()
for engine in ${engines//,/ }; do
  trace=$out/$engine/trace.sqlite
  [ -e "$trace" ] || trace=$out/trace.sqlite
  traces+=("$trace")
done
"$build/bin/strobe" report "${traces[@]}" -o "$out/report.html"
echo
echo "report: $out/report.html"
find "$out" -name 'annotated.mp4' | sort | sed 's/^/video:  /'
