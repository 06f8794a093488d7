"""What a program records of itself, read back from its trace file."""
import asyncio
import copy
import decimal
import gc
import inspect
import pickle
import threading
import weakref

import numpy
import pytest

import strobe
from support import by_name, payload


def record(path, function):
    with strobe.record(path) as recording:
        function()
    return strobe.open(path), recording.result


def test_range_with_all_details(tmp_path):
    def work():
        with strobe.range("outer", frame=7, category="io", domain="lib", batch=2, items=4, size=3, ratio=0.5, text="hé",
                          huge=2**80, flag=True, real=numpy.float32(1.5), whole=numpy.int16(-3),
                          precise=decimal.Decimal("0.25")) as r:
            with strobe.range("inner"):
                strobe.arg(inside=1)
            assert r.arg(late="yes") is r
    trace, result = record(tmp_path / "T.sqlite", work)
    assert result.dropped == 0 and result.path == tmp_path / "T.sqlite" and result.records > 0
    rows = by_name(trace)
    outer, inner = rows["outer"][0], rows["inner"][0]
    assert (outer["frame"], outer["category"], outer["domain"], outer["kind"]) == (7, "io", "lib", "annotation")
    assert inner["frame"] == 7 and inner["parent"] == outer["row"]
    assert outer["start_ns"] <= inner["start_ns"] <= inner["end_ns"] <= outer["end_ns"]
    assert payload(trace) == {
        (outer["row"], "batch_index"): 2, (outer["row"], "total_items"): 4, (outer["row"], "size"): 3,
        (outer["row"], "ratio"): 0.5, (outer["row"], "text"): "hé", (outer["row"], "huge"): str(2**80),
        (outer["row"], "flag"): 1, (outer["row"], "real"): 1.5, (outer["row"], "whole"): -3,
        (outer["row"], "precise"): 0.25, (outer["row"], "late"): "yes", (inner["row"], "inside"): 1}
    assert not (tmp_path / "T.sqlite.spool").exists()


def test_decorated_functions(tmp_path):
    class Thing:
        @strobe.range
        def method(self, x, *, y=1):
            "Says something."
            return x + y

        @staticmethod
        @strobe.range("static")
        def static(x):
            return x

    @strobe.range("recursion")
    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    def work():
        assert Thing().method(2, y=3) == 5
        assert Thing.static(4) == 4
        assert factorial(3) == 6
    trace, _ = record(tmp_path / "T.sqlite", work)
    rows = by_name(trace)
    assert Thing.method.__doc__ == "Says something." and Thing.method.__name__ == "method"
    assert len(rows["test_decorated_functions.<locals>.Thing.method"]) == 1 and len(rows["static"]) == 1
    depths = rows["recursion"]
    assert [row["parent"] for row in depths[1:]] == [row["row"] for row in depths[:-1]] and len(depths) == 4


@strobe.range("pickled", size=1)
def to_be_pickled(x, *, y=2):
    """Says something."""
    if x < 0:
        raise OverflowError("below 0")
    return x + y


def test_a_decorated_function_is_like_the_function(tmp_path):
    assert pickle.loads(pickle.dumps(to_be_pickled)) is to_be_pickled and copy.deepcopy(to_be_pickled) is to_be_pickled
    assert str(inspect.signature(to_be_pickled)) == "(x, *, y=2)" and to_be_pickled.__doc__ == "Says something."
    assert to_be_pickled.__module__ == __name__ and inspect.unwrap(to_be_pickled)(1) == 3
    to_be_pickled.own = 5
    assert to_be_pickled.own == 5 and weakref.ref(to_be_pickled)() is to_be_pickled
    assert "to_be_pickled" in repr(to_be_pickled)
    kept = weakref.ref(strobe.range(lambda: kept))
    gc.collect()
    assert kept() is None

    def work():
        with pytest.raises(OverflowError):
            to_be_pickled(-1)
        with pytest.raises(TypeError):
            to_be_pickled()
        assert to_be_pickled(*[1], **{"y": 5}) == 6
    trace, _ = record(tmp_path / "T.sqlite", work)
    assert {key: value for key, value in payload(trace).items() if key[1] == "exception"} == \
        {(0, "exception"): "OverflowError", (1, "exception"): "TypeError"}
    assert len(trace.ranges()) == 3


def test_coroutines_and_generators_become_intervals(tmp_path):
    @strobe.range("coroutine", frame=3)
    async def wait(event):
        await event.wait()
        return 1

    @strobe.range("generator")
    def count(n):
        received = []
        for i in range(n):
            received.append((yield i))
        return received

    @strobe.range("async generator")
    async def echo():
        value = None
        while True:
            try:
                value = yield value
            except ValueError as error:
                value = str(error)

    async def main():
        event = asyncio.Event()
        first, second = asyncio.create_task(wait(event)), asyncio.create_task(wait(event))
        await asyncio.sleep(0)
        async with strobe.range("while they wait"):
            event.set()
            assert await first + await second == 2
        generator = echo()
        assert await anext(generator) is None
        assert await generator.asend(5) == 5
        assert await generator.athrow(ValueError("thrown")) == "thrown"
        await generator.aclose()

    def work():
        asyncio.run(main())
        generator = count(2)
        assert next(generator) == 0 and generator.send("a") == 1
        with pytest.raises(StopIteration) as stopped:
            generator.send("b")
        assert stopped.value.value == ["a", "b"]
        left_early = count(5)
        next(left_early)
        left_early.close()
    trace, _ = record(tmp_path / "T.sqlite", work)
    rows = by_name(trace)
    assert [len(rows[name]) for name in ("coroutine", "generator", "async generator", "while they wait")] == [2, 2, 1, 1]
    assert all(row["is_async"] and not row["open"] for name in rows for row in rows[name])
    assert rows["coroutine"][0]["frame"] == 3
    assert rows["coroutine"][0]["end_ns"] > rows["while they wait"][0]["start_ns"]
    assert trace.faults == {}


def test_async_with_of_one_object_in_many_tasks(tmp_path):
    shared = strobe.range("shared")

    async def task(i):
        async with shared:
            await asyncio.sleep(0.001 * (3 - i))

    async def main():
        await asyncio.gather(*(task(i) for i in range(3)))
    trace, _ = record(tmp_path / "T.sqlite", lambda: asyncio.run(main()))
    rows = by_name(trace)["shared"]
    # Begun in the order 0, 1, 2, ended in the order 2, 1, 0.
    assert [row["end_ns"] for row in rows] == sorted((row["end_ns"] for row in rows), reverse=True)
    assert trace.faults == {}


def test_with_around_a_switch_warns(tmp_path):
    def interleave():
        def part(name):
            with strobe.range(name):
                yield
        first, second = part("first"), part("second")
        next(first)
        next(second)
        with pytest.warns(RuntimeWarning, match="'first'.*async with"):
            next(first, None)
    record(tmp_path / "T.sqlite", interleave)


def test_exception_passes_and_is_noted(tmp_path):
    def work():
        with pytest.raises(KeyError):
            with strobe.range("fails"):
                raise KeyError("x")
    trace, _ = record(tmp_path / "T.sqlite", work)
    assert payload(trace) == {(0, "exception"): "KeyError"} and not trace.ranges().open[0]


def test_marks_counters_flows_facts(tmp_path):
    def work():
        strobe.mark("drop", frame=4, category="loss", domain="lib", why="late")
        counter = strobe.counter("queue")
        counter.set(3)
        counter.set(2.5)
        counter.set(numpy.float64(0.5))
        strobe.counter("depth", of_thread=True).set(numpy.int64(9))
        number = strobe.new_id()
        with strobe.range("from"):
            strobe.flow_out("hand over", number)

        def other():
            with strobe.range("to"):
                strobe.flow_in("hand over", number)
        thread = threading.Thread(target=other, name="worker-1")
        thread.start()
        thread.join()
        strobe.push("pushed", frame=1)
        strobe.pop()
        strobe.fact("engine", "none")
    trace, _ = record(tmp_path / "T.sqlite", work)
    marks, counters, flows = trace.marks(), trace.counters(), trace.flows()
    assert [marks[key][0] for key in ("name", "frame", "category", "domain")] == ["drop", 4, "loss", "lib"]
    assert list(trace.mark_arguments().text) == ["late"]
    assert list(zip(counters.name, counters.value.tolist())) == [("queue", 3.0), ("queue", 2.5), ("queue", 0.5),
                                                                   ("depth", 9.0)]
    assert counters.lane.tolist()[:3] == [-1, -1, -1] and counters.lane[3] >= 0
    names = list(trace.ranges().name)
    assert (names[flows.from_range[0]], names[flows.to_range[0]]) == ("from", "to")
    assert "worker-1" in list(trace.lanes().name)
    assert by_name(trace)["pushed"][0]["frame"] == 1
    assert trace.facts["engine"] == "none"


def test_threads_share_one_object(tmp_path):
    shared = strobe.range("shared")
    threads, passes = 8, 500

    def work():
        def loop():
            for _ in range(passes):
                with shared:
                    with shared:
                        pass
        running = [threading.Thread(target=loop) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    trace, result = record(tmp_path / "T.sqlite", work)
    assert result.dropped == 0 and trace.faults == {}
    rows = by_name(trace)["shared"]
    assert len(rows) == threads * passes * 2
    assert sum(row["parent"] >= 0 for row in rows) == threads * passes and not any(row["open"] for row in rows)


def test_many_names_and_odd_ones(tmp_path):
    names = [f"name {i}" for i in range(6000)] + ["", "\ud800 half", "a" * 100_000]

    def work():
        for name in names:
            with strobe.range(name):
                pass
    trace, _ = record(tmp_path / "T.sqlite", work)
    got = list(trace.ranges().name)
    assert got[:6001] == names[:6001] and got[6001] == "? half" and got[6002].startswith("aaa")


def test_ranges_across_start_and_stop(tmp_path):
    early, late = strobe.range("early"), strobe.range("late")
    with early:
        strobe.start(tmp_path / "A.sqlite")
    late.__enter__()
    strobe.stop()
    strobe.start(tmp_path / "B.sqlite")
    late.__exit__(None, None, None)
    strobe.stop()
    first, second = strobe.open(tmp_path / "A.sqlite"), strobe.open(tmp_path / "B.sqlite")
    assert list(first.ranges().name) == ["late"] and first.ranges().open.tolist() == [True] and first.faults == {}
    assert len(second.ranges()) == 0 and second.faults == {}


def test_lost_records_are_said(tmp_path):
    def flood():
        for _ in range(200_000):
            strobe.push("x")
        for _ in range(200_000):
            strobe.pop()
    with pytest.warns(RuntimeWarning, match="records found their buffer full"):
        with strobe.record(tmp_path / "T.sqlite", buffer_kib=16) as recording:
            flood()
    assert strobe.open(tmp_path / "T.sqlite").dropped_records == recording.result.dropped > 0


@pytest.mark.parametrize("call, kind, words", [
    (lambda: strobe.range(3), TypeError, "must be a str, not int"),
    (lambda: strobe.range(), TypeError, "expected one name"),
    (lambda: strobe.range("a", "b"), TypeError, "got 2 positional"),
    (lambda: strobe.range("a", frame="x"), TypeError, "frame must be a whole number, not str"),
    (lambda: strobe.range("a", frame=-2), ValueError, "frame is -2, expected 0"),
    (lambda: strobe.range("a", frame=2**63), ValueError, "expected 0 to"),
    (lambda: strobe.range("a", category=3), TypeError, "category must be a str"),
    (lambda: strobe.range("a", size=[1]), TypeError, "'size': expected int, float or str, not list"),
    (lambda: strobe.range("a")(int), TypeError, "decorates functions"),
    (lambda: strobe.range("a")(staticmethod(len)), TypeError, "below @staticmethod"),
    (lambda: strobe.range("a")(), TypeError, "the function that it decorates"),
    (lambda: strobe.range("a").__exit__(None, None, None), RuntimeError, "has not entered it"),
    (lambda: strobe.push(b"a"), TypeError, "must be a str, not bytes"),
    (lambda: strobe.mark("a", x=None), TypeError, "not NoneType"),
    (lambda: strobe.arg(3), TypeError, "keyword arguments only"),
    (lambda: strobe.counter("a").set("b"), TypeError, "expected a number, not str"),
    (lambda: strobe.counter(1), TypeError, "incompatible"),
    (lambda: strobe.stop(), strobe.Error, "not recording"),
    (lambda: strobe.start("/nowhere/T.sqlite"), strobe.Error, "there is no folder /nowhere"),
    (lambda: strobe.start("/"), strobe.Error, "is a folder"),
    (lambda: strobe.start("T.sqlite", buffer_kib=1), strobe.Error, "buffer_kib is 1, expected 16"),
])
def test_wrong_calls(call, kind, words):
    with pytest.raises(kind) as raised:
        call()
    assert words in str(raised.value)
    if kind is strobe.Error:
        assert "\n" not in str(raised.value)


def test_second_start_is_refused(tmp_path):
    with strobe.record(tmp_path / "T.sqlite"):
        with pytest.raises(strobe.Error, match="already recording into .*T.sqlite"):
            strobe.start(tmp_path / "U.sqlite")
    (tmp_path / "V.sqlite.spool").mkdir()
    (tmp_path / "V.sqlite.spool" / "left").touch()
    with pytest.raises(strobe.Error, match="strobe recover"):
        strobe.start(tmp_path / "V.sqlite")
