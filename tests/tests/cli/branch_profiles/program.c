/*
 * Branches of every kind, in a program without the C library: conditional ones, loops, calls and
 * jumps through tables, recursion, system calls. With SHARED, a part is in a library.
 */
unsigned long work(unsigned long n);
unsigned long collatz(unsigned long n);

#ifndef PROGRAM
__attribute__((noinline)) unsigned long collatz(unsigned long n)
{
	unsigned long steps = 0;

	while (n > 1) {
		n = n & 1 ? 3 * n + 1 : n / 2;
		steps++;
	}
	return steps;
}

__attribute__((noinline)) static unsigned long twice(unsigned long n)
{
	return collatz(n) + collatz(n + 1);
}

__attribute__((noinline)) static unsigned long down(unsigned long n)
{
	return n < 2 ? n : down(n - 1) + down(n - 2);
}

static unsigned long (*volatile const table[])(unsigned long) = { collatz, twice, down };

/* Half of its code is after its end, and has no symbol. */
unsigned long outside(unsigned long n);
__asm__(".text\n"
	".globl outside\n"
	".hidden outside\n"
	".type outside, @function\n"
	"outside: mov %rdi, %rax\n"
	"	jmp 1f\n"
	"	.size outside, . - outside\n"
	"	.balign 16\n"
	"1:	test $1, %al\n"
	"	jne 2f\n"
	"	inc %rax\n"
	"2:	ret\n");

unsigned long work(unsigned long n)
{
	unsigned long sum = outside(n);

	for (unsigned long i = 0; i < 3; i++)
		sum += table[(n + i) % 3](n % 7);
	switch (n % 6) {
	case 0: return sum;
	case 1: return sum * 3;
	case 2: return sum ^ 5;
	case 3: return sum + down(3);
	case 4: return ~sum;
	default: return sum >> 1;
	}
}
#endif

#ifndef LIBRARY
static long call(long number, long argument)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(argument) : "rcx", "r11", "memory");
	return result;
}

void _start(void)
{
	unsigned long sum = 0;

	__asm__ volatile("and $-16, %rsp");
	for (unsigned long i = 0; i < 120; i++) {
		sum += work(i);
		if (i % 8 == 0)
			sum += collatz(i) + (call(39, 0) < 0);
	}
	call(60, sum & 1);
}
#endif
