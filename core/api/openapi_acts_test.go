package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
)

var update = flag.Bool("update", false, "describe new routes of acts in openapi.yaml")

// The routes of acts are described. With -update, a missing description is made from the declaration.
func TestRoutesOfActsAreDescribed(t *testing.T) {
	t.Parallel()
	var missing strings.Builder
	for _, of := range act.All() {
		described := slices.ContainsFunc(readSpec(), func(op *operation) bool {
			return op.method == "POST" && op.path == "/api/v1/"+of.Route.Path
		})
		if of.Route.Path != "" && !described {
			missing.WriteString(description(t, of))
		}
	}
	if *update && missing.Len() > 0 {
		text, err := os.ReadFile("openapi.yaml")
		require.NoError(t, err)
		text = bytes.Replace(text, []byte("\npaths:\n"), []byte("\npaths:\n"+missing.String()), 1)
		require.NoError(t, os.WriteFile("openapi.yaml", text, 0o600))
		return
	}
	require.Empty(t, missing.String(), "run `go test ./core/api -run RoutesOfActs -update`")
}

// description describes the route of an act on one row.
func description(t *testing.T, of *act.Act) string {
	t.Helper()
	require.NotNil(t, of.Route.Answer, "%s has no Answer", of.Kind)
	require.False(t, of.Route.Plans || of.Route.Confirms || of.Route.IDs+of.Route.ID != "",
		"%s is no act on one row: describe its route in openapi.yaml", of.Kind)
	properties, required := "reason: {type: string}", []string{}
	for i := range of.Fields {
		f := &of.Fields[i]
		if kind := map[bool]string{true: "integer", false: "string"}[f.Type == act.Number]; f.HTTP {
			properties += fmt.Sprintf(", %s: {type: %s}", f.Member(), kind)
		}
		if f.Required {
			required = append(required, f.Member())
		}
	}
	what, verb, _ := strings.Cut(string(of.Kind), ".")
	path := "{name: ref, in: path, required: true, schema: {type: string}}"
	if strings.Contains(of.Route.Path, "{id}") {
		path = "{name: id, in: path, required: true, schema: {type: integer, format: int64, minimum: 1}}"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  /api/v1/%s:\n    post:\n      operationId: %s%s\n      summary: %q\n      description: %q\n",
		of.Route.Path, verb, strings.ToUpper(what[:1])+what[1:], of.Command.Short,
		strings.ReplaceAll(of.Command.Long, "\n", " "))
	fmt.Fprintf(&b, "      security: [{token: [operate]}]\n      parameters:\n        - %s\n", path)
	fmt.Fprintf(&b, "      requestBody:\n        required: %v\n        content: {application/json: {schema: "+
		"{type: object, required: [%s], properties: {%s}}}}\n      responses:\n",
		len(required) > 0, strings.Join(required, ", "), properties)
	fmt.Fprintf(&b, "        \"200\": {description: What was done., content: {application/json: {schema: "+
		"{type: object, required: [data], properties: {data: %s}}}}}\n", schemaOf(reflect.TypeOf(of.Route.Answer)))
	for _, one := range []string{
		"400 Bad", "401 Refused", "403 Forbidden", "404 Missing", "409 Conflict", "413 TooLarge", "415 NotJSON", "422 Unfit",
		"429 TooMany", "503 Away",
	} {
		code, name, _ := strings.Cut(one, " ")
		fmt.Fprintf(&b, "        %q: {$ref: \"#/components/responses/%s\"}\n", code, name)
	}
	return b.String()
}

// schemaOf is the schema of a type, as encoding/json writes it.
func schemaOf(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return "{type: string, format: date-time}"
	case of == reflect.TypeFor[json.RawMessage]():
		return `{$ref: "#/components/schemas/Any"}`
	case of.Kind() == reflect.Pointer:
		return schemaOf(of.Elem())
	case of.Kind() == reflect.Slice:
		return "{type: array, items: " + schemaOf(of.Elem()) + "}"
	case of.Kind() == reflect.Bool:
		return "{type: boolean}"
	case of.Kind() == reflect.String:
		return "{type: string}"
	case of.Kind() != reflect.Struct:
		return "{type: integer}"
	}
	var properties, required []string
	for _, f := range reflect.VisibleFields(of) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		properties = append(properties, name+": "+schemaOf(f.Type))
		if option == "" {
			required = append(required, name)
		}
	}
	return fmt.Sprintf("{type: object, required: [%s], properties: {%s}}", strings.Join(required, ", "),
		strings.Join(properties, ", "))
}
