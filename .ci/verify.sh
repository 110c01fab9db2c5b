#!/bin/sh
# Fails when generated code is not what its sources say. The working tree is
# left with the fresh code.
set -eu
cd "$(dirname "$0")/.."

sums() {
	find core cmd tui migrations -name '*.go' -o -name 'schema_generated.sql' | sort |
		while read -r file; do
			if [ "${file%.sql}" != "$file" ] || head -5 "$file" | grep -q '^// Code generated'; then cksum "$file"; fi
		done
}

before=$(sums)
make -s generate
after=$(sums)
if [ "$before" != "$after" ]; then
	echo "generated code was not current; commit what 'make generate' wrote:" >&2
	mkdir -p .attune
	printf '%s\n' "$before" >.attune/sums.before
	printf '%s\n' "$after" | diff .attune/sums.before - | sed -n 's/^> [0-9]* [0-9]* /  /p' >&2
	rm -f .attune/sums.before
	exit 1
fi
for module in . lab/bench deploy/check; do
	go -C "$module" mod verify >/dev/null
	go -C "$module" mod tidy -diff >/dev/null || {
		echo "$module/go.mod is not tidy: run 'go -C $module mod tidy'" >&2
		exit 1
	}
done
echo "generated code is current"
