. /dev/stdin
printf '{"printed": %s}\n' "$number"
