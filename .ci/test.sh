#!/bin/sh
# Runs every test with the race detector against private servers that are
# started here and stopped at the end, whatever the end is. Exits as the tests
# do. Arguments go to `go test`, in the module TEST_MODULE; without any it is ./... in all modules.
set -u
cd "$(dirname "$0")/.."

# The servers are in memory where the system has a memory file system with room
# for them (they use some 400 MB at most) that programs may be run from: what they
# write there costs next to nothing. TEST_MEMORY_DIR names another folder, and an
# empty one keeps everything on disk.
memory=${TEST_MEMORY_DIR-/dev/shm}
roomy() {
	[ -d "$memory" ] && [ -w "$memory" ] || return 1
	[ "$(df -Pk "$memory" | awk 'NR == 2 { print $4 }')" -ge 3145728 ] || return 1
	probe=$(mktemp "$memory/attune-probe.XXXXXX") || return 1
	printf '#!/bin/sh\n' >"$probe" && chmod 755 "$probe" && "$probe" 2>/dev/null
	able=$?
	rm -f "$probe"
	return $able
}

attune=bin/attune-lab
mkdir -p .attune
log=.attune/test.log
status=.attune/test.status
began=$(date +%s)

# Whatever tests put into the temporary folder goes with it, also the servers
# of a test that was interrupted. Other users' processes work in it too.
place=${TMPDIR:-/tmp}
if [ -n "$memory" ] && roomy; then place=$memory; fi
TMPDIR=$(mktemp -d "$place/attune-run.XXXXXX") || exit 1
chmod 1777 "$TMPDIR"
export TMPDIR
dir=${TEST_STACK_DIR:-$TMPDIR/stack}

finish() {
	code=$?
	trap '' INT TERM HUP
	"$attune" stack down --wipe --dir "$dir" >/dev/null || code=1
	find "$TMPDIR" -name stack.json 2>/dev/null | while read -r left; do
		"$attune" stack down --wipe --dir "$(dirname "$left")" >/dev/null
	done
	rm -rf "$TMPDIR" 2>/dev/null || { sleep 1 && rm -rf "$TMPDIR"; }
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

"$attune" stack up --fast --stats-interval 250ms --dir "$dir" >/dev/null || exit 1
lines=$("$attune" stack env --dir "$dir") || exit 1
url() { (
	eval "$lines"
	eval "printf %s \"\$$1\""
); }
ATTUNE_TEST_DATABASE_URL=$(url ATTUNE__DATABASE__URL)
ATTUNE_TEST_AMQP_URL=$(url ATTUNE__MESSAGE_QUEUE__URL)
ATTUNE_TEST_MANAGEMENT_URL=$(url ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL)
ATTUNE_TEST_PROGRAM=$PWD/bin/attune-executor
export ATTUNE_TEST_DATABASE_URL ATTUNE_TEST_AMQP_URL ATTUNE_TEST_MANAGEMENT_URL ATTUNE_TEST_PROGRAM

# A process with the race detector waits a second before it ends, each of 80 test
# programs.
GORACE="atexit_sleep_ms=0 ${GORACE:-}"
export GORACE

# Memory that tests leave is collected less often than by default, and compilers collect theirs so too.
GOGC=${GOGC:-400}
export GOGC

# Without tables for debuggers each of the 80 test programs links a third faster.
run() { # run MODULE ARGUMENT...
	module=$1
	shift
	go -C "$module" test -race -ldflags="-s -w" -count=1 -p "${TEST_PARALLEL:-2}" \
		-timeout "${TEST_TIMEOUT:-15m}" "$@" 2>&1
}
{
	if [ $# -gt 0 ]; then
		run "${TEST_MODULE:-.}" "$@"
		echo $? >"$status"
	else
		run . ./...
		code=$?
		run lab/bench ./... || code=1
		# The types of the Kubernetes API take long to compile: make verify-deploy and make chaos check with them.
		run deploy/check "$([ -n "${ATTUNE_SLOW_TESTS:-}" ] && echo ./... || echo .)" || code=1
		echo $code >"$status"
	fi
} | tee "$log"

code=$(cat "$status")
rm -f "$status"
awk -v code="$code" -v seconds=$(($(date +%s) - began)) '
	$1 == "ok" { passed++ }
	$1 == "FAIL" && NF > 1 { failed++; names = names "\n  " $2 }
	/^--- FAIL:/ { tests++ }
	/no test files/ { without++ }
	END {
		printf "\n%s: %d packages passed, %d failed", (code == 0 ? "PASSED" : "FAILED"), passed, failed
		if (without) printf ", %d without tests", without
		printf ", %ds\n", seconds
		if (failed) printf "failed packages:%s\n", names
	}' "$log"
printf 'slowest packages:\n'
awk '$1 == "ok" || $1 == "FAIL" && NF > 2 { print $3, $2 }' "$log" | sort -rn | head -10 |
	while read -r seconds package; do printf '  %8s  %s\n' "$seconds" "$package"; done
exit "$code"
