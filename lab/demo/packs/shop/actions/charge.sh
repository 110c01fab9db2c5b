. /dev/stdin
# One order in eleven cannot be paid, however often it is tried; of the others one
# try in five finds the bank away.
if [ $((order % 11)) -eq 0 ]; then
  echo "the card was refused" >&2
  exit 1
fi
if [ $((ATTUNE_EXEC_ID % 5)) -eq 0 ]; then
  echo "the bank is away" >&2
  exit 1
fi
printf '{"order": %s, "charged": %s}\n' "$order" "$amount"
