. /dev/stdin
case "$country" in
france | spain) ;;
*)
  echo "reading templates/$country.tex" >&2
  echo "invoice: templates/$country.tex is not part of release 1.5.0" >&2
  exit 3
  ;;
esac
printf '{"invoice": %s, "language": "%s"}\n' "$number" "$country"
