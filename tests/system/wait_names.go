// SPDX-License-Identifier: Apache-2.0

// Waits in functions of known names, and measures that by the clock: waits_go SECONDS. Prints "FUNCTION wait_ns" of each,
// less its CPU time, and "wall_ns" of them all together.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const nap = 20 * time.Millisecond

const rusageThread = 1

var start = time.Now()

// The time that passes and is not the thread's own.
func idle() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &usage); err != nil {
		panic(err)
	}
	return time.Since(start) - time.Duration(usage.Utime.Nano()+usage.Stime.Nano())
}

// What one goroutine has waited.
type measured map[string]time.Duration

func (m measured) add(name string, since time.Duration) {
	m[name] += idle() - since
}

//go:noinline
func waitInSleep(m measured) {
	begin := idle()
	length := syscall.NsecToTimespec(int64(nap))
	_ = syscall.Nanosleep(&length, nil)
	m.add("main.waitInSleep", begin)
}

// The pipe blocks: one of os.Pipe would be waited for by the runtime.
//
//go:noinline
func waitInPipe(m measured, fd int) bool {
	var bytes [1]byte
	begin := idle()
	n, _ := syscall.Read(fd, bytes[:])
	m.add("main.waitInPipe", begin)
	return n == 1
}

//go:noinline
func waitForLock(m measured, fd int) {
	begin := idle()
	_ = syscall.Flock(fd, syscall.LOCK_EX)
	m.add("main.waitForLock", begin)
}

// A goroutine that waits has no thread, so no thread waits in this function.
//
//go:noinline
func waitInRuntime(m measured, channel chan bool) {
	begin := time.Now()
	time.Sleep(nap)
	<-channel
	m["main.waitInRuntime"] += time.Since(begin)
}

func runPipe(deadline time.Time, reader, writer measured) {
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		panic(err)
	}
	go func() {
		runtime.LockOSThread()
		for time.Now().Before(deadline) {
			waitInSleep(writer)
			_, _ = syscall.Write(fds[1], []byte{'x'})
		}
		_ = syscall.Close(fds[1])
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for waitInPipe(reader, fds[0]) {
	}
}

// Each opens the file itself: a lock is between two openings.
func runLock(deadline time.Time, path string, all []measured) {
	var group sync.WaitGroup
	for _, own := range all {
		group.Add(1)
		go func(own measured) {
			runtime.LockOSThread()
			file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				panic(err)
			}
			for time.Now().Before(deadline) {
				waitForLock(own, int(file.Fd()))
				waitInSleep(own)
				waitInSleep(own)
				_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
				waitInSleep(own) // the other has its turn
			}
			_ = file.Close()
			group.Done()
		}(own)
	}
	group.Wait()
}

func runRuntime(deadline time.Time, own measured) {
	channel := make(chan bool)
	go func() {
		for time.Now().Before(deadline) {
			time.Sleep(2 * nap)
			channel <- true
		}
		close(channel)
	}()
	for time.Now().Before(deadline) {
		waitInRuntime(own, channel)
	}
}

func main() {
	runtime.GOMAXPROCS(8) // what comes back from the kernel waits for nothing more
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	part := time.Duration(seconds / 3 * float64(time.Second))
	all := []measured{{}, {}}
	begin := time.Now()
	runPipe(time.Now().Add(part), all[0], all[1])
	runLock(time.Now().Add(part), os.Args[0]+".lock", all)
	runRuntime(time.Now().Add(part), all[0])
	wall := time.Since(begin)
	for _, own := range all {
		for name, length := range own {
			fmt.Println(name, length.Nanoseconds())
		}
	}
	fmt.Println("wall_ns", wall.Nanoseconds())
}
