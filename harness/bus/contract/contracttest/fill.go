package contracttest

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Fill gives every field of a value something that is not empty, and returns it. Types
// of words get the last of their words.
func Fill(v reflect.Value, words Words) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), words)
	case reflect.Struct:
		eachField(v, func(f reflect.Value) { Fill(f, words) })
	case reflect.Slice:
		fillSlice(v, words)
	case reflect.String:
		v.SetString("x/x") // so that it may be the key of a call
		if list := words[v.Type()]; list != nil {
			v.SetString(list[len(list)-1])
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	}
	return v
}

func fillSlice(v reflect.Value, words Words) {
	if v.Type() == rawType {
		v.Set(reflect.ValueOf(jsontext.Value("{}")))
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte("part"))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	Fill(v.Index(0), words)
}

// Empty leaves a value as it is but for types of words, which have no empty one.
func Empty(v reflect.Value, words Words) reflect.Value {
	switch list := words[v.Type()]; {
	case v.Kind() == reflect.Struct:
		eachField(v, func(f reflect.Value) { Empty(f, words) })
	case list != nil:
		v.SetString(list[0])
	}
	return v
}

// eachField goes through the fields that are part of a message: a field behind "-" may
// be of any type.
func eachField(v reflect.Value, do func(reflect.Value)) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" {
			do(v.Field(i))
		}
	}
}
