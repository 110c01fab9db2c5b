package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// documents are the roots of the documents before the first syntax error. JSON is read as JSON, because YAML refuses
// surrogate pairs.
func documents(content []byte) ([]*yaml.Node, error) {
	if json.Valid(content) {
		root, err := JSON(content)
		return []*yaml.Node{root}, err
	}
	var roots []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return roots, err
		}
		if len(document.Content) == 1 {
			roots = append(roots, document.Content[0])
		}
	}
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// Syntax says on one line where and why a text is not YAML; line 0 is unknown. The parser names the
// first line of a block that breaks off at another indentation; the text names both lines.
func Syntax(content []byte, err error) (line int, text string) {
	text = strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = strings.TrimPrefix(text, found[0])
	}
	if strings.HasPrefix(text, "unknown anchor ") { // its name may be a password
		return brokenAt(content, err), "an alias has no anchor: put a value that begins with * between quotes"
	}
	if !strings.HasSuffix(text, "did not find expected key") &&
		!strings.HasSuffix(text, "did not find expected '-' indicator") {
		return line, text
	}
	broken := brokenAt(content, err)
	if broken <= line {
		return line, text
	}
	return broken, fmt.Sprintf(
		"the block that begins near line %d breaks off in line %d: is one of the lines indented wrongly?", line, broken)
}

// brokenAt is the first line at which the text has the error. More lines do not remove it.
func brokenAt(content []byte, err error) int {
	lines := bytes.SplitAfter(content, []byte("\n"))
	ends := make([]int, len(lines)+1)
	for i, line := range lines {
		ends[i+1] = ends[i] + len(line)
	}
	n, _ := slices.BinarySearchFunc(ends, true, func(end int, _ bool) int {
		if _, got := documents(content[:end]); got != nil && got.Error() == err.Error() {
			return 1
		}
		return -1
	})
	return n
}
