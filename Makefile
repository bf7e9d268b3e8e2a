# SPDX-License-Identifier: GPL-2.0
# What a target does is in the scripts of stack/ and bench/.
# KERNEL=/path gives the base from a tree of yours; see CONTRIBUTING.md.

.DEFAULT_GOAL := help
# One thing at a time; the scripts use every core themselves.
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory
export KERNEL
# Times on screen count from here, not from a shell that ran make before.
export PERF_BPF_T0 := $(shell date +%s)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## install what is missing on this machine, by package name
	@stack/setup

.PHONY: tree
tree: setup ## the base plus the series, as commits in build/linux
	@stack/build tree

.PHONY: refresh
refresh: ## write build/linux's commits back to patches/, series and the files they create
	@stack/refresh

.PHONY: topic
topic: ## a topic on what it needs, as a branch for b4 send: make topic TOPIC=NAME
	@stack/topic "$(TOPIC)"

.PHONY: kernel
kernel: setup ## build the guest's kernel
	@stack/build kernel series

.PHONY: debug-kernel
debug-kernel: setup ## build the guest's kernel with KASAN, lockdep and kmemleak
	@stack/build kernel debug

.PHONY: base-kernel
base-kernel: setup ## build the guest's kernel without the series
	@stack/build kernel base

.PHONY: perf
perf: setup ## build perf
	@stack/build perf series

.PHONY: base-perf
base-perf: setup ## build perf without the series
	@stack/build perf base

.PHONY: selftests
selftests: setup ## build the series' kselftests
	@stack/build selftests

.PHONY: samples
samples: perf ## build what the guest runs with libbpf: the example of a BPF program
	@tests/guest/build_programs samples

.PHONY: fuzz
fuzz: setup ## fuzz perf's reading of BPF and kernel text in perf.data (libFuzzer): make fuzz FOR=600 (seconds)
	@tests/fuzz/fuzz $(or $(FOR),600)

.PHONY: bpf-selftests
bpf-selftests: kernel ## build those tests of selftests/bpf that the series adds or changes
	@tests/guest/build_programs bpf-selftests

.PHONY: guest
guest: ## run a command in the guest: make guest CMD='uname -a'
	@[ -n "$$CMD" ] || { echo "make guest: say what to run: make guest CMD='uname -a'" >&2; exit 2; }
	@stack/setup
	@stack/build kernel series
	@stack/guest -- bash -c "$$CMD"

.PHONY: shell
shell: kernel perf selftests ## a shell in the guest, with perf, $SELFTESTS and all else that a test there has
	@stack/guest --shell

.PHONY: probe
probe: setup ## see that a guest can boot here, and whether with KVM (seconds)
	@stack/guest --probe

.PHONY: demo
demo: ## record BPF programs on this machine's kernel, then in the guest what only the series tells
	@stack/demo --plan
	@stack/setup
	@stack/demo

.PHONY: demo-perf
demo-perf: ## the first act alone: perf is built, no kernel
	@stack/demo perf --plan
	@stack/setup
	@stack/demo perf

.PHONY: lint
lint: ## series, generated files, style of patches and scripts (half a minute to two; ten the first time)
	@stack/lint

.PHONY: check
check: probe ## what CI runs: lint, builds, all tests of the product, what has not changed since it passed left out; TEST=NAME: those tests, on what is built
	@stack/check$(if $(TEST), --only "$(TEST)")

.PHONY: check-base
check-base: probe ## the same tests without the series: one that passes and is not marked `both` fails; TEST=NAME
	@stack/check base$(if $(TEST), --only "$(TEST)")

.PHONY: topics
topics: setup ## compile each topic on what it needs, changed or not (half an hour)
	@stack/check topics

.PHONY: check-debug
check-debug: probe ## the guest's tests with KASAN, lockdep, kmemleak and SELinux (45 to 90 minutes)
	@stack/check debug

.PHONY: check-tooling
check-tooling: probe ## the tests of stack/ (2 minutes on what is built)
	@stack/check tooling

.PHONY: prefixes
prefixes: setup ## build after each patch what depends on it, and link perf (over an hour); one topic: TOPIC=NAME
	@stack/check prefixes

.PHONY: debian
debian: setup ## the series' perf on Debian's kernels 6.1 and 6.12, in the guest, and btf_func on its cloud kernel (half an hour)
	@stack/check debian

.PHONY: stress
stress: setup ## 100,000 programs while perf records, and half an hour of each churn with KASAN (two hours)
	@stack/check stress

.PHONY: check-full
check-full: ## check, topics, fuzz, check-debug, check-tooling, prefixes, debian, stress, one after the other (half a day)
	@status=0; for target in check topics fuzz check-debug check-tooling prefixes debian stress; do \
		$(MAKE) $$target || { status=1; failed="$$failed $$target"; }; \
	done; [ -z "$$failed" ] || echo "check-full: failed:$$failed" >&2; exit $$status

.PHONY: mainline
mainline: setup ## mainline's own tests, on the base and on the series, compared (over an hour); GROUP="NAME...": these groups
	@stack/check mainline

.PHONY: configurations
configurations: tree ## compile what the series touches in other configurations
	@stack/setup configurations
	@build=$${PERF_BPF_BUILD:-build}; \
		JOBS=$$(nproc) tests/full/configurations $$build/linux $$build/configurations; \
		kernel=$$?; JOBS=$$(nproc) tests/full/perf_configurations $$build/linux \
			$$build/configurations/perf && exit $$kernel

.PHONY: ended
ended: kernel ## the series on a kernel with upstream's 4eaf4d71b91a: which patches go, which change (ten minutes)
	@tests/full/ended

.PHONY: bare
bare: ## make demo and make check in a new Debian that has git, make and a package mirror
	@tests/full/bare demo check

.PHONY: bench
bench: perf base-perf selftests kernel base-kernel ## measure what the series costs and saves
	@stack/setup bench
	@bench/run
	@bench/ksymbol
	@bench/ksymbol-contend
	@bench/bpf-event
	@bench/sample-data
	@bench/probe-events
	@bench/instances

.PHONY: clean
clean: ## remove what was built and measured, keep the base, the tree and the downloads
	@stack/build clean

.PHONY: distclean
distclean: ## remove build/ whole, unless build/linux has work that is not in patches/
	@stack/build distclean

export CMD
export PERF_BPF_TOPIC := $(TOPIC)
export PERF_BPF_GROUP := $(GROUP)
ifeq ($(origin T),command line)
$(error T= is TEST= (check, check-base: a part of tests' names), TOPIC= (topic, prefixes) or GROUP= (mainline))
endif
