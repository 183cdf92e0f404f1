package main

import (
	"strconv"
	"time"
)

// A step is not begun with less left than this of an invocation: the defaults of the
// loop, or less where the function is not given much more than they are.
func stepNeed(limit time.Duration) time.Duration { return min(30*time.Second, limit/10) }

// reserve is what the last writes of an invocation are given.
func reserve(limit time.Duration) time.Duration { return min(5*time.Second, limit/8) }

// memoryMB is what the platform says that this function was given, which its time is
// billed by; 0 where it does not say.
func memoryMB(s string) int {
	n, _ := strconv.Atoi(s)
	return max(n, 0)
}
