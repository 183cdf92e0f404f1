#!/usr/bin/env bash
# Checks templates against the real schema of every resource with cfn-lint, which it
# installs under .cache/. Without an argument it synthesizes the stack first, once as
# it is configured and once as an endpoint gets it.
# Usage: scripts/lint-template.sh [TEMPLATE...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=1.58.0
venv=.cache/cfn-lint
if [[ $(cat "$venv/version" 2>/dev/null) != "$version" ]]; then
  if ! command -v python3 >/dev/null; then
    echo "lint-template: python3 is needed to install cfn-lint, and is not in PATH" >&2
    exit 3
  fi
  echo "installing cfn-lint $version under $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "cfn-lint==$version"
  echo "$version" >"$venv/version"
fi
if (($# == 0)); then
  # What is in the zips does not matter to a template, so nothing is built for it.
  python3 - .cache/synth/assets <<'PY'
import os, sys, zipfile
for arch in "arm64", "amd64":
    os.makedirs(f"{sys.argv[1]}/{arch}", exist_ok=True)
    for name in "gateway", "runner", "notifier", "scheduler", "watchdog":
        with zipfile.ZipFile(f"{sys.argv[1]}/{arch}/{name}.zip", "w") as z:
            z.writestr(zipfile.ZipInfo("bootstrap"), "")
PY
  assets=(-c laneway.assets=.cache/synth/assets)
  scripts/cdk.sh synth --quiet --output .cache/synth/aws "${assets[@]}"
  scripts/cdk.sh synth --quiet --output .cache/synth/endpoint "${assets[@]}" \
    -c laneway.emulator=true -c laneway.architecture=x86_64 -c laneway.removal=destroy -c laneway.alarm.mail=alarms@example.com
  set -- .cache/synth/aws/Laneway.template.json .cache/synth/endpoint/Laneway.template.json
fi
# W3005: CDK names a role in DependsOn although the function refers to it anyway.
"$venv/bin/cfn-lint" --regions us-east-1 eu-central-1 --ignore-checks W3005 --template "$@"
echo "lint-template: $# templates, no finding"
