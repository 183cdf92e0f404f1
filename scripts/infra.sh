#!/usr/bin/env bash
# The tests of the infrastructure module, which is a module of its own because CDK
# is 450 MB of modules that nothing else needs. jsii runs the constructs in node,
# so a node is put in front of PATH where the machine has none that is new enough.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/node.sh
sum=$PWD/.cache/bin/testsum
go build -o "$sum" ./scripts/testsum
results=$PWD/.cache/results
cd infra
exec "$sum" -name infra -results "$results" -- -timeout 20m ./...
