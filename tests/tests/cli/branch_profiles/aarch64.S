/* Functions in 1 MiB of code, to which random branches lead. The code before the first one has none. */
	.altmacro
	.macro function number
	.globl f\number
	.type f\number, %function
f\number:
	.rept 255
	nop
	.endr
	ret
	.size f\number, . - f\number
	.endm

	.text
	.globl _start
	.type _start, %function
_start:
	ret
	.size _start, . - _start
	.balign 1024
	.set n, 0
	.rept 1023
	function %n
	.set n, n + 1
	.endr
