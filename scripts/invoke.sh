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

version=v0.0.0-20261030222936-bef5c4ba774d
emulator=$PWD/.cache/bin/aws-lambda-rie-$version
if [[ ! -x $emulator ]]; then
  mkdir -p "${emulator%/*}"
  temporary=$(mktemp -d "${emulator%/*}/build.XXXXXX")
  GOFLAGS= GOBIN=$temporary go install "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@$version"
  mv "$temporary"/* "$emulator"
  rmdir "$temporary"
fi
arch=$(go env GOARCH)
scripts/build.sh functions "$arch" "$function" >&2
exec scripts/endpoint.sh run go run ./scripts/invoke -emulator "$emulator" -bootstrap "dist/$arch/$function/bootstrap" "$event"
