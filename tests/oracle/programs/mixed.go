// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/json"
	"regexp"
	"sort"
	"strings"
)

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func work() int {
	sum := fibonacci(16)
	numbers := make([]int, 1000)
	for i := range numbers {
		numbers[i] = i * 7919 % 1009
	}
	sort.Slice(numbers, func(a, b int) bool { return numbers[a] < numbers[b] })
	text, _ := json.Marshal(numbers)
	words := regexp.MustCompile("[0-9]+").FindAllString(string(text), -1)
	return sum + len(strings.Join(words, " "))
}

func main() {
	results := make(chan int)
	go func() {
		for {
			results <- work()
		}
	}()
	for {
		<-results
		work()
	}
}
