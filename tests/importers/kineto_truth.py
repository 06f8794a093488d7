"""What a Chrome trace holds, counted by Python's json module: lines "key value"; times in ns, exactly."""
import decimal
import gzip
import json
import sys

path = sys.argv[1]
with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
    events = json.load(file, parse_float=decimal.Decimal)["traceEvents"]
KINDS = {"kernel": {"kernel", "Kernel"}, "copy": {"gpu_memcpy", "Memcpy"}, "set": {"gpu_memset", "Memset"},
         "sync": {"cuda_sync"}, "api": {"cuda_runtime", "cuda_driver", "Runtime"}}
DEVICE = KINDS["kernel"] | KINDS["copy"] | KINDS["set"] | KINDS["sync"]
complete = [e for e in events if e["ph"] == "X" and not (e["cat"] == "Trace" and e["pid"] == "Spans")]
ns = lambda value: int(decimal.Decimal(value) * 1000)
of = lambda names: [e for e in complete if e["cat"] in names]
print("complete", len(complete))
print("total_ns", sum(ns(e["dur"]) for e in complete))
print("start_sum_ns", sum(ns(e["ts"]) - min(ns(x["ts"]) for x in complete[:1]) for e in complete))
for kind, names in KINDS.items():
    print(kind, len(of(names)))
    print(kind + "_ns", sum(ns(e["dur"]) for e in of(names)))
calls = {e["args"]["correlation"] for e in of(KINDS["api"]) if "correlation" in e["args"]}
device = [e["args"]["correlation"] for e in of(DEVICE) if "correlation" in e["args"]]
print("correlations", sum(device))
print("launched", sum(c in calls for c in device))
print("copied_bytes", sum(e["args"].get("bytes", 0) for e in of(KINDS["copy"])))
print("grid", sum(sum(e["args"].get("grid", [])) for e in of(KINDS["kernel"])))
print("registers", sum(e["args"].get("registers per thread", 0) for e in of(KINDS["kernel"])))
print("shared", sum(e["args"].get("shared memory", 0) for e in of(KINDS["kernel"])))
print("steps", sum(e["name"].startswith("ProfilerStep#") and e["cat"] != "gpu_user_annotation" for e in complete))
print("names", len({e["name"] for e in complete}))
