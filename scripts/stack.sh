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
