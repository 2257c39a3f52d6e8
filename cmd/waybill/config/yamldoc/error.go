package yamldoc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Error is one mistake in one file.
type Error struct {
	File   string // as it was named
	Line   int    // from 1; 0 where the whole file is meant
	Column int    // from 1; 0 where it is not known
	Key    string // dotted, with [n] for items from 0: peers.notes.args[2]; "" for none
	Msg    string // what is wrong and what to do; never the value of a secret

	Cause error // of the operating system, or nil
}

// Error is "FILE:LINE: KEY: MESSAGE", without the parts that are not known.
func (e *Error) Error() string {
	if e.Key == "" {
		return e.place() + ": " + e.Msg
	}
	return e.place() + ": " + e.Key + ": " + e.Msg
}

// Where is the place without the message: "FILE:LINE: KEY".
func (e *Error) Where() string {
	if e.Key == "" {
		return e.place()
	}
	return e.place() + ": " + e.Key
}

func (e *Error) place() string {
	if e.Line == 0 {
		return e.File
	}
	return fmt.Sprintf("%s:%d", e.File, e.Line)
}

// Unwrap gives the error of the operating system, if there is one.
func (e *Error) Unwrap() error { return e.Cause }

// Errors is every mistake that was found in a file, in the order of its lines;
// never empty when returned as an error.
type Errors []*Error

// Error has one line for each mistake.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each mistake.
func (es Errors) Unwrap() []error {
	list := make([]error, len(es))
	for i, e := range es {
		list[i] = e
	}
	return list
}

// Err returns the mistakes in order, or nil if there are none.
func (es Errors) Err() error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return es
}
