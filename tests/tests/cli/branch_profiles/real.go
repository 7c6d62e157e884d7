package main

import (
	"fmt"
	"sort"
	"strings"
)

type shape interface{ area(n int) int }
type square struct{}
type line struct{}

func (square) area(n int) int { return n * n }
func (line) area(n int) int   { return n }

func main() {
	shapes := []shape{square{}, line{}}
	sums := map[string]int{}
	for i := 0; i < 400; i++ {
		sums[strings.Repeat("n", i%17)] += shapes[i%2].area(i)
	}
	list := []int{}
	for name, sum := range sums {
		list = append(list, sum^len(name))
	}
	sort.Slice(list, func(a, b int) bool { return list[a]%7 < list[b]%7 })
	fmt.Println(len(list))
}
