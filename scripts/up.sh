#!/usr/bin/env bash
# From a fresh clone to a deployed stack on this machine, without docker or an
# account: starts an endpoint (scripts/endpoint.sh), builds the functions, deploys,
# and prints how to talk to it. Again: redeploys. scripts/down.sh ends it.
#
#   scripts/up.sh [-c laneway.KEY=VALUE...]
#
# UP is the directory of its logs and client settings (.cache/up); DIST is that of the
# built functions.
# AUTH=true has the endpoint judge every call by the roles of the stack. With
# AWS_ENDPOINT_URL set, the stack goes there and no endpoint is started. The model is
# LANEWAY_MODEL, else whichever has a key in the environment, else the demo one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/node.sh
. scripts/stack.sh
up=${UP:-.cache/up}
outputs=$up/outputs.json
mkdir -p "$up"
rm -f "$outputs"

if [[ -z ${AWS_ENDPOINT_URL:-} ]]; then
  step "endpoint"
  scripts/endpoint.sh start
  . .cache/endpoint.env
fi
endpoint_options
options+=(--output "$up/cdk.out" -c "laneway.assets=${DIST:-dist}")
keys=()
for name in ANTHROPIC_API_KEY OPENAI_API_KEY OPENAI_BASE_URL; do
  [[ -n ${!name:-} ]] && keys+=("$name")
done
if [[ -n ${LANEWAY_MODEL:-} ]]; then
  options+=(-c "laneway.model=$LANEWAY_MODEL")
elif ((${#keys[@]} == 0)); then
  options+=(-c "laneway.model=demo")
fi
options+=("$@")
arch=$(stack_arch "${options[@]}")

step "functions for $arch"
quietly "$up/build.log" scripts/build.sh functions "$arch"
if ! go run ./scripts/stack bootstrapped 2>/dev/null; then
  step "bootstrap"
  quietly "$up/bootstrap.log" scripts/cdk.sh bootstrap "aws://000000000000/${AWS_REGION:-us-east-1}" "${options[@]}"
fi
step "deploy"
quietly "$up/deploy.log" scripts/cdk.sh deploy --require-approval never --progress events --outputs-file "$outputs" "${options[@]}"
prefix=$(stack_output "$outputs" TablePrefix)
step "token"
if ((${#keys[@]})); then
  go run ./scripts/stack keys -secret "$(stack_output "$outputs" SecretArn)"
fi
token=$(go run ./scripts/stack token -prefix "$prefix" -name up)
step

url=ws://${AWS_ENDPOINT_URL#*://}/_aws/execute-api/$(stack_output "$outputs" ApiId)/$(stack_output "$outputs" Stage)
cat >"$up/client.env" <<SETTINGS
export OPENCLAW_GATEWAY_URL=$url
export OPENCLAW_GATEWAY_TOKEN=$token
SETTINGS
chmod 600 "$up/client.env"
cat <<MESSAGE

The stack is up: $url

Talk to it (address and token are in $up/client.env):
  . $up/client.env
  go run ./cmd/laneway agent --message "What time is it?"

Another token:   . .cache/endpoint.env && go run ./scripts/stack token -prefix $prefix
Its AWS side:    . .cache/endpoint.env, then any AWS client
Logs:            .cache/endpoint.log
End it:          make down
MESSAGE
