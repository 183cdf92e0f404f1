package main

import (
	"encoding/json"
	"errors"

	"laneway/shared/protocol"
)

// runError is the failure of a turn, with the run that it was, if it became one.
type runError struct {
	runID string
	text  string
	err   error
}

func (e *runError) Error() string { return e.text }

func (e *runError) Unwrap() error { return e.err }

// printJSON prints the final reply as one object: the gateway's, or just the result
// when there is no gateway.
func (t *turn) printJSON(raw json.RawMessage, final protocol.Final) error {
	var out any = raw
	switch {
	case t.local && final.Result != nil:
		var whole struct {
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(raw, &whole); err != nil {
			return err
		}
		out = whole.Result
	case t.params.Deliver && final.Result != nil && final.Result.DeliveryStatus != nil:
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &members); err != nil {
			return err
		}
		status, err := json.Marshal(final.Result.DeliveryStatus)
		if err != nil {
			return err
		}
		members["deliveryStatus"] = status
		out = members
	}
	if err := t.a.printJSON(out); err != nil {
		return err
	}
	if final.Status == protocol.StatusOK || final.Status == "" {
		return nil
	}
	return exitError(exitFailure)
}

// printJSON prints one object, indented where a person reads it.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	if a.stdoutTerminal {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// failure is what --json prints instead of a result.
type failure struct {
	OK     bool         `json:"ok"`
	Error  failureError `json:"error"`
	RunID  string       `json:"runId,omitempty"`
	Origin string       `json:"origin,omitempty"`
}

type failureError struct {
	Type    string          `json:"type"`
	Message string          `json:"message"`
	Code    string          `json:"code,omitempty"`
	Details *map[string]any `json:"details,omitempty"`
}

// jsonFailure prints an error as an object and returns the exit code that is left.
func (a *app) jsonFailure(err error) error {
	if err == nil {
		return nil
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return code
	}
	f := failure{Error: failureError{Type: "cli_error", Message: err.Error()}}
	if run, ok := errors.AsType[*runError](err); ok {
		f.RunID, f.Origin = run.runID, "gateway"
	}
	if wire, ok := errors.AsType[*protocol.Error](err); ok {
		f.Origin, f.Error.Code = "gateway", wire.Code
		if wire.Details != nil {
			f.Error.Details = &wire.Details
		}
	}
	if err := a.printJSON(f); err != nil {
		return err
	}
	return exitError(exitFailure)
}
