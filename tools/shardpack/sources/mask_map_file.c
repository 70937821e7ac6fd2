/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_map_file.c - the file of map=FILE, with the classes of a mask's colours or values
 *
 * The map is a part of the recipe, so another one is another dataset, and no machine but this one
 * needs the file.
 */
#include "tools/shardpack/sources/sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/shardpack/plan/plan.h"

static int read_lines(struct mask_map *m, FILE *in, const char *file)
{
	struct line line = {.number = 0};
	char why[200];
	int code = EXIT_DONE;

	while (code == EXIT_DONE) {
		code = line_next(&line, in, file, "'R G B CLASS' or 'VALUE CLASS'");
		if (code != EXIT_DONE || line.is_end)
			break;
		if (!mask_map_add(m, line.text, line.bytes, why, sizeof(why)))
			code = fail(EXIT_BAD, "%s: line %" PRIu64 ": %s", file, line.number, why);
	}
	return code;
}

int mask_map_file_read(struct mask_map *m, const char *field, const char *path)
{
	char file[FIELD_FROM_BYTES_MAX + SHARD_NAME_BYTES + 32];
	FILE *in = fopen(path, "re");
	int code;

	snprintf(file, sizeof(file), "--field %s: map=%s", field, path);
	if (!in)
		return fail(EXIT_IO, "%s: %s", file, strerror(errno));
	code = read_lines(m, in, file);
	fclose(in);
	return code;
}
