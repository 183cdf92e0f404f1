#!/usr/bin/env bash
# gofumpt, golangci-lint and deadcode at pinned versions, over both modules. They are built
# once, into .cache/bin; the version is part of the file's name, so that a change
# here takes effect.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

golangci_version=v2.15.0
gofumpt_version=v0.12.0
deadcode_version=v0.52.0
bin=$PWD/.cache/bin
golangci=$bin/golangci-lint-$golangci_version
gofumpt=$bin/gofumpt-$gofumpt_version
deadcode=$bin/deadcode-$deadcode_version

# install TOOL PACKAGE@VERSION builds into a directory of its own, so that a build
# that is cut off leaves nothing under the final name.
install() {
  local target=$1 package=$2 temporary
  [[ -x $target ]] && return
  mkdir -p "$bin"
  temporary=$(mktemp -d "$bin/build.XXXXXX")
  echo "building $package"
  GOFLAGS= GOBIN=$temporary go install "$package"
  mv "$temporary"/* "$target"
  rmdir "$temporary"
}
install "$gofumpt" "mvdan.cc/gofumpt@$gofumpt_version"
install "$deadcode" "golang.org/x/tools/cmd/deadcode@$deadcode_version"
install "$golangci" "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$golangci_version"

mapfile -t files < <(git ls-files -- '*.go')
unformatted=$("$gofumpt" -l "${files[@]}")
if [[ -n $unformatted ]]; then
  printf 'not formatted by gofumpt:\n%s\n' "$unformatted"
  exit 1
fi
"$golangci" config verify
"$golangci" run ./...
(cd infra && "$golangci" run --config ../.golangci.yml ./...)

# What no program reaches is not part of the product. Packages for tests are none of it;
# the exceptions are a question that errors answer, what a client with a device key
# needs, and a mark of types.
unreached=$("$deadcode" ./... | grep -vE '^(test|shared/[^:]*test|shared/table/faulty)/' |
  grep -vE 'unreachable func: (ClassOf|SignDevice|Optional\.isOptional)$' || true)
if [[ -n $unreached ]]; then
  printf 'no program calls:\n%s\n' "$unreached"
  exit 1
fi
