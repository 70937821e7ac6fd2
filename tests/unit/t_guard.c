/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_guard.c - a truncated map is an error inside the armed range, and everybody else's business
 * outside it
 *
 * What must end a process happens in a child.  A sanitizer's own handler would turn that into
 * another exit, so the children that must die by the signal put its default back first.
 */
#include "libshard/io/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "tests/child.h"
#include "tests/store/fixture.h"

#define PAGES 8
#define BYTES ((size_t)PAGES * 4096)

/* A mapped file of eight pages, cut to one while it is mapped. */
struct cut {
	struct path path;
	const uint8_t *map;
	uint64_t sum;
};

static void cut_make(struct cut *c)
{
	uint8_t data[BYTES];
	int fd;

	memset(data, 1, sizeof(data));
	file_make(tmp(&c->path, "cut.%d", (int)getpid()), data, sizeof(data));
	fd = open(c->path.text, O_RDWR);
	c->map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(fd >= 0 && c->map != MAP_FAILED);
	CHECK_EQ(ftruncate(fd, 4096), 0);
	close(fd);
}

static void cut_end(struct cut *c)
{
	munmap((void *)(uintptr_t)c->map, BYTES);
	unlink(c->path.text);
}

static void read_all(void *context)
{
	struct cut *c = context;

	c->sum = 0;
	for (size_t i = 0; i < BYTES; i += 512)
		c->sum += ((volatile const uint8_t *)c->map)[i];
}

static void read_first_page(void *context)
{
	struct cut *c = context;

	c->sum = 0;
	for (size_t i = 0; i < 4096; i += 512)
		c->sum += ((volatile const uint8_t *)c->map)[i];
}

TEST(what_was_cut_off_is_an_error_and_the_rest_is_not)
{
	struct cut c;

	CHECK(guard_install());
	cut_make(&c);
	for (int i = 0; i < 3; i++) { /* again and again: the signal is not left blocked */
		CHECK(guard_run(c.map, BYTES, read_first_page, &c));
		CHECK_EQ(c.sum, 8);
		CHECK(!guard_run(c.map, BYTES, read_all, &c));
		CHECK_EQ(c.sum, 8); /* it came that far */
	}
	cut_end(&c);
}

TEST(the_last_byte_of_the_range_counts)
{
	struct cut c;

	cut_make(&c);
	CHECK(!guard_run(c.map + 4095, 2, read_all, &c));
	cut_end(&c);
}

static void *guarded_thread(void *arg)
{
	struct cut c;
	unsigned *failed = arg;

	c.map = (const uint8_t *)*(void **)arg;
	*failed = 0;
	for (int i = 0; i < 50; i++)
		*failed += !guard_run(c.map, BYTES, read_all, &c);
	return NULL;
}

TEST(each_thread_is_armed_by_itself)
{
	union {
		const void *map;
		unsigned failed;
	} arg[4];
	pthread_t thread[4];
	struct cut c;

	cut_make(&c);
	for (int i = 0; i < 4; i++) {
		arg[i].map = c.map;
		CHECK_EQ(pthread_create(&thread[i], NULL, guarded_thread, &arg[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(arg[i].failed, 50);
	cut_end(&c);
}

/* ---- threads that block the signal ---- */

static bool is_blocked(void)
{
	sigset_t now;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	return sigismember(&now, SIGBUS) == 1;
}

static void mask_bus(int how)
{
	sigset_t bus;

	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	CHECK_EQ(pthread_sigmask(how, &bus, NULL), 0);
}

static void *blocking_thread(void *arg)
{
	struct cut *c = arg;
	sigset_t all;

	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	for (int i = 0; i < 3; i++) {
		CHECK(!guard_run(c->map, BYTES, read_all, c));
		CHECK(is_blocked()); /* as the thread wants it */
		CHECK(guard_run(c->map, BYTES, read_first_page, c));
		CHECK(is_blocked());
	}
	mask_bus(SIG_UNBLOCK);
	guard_ask();
	CHECK(!guard_run(c->map, BYTES, read_all, c));
	CHECK(!is_blocked());
	mask_bus(SIG_BLOCK); /* later than the first call: whoever asks again sees it */
	guard_ask();
	CHECK(!guard_run(c->map, BYTES, read_all, c));
	CHECK(is_blocked());
	return arg;
}

TEST(a_thread_that_blocks_the_signal_gets_the_error_too)
{
	pthread_t thread;
	struct cut c;
	void *end;

	cut_make(&c);
	CHECK_EQ(pthread_create(&thread, NULL, blocking_thread, &c), 0);
	CHECK_EQ(pthread_join(thread, &end), 0);
	CHECK(end == &c);
	cut_end(&c);
}

/* ---- several ranges ---- */

struct two {
	struct cut cut[2];
	int hit; /* which of them could not be read */
};

static bool is_of_two(void *context, uintptr_t at)
{
	struct two *t = context;

	for (int i = 0; i < 2; i++)
		if (at >= (uintptr_t)t->cut[i].map && at < (uintptr_t)t->cut[i].map + BYTES) {
			t->hit = i;
			return true;
		}
	return false;
}

static void read_first_of_two(void *context)
{
	read_all(&((struct two *)context)->cut[0]);
}

static void read_second_of_two(void *context)
{
	read_first_page(&((struct two *)context)->cut[0]);
	read_all(&((struct two *)context)->cut[1]);
}

static void read_start_of_two(void *context)
{
	read_first_page(&((struct two *)context)->cut[0]);
	read_first_page(&((struct two *)context)->cut[1]);
}

TEST(several_ranges_are_told_apart)
{
	struct two t = {.hit = -1};

	cut_make(&t.cut[0]);
	unlink(t.cut[0].path.text); /* both have the same name */
	cut_make(&t.cut[1]);
	CHECK(guard_run_where(is_of_two, read_start_of_two, &t));
	CHECK_EQ(t.hit, -1);
	CHECK(!guard_run_where(is_of_two, read_second_of_two, &t));
	CHECK_EQ(t.hit, 1);
	CHECK(!guard_run_where(is_of_two, read_first_of_two, &t));
	CHECK_EQ(t.hit, 0);
	munmap((void *)(uintptr_t)t.cut[0].map, BYTES);
	cut_end(&t.cut[1]);
}

/* ---- in a child: its wait status is returned ---- */

static int in_child(void (*work)(struct cut *c))
{
	struct cut c;
	int status;
	pid_t pid;

	cut_make(&c);
	if (child_begin(&pid, 0)) {
		work(&c);
		_exit(0);
	}
	status = child_end(pid);
	cut_end(&c);
	return status;
}

static void fresh(void)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};

	/*
	 * guard_install() ran in the parent, so its handler is there, above a sanitizer's perhaps:
	 * begin with nothing
	 */
	sigaction(SIGBUS, &plain, NULL);
}

static void disarmed(struct cut *c)
{
	read_all(c);
}

static void disarmed_without_guard(struct cut *c)
{
	fresh();
	read_all(c);
}

static void armed_elsewhere(struct cut *c)
{
	static uint8_t other[4096];

	guard_run(other, sizeof(other), read_all, c);
}

static bool died(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 42;
}

TEST(disarmed_it_is_the_end_of_the_process)
{
	int status = in_child(disarmed_without_guard);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS); /* so the file is cut, and reading it is deadly */
	CHECK(died(in_child(disarmed)));
	CHECK(died(in_child(armed_elsewhere)));
}

/* ---- who was there before: a process of its own, in which install comes second ---- */

static void foreign(int number)
{
	_exit(number == SIGBUS ? 42 : 43);
}

static void foreign_info(int number, siginfo_t *info, void *machine)
{
	_exit(number == SIGBUS && info->si_addr && machine ? 42 : 43);
}

static struct sigaction ours;

static void later(int number, siginfo_t *info, void *machine)
{
	ours.sa_sigaction(number, info, machine);
}

/*
 * A handler that came after ours, blocks everything while it runs, and hands on to us: each fault
 * is still an error.
 */
static void first_of_two(void)
{
	struct sigaction theirs = {.sa_sigaction = later, .sa_flags = SA_SIGINFO};
	struct cut c;

	if (!guard_install())
		_exit(44);
	sigfillset(&theirs.sa_mask);
	sigaction(SIGBUS, &theirs, &ours);
	cut_make(&c);
	unlink(c.path.text);
	for (int i = 0; i < 3; i++)
		if (guard_run(c.map, BYTES, read_all, &c))
			_exit(45);
	sigset_t now;

	sigprocmask(SIG_SETMASK, NULL, &now);
	_exit(sigismember(&now, SIGBUS) || sigismember(&now, SIGTERM) ? 46 : 42);
}

/* The first install of a process is the one that counts, so these run by exec of this program. */
static void second_after(const char *who)
{
	struct sigaction theirs = {.sa_handler = SIG_DFL};
	struct cut c;

	if (!strcmp(who, "later"))
		first_of_two();
	if (!strcmp(who, "handler"))
		theirs.sa_handler = foreign;
	if (!strcmp(who, "info")) {
		theirs.sa_sigaction = foreign_info;
		theirs.sa_flags = SA_SIGINFO;
	}
	if (!strcmp(who, "ignore"))
		theirs.sa_handler = SIG_IGN;
	sigaction(SIGBUS, &theirs, NULL);
	if (!guard_install())
		_exit(44);
	cut_make(&c);
	unlink(c.path.text);
	if (guard_run(c.map, BYTES, read_all, &c))
		_exit(45); /* ours must still work */
	if (!strcmp(who, "kill")) {
		raise(SIGBUS);
		_exit(46);
	}
	read_all(&c);
	_exit(47);
}

static int exec_self(const char *who)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		setenv("T_GUARD", who, 1);
		execl("/proc/self/exe", "t_guard", (char *)NULL);
		_exit(48);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(other_handlers_are_got_along_with)
{
	static const char *const with_code[] = {"handler", "info", "later"}, *const deadly[] = {"default", "ignore",
												"kill"};

	for (size_t i = 0; i < COUNT(with_code); i++) {
		int status = exec_self(with_code[i]);

		STORY("%s: status 0x%x", with_code[i], (unsigned)status);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	}
	for (size_t i = 0; i < COUNT(deadly); i++) {
		int status = exec_self(deadly[i]);

		STORY("%s: status 0x%x", deadly[i], (unsigned)status);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	}
}

int main(int argc, char **argv)
{
	if (getenv("T_GUARD"))
		second_after(getenv("T_GUARD"));
	return test_main(argc, argv);
}
