/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_work.c - the input and the output of all ways to unpack a file
 */
#include "tools/shardpack/input/input.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/exit_code.h"
#include "tools/common/files.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

int unpack_damaged(const struct unpack_work *w, const char *what)
{
	return fail(EXIT_BAD, "%s: %s near offset %" PRIu64 " of %" PRIu64 "; the file is damaged, fetch it again",
		    w->name, what, w->in_at, w->in_bytes);
}

int unpack_read(const struct unpack_work *w, void *out, size_t bytes, uint64_t offset)
{
	uint64_t have = files_read_at(w->in_fd, out, bytes, offset);

	if (have < bytes)
		return fail(EXIT_IO, "%s: offset %" PRIu64 ": %s", w->name, offset + have,
			    errno ? strerror(errno) : "the file became shorter");
	return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

int unpack_write(struct unpack_work *w, const uint8_t *data, size_t bytes)
{
	ssize_t n;

	if (bytes > w->member_left)
		return fail(EXIT_BAD,
			    "%s: the member at offset %" PRIu64 " unpacks to more than the %" PRIu64
			    " bytes that the directory says; the file is damaged, fetch it again",
			    w->name, w->member_at, w->member_bytes);
	if (bytes > w->most->bytes - w->written_bytes)
		return fail(w->most->code, "%s: has %" PRIu64 " bytes and unpacks to more than %" PRIu64 "; %s",
			    w->name, w->in_bytes, w->most->bytes, w->most->remedy);
	w->member_left -= bytes;
	w->written_bytes += bytes;
	w->out_bytes += bytes;
	while (bytes && w->out_fd >= 0) {
		n = write(w->out_fd, data, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(EXIT_IO,
				    "%s: cannot unpack more than %" PRIu64 " bytes: %s; choose another "
				    "folder with --spool DIR",
				    w->name, w->out_bytes - bytes, strerror(errno));
		data += n;
		bytes -= (size_t)n;
	}
	return EXIT_DONE;
}
