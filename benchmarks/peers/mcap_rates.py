"""MCAP beside PyPI's mcap and rosbags in one run: LiDAR sweeps written and read, GB of payload a second.

Each figure is the best of ROUNDS runs, the programs by turns. Files lie on tmpfs; payloads are one real sweep as a
PointCloud2 (or random bytes where the data is absent), each message with other first bytes. All readers verify the CRC
of every chunk. Strobe and mcap read the same file: one that mcap wrote.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import mcap
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

KINDS = {"none": CompressionType.NONE, "lz4": CompressionType.LZ4, "zstd": CompressionType.ZSTD}
# GB/s of the official C++ library on one thread and on another day, read without verifying CRC and write with it, each
# over PyPI mcap's figure of that day: what a ratio of ours to PyPI mcap is held against.
CPP_RATIO = {"read": {"none": (4.8 / 2.0, 6.0 / 2.0), "lz4": (2.4 / 1.0, 3.9 / 1.0), "zstd": (0.6 / 0.5, 1.6 / 0.5)},
             "write": {"none": (0.65 / 0.70, 1.1 / 0.70), "lz4": (0.38 / 0.26,) * 2, "zstd": (0.36 / 0.15,) * 2}}


def payload(data):
    sample = data / "sensors/mcap/nuscenes_sample_none.mcap"
    if not sample.exists():
        return os.urandom(693_929), "random bytes"
    with open(sample, "rb") as stream:
        for _, _, message in make_reader(stream).iter_messages(topics=["/LIDAR_TOP"]):
            return message.data, "a nuScenes sweep"


def peer_write(path, body, count, kind):
    body = bytearray(body)
    start = time.perf_counter()
    with open(path, "wb") as stream:
        writer = Writer(stream, compression=KINDS[kind])
        writer.start("ros2")
        schema = writer.register_schema("sensor_msgs/msg/PointCloud2", "ros2msg", b"uint8[] data")
        channel = writer.register_channel("/LIDAR_TOP", "cdr", schema)
        for i in range(count):
            at = i * 50_000_000
            body[:8] = at.to_bytes(8, "little")
            writer.add_message(channel, at, bytes(body), at, i)
        writer.finish()
    return time.perf_counter() - start


def peer_read(path, verify=True):
    start = time.perf_counter()
    total = 0
    with open(path, "rb") as stream:
        for _, _, message in make_reader(stream, validate_crcs=verify).iter_messages():
            total += len(message.data)
    assert total > 0
    return time.perf_counter() - start


def rosbags_read(path):
    from rosbags.rosbag2.storage_mcap import McapReader as Reader  # its reader of one file
    start = time.perf_counter()
    reader = Reader(pathlib.Path(path))
    reader.open()
    total = sum(len(item[-1]) for item in reader.messages(reader.connections, None, None))
    assert total > 0
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", 3)))
    parser.add_argument("--megabytes", type=int, default=int(os.environ.get("MEGABYTES", 1000)))
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    body, what = payload(args.data)
    count = args.megabytes * 1_000_000 // len(body)
    total = count * len(body) / 1e9

    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="strobe-mcap-") as folder:
        raw = f"{folder}/payload"
        pathlib.Path(raw).write_bytes(body)

        def ours(*words):
            done = subprocess.run([args.binary, *map(str, words)], capture_output=True, text=True, check=True)
            return float(done.stdout.split()[0])

        best = {}

        def note(name, seconds):
            best.setdefault(name, []).append(total / seconds)

        print(f"{count} messages of {len(body)} bytes ({what}), {total:.2f} GB, PyPI mcap {mcap.__version__}; "
              f"CRC-32 {len(body) / ours('crc', raw) / 1e9:.1f} GB/s", flush=True)
        for kind in KINDS:
            mine, theirs = f"{folder}/ours.mcap", f"{folder}/theirs.mcap"
            for _ in range(args.rounds):
                note(("write", kind, "mcap"), peer_write(theirs, body, count, kind))
                for threads in (1, 2):
                    note(("write", kind, f"strobe {threads}"), ours("write", mine, raw, count, kind, "fastest", threads))
                if kind == "zstd":
                    note(("write", kind, "strobe 1, default level"), ours("write", mine, raw, count, kind, "default", 1))
            for _ in range(args.rounds):
                note(("read", kind, "mcap"), peer_read(theirs))
                for threads in (1, 2):
                    note(("read", kind, f"strobe {threads}"), ours("read", theirs, threads, "time"))
            try:
                note(("read", kind, "rosbags (no CRC)"), rosbags_read(theirs))
            except Exception as fault:  # its inner interface is not promised to stay
                print(f"rosbags: skipped ({fault})", file=sys.stderr)
            os.unlink(mine)
            os.unlink(theirs)

    rows = []
    print(f"\n{'':6} {'':5} {'program':26} {'GB/s':>6} {'median':>7} {'/ mcap':>7}   C++ / mcap elsewhere")
    for (way, kind, name), rates in sorted(best.items(), key=lambda item: (item[0][0], list(KINDS).index(item[0][1]))):
        ratio = max(rates) / max(best[way, kind, "mcap"])
        low, high = CPP_RATIO[way][kind]
        rows.append({"way": way, "compression": kind, "program": name, "gb_per_s": max(rates),
                     "median": statistics.median(rates), "ratio": ratio})
        print(f"{way:6} {kind:5} {name:26} {max(rates):6.2f} {statistics.median(rates):7.2f} {ratio:7.2f}   {low:.1f} to {high:.1f}")
    if args.output:
        pathlib.Path(args.output).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
