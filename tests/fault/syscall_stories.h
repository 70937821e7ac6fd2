/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall_stories.h - what t_syscalls.c disturbs: the stories, what may be true after each, and
 * broken publishers
 *
 * A story is told in a folder that was prepared for it, by `tell`; `judge` looks at the files that
 * are there afterwards.
 */
#ifndef TESTS_FAULT_SYSCALL_STORIES_H
#define TESTS_FAULT_SYSCALL_STORIES_H

#include "libshard/base/error.h"
#include "libshard/io/io.h"
#include "libshard/write/write.h"
#include "shard_pack.h"
#include "tests/fault/calls_wrapped.h"
#include "tests/fault/story.h"

/* ---- broken twins ---- */

static enum twin {
	TWIN_NONE,
	TWIN_SYNC_IGNORED, /* what fsync says is not looked at */
	TWIN_SYNC_RETRIED, /* a failed fsync is called again, and believed */
	TWIN_REPLACES,	   /* rename replaces what is there */
	TWIN_FOLDER,	   /* the folder is not synced */
	TWIN_NO_READ_BACK, /* writes are believed */
	TWIN_SHORT_WRITE,  /* a short write is taken for a whole one */
	TWIN_LITTERS,	   /* temporary files stay */
	TWIN_FDS,	   /* files stay open */
	TWIN_ORDER,	   /* names of reused shards are not durable before the manifest */
	TWIN_BELOW,	   /* those in a folder below are not */
	TWINS
} twin;
static const char *const twin_name[TWINS] = {
	"",
	"ignores a failed fsync",
	"retries a failed fsync",
	"replaces what is there",
	"does not sync the folder",
	"does not read back",
	"takes a short write for a whole one",
	"leaves temporary files",
	"leaves files open",
	"publishes the manifest before the names of shards",
	"publishes the manifest before the names of shards in a folder below",
};

WRAPPED(int, file_temp_sync, struct file_temp *t, struct shard_error *err)
{
	int rc = __real_file_temp_sync(t, err);

	if (rc && twin == TWIN_SYNC_RETRIED)
		rc = __real_file_temp_sync(t, err);
	return twin == TWIN_SYNC_IGNORED ? SHARD_OK : rc;
}

WRAPPED(void, file_temp_discard, struct file_temp *t)
{
	if (twin == TWIN_LITTERS)
		t->temp[0] = 0;
	__real_file_temp_discard(t);
}

WRAPPED(int, file_write_at, int fd, const void *data, size_t bytes, uint64_t offset, const char *path,
	struct shard_error *err)
{
	if (twin == TWIN_SHORT_WRITE)
		return __wrap_pwrite64(fd, data, bytes, (off_t)offset) < 0
			       ? error_os(err, errno, "%s: writing at a place", path)
			       : SHARD_OK;
	return __real_file_write_at(fd, data, bytes, offset, path, err);
}

WRAPPED(void, file_close, int fd)
{
	if (twin != TWIN_FDS)
		__real_file_close(fd);
}

WRAPPED(int, file_make_durable, const char *dir, struct shard_error *err)
{
	return twin == TWIN_ORDER ? SHARD_OK : __real_file_make_durable(dir, err);
}

WRAPPED(int, reuse_sync, const char *path, struct shard_error *err)
{
	return twin == TWIN_BELOW ? SHARD_OK : __real_reuse_sync(path, err);
}

/* ---- stories ---- */

static char work[4096];	 /* where a story writes; emptied before each run */
static char ready[4096]; /* a sealed dataset, to read */
static uint64_t records; /* of a shard */
static bool sanitized;	 /* which takes its time: a part of it all will do */
static bool quick;	 /* under a sanitizer, or for the habits of file systems: fewer codes */

static const char *const final_name[] = {"00000.shard", "note", "dataset.manifest"};
#define FINALS 3
/* what an undisturbed run leaves; what was there before, in the story of taken names */
static struct story_file planned[FINALS];

static const char *path_of(const char *dir, const char *name)
{
	static char path[8192];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int tell_write(struct shard_error *err)
{
	struct shard_written written;
	bool skip = twin == TWIN_NO_READ_BACK || twin == TWIN_SHORT_WRITE;
	int rc = story_write(path_of(work, final_name[0]), 0, records, skip, &written, err);

	if (!rc)
		rc = shard_publish(path_of(work, final_name[1]), "a note", 6, 0, err);
	return rc ? rc : story_seal(work, &written, 1, err);
}

/* Every name is taken by somebody else's file: nothing may be written at all. */
static int tell_taken(struct shard_error *err)
{
	struct shard_written written;
	int rc = story_write(path_of(work, final_name[0]), 0, records, false, &written, err), other;

	if (rc == SHARD_E_EXISTS) {
		other = shard_publish(path_of(work, final_name[1]), "a note", 6, 0, err);
		rc = other == SHARD_E_EXISTS ? SHARD_E_EXISTS : other;
	}
	return rc;
}

/* The names are taken by the same shard and, with replace, an older note. */
static int tell_again(struct shard_error *err)
{
	struct shard_written written;
	int rc = story_write(path_of(work, final_name[0]), 0, records, false, &written, err);

	if (!rc)
		rc = written.already ? shard_publish(path_of(work, final_name[1]), "a note", 6, 1, err) : STORY_WRONG;
	return rc;
}

static int tell_read(struct shard_error *err)
{
	return story_read(ready, 1, records, 1, err);
}

static int tell_hash(struct shard_error *err)
{
	return story_seal(work, NULL, 1, err);
}

/* A dataset of the shard of `ready`: linked, or as habits allow. */
static int tell_reuse(struct shard_error *err)
{
	return story_reuse(work, ready, final_name[0], SHARD_REUSE_LINK, err);
}

/* A file was there before, and is not durable. */
static void calls_was_there(const char *path)
{
	struct stat st;
	struct call_file *f;

	if (__real_fstatat64(AT_FDCWD, path, &st, 0))
		abort();
	f = calls_file(&st);
	f->dirty = f->has_name = true;
}

/* A copy that somebody made, and that no power cut was to come after. */
static int tell_reuse_there(struct shard_error *err)
{
	calls_was_there(path_of(work, final_name[0]));
	return tell_reuse(err);
}

/* As shards that are appended: in a folder below. */
#define BELOW	    "below"
#define BELOW_SHARD BELOW "/00000.shard"
static struct story_file planned_below; /* the manifest */

static int tell_reuse_below(struct shard_error *err)
{
	return story_reuse(work, ready, BELOW_SHARD, SHARD_REUSE_LINK, err);
}

static int tell_reuse_clone(struct shard_error *err)
{
	return story_reuse(work, ready, final_name[0], SHARD_REUSE_CLONE, err);
}

/* A dead writer's file goes, a living one's stays, as does what only looks like one. */
#define DEAD  ".tmp.a.shard.0123456789abcdef"
#define ALIVE ".tmp.b.shard.0123456789abcdef"
static int alive = -1;

static int tell_clean(struct shard_error *err)
{
	uint64_t count = 0;
	int rc = shard_remove_temps(work, &count, err);

	return rc						 ? rc
	       : count == 1 && access(path_of(work, DEAD), F_OK) ? SHARD_OK
	       : calls_hit					 ? SHARD_OK
								 : STORY_WRONG;
}

/* More than a spool keeps in memory, and back. */
struct replay {
	uint64_t at;
	bool wrong;
};

static uint8_t spool_byte(uint64_t at)
{
	return (uint8_t)(at * 2654435761u >> 13);
}

static int on_spooled(void *context, const uint8_t *data, size_t bytes, struct shard_error *err)
{
	struct replay *r = context;

	(void)err;
	for (size_t i = 0; i < bytes; i += 509)
		r->wrong = r->wrong || data[i] != spool_byte(r->at + i);
	r->at += bytes;
	return SHARD_OK;
}

static int tell_spool(struct shard_error *err)
{
	enum { BYTES = (4 << 20) + 12345 };
	static uint8_t data[BYTES];
	struct spool s = SPOOL_EMPTY;
	struct replay r = {0, false};
	const char *beside = path_of(work, "spooled.shard");
	int rc;

	for (size_t i = 0; data[BYTES - 1] != spool_byte(BYTES - 1) && i < BYTES; i++)
		data[i] = spool_byte(i);
	rc = spool_add(&s, data, BYTES, beside, err);
	if (!rc)
		rc = spool_play(&s, on_spooled, &r, beside, err);
	spool_free(&s);
	return rc ? rc : r.wrong || r.at != BYTES ? STORY_WRONG : SHARD_OK;
}

/* So much that writeback is asked for on the way. */
static int tell_large(struct shard_error *err)
{
	static uint8_t data[11 << 20];
	struct file_temp t;
	int rc = file_temp_create(&t, path_of(work, "large"), err);

	if (!rc)
		rc = file_temp_reserve(&t, 4 * sizeof(data), err);
	for (int i = 0; !rc && i < 3; i++)
		rc = file_temp_write(&t, data, sizeof(data), err);
	if (!rc)
		rc = file_temp_sync(&t, err);
	file_temp_discard(&t);
	return rc;
}

/* ---- before and after ---- */

static void put(const char *name, const void *data, size_t bytes)
{
	FILE *f = fopen(path_of(work, name), "wb");

	CHECK(f && fwrite(data, 1, bytes, f) == bytes);
	fclose(f);
}

static void nothing_before(void)
{
}

static void others_before(void)
{
	for (int i = 0; i < FINALS; i++)
		put(final_name[i], "somebody else's", 15);
}

static void same_before(void)
{
	put(final_name[0], planned[0].data, planned[0].bytes);
	put(final_name[1], "older!", 6);
}

static void shard_before(void)
{
	put(final_name[0], planned[0].data, planned[0].bytes);
}

static void folder_before(void)
{
	CHECK_EQ(mkdir(path_of(work, BELOW), 0755), 0);
}

static void temps_before(void)
{
	others_before();
	put(DEAD, "dead", 4);
	put(ALIVE, "alive", 5);
	if (alive >= 0)
		close(alive);
	alive = open(path_of(work, ALIVE), O_RDWR);
	CHECK_EQ(flock(alive, LOCK_EX | LOCK_NB), 0);
}

/* Finals are absent or as planned, and all there if the story ended well. */
static const char *judge_planned(int rc, int first, int last)
{
	for (int i = first; i <= last; i++) {
		int is = story_compare(work, final_name[i], &planned[i]);

		if (is < 0)
			return "a final name leads to other bytes than planned";
		if (!rc && !is)
			return "OK, and the file is not there";
	}
	return NULL;
}

static const char *judge_write(int rc)
{
	return judge_planned(rc, 0, 2);
}

static const char *judge_others(int rc)
{
	static const struct story_file others = {(uint8_t *)(uintptr_t) "somebody else's", 15, true};

	for (int i = 0; i < FINALS; i++)
		if (story_compare(work, final_name[i], &others) != 1)
			return "somebody else's file was touched";
	return rc ? NULL : "OK, though the name was taken";
}

static const char *judge_again(int rc)
{
	static const struct story_file older = {(uint8_t *)(uintptr_t) "older!", 6, true};

	if (story_compare(work, final_name[0], &planned[0]) != 1)
		return "the shard that was there was touched";
	if (!rc || story_compare(work, final_name[1], &older) != 1)
		return story_compare(work, final_name[1], &planned[1]) == 1 ? NULL : "the note is neither old nor new";
	return NULL;
}

static const char *judge_hash(int rc)
{
	if (story_compare(work, final_name[0], &planned[0]) != 1)
		return "the shard was touched";
	return judge_planned(rc, 2, 2);
}

static const char *judge_reuse(int rc)
{
	const char *wrong = judge_planned(rc, 0, 0);

	if (!wrong && story_compare(ready, final_name[0], &planned[0]) != 1)
		wrong = "the shard that was reused was touched";
	return wrong ? wrong : judge_planned(rc, 2, 2);
}

/* No temporary file either: the folder goes. */
static const char *judge_below(int rc)
{
	int shard = story_compare(work, BELOW_SHARD, &planned[0]);
	int manifest = story_compare(work, final_name[2], &planned_below);

	unlink(path_of(work, BELOW_SHARD));
	if (rmdir(path_of(work, BELOW)) && !(plan.call == CALL_UNLINKAT && calls_hit))
		return "more than the shard is in the folder below";
	if (shard < 0 || manifest < 0)
		return "a final name leads to other bytes than planned";
	return !rc && (!shard || !manifest) ? "OK, and the file is not there" : NULL;
}

static void prepare_below(void)
{
	struct shard_error err;

	story_folder(work, "work");
	folder_before();
	CHECK_EQ(tell_reuse_below(&err), SHARD_OK);
	free(planned_below.data);
	planned_below = story_load(work, final_name[2]);
	CHECK(planned_below.there && !judge_below(SHARD_OK));
}

static const char *judge_clean(int rc)
{
	const char *wrong = judge_others(-1);

	(void)rc;
	if (!wrong && access(path_of(work, ALIVE), F_OK) && !(plan.call == CALL_FLOCK && plan.how == HOW_FAKE))
		wrong = "a living writer's file was removed";
	unlink(path_of(work, DEAD));
	unlink(path_of(work, ALIVE));
	return wrong;
}

static const char *judge_nothing(int rc)
{
	(void)rc;
	return NULL;
}

static const struct story {
	const char *name;
	void (*before)(void);
	int (*tell)(struct shard_error *err);
	const char *(*judge)(int rc);
	int well;	/* what an undisturbed run says */
	enum call only; /* CALL_ANY: all of them */
	/* a read that gave nothing and said it did would just be other bytes: not for this story */
	bool reads;
	unsigned habits_from; /* habits[] that it is told with: the first `habits_from`, and one more */
} stories[] = {
	{"write and seal", nothing_before, tell_write, judge_write, SHARD_OK, CALL_ANY, false, 99},
	{"names are taken", others_before, tell_taken, judge_others, SHARD_E_EXISTS, CALL_ANY, false, 4},
	{"reuse", nothing_before, tell_reuse, judge_reuse, SHARD_OK, CALL_ANY, false, 99},
	{"reuse in a folder below", folder_before, tell_reuse_below, judge_below, SHARD_OK, CALL_ANY, false, 1},
	{"reuse what is there", shard_before, tell_reuse_there, judge_reuse, SHARD_OK, CALL_ANY, true, 1},
	{"reuse by cloning", nothing_before, tell_reuse_clone, judge_reuse, SHARD_OK, CALL_ANY, false, 99},
	{"names hold the same", same_before, tell_again, judge_again, SHARD_OK, CALL_ANY, false, 4},
	{"seal by reading", shard_before, tell_hash, judge_hash, SHARD_OK, CALL_ANY, true, 1},
	{"open, read, verify", nothing_before, tell_read, judge_nothing, SHARD_OK, CALL_ANY, true, 99},
	{"remove temporary files", temps_before, tell_clean, judge_clean, SHARD_OK, CALL_ANY, true, 1},
	{"spool", nothing_before, tell_spool, judge_nothing, SHARD_OK, CALL_ANY, true, 99},
	{"large file", nothing_before, tell_large, judge_nothing, SHARD_OK, CALL_SYNC_RANGE, false, 1},
};
#define TWIN_STORIES 4 /* the first: broken twins are noticed by them */
#define STORIES	     (sizeof(stories) / sizeof(stories[0]))

#endif
