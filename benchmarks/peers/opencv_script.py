#!/usr/bin/env python3
"""The plain sequential script that people write first: read, cv2.dnn detect, draw, write, one frame after the other.

Prints one line of JSON: frames, seconds, end_to_end_fps, inference_fps (inverse of the mean time in detect), boxes.
"""
import argparse
import json
import pathlib
import time

import cv2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("video")
    parser.add_argument("cfg")
    parser.add_argument("weights")
    parser.add_argument("--names", default="")
    parser.add_argument("--size", type=int, default=320)
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    names = pathlib.Path(args.names).read_text().split("\n") if args.names else []
    model = cv2.dnn.DetectionModel(args.cfg, args.weights)
    model.setInputParams(size=(args.size, args.size), scale=1 / 255, swapRB=True)
    capture = cv2.VideoCapture(args.video)
    fps = capture.get(cv2.CAP_PROP_FPS)
    size = (int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)), int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)))
    writer = cv2.VideoWriter(args.out, cv2.VideoWriter_fourcc(*"mp4v"), fps, size)
    for _ in range(3):  # warm-up on a real frame, as ours has one
        ok, frame = capture.read()
        model.detect(frame, 0.3, 0.45)
    capture = cv2.VideoCapture(args.video)

    frames, boxes_seen, inference_s = 0, 0, 0.0
    begin = time.perf_counter()
    while not args.frames or frames < args.frames:
        ok, frame = capture.read()
        if not ok:
            break
        before = time.perf_counter()
        classes, scores, boxes = model.detect(frame, 0.3, 0.45)
        inference_s += time.perf_counter() - before
        for class_id, score, box in zip(classes, scores, boxes):
            x, y, w, h = box
            cv2.rectangle(frame, (x, y), (x + w, y + h), (0, 255, 0), 2)
            label = names[class_id] if class_id < len(names) else str(class_id)
            cv2.putText(frame, f"{label} {100 * score:.0f}%", (x, y - 4), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 255, 0), 1)
            boxes_seen += 1
        writer.write(frame)
        frames += 1
    writer.release()
    seconds = time.perf_counter() - begin
    print(json.dumps({"frames": frames, "seconds": seconds, "end_to_end_fps": frames / seconds,
                      "inference_fps": frames / inference_s, "boxes": boxes_seen, "opencv": cv2.__version__}))


if __name__ == "__main__":
    main()
