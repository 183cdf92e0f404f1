# What can be done here. `make` alone lists it: every target's line after ##.
SHELL := bash
.DEFAULT_GOAL := help

# Each may be given on the command line, as in `make crash KILLS=20`.
KILLS   ?= 200
# Simulations of `make fault`, and how long the conversation of `make soak` lasts.
FAULT_SEEDS ?= 10000
SOAK        ?= 30m
# How long `make storm` blows, and how many stops `make stop-times` measures.
STORM  ?= 3m
ABORTS ?= 200
GOFLAGS_TEST ?=
FUNCTION ?= gateway
EVENT    ?= $(firstword $(wildcard events/$(FUNCTION).json events/$(FUNCTION)-message.json))
ENDPOINT ?=
# Options for the bench, as in make bench BENCH="-into docs/performance.md".
BENCH   ?=
# Options for CDK, as in make deploy CDK="-c laneway.name=second".
CDK     ?=

SUM := go run ./scripts/testsum

##@ Every day

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {print "\n" substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

.PHONY: test
test: ## everything that needs nothing but Go (with -race where a C compiler is there)
	scripts/test.sh $(GOFLAGS_TEST)

.PHONY: check
check: ## what CI runs: all suites below but the long ones, which are shorter
	scripts/check.sh

.PHONY: lint
lint: ## gofumpt, golangci-lint, deadcode, in both modules
	scripts/lint.sh

.PHONY: run
run: ## serve on 127.0.0.1:18789 with the model that the environment names
	go run ./cmd/laneway serve

.PHONY: build
build: ## functions (arm64, amd64) and the command line (linux, darwin, windows) into dist/
	scripts/build.sh

##@ The deployed stack

.PHONY: up
up: ## a whole stack on this machine, without docker or an account (AUTH=true: IAM is judged)
	scripts/up.sh $(CDK)

.PHONY: down
down: ## end it
	scripts/down.sh

.PHONY: deploy
deploy: ## the same stack on AWS, with the credentials of the environment
	scripts/deploy.sh $(CDK)

.PHONY: destroy
destroy: ## take it away again, and say what was kept
	scripts/destroy.sh $(CDK)

##@ Suites that install what they need under .cache/

# Every package whose tests use the endpoint where there is one.
ON_ENDPOINT = $$(grep -rlE 'laneway/test/backends|AWS_ENDPOINT_URL' --include='*_test.go' shared functions | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: endpoint
endpoint: ## adapters and rules on an AWS endpoint that is started for it
	scripts/endpoint.sh run $(SUM) -name endpoint -- -count=1 -timeout 20m $(ON_ENDPOINT)

.PHONY: test-localstack
test-localstack: ## the SQS and S3 suites on LocalStack 4.14.0 (needs Python 3.13, else skipped by name)
	scripts/localstack.sh run $(SUM) -name localstack -- -count=1 ./shared/queue/sqs ./shared/blob/s3

.PHONY: e2e
e2e: ## the deployed stack and its stores as users use them, on a fresh endpoint or at ENDPOINT
	ENDPOINT="$(ENDPOINT)" scripts/e2e.sh

.PHONY: conformance
conformance: ## the stock command line, the reference client and the published schema
	scripts/conformance.sh

.PHONY: model
model: ## a real small model, end to end
	scripts/model.sh

# tiny, small (what CI searches) or full (when a rule changes: minutes, 2 GB).
MODEL   ?= small

.PHONY: model-check
model-check: ## search the model of the rules, and each wrong variant of them (MODEL=full: all)
	GOMAXPROCS=1 $(SUM) -name model-check -- -count=1 -timeout 30m ./test/model -args -model $(MODEL)

.PHONY: crash
crash: ## kill serve at random moments, KILLS times (default 200), while clients talk
	LANEWAY_KILLS=$(KILLS) $(SUM) -name crash -- -count=1 -timeout 40m ./test/crash/...

.PHONY: fault
fault: ## the durable core in FAULT_SEEDS simulations in which all goes wrong (default 10000)
	FAULT_SEEDS=$(FAULT_SEEDS) $(SUM) -name fault -- -count=1 -timeout 40m ./test/fault/...

.PHONY: soak
soak: ## a conversation of SOAK (default 30m) with a gateway that dies every five seconds
	SOAK=$(SOAK) $(SUM) -name soak -- -count=1 -timeout 90m -run '^TestSoak$$' ./test/fault

.PHONY: soak-endpoint
soak-endpoint: ## likewise with a deployed stack, whose runner's process is killed
	SOAK=$(SOAK) ENDPOINT="$(ENDPOINT)" scripts/e2e.sh -timeout 90m -run '^TestSoak$$'

.PHONY: recovery
recovery: ## how long a conversation stands still when its gateway is killed, three times for real
	LANEWAY_RECOVERY=3 $(SUM) -name recovery -- -count=1 -timeout 20m -run '^TestRecovery' ./test/crash
	LANEWAY_RECOVERY=3 ENDPOINT="$(ENDPOINT)" scripts/e2e.sh -run "^TestStores_Recovery"

.PHONY: storm
storm: ## 40 clients write to 10 sessions for STORM (default 3m) while the model fails by a plan
	LANEWAY_STORM=$(STORM) go test -count=1 -timeout 40m -v ./test/storm/...

# STACK=yes: the stops of a deployed stack instead.
STACK   ?=

.PHONY: stop-times
stop-times: ## how long ABORTS (default 200) stops take: on one machine, with AWS_ENDPOINT_URL over its stores, with STACK=yes deployed
ifeq ($(STACK),)
	LANEWAY_ABORTS=$(ABORTS) go test -count=1 -timeout 40m -v ./test/stoptimes/...
else
	LANEWAY_ABORTS=$(ABORTS) ENDPOINT="$(ENDPOINT)" scripts/e2e.sh -timeout 60m -run '^TestStopTimes$$'
endif

# Which gateway the terminal client meets: serve or stack.
TARGET  ?= serve

.PHONY: tui
tui: ## the stock terminal client in tmux: steer, collect, stop, a death (TARGET=stack: deployed)
	scripts/tui.sh $(TARGET)

.PHONY: infra-test
infra-test: ## the template's tests (the first build of its module takes a minute)
	scripts/infra.sh
	scripts/lint-template.sh

.PHONY: bench
bench: ## the figures of docs/performance.md, beside the stock gateway (STOCK=no: alone)
	scripts/bench.sh $(BENCH)

.PHONY: bench-cloud
bench-cloud: ## what a turn asks of AWS, cold starts, costs (BENCH="-into FILE -costs FILE")
	scripts/bench-cloud.sh $(BENCH)

.PHONY: scale
scale: ## what one stack carries: the simulation of docs/scale.md, with its tables
	go run ./test/load/sim -into docs/scale.md

.PHONY: invoke
invoke: ## a sample event to a function: FUNCTION=gateway EVENT=events/gateway-message.json
	scripts/invoke.sh "$(FUNCTION)" "$(EVENT)"
