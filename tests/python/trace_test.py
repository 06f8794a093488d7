"""Columns and analyses of a trace, against the trace file's own tables and other readers."""
import collections
import gc
import gzip
import json
import sqlite3

import numpy
import pytest

import strobe
from support import need_data


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "T.sqlite"
    with strobe.record(path):
        for i in range(50):
            with strobe.frame(i):
                with strobe.range("detect", category="net" if i % 2 else None, size=i):
                    pass
    return path


def test_columns_are_what_the_file_holds(path):
    ranges = strobe.open(path).ranges()
    with sqlite3.connect(path) as file:
        rows = file.execute("SELECT r.start, r.end, s.value, r.frame FROM STROBE_RANGE r JOIN StringIds s ON s.id = r.nameId "
                            "ORDER BY r.rowid").fetchall()
    assert len(rows) == 100
    assert ranges.start_ns.tolist() == [row[0] for row in rows]
    assert ranges.end_ns.tolist() == [row[1] for row in rows]
    assert list(ranges.name) == [row[2] for row in rows]
    assert ranges.frame.tolist() == [row[3] for row in rows]
    assert (ranges.duration_ns == ranges.end_ns - ranges.start_ns).all()


def test_columns_are_views_that_keep_the_trace_alive(path):
    trace = strobe.open(path)
    first, second = trace.ranges().start_ns, trace.ranges().start_ns
    assert first.__array_interface__["data"] == second.__array_interface__["data"]
    assert not first.flags.writeable
    expected = first.tolist()
    del trace, second
    gc.collect()
    assert first.tolist() == expected
    with pytest.raises(ValueError):
        first[0] = 1


def test_names(path):
    ranges = strobe.open(path).ranges()
    mask = ranges.name == "detect"
    assert mask.sum() == 50 and (ranges.name != "detect").sum() == 50
    assert (ranges.name == "not there").sum() == 0
    assert (ranges.name.isin(["detect", "frame", "x"])).all()
    assert set(ranges.name.categories) == {"detect", "frame"}
    assert ranges.name[mask].categories == ["detect"] and ranges.name[1] == "detect"
    assert numpy.asarray(ranges.name).tolist() == list(ranges.name)
    assert sorted(set(ranges.category)) == ["", "net"]
    assert list(ranges.kind) == ["annotation"] * 100
    with pytest.raises(TypeError):
        hash(ranges.name)


def test_pandas(path):
    pandas = pytest.importorskip("pandas")
    trace = strobe.open(path)
    frame = trace.ranges().to_pandas()
    assert isinstance(frame["name"].dtype, pandas.CategoricalDtype)
    assert frame.groupby("name", observed=True).size().to_dict() == {"detect": 50, "frame": 50}
    stats = trace.stats()
    of_detect = frame[frame["name"] == "detect"]["duration_ns"]
    row = stats.to_pandas().set_index("name").loc["detect"]
    assert row["count"] == 50 and row["total_ns"] == of_detect.sum()
    assert row["p50_ns"] == pytest.approx(of_detect.median()) and row["std_ns"] == pytest.approx(of_detect.std())
    assert len(trace.frames().to_pandas()) == 50


def test_arrow(path):
    pyarrow = pytest.importorskip("pyarrow")
    view = strobe.open(path).ranges()
    table = view.to_arrow()
    table.validate(full=True)
    assert pyarrow.types.is_dictionary(table.schema.field("name").type)
    assert table["start_ns"].to_pylist() == view.start_ns.tolist()
    assert table["name"].to_pylist() == list(view.name)
    assert table["open"].to_pylist() == view.open.tolist()
    # The numbers are the trace's own memory.
    assert table["start_ns"].chunk(0).buffers()[1].address == view.start_ns.__array_interface__["data"][0]
    start = view.start_ns.tolist()
    del view
    gc.collect()
    assert table["start_ns"].to_pylist() == start
    # A column taken out of the table lives on its own; a stream that nobody reads is freed.
    column = table["name"]
    del table
    gc.collect()
    assert set(column.to_pylist()) == {"detect", "frame"}
    strobe.open(path).ranges().__arrow_c_stream__()
    assert pyarrow.RecordBatchReader.from_stream(strobe.open(path).kernels()).read_all().num_rows == 0


def test_trace_without_anything(tmp_path):
    with strobe.record(tmp_path / "T.sqlite"):
        pass
    trace = strobe.open(tmp_path / "T.sqlite")
    for name in ("ranges", "kernels", "memcpys", "api_calls", "arguments", "marks", "mark_arguments", "flows", "counters",
                 "frames"):
        view = getattr(trace, name)()
        assert len(view) == 0 and all(len(view[column]) == 0 for column in view.columns)
        assert len(view.to_pandas()) == 0 and view.to_arrow().num_rows == 0
    assert "nothing recorded" in repr(trace)


def test_representations(path):
    trace = strobe.open(path)
    assert "100 ranges" in repr(trace) and "50 frames" in repr(trace)
    assert "... 90 more rows" in repr(trace.ranges()) and "detect" in repr(trace.ranges())
    assert "<th>start_ns</th>" in trace.ranges()._repr_html_()
    assert "detect" in repr(trace.stats()) and "<td>detect</td>" in trace.stats()._repr_html_()
    assert repr(strobe.range("a")) == "strobe.range('a')" and "rows)" in repr(trace.ranges().name)
    assert "start_ns" in dir(trace.ranges())
    with pytest.raises(KeyError, match="there are name, start_ns"):
        trace.ranges()["nothing"]
    with pytest.raises(AttributeError, match="no column 'nothing'"):
        trace.ranges().nothing


def test_what_cannot_be_opened(tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "cut.sqlite").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    (tmp_path / "folder").mkdir()
    for name in ("text", "cut.sqlite", "folder", "nothing"):
        with pytest.raises(strobe.Error) as raised:
            strobe.open(tmp_path / name)
        assert "\n" not in str(raised.value) and name in str(raised.value)
    with pytest.raises(TypeError):
        strobe.open(3)
    with pytest.raises(TypeError):
        strobe.open(b"bytes")


def test_analyses_refuse_as_the_commands_do(path):
    trace = strobe.open(path)
    with pytest.raises(strobe.Error, match="kernel"):
        trace.stats("nothing")
    with pytest.raises(strobe.Error, match="nothing"):
        trace.critical_path("nothing")
    path_of_one = trace.critical_path("detect", 3)
    assert "Critical path of detect, instance 3" in path_of_one.title
    assert sum(path_of_one["path_ns"]) == trace.ranges().duration_ns[trace.ranges().name == "detect"][3]


def test_trace_of_another_tool():
    """Against the JSON itself: a trace of PyTorch's profiler on a GPU."""
    path = need_data("traces/kineto/trace_diff_control_a100.json.gz")
    with gzip.open(path) as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    trace = strobe.open(path)
    kernels = [event for event in events if event.get("cat") == "kernel"]
    view = trace.kernels()
    assert len(view) == len(kernels) > 0
    assert collections.Counter(view.name) == collections.Counter(event["name"] for event in kernels)
    assert view.duration_ns.sum() == pytest.approx(sum(event["dur"] for event in kernels) * 1000, rel=1e-6)
    assert sorted(set(view.stream.tolist())) == sorted({event["args"]["stream"] for event in kernels})
    assert view.grid_x.sum() == sum(event["args"]["grid"][0] for event in kernels)
    # The launch of each is the call with its correlation.
    calls, ranges = trace.api_calls(), trace.ranges()
    correlation = dict(zip(calls.range.tolist(), calls.correlation.tolist()))
    launched = view.launch >= 0
    assert [correlation[row] for row in view.launch[launched].tolist()] == view.correlation[launched].tolist()
    assert (ranges.start_ns[view.launch[launched]] <= view.start_ns[launched]).mean() > 0.99
    copies = [event for event in events if event.get("cat") in ("gpu_memcpy", "gpu_memset")]
    memcpys = trace.memcpys()
    assert len(memcpys) == len(copies)
    assert memcpys.bytes[memcpys.bytes >= 0].sum() == sum(event["args"].get("bytes", 0) for event in copies)
    summary = trace.kernels_summary()
    assert sum(summary["total_ns"]) == view.duration_ns.sum() and sum(summary["count"]) == len(view)
    for analysis in (trace.idle, trace.launches, trace.memcpy_summary, trace.memcpy_overlap, trace.advice):
        assert len(analysis()) > 0 and len(analysis().to_pandas()) == len(analysis())
