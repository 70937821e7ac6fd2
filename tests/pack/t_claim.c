/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_claim.c - claims: one owner, signs of life, and what an owner that was replaced can still do
 *
 * The clock is the test's own.
 *
 * LDFLAGS: -Wl,--wrap=clock_gettime,--wrap=renameat2,--wrap=linkat,--wrap=fstat64
 */
#include "tools/shardpack/make/make.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/child.h"
#include "tests/test.h"
#include "tools/common/files.h"
#include "tools/common/message.h"

static uint64_t now_ns = 1000;

int __wrap_clock_gettime(clockid_t which, struct timespec *out);
int __wrap_clock_gettime(clockid_t which, struct timespec *out)
{
	(void)which;
	*out = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
	return 0;
}

/*
 * A file system without the flag of renameat2(), which numbers names and not files, as sshfs; and
 * the reply to a link was lost, so that the request was sent again.
 */
static bool reply_is_lost;

int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __real_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __wrap_linkat(int a, const char *from, int b, const char *to, int flags);
int __real_linkat(int a, const char *from, int b, const char *to, int flags);
int __wrap_fstat64(int fd, struct stat *out);
int __real_fstat64(int fd, struct stat *out);

int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	if (!reply_is_lost)
		return __real_renameat2(a, from, b, to, flags);
	errno = EINVAL;
	return -1;
}

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
	int rc = __real_linkat(a, from, b, to, flags);

	if (!rc && reply_is_lost) {
		errno = EEXIST;
		rc = -1;
	}
	return rc;
}

int __wrap_fstat64(int fd, struct stat *out)
{
	int rc = __real_fstat64(fd, out);

	out->st_ino += reply_is_lost;
	return rc;
}

static struct claim_owner self;
static char path[FILES_PATH_BYTES];

static void begin(void)
{
	message_start("test");
	message_level(MESSAGE_QUIET);
	claim_self(&self, "a job");
	CHECK_EQ(claim_path(path, getenv("TMPDIR"), 7), EXIT_DONE);
	unlink(path);
}

static struct claim_view look(void)
{
	struct claim_view v;

	CHECK_EQ(claim_look(path, &v), EXIT_DONE);
	return v;
}

static bool make(struct claim *c, bool over)
{
	bool ours;

	CHECK_EQ(claim_make(c, path, &self, over, &ours), EXIT_DONE);
	return ours;
}

TEST(one_owner)
{
	struct claim a, b;

	begin();
	CHECK(!look().there);
	CHECK(make(&a, false));
	CHECK(look().there && !look().failed);
	CHECK_STR(look().nonce, a.nonce);
	CHECK_STR(look().owner.job, "a job");
	CHECK_EQ(look().owner.pid, (uint64_t)getpid());
	CHECK(look().owner.start > 0);
	CHECK(!make(&b, false)); /* it is taken */
	CHECK_STR(look().owner.host, self.host);
	CHECK_STR(look().owner.boot, self.boot);
	CHECK_STR(look().owner.space, self.space);
	CHECK_EQ(b.fd, -1);
	CHECK(claim_holds(&a, path));
	claim_release(&b, path, false);
	CHECK(look().there);
	claim_release(&a, path, false);
	CHECK(!look().there);
}

TEST(whose_it_is_its_nonce_says)
{
	struct claim a, b;

	begin();
	reply_is_lost = true;
	CHECK(make(&a, false)); /* EEXIST, and it is ours */
	CHECK(claim_holds(&a, path));
	CHECK(!make(&b, false));
	CHECK(claim_holds(&a, path));
	reply_is_lost = false;
	claim_release(&a, path, false);
	CHECK(!look().there);
}

static bool is_begun(uint64_t shard, const char *nonce)
{
	char temp[FILES_PATH_BYTES];

	snprintf(temp, sizeof(temp), "%s/.tmp.%05d.shard.%s", getenv("TMPDIR"), (int)shard, nonce);
	return access(temp, F_OK) == 0;
}

static void begin_shard(uint64_t shard, const char *nonce)
{
	char temp[FILES_PATH_BYTES];
	int fd;

	snprintf(temp, sizeof(temp), "%s/.tmp.%05d.shard.%s", getenv("TMPDIR"), (int)shard, nonce);
	fd = open(temp, O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	close(fd);
}

TEST(what_the_owner_before_began_goes_and_nothing_else)
{
	struct claim_view v = {.there = true, .nonce = "0123456789abcdef"}, odd = {.nonce = "0123456789abcd/."};

	begin();
	for (uint64_t k = 6; k < 9; k++)
		begin_shard(k, v.nonce);
	begin_shard(7, "fedcba9876543210");
	claim_remove_begun(&odd, getenv("TMPDIR"), 7);
	claim_remove_begun(&(struct claim_view){.there = true}, getenv("TMPDIR"), 7);
	CHECK(is_begun(7, v.nonce));
	claim_remove_begun(&v, getenv("TMPDIR"), 7);
	CHECK(is_begun(6, v.nonce) && !is_begun(7, v.nonce) && is_begun(8, v.nonce));
	CHECK(is_begun(7, "fedcba9876543210"));
}

TEST(one_that_was_replaced_does_no_harm)
{
	struct claim a, b;

	begin();
	CHECK(make(&a, false));
	CHECK(make(&b, true));
	CHECK(!claim_holds(&a, path) && claim_holds(&b, path));
	claim_beat(&a);
	CHECK_EQ(look().beat, 0); /* it went into a file without a name */
	CHECK_STR(look().nonce, b.nonce);
	claim_beat(&b);
	CHECK_EQ(look().beat, 1);
	claim_release(&a, path, true);
	CHECK(!look().failed);
	CHECK(claim_holds(&b, path));
	claim_release(&b, path, false);
	CHECK(!look().there);
	/* and one that gives back late does not take away what is another's */
	CHECK(make(&a, false));
	CHECK(make(&b, true));
	claim_release(&a, path, false);
	CHECK(claim_holds(&b, path));
	claim_release(&b, path, false);
}

TEST(what_cannot_be_built_stays_marked)
{
	struct claim a;

	begin();
	CHECK(make(&a, false));
	claim_beat(&a);
	claim_release(&a, path, true);
	CHECK(look().there && look().failed);
	CHECK_EQ(look().beat, 1);
	CHECK(make(&a, true));
	CHECK(!look().failed);
	claim_release(&a, path, false);
}

TEST(stale_by_our_own_clock)
{
	struct claim_watch w = {.since_ns = 0};
	struct claim_view v = {.there = true, .nonce = "0123456789abcdef"};

	begin();
	CHECK(!claim_is_stale(&w, &v)); /* seen for the first time */
	now_ns += claim_times.stale - 1;
	CHECK(!claim_is_stale(&w, &v));
	now_ns += 1;
	CHECK(claim_is_stale(&w, &v));
	v.beat++;
	CHECK(!claim_is_stale(&w, &v)); /* it lives */
	now_ns += claim_times.stale - 1;
	CHECK(!claim_is_stale(&w, &v));
	v.nonce[0] = 'f'; /* another owner */
	CHECK(!claim_is_stale(&w, &v));
	now_ns += claim_times.stale;
	CHECK(claim_is_stale(&w, &v));
	CHECK(claim_times.stale >= 3 * 60 * UINT64_C(1000000000));
	CHECK(claim_times.beat * 6 < claim_times.stale);
}

TEST(a_dead_process_of_this_machine)
{
	struct claim_view v = {.there = true};
	pid_t pid;

	begin();
	v.owner = self;
	CHECK(!claim_is_dead(&v, &self));
	v.owner.start++; /* another process has its number */
	CHECK(claim_is_dead(&v, &self));
	v.owner.start = 0; /* unknown */
	CHECK(!claim_is_dead(&v, &self));
	if (child_begin(&pid, 0))
		_exit(0);
	child_end(pid);
	v.owner = self;
	v.owner.pid = (uint64_t)pid;
	CHECK(claim_is_dead(&v, &self));
	snprintf(v.owner.boot, sizeof(v.owner.boot), "another-machine");
	CHECK(!claim_is_dead(&v, &self));
	v.owner = self;
	v.owner.pid = (uint64_t)pid;
	snprintf(v.owner.space, sizeof(v.owner.space), "another-container");
	CHECK(!claim_is_dead(&v, &self));
	v.owner.pid = UINT64_MAX;
	CHECK(!claim_is_dead(&v, &self));
}

TEST(what_is_no_claim_goes_stale)
{
#define WHOLE "claim 1 beat 0000000007 works\nnonce 0123456789abcdef host h boot b space s pid 1 start 2 job -"
	static const char *const texts[] = {
		"",
		"\n",
		"claim 2 beat 0000000000 works\n",
		"claim 1 beat 0000000000 wor",
		WHOLE,
		WHOLE " x\n",
		"claim 1 beat 0000000007 works\nnonce 0123456789abcde host h boot b space s pid 1 start 2 job -\n",
		"claim 1 beat 000000000x works\nnonce 0123456789abcdef host h boot b space s pid 1 start 2 job -\n"};
	static const char whole[] = WHOLE "\n";
	int fd;

	begin();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct claim_watch w = {.since_ns = 0};
		struct claim_view v;

		STORY("%s", texts[i]);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		CHECK_EQ(write(fd, texts[i], strlen(texts[i])), (ssize_t)strlen(texts[i]));
		close(fd);
		v = look();
		CHECK(v.there && !v.failed && !v.nonce[0]);
		CHECK(!claim_is_dead(&v, &self));
		CHECK(!claim_is_stale(&w, &v));
		now_ns += claim_times.stale;
		CHECK(claim_is_stale(&w, &v));
	}
	STORY("%s", whole);
	CHECK_EQ(truncate(path, 0), 0);
	fd = open(path, O_WRONLY);
	CHECK_EQ(write(fd, whole, strlen(whole)), (ssize_t)strlen(whole));
	close(fd);
	CHECK_EQ(look().beat, 7);
	unlink(path);
	STORY("%s", "a FIFO, which nobody writes to");
	CHECK_EQ(mkfifo(path, 0644), 0);
	CHECK(look().there && !look().nonce[0]);
	unlink(path);
}

/* A round of claims counts what is missing once: no more may be missing later. */
TEST(a_list_of_shards_only_grows)
{
	struct shard_list l = {0};
	char dir[FILES_PATH_BYTES], a[FILES_PATH_BYTES], b[FILES_PATH_BYTES];

	CHECK_EQ(files_path(dir, getenv("TMPDIR"), "list"), EXIT_DONE);
	CHECK_EQ(files_numbered(a, dir, "", 1, ".shard"), EXIT_DONE);
	CHECK_EQ(files_numbered(b, dir, "", 2, ".shard"), EXIT_DONE);
	CHECK_EQ(mkdir(dir, 0755), 0);
	CHECK_EQ(close(creat(a, 0644)), 0);
	CHECK_EQ(shard_list_look(&l, dir, 4), EXIT_DONE);
	CHECK(l.there[1] && l.there_count == 1);
	CHECK_EQ(unlink(a), 0);
	CHECK_EQ(close(creat(b, 0644)), 0);
	CHECK_EQ(shard_list_look(&l, dir, 4), EXIT_DONE);
	CHECK(l.there[1] && l.there[2] && l.there_count == 2);
	shard_list_free(&l);
	unlink(b);
	rmdir(dir);
}

TEST(a_list_of_claims)
{
	bool claimed[9] = {false};
	struct claim a;

	begin();
	CHECK(make(&a, false));
	CHECK_EQ(claim_list(getenv("TMPDIR"), 9, claimed), EXIT_DONE);
	for (uint64_t i = 0; i < 9; i++)
		CHECK_EQ(claimed[i], i == 7);
	CHECK_EQ(claim_list(getenv("TMPDIR"), 7, claimed), EXIT_DONE); /* of a plan with fewer shards */
	claim_release(&a, path, false);
	claimed[7] = false;
	CHECK_EQ(claim_list(getenv("TMPDIR"), 9, claimed), EXIT_DONE);
	CHECK(!claimed[7]);
}

TEST(what_went_from_another_machine_may_be_hidden)
{
	struct claim_view v = {.there = true, .nonce = "0123456789abcdef"}, gone = {.there = false};
	struct claim_watch w = {.since_ns = 0};

	CHECK(!claim_is_stale(&w, &v));
	now_ns += claim_times.stale - 1;
	CHECK(!claim_is_stale(&w, &gone)); /* it is new that it is gone */
	now_ns += claim_times.hidden - 1;
	CHECK(!claim_is_stale(&w, &gone));
	now_ns += 1;
	CHECK(claim_is_stale(&w, &gone));
	CHECK(claim_times.hidden < claim_times.stale);
}

TEST_MAIN()
