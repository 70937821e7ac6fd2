/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_file.c - what --out of several verbs writes
 */
#include "tools/shardcat/shardcat.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard.h"
#include "shard_pack.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/shardcat/dataset/cat_dataset.h"

static int write_file(const char *path, const void *data, size_t bytes)
{
	struct shard_error err;
	struct stat st;
	int rc;

	if (!path || !strcmp(path, "-")) {
		if (isatty(STDOUT_FILENO))
			return fail(EXIT_USAGE, "stdout is a terminal and the data is binary; name a file with --out "
						"FILE, or pipe it");
		fwrite(data, 1, bytes, stdout); /* an error stays in the stream, and main reports it */
		return EXIT_DONE;
	}
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return fail(EXIT_IO, "%s: is a folder; --out must name a file", path);
	if (files_is_device_or_pipe(path))
		return files_write_in_place(path, data, bytes);
	rc = shard_publish(path, data, bytes, 1, &err);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

int out_file_close(struct memory_file *f, const char *path, int rc)
{
	memory_file_close(f);
	if (!rc)
		rc = write_file(path, f->data, f->bytes);
	free(f->data);
	return rc;
}
