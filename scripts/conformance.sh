#!/usr/bin/env bash
# The stock command line, the reference client and the published schema against
# `laneway serve`. Installs Node 24 and the packages from npm under .cache/, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/node.sh

packages=(openclaw@2026.9.6 @openclaw/gateway-client@2026.9.1 @openclaw/gateway-protocol@2026.9.1)
dir=$PWD/.cache/conformance
# The mark names what is installed, whole; it comes last.
if [[ $(cat "$dir/installed" 2>/dev/null) != "${packages[*]}" ]]; then
  rm -rf "$dir"
  mkdir -p "$dir"
  echo "installing ${packages[*]} under .cache/conformance"
  npm install --prefix "$dir" --no-audit --no-fund --no-save --loglevel=error "${packages[@]}"
  echo "${packages[*]}" >"$dir/installed"
fi
export LANEWAY_CONFORMANCE=$dir
exec go run ./scripts/testsum -name conformance -- -count=1 -timeout 15m "$@" ./test/conformance/...
