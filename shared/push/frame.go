package push

import "time"

// PostTimeout bounds one post on every adapter. A client that does not take a
// message in this time is treated as one that can't: the caller backs off.
const PostTimeout = 3 * time.Second

// Units is how many messages API Gateway bills for n bytes: one for every 32 KB
// begun.
func Units(n int) float64 {
	const unit = 32 << 10
	return float64(max(1, (n+unit-1)/unit))
}
