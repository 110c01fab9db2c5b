. /dev/stdin
printf '{"invoice": %s, "language": "%s"}\n' "$number" "$country"
