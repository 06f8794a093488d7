# The front door. `make demo` and `make test` install what is missing and build; the rest assumes a set-up machine.
DEPS := $(CURDIR)/build/deps
export STROBE_PYTHON := $(DEPS)/venv/bin/python3
export STROBE_COMPILER_LAUNCHER := $(shell command -v ccache 2>/dev/null || echo /usr/bin/ccache)
JOBS ?= $(shell nproc)

.PHONY: all build setup demo test asan tsan fuzz bench format lint clean

all: build

setup:
	@tools/setup.sh $(DEPS)

build: setup
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)
