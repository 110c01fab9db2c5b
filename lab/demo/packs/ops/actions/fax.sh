. /dev/stdin
printf '{"faxed": %s}\n' "$number"
