#!/usr/bin/env bash
# The product as its users use it, on an endpoint that stands for AWS: deployed, as a
# client over its WebSocket API, and `laneway serve --backend aws` over its stores.
#
#   scripts/e2e.sh [ARGS of go test...]
#
# Without ENDPOINT a fresh one is started (scripts/endpoint.sh) that judges every call
# by the roles of the stack, and everything must run. With ENDPOINT=http://host:port
# what listens there is used as it is; what it does not offer is skipped by name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -z ${LANEWAY_E2E:-} ]]; then
  if [[ -n ${ENDPOINT:-} ]]; then
    export LANEWAY_E2E=offered AWS_ENDPOINT_URL=${ENDPOINT%/} AWS_ENDPOINT_URL_S3=${ENDPOINT%/}
    export AWS_REGION=${AWS_REGION:-us-east-1} AWS_DEFAULT_REGION=${AWS_REGION:-us-east-1}
    export AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-test} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-test}
  else
    export LANEWAY_E2E=all AUTH=true
    exec scripts/endpoint.sh run scripts/e2e.sh "$@"
  fi
fi

# What the scripts build is apart from what somebody else may be deploying.
mkdir -p .cache/e2e
export DIST=.cache/e2e/dist
. scripts/node.sh
. scripts/stock.sh
export LANEWAY_CONFORMANCE=$stock_home
figures=$(mktemp .cache/e2e/figures.XXXXXX)
export LANEWAY_E2E_FIGURES=$PWD/$figures
trap 'rm -f "$figures"' EXIT
code=0
go run ./scripts/testsum -name e2e -- -count=1 -timeout 20m "$@" ./test/e2e || code=$?
sort -s -k1,1 "$figures"
exit "$code"
