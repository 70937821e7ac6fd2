/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - bytes to a file that is complete or absent, or to stdout
 */
#include "tools/shardcat/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardcat/target.h"

static int write_stdout(const void *data, size_t bytes)
{
	if (isatty(STDOUT_FILENO))
		return fail(EXIT_USAGE,
			    "stdout is a terminal and the data is binary; name a file with --out FILE, or pipe it");
	fwrite(data, 1, bytes, stdout); /* an error stays in the stream, and main reports it */
	return EXIT_DONE;
}

/* /dev/null, a pipe: there is nothing to rename, and replacing it would be a disaster. */
static int write_special(const char *path, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");
	bool complete;
	int os_code;

	if (!file)
		return fail(EXIT_IO, "%s: %s", path, strerror(errno));
	errno = 0;
	complete = fwrite(data, 1, bytes, file) == bytes;
	os_code = errno;
	if (fclose(file) && complete) {
		complete = false;
		os_code = errno;
	}
	return complete ? EXIT_DONE : fail(EXIT_IO, "%s: %s", path, strerror(os_code ? os_code : EIO));
}

int output_binary(const char *path, const void *data, size_t bytes)
{
	struct shard_error err;
	struct stat st;
	int rc;

	if (!path || strcmp(path, "-") == 0)
		return write_stdout(data, bytes);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return fail(EXIT_IO, "%s: is a folder; --out names a file", path);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return write_special(path, data, bytes);
	rc = shard_publish(path, data, bytes, 1, &err);
	return rc ? fail_with(rc, &err) : EXIT_DONE;
}
