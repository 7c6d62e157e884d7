/*
 * A function that is too large to be inlined, called from a loop that runs often and from one that
 * does not.
 */
static unsigned long table[64];

__attribute__((noinline)) static void fill(void)
{
	for (unsigned long i = 0; i < 64; i++)
		table[i] = i * 2654435761u;
}

static unsigned long mix(unsigned long n, unsigned long seed)
{
	unsigned long sum = seed;

#define ROUND(shift) \
	sum ^= table[(sum + n) % 64] >> shift; \
	if (sum & 1) \
		sum += n * table[(sum >> shift) % 64]; \
	else \
		sum -= table[(n + shift) % 64];
	ROUND(1) ROUND(2) ROUND(3) ROUND(4) ROUND(5) ROUND(6) ROUND(7) ROUND(8)
	ROUND(9) ROUND(10) ROUND(11) ROUND(12)
	return sum;
}

__attribute__((noinline)) unsigned long often(unsigned long n)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < n; i++)
		sum += mix(i, sum);
	return sum;
}

__attribute__((noinline)) unsigned long seldom(unsigned long n)
{
	return n > 1000 ? mix(n, n) : n;
}

static long call(long number, long argument)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(argument) : "rcx", "r11", "memory");
	return result;
}

void _start(void)
{
	__asm__ volatile("and $-16, %rsp");
	fill();
	call(60, (often(300) + seldom(3)) & 127);
}
