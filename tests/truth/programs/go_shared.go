// SPDX-License-Identifier: Apache-2.0

// A library that a program of C loads, with a goroutine that spins.
package main

import "C"

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
func started() {
	for {
		middle(100000)
	}
}

// On a thread of its own, and the scheduler does its work on others.
//
//export Begin
func Begin() {
	go started()
}

func main() {}
