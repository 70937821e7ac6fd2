/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - bytes to a file that is complete or absent, or to stdout
 */
#include "tools/shardcat/output.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/special.h"
#include "tools/shardcat/dataset/target.h"

static int write_stdout(const void *data, size_t bytes)
{
	if (isatty(STDOUT_FILENO))
		return fail(EXIT_USAGE,
			    "stdout is a terminal and the data is binary; name a file with --out FILE, or pipe it");
	fwrite(data, 1, bytes, stdout); /* an error stays in the stream, and main reports it */
	return EXIT_DONE;
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
	if (special_is(path))
		return special_write(path, data, bytes);
	rc = shard_publish(path, data, bytes, 1, &err);
	return rc ? fail_with(rc, &err) : EXIT_DONE;
}
