package sqs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"laneway/shared/queue"
)

// classify makes an error of the SDK one of the port's, by these rules:
//
//   - the service asks for patience (OverLimit, anything with "Throttl", 429):
//     ErrThrottled;
//   - it will never take the message (a code that says that its contents, length
//     or a parameter is invalid): ErrInvalid;
//   - everything else, a missing queue, a missing grant and an ended context
//     too, keeps its cause.
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("%w: %s: %w", kind, what, err)
	}
	return fmt.Errorf("queue/sqs: %s: %w", what, err)
}

func kindOf(err error) error {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		// Codes come with and without the service's name before them.
		code := e.ErrorCode()
		code = code[strings.LastIndexByte(code, '.')+1:]
		switch {
		case code == "OverLimit" || strings.Contains(code, "Throttl"):
			return queue.ErrThrottled
		case code == "InvalidMessageContents", code == "InvalidParameterValue", code == "MissingParameter",
			code == "InvalidAttributeValue", code == "BatchRequestTooLong", code == "MessageTooLong":
			return queue.ErrInvalid
		}
	}
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && e.HTTPStatusCode() == http.StatusTooManyRequests {
		return queue.ErrThrottled
	}
	return nil
}

// isLost says whether a message is not ours any more: its visibility ran out, or
// it is deleted.
func isLost(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	code := e.ErrorCode()
	switch code[strings.LastIndexByte(code, '.')+1:] {
	case "MessageNotInflight", "ReceiptHandleIsInvalid", "InvalidParameterValue":
		return true
	}
	return false
}
