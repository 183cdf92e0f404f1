#!/usr/bin/env bash
# The stock command line, the reference client and the published schema against
# `laneway serve`. Installs Node 24 and the packages from npm under .cache/, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/node.sh
. scripts/stock.sh

export LANEWAY_CONFORMANCE=$stock_home
exec go run ./scripts/testsum -name conformance -- -count=1 -timeout 15m "$@" ./test/conformance/...
