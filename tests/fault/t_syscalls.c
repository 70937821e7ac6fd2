/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_syscalls.c - every file call of the library goes wrong in turn, in every way that fits it
 *
 * For each story, each call in it, each occurrence n and each fault, the story is told once more
 * with that one going wrong (see calls.h), and judged: a final name is absent or leads to exactly
 * the bytes of an undisturbed run; OK is only said if it is there; an error names the file and what
 * was tried; no temporary file, descriptor or map is left; no sync is retried; nothing has a name
 * before it is durable.  The same on file systems that lack what others have.  The controls are
 * publishers with one bug each, and the judge must notice every one.
 *
 * LDFLAGS: -Wl,--wrap=open64,--wrap=openat64,--wrap=close,--wrap=dup,--wrap=pread64
 * LDFLAGS: -Wl,--wrap=pwrite64,--wrap=preadv64v2
 * LDFLAGS: -Wl,--wrap=fsync,--wrap=ftruncate64,--wrap=fallocate64,--wrap=renameat2,--wrap=renameat
 * LDFLAGS: -Wl,--wrap=linkat
 * LDFLAGS: -Wl,--wrap=unlinkat,--wrap=fstat64,--wrap=fstatat64,--wrap=flock,--wrap=mmap64
 * LDFLAGS: -Wl,--wrap=munmap
 * LDFLAGS: -Wl,--wrap=getrandom,--wrap=opendir,--wrap=readdir64,--wrap=closedir
 * LDFLAGS: -Wl,--wrap=sync_file_range
 * LDFLAGS: -Wl,--wrap=posix_fadvise64,--wrap=fcntl64,--wrap=ioctl
 * LDFLAGS: -Wl,--wrap=file_temp_sync,--wrap=file_temp_discard,--wrap=file_write_at
 * LDFLAGS: -Wl,--wrap=file_close,--wrap=file_make_durable,--wrap=reuse_sync
 * TIMEOUT: 900
 * TAKES: 50
 */
#include "shard_pack.h"
#include "tests/fault/syscall_stories.h"

/* ---- telling and judging ---- */

struct outcome {
	int rc;
	const char *wrong; /* NULL for nothing */
	struct shard_error err;
};

static bool message_good(const struct outcome *o)
{
	const char *m = o->err.message, *code = plan.how == HOW_FAIL ? strerror(plan.code) : "";
	/* what these were for can fail otherwise, too */
	bool direct = plan.call != CALL_FSTAT && plan.call != CALL_FSTATAT;

	if (o->err.status != o->rc || strchr(m, '\n') || !(strstr(m, work) || strstr(m, ready)) ||
	    strlen(m) < strlen(work) + 20)
		return false;
	return plan.how != HOW_FAIL || !direct || o->rc != SHARD_E_IO ||
	       (strstr(m, code) && o->err.os_code == plan.code);
}

/* Faults that a file system may answer at any time, and that must not show. */
static bool must_not_show(void)
{
	if (plan.call != CALL_PREAD && plan.call != CALL_PWRITE && plan.call != CALL_FALLOCATE &&
	    plan.call != CALL_GETRANDOM)
		return false;
	return (plan.how == HOW_FAIL && plan.code == EINTR) ||
	       (plan.call != CALL_GETRANDOM && (plan.how == HOW_HALF || plan.how == HOW_BYTE));
}

static struct outcome tell(const struct story *s)
{
	struct outcome o = {.rc = 0};
	unsigned fds, finals, temps;
	unsigned long maps;

	story_folder(work, "work");
	s->before();
	fds = story_open_fds();
	calls_reset();
	maps = calls_seen[CALL_MMAP] - calls_seen[CALL_MUNMAP];
	calls_armed = true;
	o.rc = s->tell(&o.err);
	calls_armed = false;
	maps = calls_seen[CALL_MMAP] - calls_seen[CALL_MUNMAP] - maps;
	if (calls_hit && plan.call == CALL_MMAP && plan.how == HOW_FAIL)
		maps -= plan.on ? maps : 1;
	o.wrong = s->judge(o.rc);
	if (!o.wrong && story_open_fds() != fds)
		o.wrong = "a descriptor is left";
	if (!o.wrong && maps)
		o.wrong = "a map is left";
	story_count(work, &finals, &temps);
	if (!o.wrong && temps && !(plan.call == CALL_UNLINKAT && calls_hit))
		o.wrong = "a temporary file is left";
	if (!o.wrong)
		o.wrong = calls_broken;
	if (!o.wrong && !o.rc && calls_dirty(true))
		o.wrong = "OK before the folder was durable";
	if (!o.wrong && o.rc && !message_good(&o))
		o.wrong = "the message does not say what happened to which file";
	if (!o.wrong && o.rc != s->well && (!calls_hit || must_not_show()))
		o.wrong = "another result than undisturbed";
	return o;
}

struct fault {
	enum how how;
	int code;
	bool on;
};

/* The faults that fit a call. */
static unsigned faults_of(const struct story *s, enum call c, struct fault out[64])
{
	static const int codes[] = {EIO, ENOSPC, EINTR, EDQUOT, EAGAIN, EROFS, ESTALE};
	bool names = c == CALL_RENAMEAT || c == CALL_RENAMEAT2 || c == CALL_LINKAT || c == CALL_UNLINKAT;
	bool bytes = c == CALL_PREAD || c == CALL_PWRITE, fake = true;
	unsigned n = 0;

	for (size_t i = 0; i < (quick ? 3 : sizeof(codes) / sizeof(codes[0])); i++) {
		out[n++] = (struct fault){HOW_FAIL, codes[i], false};
		if (codes[i] == EIO || codes[i] == ENOSPC || codes[i] == EROFS)
			out[n++] = (struct fault){HOW_FAIL, codes[i], true};
		if (names && i < 3)
			out[n++] = (struct fault){HOW_LIE, codes[i], false};
	}
	if (names)
		out[n++] = (struct fault){HOW_LIE, ENOENT,
					  false}; /* what a server says to a request that it had already done */
	if (bytes || c == CALL_GETRANDOM) {
		out[n++] = (struct fault){HOW_HALF, 0, false};
		out[n++] = (struct fault){HOW_BYTE, 0, false};
		out[n++] = (struct fault){HOW_ZERO, 0, false};
		out[n++] = (struct fault){HOW_ZERO, 0, true};
	}
	if (bytes)
		out[n++] = (struct fault){HOW_HALF, 0, true};
	if (c == CALL_OPEN || c == CALL_OPENAT || c == CALL_DUP || c == CALL_MMAP || c == CALL_OPENDIR ||
	    c == CALL_READDIR)
		fake = false; /* they give something that cannot be made up */
	if (c == CALL_FSTAT || c == CALL_FSTATAT || c == CALL_CLOSE || c == CALL_MUNMAP || c == CALL_CLOSEDIR)
		fake = false;
	if (fake && !(s->reads && (c == CALL_PREAD || c == CALL_PWRITE || c == CALL_FLOCK || c == CALL_UNLINKAT)))
		out[n++] = (struct fault){HOW_FAKE, 0, false};
	return n;
}

static unsigned long seen_ever[CALLS];

/*
 * All faults of all occurrences of all calls in a story; the first wrong outcome ends it.
 * `injected` counts.  Samples of the page cache (preadv2) are many and alike, so that some of them
 * stand for all.
 */
static struct outcome sweep(const struct story *s, unsigned habits, unsigned long *injected)
{
	unsigned long seen[CALLS];
	struct outcome o;
	struct fault f[64];

	calls_off();
	plan.habits = habits;
	STORY("%s, habits 0x%x", s->name, habits);
	o = tell(s);
	if (!o.wrong && o.rc != s->well)
		o.wrong = "the undisturbed run failed";
	memcpy(seen, calls_seen, sizeof(seen));
	for (int c = 0; !o.wrong && c < CALLS; c++) {
		unsigned faults = faults_of(s, (enum call)c, f);

		seen_ever[c] += seen[c];
		if (s->only != CALL_ANY && s->only != (enum call)c)
			continue;
		for (unsigned long n = 1; n <= seen[c];
		     n += sanitized || c == CALL_PREADV2 ? 1 + seen[c] / (sanitized ? 3 : 16) : 1)
			for (unsigned i = 0; !o.wrong && i < faults; i++) {
				plan = (__typeof__(plan)){(enum call)c, n, f[i].on, f[i].how, f[i].code, habits};
				STORY("%s, habits 0x%x: %s number %lu%s goes wrong (%d, %s)", s->name, habits,
				      calls_wrapped[c], n, f[i].on ? " and on" : "", f[i].how,
				      f[i].code ? strerror(f[i].code) : "-");
				o = tell(s);
				*injected += calls_hit;
			}
	}
	calls_off();
	return o;
}

static void prepare(uint64_t count)
{
	struct shard_written written;
	struct shard_error err;

	calls_off();
	twin = TWIN_NONE;
	records = count;
	sanitized = quick = getenv("VARIANT") && *getenv("VARIANT");
	story_folder(ready, "ready");
	if (story_write(path_of(ready, final_name[0]), 0, records, false, &written, &err) ||
	    shard_publish(path_of(ready, final_name[1]), "a note", 6, 0, &err) || story_seal(ready, &written, 1, &err))
		test_fail(__FILE__, __LINE__, "%s", err.message);
	for (int i = 0; i < FINALS; i++) {
		free(planned[i].data);
		planned[i] = story_load(ready, final_name[i]);
	}
	prepare_below();
}

TEST(every_call_fails_in_every_way)
{
	/* The first is for large records, which take several calls, the second for all errors. */
	static const unsigned habits[] = {
		0,
		0,
		NO_NOREPLACE,
		NO_NOWAIT | NO_DIRECT,
		NO_NOREPLACE | NO_LINK,
		NOT_CACHED,
		NO_DIRECT | NOT_CACHED,
		NO_TMPFILE | NO_FLOCK | NO_FALLOCATE | NO_DIRECT | NOT_CACHED,
		ODD_DIRECT,
		HAS_CLONE | NO_LINK,
	};
	unsigned long injected = 0;

	prepare(8);
	for (size_t h = sanitized; h < sizeof(habits) / sizeof(habits[0]); h += sanitized ? 3 : 1) {
		prepare(h ? 20 : 180); /* 180 records are more than one write of 2 MiB */
		quick = quick || h != 1;
		for (size_t i = 0; i < STORIES; i++) {
			struct outcome o;
			unsigned long before = injected;

			if (h > stories[i].habits_from)
				continue;
			o = sweep(&stories[i], habits[h], &injected);
			if (o.wrong)
				test_fail(__FILE__, __LINE__, "%s (result %d: %s)", o.wrong, o.rc,
					  o.rc ? o.err.message : "-");
			printf("%-24s habits 0x%02x  %5lu faults\n", stories[i].name, habits[h], injected - before);
		}
	}
	for (int c = 0; c < CALLS; c++) {
		STORY("%s", calls_wrapped[c]);
		CHECK(seen_ever[c] > 0);
	}
	printf("%lu faults in %d calls%s\n", injected, CALLS,
	       sanitized ? "; under a sanitizer not in every combination" : "");
}

TEST(broken_twins_are_noticed)
{
	for (int t = TWIN_NONE; t < TWINS; t++) {
		unsigned long injected = 0;
		struct outcome o = {.wrong = NULL};

		prepare(8);
		quick = true;
		twin = (enum twin)t;
		calls_replace = twin == TWIN_REPLACES;
		calls_forget_folders = twin == TWIN_FOLDER;
		for (size_t i = 0; !o.wrong && i < TWIN_STORIES; i++)
			o = sweep(&stories[i], 0, &injected);
		for (int fd = 3; t == TWIN_FDS && fd < 1024; fd++)
			close(fd);
		twin = TWIN_NONE; /* whose descriptors are gone, alive's among them */
		alive = t == TWIN_FDS ? -1 : alive;
		calls_replace = calls_forget_folders = false;
		STORY("a library that %s", t ? twin_name[t] : "is right");
		if (!!o.wrong != !!t)
			test_fail(__FILE__, __LINE__, "%s", o.wrong ? o.wrong : "nothing was noticed");
		if (t)
			printf("a library that %s: noticed: %s\n", twin_name[t], o.wrong);
	}
}

/* A shard of an image that is only read, as of squashfs, is copied. */
TEST(where_there_is_no_fsync_shards_are_copied)
{
	static const int codes[] = {EINVAL, EROFS};

	prepare(8);
	for (size_t i = 0; i < 2; i++) {
		struct outcome o;

		plan = (__typeof__(plan)){
			.call = CALL_FSYNC, .nth = 1, .how = HOW_FAIL, .code = codes[i], .habits = NO_LINK};
		o = tell(&stories[2]);
		CHECK(calls_hit);
		if (o.wrong || o.rc)
			test_fail(__FILE__, __LINE__, "%s: %s", o.wrong, o.rc ? o.err.message : "-");
	}
	calls_off();
}

/* The library's other calls of the C library, which touch no file. */
static bool harmless(const char *name)
{
	static const char *const names[] = {"memcpy", "memset", "memcmp", "memmove", "strlen", "strcmp", "strncmp",
					    "strrchr", "strchr", "snprintf", "dirfd", "getpid", "raise",
					    "_GLOBAL_OFFSET_TABLE_", "madvise" /* advice on memory */,
					    "nanosleep" /* between tries; a shorter pause is as good */,
					    /* they ask, and without an answer things are slower: */
					    "getrusage", "mincore", "statx", "statfs64", "statfs", "fopen", "fopen64",
					    "fgets", "fclose", "strcspn", "strstr", "access", "stat64"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (int c = 0; c < CALLS; c++)
		if (!strcmp(name, calls_wrapped[c]))
			return true;
	return !strncmp(name, "__", 2) /* compilers and sanitizers */ ||
	       !strncmp(name, "io_uring_", 9) /* tests/load/t_paths.c */ || !strncmp(name, "pthread_", 8) ||
	       !strncmp(name, "sig", 3);
}

/* What io/ calls is known here: a new call must be added to calls.h, or be harmless. */
TEST(no_call_is_missed)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	char command[8192], line[512];
	unsigned names = 0;
	FILE *f;

	snprintf(command, sizeof(command),
		 "find '%s'/libshard -name '*.o' | xargs nm | awk '$2 ~ /[TRDB]/ {own[$3] = 1} END {for (n in own) "
		 "print n}' | sort "
		 ">'%s/own'; nm -u '%s'/libshard/io/*.o | awk 'NF == 2 {print $2}' | sort -u | comm -23 - '%s/own'",
		 build, story_tmp(), build, story_tmp());
	f = popen(command, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		STORY("libshard/io calls %.99s, which calls.h does not know", line);
		CHECK(harmless(line));
		names++;
	}
	pclose(f);
	CHECK(names > 20);
}

TEST_MAIN()
