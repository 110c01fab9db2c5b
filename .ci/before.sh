#!/bin/sh
# Builds a program that measures the engine as it was at a commit, with the flags of
# bin/attune-bench, and prints where it is. Prints nothing where the commit is not there,
# as in a copy without its history.
#
# usage: sh .ci/before.sh COMMIT
set -eu
cd "$(dirname "$0")/.."
dir=$PWD/.attune/before/$1
if [ ! -x "$dir/attune-bench" ]; then
	git cat-file -e "$1^{commit}" 2>/dev/null || exit 0
	mkdir -p "$dir/source"
	git archive "$1" | tar -x -C "$dir/source"
	for bench in lab/bench bench; do [ ! -d "$dir/source/$bench" ] || module=$dir/source/$bench; done
	if [ -n "${module:-}" ]; then
		go -C "$module" build -buildvcs=false -o "$dir/attune-bench" . >&2
	else # the engine itself had the command
		go -C "$dir/source" build -buildvcs=false -o "$dir/attune-executor" ./cmd/attune-executor >&2
		printf '#!/bin/sh\nexec "%s" bench "$@"\n' "$dir/attune-executor" >"$dir/attune-bench"
		chmod +x "$dir/attune-bench"
	fi
	rm -rf "$dir/source"
fi
echo "$dir/attune-bench"
