#!/usr/bin/env bash
# The tests of the infrastructure module, which is a module of its own because CDK
# is 450 MB of modules that nothing else needs. jsii runs the constructs in node.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/node.sh
exec go run ./scripts/testsum -name infra -dir infra -- -timeout 20m ./...
