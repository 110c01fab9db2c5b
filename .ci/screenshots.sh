#!/bin/sh
# Draws the dashboard's views into docs/pictures/*.svg: the real program in terminals
# of its own (tmux), beside a demo and its incident, which are left to the keys below.
# Pictures that pages show come for a light page too, as NAME-light.svg: the same frames,
# in the colours of the light theme.
#   SCREENSHOT_SECONDS  how long the demo runs before the first picture (90)
set -eu
cd "$(dirname "$0")/.."

warm=${SCREENSHOT_SECONDS:-90}
dir=.attune/pictures
out=docs/pictures
mkdir -p "$dir" "$out"
root=$PWD
own=$(mktemp -d)
socket=$own/tmux

finish() {
	code=$?
	trap '' INT TERM
	tmux -S "$socket" send-keys -t demo q 2>/dev/null || true # it stops its servers
	tries=120
	while tmux -S "$socket" has-session -t demo 2>/dev/null && [ "$tries" -gt 0 ]; do
		tries=$((tries - 1))
		sleep 1
	done
	tmux -S "$socket" kill-server 2>/dev/null || true
	bin/attune-lab stack down --dir "$dir/demo" >/dev/null 2>&1 || true
	rm -rf "$own"
	exit "$code"
}
go build -o "$dir/draw" ./docs/pictures/draw
bin/attune-lab stack down --wipe --dir "$dir/demo" >/dev/null 2>&1 || true # of a run that was killed
# In a terminal, because the incident is left to people there.
tmux -S "$socket" -f /dev/null new-session -d -s demo -x 140 -y 40 -c "$root" \
	env TERM=tmux-256color HOME="$own" XDG_STATE_HOME="$own" bin/attune-lab demo --dir "$dir/demo"
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# alive fails when the demo has ended.
alive() {
	tmux -S "$socket" has-session -t demo 2>/dev/null || {
		echo "screenshots: the demo has ended" >&2
		exit 1
	}
}

# ready says whether the demo's traffic is seen in the dashboard.
ready() {
	lines=$(bin/attune-lab stack env --dir "$dir/demo" 2>/dev/null) && [ -n "$lines" ] || return 1
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
		env TERM=tmux-256color HOME="$own" XDG_STATE_HOME="$own" ATTUNE__DATABASE__URL="$ATTUNE__DATABASE__URL" \
		ATTUNE__MESSAGE_QUEUE__URL="$ATTUNE__MESSAGE_QUEUE__URL" \
		ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL="$ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL" bin/attune-tui --refresh 1s $4
}

# shows SEAT TEXT waits until the text is on the screen, for at most half a minute.
shows() {
	tries=150
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

# frame SEAT prints what the seat shows now, with the folder of its state where users have it.
frame() {
	tmux -S "$socket" capture-pane -e -p -t "$1" | sed "s|$own|~/.local/state|g"
}

# drawn NAME FLAGS… draws a frame from its input, or scenes, into NAME.svg.
drawn() {
	name=$1
	shift
	"$dir/draw" "$@" >"$dir/picture.svg"
	mv "$dir/picture.svg" "$out/$name.svg"
	echo "$out/$name.svg"
}

# still FILE NAME COLUMNS ROWS [both] draws a frame that was kept.
still() {
	drawn "$2" --title "attune-tui · $2" --columns "$3" --rows "$4" <"$1"
	[ -z "${5:-}" ] || drawn "$2-light" --relight --title "attune-tui · $2" --columns "$3" --rows "$4" <"$1"
}

# picture SEAT NAME [both] draws what the seat shows now.
picture() {
	columns=$(tmux -S "$socket" display-message -p -t "$1" '#{window_width}')
	rows=$(tmux -S "$socket" display-message -p -t "$1" '#{window_height}')
	frame "$1" >"$own/frame"
	alive # what is drawn after its end shows servers that are down
	still "$own/frame" "$2" "$columns" "$rows" "${3:-}"
}

# keys SEAT KEYS… types keys.
keys() {
	seat=$1
	shift
	tmux -S "$socket" send-keys -t "$seat" "$@"
}

seat wide 140 40 "--theme dark"
seat small 80 24 "--theme dark"
seat film 120 34 "--theme dark"
for one in wide small film; do shows "$one" "PG ●"; done

sleep "$warm"
alive
picture wide overview both
keys small 2
shows small "[2 "
sleep 2
picture small queues-80x24

while read -r key title name both; do
	keys wide "$key"
	shows wide "$(echo "$title" | tr _ ' ')"
	sleep 3
	picture wide "$name" "$both"
done <<'VIEWS'
2 [2_ queues
3 [3_ executions
4 [4_ workers
5 [5_ dlq both
6 [6_ workflows
7 [7_ alerts
8 [8_ inquiries
9 [9_ broker
VIEWS

# A plan before an act: nothing is done, since the question is left.
keys wide 2
shows wide "[2"
keys wide A
shows wide "reset limit"
picture wide act
keys wide Escape
alive

# The ten keys of docs/tutorial-triage.md, from the incident to a clean queue.
scenes=
scene() { # SECONDS FILE CAPTION
	frame film >"$own/$2"
	set -- "$1:$own/$2:$3"
	scenes="$scenes$1
"
}
shows film "[1 "
scene 3 start "sixty dead letters wait"
step=0
while read -r key seconds text caption; do
	step=$((step + 1))
	keys film "$key"
	shows film "$(echo "$text" | tr _ ' ')"
	sleep 1
	scene "$seconds" "$step" "$step of 10 · key $key · $caption"
done <<'KEYS'
5 4 [5_ the ledger of dead letters
z 5 ·_problems_· the groups of letters that wait
* 3 marked: all are marked
R 6 Requeue_ the plan says what helps, and what does not
y 4 ✓_Requeue requeued, with a receipt
Escape 2 waiting_for_a_person_3 half are left
* 2 marked: the rest is marked
D 5 Discard_ the plan to discard them
e 2 Written: a copy first
y 4 ✓_Discard no dead letter waits
KEYS
still "$own/3" marks 120 34 both
still "$own/4" plan 120 34 both
still "$own/5" receipt 120 34 both
set -f
IFS='
'
drawn triage --title attune-tui --columns 120 --rows 34 $scenes
drawn triage-light --relight --title attune-tui --columns 120 --rows 34 $scenes
