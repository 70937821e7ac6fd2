/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - the folder that becomes the dataset, and what is in it on the way
 */
#include "tools/shardpack/make/make.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/files.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"

#define STATE_DIR    ".shardpack"
#define MANIFEST     "dataset.manifest"
#define SOURCES	     "sources"
#define KEPT_SOURCES "dataset.sources"
#define LEFT_OUT     "dataset.skipped" /* of libshard.pack: the samples that it left out */
#define EXIF_SAID    "exif"
#define DECODERS     "decoders"
#define TEMP_PREFIX  ".tmp." /* as shard_publish() and writers make them */

/*
 * Open OUT/.shardpack, or the folder that --replace builds in.  A symbolic link is refused: another
 * user who can write into OUT, or an archive that was unpacked there, could lead shardpack into
 * another folder with it.  *fd is -1 if there is nothing of that name.
 */
static int open_own(const char *path, int *fd)
{
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd >= 0 || errno == ENOENT)
		return EXIT_DONE;
	if (errno == ELOOP || errno == ENOTDIR)
		return fail(EXIT_USAGE, "%s: must be a folder, and is a symbolic link or a file; remove it", path);
	return fail(EXIT_IO, "%s: cannot open this folder: %s", path, strerror(errno));
}

/* It is fine if there is nothing. */
static int refuse_link(const char *path)
{
	int fd, rc = open_own(path, &fd);

	if (fd >= 0)
		close(fd);
	return rc;
}

/* What a listing of OUT found. */
struct listing {
	bool absent, has_manifest, has_state, has_shards;
	char foreign[256]; /* the first, in byte order, of what is none of ours; empty if there is none */
};

static bool is_shard_name(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits >= 5 && !strcmp(name + digits, ".shard");
}

static int list(const char *out_dir, struct listing *l)
{
	struct dirent *entry;
	DIR *dir = opendir(out_dir);
	int rc = EXIT_DONE;

	memset(l, 0, sizeof(*l));
	if (!dir && errno == ENOENT) {
		l->absent = true;
		return EXIT_DONE;
	}
	if (!dir && errno == ENOTDIR)
		return fail(EXIT_USAGE, "%s: is a file, not a folder; nothing was touched", out_dir);
	if (!dir)
		return fail(EXIT_IO, "%s: cannot read this folder: %s", out_dir, strerror(errno));
	while ((errno = 0, entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (!strcmp(name, MANIFEST))
			l->has_manifest = true;
		else if (!strcmp(name, KEPT_SOURCES) || !strcmp(name, LEFT_OUT))
			continue;
		else if (!strcmp(name, STATE_DIR))
			l->has_state = true;
		else if (is_shard_name(name))
			l->has_shards = true;
		else if (strcmp(name, ".") && strcmp(name, "..") &&
			 strncmp(name, TEMP_PREFIX, strlen(TEMP_PREFIX)) != 0 && !is_removed_name(name) &&
			 (!l->foreign[0] || strcmp(name, l->foreign) < 0))
			snprintf(l->foreign, sizeof(l->foreign), "%s", name);
	}
	if (errno)
		rc = fail(EXIT_IO, "%s: cannot read this folder: %s", out_dir, strerror(errno));
	closedir(dir);
	return rc;
}

/* Show the first line in which two plans differ; it is mostly an option, or the size of a file. */
static void describe_difference(const struct text *there, const struct plan *ours, char why[OUTPUT_WHY_BYTES])
{
	const char *a = there->data, *b = ours->text.data;
	size_t line_a, line_b;

	for (;;) {
		line_a = strcspn(a, "\n");
		line_b = strcspn(b, "\n");
		if (!a[line_a] || !b[line_b] || line_a != line_b || memcmp(a, b, line_a))
			break;
		a += line_a + 1;
		b += line_b + 1;
	}
	snprintf(why, OUTPUT_WHY_BYTES,
		 "an unfinished dataset of another plan, which has '%.*s' where this plan has "
		 "'%.*s'",
		 (int)(line_a < 200 ? line_a : 200), a, (int)(line_b < 200 ? line_b : 200), b);
}

/* There is .shardpack and no manifest. */
static int examine_state(const char *out_dir, const struct plan *plan, const struct listing *l,
			 enum output_state *state, char why[OUTPUT_WHY_BYTES])
{
	char path[FILES_PATH_BYTES];
	struct text there = {.shelf = plan->text.shelf};
	bool found = false;
	int rc = files_path(path, out_dir, STATE_DIR);

	if (!rc)
		rc = refuse_link(path);
	if (!rc)
		rc = files_path(path, out_dir, STATE_DIR "/plan");
	if (!rc)
		rc = files_read(path, &there, &found);
	if (rc) {
		*state = OUTPUT_FOREIGN;
	} else if (!found && !l->has_shards) {
		*state = OUTPUT_NEW; /* stopped before the plan was written */
	} else if (!found) {
		*state = OUTPUT_OTHER;
		snprintf(why, OUTPUT_WHY_BYTES, "shards without a plan");
	} else if (there.bytes == plan->text.bytes && !memcmp(there.data, plan->text.data, there.bytes)) {
		*state = OUTPUT_STARTED;
	} else {
		*state = OUTPUT_OTHER;
		describe_difference(&there, plan, why);
	}
	text_free(&there);
	return rc;
}

static bool sealed_by(const char *out_dir, const struct plan *plan, char why[OUTPUT_WHY_BYTES])
{
	struct shard_dataset *ds;
	struct shard_dataset_info info;
	struct shard_error err;
	bool same;

	if (shard_dataset_open(&ds, out_dir, NULL, &err) != SHARD_OK) {
		snprintf(why, OUTPUT_WHY_BYTES, "a manifest that cannot be used (%s)", err.message);
		return false;
	}
	shard_dataset_info(ds, &info);
	same = info.has_plan_digest && !memcmp(info.plan_digest, plan->digest, 32);
	snprintf(why, OUTPUT_WHY_BYTES, "a dataset of another plan, with %" PRIu64 " records", info.record_count);
	shard_dataset_close(ds);
	return same;
}

int output_examine(const char *out_dir, const struct plan *plan, enum output_state *state, char why[OUTPUT_WHY_BYTES])
{
	struct listing l;
	int rc = list(out_dir, &l);

	why[0] = '\0';
	if (rc)
		return rc;
	if (l.foreign[0]) {
		*state = OUTPUT_FOREIGN;
		snprintf(why, OUTPUT_WHY_BYTES, "'%s', which is not part of a dataset", l.foreign);
	} else if (l.has_manifest) {
		*state = sealed_by(out_dir, plan, why) ? OUTPUT_SEALED : OUTPUT_OTHER;
	} else if (l.has_state) {
		return examine_state(out_dir, plan, &l, state, why);
	} else if (l.has_shards) {
		*state = OUTPUT_OTHER;
		snprintf(why, OUTPUT_WHY_BYTES, "shards without a plan or manifest");
	} else {
		*state = OUTPUT_NEW;
	}
	return EXIT_DONE;
}

bool output_is_sealed(const char *out_dir, const struct plan *plan)
{
	char path[FILES_PATH_BYTES], why[OUTPUT_WHY_BYTES];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/" MANIFEST, out_dir) < (int)sizeof(path) && stat(path, &st) == 0 &&
	       sealed_by(out_dir, plan, why);
}

int output_set_dir(struct job *job, const char *out_dir)
{
	job->out_dir = out_dir;
	return files_path(job->state_dir, out_dir, STATE_DIR);
}

/*
 * Put a small file into .shardpack, which is made if it is not there: another process may be
 * removing it.  One that is there is replaced, or stays and *exists says so.
 */
static int publish(const struct job *job, const char *name, const void *data, size_t bytes, bool *exists)
{
	char path[FILES_PATH_BYTES];
	struct shard_error err = {0};
	int rc = files_path(path, job->state_dir, name);

	if (exists)
		*exists = false;
	for (int tries = 0; !rc && tries < 8; tries++) {
		if (!files_make_dir(job->state_dir))
			return fail(EXIT_IO, "%s: cannot make this folder: %s", job->state_dir, strerror(errno));
		rc = refuse_link(job->state_dir);
		if (rc)
			return rc;
		if ((exists ? shard_publish(path, data, bytes, 0, &err) : files_publish(path, data, bytes, &err)) ==
		    SHARD_OK)
			return EXIT_DONE;
		if (exists && err.status == SHARD_E_EXISTS) {
			*exists = true;
			return EXIT_DONE;
		}
		if (err.os_code != ENOENT)
			break;
	}
	return rc ? rc : fail_of_library(&err);
}

int output_begin(const struct job *job, const char *source, const struct source_times *now)
{
	enum output_state state = OUTPUT_STARTED;
	char path[FILES_PATH_BYTES], why[OUTPUT_WHY_BYTES];
	struct text decoders = {0};
	bool exists;
	int rc;

	rc = files_path(path, job->out_dir, ""); /* with the slash behind it, OUT is one of its parents */
	if (rc)
		return rc;
	if (!files_make_parents(path, 1))
		return fail(EXIT_IO, "%s: cannot make this folder: %s", job->out_dir, strerror(errno));
	rc = publish(job, "plan", job->plan->text.data, job->plan->text.bytes, &exists);
	if (!rc && exists) {
		/*
		 * This run continues, or another process was faster; then it must have the same
		 * plan.
		 */
		rc = output_examine(job->out_dir, job->plan, &state, why);
		if (!rc && state != OUTPUT_STARTED && state != OUTPUT_SEALED)
			rc = fail(state == OUTPUT_NEW ? EXIT_IO : EXIT_USAGE, "%s: holds %s; nothing was touched",
				  job->out_dir,
				  state == OUTPUT_NEW ? "a plan that is being removed; run again in a minute" : why);
	}
	if (!rc)
		rc = publish(job, SOURCES, now->data, now->bytes, &exists);
	if (!rc)
		rc = publish(job, "source", source, strlen(source), NULL);
	if (!rc && job->quarantine)
		rc = publish(job, "quarantine", job->quarantine, strlen(job->quarantine), NULL);
	if (!rc && job->exif_said)
		rc = publish(job, EXIF_SAID, "", 0, NULL);
	if (!rc && recipe_is_images(&job->plan->recipe)) {
		/* Of the process that made the plan: those of a later one do not replace them. */
		image_formats_write(&decoders);
		rc = publish(job, DECODERS, decoders.data, decoders.bytes, &exists);
		text_free(&decoders);
	}
	return rc ? rc : files_sync_dir(job->out_dir);
}

bool output_exif_said(const struct job *job)
{
	char path[FILES_PATH_BYTES];

	return files_path(path, job->state_dir, EXIF_SAID) == EXIT_DONE && access(path, F_OK) == 0;
}

/* ---- when sources were written ---- */

int output_check_sources(const struct job *job, const struct source_times *now)
{
	struct source_words words = {job->source, "the plan", job->remedy};
	struct source_times then = {0};
	char path[FILES_PATH_BYTES];
	struct listing l;
	bool found = false;
	int rc = list(job->out_dir, &l);

	if (!rc)
		rc = files_path(path, job->state_dir, SOURCES);
	if (!rc)
		rc = source_times_open(&then, job->plan, path, &found);
	/* A dataset that was stopped while it was being finished has them still there. */
	if (!rc && !found && l.has_manifest) {
		words.what = job->out_dir;
		rc = files_path(path, job->out_dir, KEPT_SOURCES);
		if (!rc)
			rc = source_times_open(&then, job->plan, path, &found);
	}
	if (!rc && found)
		rc = then.bytes == now->bytes ? source_times_compare(&then, now, job->plan, &words)
					      : source_times_refuse_damage(path);
	else if (!rc && (l.has_manifest || l.has_shards))
		rc = fail(EXIT_MISMATCH,
			  "%s: is missing, cut, or of another release, so nothing says whether the sources are still "
			  "those that were packed; if they are, add --trust-names; if not, %s",
			  path, job->remedy);
	source_times_close(&then);
	return rc;
}

int output_same_sources(const char *out_dir, const struct plan *plan, const struct source_times *now, bool *same)
{
	char path[FILES_PATH_BYTES];
	struct source_times then = {0};
	bool found = false;
	int rc = files_path(path, out_dir, STATE_DIR "/" SOURCES);

	if (!rc)
		rc = source_times_open(&then, plan, path, &found);
	*same = !rc && found && then.bytes == now->bytes && !memcmp(then.data, now->data, now->bytes);
	source_times_close(&then);
	return rc;
}

int output_open_times(const struct job *job, struct source_times *out)
{
	char path[FILES_PATH_BYTES];
	bool found = false;
	int rc = files_path(path, job->state_dir, SOURCES);

	if (!rc)
		rc = source_times_open(out, job->plan, path, &found);
	if (!rc && !found)
		rc = fail(EXIT_MISMATCH,
			  "%s: is missing, cut, or of another release, so nothing says whether the sources are those "
			  "of the plan; run the same `shardpack plan` command again to restore it, or add "
			  "--trust-names",
			  path);
	return rc;
}

int output_keep_times(const struct job *job)
{
	char from[FILES_PATH_BYTES], to[FILES_PATH_BYTES];
	int rc = files_path(from, job->state_dir, SOURCES);

	if (!rc)
		rc = files_path(to, job->out_dir, KEPT_SOURCES);
	if (rc)
		return rc;
	if (renameat(AT_FDCWD, from, AT_FDCWD, to) == 0)
		return files_sync_dir(job->out_dir);
	if (errno != ENOENT)
		return fail(EXIT_IO, "%s: cannot be moved to %s: %s", from, to, strerror(errno));
	if (access(job->state_dir, F_OK) == 0 && access(to, F_OK) != 0)
		warn("%s: is missing, so the dataset does not know when its sources were written", from);
	return EXIT_DONE;
}

static int load_place(const struct job *job, const char *name, char **out)
{
	char path[FILES_PATH_BYTES];
	struct text text = {0};
	bool found = false;
	int rc = files_path(path, job->state_dir, name);

	*out = NULL;
	if (!rc)
		rc = files_read(path, &text, &found);
	if (!rc && found)
		*out = text.data;
	else
		text_free(&text);
	return rc;
}

int output_load_decoders(const struct job *job, struct plan *plan)
{
	free(plan->decoders);
	plan->decoders = NULL;
	return load_place(job, DECODERS, &plan->decoders);
}

/* There is no plan: because there is a dataset, or none was made. */
static int load_none(const struct job *job, bool *sealed)
{
	char manifest[FILES_PATH_BYTES];
	struct shard_dataset *ds;
	struct shard_error err;
	struct stat st;
	int rc = files_path(manifest, job->out_dir, MANIFEST);

	if (rc)
		return rc;
	if (stat(manifest, &st) != 0)
		return fail(EXIT_USAGE, "%s: has no plan; make one with `shardpack plan SOURCE SRC -o DIR`",
			    job->out_dir);
	if (shard_dataset_open(&ds, job->out_dir, NULL, &err) != SHARD_OK)
		return fail_of_library(&err);
	shard_dataset_close(ds);
	*sealed = true;
	return EXIT_DONE;
}

int output_load(struct job *job, struct plan *plan, char **source, char **quarantine, bool *sealed)
{
	char path[FILES_PATH_BYTES];
	struct text text = {.shelf = plan->text.shelf};
	bool found = false;
	int rc = files_path(path, job->state_dir, "plan");

	*plan = (struct plan){.text.shelf = text.shelf};
	*source = *quarantine = NULL;
	*sealed = false;
	if (!rc)
		rc = refuse_link(job->state_dir);
	if (!rc)
		rc = files_read(path, &text, &found);
	if (!rc && !found)
		return load_none(job, sealed);
	if (!rc)
		rc = plan_parse(plan, &text, path);
	text_free(&text);
	if (!rc)
		rc = plan_check_versions(plan, path);
	if (!rc)
		job->exif_said = output_exif_said(job);
	if (!rc)
		rc = load_place(job, "source", source);
	if (!rc)
		rc = output_load_decoders(job, plan);
	return rc ? rc : load_place(job, "quarantine", quarantine);
}

/*
 * Remove what `is_ours` says from a folder, and what nobody here writes, and then the folder: other
 * machines do not need it any more.
 */
static int remove_all(const char *dir, bool (*is_ours)(const char *name), bool *gone)
{
	int fd, rc = open_own(dir, &fd);

	*gone = fd < 0;
	if (!rc && fd >= 0)
		rc = remove_names(dir, fd, is_ours);
	if (rc || *gone)
		return rc;
	rc = remove_temps(dir);
	if (rc)
		return rc;
	*gone = remove_folder(dir) || errno == ENOENT;
	if (!*gone && errno != ENOTEMPTY && errno != EEXIST)
		return fail(EXIT_IO, "%s: cannot remove this folder: %s", dir, strerror(errno));
	return EXIT_DONE;
}

static bool is_state_name(const char *name)
{
	return !strcmp(name, "plan") || !strcmp(name, "source") || !strcmp(name, SOURCES) ||
	       !strcmp(name, "quarantine") || !strcmp(name, EXIF_SAID) || !strcmp(name, DECODERS) ||
	       !strncmp(name, "receipts-", 9) || !strncmp(name, "claim-", 6) ||
	       !strncmp(name, "receipt-", 8); /* of releases before 0.2: one for each shard */
}

static bool is_output_name(const char *name)
{
	return !strcmp(name, MANIFEST) || !strcmp(name, KEPT_SOURCES) || !strcmp(name, LEFT_OUT) || is_shard_name(name);
}

int output_clear_state(const struct job *job)
{
	struct shard_error err;
	bool gone;
	int rc;

	if (job->receipts)
		receipt_files_let_go(job->receipts);
	if (shard_remove_temps(job->out_dir, NULL, &err) != SHARD_OK)
		return fail_of_library(&err);
	rc = remove_all(job->state_dir, is_state_name, &gone);
	if (!rc && !gone)
		warn("%s: not removed, because it is not empty; another process uses it, or it holds a file that is "
		     "not shardpack's",
		     job->state_dir);
	return rc ? rc : files_sync_dir(job->out_dir);
}

void output_give_up(const struct job *job, bool made, bool all_empty)
{
	struct listing l;
	int fd;

	if (list(job->out_dir, &l) != EXIT_DONE || l.absent || l.foreign[0] || l.has_manifest)
		return;
	if (l.has_shards) {
		fd = all_empty ? open(job->out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		if (fd < 0 || remove_names(job->out_dir, fd, is_shard_name) != EXIT_DONE)
			return;
	}
	if (output_clear_state(job) == EXIT_DONE && made && rmdir(job->out_dir) != 0)
		detail("%s: cannot remove this folder: %s", job->out_dir, strerror(errno));
}

/* Remove a folder that shardpack made.  With FOREIGN content it stays, which is an error. */
static int remove_dataset(const char *dir)
{
	char path[FILES_PATH_BYTES];
	struct listing l;
	bool gone = false;
	int rc = refuse_link(dir);

	if (!rc)
		rc = list(dir, &l);
	if (rc || l.absent)
		return rc;
	if (l.foreign[0])
		return fail(EXIT_USAGE, "%s: holds '%s', which is not part of a dataset; remove this folder yourself",
			    dir, l.foreign);
	/* The manifest goes first, so that a kill leaves no dataset with shards missing. */
	rc = files_path(path, dir, MANIFEST);
	if (!rc)
		rc = files_remove(path);
	if (!rc)
		rc = files_path(path, dir, STATE_DIR);
	if (!rc)
		rc = remove_all(path, is_state_name, &gone);
	if (!rc)
		rc = remove_all(dir, is_output_name, &gone);
	if (!rc && !gone)
		rc = fail(EXIT_IO, "%s: still in use by another process", dir);
	return rc;
}

/* ---- a dataset built beside another one, and put in its place at once ---- */

char *replace_work_dir(const char *out_absolute)
{
	const char *slash = strrchr(out_absolute, '/');

	return xasprintf("%.*s/.%s.new", (int)(slash - out_absolute), out_absolute, slash + 1);
}

int replace_prepare(const char *work_dir, const struct plan *plan, const struct source_times *now)
{
	enum output_state state;
	char why[OUTPUT_WHY_BYTES];
	bool same = true;
	int rc = refuse_link(work_dir);

	if (!rc)
		rc = output_examine(work_dir, plan, &state, why);
	if (rc)
		return rc;
	if (state == OUTPUT_FOREIGN)
		return fail(EXIT_USAGE, "%s: holds %s; --replace builds in this folder, so remove it first", work_dir,
			    why);
	if (state == OUTPUT_STARTED)
		rc = output_same_sources(work_dir, plan, now, &same);
	if (rc)
		return rc;
	if (state == OUTPUT_SEALED || (state == OUTPUT_STARTED && !same))
		snprintf(why, sizeof(why), "a dataset that may be of other sources");
	if (state == OUTPUT_OTHER || why[0]) {
		detail("%s: holds %s; removed", work_dir, why);
		return remove_dataset(work_dir);
	}
	return EXIT_DONE;
}

/* Two renames instead of one exchange. */
static int swap_in_steps(const char *out, const char *work_dir)
{
	char aside[FILES_PATH_BYTES];
	int rc = EXIT_DONE;

	if (snprintf(aside, sizeof(aside), "%s.old", work_dir) >= (int)sizeof(aside))
		return fail(EXIT_USAGE, "%s.old: this path is too long", work_dir);
	if (rename(out, aside) != 0)
		return fail(EXIT_IO, "%s: cannot move this folder aside: %s", out, strerror(errno));
	if (rename(work_dir, out) != 0) {
		rc = fail(EXIT_IO, "%s: cannot move this folder to %s: %s", work_dir, out, strerror(errno));
		if (rename(aside, out) != 0)
			rc = fail(EXIT_IO, "%s: the old %s lies here now, and cannot be moved back: %s", aside, out,
				  strerror(errno));
		return rc;
	}
	if (rename(aside, work_dir) != 0)
		return fail(EXIT_IO, "%s: the old dataset lies here, and cannot be moved: %s", aside, strerror(errno));
	return EXIT_DONE;
}

int replace_swap(const char *out_absolute, const char *work_dir)
{
	char parent[FILES_PATH_BYTES];
	int rc = EXIT_DONE;

	if (renameat2(AT_FDCWD, work_dir, AT_FDCWD, out_absolute, RENAME_EXCHANGE) != 0) {
		if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
			return fail(EXIT_IO, "%s: cannot replace %s: %s", work_dir, out_absolute, strerror(errno));
		rc = swap_in_steps(out_absolute, work_dir);
	}
	if (!rc)
		rc = files_path(parent, work_dir, "..");
	/* The new name is durable before anything of the old dataset goes. */
	if (!rc)
		rc = files_sync_dir(parent);
	return rc ? rc : remove_dataset(work_dir);
}

/* ---- which shards of a plan have their final names ---- */

#define PACE_SHARDS 100

/* "00005.shard", "123456.shard", but not "000005.shard" */
static void note_shard(void *context, const char *name)
{
	struct shard_list *l = context;
	size_t digits = strspn(name, "0123456789");
	uint64_t idx;

	if (digits < 5 || digits > 19 || (digits > 5 && name[0] == '0') || strcmp(name + digits, ".shard") != 0)
		return;
	idx = strtoull(name, NULL, 10);
	if (idx < l->shard_count) {
		l->there_count += !l->there[idx];
		l->there[idx] = true;
	}
}

int shard_list_look(struct shard_list *l, const char *out_dir, uint64_t shard_count)
{
	if (!l->there)
		l->there = xcalloc(shard_count, sizeof(*l->there));
	l->shard_count = shard_count;
	return files_list(out_dir, note_shard, l, NULL);
}

void shard_list_free(struct shard_list *l)
{
	free(l->there);
	*l = (struct shard_list){0};
}

void shard_list_missing(const struct shard_list *l, size_t bytes_max, struct text *out)
{
	uint64_t first, k = 0;

	while (k < l->shard_count) {
		if (l->there[k]) {
			k++;
			continue;
		}
		if (out->bytes > bytes_max) {
			text_add(out, ",...", 4);
			return;
		}
		for (first = k; k < l->shard_count && !l->there[k]; k++)
			;
		text_format(out, "%s%" PRIu64, out->bytes ? "," : "", first);
		if (k - first > 1)
			text_format(out, "-%" PRIu64, k - 1);
	}
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t shard_list_pace(const struct shard_list *l, const char *out_dir)
{
	uint64_t *times = xmalloc(l->there_count, sizeof(*times)), n = 0, first, pace = 0;

	for (uint64_t k = 0; k < l->shard_count && n < l->there_count; k++)
		n += l->there[k] && receipt_shard_time(out_dir, k, &times[n]); /* else it was removed just now */
	if (n > 1) {
		qsort(times, n, sizeof(*times), by_time);
		first = n > PACE_SHARDS ? n - PACE_SHARDS : 0;
		pace = (times[n - 1] - times[first]) / (n - 1 - first);
	}
	free(times);
	return pace;
}
