package carry

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Columns are the names of the members that values of the type of a sample have in
// JSON, in their order: those of a struct, with what it embeds, as its type says,
// else those of the sample.
func Columns(sample any) []string {
	t := reflect.TypeOf(sample)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return members(sample)
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported(), name == "-", f.Anonymous && name == "", len(f.Index) > 1 && hidden(t, f.Index):
		case name == "":
			names = append(names, f.Name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// hidden reports whether a field is in something embedded that JSON leaves out or
// has under a name of its own.
func hidden(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		f := t.FieldByIndex(index[:i])
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			return true
		}
	}
	return false
}

// members are the names of a document's members, in its order.
func members(sample any) []string {
	text, err := json.Marshal(sample)
	if err != nil {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var names []string
	for decoder.More() {
		name, err := decoder.Token()
		var skip json.RawMessage
		if err != nil || decoder.Decode(&skip) != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// Record is the cells of a line that JSON has written: texts as they are, numbers
// with all their digits, what is within as JSON, what is missing empty.
func Record(columns []string, line string) ([]string, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &doc); err != nil {
		return nil, fmt.Errorf("write as CSV: %w", err)
	}
	record := make([]string, len(columns))
	for i, name := range columns {
		record[i] = cell(doc[name])
	}
	return record, nil
}

func cell(value json.RawMessage) string {
	text := string(value)
	if text == "null" {
		return ""
	}
	var said string
	if json.Unmarshal(value, &said) == nil {
		text = said
	}
	return harmless(Plain(text))
}

// harmless keeps a text from being read as a formula by a spreadsheet.
func harmless(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

// Line writes one record of CSV with its end.
func Line(record []string) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.Write(record); err != nil {
		return "", fmt.Errorf("write as CSV: %w", err)
	}
	w.Flush()
	return b.String(), w.Error()
}
