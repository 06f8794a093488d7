"""`strobe sensors evaluate` beside nuscenes-devkit (PyPI) on the same files: loading and evaluating, one run.

nuscenes_metrics.py STROBE [--python P] [--scenes N --samples N --boxes N --sweeps N --rounds N]
P is an interpreter with nuscenes-devkit. The files are synthetic, of the shape of nuScenes' (40 key frames a scene).
Times are of the whole work without the start of the interpreter and its imports, which would only help Strobe: for
Strobe it is the process from start to end.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests/cli"
sys.path.insert(0, str(TESTS))
from nuscenes_database import Database  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("strobe")
    parser.add_argument("--python", default=sys.executable)
    for name, value in (("scenes", 10), ("samples", 40), ("objects", 150), ("sweeps", 9), ("boxes", 300), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        database = Database(1, args.scenes, args.samples, args.objects, args.sweeps)
        database.write(root)
        results = database.results(2, args.boxes)
        (root / "results.json").write_text(json.dumps(results))
        boxes = sum(map(len, results["results"].values()))
        size = sum(path.stat().st_size for path in root.rglob("*.json"))
        print(f"{args.scenes * args.samples} samples, {boxes} boxes, {len(database.tables['sample_annotation'])} "
              f"annotations, {len(database.tables['sample_data'])} sample_data, {size / 1e6:.1f} MB of JSON")
        ours, theirs = [], []
        for _ in range(args.rounds):
            start = time.perf_counter()
            done = subprocess.run([args.strobe, "sensors", "evaluate", root / "results.json", "--root", root, "--split",
                                   "every", "--format", "json"], capture_output=True, text=True, check=True)
            ours.append(time.perf_counter() - start)
            figures = json.loads(done.stdout)
            done = subprocess.run([args.python, TESTS / "nuscenes_peer.py", root, root / "results.json", "every"],
                                  capture_output=True, text=True, check=True)
            peer = json.loads(done.stdout)
            theirs.append(sum(peer["seconds"].values()))
            assert abs(peer["nd_score"] - figures["nd_score"]) < 1e-9, (peer["nd_score"], figures["nd_score"])
        best, peer_best = min(ours), min(theirs)
        print(f"nuscenes-devkit {peer_best:8.3f} s   ({', '.join(f'{t:.3f}' for t in theirs)})")
        print(f"strobe          {best:8.3f} s   ({', '.join(f'{t:.3f}' for t in ours)}), NDS equal to 1e-9")
        print(f"strobe is {peer_best / best:.0f} times faster")


if __name__ == "__main__":
    main()
