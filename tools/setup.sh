#!/usr/bin/env bash
# Installs what Strobe builds and tests with: Debian packages, and a Python environment (in the folder given) whose
# wheels carry LibTorch, OpenVINO and plotly. Does nothing when all is there. STROBE_SETUP_OFFLINE=1 installs nothing
# and says what is missing.
set -euo pipefail
deps=${1:?usage: setup.sh DEPS_FOLDER}
stamp=$deps/.complete-$(sha256sum "$0" | cut -c1-16)

build_packages=(
  g++ cmake ninja-build ccache pkg-config git python3 python3-dev python3-venv
  libfmt-dev nlohmann-json3-dev libcli11-dev libsqlite3-dev libzstd-dev liblz4-dev zlib1g-dev libisal-dev libyaml-cpp-dev libcpp-httplib-dev
  libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libavdevice-dev libavfilter-dev libfreetype-dev fonts-dejavu-core
  libopencv-dev libfastrtps-dev libfastcdr-dev
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev clang clang-format clang-tidy libclang-rt-14-dev
  chromium ffmpeg sqlite3 opencv-doc libgstrtspserver-1.0-dev libffmpeg-nvenc-dev gstreamer1.0-plugins-base
  gstreamer1.0-plugins-good gstreamer1.0-plugins-ugly liblttng-ust-dev lttng-tools
)
torch=torch==2.13.0
engines=("openvino==2026.2.1" "plotly==7.1.0" "viztracer==1.1.1" "numpy<2.3")
# Programs and headers that `strobe record` is tested with.
recorded=("nvtx==0.2.17" "nvidia-nvtx==13.5.25" "ittapi==1.2.2")
# What the Python package is built with, and its tests.
package=("nanobind==3.1.0" "scikit-build-core==1.1.2" "pytest==9.2.0" "pandas==3.1.1" "pyarrow==26.0.1" "mypy==2.4.1"
  "numpy<2.3")
# What tests compare with; without what they depend on, which might replace the torch above.
peers=("torchvision==0.28.0" "safetensors==0.8.0" "pillow>=11" "pycocotools==2.0.11")
# Readers of the networks that strobe model export writes.
onnx=("onnx==1.23.2" "onnxruntime==1.32.0" "numpy<2.3")
# Other readers and writers of sensor data, and the programs of other DDS users.
sensors=("mcap==1.6.0" "rosbags==0.11.9" "cyclonedds==11.0.1" "miepython==3.3.0" "lz4" "zstandard")
# nuScenes' own metrics; of what it depends on, only what they import.
devkit=("nuscenes-devkit==1.2.0" "pyquaternion==0.9.9")

[ -e "$stamp" ] && exit 0
offline=${STROBE_SETUP_OFFLINE:-}

if command -v dpkg-query >/dev/null; then
  missing=() unknown=()
  for debian in "${build_packages[@]}" "${test_packages[@]}"; do
    dpkg-query -W -f='${Status}' "$debian" 2>/dev/null | grep -q '^install ok installed' || missing+=("$debian")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    if [ -n "$offline" ]; then
      echo "setup: missing packages: ${missing[*]}" >&2
    else
      as_root=()
      if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
      "${as_root[@]}" apt-get update -qq
      # Another release has other names; what it lacks switches its part off, and CMake says what it cannot do without.
      known=()
      for debian in "${missing[@]}"; do
        candidate=$(LC_ALL=C apt-cache policy "$debian" 2>/dev/null | sed -n 's/^ *Candidate: //p')
        if [ "${candidate:-(none)}" = "(none)" ]; then unknown+=("$debian"); else known+=("$debian"); fi
      done
      [ ${#unknown[@]} -eq 0 ] || echo "setup: packages that this system's apt does not know: ${unknown[*]}" >&2
      missing=("${known[@]}")
      echo "setup: installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
      DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    fi
  fi
else
  echo "setup: this is no Debian: packages are left to you (see docs/build.md)" >&2
fi

mkdir -p "$deps"
python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3)
if [ ! -x "$deps/venv/bin/python3" ]; then
  "$python" -m venv "$deps/venv"
fi
[ -z "$offline" ] || exit 0

# Each engine is optional: wheels that cannot be had leave the others standing, and are asked for again the next time.
failed=
wheels() {  # what is missing without them, then what pip is to install
  local without=$1
  shift
  "$deps/venv/bin/pip" install --quiet --disable-pip-version-check "$@" || {
    echo "setup: $without" >&2
    failed=1
  }
}
echo "setup: Python wheels (LibTorch, OpenVINO, plotly) into $deps/venv" >&2
wheels "no torch wheel: the engine torch will not be built" "$torch"
# A torch for CUDA comes with all of CUDA's headers but these.
cuda=$("$deps/venv/bin/python3" -c 'import importlib.metadata as m; print(m.version("nvidia-cuda-runtime"))' 2>/dev/null || true)
[ -z "$cuda" ] || wheels "no nvidia-cuda-crt wheel: torch:graph will not be built" --no-deps "nvidia-cuda-crt==${cuda%.*}.*"
wheels "wheels are missing: openvino or the report's plots will not be built" "${engines[@]}"
wheels "no nanobind or pytest wheel: the Python package will not be built" "${package[@]}"
wheels "no torchvision, safetensors or pycocotools wheel: tests against them will be skipped" --no-deps "${peers[@]}"
wheels "no onnx or onnxruntime wheel: tests of exported networks skip" "${onnx[@]}"
wheels "no mcap, rosbags or cyclonedds wheel: the sensors' tests that need them skip" "${sensors[@]}" "numpy<2.3"
wheels "no nuscenes-devkit wheel: the tests that compare metrics with it skip" --no-deps "${devkit[@]}"
wheels "no nvtx or ittapi wheel: the tests of strobe record that need them skip" --no-deps "${recorded[@]}"
if [ -n "$failed" ]; then
  echo "setup: not everything could be had; the next make asks again (STROBE_SETUP_OFFLINE=1: no asking)" >&2
else
  touch "$stamp"
fi
