#!/usr/bin/env bash
# Deploys the stack to the AWS account of the environment's credentials, as cdk.json
# says, and prints how to talk to it. Again: updates it. The first time in an account
# and region it bootstraps CDK there.
#
#   scripts/deploy.sh [-c laneway.KEY=VALUE...]
#
# CDK shows what widens rights and asks; where nobody can answer, say so beforehand
# with APPROVAL=never.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/node.sh
. scripts/stack.sh
if [[ -n ${AWS_ENDPOINT_URL:-} ]]; then
  echo "deploy: AWS_ENDPOINT_URL is set, so this would not go to AWS; scripts/up.sh deploys to an endpoint" >&2
  exit 2
fi
outputs=.cache/deploy/outputs.json
mkdir -p .cache/deploy
rm -f "$outputs"
arch=$(stack_arch "$@")

step "functions for $arch"
quietly .cache/deploy/build.log scripts/build.sh functions "$arch"

# Data that an earlier stack of the name left is taken over, not tripped over.
deploy() {
  scripts/cdk.sh deploy --require-approval "${APPROVAL:-broadening}" --import-existing-resources \
    --outputs-file "$outputs" "$@" 2> >(tee .cache/deploy/deploy.log >&2)
}
step "deploy"
if ! deploy "$@"; then
  grep -q "cdk bootstrap" .cache/deploy/deploy.log || exit 1
  step "bootstrap"
  scripts/cdk.sh bootstrap "$@"
  step "deploy"
  deploy "$@"
fi
step

url=$(stack_output "$outputs" Url)
secret=$(stack_output "$outputs" SecretArn)
prefix=$(stack_output "$outputs" TablePrefix)
cat <<MESSAGE

The stack is up: $url

1. Give it a model's key (the secret is empty after the first deployment), unless
   the model is one of Bedrock:
     ANTHROPIC_API_KEY=… go run ./scripts/stack keys -secret $secret
   Functions that are warm keep what they read; the next deployment restarts them.
2. Make the first token:
     export OPENCLAW_GATEWAY_TOKEN=\$(go run ./scripts/stack token -prefix $prefix -name first)
3. Talk to it:
     export OPENCLAW_GATEWAY_URL=$url
     go run ./cmd/laneway agent --message "What time is it?"

End it: scripts/destroy.sh
MESSAGE
