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
unexport CHAOS_SECONDS # else race and suite would do it, too
# The run may take a minute more, and has to start, mend and check.
CHAOS_TIMEOUT = $(shell expr $(CHAOS_SECONDS) + 600)

# How much is simulated: see lab/sim/README.md.
SIM_SCHEDULES ?= 10000
SIM_HOURS ?= 1000
unexport SIM_SCHEDULES SIM_HOURS # else race and suite would do it, too

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

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PKG=./retry/... narrows race, fuzz and cover; TESTFLAGS go to go test."
	@echo "  ZK_TEST=none does without ZooKeeper, ZK_TEST=required fails without; the default is auto, and required where CI=true."

# Its share of the simulation fits CI's time; make sim has all. The seeds are the same each time: what a run
# says is said of the change. New seeds are drawn each week: .github/workflows/matrix.yml.
.PHONY: test
test: SIM_SCHEDULES = 2000
test: SIM_HOURS = 200
# guards vet, and no debugger looks: the tests are linked in two thirds of the time.
test: export GOFLAGS = -vet=off -ldflags=-w
test: guards suite sim chaos ## What continuous integration runs: guards, all tests, the simulation, chaos

.PHONY: check
check: lint test ## Everything that has to pass before a change is merged

.PHONY: race
race: ## All tests with the race detector, on real servers, too (long: narrow it with PKG)
	$(go_test) -race $(PKG)

# With the race detector a test on real servers takes five times its time. So it is used for the client
# on real servers, and for all else that users import in virtual time, but for the long TestContract. The
# rest runs on real servers at the speed that users see; a test that may run on a standalone server and on
# an ensemble runs on the first here, and on both in make race. Not repeated is what sim and chaos run at
# length. The longest package comes first.
#
# Tests of the client that the race detector would slow down, or make allocate.
measured := TestFootprint TestOperation_without_telemetry_allocates_nothing TestCloseTakesASecondAtTheMost TestFrozenFrontEnd_costs_the_connect_timeout
# Worlds of thousands of cases, whose concurrency other tests have, too. They run without the race detector.
worlds := TestContract TestOwnership TestConvergence TestManySlotsUnderFaults
space := $(subst ,, )

.PHONY: suite
suite: ## All tests, most also with the race detector
	$(go_test) -race ./framework/... ./listeners/... ./retry/... ./internal/...
	ZK_TEST=none go test -race -count=1 -shuffle=on -timeout=20m -skip='^($(subst $(space),|,$(worlds)))$$' ./recipes/lock ./recipes/... ./testing/...
	ZK_TEST=none go test -count=1 -timeout=20m -run='^TestContract$$' ./recipes/lock ./recipes/leader ./recipes/semaphore
	ZK_REAL=one $(go_test) ./recipes/lock ./recipes/... ./testing/...
	@for t in $(measured); do grep -q "^func $$t(" framework/*_test.go || { echo "framework has no $$t: see measured"; exit 1; }; done
	$(go_test) -run='^($(subst $(space),|,$(measured)))$$' ./framework
	@[[ $(ZK_TEST) == none ]] || scripts/setup-promtool || echo "*** NO PROMTOOL: the alerting rules are NOT TESTED"
	$(go_test) $$(go list ./... | grep -vE '/(framework|recipes|testing)(/|$$)')
	@[[ $(ZK_TEST) == none ]] || scripts/setup-kdc || echo "*** NO KDC: Kerberos is NOT TESTED, and skipped"
	@[[ $(ZK_TEST) == none ]] || scripts/setup-chromium || echo "*** NO CHROMIUM: the command's page is NOT TESTED in a browser"
	@[[ $(ZK_TEST) == none ]] || scripts/setup-axe >/dev/null || echo "*** NO AXE: who can use the command's page is NOT TESTED"
	scripts/nested go test -count=1 -timeout=20m -skip='^(TestSimulation|TestChaos)$$' ./...

.PHONY: sim
sim: ## Simulate SIM_SCHEDULES schedules of faults, SIM_HOURS hours; SIM_SEED=n replays one
	@SIM_SCHEDULES=$(SIM_SCHEDULES) SIM_HOURS=$(SIM_HOURS) go test -C lab -count=1 -v -timeout=30m \
		-run='^TestSimulation$$' ./sim

.PHONY: bugs
bugs: ## Put each bug of lab/bugs into a copy of the code: the tests have to find it
	scripts/bugs

.PHONY: guards
guards: ## The checks that take seconds: formats, vet, go.mod, api, releases
	@unformatted=$$(find . -name '*.go' -not -path './.cache/*' -exec gofmt -l {} +); \
	if [[ -n $$unformatted ]]; then echo "gofmt (run make fmt):"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	scripts/nested go vet ./...
	scripts/tidy -diff
	go run ./scripts/api -check
	scripts/fuzz -check
	scripts/bugs -check
	go run ./scripts/release -check
	scripts/install-check

.PHONY: api
api: ## Write what docent exports into api/, after a change of the API
	go run ./scripts/api

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
lint: $(LINT) $(VALE) ## The linters of .golangci.yml (the first time builds them: some minutes), words, vet for other systems
	$(VALE) --output=line --glob='!{.cache/**,**/testdata/**}' .
	GOARCH=386 go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...
	$(LINT) run
	cd cmd/docent && ../../$(LINT) run --config ../../.golangci.yml

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
bench: ## Measure docent beside Curator, go-zookeeper, kazoo and the bare wire (BENCH=regexp of scenarios, BENCHFLAGS=-quick, BEFORE=commit to compare with)
	scripts/setup-zookeeper
	@scripts/setup-interop || echo "*** NO CURATOR OR NO KAZOO: what is missing is NOT MEASURED, and listed"
	@mkdir -p .cache/bench
	go build -C lab -o $(CURDIR)/.cache/bench/bench ./bench
	$(if $(BEFORE),scripts/bench-at $(BEFORE) .cache/bench/bench-before)
	.cache/bench/bench -scenarios '$(BENCH)' -json .cache/bench/bench.json -markdown .cache/bench/bench.md \
		$(if $(BEFORE),-before .cache/bench/bench-before) $(BENCHFLAGS)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each
	FUZZTIME=$(FUZZTIME) scripts/fuzz $(PKG)

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

