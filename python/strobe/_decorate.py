"""strobe.range around functions, coroutines and generators."""
from __future__ import annotations

import contextvars
import functools
import inspect
from typing import Any, Callable

from ._strobe import range, ranged


def by_own_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """@strobe.range: the range is called as the function is."""
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str):
        raise TypeError(f"strobe.range: {function!r} has no name of its own; give one: @strobe.range(\"name\")")
    return by_range(range(name), function)


def by_range(timed: range, function: Callable[..., Any]) -> Callable[..., Any]:
    """@strobe.range("name", ...). What others may run in between gets an interval that need not nest."""
    if isinstance(function, (type, staticmethod, classmethod)) or not callable(function):
        raise TypeError(f"strobe.range decorates functions; {function!r} is none"
                        + (" (put it below @staticmethod or @classmethod)" if not isinstance(function, type) else ""))
    if inspect.isasyncgenfunction(function):
        wrapper: Callable[..., Any] = _async_generator(timed, function)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(timed, function)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(timed, function)
    else:
        wrapper = ranged(timed, function)
    return functools.wraps(function)(wrapper)


def _coroutine(timed: range, function: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **keywords: Any) -> Any:
        with _Interval(timed):
            return await function(*args, **keywords)
    return wrapper


def _generator(timed: range, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **keywords: Any) -> Any:
        with _Interval(timed):
            return (yield from function(*args, **keywords))
    return wrapper


def _async_generator(timed: range, function: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **keywords: Any) -> Any:
        with _Interval(timed):
            generator = function(*args, **keywords)
            try:
                item = await anext(generator)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await generator.aclose()
                        raise
                    except BaseException as error:
                        item = await generator.athrow(error)
                    else:
                        item = await generator.asend(sent)
            except StopAsyncIteration:
                return
    return wrapper


class _Interval:
    """From the first step to the last, whatever runs in between."""
    __slots__ = ("timed", "id")

    def __init__(self, timed: range) -> None:
        self.timed = timed

    def __enter__(self) -> None:
        self.id = self.timed._async_begin()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.timed._async_end(self.id, None if kind is GeneratorExit else kind)


# The intervals of `async with` that are open in this task, innermost first: (range, id, outer ones).
_open: contextvars.ContextVar[Any] = contextvars.ContextVar("strobe_open", default=None)


async def _enter(self: range) -> range:
    _open.set((self, self._async_begin(), _open.get()))
    return self


async def _leave(self: range, kind: Any, error: Any, trace: Any) -> None:
    skipped = []
    entry = _open.get()
    while entry is not None and entry[0] is not self:
        skipped.append(entry)
        entry = entry[2]
    if entry is None:
        raise RuntimeError(f"{self!r}: left in a task that has not entered it")
    outer = entry[2]
    for other in reversed(skipped):
        outer = (other[0], other[1], outer)
    _open.set(outer)
    self._async_end(entry[1], kind)


range.__aenter__ = _enter  # type: ignore[method-assign]
range.__aexit__ = _leave  # type: ignore[method-assign]
