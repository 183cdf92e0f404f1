#!/usr/bin/env bash
# Every test that needs nothing but Go. The race detector needs a C compiler; where
# none is found the tests run without it, and say so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

race=(-race)
read -r -a cc <<<"$(go env CC)"
if [[ $(go env CGO_ENABLED) != 1 ]] || ! command -v "${cc[0]:-cc}" >/dev/null; then
  race=()
  echo "no C compiler (${cc[0]:-cc}): running without the race detector"
fi
exec go run ./scripts/testsum -name test -- "${race[@]+"${race[@]}"}" -timeout 15m "$@" ./...
