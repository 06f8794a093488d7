#!/usr/bin/env python3
"""The plain Python worker: read a batch with OpenCV, prepare it with OpenCV and numpy, run it with OpenVINO, one step
after the other, and log each step's times. Prints one line of JSON: frames, seconds, fps."""
import argparse
import csv
import json
import time

import cv2
import numpy as np
import openvino as ov


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("video")
    parser.add_argument("ir")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--csv", required=True)
    args = parser.parse_args()

    core = ov.Core()
    model = core.read_model(args.ir)
    _, channels, height, width = model.input(0).get_partial_shape().to_shape()
    model.reshape([args.batch, channels, height, width])
    network = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "THROUGHPUT"})
    request = network.create_infer_request()

    def prepare(frame):
        frame = cv2.resize(frame, (width, height))
        frame = cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)
        return frame.astype(np.float32).transpose(2, 0, 1) / 255

    batch = np.zeros((args.batch, channels, height, width), np.float32)
    for _ in range(3):
        request.infer([batch])
    capture = cv2.VideoCapture(args.video)
    frames = step = 0
    rows = []
    begin = time.perf_counter()
    while not args.steps or step < args.steps:
        t0 = time.perf_counter()
        pictures = []
        while len(pictures) < args.batch:
            ok, frame = capture.read()
            if not ok:
                break
            pictures.append(frame)
        if not pictures:
            break
        t1 = time.perf_counter()
        for i, frame in enumerate(pictures):
            batch[i] = prepare(frame)
        t2 = time.perf_counter()
        request.infer([batch])
        t3 = time.perf_counter()
        rows.append([step, 1e3 * (t1 - t0), 1e3 * (t2 - t1), 1e3 * (t3 - t2), 1e3 * (t3 - t0)])
        frames += len(pictures)
        step += 1
    seconds = time.perf_counter() - begin
    with open(args.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "read_latency_ms", "prep_latency_ms", "exec_latency_ms", "total_step_latency_ms"])
        writer.writerows(rows)
    print(json.dumps({"frames": frames, "seconds": seconds, "fps": frames / seconds}))


if __name__ == "__main__":
    main()
