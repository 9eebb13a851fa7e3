# `make` lists the targets. CONTRIBUTING.md says when to use which.

SHELL := bash
.DEFAULT_GOAL := help
# The runs of the suite share the machine with the servers they start.
.NOTPARALLEL:

PKG ?= ./...
TESTFLAGS ?=
BENCH ?= .
BENCHFLAGS ?=
FUZZTIME ?= 20s
CHAOS_SECONDS ?= 60
unexport CHAOS_SECONDS # else race and plain would do it, too
# The run may take a minute more, and has to start, mend and check.
CHAOS_TIMEOUT = $(shell expr $(CHAOS_SECONDS) + 600)

# How much is simulated: see lab/sim/README.md.
SIM_SCHEDULES ?= 10000
SIM_HOURS ?= 1000
unexport SIM_SCHEDULES SIM_HOURS # else race and plain would do it, too

# What becomes of tests that need a ZooKeeper: required, auto or none. On a build
# server a test that is skipped must not look like one that passed.
ifeq ($(CI),true)
ZK_TEST ?= required
else
ZK_TEST ?= auto
endif
export ZK_TEST

LINT_VERSION := v2.15.0
LINT := .cache/bin/golangci-lint-$(LINT_VERSION)
VALE_VERSION := v3.21.0
VALE := .cache/bin/vale-$(VALE_VERSION)

# Tests that talk to servers are run anew each time, in an order that varies.
# Most of them wait, for sessions to end and servers to stop, so more run at once
# than there are processors. Those of recipes/lock come near go test's ten minutes on two cores.
go_test := scripts/gotest -count=1 -shuffle=on -parallel=8 -timeout=20m $(TESTFLAGS)
go_files := find . -name '*.go' -not -path './.cache/*'

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PKG=./retry/... narrows test, race, plain, microbench, fuzz and cover; TESTFLAGS go to go test."
	@echo "  ZK_TEST=none does without ZooKeeper, ZK_TEST=required fails without; the default is auto, and required where CI=true."

# Its share of the simulation fits CI's time; make sim has all. Each run takes new seeds.
.PHONY: test
test: SIM_SCHEDULES = 2000
test: SIM_HOURS = 200
# guards vet, and no debugger looks: the tests are linked in two thirds of the time.
test: export GOFLAGS = -vet=off -ldflags=-w
test: guards virtual plain matrix-slice sim chaos ## The guards, all tests, most also with the race detector, other versions, the simulation, chaos

.PHONY: check
check: lint test ## Everything that has to pass before a change is merged

# With the race detector a test on real servers takes five times its time. So `make test` uses it for
# the client on real servers, and for all else that users import in virtual time, but for the long
# TestContract. On real servers plain runs that. The longest package comes first.
.PHONY: virtual
virtual: ## With the race detector: the client on real servers, recipes and test kit in virtual time
	$(go_test) -race ./framework/... ./listeners/... ./retry/... ./internal/...
	ZK_TEST=none go test -race -count=1 -shuffle=on -timeout=20m -skip='^TestContract$$' ./recipes/lock ./recipes/... ./testing/...
	ZK_TEST=none go test -count=1 -timeout=20m -run='^TestContract$$' ./recipes/lock ./recipes/leader ./recipes/semaphore

.PHONY: race
race: ## All tests with the race detector, on real servers, too (long: narrow it with PKG)
	$(go_test) -race $(PKG)

# Not repeated: what virtual runs in an embedded environment or on real servers, and what sim and
# chaos run at length. A test that may run on a standalone server and on an ensemble runs on the first
# here, and on both in make race. The nested modules are tested here.
# Tests of the client that the race detector would slow down, or make allocate.
measured := TestFootprint TestOperation_without_telemetry_allocates_nothing TestCloseTakesASecondAtTheMost TestFrozenFrontEnd_costs_the_connect_timeout
space := $(subst ,, )

.PHONY: plain
plain: ## Without the race detector, at the speed that users see, on real servers; with PKG all tests of it
ifneq ($(PKG),./...)
	$(go_test) $(PKG)
else
	ZK_REAL=one $(go_test) ./recipes/lock ./recipes/... ./testing/...
	@for t in $(measured); do grep -q "^func $$t(" framework/*_test.go || { echo "framework has no $$t: see measured"; exit 1; }; done
	$(go_test) -run='^($(subst $(space),|,$(measured)))$$' ./framework
	@[[ $(ZK_TEST) == none ]] || scripts/setup-promtool || echo "*** NO PROMTOOL: the alerting rules are NOT TESTED"
	$(go_test) $$(go list ./... | grep -vE '/(framework|recipes|testing)(/|$$)')
	@[[ $(ZK_TEST) == none ]] || scripts/setup-kdc || echo "*** NO KDC: Kerberos is NOT TESTED, and skipped"
	@[[ $(ZK_TEST) == none ]] || scripts/setup-chromium || echo "*** NO CHROMIUM: the command's page is NOT TESTED in a browser"
	scripts/nested go test -count=1 -timeout=20m -skip='^(TestSimulation|TestEveryRequest|TestChaos)$$' ./...
endif

.PHONY: sim
sim: ## Simulate SIM_SCHEDULES schedules of faults, SIM_HOURS hours; SIM_SEED=n replays one
	@SIM_SCHEDULES=$(SIM_SCHEDULES) SIM_HOURS=$(SIM_HOURS) go test -C lab -count=1 -v -timeout=30m \
		-run='^(TestSimulation|TestEveryRequest)$$' ./sim

.PHONY: bugs
bugs: ## Put each bug of lab/bugs into a copy of the code: the tests have to find it
	scripts/bugs

.PHONY: guards
guards: fmt-check vet tidy-check api-check fuzz-check release-check ## The checks that take seconds

.PHONY: fmt-check
fmt-check:
	@unformatted=$$($(go_files) -exec gofmt -l {} +); \
	if [[ -n $$unformatted ]]; then echo "gofmt (run make fmt):"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet:
	go vet ./...
	scripts/nested go vet ./...

.PHONY: tidy-check
tidy-check: ## Fail if a go.mod or go.sum is not tidy (scripts/tidy mends it)
	scripts/tidy -diff

.PHONY: api
api: ## Write what docent exports into api/, after a change of the API
	go run ./scripts/api

.PHONY: api-check
api-check:
	go run ./scripts/api -check

.PHONY: release-check
release-check: ## Check that VERSION, CHANGELOG.md and all modules agree, and that users can get each module
	go run ./scripts/release -check
	scripts/install-check

# Nothing is tagged or pushed. The workflow of the tag does the rest: .github/workflows/release.yml.
.PHONY: release
release: ## Try a release of this commit: all its checks and files; then it prints the tags to push
	go run ./scripts/release >/dev/null
	scripts/vulncheck
	scripts/install-check -build
	scripts/release-files -check
	scripts/release-files
	@go run ./scripts/release

.PHONY: lint
lint: prose $(LINT) ## Run the linters of .golangci.yml (the first time builds them: some minutes), and of the prose
	$(LINT) run
	cd cmd/docent && ../../$(LINT) run --config ../../.golangci.yml

.PHONY: prose
prose: $(VALE) ## Check the words of pages and comments by styles/docent
	$(VALE) --output=line --glob='!{.cache/**,**/testdata/**}' .

.PHONY: fmt
fmt: $(LINT) ## Format all files
	$(LINT) fmt

$(LINT):
	GOBIN=$(CURDIR)/.cache/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv .cache/bin/golangci-lint $@

$(VALE):
	GOBIN=$(CURDIR)/.cache/bin go install github.com/vale-cli/vale/v3/cmd/vale@$(VALE_VERSION)
	mv .cache/bin/vale $@

# The figures of a run go to standard output, and to .cache/bench with all their rounds.
.PHONY: bench
bench: setup ## Measure docent beside Curator, go-zookeeper, kazoo and the bare wire (BENCH=regexp of scenarios, BENCHFLAGS=-quick, BEFORE=commit to compare with)
	@scripts/setup-interop || echo "*** NO CURATOR OR NO KAZOO: what is missing is NOT MEASURED, and listed"
	@mkdir -p .cache/bench
	go build -C lab -o $(CURDIR)/.cache/bench/bench ./bench
	$(if $(BEFORE),scripts/bench-at $(BEFORE) .cache/bench/bench-before)
	.cache/bench/bench -scenarios '$(BENCH)' -json .cache/bench/bench.json -markdown .cache/bench/bench.md \
		$(if $(BEFORE),-before .cache/bench/bench-before) $(BENCHFLAGS)

.PHONY: microbench
microbench: ## Run the Go benchmarks of the packages (BENCH=regexp)
	scripts/gotest -run='^$$' -bench='$(BENCH)' -benchmem $(TESTFLAGS) $(PKG)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each
	FUZZTIME=$(FUZZTIME) scripts/fuzz $(PKG)

.PHONY: fuzz-check
fuzz-check:
	scripts/fuzz -check

.PHONY: cover
cover: ## Coverage by all tests, per line in .cache/cover.html; fails below 90 % of lock, framework, retry, listeners
	@mkdir -p .cache
	$(go_test) -coverpkg=./... -coverprofile=.cache/cover.out $(PKG)
	go tool cover -html=.cache/cover.out -o .cache/cover.html
	@go tool cover -func=.cache/cover.out | tail -n 1
	@scripts/coverage .cache/cover.out

.PHONY: interop
interop: ## Contend with Apache Curator and kazoo, installed where apt-get can
	scripts/setup-interop
	ZK_TEST=required scripts/gotest -C lab -count=1 -race ./interop

.PHONY: chaos
chaos: ## Contend on a real ensemble under faults for CHAOS_SECONDS, and check the history
	CHAOS_SECONDS=$(CHAOS_SECONDS) scripts/gotest -C lab -count=1 -v -timeout=$(CHAOS_TIMEOUT)s -run='^TestChaos$$' $(TESTFLAGS) ./chaos

# Continuous integration runs a slice, as matrix-slice draws it. By hand: all, or CELLS.
CELLS ?=

.PHONY: matrix
matrix: ## Test every version of ZooKeeper, Curator and kazoo, and a rolling upgrade (CELLS='zk-3.9.6-* upgrade-*' narrows it)
	scripts/matrix $(CELLS)

.PHONY: matrix-slice
matrix-slice: ## Test a slice of the matrix that takes a minute and changes with each run; MATRIX_SEED=n repeats one
	@if [[ $(ZK_TEST) == none ]]; then echo "*** ZK_TEST=none: other versions are NOT TESTED"; else scripts/matrix -slice 60; fi

.PHONY: matrix-docs
matrix-docs: ## Take the runs of make matrix into lab/matrix.md and the table of README.md
	go run ./scripts/matrixdocs

.PHONY: spec
spec: ## Check the model of the queue protocol exhaustively, and its broken variants
	scripts/setup-spin
	scripts/spec

.PHONY: examples
examples: setup ## Build and run every example
	@set -e; for main in examples/*/main.go; do echo "== $${main%/main.go}"; go -C "$${main%/main.go}" run .; done

.PHONY: setup
setup: ## Install ZooKeeper for the tests, where apt-get can
	scripts/setup-zookeeper

.PHONY: doc
doc: ## Show the documentation in a browser
	go doc -http

.PHONY: clean
clean: ## Remove what these targets made
	rm -rf .cache
