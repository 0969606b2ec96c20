# The front door: `make help` lists what there is. CMake and Ninja do the work; each preset of CMakePresets.json has a
# binary directory of its own, the release preset's is build/.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 30
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash

# Configure once, after that Ninja knows when it has to happen again.
build = @[ -f $(dir-$(1))/build.ninja ] || cmake --preset $(1) --log-level=NOTICE >/dev/null; cmake --build $(dir-$(1)) -- --quiet
dir-release := build
$(foreach p,debug asan tsan fuzz clang,$(eval dir-$(p) := build-$(p)))

.PHONY: all
all: ## the program build/stave and the library build/libstave.so (release)
	@tools/install-deps build
	$(call build,release)

.PHONY: debug clang
debug: ## the same in build-debug/, for a debugger
	@tools/install-deps build
	$(call build,debug)
clang: ## the same in build-clang/, by clang
	@tools/install-deps build clang
	$(call build,clang)

.PHONY: test
test: ## all tests
	@tools/install-deps test
	$(call build,release)
	@tests/run

.PHONY: clean
clean: ## removes the binary directories
	rm -rf build build-*/

.PHONY: help
help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 22
