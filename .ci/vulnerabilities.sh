#!/bin/sh
# Runs govulncheck, whose path is the argument, over every package of the product, with the toolchain of go.mod, which
# releases are built with. It fails when code calls something that is known to be vulnerable. Where the database of
# vulnerabilities cannot be reached, it uses the copy that the module proxy serves.
#   GOVULNDB  another database, for example file:///srv/vulndb
set -eu
check=$1
cd "$(dirname "$0")/.."
GOTOOLCHAIN=$(awk '$1 == "toolchain" { print $2 }' go.mod)+auto
export GOTOOLCHAIN

scan() { # scan [FLAG...] prints the report
	status=0
	report=$("$check" "$@" ./... 2>&1) || status=$?
	case $status:$report in
	0:*) printf '%s\n' "$report" && exit 0 ;;
	*"fetching vulnerabilities"*) return ;;
	*) printf '%s\n' "$report" >&2 && exit 1 ;;
	esac
}

scan ${GOVULNDB:+-db "$GOVULNDB"}

# The module golang.org/x/vulndb holds the entries, and the program that indexes them.
tools=$PWD/.attune/tools
version=$(cd "${TMPDIR:-/tmp}" && go list -m -f '{{.Version}}' golang.org/x/vulndb@latest) || {
	echo "neither the database of vulnerabilities nor the module proxy can be reached: dependencies were NOT checked" >&2
	exit 0
}
if [ ! -e "$tools/vulndb-$version/index/db.json" ]; then
	echo "indexing the vulnerabilities of golang.org/x/vulndb $version (once)" >&2
	rm -rf "$tools"/vulndb-*
	GOBIN=$tools go install "golang.org/x/vulndb/cmd/indexdb@$version"
	folder=$(cd "${TMPDIR:-/tmp}" && go mod download -json "golang.org/x/vulndb@$version" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
	"$tools/indexdb" -vulns "$folder/data/osv" -out "$tools/vulndb-$version"
fi
scan -db "file://$tools/vulndb-$version"
printf '%s\n' "$report" >&2
exit 1
