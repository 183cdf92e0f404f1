# Sourced by scripts/tui.sh: the scenes against a deployed stack. The client reaches it
# through a relay, which is the line that is cut.
relay_pid='' stack=tui-$$
export UP=$PWD/.cache/tui/up DIST=$PWD/.cache/tui/dist
export OPENAI_BASE_URL=$model OPENAI_API_KEY=x LANEWAY_MODEL=openai/mock-model ANTHROPIC_API_KEY=''

end_gateway() {
  local pid
  [[ -z $relay_pid ]] || kill "$relay_pid" 2>/dev/null || true
  for pid in $(processes '.*'); do
    kill "$pid" 2>/dev/null || true
  done
}

# processes FUNCTION: the ids of its processes, which say in their environment that they
# are this function of this endpoint.
processes() {
  local p vars
  for p in /proc/[0-9]*; do
    vars=$({ tr '\0' '\n' <"$p/environ"; } 2>/dev/null) || continue
    if grep -qxF "AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL" <<<"$vars" && grep -qx "AWS_LAMBDA_FUNCTION_NAME=$stack-$1" <<<"$vars"; then
      echo "${p#/proc/}"
    fi
  done
}

# relay PORT: a line to the endpoint, at a free port where PORT is 0.
relay() {
  : >"$work/relay.port"
  node -e '
    const net = require("net"), [port, to] = process.argv.slice(1);
    net.createServer((client) => {
      const gateway = net.connect(to, "127.0.0.1");
      client.pipe(gateway).pipe(client);
      for (const end of [client, gateway]) end.on("error", () => { client.destroy(); gateway.destroy(); });
    }).listen(port, "127.0.0.1", function () { console.log(this.address().port); });
  ' "$1" "${AWS_ENDPOINT_URL##*:}" >"$work/relay.port" &
  relay_pid=$!
  until [[ -s $work/relay.port ]]; do
    kill -0 "$relay_pid" || exit 1
    sleep 0.1
  done
  relay_port=$(<"$work/relay.port")
}

cut_line() {
  kill -KILL "$relay_pid"
  wait "$relay_pid" 2>/dev/null || true
}

scripts/up.sh -c "laneway.name=$stack"
. "$UP/client.env"
token=$OPENCLAW_GATEWAY_TOKEN
relay 0

script '[
  {"match": "what is in the workspace", "text": ["I look. "], "pauseMs": 300, "calls": [{"id": "c1", "name": "ls", "arguments": "{\"path\": \".\"}"}]},
  {"match": "what is in the workspace", "after": true, "text": ["Nothing yet, ", "it is empty."], "pauseMs": 300},
  {"match": "look through the logs", "text": ["I read them ", "first."], "gate": "logs", "gateAt": 1, "calls": [{"id": "c2", "name": "ls", "arguments": "{\"path\": \"logs\"}"}]},
  {"match": "only those of today", "text": ["Of today only: ", "3 errors, all of the same disk."]},
  {"match": "tell me a long story", "text": ["Once upon a time ", "there was a queue."], "gate": "story", "gateAt": 1},
  {"match": "Queued messages while", "text": ["One answer ", "for all three."]},
  {"match": "count for ever", "text": ["one, ", "two, ", "three, "], "pauseMs": 300, "stall": true},
  {"match": "and once more", "text": ["four, ", "five, "], "pauseMs": 300, "stall": true},
  {"match": "who are you here", "text": ["The same, ", "in another conversation."]},
  {"match": "what did I ask you first", "text": ["To look ", "into the workspace."]},
  {"match": "a long way to go", "text": ["lost ", "words"], "gate": "crash", "gateAt": 1},
  {"match": "a long way to go", "text": ["Back again, ", "and there."]},
  {"match": "still there", "text": ["Yes, and nothing is lost."]}
]'

open_client "ws://127.0.0.1:$relay_port/${OPENCLAW_GATEWAY_URL#ws://*/}" "$work/home"
await 'gateway connected|connected'
keep connected

say 'what is in the workspace'
await 'it is empty'
await '\| idle'
keep tool

say 'look through the logs'
waiting logs
await 'I read them'
say 'only those of today, please'
sleep 2.5
control 'open?gate=logs'
await 'all of the same disk'
await '\| idle'
keep steer

say '/queue collect debounce:300ms'
await 'mode=collect'
say 'tell me a long story'
waiting story
await 'Once upon'
for question in 'how long is it' 'who is in it' 'how does it end'; do
  say "$question"
  sleep 3 # a person types; the client takes no message before the last one is acknowledged
done
keep collect-waiting
control 'open?gate=story'
await 'for all three'
await '\| idle'
keep collect

say '/new'
await 'new session'
say 'who are you here'
await 'in another conversation'
keep new

say 'count for ever'
await 'three,'
say '/stop'
await 'run aborted'
keep stop
say 'and once more'
await 'five,'
press Escape
await 'five,.*run aborted'
keep escape

say 'a long way to go'
waiting crash
await 'lost'
runners=$(processes runner)
[[ -n $runners ]] || { echo 'tui: the runner is no process of this machine' >&2; exit 1; }
kill -KILL $runners
control 'open?gate=crash'
keep killed
killed=$SECONDS
await 'and there' 180
echo "the turn went on, $((SECONDS - killed)) s later"
await '\| idle'
keep resumed

say '/queue'
await 'Current queue settings: mode=steer'
say '/status'
await 'Queue: steer'
keep status
say '/session main'
await 'One answer for all three'
say 'what did I ask you first'
await 'into the workspace'
keep switched

cut_line
await 'disconnect|reconnect|closed'
keep cut
relay "$relay_port"
await 'gateway reconnected|connected \|'
say 'are you still there'
await 'nothing is lost'
keep reconnect

pages() {
  into_page docs/tui.md '## Screens of a deployed stack' <<'LIST'
stop|A turn is stopped
resumed|The runner is killed, and the turn goes on
status|Settings and state
LIST
}
