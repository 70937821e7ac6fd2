/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_bytes.c - the bytes of an input, exactly those that were planned
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/shardpack/build/convert_private.h"
#include "tools/shardpack/input/stored.h"

static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode)	? "a FIFO"
	       : S_ISCHR(mode)	? "a character device"
	       : S_ISBLK(mode)	? "a block device"
	       : S_ISSOCK(mode) ? "a socket"
				: "a folder";
}

/* Exactly `bytes` from the file and then its end; false with errno, or 0 if it has another length. */
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
static bool read_open(struct result *r, const struct input_bytes *in, int fd, const struct stat *before, struct scratch *to)
{
	uint64_t bytes = (uint64_t)before->st_size;
	struct stat after;

	if (bytes != in->bytes) {
		convert_set(r, OUTCOME_FAILED, 0, "changed since the plan was made: %" PRIu64 " bytes then, %" PRIu64 " now",
		    in->bytes, bytes);
		return false;
	}
	if (bytes > INPUT_BYTES_MAX) {
		convert_set(r, OUTCOME_BAD, SHARD_MISS_LIMIT, "a file of %" PRIu64 " bytes; the limit is %" PRIu64, bytes,
		    INPUT_BYTES_MAX);
		return false;
	}
	if (!scratch_reserve(to, bytes)) {
		convert_set(r, OUTCOME_STOP, 0, "out of memory for a file of %" PRIu64 " bytes", bytes);
		return false;
	}
	if (!read_whole(fd, to->data, bytes) || fstat(fd, &after) != 0) {
		convert_set(r, OUTCOME_FAILED, 0, "%s", errno ? strerror(errno) : "changed while it was read");
		return false;
	}
	if (after.st_size != before->st_size || after.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	    after.st_mtim.tv_nsec != before->st_mtim.tv_nsec) {
		convert_set(r, OUTCOME_FAILED, 0, "changed while it was read");
		return false;
	}
	return true;
}

/* A file of its own. */
static bool read_file(const struct converter *c, struct result *r, const struct input_bytes *in, struct scratch *to)
{
	struct stat st;
	bool ok;
	int fd;

	/* Looked at before it is opened: opening a FIFO waits, and opening a device may do something. */
	if (fstatat(c->source_fd, in->path, &st, 0) != 0) {
		convert_set(r, OUTCOME_FAILED, 0, "%s", strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		convert_set(r, OUTCOME_BAD, SHARD_MISS_NOT_AN_IMAGE, "%s, not a file", kind_of(st.st_mode));
		return false;
	}
	fd = openat(c->source_fd, in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		convert_set(r, OUTCOME_FAILED, 0, "%s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	ok = read_open(r, in, fd, &st, to);
	close(fd); /* nothing was written: its result says nothing */
	return ok;
}

/* A part of a file of the plan. */
static bool read_part(const struct converter *c, struct result *r, const struct input_bytes *in, struct scratch *to)
{
	uint64_t bytes = in->bytes;

	if (bytes > INPUT_BYTES_MAX) {
		convert_set(r, OUTCOME_BAD, SHARD_MISS_LIMIT, "has %" PRIu64 " bytes; the limit is %" PRIu64, bytes, INPUT_BYTES_MAX);
		return false;
	}
	if (!scratch_reserve(to, bytes)) {
		convert_set(r, OUTCOME_STOP, 0, "out of memory for %" PRIu64 " bytes", bytes);
		return false;
	}
	if (stored_read(c->stored, in->file, in->offset, to->data, bytes, r->message, sizeof(r->message)))
		return true;
	r->outcome = OUTCOME_FAILED;
	return false;
}

bool convert_read(struct converter *c, struct result *r, const struct input_bytes *in, struct scratch *to)
{
	convert_claim(c, in->bytes);
	return in->file == PLAN_NO_FILE ? read_file(c, r, in, to) : read_part(c, r, in, to);
}
