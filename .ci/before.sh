#!/bin/sh
# Builds the engine as it was at a commit, for comparisons, and prints where it is.
# Prints nothing where the commit is not there, as in a copy without its history.
#
# usage: sh .ci/before.sh COMMIT
set -eu
cd "$(dirname "$0")/.."
dir=.attune/before/$1
if [ ! -x "$dir/attune-executor" ]; then
	git cat-file -e "$1^{commit}" 2>/dev/null || exit 0
	mkdir -p "$dir/source"
	git archive "$1" | tar -x -C "$dir/source"
	(cd "$dir/source" && go build -buildvcs=false -o ../attune-executor ./cmd/attune-executor) >&2
	rm -rf "$dir/source"
fi
echo "$dir/attune-executor"
