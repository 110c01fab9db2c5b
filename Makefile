# `make` prints the targets. Everything continuous integration does is one.

.DEFAULT_GOAL := help
SHELL := /bin/sh

GOLANGCI_VERSION    ?= v2.15.0
GOVULNCHECK_VERSION ?= v1.9.0
SQLC_VERSION        ?= v1.31.1
NFPM_VERSION        ?= v2.45.2

DEMO_SECONDS ?= 45
FUZZ_SECONDS ?= 10
BENCH_FLAGS  ?=
TEST_SCHEMA  ?= adopted
# The engine with which make bench compares: the last commit before the third design
# of its hot path. Empty compares with none.
BENCH_BEFORE ?= 788b150
# The releases that make upgrade upgrades from, and goes back to. No migration upgrades what is older than
# the first one.
UPGRADE_BEFORE ?=
# What is built does not name the folder it was built in, and so a second clone
# finds most of it in the build cache.
GOFLAGS += -trimpath
export DEMO_SECONDS FUZZ_SECONDS GOFLAGS

golangci    = $$(sh .ci/tool.sh golangci-lint $(GOLANGCI_VERSION) github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
govulncheck = $$(sh .ci/tool.sh govulncheck $(GOVULNCHECK_VERSION) golang.org/x/vuln/cmd/govulncheck)
nfpm        = $$(sh .ci/tool.sh nfpm $(NFPM_VERSION) github.com/goreleaser/nfpm/v2/cmd/nfpm)
sqlc        = $$(sh .ci/tool.sh sqlc $(SQLC_VERSION) github.com/sqlc-dev/sqlc/cmd/sqlc)

# A copy without its history, or one that git refuses to read, builds as well.
vcs = $$(git status --porcelain -uno >/dev/null 2>&1 || echo -buildvcs=false)

.PHONY: help
help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: install build ## private servers, two engines, four workers, live traffic with faults, and the dashboard
	@bin/attune-lab demo

.PHONY: build
build: ## build bin/attune-executor, bin/attune-tui and bin/attune-lab
	@sh .ci/build.sh $(vcs)

.PHONY: test
test: install build ## install what is missing, start private servers, run every test with -race, stop them
	@sh .ci/install.sh tmux
	@sh .ci/test.sh $(TEST_ARGS)

.PHONY: test-rules
test-rules: ## evaluate the alert rules and parse the dashboards with promtool, which is unpacked if it is missing
	@folder=$$(sh .ci/promtool.sh) && PATH="$$folder:$$PATH" \
		go test -count 1 -run 'Prometheus' -v ./core/alerting ./core/engine | grep -E '^(---|ok|FAIL)|skip'

.PHONY: test-adopted
test-adopted: install build ## the tests of the engine and of what operators see and do, on the schema of an existing installation; TEST_SCHEMA=hypertables adds a stand-in for TimescaleDB
	@sh .ci/install.sh tmux
	@ATTUNE_TEST_SCHEMA=$(TEST_SCHEMA) sh .ci/test.sh $(TEST_ARGS)

.PHONY: adopt
adopt: install build ## rehearse the adoption of an existing installation on private servers, in two minutes
	@bin/attune-lab rehearse

.PHONY: race
race: ## every test with -race on the shared test servers, which stay for the next run
	@go test -race ./... && go -C lab/bench test -race ./... && go -C deploy/check test -race .

.PHONY: test-short
test-short: ## quick tests without -race, on the shared test servers, which stay for the next run
	@go test -short ./... && go -C lab/bench test -short ./... && go -C deploy/check test -short .

.PHONY: test-stack-down
test-stack-down: build ## stop the shared test servers and remove their data
	@bin/attune-lab stack down --wipe --dir "$${TMPDIR:-/tmp}/attune-test-$$(id -u)"

.PHONY: install
install: ## install PostgreSQL, RabbitMQ and a C compiler where they are missing
	@sh .ci/install.sh

.PHONY: lint
lint: ## golangci-lint with .ci/golangci.yml, and govulncheck where its database can be reached
	@tool=$(golangci) && "$$tool" run --config .ci/golangci.yml ./... && \
		(cd lab/bench && "$$tool" run --config ../../.ci/golangci.yml ./...) && \
		(cd deploy/check && "$$tool" run --config ../../.ci/golangci.yml ./...)
	@sh .ci/vulnerabilities.sh $(govulncheck)

.PHONY: format
format: ## gofumpt and import order, in place
	@$(golangci) fmt --config .ci/golangci.yml ./...

.PHONY: generate
generate: ## run sqlc
	@tool=$(sqlc); mkdir -p .attune/tools; ln -sf "$$tool" .attune/tools/sqlc; \
		PATH="$$PWD/.attune/tools:$$PATH" sh core/store/generate.sh

.PHONY: verify
verify: ## fail unless generated code and go.mod are current
	@sh .ci/verify.sh

.PHONY: house
house: ## how large the project is: lines by area, packages, words
	@sh .ci/house.sh

.PHONY: bench
bench: install build-bench ## executions a second and latencies on private servers; BENCH_FLAGS goes to bin/attune-bench
	@before=$$([ -z "$(BENCH_BEFORE)" ] || sh .ci/before.sh $(BENCH_BEFORE)) && \
		bin/attune-bench $${before:+--before "$$before"} --river $(BENCH_FLAGS)

.PHONY: bench-dashboard
bench-dashboard: install build-bench ## what the dashboard reads from 1,000,000 executions, and its cost, in two minutes
	@bin/attune-bench --dashboard $(BENCH_FLAGS)

.PHONY: build-bench
build-bench: ## build bin/attune-bench, which only measures
	@go -C lab/bench build $(vcs) -o ../../bin/attune-bench .

.PHONY: chaos
chaos: install build ## the long courses of all tests, which make test has in short: every death at every moment, servers killed, the demo
	@sh .ci/install.sh tmux
	@ATTUNE_SLOW_TESTS=1 TEST_PARALLEL=1 TEST_TIMEOUT=60m sh .ci/test.sh $(TEST_ARGS)

.PHONY: upgrade
upgrade: install build ## upgrade from each release of UPGRADE_BEFORE to this one under load, and go back, in three minutes
	@[ -n "$(UPGRADE_BEFORE)" ] || echo "there is no release yet: nothing to upgrade from"
	@for commit in $(UPGRADE_BEFORE); do \
		before=$$(sh .ci/release.sh $$commit) || exit 1; \
		[ -n "$$before" ] || { echo "commit $$commit is not in this copy: nothing to upgrade from" >&2; exit 1; }; \
		ATTUNE_TEST_BEFORE_PROGRAM=$$before sh .ci/test.sh ./cmd/attune-executor -run TestAdjacentReleases -v || exit 1; \
	done

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZ_SECONDS, and 5,000 messages with forged headers on every queue
	@sh .ci/fuzz.sh

.PHONY: screenshots
screenshots: install build ## pictures of the dashboard for the README, from a demo of SCREENSHOT_SECONDS
	@sh .ci/install.sh tmux
	@sh .ci/screenshots.sh

.PHONY: package
package: build ## archives for Linux and macOS, Debian packages, their dependencies and SHA256SUMS, in dist/
	@tool=$(nfpm) && sh .ci/package.sh "$$tool"

.PHONY: verify-package
verify-package: build ## build the packages of this commit in two folders: fail unless all bytes are the same
	@tool=$(nfpm) && sh .ci/verify-package.sh "$$tool"

.PHONY: verify-deploy
verify-deploy: install build ## what make test checks of deploy/, and the Kubernetes manifests by the types of its API
	@TEST_MODULE=deploy/check sh .ci/test.sh ./...

.PHONY: clean
clean: ## remove what was built; data of stacks stays
	@rm -rf bin dist .attune/tools .attune/test.log
