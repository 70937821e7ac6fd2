/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_no_uring.c - runs a command without io_uring: prog_no_uring ERRNO COMMAND...
 *
 * Exits 77 where there are no seccomp filters.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/refuse_uring.h"

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!refuse_uring(atoi(argv[1])))
		return 77;
	execvp(argv[2], argv + 2);
	return 127;
}
