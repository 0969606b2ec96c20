# `make help` lists the targets. CMake and Ninja do the work; each preset of CMakePresets.json has a
# binary directory of its own, the release preset's is build/.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 30
T ?=
MAKEFLAGS += --no-print-directory

.PHONY: all
all: ## the program build/stave and the library build/libstave.so
	@tools/install-deps build
	@tools/build release

.PHONY: server
server: ## the same with build/stave-server, build/stave-load, --inject mpi and gRPC
	@tools/install-deps server
	@tools/build release all server

.PHONY: debug clang minimal
debug: ## the same in build-debug/, for a debugger
	@tools/install-deps build
	@tools/build debug
clang: ## the same in build-clang/, by clang, tests and benches included
	@tools/install-deps build clang
	@tools/build clang all tests benches
minimal: ## the same in build-minimal/, without the optional libraries, tests included
	@tools/install-deps build
	@tools/build minimal all tests

.PHONY: run
run: all ## makes a trace, a report and a picture from a bundled sample
	@tools/run-sample

# The release build gets everything; what reads hostile bytes is run again under ASan and UBSan.
.PHONY: check test test-long asan tsan
check: ## T=WORD: unit and command-line tests with WORD in their name, seconds after an edit
	@[ -n "$(T)" ] || { echo "usage: make check T=WORD" >&2; exit 2; }
	@tools/install-deps build
	@tools/build release stave_program unit
	@tests/run -f "$(T)" build:unit,cli,golden
test: ## all tests (T=WORD: only those with WORD in their name)
	@tools/install-deps test
	@tools/build release all tests
	@tests/run -m 'tools/build asan input_tests && tools/build count stave_program' -f "$(T)" build build-asan:unit,fuzz,golden,cli
test-long: ## all tests in all builds
	@tools/install-deps long clang
	@tools/build release all tests benches
	@tools/build asan all tests
	@tools/build count stave_program
	@tools/build tsan all tests
	@tools/build clang all tests benches
	@tools/build minimal all tests
	@STAVE_LONG=1 TEST_TIMEOUT=7200 tests/run -f "$(T)" build build-asan:unit,fuzz,golden,cli,laws,stress build-tsan:unit,stress \
	  build-clang:unit,golden build-minimal:unit,golden,cli
	@[ -n "$(T)" ] || tools/lint tidy
	@[ -n "$(T)" ] || tools/mutate --sample 12
asan: ## all tests that can run under ASan and UBSan
	@tools/install-deps test
	@tools/build asan all tests
	@tests/run -f "$(T)" build-asan:unit,fuzz,golden,cli,laws,stress
tsan: ## the unit and stress tests under TSan
	@tools/install-deps test clang
	@tools/build tsan all tests
	@tests/run -f "$(T)" build-tsan:unit,stress

.PHONY: bench
bench: ## measures and compares with the budgets
	@tools/install-deps bench
	@tools/build release all benches
	@bench/run

.PHONY: fuzz
fuzz: ## fuzzes each target for FUZZ_SECONDS (T=WORD: only targets with WORD in their name)
	@tools/install-deps fuzz
	@tools/build fuzz fuzz_targets
	@tools/fuzz --seconds=$(FUZZ_SECONDS) $(T)

.PHONY: lint format
lint: ## format, clang-tidy, shellcheck, layers, style
	@tools/install-deps lint
	@tools/build clang all tests benches
	@tools/lint
format: ## formats the C and C++ files in place
	@tools/install-deps lint
	@tools/lint --fix

PYTHONS ?=
.PHONY: install deb wheel dist
wheel: ## Python wheels and a source distribution in build-wheel/dist/ (PYTHONS="python3.11 python3.12", or all: a wheel for each)
	@tools/install-deps wheel
	@tools/make-wheel $(PYTHONS)
dist: ## a tarball for machines without root, compiler and Python: program, libraries, manual, completion, in build-wheel/dist/
	@tools/install-deps wheel
	@tools/make-wheel --dist
install: all ## program, library, headers, manual, completion under PREFIX (honours DESTDIR)
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
deb: ## a Debian package in build/
	@tools/install-deps deb
	@tools/build release
	@cd build && cpack -G DEB >cpack.log || { cat cpack.log >&2; exit 1; }
	@ls build/*.deb

.PHONY: clean
clean: ## removes the binary directories and out/
	rm -rf build build-*/ out

.PHONY: help
help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 18
