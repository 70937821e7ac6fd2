/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_file.c - a file of the source: opened by offset, or only looked at
 */
#include "tools/shardpack/scan/scan.h"

#include <sys/stat.h>

#include "tools/common/exit_code.h"
#include "tools/shardpack/images/file_name.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/scan/request.h"

/* By the name, not by the first bytes: tokens and raw records may begin with any. */
static const char *packed_how(const char *path)
{
	static const char *const ends[][2] = {{".gz", "gzip"},	 {".tgz", "gzip"},   {".zst", "zstd"},
					      {".bz2", "bzip2"}, {".tbz2", "bzip2"}, {".tbz", "bzip2"},
					      {".xz", "xz"},	 {".txz", "xz"}};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (file_name_has_extension(path, ends[i][0]))
			return ends[i][1];
	return NULL;
}

int input_file_open(const struct request *r, const char *path, uint32_t *file)
{
	const char *how = packed_how(path);
	int code = stored_add(r->stored, r->plan, path, file);

	return code == EXIT_DONE && how ? stored_unpack(r->stored, r->plan, *file, how, 0, file) : code;
}

uint64_t input_file_bytes(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
}
