#!/usr/bin/env bash
# Runs the CDK command line with the arguments given, e.g. scripts/cdk.sh diff.
# Installs it under .cache/cdk, from npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=2.1148.1
home=$PWD/.cache/cdk

# CDK for Go starts "node" by name; scripts/node.sh puts a recent one first in PATH.
. scripts/node.sh >&2
if [[ $(cat "$home/version" 2>/dev/null) != "$version" ]]; then
  echo "installing aws-cdk $version under .cache/cdk" >&2
  npm install --prefix "$home" --no-save --no-audit --no-fund --loglevel=error "aws-cdk@$version" >&2
  echo "$version" >"$home/version"
fi
exec "$home/node_modules/.bin/cdk" "$@"
