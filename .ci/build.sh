#!/bin/sh
# Builds bin/attune-executor, bin/attune-tui and bin/attune-lab. A build that takes longer than two
# seconds says every two how far it is and how long it may still take, in place on a
# terminal and in lines elsewhere. Errors of the compiler are printed as they are.
#
# usage: sh .ci/build.sh [FLAG...]; flags go to go build
set -eu

mkdir -p bin
log=$(mktemp)
ended=
reporter=
trap 'kill $reporter 2>/dev/null || :; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { # say TEXT replaces the last text on a terminal
	if [ -t 2 ]; then printf '\r\033[K%s' "$1" >&2; else printf '%s\n' "$1" >&2; fi
}

report() { # report TOTAL until it is killed
	begun=$(date +%s)
	pause=1
	while sleep $pause 2>/dev/null; do
		pause=2
		done=$(grep -c '^[A-Za-z0-9._/~-]*$' "$log" || :)
		took=$(($(date +%s) - begun))
		if [ "$done" -ge "$1" ]; then
			say "linking attune-executor, attune-tui and attune-lab: ${took} s, some seconds left"
		elif [ "$done" = 0 ]; then
			say "compiling attune-executor, attune-tui and attune-lab: 0 of $1 packages, ${took} s"
		else
			say "compiling attune-executor, attune-tui and attune-lab: $done of $1 packages, ${took} s, about $((took * ($1 - done) / done)) s left"
		fi
	done
}

# What is not in the build cache, and what is not downloaded; finding it out takes under a second.
total=$(go build -n "$@" -o bin/ ./cmd/... 2>&1 | awk '
	/^go: downloading/ { print > "/dev/stderr" }
	/\/compile / { n++ }
	END { print n + 0 }')
report "$total" &
reporter=$!
go build -v "$@" -o bin/ ./cmd/... 2>"$log" || ended=$?
kill $reporter 2>/dev/null || :
[ ! -t 2 ] || printf '\r\033[K' >&2
grep -v '^[A-Za-z0-9._/~-]*$' "$log" >&2 || :
exit "${ended:-0}"
