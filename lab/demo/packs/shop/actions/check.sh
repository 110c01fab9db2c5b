# The parameters come as lines that a shell can source.
. /dev/stdin
printf '{"order": %s, "weight": %s}\n' "$order" "${#items}"
