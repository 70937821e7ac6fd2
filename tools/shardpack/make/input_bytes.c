/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_bytes.c - the bytes of an input, exactly those that were planned
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tools/common/files.h"
#include "tools/shardpack/images/image.h"
#include "tools/shardpack/images/images.h"
#include "tools/shardpack/input/source_times.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/plan.h"

static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode)	? "a FIFO"
	       : S_ISCHR(mode)	? "a character device"
	       : S_ISBLK(mode)	? "a block device"
	       : S_ISSOCK(mode) ? "a socket"
				: "a folder";
}

/*
 * Exactly `bytes`, and then the end of the file.  False with errno, which is 0 at another length.
 */
static bool read_whole(int fd, uint8_t *out, size_t bytes)
{
	size_t at = 0;
	uint8_t more;
	ssize_t n;

	do {
		n = at < bytes ? read(fd, out + at, bytes - at) : read(fd, &more, 1);
		if (n > 0)
			at += (size_t)n;
	} while ((n > 0 && at <= bytes) || (n < 0 && errno == EINTR));
	if (n < 0)
		return false;
	errno = 0;
	return at == bytes;
}

/* Read an open file that had `before` for its stat. */
static bool read_open(const struct input_bytes *in, int fd, const struct stat *before, struct scratch *to,
		      struct verdict *v)
{
	uint64_t bytes = (uint64_t)before->st_size;
	char then[SOURCE_TIME_CHARS], now[SOURCE_TIME_CHARS];
	struct stat after;

	if (bytes != in->bytes)
		return verdict_set(v, OUTCOME_CHANGED, 0,
				   "changed since the plan was made: %" PRIu64 " bytes then, %" PRIu64 " now",
				   in->bytes, bytes);
	if (in->time_ns != SOURCE_NO_TIME && in->time_ns != files_ns(&before->st_mtim))
		return verdict_set(v, OUTCOME_CHANGED, 0, "changed since the plan was made: written %s then, %s now",
				   source_time_text(in->time_ns, then),
				   source_time_text(files_ns(&before->st_mtim), now));
	if (bytes > INPUT_BYTES_MAX) {
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_LIMIT,
				   "a file of %" PRIu64 " bytes; the limit is %" PRIu64, bytes, INPUT_BYTES_MAX);
	}
	if (!scratch_reserve(to, bytes))
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory for a file of %" PRIu64 " bytes", bytes);
	if (!read_whole(fd, to->data, bytes) || fstat(fd, &after) != 0)
		return errno ? verdict_set(v, OUTCOME_FAILED, 0, "%s", strerror(errno))
			     : verdict_set(v, OUTCOME_CHANGED, 0, "changed while it was read");
	if (after.st_size != before->st_size || files_ns(&after.st_mtim) != files_ns(&before->st_mtim))
		return verdict_set(v, OUTCOME_CHANGED, 0, "changed while it was read");
	return true;
}

/*
 * Why a file cannot be read.  One that is gone was removed, if its folder is still there.  If that
 * is gone, too, a disk may be missing, and that says nothing about the file.
 */
static bool cannot_read(const struct input_bytes *in, int source_fd, struct verdict *v)
{
	char folder[3 * PLAN_PATH_BYTES_MAX + 2];
	size_t bytes = files_folder_bytes(in->path);
	enum outcome outcome = OUTCOME_FAILED;
	int error = errno;
	struct stat st;

	if (error == ENOENT && bytes < sizeof(folder) - 2) {
		snprintf(folder, sizeof(folder), "./%.*s", (int)bytes, in->path);
		outcome = fstatat(source_fd, folder, &st, 0) == 0 ? OUTCOME_VANISHED : OUTCOME_FAILED;
	}
	return verdict_set(v, outcome, 0, "%s", strerror(error));
}

/* A file of its own. */
static bool read_file(const struct input_bytes *in, int source_fd, struct scratch *to, struct verdict *v)
{
	struct stat st;
	bool ok;
	int fd;

	/* First look, then open: to open a FIFO waits, and to open a device may do something. */
	if (fstatat(source_fd, in->path, &st, 0) != 0)
		return cannot_read(in, source_fd, v);
	if (!S_ISREG(st.st_mode))
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_NOT_AN_IMAGE, "%s, not a file", kind_of(st.st_mode));
	fd = openat(source_fd, in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		cannot_read(in, source_fd, v);
		if (fd >= 0)
			close(fd);
		return false;
	}
	ok = read_open(in, fd, &st, to, v);
	close(fd); /* nothing was written: its result says nothing */
	return ok;
}

/* A part of a file of the plan. */
static bool read_part(const struct input_bytes *in, const struct stored *stored, struct scratch *to, struct verdict *v)
{
	uint64_t bytes = in->bytes;

	if (bytes > INPUT_BYTES_MAX) {
		return verdict_set(v, OUTCOME_BAD, SHARD_MISS_LIMIT, "has %" PRIu64 " bytes; the limit is %" PRIu64,
				   bytes, INPUT_BYTES_MAX);
	}
	if (!scratch_reserve(to, bytes))
		return verdict_set(v, OUTCOME_STOP, 0, "out of memory for %" PRIu64 " bytes", bytes);
	if (stored_read(stored, in->file, in->offset, to->data, bytes, v->message, sizeof(v->message)))
		return true;
	v->outcome = OUTCOME_FAILED;
	return false;
}

bool input_bytes_read(const struct input_bytes *in, int source_fd, const struct stored *stored, struct scratch *to,
		      struct verdict *v)
{
	return in->file == PLAN_NO_FILE ? read_file(in, source_fd, to, v) : read_part(in, stored, to, v);
}

bool input_bytes_same_build(const struct plan *p, const uint8_t *bytes, size_t size, struct verdict *v)
{
	const struct image_format *f = p->decoders ? image_format_in(bytes, size, NULL) : NULL;
	char there[IMAGE_LIBRARY_CHARS], here[IMAGE_LIBRARY_CHARS];

	if (!f || !f->plan_name || image_format_is_same(f, p->decoders, there, here))
		return true;
	return verdict_set(
		v, OUTCOME_OTHER, 0,
		"is %s %s by its content, for which this shardpack has the library '%s', and the one that made "
		"the plan has '%s'; let all processes that pack this plan run the same build",
		image_format_article(f), f->name, here, there);
}
