/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_disk.c - see doctor_disk.h
 */
#include "libshard/doctor/doctor_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/doctor/finding.h"
#include "libshard/feed/path.h"
#include "libshard/io/file.h"
#include "libshard/io/machine_disk.h"
#include "libshard/store/read/dataset.h"
#include "shard_gpu.h"
#include "shard_pack.h"

#define LOOK_SHARDS 64u /* looked at; they stand for the others of a dataset */

/* ---- the file system ---- */

static void say_alignment(struct finding *f, const struct machine_disk *disk)
{
	char asked[128];

	if (disk->is_told)
		snprintf(asked, sizeof(asked), "aligned to %u bytes, memory to %u", disk->offset_align,
			 disk->memory_align);
	else
		snprintf(asked, sizeof(asked),
			 "work with an alignment of %u bytes; the kernel does not say which one they need",
			 disk->offset_align);
	finding_set(f->found, "%s; direct reads: %s", disk->type, asked);
	if (disk->is_told && disk->offset_align <= 512)
		finding_set(f->so, "records of 16 KiB and more can be read past the page cache; those that are "
				   "packed with this alignment go straight into the batch");
	else
		finding_set(f->so, "records can be read past the page cache; those aligned to 4096 bytes go straight "
				   "into the batch, others are copied once more");
}

static void say_refused(struct finding *f, const struct machine_disk *disk)
{
	char why[128];

	if (disk->is_unknown) {
		f->verdict = SHARD_UNKNOWN;
		finding_set(f->found, "%s; no shard is in this folder, and no file can be made in it: %s", disk->type,
			    strerror_r(disk->os_code, why, sizeof(why)));
		finding_set(f->advice, "name a dataset, or a file on that disk");
		return;
	}
	f->verdict = SHARD_SLOWER;
	finding_set(f->found, "%s does not support direct reads", disk->type);
	finding_set(f->so, "datasets are read through the page cache, even if they do not fit memory");
	finding_set(f->advice, "for datasets larger than memory, use ext4 or XFS on a local disk");
}

static int look_at_disk(const struct shard_doctor_options *o, struct shard_error *err)
{
	struct finding f = {.name = "disk", .verdict = SHARD_GOOD};
	struct machine_disk disk;
	int rc = machine_disk(o->path, &disk, err);

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
		f.verdict = SHARD_SLOWER;
		finding_set(f.found, "%s, on another machine", disk.type);
		finding_set(f.so, "shards are read by pread through the page cache, never mapped");
		finding_set(f.advice, "copy the dataset to a local disk if it is read more than once");
	}
	if (!strcmp(disk.type, "tmpfs") || !strcmp(disk.type, "ramfs")) {
		f.verdict = SHARD_GOOD;
		finding_set(f.found, "%s", disk.type);
		finding_set(f.so, "files there lie in memory: no disk is read, but other programs cannot use that "
				  "memory");
		finding_set(f.advice, "%s", "");
	}
	finding_tell(o, &f);
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

static void say_dataset(const struct shard_doctor_options *o, const struct shard_dataset *ds)
{
	struct finding f = {.name = "dataset", .verdict = SHARD_GOOD};
	struct shard_dataset_info info;
	char size[SIZE_CHARS], fits[SIZE_CHARS];
	uint64_t looked, there;

	shard_dataset_info(ds, &info);
	looked = info.shard_count < LOOK_SHARDS ? info.shard_count : LOOK_SHARDS;
	there = shards_in_memory(ds, o->path, looked);
	finding_number(&f, "record_count", info.record_count);
	finding_number(&f, "shard_count", info.shard_count);
	finding_number(&f, "data_bytes", info.data_bytes);
	finding_number(&f, "shards_looked_at", looked);
	finding_number(&f, "shards_in_memory", there);
	finding_number(&f, "fits_in_memory", info.data_bytes <= path_fits_bytes());
	finding_set(f.found, "%s in %" PRIu64 " shard%s; %" PRIu64 " of %" PRIu64 " examined lie%s in memory",
		    size_text(size, info.data_bytes), info.shard_count, info.shard_count == 1 ? "" : "s", there, looked,
		    there == 1 ? "s" : "");
	if (there == looked) {
		finding_set(f.so, "batches are copied from memory: no disk is read");
	} else if (info.data_bytes <= path_fits_bytes()) {
		finding_set(f.so, "it fits: the first epoch reads it through the page cache, later ones find it in "
				  "memory");
	} else {
		f.verdict = SHARD_SLOWER;
		finding_set(f.so, "it is larger than the %s that may lie in memory: each epoch reads it from the disk",
			    size_text(fits, path_fits_bytes()));
		finding_set(f.advice, "nothing, if the disk keeps up (see shard_stats_summary()); otherwise add "
				      "memory");
	}
	finding_tell(o, &f);
}

int doctor_disk(const struct shard_doctor_options *o, struct shard_error *err)
{
	struct shard_dataset *ds;
	char *manifest;
	uint64_t bytes, inode;
	int rc = look_at_disk(o, err), fd, no_manifest;

	if (rc)
		return rc;
	manifest = mem_join(o->path, DATASET_MANIFEST);
	if (!manifest)
		return error_set(err, SHARD_E_MEMORY, "no memory for a name");
	no_manifest = file_open(manifest, &fd, &bytes, &inode, NULL);
	mem_free(manifest);
	if (no_manifest)
		return SHARD_OK; /* no dataset: its disk is all there is to see */
	file_close(fd);
	rc = shard_dataset_open(&ds, o->path, NULL, err);
	if (rc)
		return rc;
	say_dataset(o, ds);
	shard_dataset_close(ds);
	return SHARD_OK;
}
