#!/usr/bin/env python3
"""strobe's extremely randomised trees beside scikit-learn's, on the same features, files and protocols.

    python3 benchmarks/peers/predict_sklearn.py DIR [--strobe build/release/bin/strobe] [--seeds 3]

DIR holds layers.csv and measurements.csv (docs/prediction.md). Needs scikit-learn and numpy. The features are computed
here once more, from the formulas of docs/prediction.md, so that a mistake in either program shows.
"""
import argparse
import collections
import csv
import json
import math
import pathlib
import subprocess

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

FIT_LEVELS = [0, 30, 50, 70, 90]


def ceil_div(a, b):
    return -(-a // b)


def features_of(row, b):
    r = {key: int(value) for key, value in row.items() if value.lstrip("-").isdigit()}
    channels, out, c = r["ic"], r["oc"], r["ic"] // r["groups"]
    k2, in2, out2 = r["kh"] * r["kw"], r["ih"] * r["iw"], r["oh"] * r["ow"]
    tensors = [out * c * k2, b * out * c * k2, 2 * b * channels * in2, 2 * b * out * out2]
    all_ = tensors + [sum(tensors)]
    im2col = [b * out2, b * out2 * k2 * channels, b * in2, b * in2 * k2 * channels, b * out2 * k2 * c]
    all_ += im2col + [sum(im2col[:2]), sum(im2col[2:]), sum(im2col)]
    forward, backward = b * out * out2 * k2 * c, b * channels * in2 * k2 * out
    all_ += [forward, backward, 2 * forward + backward]
    spectrum, back = r["ih"] * (r["iw"] + 1), r["oh"] * (r["ow"] + 1)
    fft = [spectrum * out * c, spectrum * b * channels, spectrum * b * out, back * out * c, back * b * out]
    all_ += fft + [fft[0] + fft[1], fft[3] + fft[4], fft[1] + fft[2], sum(fft)]
    maps = b * channels + b * out + out * c
    ops = [n * math.log2(n) / 2 * maps + b * out * channels * n for n in (in2, out2)]
    all_ += ops + [sum(ops), 2 * ops[0] + ops[1]]
    for m, k in ((4, 3), (3, 2)):
        tile = (m + k - 1) ** 2
        tiles, back_tiles = ceil_div(r["ih"], m) * ceil_div(r["iw"], m), ceil_div(r["oh"], m) * ceil_div(r["ow"], m)
        memory = [3 * b * out * tile * tiles, 3 * b * channels * tile * back_tiles, 3 * b * out * c * tile * tiles]
        all_ += memory + [sum(memory[:2]), sum(memory)]
        filters, gradients = ceil_div(r["kh"], k) * ceil_div(r["kw"], k), ceil_div(r["oh"], k) * ceil_div(r["ow"], k)
        ops = [b * out * c * tiles * filters * tile, b * channels * out * back_tiles * filters * tile,
               b * out * c * tiles * gradients * tile]
        all_ += ops + [sum(ops[:2]), sum(ops)]
    return all_


def samples_of(folder, quantity):
    """Network, level, features and value of each measurement that passed and whose layers are known."""
    convolutions = collections.defaultdict(list)
    with open(folder / "layers.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["type"] == "conv":
                convolutions[row["net"], row["level"]].append(row)
    with open(folder / "measurements.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] == quantity and row["passed"] == "1"
                and (row["net"], row["level"]) in convolutions]
    cache = {}

    def features(row):
        key = row["net"], row["level"], row["bs"]
        if key not in cache:
            cache[key] = np.sum([features_of(conv, int(row["bs"])) for conv in convolutions[key[:2]]], axis=0)
        return cache[key]

    return (np.array([row["net"] for row in rows]), np.array([int(row["level"]) for row in rows]),
            np.array([features(row) for row in rows]), np.array([float(row["value"]) for row in rows]))


def theirs(samples, protocol, seed):
    nets, levels, x, y = samples
    errors = {}
    for net in dict.fromkeys(nets):
        if protocol == "same":
            fit, test = (nets == net) & np.isin(levels, FIT_LEVELS), (nets == net) & ~np.isin(levels, FIT_LEVELS)
        else:
            fit, test = nets != net, nets == net
        trees = ExtraTreesRegressor(300, random_state=seed, n_jobs=-1).fit(x[fit], y[fit])
        errors[net] = 100 * np.mean(np.abs(trees.predict(x[test]) / y[test] - 1))
    return errors


def ours(arguments, quantity, protocol, seed):
    done = subprocess.run([arguments.strobe, "model", "evaluate", "--fit", arguments.folder, "--quantity", quantity,
                           "--model", "paper", "--protocol", protocol, "--seed", str(seed), "--format", "json"],
                          check=True, capture_output=True, text=True)
    return {net: scores["mape_percent"] for net, scores in json.loads(done.stdout)["by_network"].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--strobe", default="build/release/bin/strobe")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'protocol':14} {'quantity':9} {'network':14} {'strobe, MAPE %':>22} {'scikit-learn, MAPE %':>22}")
    for protocol in ("same", "leave-one-out"):
        for quantity in ("memory", "latency"):
            samples = samples_of(arguments.folder, quantity)
            seeds = range(1, arguments.seeds + 1)
            sides = [[ours(arguments, quantity, protocol, seed) for seed in seeds],
                     [theirs(samples, protocol, seed) for seed in seeds]]
            for net in [*sides[0][0], "mean"]:
                cells = []
                for side in sides:
                    values = [np.mean(list(run.values())) if net == "mean" else run[net] for run in side]
                    cells.append(f"{np.mean(values):.2f} ({min(values):.2f}..{max(values):.2f})")
                print(f"{protocol:14} {quantity:9} {net:14} {cells[0]:>22} {cells[1]:>22}", flush=True)


if __name__ == "__main__":
    main()
