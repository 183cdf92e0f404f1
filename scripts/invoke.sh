#!/usr/bin/env bash
# Sends a sample event to a function, under the Lambda runtime interface emulator, over
# an endpoint that is started for it:
#
#   invoke.sh FUNCTION [EVENT FILE]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
function=${1:?which function}
event=${2:-events/$function.json}
if [[ ! -f $event ]]; then
  echo "there is no event $event; there are:" >&2
  printf '  %s\n' events/*.json >&2
  exit 2
fi

. scripts/rie.sh
arch=$(go env GOARCH)
scripts/build.sh functions "$arch" "$function" >&2
exec scripts/endpoint.sh run go run ./scripts/invoke -emulator "$emulator" -bootstrap "dist/$arch/$function/bootstrap" "$event"
