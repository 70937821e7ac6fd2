/* SPDX-License-Identifier: Apache-2.0 */
/*
 * free_space.c - how much may still be written to a file system, and whether what a file unpacks to
 * fits
 */
#include "tools/shardpack/input/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "tools/common/files.h"
#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"

/*
 * A file system without a size of its own, such as a tmpfs without a limit, has no blocks to count.
 */
static uint64_t free_of(const struct statvfs *st)
{
	return st->f_blocks ? (uint64_t)st->f_bavail * st->f_frsize : UINT64_MAX;
}

int free_space(const char *dir, uint64_t *free_bytes)
{
	char *nearest = xstrdup(dir); /* a folder that is not there yet will be made in that */
	struct statvfs st;
	bool found = files_nearest(nearest) && statvfs(nearest, &st) == 0;

	free(nearest);
	if (!found)
		return fail(EXIT_IO, "%s: cannot read the free space of this disk: %s", dir, strerror(errno));
	*free_bytes = free_of(&st);
	return EXIT_DONE;
}

/* Where the system cannot tell, writing fails when the disk is full. */
bool free_space_fits(int fd, uint64_t bytes)
{
	struct statvfs st;

	return fstatvfs(fd, &st) != 0 || bytes <= free_of(&st);
}

int free_space_check_spool(int fd, const char *name, uint64_t needed_bytes, const char *spool_dir)
{
	char need[HUMAN_CHARS], have[HUMAN_CHARS];
	struct statvfs st;

	if (free_space_fits(fd, needed_bytes) || fstatvfs(fd, &st) != 0)
		return EXIT_DONE;
	return fail(EXIT_IO,
		    "%s: unpacked it needs %s (%" PRIu64 " bytes) or more, and the disk of %s has %s free; "
		    "choose another folder with --spool DIR",
		    name, human_bytes(need, needed_bytes), needed_bytes, spool_dir, human_bytes(have, free_of(&st)));
}
