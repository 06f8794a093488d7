"""What CV-CUDA's samples take from their perf_utils, under the same names; `strobe bench` runs such programs."""
from __future__ import annotations

import argparse
import json
import logging
import os
import pathlib
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from typing import Any, Sequence

from . import _strobe

__all__ = ["CvCudaPerf", "get_default_arg_parser", "maximize_clocks", "parse_validate_default_args", "reset_clocks",
           "summarize_runs"]

_SMALLEST_SIDE = 10
_QUERY_TIMEOUT_S = 30


class CvCudaPerf:
    """Nested ranges with batches; finalize() writes benchmark.json where the environment has BENCHMARK_PY."""

    def __init__(self, obj_name: str, default_args: argparse.Namespace) -> None:
        for needed in ("device_id", "output_dir"):
            if not hasattr(default_args, needed):
                raise ValueError(f"default_args must have {needed}")
        self.obj_name = obj_name
        self.default_args = default_args
        args = {key: value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
                for key, value in vars(default_args).items()}
        meta = {"cvcuda_version": _version("cvcuda"), "pytorch_version": _version("torch"),
                "python_version": platform.python_version(), "args": args}
        collecting = bool(os.environ.get("BENCHMARK_PY"))
        self._perf = _strobe.Perf(obj_name, str(default_args.output_dir), int(default_args.device_id),
                                  _device_name(int(default_args.device_id)) if collecting else "", json.dumps(meta))

    def push_range(self, message: str | None = None, color: str | None = "blue", domain: str | None = None,
                   category: str | int | None = None, batch_idx: int | None = None) -> None:
        """Begins a range. With a batch index it is a batch, and what is pushed until its pop is inside it."""
        if not message:
            raise ValueError("push_range: a range needs a message")
        self._perf.push_range(message, str(color or "blue"), domain or "", "" if category is None else str(category),
                              batch_idx)

    def pop_range(self, domain: str | None = None, total_items: int | None = None, delete_range: bool = False) -> None:
        """Ends the innermost range of this thread. total_items closes a batch; delete_range leaves the range and all
        below it out of the results."""
        self._perf.pop_range(total_items, delete_range)

    def finalize(self) -> dict[str, Any]:
        """Writes benchmark.json into output_dir and returns what is in it; {} where no benchmark is run."""
        result: dict[str, Any] = json.loads(self._perf.finalize())
        return result


def get_default_arg_parser(message: str, supports_video: bool = True, input_path: str | None = None,
                           output_dir: str = "/tmp", target_img_height: int = 224, target_img_width: int = 224,
                           batch_size: int = 4, device_id: int = 0,
                           supported_backends: Sequence[str] = ("tensorrt", "pytorch"), backend: str = "tensorrt",
                           log_level: str = "info", parser_type: str = "vision") -> argparse.ArgumentParser:
    """The arguments that all samples have. parser_type "minimal" has only output_dir, device_id and log_level."""
    if parser_type not in ("vision", "minimal"):
        raise ValueError(f"parser_type is {parser_type!r}, expected 'vision' or 'minimal'")
    parser = argparse.ArgumentParser(message, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    if parser_type == "vision":
        parser.add_argument("-i", "--input_path", type=str, default=input_path,
                            help="an image, " + ("a video, " if supports_video else "") + "or a folder of images")
        parser.add_argument("-th", "--target_img_height", type=int, default=target_img_height,
                            help="height that images are resized to")
        parser.add_argument("-tw", "--target_img_width", type=int, default=target_img_width,
                            help="width that images are resized to")
        parser.add_argument("-b", "--batch_size", type=int, default=batch_size, help="images processed at once")
        parser.add_argument("-bk", "--backend", type=str, default=backend, choices=list(supported_backends),
                            help="what runs the network")
    parser.add_argument("-o", "--output_dir", type=str, default=output_dir, help="folder that results are written to")
    parser.add_argument("-d", "--device_id", type=int, default=device_id, help="GPU to run on")
    parser.add_argument("-ll", "--log_level", type=str, default=log_level,
                        choices=["info", "error", "debug", "warning"], help="least level that is logged")
    return parser


def parse_validate_default_args(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the command line; ValueError for what cannot be."""
    args = parser.parse_args()
    if hasattr(args, "input_path") and not (args.input_path and os.path.exists(args.input_path)):
        raise ValueError(f"input_path is {args.input_path!r}, expected a file or folder that exists")
    if not os.path.isdir(args.output_dir):
        raise ValueError(f"output_dir is {args.output_dir!r}, expected a folder that exists")
    devices = _visible_devices()
    if devices and args.device_id not in devices:
        raise ValueError(f"device_id is {args.device_id}, expected one of {', '.join(map(str, sorted(devices)))}")
    if hasattr(args, "batch_size") and args.batch_size < 1:
        raise ValueError(f"batch_size is {args.batch_size}, expected 1 or more")
    for side in ("target_img_height", "target_img_width"):
        if getattr(args, side, _SMALLEST_SIDE) < _SMALLEST_SIDE:
            raise ValueError(f"{side} is {getattr(args, side)}, expected {_SMALLEST_SIDE} or more")
    logging.basicConfig(level=args.log_level.upper())
    return args


def maximize_clocks(logger: logging.Logger) -> tuple[bool, bool, float | None]:
    """Runs all visible GPUs at their highest clocks: (done, persistence mode was on, power limit before in W)."""
    before = _query("persistence_mode,power.limit,power.max_limit,clocks.max.graphics,clocks.max.memory")
    if not before:
        logger.warning("no GPU was found: clocks are as they were")
        return False, False, None
    persistence, limit, largest, graphics, memory = before[0]
    was_on, power_limit = persistence == "Enabled", _number(limit)
    done = True
    for words in (["-pm", "1"], ["--auto-boost-default=0"], ["-pl", largest], ["-lgc", f"{graphics},{graphics}"],
                  ["-lmc", f"{memory},{memory}"]):
        if _smi(words) is None and words[0] != "--auto-boost-default=0":  # which newer GPUs do not have
            logger.warning("nvidia-smi %s was refused: it may need root", " ".join(words))
            done = False
    state = _query("pstate")
    if done and state and state[0][0] != "P0":
        logger.warning("the GPU's performance state is %s, expected P0", state[0][0])
        done = False
    return done, was_on, power_limit


def reset_clocks(logger: logging.Logger, was_persistence_mode_on: bool, current_power_limit: float | None) -> None:
    """Undoes maximize_clocks()."""
    if not _query("pstate"):
        logger.warning("no GPU was found: there are no clocks to reset")
        return
    undo = [["-rgc"], ["-rmc"], ["--auto-boost-default=1"]]
    if current_power_limit is not None:
        undo.append(["-pl", f"{current_power_limit:g}"])
    if not was_persistence_mode_on:
        undo.append(["-pm", "0"])
    for words in undo:
        if _smi(words) is None and words[0] != "--auto-boost-default=1":
            logger.warning("nvidia-smi %s was refused: it may need root", " ".join(words))


def summarize_runs(baseline_run_root: str, baseline_run_name: str = "baseline",
                   compare_run_roots: Sequence[str] = (), compare_run_names: Sequence[str] = ()) -> Any:
    """One row a sample (a folder with benchmark_mean.json below the root): time per item and ratio to the baseline.

    A DataFrame where pandas is there, else a list of dicts. "v/s ... speed-up" is compare / baseline, as CV-CUDA has it;
    "times faster than" beside it is baseline / compare.
    """
    if len(compare_run_roots) != len(compare_run_names):
        raise ValueError(f"{len(compare_run_roots)} compare_run_roots and {len(compare_run_names)} compare_run_names, "
                         "expected as many")
    missing = "N/A"
    rows = []
    for folder in sorted(path.parent for path in pathlib.Path(baseline_run_root).glob("*/benchmark_mean.json")):
        baseline = _time_per_item(folder)
        row: dict[str, Any] = {"sample name": folder.name,
                               f"{baseline_run_name} time (ms)": missing if baseline is None else baseline}
        for root, name in zip(compare_run_roots, compare_run_names):
            other = _time_per_item(pathlib.Path(root) / folder.name)
            row[f"{name} time (ms)"] = missing if other is None else other
            known = baseline is not None and other is not None
            row[f"{name} v/s {baseline_run_name} speed-up"] = \
                round(other / baseline, 3) if known and baseline else missing  # type: ignore[operator]
            row[f"{name} times faster than {baseline_run_name}"] = \
                round(baseline / other, 3) if known and other else missing  # type: ignore[operator]
        rows.append(row)
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def _time_per_item(folder: pathlib.Path) -> float | None:
    try:
        means = json.loads((folder / "benchmark_mean.json").read_text())["mean_all_batches"]
        pipeline = next(iter(means.values()))["run_sample"]["pipeline"]
        return float(pipeline["cpu_time_minus_warmup_per_item"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None


def _version(package: str) -> str | None:
    # Without importing it, which may take seconds.
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        module = sys.modules.get(package)
        return getattr(module, "__version__", None)


def _smi(words: list[str]) -> str | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        ended = subprocess.run([program, *words], capture_output=True, text=True, timeout=_QUERY_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout if ended.returncode == 0 else None


def _query(fields: str, device: int | None = None) -> list[list[str]]:
    words = [f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    said = _smi(words if device is None else [*words, "-i", str(device)])
    return [[cell.strip() for cell in line.split(",")] for line in (said or "").splitlines() if line.strip()]


def _visible_devices() -> set[int]:
    """Numbers by which a visible GPU may be called: its place among them, and, as the launcher gives both, its own."""
    known = len(_query("index"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return set(range(known))
    listed = [one.strip() for one in visible.split(",") if one.strip()][:known]
    return set(range(len(listed))) | {int(one) for one in listed if one.isdigit() and int(one) < known}


def _device_name(device: int) -> str:
    named = _query("name", device)
    return named[0][0] if named else "CPU"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
