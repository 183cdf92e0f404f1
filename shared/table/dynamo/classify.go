package dynamo

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"laneway/shared/table"
)

// outcome is what an error of the client says about a write.
type outcome struct {
	// err is a sentinel of package table with its cause; ErrUnknown: the answer was
	// lost. A failed condition is not in it but in failed.
	err error
	// failed are the ops whose conditions failed, with what was found.
	failed []failedOp
	// unsent means that the request never left: nothing can have been written.
	unsent bool
}

type failedOp struct {
	op    int
	found map[string]types.AttributeValue
}

// classify turns an error of the client into an outcome, by these rules, the first that
// applies:
//
//  1. A cancelled transaction is what its reasons are, in this order: a failed
//     condition (however many others conflicted); too large; invalid; a conflict; a
//     throttle. A reason that is not known is invalid: nobody is to repeat it blindly.
//  2. ConditionalCheckFailedException: the condition of the only op failed.
//  3. TransactionConflict, TransactionInProgress, ReplicatedWriteConflict: ErrConflict.
//  4. Throughput and request limits, by their codes: ErrThrottled.
//  5. A collection, item or request that is too large, by code or, in a
//     ValidationException, by the words it has for size: ErrTooLarge.
//  6. HTTP 5xx: the answer is lost, the write may be done: ErrUnknown.
//  7. Any other answer (validation, token mismatch, no such table, access): ErrInvalid.
//  8. A request that the client itself refuses to send: ErrInvalid.
//  9. No answer: ErrUnknown, but where no connection was made or the request never
//     got as far as that (no credentials): unsent, ErrThrottled.
func classify(err error) outcome {
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return classifyReasons(cancelled)
	}
	if check, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return outcome{err: table.ErrCondition, failed: []failedOp{{found: check.Item}}}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return outcome{err: fmt.Errorf("%w: %w", classifyCode(err, api), err)}
	}
	if is[smithy.InvalidParamsError](err) || is[*smithy.SerializationError](err) {
		return outcome{err: fmt.Errorf("%w: %w", table.ErrInvalid, err)}
	}
	if sent(err) {
		return outcome{err: fmt.Errorf("%w: %w", table.ErrUnknown, err)}
	}
	return outcome{err: fmt.Errorf("%w: not reached: %w", table.ErrThrottled, err), unsent: true}
}

func classifyReasons(c *types.TransactionCanceledException) outcome {
	var out outcome
	worst := len(severity)
	for i, r := range c.CancellationReasons {
		code := ""
		if r.Code != nil {
			code = *r.Code
		}
		switch code {
		case "", "None":
			continue
		case "ConditionalCheckFailed":
			out.failed = append(out.failed, failedOp{op: i, found: r.Item})
			continue
		}
		class := reasonClass(code, r.Message)
		if rank := slices.Index(severity, class); rank < worst {
			worst = rank
			out.err = fmt.Errorf("%w: op %d: %w", class, i, c)
		}
	}
	if len(out.failed) > 0 {
		out.err = table.ErrCondition
	}
	if out.err == nil {
		out.err = fmt.Errorf("%w: %w", table.ErrInvalid, c)
	}
	return out
}

// severity orders the classes of rule 1 behind a failed condition.
var severity = []error{table.ErrTooLarge, table.ErrInvalid, table.ErrConflict, table.ErrThrottled}

func reasonClass(code string, message *string) error {
	switch code {
	case "TransactionConflict":
		return table.ErrConflict
	case "ThrottlingError", "ProvisionedThroughputExceeded":
		return table.ErrThrottled
	case "ItemCollectionSizeLimitExceeded":
		return table.ErrTooLarge
	case "ValidationError":
		if message != nil && speaksOfSize(*message) {
			return table.ErrTooLarge
		}
	}
	return table.ErrInvalid
}

func classifyCode(err error, api smithy.APIError) error {
	switch api.ErrorCode() {
	case "TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException":
		return table.ErrConflict
	case "ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "Throttling", "TooManyRequestsException":
		return table.ErrThrottled
	case "ItemCollectionSizeLimitExceededException", "RequestEntityTooLargeException":
		return table.ErrTooLarge
	case "ValidationException":
		if speaksOfSize(api.ErrorMessage()) {
			return table.ErrTooLarge
		}
	case "InternalServerError", "ServiceUnavailable":
		return table.ErrUnknown
	}
	switch status := httpStatus(err); {
	case status == 413:
		return table.ErrTooLarge
	case status >= 500:
		return table.ErrUnknown
	}
	return table.ErrInvalid
}

// speaksOfSize: "Item size has exceeded the maximum allowed size", "Item size to update
// has exceeded ...", "Transaction request exceeds the 4MB transaction size limit".
func speaksOfSize(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "exceed") && strings.Contains(m, "size")
}

func httpStatus(err error) int {
	if r, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}

// sent is false only where it is sure that no byte of the request was read by anybody.
func sent(err error) bool {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" || is[*net.DNSError](err) {
		return false
	}
	return is[*smithyhttp.RequestSendError](err) || is[*smithy.DeserializationError](err) || httpStatus(err) != 0 || isContext(err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
