"""strobe.cvcuda as CV-CUDA's samples use perf_utils, alone, under strobe bench and under strobe record."""
import argparse
import json
import logging
import pathlib
import subprocess
import sys

import pytest

import strobe
from strobe.cvcuda import (CvCudaPerf, get_default_arg_parser, maximize_clocks, parse_validate_default_args,
                           reset_clocks, summarize_runs)
from support import by_name, need_program

SAMPLE = pathlib.Path(__file__).with_name("cvcuda_sample.py")


@pytest.fixture
def args(tmp_path):
    return argparse.Namespace(device_id=0, output_dir=str(tmp_path), batch_size=4, odd=pathlib.Path("x"))


@pytest.fixture
def benchmarking(monkeypatch):
    monkeypatch.setenv("BENCHMARK_PY", "1")


def parse(monkeypatch, *words, **defaults):
    monkeypatch.setattr(sys, "argv", ["program", *words])
    return parse_validate_default_args(get_default_arg_parser("A program", **defaults))


def test_benchmark_json(tmp_path, args, benchmarking):
    perf = CvCudaPerf("demo", default_args=args)
    perf.push_range("run_sample")
    perf.push_range("pipeline")
    for i in range(4):
        perf.push_range("batch", batch_idx=i)
        perf.push_range("decode")
        perf.pop_range()
        perf.push_range("not kept")
        perf.pop_range(delete_range=True)
        perf.pop_range(total_items=3)
    perf.pop_range()
    perf.pop_range()
    result = perf.finalize()
    assert json.loads((tmp_path / "benchmark.json").read_text()) == result
    pipeline = result["data"]["demo"]["run_sample"]["pipeline"]
    assert pipeline["total_items"] == 12 and pipeline["total_items_minus_warmup"] == 6
    assert set(pipeline["batch_0"]) == {"cpu_time", "gpu_time", "total_items", "cpu_time_per_item", "gpu_time_per_item",
                                        "decode"}
    assert set(result["mean_data"]) == {"demo/run_sample/pipeline"}
    meta = result["meta"]
    assert meta["args"] == {"device_id": 0, "output_dir": str(tmp_path), "batch_size": 4, "odd": "x"}
    assert meta["total_batches"] == {"demo/run_sample/pipeline": 4} and meta["measurement_unit"] == "milliseconds"
    assert meta["python_version"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")


def test_without_benchmark_nothing_is_collected(tmp_path, args, monkeypatch):
    monkeypatch.delenv("BENCHMARK_PY", raising=False)
    perf = CvCudaPerf("demo", args)
    perf.push_range("a")
    assert perf.finalize() == {} and not (tmp_path / "benchmark.json").exists()


def test_wrong_use_is_a_value_error(args, benchmarking):
    with pytest.raises(ValueError, match="device_id"):
        CvCudaPerf("demo", argparse.Namespace(output_dir="/tmp"))
    with pytest.raises(ValueError, match="output_dir"):
        CvCudaPerf("demo", argparse.Namespace(device_id=0))
    perf = CvCudaPerf("demo", args)
    with pytest.raises(ValueError, match="message"):
        perf.push_range()
    with pytest.raises(ValueError, match="no range is open"):
        perf.pop_range()
    perf.push_range("a")
    with pytest.raises(ValueError, match="without a batch index"):
        perf.pop_range(total_items=3)
    with pytest.raises(ValueError, match="1 range is still open"):
        perf.finalize()


def test_default_arguments(monkeypatch, tmp_path):
    parsed = parse(monkeypatch, "-i", str(tmp_path), "-o", str(tmp_path), "-th", "100", "-tw", "50", "-b", "2", "-d", "0",
                   "-bk", "pytorch", "-ll", "debug")
    assert vars(parsed) == {"input_path": str(tmp_path), "output_dir": str(tmp_path), "target_img_height": 100,
                            "target_img_width": 50, "batch_size": 2, "device_id": 0, "backend": "pytorch",
                            "log_level": "debug"}
    minimal = parse(monkeypatch, "-o", str(tmp_path), parser_type="minimal")
    assert vars(minimal) == {"output_dir": str(tmp_path), "device_id": 0, "log_level": "info"}
    with pytest.raises(ValueError, match="parser_type is 'other'"):
        get_default_arg_parser("A program", parser_type="other")


@pytest.mark.parametrize("words, said", [
    (["-i", "/nowhere"], "input_path is '/nowhere'"),
    (["-i", "/", "-o", "/nowhere"], "output_dir is '/nowhere'"),
    (["-i", "/", "-b", "0"], "batch_size is 0"),
    (["-i", "/", "-th", "9"], "target_img_height is 9"),
    (["-i", "/", "-tw", "9"], "target_img_width is 9"),
])
def test_wrong_arguments(monkeypatch, words, said):
    with pytest.raises(ValueError, match=said):
        parse(monkeypatch, *words)


NVIDIA_SMI = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
  *persistence_mode*) echo "Disabled, 250.00, 300.00, 1980, 2619" ;;
  *pstate*) echo "P0" ;;
  *index*) echo 0; echo 1 ;;
  *--query-gpu=name*) echo "Test GPU" ;;
esac
"""


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """A program nvidia-smi that knows two GPUs and writes down what it is asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(NVIDIA_SMI)
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path / "calls"


def test_clocks(two_gpus):
    logger = logging.getLogger("test")
    assert maximize_clocks(logger) == (True, False, 250.0)
    assert [line for line in two_gpus.read_text().splitlines() if "query" not in line] == \
        ["-pm 1", "--auto-boost-default=0", "-pl 300.00", "-lgc 1980,1980", "-lmc 2619,2619"]
    two_gpus.unlink()
    reset_clocks(logger, False, 250.0)
    assert [line for line in two_gpus.read_text().splitlines() if "query" not in line] == \
        ["-rgc", "-rmc", "--auto-boost-default=1", "-pl 250", "-pm 0"]


def test_clocks_without_a_gpu(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert maximize_clocks(logging.getLogger("test")) == (False, False, None)
    assert "no GPU was found" in caplog.text


def test_devices(two_gpus, monkeypatch, args, benchmarking):
    with pytest.raises(ValueError, match="device_id is 2, expected one of 0, 1"):
        parse(monkeypatch, "-i", "/", "-d", "2")
    assert parse(monkeypatch, "-i", "/", "-d", "1").device_id == 1
    # The launcher gives each process one GPU and that GPU's number.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert parse(monkeypatch, "-i", "/", "-d", "1").device_id == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(ValueError, match="device_id is 1, expected one of 0"):
        parse(monkeypatch, "-i", "/", "-d", "1")
    assert CvCudaPerf("demo", args).finalize()["meta"]["device"] == {"id": 0, "name": "Test GPU"}


def test_summary(tmp_path):
    def write(run, sample, per_item):
        folder = tmp_path / run / sample
        folder.mkdir(parents=True)
        times = {"pipeline": {"cpu_time_minus_warmup_per_item": per_item}} if per_item else {}
        (folder / "benchmark_mean.json").write_text(json.dumps({"mean_all_batches": {"x": {"run_sample": times}}}))
    write("base", "a", 2.0)
    write("base", "b", None)
    write("new", "a", 4.0)
    rows = summarize_runs(str(tmp_path / "base"), "old", [str(tmp_path / "new")], ["new"])
    assert rows.to_dict("records") == [
        {"sample name": "a", "old time (ms)": 2.0, "new time (ms)": 4.0, "new v/s old speed-up": 2.0,
         "new times faster than old": 0.5},
        {"sample name": "b", "old time (ms)": "N/A", "new time (ms)": "N/A", "new v/s old speed-up": "N/A",
         "new times faster than old": "N/A"}]
    with pytest.raises(ValueError, match="expected as many"):
        summarize_runs(str(tmp_path), "old", ["x"], [])


def test_under_strobe_bench(tmp_path):
    done = subprocess.run([need_program(), "bench", "-np", "2", "-w", "1", "-o", str(tmp_path / "out"), "--",
                           sys.executable, str(SAMPLE), "-b", "4"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    mean = json.loads((tmp_path / "out" / "benchmark_mean.json").read_text())
    pipeline = mean["mean_all_batches"]["nothing_in_particular"]["run_sample"]["pipeline"]
    both = [json.loads((tmp_path / "out" / f"proc_{i}_gpu_0" / "benchmark.json").read_text()) for i in range(2)]
    times = [one["data"]["nothing_in_particular"]["run_sample"]["pipeline"]["batch_3"]["inference"]["cpu_time"]
             for one in both]
    assert pipeline["batch_3"]["inference"]["cpu_time"] == pytest.approx(sum(times) / 2, abs=0.001)
    assert pipeline["total_items"] == 24 and pipeline["total_items_minus_warmup"] == 16
    assert both[0]["meta"]["args"]["batch_size"] == 4
    # Its own timeline holds each range once.
    rows = by_name(strobe.open(tmp_path / "out" / "proc_0_gpu_0" / "trace.sqlite"))
    assert len(rows["run_sample"]) == 1 and len(rows["inference"]) == 6


def test_ranges_are_in_a_recording_once(tmp_path):
    done = subprocess.run([need_program(), "record", "--quiet", "-o", str(tmp_path / "T.sqlite"), "--", sys.executable,
                           str(SAMPLE), "-b", "1"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = by_name(strobe.open(tmp_path / "T.sqlite"))
    counts = {name: len(rows[name]) for name in ("run_sample", "pipeline", "batch_0", "decoder.decode", "preprocess")}
    assert counts == {"run_sample": 1, "pipeline": 1, "batch_0": 1, "decoder.decode": 6, "preprocess": 6}
    assert (rows["preprocess"][0]["domain"], rows["preprocess"][0]["category"]) == ("sample", "host")
