"""What the tests of the Python package share."""
import os
import pathlib
import subprocess
import sys

import pytest

STROBE = os.environ.get("STROBE", "")
DATA = pathlib.Path(os.environ.get("STROBE_SHARED_DATA", "../shared/data"))
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def need_program():
    if not os.access(STROBE, os.X_OK):
        pytest.skip("the program strobe is not built")
    return STROBE


def need_data(path):
    path = DATA / path
    if not path.exists():
        pytest.skip(f"real data is absent: {path}")
    return path


def python(code, *arguments, under=(), check=True, **keywords):
    """Runs code in a Python of its own."""
    done = subprocess.run([*under, sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, **keywords)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def by_name(trace):
    """The rows of a trace's ranges by name, as dicts."""
    ranges = trace.ranges()
    rows = {}
    for i, name in enumerate(ranges.name):
        row = {key: ranges[key][i] for key in ranges.columns}
        rows.setdefault(name, []).append(row | {"row": i})
    return rows


def payload(trace):
    """{(row of the range, key): value}"""
    arguments = trace.arguments()
    value = {"int": arguments.integer, "float": arguments.number, "str": arguments.text}
    return {(int(arguments.range[i]), arguments.key[i]): value[arguments.type[i]][i] for i in range(len(arguments))}
