#!/usr/bin/env bash
# Everything that CI judges, in the order in which it is cheapest to fail: the
# suites that need nothing first, then those that install something. All of them
# run even when one fails, so that one broken suite does not hide another; the
# exit code and the last lines tell.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -rf .cache/results
mkdir -p .cache/results
failed=()
step() {
  local name=$1 started=$SECONDS
  shift
  printf '\n=== %s\n' "$name"
  if "$@"; then
    printf -- '--- %s: ok, %d s\n' "$name" $((SECONDS - started))
  else
    printf -- '--- %s: FAILED, %d s\n' "$name" $((SECONDS - started))
    failed+=("$name")
  fi
}

# The model's server takes minutes to compile: that begins now, and gets the time that
# the suites leave. The suite that needs it waits for it.
mkdir -p .cache
nice -n 19 scripts/model.sh install >.cache/model-install.log 2>&1 </dev/null &

step test make --no-print-directory test
step lint make --no-print-directory lint
# Each system once: every further architecture compiles everything again.
step build env BUILD_CLI="linux/amd64 darwin/arm64 windows/amd64" make --no-print-directory build
step infra make --no-print-directory infra-test
step endpoint make --no-print-directory endpoint
step e2e make --no-print-directory e2e
step localstack make --no-print-directory test-localstack
step conformance make --no-print-directory conformance
step model-check make --no-print-directory model-check MODEL=small
step fault make --no-print-directory fault FAULT_SEEDS="${LANEWAY_CI_SEEDS:-1000}"
step soak make --no-print-directory soak SOAK="${LANEWAY_CI_SOAK:-2m}"
step storm make --no-print-directory storm STORM="${LANEWAY_CI_STORM:-20s}"
step crash make --no-print-directory crash KILLS="${LANEWAY_CI_KILLS:-20}"
step model make --no-print-directory model

echo
exec go run ./scripts/testsum -total -failed "${failed[*]-}"
