# Sourced by the scripts that deploy: what they have in common.
#
# stack_option KEY ARGS... gives the value of a laneway.* key: the last -c in ARGS,
# else the one of cdk.json.
stack_option() {
  local key=laneway.$1 value arg
  shift
  value=$(node -p 'String(require("./cdk.json").context[process.argv[1]] ?? "")' "$key")
  for arg in "$@"; do
    case $arg in
      "$key="*) value=${arg#*=} ;;
      "--context=$key="*) value=${arg#*=*=} ;;
    esac
  done
  printf '%s\n' "$value"
}

# endpoint_options sets options: what a stack at AWS_ENDPOINT_URL has, whose functions
# are processes of this machine or containers on it.
endpoint_options() {
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) options=(-c "laneway.architecture=x86_64") ;;
    Linux-aarch64) options=(-c "laneway.architecture=arm64") ;;
    *)
      echo "the endpoint runs the functions as processes of this machine, which must be Linux on x86_64 or arm64" >&2
      return 3
      ;;
  esac
  options+=(-c "laneway.emulator=true" -c "laneway.removal=destroy")
  # MiniStack sends what a route's function returns in any case, and does not know the
  # resource that says so.
  if curl -fsS -o /dev/null "$AWS_ENDPOINT_URL/_ministack/health" 2>/dev/null; then
    options+=(-c "laneway.two.way=false")
  fi
}

# stack_arch ARGS... is the architecture that the options name, in Go's words.
stack_arch() {
  if [[ $(stack_option architecture "$@") == x86_64 ]]; then echo amd64; else echo arm64; fi
}

# stack_output FILE KEY gives an output of the stack.
stack_output() {
  node -p 'Object.values(JSON.parse(require("fs").readFileSync(process.argv[1])))[0][process.argv[2]]' "$1" "$2"
}

# step says what is done now; how long the one before took is told with it.
step_name='' step_started=0
step() {
  if [[ -n $step_name ]]; then
    printf '   %s: %d s\n' "$step_name" $((SECONDS - step_started))
  fi
  step_name=${1:-} step_started=$SECONDS
  if [[ -n $step_name ]]; then
    printf '=> %s\n' "$step_name"
  fi
}

# quietly LOG CMD... shows what a command printed only where it failed.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "all of it: $log" >&2
    return 1
  fi
}
