#!/usr/bin/env bash
# Takes the stack out of the AWS account of the environment's credentials, or out of
# the endpoint that AWS_ENDPOINT_URL names, and says what is left. Data is kept
# unless the stack was deployed with laneway.removal=destroy.
#
#   scripts/destroy.sh [-c laneway.KEY=VALUE...]   the options it was deployed with
#
# CDK asks before it begins; FORCE=true answers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/node.sh
. scripts/stack.sh
if [[ -n ${AWS_ENDPOINT_URL:-} ]]; then
  endpoint_options
  set -- "${options[@]}" "$@"
fi
name=$(stack_option name "$@")
removal=$(stack_option removal "$@")
region=$(stack_option region "$@")
[[ -n $region ]] && export AWS_REGION=$region

# CDK makes the template before it takes the stack away, and that needs the zips to be
# there, whatever is in them.
arch=$(stack_arch "$@")
for main in functions/*/main.go; do
  function=$(basename "$(dirname "$main")")
  if [[ ! -e ${DIST:-dist}/$arch/$function.zip ]]; then
    step "functions for $arch"
    quietly .cache/destroy/build.log scripts/build.sh functions "$arch"
    break
  fi
done
force=()
[[ ${FORCE:-} == true ]] && force=(--force)
if [[ $removal == destroy ]]; then
  # A bucket that holds something can't be deleted, so this must come first.
  step "data"
  if [[ ${FORCE:-} != true ]]; then
    read -r -p "Delete all data of $name, for good? Type its name: " answer
    [[ $answer == "$name" ]] || { echo "destroy: left as it is"; exit 1; }
  fi
  go run ./scripts/stack empty -name "$name"
fi
step "stack"
scripts/cdk.sh destroy ${force[@]+"${force[@]}"} --output "${UP:-.cache/destroy}/cdk.out" -c "laneway.assets=${DIST:-dist}" "$@"
step

echo
if [[ $removal == destroy ]]; then
  echo "The stack $name is gone, with its data."
else
  echo "The stack $name is gone. Kept, and billed by its size:"
  go run ./scripts/stack drop -name "$name" | sed 's/^/  /'
  cat <<MESSAGE
The next deployment of that name takes it over. To delete it for good:
  go run ./scripts/stack drop -name $name -yes
MESSAGE
fi
cat <<MESSAGE
Also left: CDK's own stack CDKToolkit with its bucket of zips, which other stacks of
the account may use, and the backups of deleted tables, which AWS keeps 35 days free
of charge.
MESSAGE
