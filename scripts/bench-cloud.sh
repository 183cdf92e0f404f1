#!/usr/bin/env bash
# What the functions do for a turn, and what it costs: the built functions under the
# Lambda runtime interface emulator, over an endpoint that is started for it. Prints the
# tables on stdout; -into FILE and -costs FILE put them into pages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/rie.sh
export DIST=${DIST:-.cache/bench/dist}
arch=$(go env GOARCH)
scripts/build.sh functions "$arch" >&2
go build -o .cache/bench/ ./test/cloud
exec scripts/endpoint.sh run .cache/bench/cloud -emulator "$emulator" -dist "$DIST/$arch" "$@"
