#!/usr/bin/env bash
# Builds the wheel as `pip install .` does (with the build tools of this environment), installs it into an empty folder
# and uses it from there. Without optimisation: the package is what is tested here, the code is elsewhere.
set -euo pipefail
python=$1 source=$2 build=$3
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH
"$python" -m pip wheel "$source" --no-build-isolation --no-deps --disable-pip-version-check --quiet -w "$folder/wheel" \
  --config-settings=build-dir="$build" --config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0
"$python" -m pip install --no-deps --no-index --disable-pip-version-check --quiet --target "$folder/site" \
  "$folder"/wheel/strobe-*.whl
cd "$folder"
PYTHONPATH=$folder/site "$python" - <<'PROGRAM'
import pathlib
import strobe

assert pathlib.Path(strobe.__file__).parent == pathlib.Path("site/strobe").resolve(), strobe.__file__
with strobe.record("T.sqlite"):
    with strobe.range("work"):
        pass
trace = strobe.open("T.sqlite")
assert list(trace.ranges().name) == ["work"]
names = sorted(path.name for path in pathlib.Path("site/strobe").iterdir() if path.suffix in (".so", ".pyi", ".typed"))
assert names[0].startswith("_strobe.") and names[1:] == ["_strobe.pyi", "py.typed"], names
size = sum(path.stat().st_size for path in pathlib.Path("wheel").glob("*.whl"))
print(f"wheel of {size / 1e6:.1f} MB works")
PROGRAM
