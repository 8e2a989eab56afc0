// SPDX-License-Identifier: Apache-2.0
package main

import "time"

// The runtime calls the vDSO on the thread's system stack.
func work(start time.Time) time.Duration {
	var sum time.Duration
	for i := 0; i < 1000; i++ {
		sum += time.Since(start) + time.Duration(time.Now().Nanosecond())
	}
	return sum
}

func main() {
	results := make(chan time.Duration)
	go func() {
		for {
			results <- work(time.Now())
		}
	}()
	for {
		<-results
		work(time.Now())
	}
}
