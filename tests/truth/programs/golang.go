// SPDX-License-Identifier: Apache-2.0

// Goroutines: one that spins below main, one below a function that was started with go.
package main

import (
	"runtime"
	"syscall"
	"unsafe"
)

// Set by the linker.
var process = "t.golang"

//go:noinline
func leaf(count uint64) uint64 {
	value := uint64(1)
	for i := uint64(0); i < count; i++ {
		value = value*6364136223846793005 + 1442695040888963407
	}
	return value
}

//go:noinline
func middle(count uint64) uint64 {
	var room [40]uint64
	room[count%40] = leaf(count)
	return room[(count+1)%40] + room[count%40]
}

//go:noinline
func outer(count uint64) uint64 {
	return middle(count) + 1
}

//go:noinline
func started(done chan uint64) {
	for {
		done <- middle(100000)
	}
}

// On the first thread: the process's name is that thread's.
func init() {
	runtime.LockOSThread()
	name := []byte(process + "\x00")
	syscall.RawSyscall(syscall.SYS_PRCTL, 15, uintptr(unsafe.Pointer(&name[0])), 0)
}

func main() {
	done := make(chan uint64)
	go started(done)
	for {
		outer(100000)
		<-done
	}
}
