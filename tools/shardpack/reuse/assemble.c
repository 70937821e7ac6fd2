/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assemble.c - a dataset of shards of others: a new one, or one that grows
 */
#include "tools/shardpack/reuse/reuse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"

#define MANIFEST  "dataset.manifest"
#define FILE_NAME 32

struct assembly {
	const char *out;
	const struct part *part;
	uint32_t count, names, by;
	uint64_t shard_count, record_count;
	uint64_t done[SHARD_REUSE_THERE + 1];
};

static void file_name(char out[FILE_NAME], uint64_t shard_idx)
{
	snprintf(out, FILE_NAME, "%05" PRIu64 ".shard", shard_idx);
}

/* Which shard of the result has this name?  UINT64_MAX: none. */
static uint64_t number_of(const char *name)
{
	uint64_t number = strtoull(name, NULL, 10);
	char again[FILE_NAME];

	file_name(again, number);
	return strcmp(again, name) ? UINT64_MAX : number;
}

/* ---- what is in OUT ---- */

/* Is it the dataset that is to be made? */
static bool is_made(const struct assembly *a, const struct part *made)
{
	const struct part *names = &a->part[a->names];
	uint64_t k = 0;

	if (made->info.shard_count != a->shard_count || made->info.class_count != names->info.class_count ||
	    made->info.has_plan_digest || made->info.order != SHARD_ORDER_UNKNOWN)
		return false;
	for (uint64_t c = 0; c < names->info.class_count; c++)
		if (strcmp(shard_dataset_class_name(made->ds, c), shard_dataset_class_name(names->ds, c)))
			return false;
	for (uint32_t p = 0; p < a->count; p++)
		for (uint64_t i = 0; i < a->part[p].count; i++, k++) {
			struct shard_entry is, want;
			char file[FILE_NAME];

			file_name(file, k);
			if (part_entry(&a->part[p], i, &want) != EXIT_DONE || part_entry(made, k, &is) != EXIT_DONE ||
			    memcmp(is.sha256, want.sha256, sizeof(is.sha256)) || strlen(file) != is.file_name_bytes ||
			    memcmp(file, is.file, is.file_name_bytes))
				return false;
		}
	return true;
}

/* There is a manifest. */
static int look_at_made(const struct assembly *a)
{
	struct part made;
	int rc = part_open(&made, a->out);

	if (!rc && is_made(a, &made))
		note("%s: the same dataset is there already; nothing to do", a->out);
	else if (!rc)
		rc = fail(EXIT_USAGE,
			  "%s: holds a dataset, of %" PRIu64
			  " records; nothing was touched; give another folder with -o",
			  a->out, made.info.record_count);
	part_close(&made);
	return rc;
}

/* Nothing may be there but what an earlier run of the same command left. */
static int look(const struct assembly *a, bool *made)
{
	DIR *dir = opendir(a->out);
	const char *foreign = NULL;
	struct dirent *entry;
	int rc = EXIT_DONE;

	*made = false;
	if (!dir)
		return errno == ENOENT ? EXIT_DONE
				       : fail(errno == ENOTDIR ? EXIT_USAGE : EXIT_IO,
					      "%s: cannot read this folder: %s", a->out, strerror(errno));
	while (!foreign && (errno = 0, entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (!strcmp(name, MANIFEST))
			*made = true;
		else if (strcmp(name, ".") && strcmp(name, "..") && strncmp(name, ".tmp.", 5) &&
			 !is_removed_name(name) && number_of(name) >= a->shard_count)
			foreign = name;
	}
	if (foreign && !*made)
		rc = fail(EXIT_USAGE,
			  "%s: holds '%s', which is not part of this dataset; nothing was touched; give a new or "
			  "empty folder with -o",
			  a->out, foreign);
	else if (!foreign && errno)
		rc = fail(EXIT_IO, "%s: cannot read this folder: %s", a->out, strerror(errno));
	closedir(dir);
	return rc;
}

/* ---- making it ---- */

static int add_shards(struct assembly *a, struct shard_seal *seal)
{
	struct progress progress;
	struct shard_error err;
	int rc = EXIT_DONE;
	uint64_t k = 0;

	progress_start(&progress, "placing", "shards", a->shard_count);
	for (uint32_t p = 0; !rc && p < a->count; p++)
		for (uint64_t i = 0; !rc && i < a->part[p].count; i++) {
			char file[FILE_NAME];
			uint32_t how = a->by;

			file_name(file, k++);
			if (interrupted())
				rc = EXIT_INTERRUPTED;
			else if (shard_seal_reuse(seal, a->part[p].ds, a->part[p].first + i, file, &how, &err))
				rc = part_fail(&err);
			else
				a->done[how]++;
			progress_add(&progress, 1, 0, 0);
			progress_tick(&progress);
		}
	progress_abandon(&progress);
	return rc;
}

/* Names of the classes of a dataset, for a seal: to be freed, not what they point to. */
static const char **class_names_of(const struct part *p)
{
	const char **names = xcalloc(p->info.class_count + 1, sizeof(*names));

	for (uint64_t c = 0; c < p->info.class_count; c++)
		names[c] = shard_dataset_class_name(p->ds, c);
	return names;
}

#define REUSED_BYTES 160

/* "3 hard links, 1 copy": what was done how often, by enum shard_reuse. */
static void reused_text(char out[REUSED_BYTES], const uint64_t done[SHARD_REUSE_THERE + 1])
{
	static const char *const one[] = {"hard link", "clone", "copy", "shard that was there"};
	static const char *const many[] = {"hard links", "clones (reflinks)", "copies", "shards that were there"};
	int used = 0;

	out[0] = '\0';
	for (int i = 0; i <= SHARD_REUSE_THERE; i++)
		if (done[i])
			used += snprintf(out + used, REUSED_BYTES - (size_t)used, "%s%" PRIu64 " %s", used ? ", " : "",
					 done[i], done[i] == 1 ? one[i] : many[i]);
}

static int make(struct assembly *a)
{
	const struct part *names = &a->part[a->names];
	const char **class_names = class_names_of(names);
	struct shard_seal_options opt = {
		.size = sizeof(opt), .class_names = class_names, .class_count = names->info.class_count};
	char path[FILES_PATH_BYTES], how[REUSED_BYTES];
	struct shard_seal *seal = NULL;
	struct shard_error err;
	int status, rc = files_path(path, a->out, ""); /* with the slash behind it, OUT is one of its parents */

	if (!rc && !files_make_parents(path, 1))
		rc = fail(EXIT_IO, "%s: cannot make this folder: %s", a->out, strerror(errno));
	if (!rc && (shard_remove_temps(a->out, NULL, &err) != SHARD_OK ||
		    shard_seal_open(&seal, a->out, &opt, &err) != SHARD_OK))
		rc = part_fail(&err);
	if (!rc)
		rc = add_shards(a, seal);
	if (!rc) {
		status = shard_seal_finish(seal, &err);
		/* Another process may have been faster, with the same dataset. */
		rc = status == SHARD_E_EXISTS ? look_at_made(a) : status ? part_fail(&err) : EXIT_DONE;
	}
	shard_seal_close(seal);
	free(class_names);
	reused_text(how, a->done);
	if (!rc)
		note("%s: %" PRIu64 " records in %" PRIu64 " shard%s: %s", a->out, a->record_count, a->shard_count,
		     a->shard_count == 1 ? "" : "s", how);
	else if (rc == EXIT_INTERRUPTED)
		hint("interrupted; run the same command again to continue");
	return rc;
}

int assemble(const char *out, const struct part *part, uint32_t count, uint32_t names, uint32_t by)
{
	struct assembly a = {.out = out, .part = part, .count = count, .names = names, .by = by};
	struct shard_entry e;
	bool made;
	int rc;

	for (uint32_t p = 0; p < count; p++)
		for (uint64_t i = 0; i < part[p].count; i++, a.shard_count++) {
			rc = part_entry(&part[p], i, &e);
			if (rc)
				return rc;
			a.record_count += e.record_count;
		}
	rc = look(&a, &made);
	if (!rc)
		rc = made ? look_at_made(&a) : make(&a);
	return rc;
}

/*
 * ---- shards behind those of a dataset that is there ----
 *
 * The folder of the new shards has the id of the dataset that they are appended to in its name, so
 * no manifest names it before this one.
 */

#define ADDED	   "added-"
#define NAME_BYTES 512 /* a shard's file has at most 401 */

struct appending {
	const struct part *part;
	uint32_t count, by;
	char folder[32];
	uint64_t done[SHARD_REUSE_THERE + 1], shards, records;
};

int append_lock(const char *dir, int *lock)
{
	*lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lock < 0 || !flock(*lock, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return EXIT_DONE; /* what is wrong with the folder, opening the dataset says */
	return fail(EXIT_IO, "%s: another process appends to it; run again when it has ended", dir);
}

/* Is it shard `i` of a folder like that of `first`, which is added-... with 16 digits? */
static bool is_added(const struct shard_entry *first, const struct shard_entry *e, uint64_t i)
{
	char file[NAME_BYTES];
	int bytes = snprintf(file, sizeof(file), ADDED "%.16s/%05" PRIu64 ".shard",
			     first->file_name_bytes > strlen(ADDED) + 16 ? first->file + strlen(ADDED) : "", i);

	return e->file_name_bytes == (uint32_t)bytes && !memcmp(e->file, file, e->file_name_bytes);
}

bool append_is_done(const struct part *part, uint32_t count, bool appended)
{
	uint64_t added = 0, k, i_added = 0;
	struct shard_entry first, is, want;

	for (uint32_t p = 1; p < count; p++)
		added += part[p].count;
	if (added >= part->count)
		return false;
	k = part->count - added;
	if (part_entry(part, k, &first) != EXIT_DONE)
		return false;
	for (uint32_t p = 1; p < count; p++)
		for (uint64_t i = 0; i < part[p].count; i++)
			if (part_entry(&part[p], i, &want) != EXIT_DONE || part_entry(part, k++, &is) != EXIT_DONE ||
			    memcmp(is.sha256, want.sha256, sizeof(is.sha256)) ||
			    (appended && !is_added(&first, &is, i_added++)))
				return false;
	return true;
}

/* Its own shards stay as they are, where they are. */
static int add_old(const struct appending *a, struct shard_seal *seal)
{
	const struct part *p = a->part;
	struct shard_reader *r = NULL;
	struct shard_entry e;
	struct shard_error err;
	char file[NAME_BYTES];
	int rc = EXIT_DONE;

	for (uint64_t i = 0; !rc && i < p->count; i++) {
		rc = part_entry(p, i, &e);
		if (rc)
			break;
		snprintf(file, sizeof(file), "%.*s", (int)e.file_name_bytes, e.file);
		/* The reader says that the file is the one that the manifest names. */
		if (shard_dataset_open_reader(p->ds, i, &r, &err) != SHARD_OK ||
		    shard_seal_add(seal, file, NULL, e.sha256, &err) != SHARD_OK)
			rc = part_fail(&err);
		shard_reader_close(r);
		r = NULL;
	}
	return rc;
}

static int add_new(struct appending *a, struct shard_seal *seal)
{
	struct shard_error err;
	struct shard_entry e;
	char file[NAME_BYTES];
	int rc = EXIT_DONE;

	for (uint32_t p = 1; !rc && p < a->count; p++)
		for (uint64_t i = 0; !rc && i < a->part[p].count; i++) {
			uint32_t how = a->by;

			snprintf(file, sizeof(file), "%s/%05" PRIu64 ".shard", a->folder, a->shards++);
			rc = interrupted() ? EXIT_INTERRUPTED : part_entry(&a->part[p], i, &e);
			if (!rc && shard_seal_reuse(seal, a->part[p].ds, i, file, &how, &err) != SHARD_OK)
				rc = part_fail(&err);
			if (!rc) {
				a->done[how]++;
				a->records += e.record_count;
			}
		}
	return rc;
}

/* The dataset as it was can be had again: its manifest stays under another name. */
static int keep_manifest(const struct part *p)
{
	char name[96], path[FILES_PATH_BYTES];
	struct shard_view text;
	struct shard_error err;
	int rc;

	snprintf(name, sizeof(name), "dataset.manifest.%s", p->info.id);
	rc = files_path(path, p->dir, name);
	if (rc)
		return rc;
	shard_dataset_manifest(p->ds, &text);
	if (shard_publish(path, text.data, text.bytes, 0, &err) == SHARD_OK ||
	    (err.status == SHARD_E_EXISTS && files_has_bytes(path, text.data, text.bytes)))
		return EXIT_DONE;
	return part_fail(&err);
}

/* Where there are no locks, somebody may have been faster: look before the manifest is replaced. */
static int finish(const struct appending *a, struct shard_seal *seal)
{
	struct part now;
	struct shard_error err;
	int rc = part_open(&now, a->part->dir);

	if (!rc && strcmp(now.info.id, a->part->info.id))
		rc = fail(EXIT_MISMATCH, "%s: has become another dataset meanwhile; nothing was replaced", now.dir);
	part_close(&now);
	if (!rc && shard_seal_finish(seal, &err) != SHARD_OK)
		rc = part_fail(&err);
	return rc;
}

static int append(struct appending *a, const struct shard_seal_options *opt)
{
	const struct part *to = a->part;
	char path[FILES_PATH_BYTES];
	struct shard_seal *seal = NULL;
	struct shard_error err;
	int rc = files_path(path, to->dir, a->folder);

	if (!rc && !files_make_dir(path))
		rc = fail(EXIT_IO, "%s: cannot make this folder: %s", path, strerror(errno));
	if (!rc &&
	    (shard_remove_temps(path, NULL, &err) != SHARD_OK || shard_remove_temps(to->dir, NULL, &err) != SHARD_OK ||
	     shard_seal_open(&seal, to->dir, opt, &err) != SHARD_OK))
		rc = part_fail(&err);
	if (!rc)
		rc = add_old(a, seal);
	if (!rc)
		rc = add_new(a, seal);
	if (!rc)
		rc = keep_manifest(to);
	if (!rc)
		rc = finish(a, seal);
	shard_seal_close(seal);
	return rc;
}

int append_parts(const struct part *part, uint32_t count, uint32_t names, uint32_t by)
{
	struct appending a = {.part = part, .count = count, .by = by};
	struct shard_seal_options opt = {
		.size = sizeof(opt), .class_count = part[names].info.class_count, .replace = 1};
	const char **class_names = class_names_of(&part[names]);
	char how[REUSED_BYTES];
	int rc;

	opt.class_names = class_names;
	snprintf(a.folder, sizeof(a.folder), ADDED "%.16s", part->info.id);
	rc = append(&a, &opt);
	free(class_names);
	reused_text(how, a.done);
	if (!rc)
		note("%s: %" PRIu64 " records were added to %" PRIu64 ", in %" PRIu64 " shard%s: %s", part->dir,
		     a.records, part->info.record_count, a.shards, a.shards == 1 ? "" : "s", how);
	else if (rc == EXIT_INTERRUPTED)
		hint("interrupted; %s is as it was; run the same command again to continue", part->dir);
	return rc;
}
