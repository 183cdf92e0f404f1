package loop

import "errors"

var (
	errLoop        = errors.New("tool loop")
	errStepTooLong = errors.New("step too long")
)

// What users read when a run did not end with an answer.
const (
	textNoAnswer     = "⚠️ The model gave no answer. Please try again."
	textTruncated    = "⚠️ The answer reached the model's output limit and is partial. Ask to continue it."
	textTimedOut     = "⚠️ The run reached its time limit before it was finished."
	textStalled      = "⚠️ This run was ended because it made no progress in several attempts."
	textStuck        = "⚠️ This turn was interrupted because it stopped making progress. Please try again."
	textLoopEnded    = "⚠️ The run was ended: the model kept repeating one tool call with the same result."
	textTooManySteps = "⚠️ The run was ended because it took too many steps."
	textFailed       = "⚠️ The run failed because of an internal error."
	textStepTooLong  = "⚠️ A single step of this run took longer than a function may run."
)
