"""What strobe what-if predicts, against what happens when the change is made."""
import csv
import io
import json
import statistics
import unittest

import support


class WhatIf(support.Case):
    def run_pipeline(self, name, *flags):
        out = self.folder / name
        done = support.strobe("run", "-i", self.clip, "-m", self.network[0], "--weights", self.network[1], "-e", self.engine(),
                              "-q", "--limit-seconds", 0.2, "--profile-runs", 2, "-o", out, "--format", "csv", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def ask(self, trace, *flags):
        done = support.strobe("what-if", trace, "--format", "json", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        return answer, {row["metric"]: row for row in answer["answer"]["rows"]}

    def test_shorter_queues_hold_fewer_frames_as_predicted(self):
        self.clip = self.video(frames=300, size="640x480")
        self.network = support.write_tiny_network(self.folder)
        # The median of three experiments, or of more where other programs disturbed some of the runs.
        experiments = [self.change_of_queues(attempt) for attempt in range(3)]
        while len(experiments) < 9:
            measured_change, predicted_change = map(statistics.median, zip(*experiments))
            if max(measured_change, predicted_change) < 0.8 and abs(predicted_change / measured_change - 1) < 0.5:
                break
            experiments.append(self.change_of_queues(len(experiments)))
        self.assertLess(measured_change, 0.8)
        self.assertLess(predicted_change, 0.8)
        self.assertLess(abs(predicted_change / measured_change - 1), 0.5)

    def change_of_queues(self, attempt):
        """Frames under way with queues of 2 over those with 8: measured, predicted."""
        short, long = self.run_pipeline(f"short{attempt}", "--queue", 2), self.run_pipeline(f"long{attempt}", "--queue", 8)
        # Other programs change the speed of a run, but not the frames under way: latency times rate.
        _, was = self.ask(long)
        _, became = self.ask(short)
        _, predicted = self.ask(long, "--queue", 2)
        under_way = lambda rows, column: rows["p50_ms"][column] * rows["throughput"][column]
        return (under_way(became, "measured") / under_way(was, "measured"),
                under_way(predicted, "after") / under_way(predicted, "replay"))

    def test_replay_without_change_and_sweep(self):
        self.clip = self.video(frames=150, size="640x480")
        self.network = support.write_tiny_network(self.folder)
        for attempt in range(5):  # until other programs let one be
            out = self.run_pipeline(f"out{attempt}")
            answer, rows = self.ask(out, "--sweep")
            if abs(rows["throughput"]["error"]) < 0.25:
                break
        self.assertLess(abs(rows["throughput"]["error"]), 0.25)
        items = [row["item"] for row in answer["sweep"]["rows"]]
        self.assertEqual(sorted(items), ["stage:draw", "stage:infer", "stage:post", "stage:prep", "stage:read", "stage:write"])
        slowest = max(answer["sweep"]["rows"], key=lambda row: row["throughput_slope"])
        self.assertGreater(slowest["throughput_slope"], 0.1)
        # Every frame's account adds up to its latency in frames.csv.
        with open(out / "frames.csv") as file:
            frame = list(csv.DictReader(file))[70]
        done = support.strobe("critical-path", out, "--frame", frame["frame"], "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        path = json.loads(done.stdout)
        self.assertEqual(sum(row["path_ns"] for row in path["rows"]), path["length_ns"])
        self.assertAlmostEqual(path["length_ns"] / 1e6, float(frame["total_ms"]), delta=0.001)
        segments = support.strobe("critical-path", out, "--frame", frame["frame"], "--strict", "--segments", "--format", "csv")
        total = sum(int(row["duration_ns"]) for row in csv.DictReader(io.StringIO(segments.stdout)))
        self.assertEqual(total, path["length_ns"])
        self.refused(support.strobe("critical-path", out, "--frame", 100000), "no frame 100000", "0 to 149")
        self.refused(support.strobe("critical-path", out, "--range", "infr"), "infr", "infer")
        self.refused(support.strobe("what-if", out, "--scale", "stage:infr=2"), "infer")
        self.refused(support.strobe("what-if", out, "--scale", "infer"), "FACTOR")


if __name__ == "__main__":
    unittest.main()
