"""Traces as columns: NumPy arrays over the timeline's own memory, texts as codes with what they stand for."""
from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING, Any, Iterator, Union

from . import _strobe

if TYPE_CHECKING:
    import numpy
    import pandas
    import pyarrow

Array = Any  # numpy.ndarray of any type
_SHOWN_ROWS = 10


class Names:
    """A column of texts: `codes` (no copy) and, of each code, its text. `names == "infer"` is a mask for other columns."""

    def __init__(self, codes: Array, texts: _strobe.Texts) -> None:
        self.codes = codes
        self._texts = texts

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, key: Any) -> Any:
        picked = self.codes[key]
        return Names(picked, self._texts) if getattr(picked, "ndim", 0) else self._texts[int(picked)]

    def __iter__(self) -> Iterator[str]:
        return (self._texts[code] for code in self.codes.tolist())

    def __eq__(self, other: object) -> Any:
        if isinstance(other, str):
            return self.codes == self._texts.find(other)
        if isinstance(other, Names):
            return self.__array__() == other.__array__()
        return NotImplemented

    def __ne__(self, other: object) -> Any:
        same = self == other
        return NotImplemented if same is NotImplemented else ~same

    __hash__ = None  # type: ignore[assignment]

    def isin(self, texts: Any) -> Array:
        """A mask of the rows with one of these texts."""
        import numpy
        return numpy.isin(self.codes, [self._texts.find(text) for text in texts])

    def compact(self) -> tuple[Array, list[str]]:
        """Codes of the texts that occur, and those texts: what pandas.Categorical.from_codes takes."""
        import numpy
        return self._texts.compact(numpy.ascontiguousarray(self.codes))

    @property
    def categories(self) -> list[str]:
        """The different texts."""
        return self.compact()[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        import numpy
        if copy is False:
            raise ValueError("texts cannot be made an array without a copy; .codes can")
        codes, texts = self.compact()
        values = numpy.array(texts, dtype=object)[codes] if texts else numpy.empty(0, dtype=object)
        return values if dtype is None else values.astype(dtype)

    def to_pandas(self) -> pandas.Categorical:
        import pandas
        codes, texts = self.compact()
        return pandas.Categorical.from_codes(codes, categories=pandas.Index(texts, dtype=object))

    def __repr__(self) -> str:
        first = ", ".join(repr(text) for text in self[:5])
        return f"Names([{first}{', ...' if len(self) > 5 else ''}], {len(self)} rows)"


class View:
    """Columns of a trace: `view.start_ns` or `view["start_ns"]`, read-only NumPy arrays; texts are `Names`."""

    def __init__(self, columns: _strobe.Columns) -> None:
        self._source = columns
        self._columns: dict[str, Any] = {
            name: values if texts is None else Names(values, texts) for name, values, texts in columns.columns()}

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._columns[name]
        except (KeyError, TypeError):
            raise KeyError(f"{self._source.title} have no column {name!r}; there are {', '.join(self._columns)}") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._columns[name]
        except KeyError:
            raise AttributeError(
                f"{self._source.title} have no column {name!r}; there are {', '.join(self._columns)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; numbers share the trace's memory, texts are Categorical."""
        import pandas
        return pandas.DataFrame({name: values.to_pandas() if isinstance(values, Names) else values
                                 for name, values in self._columns.items()}, copy=False)

    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow.Table; numbers share the trace's memory, texts are dictionary-encoded."""
        import pyarrow
        return pyarrow.table(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For whatever reads Arrow's C stream interface: pyarrow, polars, DuckDB."""
        return self._source.arrow_stream()

    def _first(self) -> list[list[str]]:
        rows = min(len(self), _SHOWN_ROWS)
        return [[str(values[i]) for values in self._columns.values()] for i in range(rows)]

    def __repr__(self) -> str:
        return _text(f"{self._source.title}: {len(self)} rows", self.columns, self._first(), len(self))

    def _repr_html_(self) -> str:
        return _html(f"{self._source.title}: {len(self)} rows", self.columns, self._first(), len(self), [])


class Table:
    """An analysis's answer: `columns`, `rows` of numbers, texts and None, and `notes` that belong to every reading."""

    def __init__(self, answer: tuple[str, list[tuple[str, str]], list[tuple[Any, ...]], list[str]]) -> None:
        self.title, columns, self.rows, self.notes = answer
        self.columns = [name for name, _ in columns]
        self.help = dict(columns)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.columns:
            raise KeyError(f"{self.title}: no column {column!r}; there are {', '.join(self.columns)}")
        place = self.columns.index(column)
        return [row[place] for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; the notes are in its attrs["notes"]."""
        import pandas
        frame = pandas.DataFrame(self.rows, columns=pandas.Index(self.columns))
        frame.attrs["notes"] = list(self.notes)
        return frame

    def _shown(self) -> list[list[str]]:
        def show(value: Any) -> str:
            return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
        return [[show(value) for value in row] for row in self.rows[:50]]

    def __repr__(self) -> str:
        lines = [_text(self.title, self.columns, self._shown(), len(self)), *self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html(self.title, self.columns, self._shown(), len(self), self.notes)


class Trace:
    """A trace that strobe.open() read. Times are nanoseconds since its first event."""

    def __init__(self, timeline: _strobe.Timeline, path: str) -> None:
        self._timeline = timeline
        self.path = path

    # Columns.
    def ranges(self) -> View:
        """All named intervals, in time order; `parent` and `lane` are rows of ranges() and lanes(), -1 is none."""
        return View(self._timeline.ranges())

    def kernels(self) -> View:
        """What devices executed, with their launch (a row of ranges())."""
        return View(self._timeline.kernels())

    def memcpys(self) -> View:
        """Copies and sets of device memory; bytes is -1 where it is not known."""
        return View(self._timeline.memcpys())

    def api_calls(self) -> View:
        """Calls of the device's runtime or driver."""
        return View(self._timeline.api_calls())

    def arguments(self) -> View:
        """Payload of ranges: `range` is a row of ranges(); a text is in `text`, a number in `number`."""
        return View(self._timeline.arguments())

    def marks(self) -> View:
        """Instants."""
        return View(self._timeline.marks())

    def mark_arguments(self) -> View:
        """Payload of marks."""
        return View(self._timeline.mark_arguments())

    def flows(self) -> View:
        """Arrows from one range to another."""
        return View(self._timeline.flows())

    def counters(self) -> View:
        """Numbers over time; lane is -1 for those of a whole process."""
        return View(self._timeline.counters())

    def frames(self) -> View:
        """One row a frame: from the start of its first range to the end of its last."""
        return View(self._timeline.frames())

    def lanes(self) -> View:
        """Threads, streams and copy engines, where ranges lie."""
        return View(self._timeline.lanes())

    def processes(self) -> View:
        return View(self._timeline.processes())

    # What the trace says of itself.
    @property
    def facts(self) -> dict[str, str]:
        return self._timeline.facts

    @property
    def faults(self) -> dict[str, int]:
        """What the recording could not read, by kind."""
        return self._timeline.faults

    @property
    def dropped_records(self) -> int:
        return self._timeline.dropped_records

    @property
    def duration_ns(self) -> int:
        return self._timeline.duration_ns

    @property
    def utc_start_ns(self) -> int:
        """Wall clock of time 0, nanoseconds since 1970."""
        return self._timeline.utc_start_ns

    # Analyses; each is what the command of that name prints.
    def stats(self, by: str = "range", top: int = 0) -> Table:
        """Figures by name, most time first. by: range, kernel, api, memcpy, operator, stage or annotation."""
        return Table(self._timeline.stats(by, top))

    def kernels_summary(self, by: str = "name", top: int = 0) -> Table:
        """Kernels by name, layer, range, frame, stage or tenant, with how long they waited to start."""
        return Table(self._timeline.kernels_summary(by, top))

    def critical_path(self, range: str = "", instance: int = 0, *, frame: int | None = None) -> Table:
        """What decided how long a range (or a frame, or all) took, by name."""
        return Table(self._timeline.critical_path(range, instance, frame))

    def critical_path_segments(self, range: str = "", instance: int = 0, *, frame: int | None = None) -> Table:
        """The same path piece by piece, in time order."""
        return Table(self._timeline.critical_path_segments(range, instance, frame))

    def idle(self, by: str = "") -> Table:
        """Where the devices' time goes, and why streams wait; by "stage" or "tenant" whose it is."""
        return Table(self._timeline.idle(by))

    def launches(self, by: str = "") -> Table:
        """Calls that gave work to a device, and the delay until it began; by "stage" or "tenant", too."""
        return Table(self._timeline.launches(by))

    def memcpy_summary(self, by: str = "") -> Table:
        """Copies by direction and memory: how much, how fast, how far hidden behind kernels; by "stage" or "tenant", too."""
        return Table(self._timeline.memcpy_summary(by))

    def memcpy_overlap(self, by: str = "") -> Table:
        """Per device, and by "stage" or "tenant": computing, copying, both."""
        return Table(self._timeline.memcpy_overlap(by))

    def advice(self) -> Table:
        """Findings with a next step."""
        return Table(self._timeline.advice())

    def layers(self) -> Table:
        """The network's layers, of a trace of `strobe run`."""
        return Table(self._timeline.layers())

    def stage_latency(self) -> Table:
        """The pipeline's stages, of a trace of `strobe run`."""
        return Table(self._timeline.stage_latency())

    def frame_latency(self) -> Table:
        """One row a finished frame, of a trace of `strobe run`."""
        return Table(self._timeline.frame_latency())

    def throughput(self) -> Table:
        """Frames per second against the physical limit, of a trace of `strobe run`."""
        return Table(self._timeline.throughput())

    def __repr__(self) -> str:
        counts = {name: len(getattr(self._timeline, name)()) for name in ("ranges", "kernels", "marks", "counters", "frames")}
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing recorded"
        lost = f", {self.dropped_records} records lost" if self.dropped_records else ""
        return f"strobe.Trace({self.path!r}: {self.duration_ns / 1e6:.3f} ms, {said}{lost})"


def open(path: Union[str, "os.PathLike[str]"]) -> Trace:
    """The trace at a path: a trace file, the folder of a run, what a recorder left, or a file that `strobe import` reads."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"strobe.open: expected a path as str, not {type(text).__name__}")
    return Trace(_strobe._open(text), text)


def _text(title: str, columns: list[str], rows: list[list[str]], total: int) -> str:
    shown = [[cell if len(cell) <= 40 else cell[:37] + "..." for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [columns, *shown]) for i in range(len(columns))]
    lines = [title, *("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in [columns, *shown])]
    if total > len(rows):
        lines.append(f"... {total - len(rows)} more rows")
    return "\n".join(lines)


def _html(title: str, columns: list[str], rows: list[list[str]], total: int, notes: list[str]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
    more = f"<p>... {total - len(rows)} more rows</p>" if total > len(rows) else ""
    return (f"<p>{html.escape(title)}</p><table><thead>{line(columns, 'th')}</thead><tbody>"
            + "".join(line(row, "td") for row in rows) + f"</tbody></table>{more}"
            + "".join(f"<p>{html.escape(note)}</p>" for note in notes))
