#!/usr/bin/env bash
# Ends what scripts/up.sh started: the endpoint, and with it the stack and its data,
# which are in its memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/endpoint.sh stop
rm -rf .cache/up
echo "down: nothing is left running"
