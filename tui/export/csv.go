package export

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// columnsOf lists the JSON names of the fields of a struct, with those of embedded structs. For other values it
// lists the members of the JSON document.
func columnsOf(sample any) []string {
	t := reflect.TypeOf(sample)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return members(sample)
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name := jsonName(f)
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

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// hidden reports whether an embedded struct around a field has a JSON name of its own or none at all.
func hidden(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		if jsonName(t.FieldByIndex(index[:i])) != "" {
			return true
		}
	}
	return false
}

// members lists the member names of a JSON document in their order.
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

// record splits a line of JSON into cells: texts without quotes, numbers with all digits, nested values as JSON,
// missing values empty.
func record(columns []string, line string) ([]string, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &doc); err != nil {
		return nil, fmt.Errorf("write as CSV: %w", err)
	}
	cells := make([]string, len(columns))
	for i, name := range columns {
		cells[i] = cell(doc[name])
	}
	return cells, nil
}

// cell keeps spreadsheets from reading a text as a formula.
func cell(value json.RawMessage) string {
	text := string(value)
	if text == "null" {
		return ""
	}
	var decoded string
	if json.Unmarshal(value, &decoded) == nil {
		text = decoded
	}
	text = Plain(text)
	if text == "" || !strings.ContainsRune("=+-@\t", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

func csvLine(record []string) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.Write(record); err != nil {
		return "", fmt.Errorf("write as CSV: %w", err)
	}
	w.Flush()
	return b.String(), w.Error()
}
