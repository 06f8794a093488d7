"""What only a real NVIDIA device can say: that NVIDIA's libraries do what the stand-ins of the other tests do. Skipped where
there is no driver or no GPU, each test with its reason. A machine's clocks are left alone."""
import array
import csv
import ctypes
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import unittest

from run_gpu import BARE, KERNELS, LIB, GpuCase
from support import STROBE, built_engines

WORST_EARLY_NS = 2000  # of a kernel before its launch, by two clocks


@functools.cache
def devices():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return 0 if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) else count.value


@functools.cache
def python_with_cuda():
    """An interpreter whose torch has a device, or None. CMake's own need not be the one that python3 is."""
    for python in (os.environ.get("STROBE_TEST_PYTHON"), shutil.which("python3"), sys.executable):
        if python and subprocess.run([python, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True,
                                     check=False).returncode == 0:
            return python
    return None


@unittest.skipUnless(devices(), "no NVIDIA device here")
class HardwareCase(GpuCase):
    TIMEOUT = 600  # CUDA's libraries are gigabytes, each command loads them anew

    def setUp(self):
        super().setUp()
        self.environment = dict(os.environ)

    def run_it(self, *flags, engine="torch", model="yolov4-tiny", frames=12, code=0):
        done = self.strobe("run", "--input", self.made(frames), "--model", model, "--engine", engine, "--size", "96x96", "-q",
                           "--format", "json", "-o", self.out, *BARE, *flags, code=code)
        return json.loads(done.stdout)["runs"] if code == 0 else done.stderr

    def values(self, folder):
        found = {}
        for path in sorted(folder.glob("*.f32")):
            found[path.name] = array.array("f", path.read_bytes())
        self.assertTrue(found)
        return found

    def check_values(self, folder, right, allowed):
        for name, values in self.values(folder).items():
            worst = max(abs(a - b) / (1 + abs(b)) for a, b in zip(values, right[name], strict=True))
            self.assertLess(worst, allowed, name)

    def check_device_times(self, trace):
        facts = self.facts(trace)
        self.assertEqual(facts["gpu.collection"], "on")
        self.assertGreater(int(facts["gpu.causality.operations"]), 0)
        self.assertLessEqual(int(facts["gpu.causality.worst_ns"]), WORST_EARLY_NS, facts)
        # Every kernel has the call that launched it.
        lost = self.rows(trace, """SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE NOT EXISTS (
            SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId
            AND r.globalTid / 16777216 = k.globalPid / 16777216)""")
        self.assertEqual(lost, [(0,)])


@unittest.skipUnless(devices() and python_with_cuda(), "no PyTorch with CUDA, or no device")
class Programs(HardwareCase):
    """Programs of PyTorch under `strobe record`."""

    STEPS = 20
    PROGRAM = f"""
import torch
x, y = torch.ones(256, 1024, pin_memory=True), torch.empty(256, 1024, device="cuda")
torch.cuda.synchronize()
for _ in range({STEPS}):
    with torch.cuda.nvtx.range("step"):
        y.copy_(x, non_blocking=True)
        with torch.cuda.nvtx.range("work"):
            z = y * 2 + 1
        assert z.sum().item() == 3 * 256 * 1024
"""

    def record(self, program, *flags, code=0):
        trace = self.folder / "t.sqlite"
        done = self.strobe("record", "--format", "json", *flags, "-o", trace, "--", python_with_cuda(), "-c", program, code=code)
        return trace, next(json.loads(line) for line in done.stderr.splitlines() if line.startswith("{"))

    def count_by(self, trace, key):
        counts = {}
        for row in self.answer("kernels", trace, "--by", key):
            counts[row[key]] = counts.get(row[key], 0) + row["count"]
        return counts

    def test_kernels_copies_calls_and_ranges(self):
        trace, summary = self.record(self.PROGRAM)
        self.assertEqual((summary["dropped"], summary["faults"]), (0, {}), summary)
        self.check_device_times(trace)
        self.assertEqual(self.count_by(trace, "range")["work"], 2 * self.STEPS)
        copies = self.rows(trace, f"SELECT copyKind, COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE bytes = {1 << 20} GROUP BY 1")
        self.assertEqual(copies, [(1, self.STEPS)])
        [(back,)] = self.rows(trace, "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 2")
        self.assertGreaterEqual(back, self.STEPS)
        self.assertGreater(self.rows(trace, "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")[0][0], 0)
        self.assertTrue(self.counters(trace, "gpu.0.allocated_bytes"))

    def test_threads_and_processes(self):
        trace, _ = self.record("""
import os, subprocess, sys, threading, torch
def work():
    x = torch.ones(1000, device="cuda")
    for _ in range(50): x += 1
    torch.cuda.synchronize()
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
subprocess.run([sys.executable, "-c", "import torch; x = torch.ones(9, device='cuda') * 2; torch.cuda.synchronize()"], check=True)
""")
        self.check_device_times(trace)
        self.assertEqual(self.rows(trace, "SELECT COUNT(DISTINCT globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL"), [(2,)])
        [(threads,)] = self.rows(trace, """SELECT COUNT(DISTINCT r.globalTid) FROM CUPTI_ACTIVITY_KIND_RUNTIME r
            JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId
            AND r.globalTid / 16777216 = k.globalPid / 16777216""")
        self.assertEqual(threads, 4)

    def test_kernels_of_a_graph_belong_to_the_range_of_their_capture(self):
        program = """
import torch
x = torch.ones(1000, device="cuda")
def body():
    with torch.cuda.nvtx.range("first"): y = x * 2
    with torch.cuda.nvtx.range("second"): return y.sin() + 1
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    body()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    z = body()
for _ in range(10): graph.replay()
torch.cuda.synchronize()
"""
        trace, summary = self.record(program)
        whole = self.rows(trace, "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
        self.assertEqual(whole, [(10,)])
        trace, _ = self.record(program, "--gpu-graph-nodes")
        self.check_device_times(trace)
        counts = self.count_by(trace, "range")
        # Once before the capture, and ten launches of it.
        self.assertEqual((counts["first"], counts["second"]), (11, 22))

    def test_torch_profiler_inside_is_told_or_both_collect(self):
        """Two clients of CUPTI: whoever loses says so, the program runs on."""
        trace, summary = self.record("""
import torch
with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profiler:
    x = torch.ones(1000, device="cuda")
    for _ in range(20): x = x * 2
    torch.cuda.synchronize()
assert profiler.events()
""")
        if not self.has_kernels(trace):
            self.assertIn("off: another CUPTI client", self.facts(trace)["gpu.collection"], summary)

    def test_use_energy_and_clocks_of_a_busy_device(self):
        trace, summary = self.record("""
import time, torch
a = torch.randn(4096, 4096, device="cuda")
end = time.monotonic() + 4
while time.monotonic() < end:
    for _ in range(20): b = a @ a
    torch.cuda.synchronize()
""")
        facts = self.facts(trace)
        self.assertIn("on: NVML", facts["gpu.sampling"])
        gpu = summary["gpus"][0]
        self.assertGreater(gpu["mean_w"], 50)
        busy = [value for _, value in self.counters(trace, "gpu.0.busy_percent")]
        self.assertGreater(max(busy), 90)
        self.assertGreater(max(value for _, value in self.counters(trace, "gpu.0.memory_used_bytes")), 64 << 20)
        # The energy counter and the power of the same stretch tell the same.
        energy = self.counters(trace, "gpu.0.energy_j")
        power = self.counters(trace, "gpu.0.power_w")
        joules, seconds = energy[-1][1] - energy[0][1], (energy[-1][0] - energy[0][0]) / 1e9
        mean = statistics.fmean(value for at, value in power if energy[0][0] <= at <= energy[-1][0])
        self.assertAlmostEqual(joules / seconds, mean, delta=0.2 * mean)

    BUSY = """
import torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
for _ in range(300): b = a @ a
torch.cuda.synchronize()
"""

    def test_hardware_counters_by_sampling(self):
        trace, _ = self.record(self.BUSY, "--gpu-metrics")
        said = self.facts(trace)["gpu.metrics"]
        if not said.startswith("on"):
            self.skipTest(said)
        self.check_device_times(trace)
        rows = {row["name"]: row for row in self.answer("kernels", trace, "--metrics")}
        most = max(rows.values(), key=lambda row: row["device_ns"])
        self.assertGreater(most["sm_busy_percent"], 50, rows)
        self.assertGreater(most["tensor_percent"], 20, rows)

    def test_hardware_counters_by_replay(self):
        plain, _ = self.record(self.BUSY.replace("300", "5"))
        plain = plain.rename(self.folder / "plain.sqlite")
        counters = self.folder / "counters.sqlite"
        done = self.strobe("record", "--gpu-replay-metrics", "-o", counters, "--", python_with_cuda(), "-c", self.BUSY.replace("300", "5"))
        if "off:" in done.stderr:
            self.skipTest(done.stderr)
        rows = self.answer("kernels", plain, "--replay-metrics", counters)
        most = max(rows, key=lambda row: row.get("tensor_percent") or 0)
        self.assertEqual(most["count"], most["matched"])
        self.assertGreater(most["tensor_percent"], 20, rows)
        self.assertGreater(most["sm_busy_percent"], 50, rows)


@unittest.skipUnless(devices(), "no NVIDIA device here")
class Engine(HardwareCase):
    """`strobe run` on the GPU with torch."""

    def setUp(self):
        super().setUp()
        if "torch" not in built_engines():
            self.skipTest("engine torch is not built")
        if not python_with_cuda():
            self.skipTest("torch has no CUDA here")

    def test_every_variant_and_precision_computes_what_the_cpu_does(self):
        self.run_it("--dump-outputs", self.folder / "cpu")
        right = self.values(self.folder / "cpu")
        for engine, precision, allowed in (("torch:eager", "f32", 1e-3), ("torch:script", "f32", 1e-3),
                                           ("torch:graph", "f32", 1e-3), ("torch:eager", "f16", 0.05),
                                           ("torch:eager", "bf16", 0.1)):
            with self.subTest(engine=engine, precision=precision):
                if engine == "torch:graph":
                    self.need_graphs()
                folder = self.folder / f"{engine}-{precision}".replace(":", "-")
                self.run_it("--infer-on-gpu", "--precision", precision, "--dump-outputs", folder, engine=engine)
                self.check_values(folder, right, allowed)

    def test_kernels_belong_to_layers_stages_and_frames(self):
        [run] = self.run_it("--infer-on-gpu")
        self.check_device_times(run["trace"])
        kernels = self.rows(run["trace"], KERNELS)[0][0]
        self.assertGreater(kernels, 12 * 20)
        frames = {row["frame"] for row in self.answer("kernels", run["trace"], "--by", "frame")}
        self.assertEqual(frames - {None}, set(range(12)))
        stages = {row["stage"] for row in self.answer("kernels", run["trace"], "--by", "stage")}
        self.assertEqual(stages - {None}, {"infer"})
        eager = self.layers_of(run["trace"])
        self.assertGreater(len(eager), 20)
        self.need_graphs()
        # The same kernels in one graph, told apart by the layers of its capture. Two passes before that belong to none,
        # and are slow: the frames are many, so that those are little beside them.
        [run] = self.run_it("--infer-on-gpu", "--gpu-graph-nodes", engine="torch:graph", frames=100)
        self.assertEqual(set(self.layers_of(run["trace"])), set(eager))

    def need_graphs(self):
        if not (LIB / "strobe" / "libstrobe_torch_cuda_graph.so").exists():
            self.skipTest("torch:graph is not built: CUDA's headers were absent")

    def layers_of(self, trace):
        """Kernels of the frames by layer; nearly all time must have one."""
        by_layer, whole = {}, 0
        for row in self.answer("kernels", trace, "--by", "layer"):
            whole += row["total_ns"]
            if row["layer"] not in (None, "infer", "strobe run"):
                by_layer[row["layer"]] = by_layer.get(row["layer"], 0) + row["total_ns"]
        self.assertGreater(sum(by_layer.values()), 0.9 * whole, by_layer)
        return by_layer

    def test_layers_have_times(self):
        done = self.strobe("run", "--input", self.made(12), "--model", "yolov4-tiny", "--engine", "torch", "-q", "--infer-on-gpu",
                           "--no-video", "--limit-seconds", "0", "--profile-runs", "5", "-o", self.out)
        rows = self.answer("layers", self.out / "trace.sqlite")
        self.assertGreater(len(rows), 20, done.stderr)

    def test_a_split_network(self):
        [run] = self.run_it("--infer-on-gpu", "--split-point", "resnet18:layer2.0.add", model="resnet18")
        self.assertEqual(run["frames"], 12)
        self.assertTrue(self.has_kernels(run["trace"]))

    def test_training_learns_as_on_the_cpu(self):
        losses = {}
        for device, flags in (("cpu", []), ("gpu", ["--infer-on-gpu"])):
            out = self.folder / device
            done = self.strobe("run", "--mode", "retrain", "--input", self.made(16), "--model", "resnet18", "--size", "64x64",
                               "--weights", "none", "--batch-size", "4", "--max-steps", "4", "--shuffle", "1", "--no-augment", "-q",
                               "--engine", "torch", "-o", out, *flags)
            [steps] = out.glob("M_*_metrics.csv")
            with open(steps, encoding="utf-8") as file:
                losses[device] = [float(row["loss"]) for row in csv.DictReader(file)]
            self.assertEqual(len(losses[device]), 4, done.stderr)
        for cpu, gpu in zip(losses["cpu"], losses["gpu"], strict=True):
            self.assertAlmostEqual(cpu, gpu, delta=0.02 * (1 + abs(cpu)))

    def test_pictures_prepared_on_the_gpu(self):
        self.run_it("--infer-on-gpu", "--dump-outputs", self.folder / "host")
        self.run_it("--infer-on-gpu", "--prep-on-gpu", "--dump-outputs", self.folder / "device")
        right = self.values(self.folder / "host")
        for name, values in self.values(self.folder / "device").items():
            mean = statistics.fmean(abs(a - b) / (1 + abs(b)) for a, b in zip(values, right[name], strict=True))
            self.assertLess(mean, 0.02, name)

    def test_a_device_that_is_not_there(self):
        said = self.run_it("--infer-on-gpu", "--device-id", "77", code=2)
        self.refused(subprocess.CompletedProcess([], 2, "", said), "cuda:77", "CUDA sees")

    def test_tenants_share_the_device(self):
        for policy in ("concurrent", "fifo", "priority-preemptive", "round-robin"):
            for isolation in ("threads", "processes"):
                with self.subTest(policy=policy, isolation=isolation):
                    path = self.folder / "study.yaml"
                    path.write_text(f"""
name: shared
duration: 2s
warmup: 500ms
policy: {policy}
isolation: {isolation}
defaults: {{engine: torch, device: "cuda:0", source: "{self.made(100000)}", layers: true}}
tenants:
  - {{name: a, model: resnet18, rate: 30, priority: 2}}
  - {{name: b, model: resnet50, rate: 20, priority: 1}}
""")
                    done = self.strobe("run", path, "-q", "-o", self.out, "--again", "--format", "json")
                    [cell] = json.loads(done.stdout)["cells"]
                    self.assertEqual(cell["status"], "success", cell)
                    self.check_device_times(cell["trace"])
                    tenants = {row["tenant"] for row in self.answer("kernels", cell["trace"], "--by", "tenant")}
                    self.assertLessEqual({"a", "b"}, tenants)
                    if policy == "fifo":
                        self.check_turns(cell["trace"])

    def check_turns(self, trace):
        """Where tenants take turns, the device never works for two streams at once. In the second half: networks are
        loaded and warmed up before."""
        spans = self.rows(trace, """SELECT start, end, globalPid * 1000 + streamId FROM CUPTI_ACTIVITY_KIND_KERNEL
            WHERE start > (SELECT (MIN(start) + MAX(end)) / 2 FROM CUPTI_ACTIVITY_KIND_KERNEL) ORDER BY start""")
        self.assertGreater(len({stream for _, _, stream in spans}), 1)
        latest = {}
        for start, end, stream in spans:
            for other, until in latest.items():
                if other != stream:
                    self.assertLessEqual(until, start + WORST_EARLY_NS)
            latest[stream] = max(latest.get(stream, 0), end)


@unittest.skipUnless(devices() and python_with_cuda(), "no PyTorch with CUDA, or no device")
class Measures(HardwareCase):
    """Memory, latency and speed of the device, as `strobe model profile` and `calibrate` say them."""

    def setUp(self):
        super().setUp()
        if "torch" not in built_engines():
            self.skipTest("engine torch is not built")

    def measured(self, *flags, code=0):
        self.strobe("model", "profile", "--device", "cuda:0", "--networks", "resnet18", "-o", self.out, *flags, code=code)
        with open(self.out / "measurements.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_memory_and_latency_of_steps(self):
        rows = self.measured("--batch-sizes", "1,32", "--stages", "training,inference", "--attempts", "1")
        self.assertEqual([row["passed"] for row in rows], ["1"] * 8, rows)
        found = {(row["stage"], row["quantity"], row["bs"]): row for row in rows}
        for stage in ("training", "inference"):
            small, large = found[stage, "memory", "1"], found[stage, "memory", "32"]
            for row in (small, large):
                # The context and code are beside what the allocator has, and that is more than the tensors.
                self.assertGreater(float(row["value"]), float(row["peak"]) + 50)
                self.assertGreaterEqual(float(row["peak"]), float(row["allocated"]))
                self.assertGreater(float(row["allocated"]), 44)  # the weights alone
            # Activations of 31 items more, of which inference keeps a few at a time.
            self.assertGreater(float(large["allocated"]), float(small["allocated"]) + 31 * 3)
            self.assertGreater(float(found[stage, "latency", "32"]["value"]), 0.2)
            self.assertGreater(float(found[stage, "latency", "1"]["gpu_clock_mhz"]), 100)
        self.assertGreater(float(found["training", "memory", "32"]["allocated"]),
                           float(found["inference", "memory", "32"]["allocated"]))

    def test_a_batch_beyond_the_limit_does_not_pass(self):
        rows = self.measured("--batch-sizes", "1,512", "--stages", "training", "--memory-limit", "3000", "--quantities", "memory")
        self.assertEqual([row["passed"] for row in rows], ["1", "0"], rows)
        self.assertTrue(rows[1]["error"].startswith("out of memory: 3000 MiB were allowed"), rows[1]["error"])

    def test_speed_is_that_of_a_gpu_and_dry_runs_take_it(self):
        file = self.folder / "gpu.json"
        self.strobe("calibrate", "--engine", "torch", "--device", "cuda:0", "--seconds", "20", "-o", file)
        found = json.loads(file.read_text(encoding="utf-8"))
        # Far above any CPU, below any GPU's float32 without tensor cores.
        self.assertTrue(3000 < found["conv1x1_gflops"] < 300000, found)
        self.assertTrue(3000 < found["linear_gflops"] < 300000, found)
        self.assertTrue(100 < found["memory_gbytes"] < 20000, found)
        self.assertTrue(0.5 < found["copy_gbytes"] < 500, found)
        self.assertTrue(1 < found["launch_us"] < 500, found)
        said = json.loads(self.strobe("run", "--input", self.made(20), "--model", "resnet50", "--batch", "32", "--infer-on-gpu",
                                      "--dry-run", "--no-video", "--device-speed", file, "--format", "json").stdout)
        [run] = said["runs"]
        self.assertTrue(run["fits"])
        # 32 * 8.2 GFLOP at the rates found, and not above a tenth of them.
        least = 32 * 8.2 / max(found["conv1x1_gflops"], found["conv3x3_gflops"]) * 1e3
        self.assertTrue(least < run["infer_ms"] < 20 * least, run)


@unittest.skipUnless(devices(), "no NVIDIA device here")
class Doctor(HardwareCase):
    def test_it_says_what_works(self):
        said = self.strobe("doctor").stdout
        for word in ("GPU collection", "GPU samples", "GPU counters"):
            self.assertIn(word, said)


class WithoutHardware(unittest.TestCase):
    """Where the others are skipped there is this one: the program says that there is no driver."""

    @unittest.skipIf(devices(), "there is a device")
    def test_a_run_on_the_gpu_is_refused(self):
        if "torch" not in built_engines():
            self.skipTest("engine torch is not built")
        done = subprocess.run([STROBE, "run", "--input", "synthetic://64x64/3", "--engine", "torch", "--infer-on-gpu"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"device cuda:0: (no NVIDIA driver|this torch|torch's CUDA library|there is a driver, but)")


if __name__ == "__main__":
    unittest.main()
