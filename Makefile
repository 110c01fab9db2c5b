# `make` prints the targets. Everything continuous integration does is one.

.DEFAULT_GOAL := help
SHELL := /bin/sh

GOLANGCI_VERSION    ?= v2.15.0
GOVULNCHECK_VERSION ?= v1.9.0
SQLC_VERSION        ?= v1.31.1

DEMO_SECONDS ?= 45
FUZZ_SECONDS ?= 10
BENCH_FLAGS  ?=
# The engine with which make bench compares: the last commit before the second design
# of its hot path. Empty compares with none.
BENCH_BEFORE ?= f95f127
# What is built does not name the folder it was built in, and so a second clone
# finds most of it in the build cache.
GOFLAGS += -trimpath
export DEMO_SECONDS FUZZ_SECONDS GOFLAGS

golangci    = $$(sh .ci/tool.sh golangci-lint $(GOLANGCI_VERSION) github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
govulncheck = $$(sh .ci/tool.sh govulncheck $(GOVULNCHECK_VERSION) golang.org/x/vuln/cmd/govulncheck)
sqlc        = $$(sh .ci/tool.sh sqlc $(SQLC_VERSION) github.com/sqlc-dev/sqlc/cmd/sqlc)

# A copy without its history, or one that git refuses to read, builds as well.
vcs = $$(git status --porcelain -uno >/dev/null 2>&1 || echo -buildvcs=false)

.PHONY: help
help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: install build ## private servers, two engines, four workers, live traffic with faults, and the dashboard
	@bin/attune-executor demo

.PHONY: build
build: ## build bin/attune-executor and bin/attune-tui
	@sh .ci/build.sh $(vcs)

.PHONY: test
test: install build ## install what is missing, start private servers, run every test with -race, stop them
	@sh .ci/install.sh tmux
	@sh .ci/test.sh $(TEST_ARGS)

.PHONY: test-adopted
test-adopted: install build ## the tests of the engine and of what operators see and do, on the schema of an existing installation
	@sh .ci/install.sh tmux
	@ATTUNE_TEST_SCHEMA=adopted sh .ci/test.sh $(TEST_ARGS)

.PHONY: adopt
adopt: install build ## rehearse the adoption of an existing installation on private servers, in two minutes
	@bin/attune-executor migrate rehearse

.PHONY: race
race: ## every test with -race on the shared test servers, which stay for the next run
	@go test -race ./... && go -C bench test -race ./...

.PHONY: test-short
test-short: ## quick tests without -race, on the shared test servers, which stay for the next run
	@go test -short ./... && go -C bench test -short ./...

.PHONY: test-stack-down
test-stack-down: build ## stop the shared test servers and remove their data
	@bin/attune-executor stack down --wipe --dir "$${TMPDIR:-/tmp}/attune-test-$$(id -u)"

.PHONY: install
install: ## install PostgreSQL, RabbitMQ and a C compiler where they are missing
	@sh .ci/install.sh

.PHONY: lint
lint: ## golangci-lint with .ci/golangci.yml, and govulncheck where its database can be reached
	@tool=$(golangci) && "$$tool" run --config .ci/golangci.yml ./... && \
		cd bench && "$$tool" run --config ../.ci/golangci.yml ./...
	@sh .ci/vulnerabilities.sh $(govulncheck)

.PHONY: format
format: ## gofumpt and import order, in place
	@$(golangci) fmt --config .ci/golangci.yml ./...

.PHONY: generate
generate: ## run sqlc and the other generators
	@tool=$(sqlc); mkdir -p .attune/tools; ln -sf "$$tool" .attune/tools/sqlc; \
		PATH="$$PWD/.attune/tools:$$PATH" sh core/store/generate.sh

.PHONY: verify
verify: ## fail unless generated code and go.mod are current
	@sh .ci/verify.sh

.PHONY: bench
bench: install build-bench ## executions a second and latencies on private servers; BENCH_FLAGS goes to bin/attune-bench
	@before=$$([ -z "$(BENCH_BEFORE)" ] || sh .ci/before.sh $(BENCH_BEFORE)) && \
		bin/attune-bench $${before:+--before "$$before"} --river $(BENCH_FLAGS)

.PHONY: bench-dashboard
bench-dashboard: install build-bench ## what the dashboard reads from 1,000,000 executions, and its cost, in two minutes
	@bin/attune-bench --dashboard $(BENCH_FLAGS)

.PHONY: build-bench
build-bench: ## build bin/attune-bench, which only measures
	@go -C bench build $(vcs) -o ../bin/attune-bench .

.PHONY: chaos
chaos: install build ## the long courses of all tests, which make test has in short: every death at every moment, servers killed, the demo
	@sh .ci/install.sh tmux
	@ATTUNE_SLOW_TESTS=1 TEST_PARALLEL=1 TEST_TIMEOUT=60m sh .ci/test.sh $(TEST_ARGS)

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZ_SECONDS, and 5,000 messages with forged headers on every queue
	@sh .ci/fuzz.sh

.PHONY: screenshots
screenshots: install build ## pictures of the dashboard for the README, from a demo of SCREENSHOT_SECONDS
	@sh .ci/install.sh tmux
	@sh .ci/screenshots.sh

.PHONY: clean
clean: ## remove what was built; data of stacks stays
	@rm -rf bin .attune/tools .attune/test.log
