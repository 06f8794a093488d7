"""The analyses of tenants, asked as a user would: a scenario is simulated, its truth lies beside its trace."""
import json
import unittest

import support

TENANT = """
  - name: {name}
    priority: {priority}
    cpu: cpu:0-1
    arrivals: {{rate_hz: 20, jitter_ms: 2, phase_ms: {phase}}}
    deadline_ms: 40
    stages:
      - {{name: prep, service: 1}}
      - name: infer
        operations: [{{name: conv, resource: device, count: 10, service: {{law: lognormal, ms: 1, spread: 0.3}}}}]
"""
HEAD = """
seed: 5
duration_s: 20
policy: fifo
resources: {device: {exclusive: 1, unit: layer}, "cpu:0-1": {cores: 2}}
recording: {sigma_us: 2}
tenants:"""


class TenantAnalyses(support.Case):
    def simulate(self, name, *tenants):
        file = self.folder / f"{name}.yaml"
        file.write_text(HEAD + "".join(TENANT.format(name=t, priority=i, phase=3 * i) for i, t in enumerate(tenants)))
        done = support.strobe("simulate", file, "-o", self.folder / name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / name

    def ask(self, *arguments):
        done = support.strobe(*arguments, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_blame_is_the_truth_and_adds_up(self):
        out = self.simulate("both", "a", "b")
        answer, truth = self.ask("blame", out), json.loads((out / "truth.json").read_text())
        key = lambda cell: (cell["tenant"], cell["by"], cell["resource"])
        found = {key(cell): cell["ns"] for cell in answer["cells"]}
        true = {key(cell): cell["ns"] for cell in truth["cells"]}
        off = sum(abs(found.get(k, 0) - true.get(k, 0)) for k in found.keys() | true.keys())
        self.assertLess(off / sum(true.values()), 0.02)
        self.assertAlmostEqual(sum(found.values()) - answer["switching_ns"], answer["excess_ns"], delta=1000)
        self.assertEqual(answer["unknown_ns"], 0)
        self.assertTrue(answer["because"])
        text = support.strobe("blame", out).stdout
        self.assertIn("because b held device", text)

    def test_what_if_forecast_and_path(self):
        out = self.simulate("both", "a", "b")
        answer = self.ask("what-if", out, "--scale", "tenant=a,stage=infer:0.5")
        self.assertLess(abs(answer["baseline_replay_error"]["p50"]), 0.01)
        self.assertLess(abs(answer["baseline_replay_error"]["p99"]), 0.03)
        self.assertTrue(answer["reliable"])
        self.assertLess(answer["after"]["p50_ms"], answer["before"]["p50_ms"])
        low, high = answer["after"]["ci95"]["p50_ms"]
        self.assertTrue(low <= answer["after"]["p50_ms"] <= high)
        self.assertEqual([row["tenant"] for row in answer["tenants"]], ["a", "b"])
        alone = [self.simulate(name, name) / "trace.sqlite" for name in ("a", "b")]
        forecast = self.ask("forecast", *alone, "--policy", "fifo", "--draws", 20)
        self.assertEqual([row["tenant"] for row in forecast["forecast"]], ["a", "b"])
        row = forecast["forecast"][0]
        self.assertLessEqual(row["no_interference"]["p99_ms"], row["p99_ms"])
        path = self.ask("critical-path", out, "--frame", 5, "--tenant", "b")
        self.assertEqual(sum(piece["path_ns"] for piece in path["rows"]), path["length_ns"])

    def test_refusals(self):
        out = self.simulate("both", "a", "b")
        self.refused(support.strobe("what-if", out, "--scale", "tenant=c:2"), "no tenant 'c'")
        self.refused(support.strobe("critical-path", out, "--frame", 5), "--tenant")
        self.refused(support.strobe("what-if", out, "--scale", "tenant=a:1e300"), "tenant=a:1e300", "at most 1000000")
        self.refused(support.strobe("what-if", out, "--rate", "tenant=a:1e9"), "--rate a", "at most")
        self.refused(support.strobe("forecast", out, "--policy", "fast"), "no policy")
        self.refused(support.strobe("forecast", out, "--memory", "1G", "--misses", 2), "--misses 2", "0 to 1")
        self.refused(support.strobe("forecast", out, "--misses", 0.1), "--misses", "--memory")
        for deadline, expected in (("0", "milliseconds above 0"), ("-5", "milliseconds above 0"), ("nan", "a number"),
                                   ("inf", "a finite number")):
            self.refused(support.strobe("deadline", out, "--deadline-ms", deadline), "--deadline-ms", deadline,
                         f"expected {expected}")
        bad = self.folder / "bad.yaml"
        bad.write_text(HEAD.replace("fifo", "fastest"))
        self.refused(support.strobe("simulate", bad, "-o", self.folder / "x"), "bad.yaml", "fastest")


if __name__ == "__main__":
    unittest.main()
