/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_code.c - see exit_code.h
 */
#include "tools/common/exit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shard.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

int exit_code_of_status(int shard_status)
{
	switch (shard_status) {
	case SHARD_OK:
	case SHARD_END:
		return EXIT_DONE;
	case SHARD_E_ARGUMENT:
		return EXIT_USAGE;
	case SHARD_E_CORRUPT:
		return EXIT_BAD;
	case SHARD_E_UNSUPPORTED:
		return EXIT_UNSUPPORTED;
	case SHARD_E_MISMATCH:
		return EXIT_MISMATCH;
	case SHARD_E_CANCELLED:
		return EXIT_INTERRUPTED;
	default: /* MEMORY, IO, EXISTS, DEVICE, and what a newer library may add */
		return EXIT_IO;
	}
}

int fail_of_library(const struct shard_error *err)
{
	return fail(exit_code_of_status(err->status), "%s", err->message);
}

void reserve_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/*
		 * open() gives the lowest free number, which is fd.  The wrong direction is
		 * wanted: reading stdin or writing stdout then fails instead of vanishing.
		 */
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return; /* no /dev/null: as the caller left it */
	}
}

int finish_stdout(void)
{
	int failed_before = ferror(stdout);
	int os_code;

	errno = 0;
	if (fclose(stdout) == 0 && !failed_before)
		return EXIT_DONE;
	os_code = errno;
	if (os_code == EPIPE)
		return EXIT_IO;
	if (interrupted())
		return EXIT_INTERRUPTED;
	return fail(EXIT_IO, "stdout: %s; the output is incomplete", os_code ? strerror(os_code) : "a write failed");
}
