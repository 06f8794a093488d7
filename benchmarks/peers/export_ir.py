#!/usr/bin/env python3
"""A Darknet network (cfg + weights) as OpenVINO IR, by OpenVINO's Python API alone: what benchmark_app and strobe then
both read. Sections: convolutional, maxpool, route, shortcut, upsample, dropout, yolo."""
import argparse
import pathlib

import numpy as np
import openvino as ov
from openvino import opset13 as op


def sections(text):
    found = []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif line:
            key, value = line.split("=", 1)
            found[-1][1].setdefault(key.strip(), value.strip())
    return found


class Weights:
    def __init__(self, path):
        data = path.read_bytes()
        version = np.frombuffer(data, np.int32, 2)
        header = 20 if version[0] * 10 + version[1] >= 2 else 16
        self.values = np.frombuffer(data, np.float32, offset=header)
        self.at = 0

    def take(self, *shape):
        count = int(np.prod(shape))
        self.at += count
        return self.values[self.at - count:self.at].reshape(shape)


def activation(x, kind):
    makers = {"linear": lambda: x, "leaky": lambda: op.prelu(x, np.array([0.1], np.float32)), "relu": lambda: op.relu(x),
              "logistic": lambda: op.sigmoid(x), "mish": lambda: op.mish(x), "swish": lambda: op.swish(x)}
    if kind not in makers:
        raise SystemExit(f"activation {kind}: not known here")
    return makers[kind]()


def convolution(x, keys, weights):
    size, stride = int(keys.get("size", 1)), int(keys.get("stride", 1))
    pad = size // 2 if int(keys.get("pad", 0)) else int(keys.get("padding", 0))
    groups, out = int(keys.get("groups", 1)), int(keys["filters"])
    into = x.get_shape()[1] // groups
    shift = weights.take(out)
    norm = [weights.take(out) for _ in range(3)] if int(keys.get("batch_normalize", 0)) else None
    kernel = weights.take(out, into, size, size)
    geometry = ([stride, stride], [pad, pad], [pad, pad], [1, 1])
    if groups == 1:
        x = op.convolution(x, op.constant(kernel), *geometry)
    else:
        kernel = kernel.reshape(groups, out // groups, into, size, size)
        x = op.group_convolution(x, op.constant(kernel), *geometry)
    if norm:
        scale, mean, variance = norm
        x = op.batch_norm_inference(x, scale, shift, mean, variance, 1e-6)
    else:
        x = op.add(x, op.constant(shift.reshape(1, out, 1, 1)))
    return activation(x, keys.get("activation", "logistic"))


def maxpool(x, keys):
    stride = int(keys.get("stride", 1))
    size = int(keys.get("size", stride))
    padding = int(keys.get("padding", size - 1))
    before = padding // 2
    return op.max_pool(x, [stride, stride], [1, 1], [before, before], [padding - before] * 2, [size, size])


def upsample(x, keys):
    scale = float(keys.get("stride", 2))
    return op.interpolate(x, op.constant(np.array([scale, scale], np.float32)), "nearest", "scales", [0, 0], [0, 0],
                          "asymmetric", "floor", axes=op.constant(np.array([2, 3])))


def build(cfg, weights):
    (_, net), *layers = sections(cfg.read_text())
    image = op.parameter([1, int(net.get("channels", 3)), int(net["height"]), int(net["width"])], np.float32, "input")
    x, made, heads = image.output(0), [], []
    for kind, keys in layers:
        other = [int(i) for i in keys.get("layers", keys.get("from", "0")).split(",")]
        other = [made[i if i >= 0 else len(made) + i] if made else None for i in other]
        if kind == "convolutional":
            x = convolution(x, keys, weights)
        elif kind == "maxpool":
            x = maxpool(x, keys)
        elif kind == "upsample":
            x = upsample(x, keys)
        elif kind == "shortcut":
            x = activation(op.add(x, other[0]), keys.get("activation", "linear"))
        elif kind == "route":
            x = other[0] if len(other) == 1 else op.concat(other, 1).output(0)
            groups, part = int(keys.get("groups", 1)), int(keys.get("group_id", 0))
            x = op.split(x, 1, groups).output(part) if groups > 1 else x
        elif kind == "yolo":
            heads.append(x)  # boxes are not decoded
        elif kind != "dropout":
            raise SystemExit(f"[{kind}]: not known here")
        x = x if isinstance(x, ov.Output) else x.output(0)
        made.append(x)
    if weights.at != len(weights.values):
        raise SystemExit(f"{len(weights.values) - weights.at} weights are left over")
    return ov.Model(heads, [image], cfg.stem)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cfg", type=pathlib.Path)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, help="MODEL.xml; the weights go to MODEL.bin")
    args = parser.parse_args()
    ov.save_model(build(args.cfg, Weights(args.weights)), args.out, compress_to_fp16=False)


if __name__ == "__main__":
    main()
