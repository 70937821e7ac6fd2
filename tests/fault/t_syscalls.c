/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_syscalls.c - every file call of the library goes wrong in turn, in every way that fits it
 *
 * For each story, each call in it, each occurrence n and each fault, the story is told once more with that one going
 * wrong (see calls.h), and judged: a final name is absent or leads to exactly the bytes of an undisturbed run; OK is
 * only said if it is there; an error names the file and what was tried; no temporary file, descriptor or map is left; no sync
 * is retried; nothing has a name before it is durable.  The same on file systems that lack what others have.
 * The controls are publishers with one bug each, and the judge must notice every one.
 *
 * LDFLAGS: -Wl,--wrap=open64,--wrap=openat64,--wrap=close,--wrap=dup,--wrap=pread64,--wrap=pwrite64,--wrap=preadv64v2
 * LDFLAGS: -Wl,--wrap=fsync,--wrap=ftruncate64,--wrap=fallocate64,--wrap=renameat2,--wrap=renameat,--wrap=linkat
 * LDFLAGS: -Wl,--wrap=unlinkat,--wrap=fstat64,--wrap=fstatat64,--wrap=flock,--wrap=mmap64,--wrap=munmap
 * LDFLAGS: -Wl,--wrap=getrandom,--wrap=opendir,--wrap=readdir64,--wrap=closedir,--wrap=sync_file_range
 * LDFLAGS: -Wl,--wrap=posix_fadvise64
 * LDFLAGS: -Wl,--wrap=file_temp_sync,--wrap=file_temp_discard,--wrap=file_write_at,--wrap=file_close
 * TIMEOUT: 300
 */
#include "libshard/base/error.h"
#include "libshard/io/file.h"
#include "libshard/store/spool.h"
#include "tests/fault/calls.h"
#include "tests/fault/story.h"

/* ---- broken twins ---- */

static enum twin {
	TWIN_NONE,
	TWIN_SYNC_IGNORED,  /* what fsync says is not looked at */
	TWIN_SYNC_RETRIED,  /* a failed fsync is called again, and believed */
	TWIN_REPLACES,	    /* rename replaces what is there */
	TWIN_FOLDER,	    /* the folder is not synced */
	TWIN_NO_READ_BACK,  /* writes are believed */
	TWIN_SHORT_WRITE,   /* a short write is taken for a whole one */
	TWIN_LITTERS,	    /* temporary files stay */
	TWIN_FDS,	    /* files stay open */
	TWINS
} twin;
static const char *const twin_name[TWINS] = {
	"", "ignores a failed fsync", "retries a failed fsync", "replaces what is there", "does not sync the folder",
	"does not read back", "takes a short write for a whole one", "leaves temporary files", "leaves files open",
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

WRAPPED(int, file_write_at, int fd, const void *data, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	if (twin == TWIN_SHORT_WRITE)
		return __wrap_pwrite64(fd, data, bytes, (off_t)offset) < 0 ? error_os(err, errno, "%s: writing at a place", path) : SHARD_OK;
	return __real_file_write_at(fd, data, bytes, offset, path, err);
}

WRAPPED(void, file_close, int fd)
{
	if (twin != TWIN_FDS)
		__real_file_close(fd);
}

/* ---- stories ---- */

static char work[4096];	 /* where a story writes; emptied before each run */
static char ready[4096]; /* a sealed dataset, to read */
static uint64_t records; /* of a shard */
static bool sanitized;	 /* which takes its time: a part of it all will do */
static bool quick;	 /* under a sanitizer, or for the habits of file systems: fewer codes */

static const char *const final_name[] = {"00000.shard", "note", "dataset.manifest"};
#define FINALS 3
static struct story_file planned[FINALS]; /* what an undisturbed run leaves; what was there before, in the story of taken names */

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

/* A dead writer's file goes, a living one's stays, as does what only looks like one. */
#define DEAD ".tmp.a.shard.0123456789abcdef"
#define ALIVE ".tmp.b.shard.0123456789abcdef"
static int alive = -1;

static int tell_clean(struct shard_error *err)
{
	uint64_t count = 0;
	int rc = shard_remove_temps(work, &count, err);

	return rc ? rc : count == 1 && access(path_of(work, DEAD), F_OK) ? SHARD_OK : calls_hit ? SHARD_OK : STORY_WRONG;
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
	static const struct story_file others = {(uint8_t *)(uintptr_t)"somebody else's", 15, true};

	for (int i = 0; i < FINALS; i++)
		if (story_compare(work, final_name[i], &others) != 1)
			return "somebody else's file was touched";
	return rc ? NULL : "OK, though the name was taken";
}

static const char *judge_again(int rc)
{
	static const struct story_file older = {(uint8_t *)(uintptr_t)"older!", 6, true};

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
	int well;	      /* what an undisturbed run says */
	enum call only;	      /* CALL_ANY: all of them */
	bool reads;	      /* a read that gave nothing and said it did would just be other bytes: not for this story */
	unsigned habits_from; /* habits[] that it is told with: the first `habits_from` */
} stories[] = {
	{"write and seal", nothing_before, tell_write, judge_write, SHARD_OK, CALL_ANY, false, 99},
	{"names are taken", others_before, tell_taken, judge_others, SHARD_E_EXISTS, CALL_ANY, false, 3},
	{"names hold the same", same_before, tell_again, judge_again, SHARD_OK, CALL_ANY, false, 3},
	{"seal by reading", shard_before, tell_hash, judge_hash, SHARD_OK, CALL_ANY, true, 1},
	{"open, read, verify", nothing_before, tell_read, judge_nothing, SHARD_OK, CALL_ANY, true, 99},
	{"remove temporary files", temps_before, tell_clean, judge_clean, SHARD_OK, CALL_ANY, true, 1},
	{"spool", nothing_before, tell_spool, judge_nothing, SHARD_OK, CALL_ANY, true, 99},
	{"large file", nothing_before, tell_large, judge_nothing, SHARD_OK, CALL_SYNC_RANGE, false, 1},
};
#define STORIES (sizeof(stories) / sizeof(stories[0]))

/* ---- telling and judging ---- */

struct outcome {
	int rc;
	const char *wrong; /* NULL for nothing */
	struct shard_error err;
};

static bool message_good(const struct outcome *o)
{
	const char *m = o->err.message, *code = plan.how == HOW_FAIL ? strerror(plan.code) : "";
	bool direct = plan.call != CALL_FSTAT && plan.call != CALL_FSTATAT; /* what these were for can fail otherwise, too */

	if (o->err.status != o->rc || strchr(m, '\n') || !(strstr(m, work) || strstr(m, ready)) || strlen(m) < strlen(work) + 20)
		return false;
	return plan.how != HOW_FAIL || !direct || o->rc != SHARD_E_IO || (strstr(m, code) && o->err.os_code == plan.code);
}

/* Faults that a file system may answer at any time, and that must not show. */
static bool must_not_show(void)
{
	if (plan.call != CALL_PREAD && plan.call != CALL_PWRITE && plan.call != CALL_FALLOCATE && plan.call != CALL_GETRANDOM)
		return false;
	return (plan.how == HOW_FAIL && plan.code == EINTR) || (plan.call != CALL_GETRANDOM && (plan.how == HOW_HALF || plan.how == HOW_BYTE));
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
	if (!o.wrong && !o.rc && call_folder_dirty)
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
		out[n++] = (struct fault){HOW_LIE, ENOENT, false}; /* what a server says to a request that it had already done */
	if (bytes || c == CALL_GETRANDOM) {
		out[n++] = (struct fault){HOW_HALF, 0, false};
		out[n++] = (struct fault){HOW_BYTE, 0, false};
		out[n++] = (struct fault){HOW_ZERO, 0, false};
		out[n++] = (struct fault){HOW_ZERO, 0, true};
	}
	if (bytes)
		out[n++] = (struct fault){HOW_HALF, 0, true};
	if (c == CALL_OPEN || c == CALL_OPENAT || c == CALL_DUP || c == CALL_MMAP || c == CALL_OPENDIR || c == CALL_READDIR)
		fake = false; /* they give something that cannot be made up */
	if (c == CALL_FSTAT || c == CALL_FSTATAT || c == CALL_CLOSE || c == CALL_MUNMAP || c == CALL_CLOSEDIR)
		fake = false;
	if (fake && !(s->reads && (c == CALL_PREAD || c == CALL_PWRITE || c == CALL_FLOCK || c == CALL_UNLINKAT)))
		out[n++] = (struct fault){HOW_FAKE, 0, false};
	return n;
}

static unsigned long seen_ever[CALLS];

/*
 * All faults of all occurrences of all calls in a story; the first wrong outcome ends it.  `injected` counts.  Samples of
 * the page cache (preadv2) are many and alike, so that some of them stand for all.
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
		for (unsigned long n = 1; n <= seen[c]; n += sanitized || c == CALL_PREADV2 ? 1 + seen[c] / 16 : 1)
			for (unsigned i = 0; !o.wrong && i < faults; i++) {
				plan = (__typeof__(plan)){(enum call)c, n, f[i].on, f[i].how, f[i].code, habits};
				STORY("%s, habits 0x%x: %s number %lu%s goes wrong (%d, %s)", s->name, habits, calls_wrapped[c], n,
				      f[i].on ? " and on" : "", f[i].how, f[i].code ? strerror(f[i].code) : "-");
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
}

TEST(every_call_fails_in_every_way)
{
	static const unsigned habits[] = {
		0, NO_NOREPLACE, NO_NOREPLACE | NO_LINK, NO_NOWAIT | NO_DIRECT,
		NO_TMPFILE | NO_FLOCK | NO_FALLOCATE | NO_DIRECT | NOT_CACHED, NO_DIRECT | NOT_CACHED, NOT_CACHED,
	};
	unsigned long injected = 0;

	prepare(8);
	for (size_t h = 0; h < sizeof(habits) / sizeof(habits[0]); h += sanitized ? 2 : 1) {
		prepare(h || sanitized ? 20 : 90); /* 90 records are more than one write of 1 MiB */
		quick = quick || h;
		for (size_t i = 0; i < STORIES; i++) {
			struct outcome o;
			unsigned long before = injected;

			if (h >= stories[i].habits_from)
				continue;
			o = sweep(&stories[i], habits[h], &injected);
			if (o.wrong)
				test_fail(__FILE__, __LINE__, "%s (result %d: %s)", o.wrong, o.rc, o.rc ? o.err.message : "-");
			printf("%-24s habits 0x%02x  %5lu faults\n", stories[i].name, habits[h], injected - before);
		}
	}
	for (int c = 0; c < CALLS; c++) {
		STORY("%s", calls_wrapped[c]);
		CHECK(seen_ever[c] > 0);
	}
	printf("%lu faults in %d calls%s\n", injected, CALLS, sanitized ? "; under a sanitizer not in every combination" : "");
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
		for (size_t i = 0; !o.wrong && i < 2; i++)
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

/* The library's other calls of the C library, which touch no file. */
static bool harmless(const char *name)
{
	static const char *const names[] = {"memcpy", "memset", "memcmp", "memmove", "strlen", "strcmp", "strncmp", "strrchr", "strchr",
					    "snprintf", "dirfd", "sigaction", "sigemptyset", "siglongjmp", "pthread_once", "raise",
					    "_GLOBAL_OFFSET_TABLE_", "madvise" /* advice on memory */};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (int c = 0; c < CALLS; c++)
		if (!strcmp(name, calls_wrapped[c]))
			return true;
	return !strncmp(name, "__", 2); /* compilers and sanitizers */
}

/* What io/ calls is known here: a new call must be added to calls.h, or be harmless. */
TEST(no_call_is_missed)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	char command[8192], line[512];
	unsigned names = 0;
	FILE *f;

	snprintf(command, sizeof(command), "nm '%s'/libshard/*/*.o | awk '$2 ~ /[TRDB]/ {own[$3] = 1} END {for (n in own) print n}' | sort "
		 ">'%s/own'; nm -u '%s'/libshard/io/*.o | awk 'NF == 2 {print $2}' | sort -u | comm -23 - '%s/own'", build, story_tmp(), build,
		 story_tmp());
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
