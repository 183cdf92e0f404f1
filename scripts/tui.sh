#!/usr/bin/env bash
# The stock terminal client against `laneway serve`, driven as a person does: it types,
# waits for what must appear, and keeps the screens under .cache/tui. With the argument
# `docs` they become the screens of docs/tui.md.
#
# Needs tmux; installs Node 24 and the stock command line from npm under .cache/, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v tmux >/dev/null || { echo 'tui: tmux is needed, and is not in PATH' >&2; exit 3; }
. scripts/node.sh
. scripts/stock.sh

out=$PWD/.cache/tui
work=$(mktemp -d)
name=laneway-tui-$$
serve_pid='' model_pid=''
mkdir -p "$out" "$work/home"

finish() {
  tmux -L "$name" kill-server 2>/dev/null || true
  [[ -z $serve_pid ]] || kill "$serve_pid" 2>/dev/null || true
  [[ -z $model_pid ]] || kill "$model_pid" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

screen() { tmux -L "$name" capture-pane -p -t tui | sed 's/[[:space:]]*$//'; }

# await PATTERN: until the screen shows it.
await() {
  local deadline=$((SECONDS + ${TUI_PATIENCE:-60}))
  until screen | grep -qE -- "$1"; do
    if ((SECONDS > deadline)); then
      echo "tui: the screen never showed: $1" >&2
      screen >&2
      exit 1
    fi
    sleep 0.2
  done
}

say() {
  tmux -L "$name" send-keys -t tui -l -- "$1"
  sleep 0.3
  tmux -L "$name" send-keys -t tui Enter
}

keep() {
  screen | cat -s >"$out/$1.txt"
  echo "--- $1"
  cat "$out/$1.txt"
}

control() { curl -fsS -o /dev/null -X POST "${model%/v1}/control/$1" "${@:2}"; }
waiting() {
  local deadline=$((SECONDS + 30))
  until [[ $(curl -fsS "${model%/v1}/control/waiting?gate=$1") != 0 ]]; do
    ((SECONDS < deadline)) || { echo "tui: the model was never asked: $1" >&2; exit 1; }
    sleep 0.2
  done
}

go build -o "$work/laneway" ./cmd/laneway
go build -o "$work/mockmodel" ./test/mockmodel/serve
"$work/mockmodel" >"$work/model.url" &
model_pid=$!
until [[ -s $work/model.url ]]; do sleep 0.1; done
model=$(<"$work/model.url")

serve() {
  env -i PATH="$PATH" HOME="$work/home" OPENCLAW_GATEWAY_TOKEN=tui OPENAI_API_KEY=x OPENAI_BASE_URL="$model" \
    LANEWAY_MODEL=openai/mock-model "$work/laneway" serve --listen "127.0.0.1:$1" --data "$work/data" --lease 2s \
    --workspace "$work/ws" 2>>"$work/serve.log" &
  serve_pid=$!
  until port=$(sed -n 's/^listening on ws:\/\/127.0.0.1:\([0-9]*\).*/\1/p' "$work/serve.log" | sed -n "$2p") && [[ -n $port ]]; do
    kill -0 "$serve_pid" || { cat "$work/serve.log" >&2; exit 1; }
    sleep 0.1
  done
}
mkdir -p "$work/ws"
serve 0 1

control script -H 'Content-Type: application/json' -d '[
  {"match": "look through the logs", "text": ["I read them ", "first. "], "pauseMs": 500, "calls": [{"id": "c1", "name": "exec", "arguments": "{\"command\": \"sleep 6; echo 3 errors\"}"}]},
  {"match": "only those of today", "times": -1, "text": ["Of today only: ", "3 errors, all of the same disk."]},
  {"match": "tell me a long story", "text": ["Once upon a time ", "there was a queue."], "gate": "story", "gateAt": 1, "pauseMs": 500},
  {"match": "Queued messages while", "text": ["One answer ", "for all three."]},
  {"match": "count for ever", "text": ["one, ", "two, ", "three, "], "pauseMs": 300, "stall": true},
  {"match": "still there", "text": ["Yes, and nothing is lost."]}
]'

tmux -L "$name" -f /dev/null new-session -d -s tui -x 100 -y 34 \
  "env -i PATH='$PATH' HOME='$work/home' TERM=xterm-256color LANG=C.UTF-8 OPENCLAW_STATE_DIR='$work/home/state' NO_COLOR=1 \
  node '$stock_home/node_modules/openclaw/openclaw.mjs' tui --url ws://127.0.0.1:$port --token tui; sleep 60"
await 'gateway connected|connected'
keep connected

say 'look through the logs'
await 'I read them first'
sleep 1
say 'only those of today, please'
await 'all of the same disk'
await 'connected \| idle|idle'
keep steer

say '/queue collect debounce:300ms'
await 'mode=collect'
say 'tell me a long story'
waiting story
await 'Once upon'
for question in 'how long is it' 'who is in it' 'how does it end'; do
  say "$question"
  sleep 2.5 # a person types; the client takes no message before the last one is acknowledged
done
keep collect-waiting
control 'open?gate=story'
await 'for all three'
keep collect

say 'count for ever'
await 'three,'
say '/stop'
await 'abort'
keep stop

kill -KILL "$serve_pid"
wait "$serve_pid" 2>/dev/null || true
await 'disconnect|reconnect|closed'
keep killed
serve "$port" 2
await 'gateway reconnected|connected \|'
say 'are you still there'
await 'nothing is lost'
keep reconnect

if [[ ${1:-} == docs ]]; then
  {
    sed '/^## Screens$/q' docs/tui.md
    while IFS='|' read -r file title; do
      printf '\n### %s\n\n```\n' "$title"
      cat "$out/$file.txt"
      printf '```\n'
    done <<'LIST'
steer|A message in the middle of a turn
collect-waiting|Three messages wait
collect|and are answered together
stop|Stop
killed|The gateway is killed
reconnect|and is back
LIST
  } >"$work/tui.md"
  cp "$work/tui.md" docs/tui.md
fi
