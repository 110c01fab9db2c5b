package yamldoc

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/phrase"
)

// Unmarshaler is a type that reads its own value and reports what it cannot use.
type Unmarshaler interface {
	UnmarshalField(r *Reader, f Field) (ok bool)
}

// KeysOf are the keys of a struct by its tags, in the order of its fields.
func KeysOf(form any) []Key { return keysOf(reflect.TypeOf(form)) }

func keysOf(structure reflect.Type) []Key {
	if structure.Kind() == reflect.Pointer {
		structure = structure.Elem()
	}
	var keys []Key
	for field := range structure.Fields() {
		if field.Anonymous {
			keys = append(keys, keysOf(field.Type)...)
		} else if name := nameOf(field); name != "" {
			also := strings.Fields(field.Tag.Get("also"))
			keys = append(keys, Key{Name: name, Also: also, Null: field.Tag.Get("null") == "keep", Tag: field.Tag})
		}
	}
	return keys
}

// nameOf is the key of a field; empty for none.
func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return strings.TrimPrefix(name, "-")
}

// Decode reads a mapping into the struct that into points to, and returns the given keys. unknown is
// as for Mapping.
func (r *Reader) Decode(node *yaml.Node, into any, unknown func(Field)) Fields {
	given := r.Mapping(node, KeysOf(into), unknown)
	r.Fill(given, into)
	return given
}

// Fill reads the values of keys into the struct that into points to. It marks unusable ones as
// broken.
func (r *Reader) Fill(given Fields, into any) { r.fill(given, reflect.ValueOf(into).Elem()) }

func (r *Reader) fill(given Fields, structure reflect.Value) {
	for i := range structure.NumField() {
		field := structure.Type().Field(i)
		if field.Anonymous {
			r.fill(given, reflect.Indirect(structure.Field(i)))
			continue
		}
		name := nameOf(field)
		f := given[name]
		if f.Broken = f.Given() && !r.set(f, field.Tag, structure.Field(i)); f.Broken {
			given[name] = f
		}
	}
}

// set stores the value of a key in its field, and reports whether it was usable.
func (r *Reader) set(f Field, tag reflect.StructTag, to reflect.Value) bool {
	if own, ok := reflect.TypeAssert[Unmarshaler](to.Addr()); ok {
		return own.UnmarshalField(r, f)
	}
	var value any
	var ok bool
	switch allowed := strings.Fields(tag.Get("oneof")); to.Kind() {
	case reflect.Struct: // a Field
		value, ok = f, true
	case reflect.String:
		if len(allowed) > 0 {
			value, ok = r.Word(f, allowed...)
		} else {
			value, ok = r.Text(f)
			if length := tag.Get("length"); ok && length != "" {
				least, most := limits(length)
				ok = r.Length(f, int(least), int(most))
			}
		}
	case reflect.Bool:
		value, ok = r.Bool(f)
	case reflect.Int, reflect.Int32:
		if unit := tag.Get("unit"); unit != "" {
			value, ok = r.Units(f, constant(phrase.ParseSpan(unit)))
		} else {
			least, most := limits(tag.Get("range"))
			value, ok = r.Whole(f, least, most)
		}
	case reflect.Slice:
		value, ok = r.Texts(f)
		if !ok { // texts are checked further
			to.Set(reflect.ValueOf(value))
		}
	case reflect.Map:
		value, ok = r.Object(f)
	case reflect.Interface:
		before := len(r.Mistakes)
		value = r.Value(f.Value)
		ok = len(r.Mistakes) == before
	default:
		panic(fmt.Sprintf("yamldoc: the key %s has a field of type %s", f.Name, to.Type()))
	}
	if ok && value != nil {
		to.Set(reflect.ValueOf(value).Convert(to.Type()))
	}
	return ok
}

// limits parses the tag range: 1..100, or 1.. up to what the database stores.
func limits(tag string) (least, most int64) {
	low, high, _ := strings.Cut(tag, "..")
	least, most = constant(strconv.ParseInt(low, 10, 32)), math.MaxInt32
	if high != "" {
		most = constant(strconv.ParseInt(high, 10, 32))
	}
	return least, most
}

// constant is the value of a tag, which the program itself contains.
func constant[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
