#!/usr/bin/env bash
# Builds what is deployed and what is installed.
#
#   build.sh                          everything
#   build.sh functions [ARCH [NAME]]  functions: dist/<arch>/<name>/bootstrap and dist/<arch>/<name>.zip
#   build.sh cli                      the command line: dist/laneway-<os>-<arch>, for all
#                                     systems or those in BUILD_CLI="linux/amd64 …"
#
# The same sources and the same Go give the same bytes, wherever they are built: no
# paths, no build ids, no version control state, no times in the archives. DIST names
# another directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=${DIST:-dist}
mkdir -p "$dist"

functions() {
  local architectures=(${1:-arm64 amd64}) names=("${@:2}") zipper path name arch
  if ((${#names[@]} == 0)); then
    for path in functions/*/main.go; do
      [[ -e $path ]] && names+=("$(basename "$(dirname "$path")")")
    done
  fi
  zipper=$(mktemp "${TMPDIR:-/tmp}/zipper.XXXXXX")
  trap 'rm -f "$zipper"' RETURN
  go build -o "$zipper" ./scripts/zipper
  for arch in "${architectures[@]}"; do
    for name in "${names[@]}"; do
      mkdir -p "$dist/$arch/$name"
      CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -tags lambda.norpc -trimpath -buildvcs=false \
        -ldflags='-s -w -buildid=' -o "$dist/$arch/$name/bootstrap" "./functions/$name"
      "$zipper" -o "$dist/$arch/$name.zip" "$dist/$arch/$name/bootstrap"
    done
  done
}

cli() {
  local target os arch suffix
  for target in ${BUILD_CLI:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
    os=${target%/*} arch=${target#*/} suffix=
    [[ $os == windows ]] && suffix=.exe
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags='-s -w' -o "$dist/laneway-$os-$arch$suffix" ./cmd/laneway
    echo "$dist/laneway-$os-$arch$suffix"
  done
}

case ${1:-all} in
  all) functions && cli ;;
  functions) functions "${@:2}" ;;
  cli) cli ;;
  *)
    sed -n '2,9p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
