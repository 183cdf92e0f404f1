#!/usr/bin/env bash
# The figures that the design sets budgets for, of `laneway serve` and, turn about with
# it, of the stock gateway: a Markdown table on stdout, progress on stderr. Takes six to
# nine minutes; with STOCK=no, laneway alone, one. More arguments are those of test/load,
# as -into docs/performance.md, which puts the table there.
# Node 24 and the stock gateway are installed from npm under .cache/, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stock=()
if [[ ${STOCK:-yes} != no ]]; then
  . scripts/node.sh
  . scripts/stock.sh
  stock=(-stock "$stock_home/node_modules" -node "$node_home/node_modules/node/bin/node")
fi
mkdir -p .cache/bench
go build -o .cache/bench/ ./cmd/laneway ./test/load
exec .cache/bench/load -laneway .cache/bench/laneway ${stock[@]+"${stock[@]}"} "$@"
