"""Strobe: what a program did, as ranges on one timeline, and that timeline as columns.

    import strobe
    with strobe.record("T.sqlite"):
        for i, picture in enumerate(pictures):
            with strobe.range("detect", frame=i):
                detect(picture)
    print(strobe.open("T.sqlite").stats())
"""
from . import _decorate as _decorate
from ._recording import Recorded, record, start, stop
from ._strobe import (Error, __version__, arg, counter, fact, flow_in, flow_out, mark, name_thread, new_id, pop, push,
                      range, recording)
from ._trace import Names, Table, Trace, View, open


def frame(id: int, name: str = "frame") -> range:
    """`with strobe.frame(7):` is a range whose frame all ranges inside inherit, on this thread."""
    return range(name, frame=id)


__all__ = ["Error", "Names", "Recorded", "Table", "Trace", "View", "__version__", "arg", "counter", "fact", "flow_in",
           "flow_out", "frame", "mark", "name_thread", "new_id", "open", "pop", "push", "range", "record", "recording",
           "start", "stop"]
