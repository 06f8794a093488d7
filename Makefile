# The front door. `make demo` and `make test` install what is missing, build, and do what they say; see docs/build.md.
DEPS := $(CURDIR)/build/deps
export STROBE_PYTHON ?= $(DEPS)/venv/bin/python3
export STROBE_COMPILER_LAUNCHER ?= $(shell command -v ccache 2>/dev/null || echo /usr/bin/ccache)
# What was compiled in one checkout is found again in the next one.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
JOBS ?= $(shell nproc)
DEMO_OUT ?= $(CURDIR)/build/demo

.PHONY: all setup bundle build demo test check asan tsan fuzz bench format lint clean
all: build

setup:
	@tools/setup.sh $(DEPS)

# What a machine without packages needs of others' libraries, to be copied there; see docs/bare-build.md.
bundle:
	@tools/bundle_dependencies.sh build/bundle

build: setup
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)

# The main job on a real video: two engines side by side, the table, the report, the annotated videos.
demo: build
	@tools/demo.sh build/release $(DEMO_OUT)

# Layout checks, then every test; the last lines are ctest's summary.
test: build
	@tools/check.sh
	@ctest --preset release -j $(JOBS)

asan tsan: setup
	@cmake --preset $@
	@cmake --build --preset $@ -j $(JOBS)
	@ctest --preset $@ -j $(JOBS)

# Every fuzz target for FUZZ_SECONDS (default 60) each.
FUZZ_SECONDS ?= 60
fuzz: setup
	@cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS) --target fuzz_targets
	@tools/fuzz.sh build/fuzz $(FUZZ_SECONDS) $(JOBS)

# Side-by-side measurements against peers and limits; see docs/benchmarks.md.
bench: build
	@benchmarks/peers/run.sh build/release

format:
	@git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

lint: build
	@tools/check.sh
	@tools/lint.sh build/release

clean:
	@rm -rf build/release build/debug build/asan build/tsan build/fuzz
