package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/phrase"
)

// assign stores a value of YAML or the environment. The error says what the value is and should be, without the key.
func (s setting) assign(raw any) error {
	if s.isDuration() {
		duration, err := parseDuration(raw, s.unit())
		if err != nil {
			return err
		}
		s.value.SetInt(int64(duration))
		return nil
	}
	switch s.value.Kind() {
	case reflect.String:
		return s.assignString(raw)
	case reflect.Bool:
		return s.assignBool(raw)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return s.assignInt(raw)
	case reflect.Float64:
		return s.assignFloat(raw)
	default:
		return s.assignStructured(raw)
	}
}

func (s setting) assignString(raw any) error {
	switch value := raw.(type) {
	case string:
		s.value.SetString(value)
	case nil:
		s.value.SetString("")
	case int, int64, uint64, float64, bool:
		s.value.SetString(fmt.Sprint(value))
	default:
		return fmt.Errorf("%s is not a text", show(raw))
	}
	return nil
}

func (s setting) assignBool(raw any) error {
	switch value := raw.(type) {
	case bool:
		s.value.SetBool(value)
		return nil
	case string:
		switch strings.ToLower(strings.TrimSpace(value)) {
		case "true", "yes", "on", "1":
			s.value.SetBool(true)
			return nil
		case "false", "no", "off", "0":
			s.value.SetBool(false)
			return nil
		}
	}
	return fmt.Errorf("%s is not true or false", show(raw))
}

func (s setting) assignInt(raw any) error {
	number, ok := toFloat(raw)
	if !ok || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
		return fmt.Errorf("%s is not a whole number", show(raw))
	}
	if s.value.OverflowInt(int64(number)) {
		return fmt.Errorf("%s is too large", show(raw))
	}
	s.value.SetInt(int64(number))
	return nil
}

func (s setting) assignFloat(raw any) error {
	number, ok := toFloat(raw)
	if !ok {
		return fmt.Errorf("%s is not a number", show(raw))
	}
	s.value.SetFloat(number)
	return nil
}

// assignStructured stores lists and maps. In the environment they are YAML or JSON; a list of words may also be
// separated by commas.
func (s setting) assignStructured(raw any) error {
	target := reflect.New(s.value.Type())
	text, isText := raw.(string)
	if isText && s.value.Type() == reflect.TypeFor[[]string]() && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		s.value.Set(reflect.ValueOf(words(text)))
		return nil
	}
	encoded, err := []byte(text), error(nil)
	if !isText {
		encoded, err = yaml.Marshal(raw)
	}
	if err == nil {
		err = yaml.Unmarshal(encoded, target.Interface())
	}
	if err != nil {
		return fmt.Errorf("%s is not %s", show(raw), kindName(s.value))
	}
	s.value.Set(target.Elem())
	return nil
}

func words(text string) []string {
	var list []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			list = append(list, word)
		}
	}
	return list
}

func toFloat(raw any) (float64, bool) {
	switch value := raw.(type) {
	case int:
		return float64(value), true
	case int64:
		return float64(value), true
	case uint64:
		return float64(value), true
	case float64:
		return value, !math.IsNaN(value) && !math.IsInf(value, 0)
	case string:
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return number, err == nil && !math.IsNaN(number) && !math.IsInf(number, 0)
	}
	return 0, false
}

// parseDuration reads a plain number in the unit, or a form such as 1m30s.
func parseDuration(raw any, unit time.Duration) (time.Duration, error) {
	if number, ok := toFloat(raw); ok {
		nanoseconds := number * float64(unit)
		if math.Abs(nanoseconds) >= math.MaxInt64 {
			return 0, fmt.Errorf("%s is too large", show(raw))
		}
		return time.Duration(nanoseconds), nil
	}
	if text, ok := raw.(string); ok {
		if duration, err := phrase.ParseSpan(text); err == nil {
			return duration, nil
		}
	}
	word := "seconds"
	if unit == time.Millisecond {
		word = "milliseconds"
	}
	return 0, fmt.Errorf("%s is not a duration: use a number of %s or a form like 1m30s", show(raw), word)
}

// check tests the value against the tags of its field.
func (s setting) check() error {
	if strings.HasPrefix(s.key, "alerts.") && strings.HasSuffix(s.key, ".measure") {
		return s.checkMeasure()
	}
	if allowed := strings.Fields(s.tag.Get("oneof")); len(allowed) > 0 {
		if slices.Contains(allowed, s.value.String()) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", s.value.String(), strings.Join(allowed, ", "))
	}
	limits := s.tag.Get("range")
	if limits == "" {
		return nil
	}
	low, high, _ := strings.Cut(limits, "..")
	if s.isDuration() {
		least, _ := phrase.ParseSpan(low)
		most, _ := phrase.ParseSpan(high)
		if value := time.Duration(s.value.Int()); value < least || value > most {
			return fmt.Errorf("%s is out of range: allowed is %s to %s", DurationText(value), DurationText(least),
				DurationText(most))
		}
		return nil
	}
	least, _ := strconv.ParseFloat(low, 64)
	most, _ := strconv.ParseFloat(high, 64)
	if number := s.value.Convert(reflect.TypeFor[float64]()).Float(); number < least || number > most {
		return fmt.Errorf("%s is out of range: allowed is %s to %s", s.text(), low, high)
	}
	return nil
}

// text renders the value unmasked.
func (s setting) text() string {
	if s.isDuration() {
		return DurationText(time.Duration(s.value.Int()))
	}
	switch value := s.value.Interface().(type) {
	case string:
		return value
	case []string:
		return strings.Join(value, ", ")
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case bool, int, int32, int64:
		return fmt.Sprint(value)
	}
	if s.value.Len() == 0 {
		return ""
	}
	return show(s.value.Interface())
}

// DurationText writes 5m instead of 5m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// show renders any value on one line, for errors.
func show(raw any) string {
	if text, ok := raw.(string); ok {
		return strconv.Quote(text)
	}
	var node yaml.Node
	if err := node.Encode(raw); err != nil {
		return fmt.Sprint(raw)
	}
	node.Style = yaml.FlowStyle
	out, err := yaml.Marshal(&node)
	if err != nil {
		return fmt.Sprint(raw)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

func kindName(value reflect.Value) string {
	switch value.Kind() {
	case reflect.Map:
		return "a mapping of names to values"
	case reflect.Slice:
		return "a list"
	default:
		return "valid"
	}
}
