# Sourced by scripts/tui.sh: drives the stock terminal client in a tmux server of its
# own, whose name is in $name; screens are kept in $out. $model is the base URL of the
# scripted model.

# open_client URL HOME: starts it.
open_client() {
  tmux -L "$name" -f /dev/null new-session -d -s tui -x 100 -y 34 \
    "env -i PATH='$PATH' HOME='$2' TERM=xterm-256color LANG=C.UTF-8 OPENCLAW_STATE_DIR='$2/state' NO_COLOR=1 \
    node '$stock_home/node_modules/openclaw/openclaw.mjs' tui --url '$1' --token '$token'; sleep 60"
}

close_client() { tmux -L "$name" kill-server 2>/dev/null || true; }

screen() { tmux -L "$name" capture-pane -p -t tui | sed 's/[[:space:]]*$//'; }

# await PATTERN [SECONDS]: until the screen shows it, in one line or in several.
await() {
  local deadline=$((SECONDS + ${2:-${TUI_PATIENCE:-60}}))
  until screen | tr '\n' ' ' | grep -qE -- "$1"; do
    if ((SECONDS > deadline)); then
      echo "tui: the screen never showed: $1" >&2
      screen >&2
      exit 1
    fi
    sleep 0.2
  done
}

# say TEXT: types it, and the key for the end of a message.
say() {
  tmux -L "$name" send-keys -t tui -l -- "$1"
  sleep 0.3
  tmux -L "$name" send-keys -t tui Enter
}

press() { tmux -L "$name" send-keys -t tui "$1"; }

# keep NAME: the screen becomes a file.
keep() {
  screen | cat -s >"$out/$1.txt"
  echo "--- $1"
  cat "$out/$1.txt"
}

# control PATH ARGS...: asks the scripted model for something.
control() { curl -fsS -o /dev/null -X POST "${model%/v1}/control/$1" "${@:2}"; }

script() { control script -H 'Content-Type: application/json' -d "$1"; }

# waiting GATE: until a reply of the model waits there.
waiting() {
  local deadline=$((SECONDS + 30))
  until [[ $(curl -fsS "${model%/v1}/control/waiting?gate=$1") != 0 ]]; do
    ((SECONDS < deadline)) || { echo "tui: the model was never asked: $1" >&2; exit 1; }
    sleep 0.2
  done
}

# into_page FILE HEADING: reads lines "screen|title" and replaces what follows the
# heading in the page, up to the next heading of its level, by those screens.
into_page() {
  local page=$1 heading=$2 file title made
  made=$(mktemp)
  {
    sed "/^$heading\$/q" "$page"
    while IFS='|' read -r file title; do
      printf '\n### %s\n\n```\n' "$title"
      cat "$out/$file.txt"
      printf '```\n'
    done
    awk -v heading="$heading" '$0 == heading {on = 1; next} on && /^## / {on = 0; seen = 1; print ""} seen' "$page"
  } >"$made"
  cat "$made" >"$page"
  rm -f "$made"
}
