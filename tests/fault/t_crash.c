/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_crash.c - a packer is killed before and after every single file call, and half-way in every
 * write
 *
 * A child writes a shard, a note and the manifest, and kills itself at call n (see calls.h).  What
 * it leaves must be names that are absent or complete; its temporary files must go when asked; and
 * a second run must end with exactly the bytes of an undisturbed one.  In another sweep the child
 * is only stopped at call n: its temporary file is then not to be touched, and it must end well.
 * The control writes under the final name at once.
 *
 * LDFLAGS: -Wl,--wrap=open64,--wrap=openat64,--wrap=close,--wrap=dup,--wrap=pread64
 * LDFLAGS: -Wl,--wrap=pwrite64,--wrap=preadv64v2
 * LDFLAGS: -Wl,--wrap=fsync,--wrap=ftruncate64,--wrap=fallocate64,--wrap=renameat2,--wrap=renameat
 * LDFLAGS: -Wl,--wrap=linkat
 * LDFLAGS: -Wl,--wrap=unlinkat,--wrap=fstat64,--wrap=fstatat64,--wrap=flock,--wrap=mmap64
 * LDFLAGS: -Wl,--wrap=munmap
 * LDFLAGS: -Wl,--wrap=getrandom,--wrap=opendir,--wrap=readdir64,--wrap=closedir
 * LDFLAGS: -Wl,--wrap=sync_file_range
 * LDFLAGS: -Wl,--wrap=posix_fadvise64,--wrap=fcntl64,--wrap=ioctl,--wrap=shard_publish
 * TIMEOUT: 900
 */
#include <sys/wait.h>

#include "shard_pack.h"
#include "tests/fault/calls_wrapped.h"
#include "tests/fault/story.h"

static char work[4096];
static char ready[4096]; /* a sealed dataset whose shard is reused; empty: a shard is written */
static uint64_t records;
static const char *const final_name[] = {"00000.shard", "note", "dataset.manifest"};
#define FINALS 3
static struct story_file planned[FINALS];

/* The control: a note that is simply written. */
static bool writes_in_place;

WRAPPED(int, shard_publish, const char *path, const void *data, size_t bytes, int replace, struct shard_error *err)
{
	int fd;

	if (!writes_in_place)
		return __real_shard_publish(path, data, bytes, replace, err);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		return SHARD_E_IO;
	close(fd);
	return SHARD_OK;
}

/* What a packer does, and does again after a crash: files that are there already are fine. */
static int pack(struct shard_error *err)
{
	struct shard_written written;
	char path[8192];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", work, final_name[2]);
	if (*ready && !access(path, F_OK))
		return SHARD_OK;
	if (*ready) {
		snprintf(path, sizeof(path), "%s/%s", work, final_name[1]);
		rc = shard_publish(path, "a note", 6, 1, err);
		return rc ? rc : story_reuse(work, ready, "00000.shard", SHARD_REUSE_LINK, err);
	}
	snprintf(path, sizeof(path), "%s/%s", work, final_name[0]);
	rc = story_write(path, 0, records, false, &written, err);
	snprintf(path, sizeof(path), "%s/%s", work, final_name[1]);
	if (!rc)
		rc = shard_publish(path, "a note", 6, 1, err);
	snprintf(path, sizeof(path), "%s/%s", work, final_name[2]);
	if (!rc && access(path, F_OK))
		rc = story_seal(work, &written, 1, err);
	return rc;
}

/* A child packs under the plan.  The status of its end, or of its being stopped. */
static int pack_in_child(pid_t *pid)
{
	struct shard_error err;
	int status, rc;

	fflush(stdout);
	*pid = fork();
	if (!*pid) {
		calls_reset();
		calls_armed = true;
		rc = pack(&err);
		calls_armed = false;
		_exit(rc ? 1 : 0);
	}
	CHECK(*pid > 0);
	CHECK_EQ(waitpid(*pid, &status, WUNTRACED), *pid);
	return status;
}

/* NULL if every name is absent or complete, and all complete if `all`. */
static const char *judge(bool all)
{
	for (int i = 0; i < FINALS; i++) {
		int is = story_compare(work, final_name[i], &planned[i]);

		if (is < 0)
			return "a final name leads to half a file";
		if (all && !is)
			return "a file is missing";
	}
	return NULL;
}

/* After a crash, clean up and pack again. */
static const char *judge_crash(void)
{
	const char *wrong = judge(false);
	unsigned finals, temps;
	uint64_t removed = 0;
	struct shard_error err;
	int rc;

	story_count(work, &finals, &temps);
	if (wrong)
		return wrong;
	if (shard_remove_temps(work, &removed, &err) || removed != temps)
		return "temporary files cannot be removed";
	if (temps > 1)
		return "more than one temporary file was left";
	calls_reset();
	calls_armed = true; /* with nothing planned, but for syncs that would wait for the disk */
	rc = pack(&err);
	calls_armed = false;
	if (rc)
		return "the second run failed";
	story_count(work, &finals, &temps);
	return temps || finals != FINALS ? "the second run left other files than planned" : judge(true);
}

static unsigned long count_calls(unsigned habits)
{
	struct shard_error err;
	unsigned long count;

	story_folder(work, "work");
	calls_off();
	plan.habits = habits;
	calls_reset();
	calls_armed = true;
	CHECK_EQ(pack(&err), SHARD_OK);
	calls_armed = false;
	count = calls_total;
	for (int i = 0; i < FINALS; i++) {
		free(planned[i].data);
		planned[i] = story_load(work, final_name[i]);
		CHECK(planned[i].there);
	}
	return count;
}

/* Kill at every call, in one way; the first thing that is wrong, or NULL. */
static const char *sweep(enum how how, enum call call, unsigned long count, unsigned habits, unsigned long *killed)
{
	const char *wrong = NULL;

	for (unsigned long n = 1; !wrong && n <= count; n++) {
		pid_t pid;
		int status;

		STORY("habits 0x%x: killed %s call %lu%s", habits,
		      how == HOW_DIE_BEFORE  ? "before"
		      : how == HOW_DIE_AFTER ? "after"
					     : "half-way in",
		      n, call == CALL_PWRITE ? " that writes" : "");
		story_folder(work, "work");
		calls_off();
		plan = (__typeof__(plan)){.call = call, .nth = n, .how = how, .habits = habits};
		status = pack_in_child(&pid);
		calls_off();
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			return "the child was not killed";
		++*killed;
		wrong = judge_crash();
	}
	return wrong;
}

TEST(killed_at_every_call)
{
	static const unsigned habits[] = {0, NO_NOREPLACE, NO_NOREPLACE | NO_LINK};
	bool sanitized = getenv("VARIANT") && *getenv("VARIANT");
	unsigned long killed = 0;

	for (int h = 0; h < (sanitized ? 1 : 3); h++) {
		const char *wrong;
		unsigned long count;

		records = h || sanitized ? 8 : 180; /* 180 records are more than one write of 2 MiB */
		count = count_calls(habits[h]);
		wrong = sweep(HOW_DIE_BEFORE, CALL_ANY, count, habits[h], &killed);
		if (!wrong)
			wrong = sweep(HOW_DIE_AFTER, CALL_ANY, count, habits[h], &killed);
		if (!wrong)
			wrong = sweep(HOW_DIE_HALF, CALL_PWRITE, records > 8 ? 4 : 3, habits[h], &killed);
		if (wrong)
			test_fail(__FILE__, __LINE__, "%s", wrong);
	}
	printf("%lu kills, each followed by the bytes of an undisturbed run\n", killed);
}

TEST(killed_while_reusing)
{
	static const unsigned habits[] = {0, NO_LINK, NO_LINK | HAS_CLONE};
	unsigned long killed = 0;

	records = 8;
	count_calls(0);
	story_folder(ready, "ready");
	for (int i = 0; i < FINALS; i++) {
		char path[8192];
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", ready, final_name[i]);
		f = fopen(path, "wb");
		CHECK(f && fwrite(planned[i].data, 1, planned[i].bytes, f) == planned[i].bytes && !fclose(f));
	}
	for (int h = 0; h < 3; h++) {
		unsigned long count = count_calls(habits[h]);
		const char *wrong = sweep(HOW_DIE_BEFORE, CALL_ANY, count, habits[h], &killed);

		if (!wrong)
			wrong = sweep(HOW_DIE_AFTER, CALL_ANY, count, habits[h], &killed);
		if (!wrong && habits[h] == NO_LINK)
			wrong = sweep(HOW_DIE_HALF, CALL_PWRITE, 3, habits[h], &killed);
		if (wrong)
			test_fail(__FILE__, __LINE__, "%s", wrong);
	}
	ready[0] = 0;
	printf("%lu kills while a shard was linked, copied or cloned\n", killed);
}

TEST(stopped_at_every_call)
{
	unsigned long count;

	records = 8;
	count = count_calls(0);
	for (unsigned long n = 1; n <= count; n++) {
		struct shard_error err;
		const char *wrong;
		pid_t pid;
		int status;

		STORY("stopped before call %lu", n);
		story_folder(work, "work");
		plan = (__typeof__(plan)){.call = CALL_ANY, .nth = n, .how = HOW_STOP};
		status = pack_in_child(&pid);
		calls_off();
		CHECK(WIFSTOPPED(status));
		CHECK_EQ(shard_remove_temps(work, NULL, &err), SHARD_OK);
		CHECK_EQ(kill(pid, SIGCONT), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
		wrong = judge(true);
		if (wrong)
			test_fail(__FILE__, __LINE__, "%s", wrong);
	}
	printf("%lu stops, with another packer cleaning up meanwhile\n", count);
}

TEST(writing_in_place_is_noticed)
{
	unsigned long killed = 0, count;
	const char *wrong;

	records = 8;
	count = count_calls(0);
	writes_in_place = true;
	wrong = sweep(HOW_DIE_BEFORE, CALL_ANY, count, 0, &killed);
	writes_in_place = false;
	CHECK_STR(wrong, "a final name leads to half a file");
}

TEST_MAIN()
