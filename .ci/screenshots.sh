#!/bin/sh
# Draws the dashboard's views into docs/pictures/*.svg: the real program in a
# terminal of its own (tmux), beside a demo that runs meanwhile.
#   SCREENSHOT_SECONDS  how long the demo runs before the first picture (90)
set -eu
cd "$(dirname "$0")/.."

warm=${SCREENSHOT_SECONDS:-90}
dir=.attune/pictures
out=docs/pictures
mkdir -p "$dir" "$out"
root=$PWD
socket=$(mktemp -d)/tmux

finish() {
	code=$?
	trap '' INT TERM
	tmux -S "$socket" kill-server 2>/dev/null || true
	rm -rf "$(dirname "$socket")"
	kill "$demo" 2>/dev/null || true
	wait "$demo" 2>/dev/null || true
	exit "$code"
}
go build -o "$dir/draw" ./tui/picture/draw
bin/attune-executor stack down --wipe --dir "$dir/demo" >/dev/null 2>&1 || true # of a run that was killed
# Longer than the pictures take on any machine: it is stopped after the last.
DEMO_SECONDS=$((warm + 600)) bin/attune-executor demo --dir "$dir/demo" </dev/null >"$dir/demo.log" 2>&1 &
demo=$!
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# alive fails with what the demo said when it has ended.
alive() {
	kill -0 "$demo" 2>/dev/null || {
		cat "$dir/demo.log" >&2
		exit 1
	}
}

# ready says whether the demo's traffic is seen in the dashboard.
ready() {
	lines=$(bin/attune-executor stack env --dir "$dir/demo" 2>/dev/null) && [ -n "$lines" ] || return 1
	eval "$lines"
	bin/attune-tui --snapshot queues 2>/dev/null | grep -q demo
}
until ready; do
	alive
	sleep 1
done
unset NO_COLOR

# seat NAME COLUMNS ROWS FLAGS opens a dashboard of that size.
seat() {
	tmux -S "$socket" -f /dev/null new-session -d -s "$1" -x "$2" -y "$3" -c "$root" \
		env TERM=tmux-256color bin/attune-tui --refresh 1s $4
}

# shows SEAT TEXT waits until the text is on the screen, for at most ten seconds.
shows() {
	tries=50
	until tmux -S "$socket" capture-pane -p -t "$1" | grep -qF -e "$2"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || {
			echo "screenshots: $1 never showed: $2" >&2
			tmux -S "$socket" capture-pane -p -t "$1" >&2
			exit 1
		}
		sleep 0.2
	done
}

# picture SEAT NAME FLAGS draws what the seat shows now.
picture() {
	columns=$(tmux -S "$socket" display-message -p -t "$1" '#{window_width}')
	rows=$(tmux -S "$socket" display-message -p -t "$1" '#{window_height}')
	tmux -S "$socket" capture-pane -e -p -t "$1" |
		"$dir/draw" --title "attune-tui · $2" --columns "$columns" --rows "$rows" $3 >"$dir/picture.svg"
	mv "$dir/picture.svg" "$out/$2.svg"
	alive # what is drawn after its end shows servers that are down
	echo "$out/$2.svg"
}

# keys SEAT KEYS… types keys.
keys() {
	seat=$1
	shift
	tmux -S "$socket" send-keys -t "$seat" "$@"
}

seat wide 140 40 "--theme dark"
seat small 80 24 "--theme dark"
seat light 140 40 "--theme light"

sleep "$warm"
alive
picture wide overview ""
picture light overview-light --light
keys small 2
shows small "[2 "
sleep 2
picture small queues-80x24 ""

while read -r key title name; do
	keys wide "$key"
	shows wide "$title"
	sleep 3
	picture wide "$name" ""
done <<'VIEWS'
2 [2 queues
3 [3 executions
4 [4 workers
5 [5 dlq
6 [6 workflows
7 [7 alerts
8 [8 inquiries
9 [9 broker
VIEWS

# A plan before an act: nothing is done, since the question is left.
keys wide 2
shows wide "[2"
keys wide A
shows wide "reset limit"
picture wide act ""
keys wide Escape
alive
