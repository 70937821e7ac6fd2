/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_malloc.c - every allocation fails in turn, in every story the library has to tell
 *
 * For each n: the n-th allocation fails, and, in another run, the n-th and all after it.  The call
 * must then answer MEMORY with a sentence (but for the few that only make it faster), free all it
 * had (counted here, since the library allocates through one file), leave no temporary file and
 * give no file its final name.  The controls are a library that takes a failed allocation for
 * success, and one that forgets to free: both must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free
 * LDFLAGS: -Wl,--wrap=mem_free,--wrap=error_set
 * TIMEOUT: 900
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "shard_pack.h"
#include "shard_transform.h"
#include "tests/fault/story.h"

/* ---- the allocator that refuses ---- */

static atomic_bool armed;
static atomic_ulong asked, refused, live;
static unsigned long fail_at;	  /* 0: never; const while armed */
static bool fail_on;		  /* and every one after it */
static _Thread_local bool inside; /* aligned_alloc of a sanitizer may come back through malloc */

static bool refuse_now(void)
{
	unsigned long n;

	if (!atomic_load(&armed) || inside)
		return false;
	n = atomic_fetch_add(&asked, 1) + 1;
	if (!fail_at || (fail_on ? n < fail_at : n != fail_at))
		return false;
	errno = ENOMEM;
	return true;
}

static bool refuse(void)
{
	bool now = refuse_now();

	atomic_fetch_add(&refused, now);
	return now;
}

/* A block that cannot be made shorter stays as it is: no call fails for that. */
static bool refuse_resize(void *old, size_t bytes)
{
	return old && bytes <= malloc_usable_size(old) ? refuse_now() : refuse();
}

static void *given(void *p)
{
	if (p && atomic_load(&armed) && !inside)
		atomic_fetch_add(&live, 1);
	return p;
}

#define WRAPPED(type, name, ...)         \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

WRAPPED(void *, malloc, size_t bytes)
{
	return refuse() ? NULL : given(__real_malloc(bytes));
}

WRAPPED(void *, calloc, size_t count, size_t bytes)
{
	return refuse() ? NULL : given(__real_calloc(count, bytes));
}

WRAPPED(void *, realloc, void *old, size_t bytes)
{
	void *p = refuse_resize(old, bytes) ? NULL : __real_realloc(old, bytes);

	return old ? p : given(p); /* an old block lives on, or is replaced by one */
}

WRAPPED(void *, aligned_alloc, size_t align, size_t bytes)
{
	void *p;

	if (refuse())
		return NULL;
	inside = true;
	p = __real_aligned_alloc(align, bytes);
	inside = false;
	return given(p);
}

WRAPPED(void, free, void *p)
{
	if (p && atomic_load(&armed))
		atomic_fetch_sub(&live, 1);
	__real_free(p);
}

/* ---- the broken twins ---- */

static bool forget_to_free, take_for_success;

WRAPPED(void, mem_free, void *p)
{
	if (!forget_to_free)
		__real_mem_free(p);
}

int __wrap_error_set(struct shard_error *err, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

int __wrap_error_set(struct shard_error *err, int status, const char *fmt, ...)
{
	char text[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (err) {
		err->status = status;
		err->os_code = 0;
		snprintf(err->message, sizeof(err->message), "%.1000s", text);
	}
	return take_for_success && status == SHARD_E_MEMORY ? SHARD_OK : status;
}

/* ---- stories: each starts from nothing and frees all it made ---- */

#define RECORDS 30u

static char ready[4096]; /* a sealed dataset of two shards */
static char work[4096];	 /* where a story writes; emptied before each run */
static struct shard_written written[2];

static void name_in(char out[8192], const char *dir, const char *name)
{
	snprintf(out, 8192, "%s/%s", dir, name);
}

static int write_shard(struct shard_error *err)
{
	struct shard_written w;
	char path[8192];

	name_in(path, work, "00000.shard");
	return story_write(path, 0, RECORDS, false, &w, err);
}

/* The name is taken by the identical shard. */
static int write_again(struct shard_error *err)
{
	struct shard_written w;
	char path[8192];
	int rc;

	name_in(path, ready, "00000.shard");
	rc = story_write(path, 0, RECORDS, false, &w, err);
	return rc ? rc : w.already == 1 ? SHARD_OK : STORY_WRONG;
}

static int seal_two(struct shard_error *err)
{
	return story_seal(ready, NULL, 2, err);
}

static int seal_known(struct shard_error *err)
{
	return story_seal(ready, written, 2, err);
}

static int read_records(struct shard_error *err)
{
	return story_read(ready, 2, RECORDS, 0, err);
}

static int verify_one(struct shard_error *err)
{
	return story_read(ready, 2, RECORDS, 1, err);
}

static int verify_two(struct shard_error *err)
{
	return story_read(ready, 2, RECORDS, 2, err);
}

static void on_problem(void *context, const struct shard_error *problem)
{
	(void)problem;
	++*(unsigned *)context;
}

/* Problems are told instead of ending the run; that of the allocation is one. */
static int verify_told(struct shard_error *err)
{
	unsigned told = 0;
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 2, .context = &told, .problem = on_problem};
	struct shard_dataset *ds = NULL;
	int rc = shard_dataset_open(&ds, ready, NULL, err);

	if (!rc)
		rc = shard_dataset_verify(ds, &o, NULL, err);
	shard_dataset_close(ds);
	return rc;
}

/* One epoch.  After a failure next is asked once more, as a job that ignores it would. */
static int take_epoch(struct shard_dataset *ds, const struct shard_loader_options *o, struct shard_error *err)
{
	struct shard_loader *l = NULL;
	struct shard_error ignored;
	struct shard_batch b;
	int rc = shard_loader_open(&l, ds, o, err);

	while (!rc) {
		rc = shard_loader_next(l, &b, err);
		if (!rc)
			rc = shard_loader_release(l, &b, err);
	}
	if (rc != SHARD_END && l && !shard_loader_next(l, &b, &ignored))
		shard_loader_release(l, &b, &ignored);
	shard_loader_close(l);
	return rc == SHARD_END ? SHARD_OK : rc;
}

static int epoch_of_ready(const struct shard_loader_options *o, struct shard_error *err)
{
	struct shard_dataset *ds = NULL;
	int rc = shard_dataset_open(&ds, ready, NULL, err);

	if (!rc)
		rc = take_epoch(ds, o, err);
	shard_dataset_close(ds);
	return rc;
}

static int load_epoch(struct shard_error *err)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 7, .order.seed = 3, .tail = SHARD_PAD};

	return epoch_of_ready(&o, err);
}

static int transform_epoch(struct shard_error *err)
{
	struct shard_transform_options numbers = {.size = sizeof(numbers)};
	struct shard_loader_transform images = {.size = sizeof(images), .field = "image", .options = &numbers};
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 7, .transform = &images};

	return epoch_of_ready(&o, err);
}

static int mix_epoch(struct shard_error *err)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 7, .order.seed = 3};
	struct shard_mix_source source[2] = {{.weight = 1}, {.weight = 2}};
	struct shard_dataset *ds = NULL;
	struct shard_mix *m = NULL;
	int rc = shard_dataset_open(&ds, ready, NULL, err);

	source[0].ds = source[1].ds = ds;
	if (!rc)
		rc = shard_mix_open(&m, source, 2, NULL, err);
	o.mix = m;
	if (!rc)
		rc = take_epoch(NULL, &o, err);
	shard_mix_close(m);
	shard_dataset_close(ds);
	return rc;
}

static int preview(struct shard_error *err)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 7, .order.seed = 3};
	struct shard_dataset *ds = NULL;
	struct shard_loader *l = NULL;
	uint64_t idx[RECORDS];
	int rc = shard_dataset_open(&ds, ready, NULL, err);

	if (!rc)
		rc = shard_loader_open(&l, ds, &o, err);
	if (!rc)
		rc = shard_loader_order(l, 1, 0, RECORDS, NULL, idx, err);
	if (!rc)
		rc = shard_pack_order(3, RECORDS, 0, RECORDS, idx, err);
	shard_loader_close(l);
	shard_dataset_close(ds);
	return rc;
}

static int mix_some(struct shard_error *err)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 7, .order.seed = 3};
	struct shard_mix_source source[2] = {{.weight = 1}, {.weight = 2}};
	struct shard_selection *s = NULL;
	struct shard_dataset *ds = NULL;
	struct shard_loader *l = NULL;
	struct shard_mix *m = NULL;
	uint64_t idx[RECORDS];
	int rc = shard_dataset_open(&ds, ready, NULL, err);

	if (!rc)
		rc = shard_select_fraction(&s, ds, NULL, 0, 0.5, 1, err);
	source[0].ds = source[1].ds = ds;
	source[1].selection = s;
	if (!rc)
		rc = shard_mix_open(&m, source, 2, NULL, err);
	o.mix = m;
	if (!rc)
		rc = shard_loader_open(&l, NULL, &o, err);
	if (!rc)
		rc = shard_loader_order(l, 1, 0, RECORDS, NULL, idx, err);
	shard_loader_close(l);
	shard_mix_close(m);
	shard_selection_close(s);
	shard_dataset_close(ds);
	return rc;
}

static int publish_note(struct shard_error *err)
{
	char path[8192];

	name_in(path, work, "note");
	return shard_publish(path, "text", 4, 0, err);
}

#define ANY_NUMBER 1000u /* with threads, the n-th allocation is not always the same one */

static const struct story {
	const char *name;
	int (*run)(struct shard_error *err);
	const char *makes; /* in `work`, or in `ready` if it begins with '='; NULL for nothing */
	/*
	 * allocations that only make it faster, at most: for each shard that is verified one to fetch its tables, and
	 * five to read ahead (three in a build without io_uring), where there is as much; or ANY_NUMBER
	 */
	unsigned spared;
} stories[] = {
	{"write a shard", write_shard, "00000.shard", 6},
	{"write it again", write_again, NULL, 12}, /* what was written, and what was there */
	{"seal two shards", seal_two, "=dataset.manifest", 0},
	{"seal with known hashes", seal_known, "=dataset.manifest", 0},
	{"open, read, keys", read_records, NULL, 0},
	{"verify, 1 thread", verify_one, NULL, 2},
	{"verify, 2 threads", verify_two, NULL, ANY_NUMBER},
	{"verify, problems told", verify_told, NULL, ANY_NUMBER},
	{"loader, one epoch", load_epoch, NULL, ANY_NUMBER},
	{"loader that transforms, one epoch", transform_epoch, NULL, ANY_NUMBER},
	{"loader of a mixture, one epoch", mix_epoch, NULL, ANY_NUMBER},
	{"order and shuffle", preview, NULL, 0},
	{"selection, mixture, order", mix_some, NULL, 0},
	{"publish a file", publish_note, "note", 0},
};

static void make_ready(void)
{
	struct shard_error err;
	char path[8192];

	story_folder(ready, "ready");
	for (uint64_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%05u.shard", ready, (unsigned)i);
		if (story_write(path, i, RECORDS, false, &written[i], &err))
			test_fail(__FILE__, __LINE__, "%s", err.message);
	}
	CHECK_EQ(story_seal(ready, written, 2, &err), SHARD_OK);
}

/* Is there a file that the story makes, in whatever state? */
static bool made(const struct story *s)
{
	char path[8192];

	if (!s->makes)
		return false;
	name_in(path, *s->makes == '=' ? ready : work, s->makes + (*s->makes == '='));
	return !access(path, F_OK);
}

struct outcome {
	int rc;
	unsigned long asked, refused, live;
	unsigned fds, temps;
	bool made;
	struct shard_error err;
};

static struct outcome run_story(const struct story *s, unsigned long at, bool on)
{
	struct outcome o = {.fds = story_open_fds()};
	unsigned finals, temps;
	char path[8192];

	story_folder(work, "work");
	if (s->makes && *s->makes == '=') {
		name_in(path, ready, s->makes + 1);
		unlink(path);
	}
	memset(&o.err, 0, sizeof(o.err));
	fail_at = at;
	fail_on = on;
	atomic_store(&asked, 0);
	atomic_store(&refused, 0);
	atomic_store(&live, 0);
	atomic_store(&armed, true);
	o.rc = s->run(&o.err);
	atomic_store(&armed, false);
	o.asked = atomic_load(&asked);
	o.refused = atomic_load(&refused);
	o.live = atomic_load(&live);
	o.fds = story_open_fds() - o.fds;
	o.made = made(s);
	story_count(work, &finals, &o.temps);
	story_count(ready, &finals, &temps);
	o.temps += temps;
	return o;
}

/* What is wrong with the outcome; NULL for nothing. */
static const char *judge(const struct story *s, const struct outcome *o)
{
	if (o->live)
		return "memory was not freed";
	if (o->fds)
		return "a file was left open";
	if (o->temps)
		return "a temporary file was left";
	if (!o->rc)
		return o->refused > 1 ? "said OK" : s->makes && !o->made ? "made nothing" : NULL;
	if (!o->refused)
		return "failed for another reason";
	if (o->made)
		return "failed, and gave a file its name";
	if (o->rc != SHARD_E_MEMORY || o->err.status != SHARD_E_MEMORY)
		return "the status is not MEMORY";
	return strlen(o->err.message) < 10 || strchr(o->err.message, '\n') ? "the message is no sentence" : NULL;
}

TEST(every_allocation_fails)
{
	unsigned long injected = 0;

	make_ready();
	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		const struct story *s = &stories[i];
		unsigned long before = injected, spared = 0;

		for (int on = 0; on < 2; on++)
			for (unsigned long n = 0;;
			     n++) { /* 0: undisturbed; the end is a run that asked for less than n */
				struct outcome o = run_story(s, n, on);
				const char *wrong = judge(s, &o);

				STORY("%s, allocation %lu%s", s->name, n, on ? " and on" : "");
				if (wrong)
					test_fail(__FILE__, __LINE__, "%s (result %d: %s)", wrong, o.rc, o.err.message);
				injected += o.refused > 0;
				spared += o.refused && !o.rc && !on;
				if (o.asked < n)
					break;
			}
		STORY("%s, failures that did not show", s->name);
		CHECK(spared <= s->spared && (spared || !s->spared || s->spared == ANY_NUMBER));
		printf("%-24s %4lu runs with a failed allocation\n", s->name, injected - before);
	}
	CHECK(injected > 300);
	printf("%lu failed allocations, each a clean error\n", injected);
}

/* ---- controls ---- */

/*
 * 0: nothing wrong at any allocation, else noticed; a crash counts, so it runs in a process of its
 * own.
 */
static int notices(const struct story *s)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		int nowhere = open("/dev/null", O_WRONLY);

		dup2(nowhere, 2); /* what a sanitizer has to say about it is expected */
		for (unsigned long n = 1, spared = 0;; n++) {
			struct outcome o = run_story(s, n, false);

			spared += o.refused && !o.rc;
			if (judge(s, &o) || spared > s->spared)
				_exit(2);
			if (!o.refused)
				_exit(0);
		}
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(broken_twins_are_noticed)
{
	make_ready();
	CHECK_EQ(notices(&stories[0]), 0);
	take_for_success = true;
	for (size_t i = 0; i < 6; i++) {
		STORY("a failed allocation is taken for success: %s", stories[i].name);
		CHECK(notices(&stories[i]) != 0);
	}
	take_for_success = false;
	forget_to_free = true;
	STORY("nothing is freed");
	CHECK_EQ(notices(&stories[0]), 2);
	forget_to_free = false;
}

TEST_MAIN()
