#!/bin/sh
# Runs every fuzz target for FUZZ_SECONDS each; what it finds is kept by Go
# below testdata/fuzz and fails every later test run until it is fixed. Then runs
# the long course of forged messages against real servers, which names its seed.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-10}
targets=0
# shellcheck disable=SC2013 # names of folders hold no blanks
for file in $(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' core cmd tui migrations docs 2>/dev/null | sort); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		targets=$((targets + 1))
		echo "== $target in $(dirname "$file")"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" "./$(dirname "$file")"
	done
done
echo "$targets fuzz targets, ${seconds}s each: nothing found"
[ "$targets" -gt 0 ]
echo "== TestForgedHeadersCostNothing in core/engine"
ATTUNE_SLOW_TESTS=1 go test -count=1 -run '^TestForgedHeadersCostNothing$' ./core/engine
