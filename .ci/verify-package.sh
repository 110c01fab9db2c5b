#!/bin/sh
# Builds the packages of the last commit in two fresh folders, and fails unless SHA256SUMS are the same and the
# Debian package is complete.
# usage: sh .ci/verify-package.sh NFPM
set -eu
cd "$(dirname "$0")/.."
both=$(mktemp -d)
trap 'rm -rf "$both"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

commit=$(git rev-parse HEAD)
# The names of the folders differ in length, since paths could be in the programs.
for folder in one another-folder; do
	git clone -q --no-hardlinks . "$both/$folder"
	git -C "$both/$folder" checkout -q "$commit"
	cp -R bin "$both/$folder/bin"
	(cd "$both/$folder" && sh .ci/package.sh "$1" >/dev/null)
done
cat "$both/one/dist/SHA256SUMS"
cmp "$both/one/dist/SHA256SUMS" "$both/another-folder/dist/SHA256SUMS" || {
	diff "$both/one/dist/SHA256SUMS" "$both/another-folder/dist/SHA256SUMS" >&2 || :
	exit 1
}
echo "both folders have the same bytes"

# The package of this machine is unpacked, and its programs read what it installs.
deb=$both/one/dist/attune_*_$(go env GOARCH).deb
command -v dpkg-deb >/dev/null 2>&1 && ls $deb >/dev/null 2>&1 || exit 0
root=$both/root
dpkg-deb -x $deb "$root"
dpkg-deb --info $deb conffiles | grep -qx /etc/attune/attune.yaml
"$root/usr/bin/attune-executor" version
"$root/usr/bin/attune-tui" --version
"$root/usr/bin/attune-executor" config explain --config "$root/etc/attune/attune.yaml" >/dev/null
for program in attune-executor attune-tui; do
	for file in "man/man1/$program.1.gz" "bash-completion/completions/$program" "zsh/vendor-completions/_$program" \
		"fish/vendor_completions.d/$program.fish"; do
		[ -s "$root/usr/share/$file" ] || {
			echo "the package has no $file" >&2
			exit 1
		}
	done
	! command -v man >/dev/null 2>&1 || man -l "$root/usr/share/man/man1/$program.1.gz" | grep -q "^NAME"
done
for unit in attune-executor.service attune-worker@.service; do
	program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$root/usr/lib/systemd/system/$unit")
	[ -x "$root$program" ] || {
		echo "$unit starts $program, which the package does not have" >&2
		exit 1
	}
done
! command -v lintian >/dev/null 2>&1 || lintian --allow-root --fail-on error,warning $deb
echo "the package of this machine is complete"
