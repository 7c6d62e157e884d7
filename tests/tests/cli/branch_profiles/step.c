/*
 * Runs a program one instruction at a time, up to a number of instructions. Writes the address of
 * each one as a 64-bit number to OUTPUT, and the mappings of the process at the end to OUTPUT.maps.
 *
 *   step OUTPUT NUMBER PROGRAM
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void copy_maps(pid_t pid, const char *output)
{
	char name[4096], line[4096];
	FILE *in, *out;

	snprintf(name, sizeof name, "/proc/%d/maps", pid);
	in = fopen(name, "r");
	snprintf(name, sizeof name, "%s.maps", output);
	out = fopen(name, "w");
	while (in && out && fgets(line, sizeof line, in))
		fputs(line, out);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
}

int main(int argc, char **argv)
{
	struct user_regs_struct regs;
	int status, sent;
	long left;
	pid_t pid;
	FILE *out;

	if (argc < 4)
		return 2;
	left = atol(argv[2]);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[3], argv + 3);
		_exit(127);
	}
	out = fopen(argv[1], "wb");
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT);
	while (out && WIFSTOPPED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
			copy_maps(pid, argv[1]);
		} else if (left-- <= 0) {
			copy_maps(pid, argv[1]);
			kill(pid, SIGKILL);
			break;
		}
		if (!ptrace(PTRACE_GETREGS, pid, 0, &regs))
			fwrite(&regs.rip, sizeof regs.rip, 1, out);
		sent = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, sent))
			break;
		waitpid(pid, &status, 0);
	}
	return out ? fclose(out) : 1;
}
