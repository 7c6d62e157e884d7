package main

import "fmt"

var table [64]uint64

func mix(n, seed uint64) uint64 {
	sum := seed
	for i := uint64(1); i < 9; i++ {
		sum ^= table[(sum+n)%64] >> i
		if sum&1 == 1 {
			sum += n * table[(sum>>i)%64]
		} else {
			sum -= table[(n+i)%64]
		}
	}
	switch sum % 5 {
	case 0:
		sum = sum*3 + n
	case 1:
		sum = sum ^ (n << 3)
	case 2:
		sum = sum - n*7
	case 3:
		sum = sum + sum>>3
	}
	for i := uint64(0); i < n%3; i++ {
		sum = sum*31 + i
	}
	return sum
}

//go:noinline
func often(n uint64) uint64 {
	sum := uint64(0)
	for i := uint64(0); i < n; i++ {
		sum += mix(i, sum)
	}
	return sum
}

func main() {
	for i := range table {
		table[i] = uint64(i) * 2654435761
	}
	fmt.Println(often(8000000))
}
