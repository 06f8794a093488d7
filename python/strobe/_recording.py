"""Which recording this process has, and the trace file that comes of it."""
from __future__ import annotations

import atexit
import dataclasses
import os
import pathlib
import shutil
import sys
import types
import warnings
from typing import Union

from . import _strobe
from ._strobe import Error

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Recorded:
    """What a recording came to. dropped: records that found their thread's buffer full."""
    path: pathlib.Path
    records: int
    dropped: int
    bytes: int


@dataclasses.dataclass
class _Current:
    path: pathlib.Path
    spool: pathlib.Path
    pid: int


_current: _Current | None = None
# Where `strobe record` collects, when this program runs under it.
_outer: str | None = _strobe._start_from_environment()
if _outer is not None:
    _strobe._without_our_nvtx()


def start(path: Path, *, process_name: str = "", buffer_kib: int = 1024, block: bool = False, sync_ms: int = 0,
          gpu: bool = False) -> None:
    """Records this process until stop(), which writes the trace file `path`.

    buffer_kib: of each thread; what finds it full is dropped and counted, or waits where `block`. sync_ms: what is
    older than that is on the disk, whatever happens to the machine; 0 leaves it to the kernel. gpu: also what this
    process does on NVIDIA devices, where there is a driver; begin before the first tensor goes there. What was recorded
    before a crash is in `path`.spool: `strobe recover` makes a trace of it.
    """
    global _current
    if _current is not None and _current.pid != os.getpid():
        _strobe._stop()  # the part of a recording of the process that this one was forked from
        _current = None
    if _current is not None:
        raise Error(f"already recording into {_current.path}; strobe.stop() ends that")
    path = pathlib.Path(path).absolute()
    if path.is_dir():
        raise Error(f"{path}: is a folder, expected a file to write")
    if not path.parent.is_dir():
        raise Error(f"{path}: there is no folder {path.parent}")
    if not 16 <= buffer_kib <= 1 << 20:
        raise Error(f"strobe.start: buffer_kib is {buffer_kib}, expected 16 to {1 << 20}")
    spool = path.with_name(path.name + ".spool")
    if spool.is_dir() and any(spool.iterdir()):
        raise Error(f"{spool}: is not empty; it may be a recording that was cut short (strobe recover {spool} -o FILE), "
                    "else remove it")
    if _outer is not None:
        _strobe._stop()
    try:
        _strobe._start(str(spool), process_name, buffer_kib << 10, block, sync_ms, gpu)
    except BaseException:
        _resume_outer()
        raise
    _current = _Current(path, spool, os.getpid())


def stop() -> Recorded:
    """Ends the recording that start() began and writes its trace file."""
    global _current
    if _current is None:
        raise Error("not recording: strobe.start(path) begins"
                    + ("; this program's ranges go to `strobe record`" if _outer is not None else ""))
    if _current.pid != os.getpid():
        raise Error(f"this recording was begun by process {_current.pid}, which writes the trace")
    current, _current = _current, None
    try:
        records, dropped, size = _strobe._stop()
        _strobe._write_trace(str(current.spool), str(current.path))
        _give_to_outer(current.spool)
    finally:
        _resume_outer()
    if dropped > 0:
        warnings.warn(f"strobe: {dropped} records found their buffer full and are lost; give start() a larger "
                      "buffer_kib, or block=True", RuntimeWarning, stacklevel=2)
    return Recorded(current.path, records, dropped, size)


class record:
    """`with strobe.record(path):` is start() and stop(); after it, `result` tells what was recorded."""

    def __init__(self, path: Path, *, process_name: str = "", buffer_kib: int = 1024, block: bool = False,
                 sync_ms: int = 0, gpu: bool = False) -> None:
        self._path = path
        self._options = {"process_name": process_name, "buffer_kib": buffer_kib, "block": block, "sync_ms": sync_ms,
                         "gpu": gpu}
        self.result: Recorded | None = None

    def __enter__(self) -> record:
        start(self._path, **self._options)  # type: ignore[arg-type]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        if _current is not None and _current.pid == os.getpid():  # else: stopped inside, or in a forked child
            self.result = stop()


def _give_to_outer(spool: pathlib.Path) -> None:
    """Under `strobe record` the recorder's files become part of its trace as well; otherwise they go."""
    if _outer is not None:
        for file in spool.iterdir():
            target = pathlib.Path(_outer, file.name)
            # Logs of GPU work are numbered within a folder.
            number = 0
            while target.exists() and file.suffix == ".gpu":
                number += 1
                target = target.with_name(f"{file.stem.partition('-')[0]}-{number}.gpu")
            shutil.move(file, target)
    shutil.rmtree(spool, ignore_errors=True)


def _resume_outer() -> None:
    if _outer is not None:
        _strobe._start_from_environment()


def _at_exit() -> None:
    if _current is None or _current.pid != os.getpid():
        return
    try:
        stop()
    except Exception as error:
        print(f"strobe: {error}", file=sys.stderr)


atexit.register(_at_exit)
