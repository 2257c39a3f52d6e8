package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/heads"
)

// Exit codes. They are a contract.
const (
	exitDone          = 0
	exitInternal      = 1
	exitConfig        = 2
	exitSomeNotReady  = 3
	exitToolError     = 4
	exitRefused       = 5
	exitLost          = 6
	exitTimedOut      = 7
	exitCancelled     = 8
	exitNotRunning    = 9
	exitInputRequired = 10
	exitProtocolError = 11
)

// exitError ends a command with a code of its own. A nil err prints nothing:
// the command has said it already.
type exitError struct {
	exit  int
	code  string // short and stable, for --json
	where string // file and line, "" for none
	err   error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.exit)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exitWith(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitError{exit: code}
}

func usageError(err error) error {
	return &exitError{exit: exitConfig, code: "usage", err: fmt.Errorf("%w; see --help", err)}
}

func notRunning(format string, v ...any) error {
	return &exitError{exit: exitNotRunning, code: "not_running", err: fmt.Errorf(format, v...)}
}

// fail prints an error where there is one and returns the exit code.
func (a *app) fail(asJSON bool, err error) int {
	if err == nil {
		return exitDone
	}
	e := classify(err)
	if e.err == nil {
		return e.exit
	}
	if !asJSON {
		fmt.Fprintf(a.err, "waybill: %v\n", e.err)
		return e.exit
	}
	doc := struct {
		Error struct {
			Code    string  `json:"code"`
			Message string  `json:"message"`
			Where   *string `json:"where"`
		} `json:"error"`
	}{}
	doc.Error.Code, doc.Error.Message = e.code, string(a.err.clean([]byte(e.err.Error())))
	if e.where != "" {
		doc.Error.Where = &e.where
	}
	b, err := json.Marshal(doc)
	if err != nil {
		b = []byte(`{"error":{"code":"internal","message":"the error could not be encoded","where":null}}`)
	}
	fmt.Fprintf(a.out, "%s\n", b)
	return e.exit
}

// classify finds the exit code of an error.
func classify(err error) *exitError {
	var e *exitError
	var one *config.Error
	var many config.Errors
	var halt *harness.HaltError
	var held *harness.LockedError
	var refused *heads.RefusedError
	var forbidden *bus.NotPermittedError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &many) && len(many) > 0:
		return &exitError{exit: exitConfig, code: "configuration", where: many[0].Where(), err: err}
	case errors.As(err, &one):
		return &exitError{exit: exitConfig, code: "configuration", where: one.Where(), err: err}
	case errors.As(err, &halt):
		return &exitError{exit: exitConfig, code: string(halt.Code), err: err}
	case errors.As(err, &forbidden):
		return &exitError{exit: exitConfig, code: "not_permitted", err: err}
	case errors.Is(err, bus.ErrKeyRefused):
		return &exitError{exit: exitConfig, code: "credentials", err: err}
	case errors.Is(err, bus.ErrRequestTooLarge):
		return &exitError{exit: exitConfig, code: "too_large", err: err}
	case errors.Is(err, bus.ErrUnreachable):
		return &exitError{exit: exitNotRunning, code: "nats_unreachable", err: err}
	case errors.Is(err, bus.ErrNotServing):
		return &exitError{exit: exitNotRunning, code: "not_running", err: err}
	case errors.Is(err, bus.ErrConnectionLost):
		return &exitError{exit: exitLost, code: "connection_lost", err: err}
	case errors.As(err, &refused):
		return &exitError{exit: exitInternal, code: refused.Code, where: refused.File, err: err}
	case errors.Is(err, harness.ErrNoLog):
		return &exitError{exit: exitNotRunning, code: "not_initialised", err: err}
	case errors.Is(err, context.Canceled):
		return &exitError{exit: exitCancelled, code: "interrupted", err: errors.New("interrupted; what had been decided is in the log")}
	case errors.As(err, &held):
		return &exitError{exit: exitInternal, code: "locked", where: held.Dir, err: err}
	}
	return &exitError{exit: exitInternal, code: "internal", err: err}
}

// exitOf maps the end of a call to an exit code.
func exitOf(status domain.Status) int {
	switch status {
	case domain.StatusComplete:
		return exitDone
	case domain.StatusToolError:
		return exitToolError
	case domain.StatusRefused:
		return exitRefused
	case domain.StatusLost:
		return exitLost
	case domain.StatusTimedOut:
		return exitTimedOut
	case domain.StatusCancelled:
		return exitCancelled
	case domain.StatusInputRequired:
		return exitInputRequired
	case domain.StatusProtocolError:
		return exitProtocolError
	}
	return exitInternal
}
