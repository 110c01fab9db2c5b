#!/bin/sh
# Prints how large the house is, beside the sizes it shall not exceed: hand-written lines by area, packages, words.
# usage: sh .ci/house.sh
set -eu
cd "$(dirname "$0")/.."

lines() { # lines of the files that standard input names, without generated ones
	xargs -r awk 'FNR <= 5 && /^(\/\/|--) Code generated/ { skip[FILENAME] = 1 }
		{ n[FILENAME]++ }
		END { for (f in n) if (!(f in skip)) sum += n[f]; print sum + 0 }' | awk '{ n += $1 } END { print n + 0 }'
}
go() { git ls-files -- "$@" | grep '\.go$' | grep -v '_test\.go$' || :; }
words() { cat "$@" | wc -w; }
row() { printf '%-52s %8s %8s\n' "$1" "$2" "${3:-}"; }

product="core tui migrations cmd/attune-executor cmd/attune-tui"
row "" now at-most
row "product: Go outside tests" "$(go $product | lines)" 112000
for area in $product; do row "  $area" "$(go "$area" | lines)"; done
row "laboratory: Go of lab and cmd/attune-lab" "$(go lab cmd/attune-lab | lines)" 17000
row "tests: Go" "$(git ls-files | grep '_test\.go$' | lines)"
row "migrations: SQL" "$(git ls-files migrations | grep '\.sql$' | lines)" 2000
row "migrations: files" "$(git ls-files migrations | grep -c '\.sql$')" 10
row "queries: SQL" "$(git ls-files core/store/queries | grep '\.sql$' | lines)"
row "packages below core/" "$(go core | grep '^core/.*/' | cut -d/ -f2 | sort -u | wc -l)" 45
row "floors of core/layers_test.go" "$(sed -n '/^var layers/,/^}/p' core/layers_test.go | grep -o ': [0-9]*' | sort -u | wc -l)" 8
acts="$(sed -n 's/^\(const \|\t\)\([A-Z][A-Za-z]*\) *Kind = ".*/\2/p' core/act/*.go | paste -sd'|' -)"
row "lines outside core/act that name an act" "$(git grep -hwE "act\.($acts)" -- $(go $product | grep -v '^core/act/') | wc -l)" 10
row "CHANGELOG.md: bytes" "$(wc -c <CHANGELOG.md)" 5000
row "docs: words" "$(words $(git ls-files docs | grep '\.md$'))" 60000
