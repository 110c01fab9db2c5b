#!/bin/sh
# Draws the dashboard's views into docs/screenshots/*.svg from a short demo that
# runs meanwhile: what --snapshot prints, as a picture of a terminal.
set -eu
cd "$(dirname "$0")/.."

dir=${DEMO_DIR:-.attune/demo}
out=docs/screenshots
views=${VIEWS:-overview queues executions workers dlq}
mkdir -p .attune "$out"

# picture reads text and writes an SVG of it.
picture() {
	awk '
		{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); line[NR] = $0 }
		END {
			width = 140 * 8.43 + 32; height = NR * 18 + 32
			printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\">\n", width, height, width
			printf "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#14161b\"/>\n"
			printf "<g font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"14\" fill=\"#d7dae0\">\n"
			for (i = 1; i <= NR; i++)
				printf "<text x=\"16\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", i * 18 + 12, line[i]
			print "</g>\n</svg>"
		}'
}

DEMO_SECONDS=${DEMO_SECONDS:-45} bin/attune-executor demo </dev/null >.attune/screenshots.log 2>&1 &
demo=$!
trap 'kill "$demo" 2>/dev/null || true; wait "$demo" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Half of the demo has to pass before there is something to see.
sleep $((${DEMO_SECONDS:-45} / 2 + 10))
kill -0 "$demo" 2>/dev/null || {
	cat .attune/screenshots.log >&2
	exit 1
}
lines=$(bin/attune-executor stack env --dir "$dir")
eval "$lines"
for view in $views; do
	bin/attune-tui --snapshot "$view" --width 140 --height 40 >".attune/$view.txt"
	picture <".attune/$view.txt" >"$out/$view.svg"
	rm -f ".attune/$view.txt"
	echo "$out/$view.svg"
done
