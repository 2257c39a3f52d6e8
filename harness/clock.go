package harness

import "time"

// Clock tells the time of observations. Wall is nanoseconds since 1970; Mono
// is nanoseconds on a clock that never jumps, from any origin.
type Clock struct {
	Wall func() int64
	Mono func() int64
}

// SystemClock is the clock of the machine; Mono counts from now.
func SystemClock() Clock {
	start := time.Now()
	return Clock{
		Wall: func() int64 { return time.Now().UnixNano() },
		Mono: func() int64 { return int64(time.Since(start)) },
	}
}
