package loop

import (
	"errors"

	"laneway/shared/reply"
)

var (
	errLoop        = errors.New("tool loop")
	errStepTooLong = errors.New("step too long")
	errBreaker     = errors.New("the model was silent too often in a row")
	// errTooManyFailures ends a run that failed too often in all, whatever the models.
	errTooManyFailures = errors.New("too many failed model calls")
)

// What users read when a run did not end with an answer.
const (
	textNoAnswer     = reply.TextIncomplete
	textTimedOut     = "⚠️ The run reached its time limit before it was finished."
	textStalled      = "⚠️ This run was ended because it made no progress in several attempts."
	textStuck        = "⚠️ This turn was interrupted because it stopped making progress. Please try again."
	textLoopEnded    = "⚠️ The run was ended: the model kept repeating one tool call with the same result."
	textTooManySteps = "⚠️ The run was ended because it took too many steps."
	textIdleBreaker  = "⚠️ The run was ended because the model gave no answer five times in a row."
	// The sheet's own words: clients look for them.
	textTooManyFailures = "Request failed after repeated internal retries. Please try again, or use /new to start a fresh session."
	textFailed          = "⚠️ The run failed because of an internal error."
	textStepTooLong     = "⚠️ A single step of this run took longer than a function may run."
)
