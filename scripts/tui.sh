#!/usr/bin/env bash
# The stock terminal client, driven as a person does: it types, waits for what must
# appear, and keeps the screens under .cache/tui.
#
#   scripts/tui.sh [serve|stack] [docs]
#
# serve (the default): against `laneway serve`. stack: against a deployed stack, on an
# endpoint that is started for it and judges every call by the roles of the stack. With
# `docs` the screens become those of docs/tui.md. Whatever was started is ended, also
# where a screen does not show what it must.
#
# Needs tmux; installs Node 24 and the stock command line from npm under .cache/, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=serve
if [[ ${1:-} == serve || ${1:-} == stack ]]; then
  target=$1
  shift
fi
command -v tmux >/dev/null || { echo 'tui: tmux is needed, and is not in PATH' >&2; exit 3; }
if [[ $target == stack && -z ${TUI_ENDPOINT:-} ]]; then
  exec env TUI_ENDPOINT=started AUTH=true scripts/endpoint.sh run scripts/tui.sh stack "$@"
fi
. scripts/node.sh
. scripts/stock.sh
. scripts/tui/screen.sh

out=$PWD/.cache/tui/$target
work=$(mktemp -d)
name=laneway-tui-$$
token=tui
model_pid=''
mkdir -p "$out" "$work/home"

finish() {
  close_client
  end_gateway
  [[ -z $model_pid ]] || kill "$model_pid" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
end_gateway() { :; }
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

go build -o "$work/mockmodel" ./test/mockmodel/serve
"$work/mockmodel" >"$work/model.url" &
model_pid=$!
until [[ -s $work/model.url ]]; do sleep 0.1; done
model=$(<"$work/model.url")

. "scripts/tui/$target.sh"
if [[ ${1:-} == docs ]]; then
  pages
fi
