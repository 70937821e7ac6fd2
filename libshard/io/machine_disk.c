/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_disk.c - what kind of file system a path is on, and what reads past the page cache must
 * be aligned to there
 */
#include "libshard/io/machine_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/direct.h"
#include "libshard/io/file.h"

#define TRY_BYTES  8192u
#define LINE_BYTES 8192
#define SELF_BYTES 64

/* ---- what kind: the mount whose place is the longest that the path starts with ---- */

static size_t starts_with(const char *path, const char *place)
{
	size_t n = strlen(place);

	if (n == 1)
		return 1; /* the root */
	return !strncmp(path, place, n) && (path[n] == '/' || !path[n]) ? n : 0;
}

static void find_type(const char *path, char *out)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[LINE_BYTES], place[LINE_BYTES], type[MACHINE_TEXT_BYTES], real[PATH_MAX];
	const char *dash;
	size_t best = 0, n;

	while (f && realpath(path, real) && fgets(line, sizeof(line), f)) {
		dash = strstr(line, " - ");
		if (!dash || sscanf(line, "%*s %*s %*s %*s %8191s", place) != 1 || sscanf(dash, " - %127s", type) != 1)
			continue;
		n = starts_with(real, place);
		if (n < best || !n)
			continue; /* of two on one place the later one counts: it hides the other */
		best = n;
		memcpy(out, type, sizeof(type));
	}
	if (f)
		fclose(f);
}

/* ---- a file to try ---- */

static int first_name(void *context, const char *name)
{
	char **out = context;

	if (!*out)
		*out = mem_text(name);
	return SHARD_OK;
}

/* One without a name, with bytes in it.  A name to open it by again goes to `self`. */
static int make_file(const char *folder, int *fd, char self[SELF_BYTES])
{
	static const uint8_t zeros[TRY_BYTES];
	int code;

	*fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (*fd < 0)
		return errno;
	snprintf(self, SELF_BYTES, "/proc/self/fd/%d", *fd);
	if (pwrite(*fd, zeros, sizeof(zeros), 0) == (ssize_t)sizeof(zeros) && !fsync(*fd))
		return 0;
	code = errno;
	close(*fd);
	*fd = -1;
	return code;
}

static bool try_read(int fd, uint8_t *memory, uint32_t align)
{
	/* zero at the end of a short file: it was not refused */
	return pread(fd, memory, align, (off_t)align) >= 0;
}

static int try_file(const char *path, struct machine_disk *out)
{
	uint8_t *memory = mem_aligned(TRY_BYTES, TRY_BYTES);
	struct direct_file f;
	struct statx asked;
	struct stat st;
	int code = !memory ? ENOMEM : stat(path, &st) ? errno : 0;

	if (!code)
		code = direct_open(path, (uint64_t)st.st_ino, (uint64_t)st.st_size, true, &f);
	if (code) {
		mem_free(memory);
		return code;
	}
	out->is_told =
		f.direct && !statx(f.fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &asked) && asked.stx_mask & STATX_DIOALIGN;
	out->offset_align = f.offset_align;
	out->memory_align = f.memory_align;
	if (f.direct && !out->is_told && try_read(f.fd, memory, 512))
		out->offset_align = out->memory_align = 512;
	out->takes_direct =
		f.direct && try_read(f.fd, memory, out->offset_align > TRY_BYTES ? TRY_BYTES : out->offset_align);
	out->os_code = f.direct && !out->takes_direct ? errno : 0;
	direct_close(&f);
	mem_free(memory);
	return 0;
}

static int try_folder(const char *folder, struct machine_disk *out, struct shard_error *err)
{
	char *name = NULL, *path = NULL, self[SELF_BYTES];
	struct shown s;
	int code, fd = -1, rc = file_list(folder, ".shard", first_name, &name, err);

	if (rc)
		return rc;
	if (name)
		path = mem_join(folder, name);
	code = path ? 0 : make_file(folder, &fd, self);
	out->is_unknown = code;
	if (!code)
		code = try_file(path ? path : self, out);
	else
		out->os_code = code;
	if (fd >= 0)
		close(fd);
	mem_free(path);
	mem_free(name);
	return code && !out->is_unknown ? error_os(err, code, "%s: its shards cannot be opened", show(&s, folder))
					: SHARD_OK;
}

int machine_disk(const char *path, struct machine_disk *out, struct shard_error *err)
{
	struct stat st;
	struct shown s;
	int code;

	*out = (struct machine_disk){.is_remote = file_is_remote(path)};
	if (stat(path, &st))
		return error_os(err, errno, "%s: cannot be looked at", show(&s, path));
	find_type(path, out->type);
	if (S_ISDIR(st.st_mode))
		return try_folder(path, out, err);
	if (!S_ISREG(st.st_mode))
		return error_set(err, SHARD_E_ARGUMENT, "%s: must be a folder or a file", show(&s, path));
	code = try_file(path, out);
	return code ? error_os(err, code, "%s: cannot be opened", show(&s, path)) : SHARD_OK;
}
