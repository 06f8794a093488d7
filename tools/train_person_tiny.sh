#!/usr/bin/env bash
# Trains the built-in person detector (src/models/weights/person-tiny.safetensors) with nothing but strobe: a stronger
# public network, Yolo-Fastest-1.1 "body" (github.com/dog-qiuqiu/Yolo-Fastest, public domain), labels OpenCV's sample
# video vtest.avi (Debian's opencv-doc), person-tiny learns the first four fifths of it, and the labels of the last
# fifth judge what it then finds. docs/models.md has the result.
set -euo pipefail
usage="usage: train_person_tiny.sh STROBE VIDEO TEACHER.cfg TEACHER.weights OUT_FOLDER"
strobe=${1:?$usage} video=${2:?$usage} cfg=${3:?$usage} weights=${4:?$usage} out=${5:?$usage}
mkdir -p "$out"
echo person >"$out/labels.txt"
"$strobe" frames annotate "$video" --model "$cfg" --weights "$weights" --labels "$out/labels.txt" --size 1152x864 \
  --threshold 0.5 -o "$out/teacher"
"$strobe" run --mode retrain --model person-tiny --weights none --input "$video" \
  --targets "$out/teacher/annotations.json" --hold-out 0.2 --epochs "${EPOCHS:-30}" --batch 16 --learning-rate 0.003 \
  --shuffle 256 -o "$out/trained"
"$strobe" frames annotate "$video" --model person-tiny --weights "$out/trained/weights.safetensors" --threshold 0.05 \
  -o "$out/student"
"$strobe" frames evaluate "$out/student/annotations.json" --truth "$out/trained/held_out.json"
