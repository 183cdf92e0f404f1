# Sourced by scripts/tui.sh: the scenes against `laneway serve`.
serve_pid=''
go build -o "$work/laneway" ./cmd/laneway
mkdir -p "$work/ws"

end_gateway() { [[ -z $serve_pid ]] || kill "$serve_pid" 2>/dev/null || true; }

# serve PORT N: starts it for the Nth time.
serve() {
  env -i PATH="$PATH" HOME="$work/home" OPENCLAW_GATEWAY_TOKEN=$token OPENAI_API_KEY=x OPENAI_BASE_URL="$model" \
    LANEWAY_MODEL=openai/mock-model "$work/laneway" serve --listen "127.0.0.1:$1" --data "$work/data" --lease 2s \
    --workspace "$work/ws" 2>>"$work/serve.log" &
  serve_pid=$!
  until port=$(sed -n 's/^listening on ws:\/\/127.0.0.1:\([0-9]*\).*/\1/p' "$work/serve.log" | sed -n "$2p") && [[ -n $port ]]; do
    kill -0 "$serve_pid" || { cat "$work/serve.log" >&2; exit 1; }
    sleep 0.1
  done
}
serve 0 1

script '[
  {"match": "look through the logs", "text": ["I read them ", "first. "], "pauseMs": 500, "calls": [{"id": "c1", "name": "exec", "arguments": "{\"command\": \"sleep 6; echo 3 errors\"}"}]},
  {"match": "only those of today", "times": -1, "text": ["Of today only: ", "3 errors, all of the same disk."]},
  {"match": "tell me a long story", "text": ["Once upon a time ", "there was a queue."], "gate": "story", "gateAt": 1, "pauseMs": 500},
  {"match": "Queued messages while", "text": ["One answer ", "for all three."]},
  {"match": "count for ever", "text": ["one, ", "two, ", "three, "], "pauseMs": 300, "stall": true},
  {"match": "still there", "text": ["Yes, and nothing is lost."]}
]'

open_client "ws://127.0.0.1:$port" "$work/home"
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

pages() {
  into_page docs/tui.md '## Screens' <<'LIST'
steer|A message in the middle of a turn
collect-waiting|Three messages wait
collect|and are answered together
stop|Stop
killed|The gateway is killed
reconnect|and is back
LIST
}
