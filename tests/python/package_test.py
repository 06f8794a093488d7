"""The package as a whole: its types, its examples."""
import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import strobe
import strobe._strobe
from support import SOURCE

PACKAGE = pathlib.Path(strobe.__file__).parent


def public(names):
    return {name for name in names if not name.startswith("__")}


def test_stub_names_what_the_module_has():
    stub = ast.parse((PACKAGE / "_strobe.pyi").read_text())
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    assert functions | set(classes) == public(dir(strobe._strobe))
    for name, node in classes.items():
        described = {item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}
        if name != "Error":
            assert public(described) == public(vars(getattr(strobe._strobe, name))), name


def test_names_that_are_promised_are_there():
    assert all(hasattr(strobe, name) for name in strobe.__all__)
    assert "frame=None" in str(inspect.signature(strobe.push))


PROGRAM = '''
import strobe
from typing import assert_type

@strobe.range
def add(a: int, b: int) -> int:
    return a + b

@strobe.range("named", frame=3, size=1)
async def wait(text: str) -> bytes:
    async with strobe.range("inside") as inside:
        inside.arg(a=1)
    return text.encode()

assert_type(add(1, 2), int)
strobe.counter("queue").set(1.5)
with strobe.record("T.sqlite") as recording:
    strobe.mark("here", why="because")
assert_type(strobe.open("T.sqlite").facts, dict[str, str])
add("a", 2)  # error
strobe.range(3, frame="x")  # error
'''


def test_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    config = ["--config-file", str(SOURCE / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([sys.executable, "-m", "mypy", *config, "-p", "strobe", "-m", "program"], capture_output=True,
                          text=True, cwd=tmp_path, env=os.environ | {"MYPYPATH": f"{tmp_path}:{PACKAGE.parent}"})
    wrong = [line for line in done.stdout.splitlines() if "error:" in line]
    lines = PROGRAM.splitlines()
    places = {int(line.split(":")[1]) for line in wrong if line.startswith("program.py")}
    assert places == {i + 1 for i, line in enumerate(lines) if line.endswith("# error")}, done.stdout
    assert all(line.startswith("program.py") for line in wrong), done.stdout


def test_examples_of_the_documentation(tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    blocks = re.findall(r"```python\n(.*?)```", (SOURCE / "docs" / "python.md").read_text(), re.S)
    assert len(blocks) == 3
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)})
    assert done.returncode == 0, done.stderr
    assert "Statistics by range" in done.stdout and "Critical path" not in done.stderr
