#!/usr/bin/env bash
# LocalStack 4.14.0, the community edition's last release without a token, from PyPI and
# without docker: SQS and S3 only.
#
#   scripts/localstack.sh run CMD...   a fresh one for one command, always stopped afterwards
#
# Needs Python 3.13 (pyenv's is found too); where there is none it says so and does
# nothing. It listens on [::1] at a free port, because with an IPv4 address it would
# listen on every interface. LOCALSTACK_PYTHON names another Python.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache
version=4.14.0
venv=$cache/localstack-$version
pid=''

say() { echo "localstack: $*" >&2; }
fail() { say "$*"; exit 1; }

# python prints a Python 3.13 that works; pyenv's shims only pretend to be one.
python() {
  local candidate
  for candidate in "${LOCALSTACK_PYTHON:-}" python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python3.13; do
    if [[ -n $candidate ]] && "$candidate" -c 'import sys, venv; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# Installing is done once. The mark at its end means that it is whole; the directory
# .lock keeps two that start at once from each other.
install() {
  [[ -e $venv/installed ]] && return
  mkdir -p "$cache"
  local waited=0
  until mkdir "$venv.lock" 2>/dev/null; do
    ((waited++ < 600)) || fail "another install has not ended; if none is running, remove $venv.lock"
    sleep 1
  done
  trap 'rmdir "$venv.lock" 2>/dev/null || true' EXIT
  if [[ ! -e $venv/installed ]]; then
    say "installing LocalStack $version into ${venv#"$root"/}"
    rm -rf "$venv"
    "$1" -m venv "$venv"
    # Later releases of these do not fit it any more.
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "localstack-core[runtime]==$version" \
      "cbor2==5.7.1" "cryptography<46" "pyopenssl<26" service_identity >&2
    touch "$venv/installed"
  fi
  rmdir "$venv.lock"
  trap - EXIT
}

free_port() {
  "$venv/bin/python" -c 'import socket; s = socket.socket(socket.AF_INET6); s.bind(("::1", 0)); print(s.getsockname()[1])'
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
    url="http://[::1]:$port"
    DISABLE_EVENTS=1 SKIP_SSL_CERT_DOWNLOAD=1 GATEWAY_LISTEN="[::1]:$port" EAGER_SERVICE_LOADING=0 SERVICES=sqs,s3 \
      nohup "$venv/bin/python" -m localstack.runtime.main >"$1" 2>&1 </dev/null &
    pid=$!
    deadline=$((SECONDS + 120))
    while kill -0 "$pid" 2>/dev/null && ((SECONDS < deadline)); do
      if healthy "$url"; then return; fi
      sleep 0.3
    done
    end "$pid"
  done
  tail -n 20 "$1" >&2
  fail 'it did not become healthy'
}

# end PID: ask, wait, then insist.
end() {
  kill "$1" 2>/dev/null || return 0
  for _ in $(seq 100); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
}

[[ ${1:-} == run ]] && (($# > 1)) || fail 'run needs a command'
shift
if ! python=$(python); then
  say 'skip: the SQS and S3 suites on LocalStack need Python 3.13'
  exit 0
fi
install "$python"
log=$(mktemp "$cache/localstack.XXXXXX")
trap '[[ -z $pid ]] || end "$pid"; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
launch "$log"
say "$url"
export AWS_ENDPOINT_URL_SQS=$url AWS_ENDPOINT_URL_S3=$url
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
"$@"
