/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special.c - see special.h
 */
#include "tools/common/special.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

bool special_is(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Wait for a FIFO's reader until interrupted. */
static int open_patiently(const char *path)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int fd;

	while ((fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0 && errno == ENXIO && !interrupted())
		nanosleep(&pause, NULL);
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int special_write(const char *path, const void *data, size_t bytes)
{
	const char *at = data;
	int fd = open_patiently(path), code = EXIT_DONE;

	if (fd < 0)
		return interrupted() ? EXIT_INTERRUPTED : fail(EXIT_IO, "%s: %s", path, strerror(errno));
	while (code == EXIT_DONE && bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else if (n < 0 && errno == EINTR) {
			code = interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
		} else {
			code = fail(EXIT_IO, "%s: %s", path, strerror(n ? errno : EIO));
		}
	}
	if (close(fd) != 0 && code == EXIT_DONE)
		code = fail(EXIT_IO, "%s: %s", path, strerror(errno));
	return code;
}
