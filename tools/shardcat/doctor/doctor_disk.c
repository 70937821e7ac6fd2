/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_disk.c - findings about d->path: its file system, and what reads past the page cache must
 * be aligned to there; and the dataset, if there is one
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/feed/feed.h"
#include "libshard/io/io.h"
#include "shard_inspect.h"
#include "tools/common/human.h"
#include "tools/shardcat/doctor/doctor.h"

#define TYPE_BYTES  128
#define TRY_BYTES   8192u
#define LINE_BYTES  8192
#define SELF_BYTES  64
#define LOOK_SHARDS 64u /* looked at; they stand for the others of a dataset */

struct disk {
	char type[TYPE_BYTES]; /* "ext4" */
	bool is_remote;
	bool takes_direct; /* a read past the page cache worked */
	/* the kernel told the alignments; else offset_align is 512, or 4096 if 512 did not work */
	bool is_told;
	uint32_t offset_align, memory_align;
	bool is_unknown; /* the folder has no file to try, and none can be made in it */
	int os_code;	 /* errno of the call that was refused, or 0 */
};

/* ---- what kind: the mount whose place is the longest that the path starts with ---- */

static void find_type(const char *path, char *out)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[LINE_BYTES], place[LINE_BYTES], type[TYPE_BYTES], real[PATH_MAX];
	const char *dash;
	size_t best = 0, n;

	while (f && realpath(path, real) && fgets(line, sizeof(line), f)) {
		dash = strstr(line, " - ");
		if (!dash || sscanf(line, "%*s %*s %*s %*s %8191s", place) != 1 || sscanf(dash, " - %127s", type) != 1)
			continue;
		n = strlen(place);
		if (n > 1 && (strncmp(real, place, n) || (real[n] && real[n] != '/'))) /* 1: the root */
			continue;
		if (n < best)
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

char *doctor_file(const char *path)
{
	struct stat st;
	char *name = NULL, *file = NULL;

	if (stat(path, &st))
		return NULL;
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) ? mem_text(path) : NULL;
	if (!file_list(path, ".shard", first_name, &name, NULL) && name)
		file = mem_join(path, name);
	mem_free(name);
	return file;
}

/* One without a name, with bytes in it.  A name to open it by again goes to `self`.  Returns errno. */
static int make_file(const char *folder, int *fd, char self[SELF_BYTES])
{
	static const uint8_t zeros[TRY_BYTES];
	int os_code;

	*fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (*fd < 0)
		return errno;
	snprintf(self, SELF_BYTES, "/proc/self/fd/%d", *fd);
	if (pwrite(*fd, zeros, sizeof(zeros), 0) == (ssize_t)sizeof(zeros) && !fsync(*fd))
		return 0;
	os_code = errno;
	close(*fd);
	*fd = -1;
	return os_code;
}

static bool try_read(int fd, uint8_t *memory, uint32_t align)
{
	/* zero at the end of a short file: it was not refused */
	return pread(fd, memory, align, (off_t)align) >= 0;
}

static int try_file(const char *path, struct disk *out)
{
	uint8_t *memory = mem_aligned(TRY_BYTES, TRY_BYTES);
	struct direct_file f;
	struct statx asked;
	struct stat st;
	int os_code = !memory ? ENOMEM : stat(path, &st) ? errno : 0;

	if (!os_code)
		os_code = direct_open(path, (uint64_t)st.st_ino, (uint64_t)st.st_size, true, &f);
	if (os_code) {
		mem_free(memory);
		return os_code;
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

static int try_folder(const char *folder, struct disk *out, struct shard_error *err)
{
	char *name = NULL, *path = NULL, self[SELF_BYTES];
	struct shown s;
	int os_code, fd = -1, rc = file_list(folder, ".shard", first_name, &name, err);

	if (rc)
		return rc;
	if (name)
		path = mem_join(folder, name);
	os_code = path ? 0 : make_file(folder, &fd, self);
	out->is_unknown = os_code;
	if (!os_code)
		os_code = try_file(path ? path : self, out);
	else
		out->os_code = os_code;
	if (fd >= 0)
		close(fd);
	mem_free(path);
	mem_free(name);
	return os_code && !out->is_unknown ? error_os(err, os_code, "%s: its shards cannot be opened", show(&s, folder))
					   : SHARD_OK;
}

/* In a folder it reads a shard, or else a file without a name that it makes for this. */
static int examine(const char *path, struct disk *out, struct shard_error *err)
{
	struct stat st;
	struct shown s;
	int os_code;

	*out = (struct disk){.is_remote = file_is_remote(path)};
	if (stat(path, &st))
		return error_os(err, errno, "%s: cannot be looked at", show(&s, path));
	find_type(path, out->type);
	if (S_ISDIR(st.st_mode))
		return try_folder(path, out, err);
	if (!S_ISREG(st.st_mode))
		return error_set(err, SHARD_E_ARGUMENT, "%s: must be a folder or a file", show(&s, path));
	os_code = try_file(path, out);
	return os_code ? error_os(err, os_code, "%s: cannot be opened", show(&s, path)) : SHARD_OK;
}

/* ---- what follows from that ---- */

static void say_alignment(struct finding *f, const struct disk *disk)
{
	finding_set(f->found, "%s; direct reads: ", disk->type);
	if (disk->is_told)
		finding_add(f->found, "aligned to %u bytes, memory to %u", disk->offset_align, disk->memory_align);
	else
		finding_add(f->found, "work with an alignment of %u bytes; the kernel does not say which one they need",
			    disk->offset_align);
	if (disk->is_told && disk->offset_align <= 512)
		finding_set(f->so, "records of 16 KiB and more can be read past the page cache; records "
				   "packed with this alignment go straight into the batch");
	else
		finding_set(f->so, "records can be read past the page cache; those aligned to 4096 bytes go straight "
				   "into the batch, others are copied once more");
}

static void say_refused(struct finding *f, const struct disk *disk)
{
	char why[128];

	if (disk->is_unknown) {
		f->verdict = VERDICT_UNKNOWN;
		finding_set(f->found, "%s; no shard is in this folder, and no file can be made in it: %s", disk->type,
			    strerror_r(disk->os_code, why, sizeof(why)));
		finding_set(f->advice, "name a dataset, or a file on that disk");
		return;
	}
	f->verdict = VERDICT_SLOWER;
	finding_set(f->found, "%s does not support direct reads", disk->type);
	finding_set(f->so, "datasets are read through the page cache, even if they do not fit memory");
	finding_set(f->advice, "for datasets larger than memory, use ext4 or XFS on a local disk");
}

static int look_at_disk(const struct doctor *d, struct shard_error *err)
{
	struct finding f = {.name = "disk", .verdict = VERDICT_GOOD};
	struct disk disk;
	int rc = examine(d->path, &disk, err);

	if (rc)
		return rc;
	finding_text(&f, "file_system", disk.type);
	finding_number(&f, "remote", disk.is_remote);
	finding_number(&f, "direct", disk.is_unknown ? UINT64_MAX : disk.takes_direct);
	if (disk.takes_direct) {
		finding_number(&f, "offset_align", disk.offset_align);
		finding_number(&f, "memory_align", disk.memory_align);
		finding_number(&f, "align_is_told", disk.is_told);
	}
	if (!disk.type[0])
		snprintf(disk.type, sizeof(disk.type), "a file system without a name");
	if (disk.takes_direct)
		say_alignment(&f, &disk);
	else
		say_refused(&f, &disk);
	if (disk.is_remote) {
		f.verdict = VERDICT_SLOWER;
		finding_set(f.found, "%s, on another machine", disk.type);
		finding_set(f.so, "shards are read by pread through the page cache, never mapped");
		finding_set(f.advice, "copy the dataset to a local disk if it is read more than once");
	}
	if (!strcmp(disk.type, "tmpfs") || !strcmp(disk.type, "ramfs")) {
		f.verdict = VERDICT_GOOD;
		finding_set(f.found, "%s", disk.type);
		finding_set(f.so, "files there lie in memory: no disk is read, but other programs cannot use that "
				  "memory");
		finding_set(f.advice, "%s", "");
	}
	d->tell(d->context, &f);
	return SHARD_OK;
}

/* ---- the dataset ---- */

/*
 * How many of the first `looked` shards lie in the page cache.  A shard that cannot be opened
 * counts as not there.
 */
static uint64_t shards_in_memory(const struct shard_dataset *ds, const char *dir, uint64_t looked)
{
	struct shard_entry e;
	uint64_t count = 0;

	for (uint64_t i = 0; i < looked; i++) {
		char name[1024], *path;
		uint64_t bytes, inode;
		int fd;

		if (shard_dataset_entry(ds, i, &e, NULL))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)e.file_name_bytes, e.file);
		path = mem_join(dir, name);
		if (path && !file_open(path, &fd, &bytes, &inode, NULL)) {
			count += file_seems_cached(fd, bytes, NULL);
			file_close(fd);
		}
		mem_free(path);
	}
	return count;
}

static void say_dataset(const struct doctor *d, const struct shard_dataset *ds)
{
	struct finding f = {.name = "dataset", .verdict = VERDICT_GOOD};
	struct shard_dataset_info info;
	char size[HUMAN_CHARS], fits[HUMAN_CHARS];
	uint64_t looked, there;

	shard_dataset_info(ds, &info);
	looked = info.shard_count < LOOK_SHARDS ? info.shard_count : LOOK_SHARDS;
	there = shards_in_memory(ds, d->path, looked);
	finding_number(&f, "record_count", info.record_count);
	finding_number(&f, "shard_count", info.shard_count);
	finding_number(&f, "data_bytes", info.data_bytes);
	finding_number(&f, "shards_looked_at", looked);
	finding_number(&f, "shards_in_memory", there);
	finding_number(&f, "fits_in_memory", info.data_bytes <= path_fits_bytes());
	finding_set(f.found, "%s in %" PRIu64 " shard%s; %" PRIu64 " of %" PRIu64 " examined lie%s in memory",
		    human_bytes(size, info.data_bytes), info.shard_count, info.shard_count == 1 ? "" : "s", there,
		    looked, there == 1 ? "s" : "");
	if (there == looked) {
		finding_set(f.so, "batches are copied from memory: no disk is read");
	} else if (info.data_bytes <= path_fits_bytes()) {
		finding_set(f.so, "it fits: the first epoch reads it through the page cache, later ones find it in "
				  "memory");
	} else {
		f.verdict = VERDICT_SLOWER;
		finding_set(f.so, "it is larger than the %s that may lie in memory: each epoch reads it from the disk",
			    human_bytes(fits, path_fits_bytes()));
		finding_set(f.advice, "nothing, if the disk keeps up (see shard_stats_summary()); otherwise add "
				      "memory");
	}
	d->tell(d->context, &f);
}

int doctor_disk(const struct doctor *d, struct shard_error *err)
{
	struct shard_dataset *ds;
	char *manifest;
	uint64_t bytes, inode;
	int rc = look_at_disk(d, err), fd, no_manifest;

	if (rc)
		return rc;
	manifest = mem_join(d->path, DATASET_MANIFEST);
	if (!manifest)
		return error_set(err, SHARD_E_MEMORY, "no memory for a name");
	no_manifest = file_open(manifest, &fd, &bytes, &inode, NULL);
	mem_free(manifest);
	if (no_manifest)
		return SHARD_OK; /* no dataset: its disk is all there is to see */
	file_close(fd);
	rc = shard_dataset_open(&ds, d->path, NULL, err);
	if (rc)
		return rc;
	say_dataset(d, ds);
	shard_dataset_close(ds);
	return SHARD_OK;
}
