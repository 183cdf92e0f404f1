#!/usr/bin/env bash
# An AWS endpoint on this machine: MiniStack in a virtual environment under .cache/.
#
#   scripts/endpoint.sh start          start it in the background; settings in .cache/endpoint.env
#   scripts/endpoint.sh stop           stop what start started
#   scripts/endpoint.sh run CMD...     a fresh one for one command, always stopped afterwards
#
# Needs python3 (with venv) only. It listens on 127.0.0.1 at a free port; its state is
# in memory and gone when it stops. Other versions: MINISTACK_VERSION.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache
version=${MINISTACK_VERSION:-1.5.33}
venv=$cache/ministack-$version
pidfile=$cache/endpoint.pid
envfile=$cache/endpoint.env
pid=''

say() { echo "endpoint: $*" >&2; }
fail() { say "$*"; exit 1; }

# Installing is done once. The mark at its end means that it is whole; the directory
# .lock keeps two that start at once from each other.
install() {
  [[ -e $venv/installed ]] && return
  command -v python3 >/dev/null || fail 'python3 is needed'
  mkdir -p "$cache"
  local waited=0
  until mkdir "$venv.lock" 2>/dev/null; do
    ((waited++ < 180)) || fail "another install has not ended; if none is running, remove $venv.lock"
    sleep 1
  done
  trap 'rmdir "$venv.lock" 2>/dev/null || true' EXIT
  if [[ ! -e $venv/installed ]]; then
    say "installing ministack $version into ${venv#"$root"/}"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "ministack==$version" >&2
    touch "$venv/installed"
  fi
  rmdir "$venv.lock"
  trap - EXIT
}

free_port() {
  "$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

healthy() {
  "$venv/bin/python" - "$1" <<'PY' 2>/dev/null
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open(sys.argv[1] + "/_localstack/health", timeout=2).read()
PY
}

# launch LOG sets pid and url. Somebody else may take the port between looking and
# binding: then the process ends early and another port is tried.
launch() {
  local port deadline
  for _ in 1 2 3; do
    port=$(free_port)
    url=http://127.0.0.1:$port
    BIND_HOST=127.0.0.1 GATEWAY_PORT=$port AWS_ENDPOINT_URL=$url \
      nohup "$venv/bin/ministack" >"$1" 2>&1 </dev/null &
    pid=$!
    deadline=$((SECONDS + 60))
    while kill -0 "$pid" 2>/dev/null && ((SECONDS < deadline)); do
      if healthy "$url"; then return; fi
      sleep 0.2
    done
    end "$pid"
  done
  tail -n 20 "$1" >&2
  fail 'it did not become healthy'
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

settings() {
  cat <<SETTINGS
export AWS_ENDPOINT_URL=$1
export AWS_ENDPOINT_URL_S3=$1
export AWS_REGION=us-east-1
export AWS_DEFAULT_REGION=us-east-1
export AWS_ACCESS_KEY_ID=test
export AWS_SECRET_ACCESS_KEY=test
SETTINGS
}

# running prints the pid of what start started, if it is still that.
running() {
  local p
  [[ -e $pidfile ]] || return 1
  p=$(<"$pidfile")
  [[ $(ps -p "$p" -o args= 2>/dev/null) == *ministack* ]] || return 1
  echo "$p"
}

case ${1:-} in
start)
  install
  if p=$(running); then
    say "already running (pid $p)"
    exit 0
  fi
  launch "$cache/endpoint.log"
  echo "$pid" >"$pidfile"
  settings "$url" >"$envfile"
  say "$url (pid $pid); settings: . ${envfile#"$root"/}"
  ;;
stop)
  if p=$(running); then
    end "$p"
    say "stopped (pid $p)"
  fi
  rm -f "$pidfile" "$envfile"
  ;;
run)
  shift
  (($#)) || fail 'run needs a command'
  install
  log=$(mktemp "$cache/endpoint.XXXXXX")
  trap '[[ -z $pid ]] || end "$pid"; rm -f "$log"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  launch "$log"
  eval "$(settings "$url")"
  "$@"
  ;;
*)
  sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
  ;;
esac
