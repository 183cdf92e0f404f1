package s3

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"laneway/shared/blob"
)

// classify makes an error of the SDK one of the port's, by these rules:
//
//   - the object is not there (by code, or a bare 404): ErrNotFound. A bucket that
//     is not there is a wrong setting and stays as it is;
//   - the precondition failed (412): ErrExists, since "absent" is the only one set;
//   - the object or the request is too large (413 or code): ErrTooLarge;
//   - the key is refused (code): ErrInvalid;
//   - everything else, an ended context too, keeps its cause.
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	kind := error(nil)
	switch code(err) {
	case "NoSuchBucket":
	case "NoSuchKey", "NotFound":
		kind = blob.ErrNotFound
	case "PreconditionFailed":
		kind = blob.ErrExists
	case "EntityTooLarge", "MaxMessageLengthExceeded":
		kind = blob.ErrTooLarge
	case "KeyTooLongError", "InvalidURI":
		kind = blob.ErrInvalid
	default:
		switch status(err) {
		case http.StatusNotFound:
			kind = blob.ErrNotFound
		case http.StatusPreconditionFailed:
			kind = blob.ErrExists
		case http.StatusRequestEntityTooLarge:
			kind = blob.ErrTooLarge
		}
	}
	if kind != nil {
		return fmt.Errorf("%w: %s: %w", kind, what, err)
	}
	return fmt.Errorf("blob/s3: %s: %w", what, err)
}

// isConflict says whether S3 refused a conditional write because of another one
// that was not decided yet.
func isConflict(err error) bool {
	return code(err) == "ConditionalRequestConflict" || err != nil && status(err) == http.StatusConflict
}

func code(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

func status(err error) int {
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return e.HTTPStatusCode()
	}
	return 0
}
