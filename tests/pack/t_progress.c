/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_progress.c - numbers for people, the progress line, and what reaches the terminal
 *
 * The line is compared as text, at given times and widths.  That the drawing is right is
 * seen from the other side of a pseudo-terminal and of a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>

#include "libshard/base/clock.h"
#include "tests/test.h"
#include "tools/common/human.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

TEST(bytes)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} rows[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1535, "1.5 KiB"},
		{1024 * 1024 - 1, "1.0 MiB"},
		{1024 * 1024 - 51, "1.0 MiB"},
		{1024 * 1024 - 52, "1023.9 KiB"},
		{UINT64_C(3) << 29, "1.5 GiB"},
		{UINT64_C(1) << 40, "1.0 TiB"},
		{UINT64_C(1) << 50, "1.0 PiB"},
		{UINT64_C(1) << 60, "1.0 EiB"},
		{UINT64_MAX, "16.0 EiB"},
	};
	char out[HUMAN_CHARS];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(human_bytes(out, rows[i].bytes), rows[i].want);
}

TEST(counts_and_rates)
{
	char out[HUMAN_CHARS];

	CHECK_STR(human_count(out, 0), "0");
	CHECK_STR(human_count(out, 999), "999");
	CHECK_STR(human_count(out, 1000), "1,000");
	CHECK_STR(human_count(out, 1281167), "1,281,167");
	CHECK_STR(human_count(out, UINT64_MAX), "18,446,744,073,709,551,615");
	CHECK_STR(human_rate(out, 0), "0/s");
	CHECK_STR(human_rate(out, 0.04), "0.0/s");
	CHECK_STR(human_rate(out, 9.94), "9.9/s");
	CHECK_STR(human_rate(out, 9.96), "10/s");
	CHECK_STR(human_rate(out, 5311.7), "5,312/s");
	CHECK_STR(human_rate(out, 1e30), "18,446,744,073,709,551,615/s");
	CHECK_STR(human_rate(out, 0.0 / -1.0), "0/s");
	CHECK_STR(human_byte_rate(out, 1.5 * 1024 * 1024), "1.5 MiB/s");
}

TEST(durations)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} rows[] = {
		{0, "0.0 s"},
		{49999999, "0.0 s"},
		{50000000, "0.1 s"},
		{4200000000, "4.2 s"},
		{9949999999, "9.9 s"},
		{9950000000, "10 s"},
		{59 * SECOND, "59 s"},
		{MINUTE - 1, "1m 00s"},
		{MINUTE, "1m 00s"},
		{200 * SECOND, "3m 20s"},
		{HOUR - SECOND, "59m 59s"},
		{HOUR - 1, "1h 00m"},
		{62 * MINUTE, "1h 02m"},
		{99 * HOUR + 59 * MINUTE, "99h 59m"},
		{100 * HOUR, "4d 04h"},
		{UINT64_MAX, "213503d 23h"},
	};
	char out[HUMAN_CHARS];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("%" PRIu64 " ns", rows[i].ns);
		CHECK_STR(human_duration(out, rows[i].ns), rows[i].want);
	}
}

TEST(line_gets_narrower)
{
	static const struct progress_state state = {.label = "packing",
						    .unit = "images",
						    .count = 412300,
						    .total_count = 1281167,
						    .bytes = 99,
						    .bad = 3,
						    .count_per_second = 5312,
						    .bytes_per_second = 762.4 * 1024 * 1024};
	static const struct {
		unsigned columns;
		const char *want;
	} rows[] = {
		{200, "packing 412,300/1,281,167 images   32%  5,312/s  762.4 MiB/s  ETA 2m 44s  3 bad"},
		{79, "packing 412,300/1,281,167 images   32%  5,312/s  762.4 MiB/s  ETA 2m 44s  3 bad"},
		{78, "packing 412,300/1,281,167 images   32%  5,312/s  ETA 2m 44s  3 bad"},
		{66, "packing 412,300/1,281,167 images   32%  5,312/s  ETA 2m 44s  3 bad"},
		{65, "packing 412,300/1,281,167 images   32%  ETA 2m 44s  3 bad"},
		{56, "packing 412,300/1,281,167   32%  ETA 2m 44s  3 bad"},
		{49, "packing 412,300/1,281,167   32%  3 bad"},
		{37, "packing 412,300/1,281,167   32%"},
		{9, "packing 4"},
		{0, ""},
	};
	char line[512];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("%u columns", rows[i].columns);
		progress_line(line, sizeof(line), &state, rows[i].columns);
		CHECK_STR(line, rows[i].want);
	}
}

TEST(line_knows_its_limits)
{
	struct progress_state state = {.label = "reading", .unit = "files", .count = 7};
	char line[512];

	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "reading 7 files"); /* no total: no share, no end */
	state.total_count = 7;
	state.count_per_second = 1;
	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "reading 7/7 files  100%  1.0/s");
	state.total_count = 100000;
	state.count = 99999;
	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "reading 99,999/100,000 files   99%  1.0/s  ETA 1 s"); /* never 100% before the end */
	state.total_count = UINT64_MAX;
	state.count = 0;
	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "reading 0/18,446,744,073,709,551,615 files    0%  1.0/s");
	state.total_count = 5;
	state.count = 6;
	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "reading 6/5 files  100%  1.0/s");
}

TEST(bytes_are_counted_as_bytes)
{
	struct progress_state state = {.label = "unpacking",
				       .count = UINT64_C(1) << 30,
				       .total_count = UINT64_C(1) << 32,
				       .bytes = UINT64_C(1) << 30,
				       .count_per_second = 32 << 20,
				       .bytes_per_second = 32 << 20};
	char line[512];

	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "unpacking 1.0 GiB/4.0 GiB   25%  32.0 MiB/s  ETA 1m 36s");
}

TEST(one_image_is_not_images)
{
	struct progress_state state = {.label = "packing", .unit = "images", .count = 0, .total_count = 1};
	char line[512];

	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "packing 0/1 image    0%");
	state.count = 1;
	state.total_count = 0;
	progress_line(line, sizeof(line), &state, 200);
	CHECK_STR(line, "packing 1 image");
}

TEST(rates_look_back_sixteen_seconds)
{
	struct progress_state state;
	struct progress p;
	uint64_t start_ns;

	progress_start(&p, "packing", "images", 100000);
	progress_resume(&p, 50000, 5000000); /* an earlier run's work is in no rate */
	start_ns = p.start_ns;
	progress_add(&p, 10, 1000, 1);
	progress_state_at(&p, start_ns + SECOND / 10, &state);
	CHECK_EQ(state.count, 50010);
	CHECK_EQ(state.bytes, 5001000);
	CHECK_EQ(state.bad, 1);
	CHECK(state.count_per_second == 0); /* too early to say */
	progress_state_at(&p, start_ns + SECOND, &state);
	CHECK(state.count_per_second == 10 && state.bytes_per_second == 1000);
	for (uint64_t tick = 11; tick <= 300; tick++) { /* 100 a second from now on */
		progress_add(&p, 10, 0, 0);
		progress_state_at(&p, start_ns + tick * SECOND / 10, &state);
	}
	CHECK(state.count_per_second > 99.9 && state.count_per_second < 100.1);
	for (uint64_t tick = 301; tick <= 700; tick++) /* and then nothing moves */
		progress_state_at(&p, start_ns + tick * SECOND / 10, &state);
	CHECK(state.count_per_second == 0);
}

#define THREADS 4
#define ADDS	100000

static void *add_many(void *arg)
{
	for (int i = 0; i < ADDS; i++)
		progress_add(arg, 1, 3, i % 100 == 0);
	return NULL;
}

TEST(threads_lose_nothing)
{
	pthread_t threads[THREADS];
	struct progress_state state;
	struct progress p;

	progress_start(&p, "a", "b", 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, add_many, &p), 0);
	for (int i = 0; i < 1000; i++)
		progress_state_at(&p, p.start_ns + (uint64_t)i * SECOND, &state);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	progress_state_at(&p, p.start_ns + 2000 * SECOND, &state);
	CHECK_EQ(state.count, THREADS * ADDS);
	CHECK_EQ(state.bytes, THREADS * ADDS * 3);
	CHECK_EQ(state.bad, THREADS * ADDS / 100);
}

/*
 * What a child shows: half a second of work with a tick every few milliseconds, and a message in
 * the middle.
 */
static void show_work(enum message_level level, bool finish)
{
	struct progress p;

	message_start("tool");
	message_level(level);
	progress_start(&p, "packing", "images", 100);
	for (int i = 0; i < 100; i++) {
		progress_add(&p, 1, 1000, i == 10);
		progress_tick(&p);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		if (i == 50)
			warn("%s: odd\033[2J", "a\nb");
	}
	if (finish)
		progress_finish(&p);
	else
		progress_abandon(&p);
}

/* Run show_work with stderr on `fd`; everything that arrives at `from_fd` is in `seen`. */
static void watch(int fd, int from_fd, enum message_level level, bool finish, char *seen, size_t seen_bytes)
{
	size_t length = 0;
	ssize_t got;
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(fd, STDERR_FILENO);
		show_work(level, finish);
		_exit(0);
	}
	close(fd);
	/* A terminal whose other side is closed answers EIO. */
	while (length < seen_bytes - 1 && (got = read(from_fd, seen + length, seen_bytes - 1 - length)) > 0)
		length += (size_t)got;
	seen[length] = 0;
	close(from_fd);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void on_terminal(unsigned columns, enum message_level level, bool finish, char *seen, size_t seen_bytes)
{
	struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 24};
	int ours = posix_openpt(O_RDWR | O_NOCTTY), theirs;

	if (ours < 0)
		SKIP("no terminals here (%s): mount devpts on /dev/pts", strerror(errno));
	CHECK_EQ(grantpt(ours), 0);
	CHECK_EQ(unlockpt(ours), 0);
	theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
	CHECK(theirs >= 0);
	CHECK_EQ(ioctl(theirs, TIOCSWINSZ, &size), 0);
	watch(theirs, ours, level, finish, seen, seen_bytes);
}

static unsigned occurrences(const char *text, const char *what)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

TEST(on_a_terminal)
{
	static char seen[65536];
	uint64_t begin = clock_now_ns();
	unsigned draws;

	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	on_terminal(60, MESSAGE_NORMAL, true, seen, sizeof(seen));
	draws = occurrences(seen, "\rpacking ");
	/* at most 10 a second, of half a second or longer */
	CHECK(draws >= 2 && draws <= 5 + 10 * (clock_now_ns() - begin) / SECOND);
	CHECK(strstr(
		seen,
		"\r\033[K\033[1;33mtool: warning:\033[0m a\\nb: odd\\033[2J\r\n")); /* the line was erased for it */
	CHECK(strstr(seen, "\r\033[Ktool: packing 100 images, 97.7 KiB in ") ||
	      strstr(seen, "\r\033[K"
			   "tool: packing 100 images, 97.7 KiB in "));
	CHECK(strstr(seen, "), 1 bad\r\n"));
	for (const char *line = seen; (line = strstr(line, "\rpacking ")); line++)
		CHECK(strcspn(line + 1, "\033") <= 59);
}

TEST(on_a_terminal_without_colour)
{
	static char seen[65536];

	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	on_terminal(80, MESSAGE_NORMAL, false, seen, sizeof(seen));
	unsetenv("NO_COLOR");
	CHECK(!strstr(seen, "\033[1;"));
	CHECK(strstr(seen, "tool: warning: a\\nb"));
	CHECK(strlen(seen) > 4 &&
	      !strcmp(seen + strlen(seen) - 4, "\r\033[K")); /* abandoned: the line is gone, nothing else said */
}

TEST(on_a_dumb_terminal_and_in_a_file)
{
	static char seen[65536];

	setenv("TERM", "dumb", 1);
	on_terminal(80, MESSAGE_NORMAL, true, seen, sizeof(seen));
	CHECK(!strchr(seen, '\033'));
	CHECK_EQ(occurrences(seen, "\n"), 2); /* the warning and the summary: no plain line within 10 seconds */
	setenv("TERM", "xterm", 1);
	int ends[2];
	CHECK_EQ(pipe(ends), 0);
	watch(ends[1], ends[0], MESSAGE_NORMAL, true, seen, sizeof(seen));
	CHECK(!strchr(seen, '\033'));
	CHECK_EQ(occurrences(seen, "\n"), 2);
	CHECK_EQ(occurrences(seen, "tool: packing 100 images"), 1);
}

TEST(quiet)
{
	static char seen[65536];

	on_terminal(80, MESSAGE_QUIET, true, seen, sizeof(seen));
	CHECK_EQ(occurrences(seen, "\n"), 1);
	CHECK(!strstr(seen, "packing"));
	CHECK(strstr(seen, "warning:"));
}

static void show_plain_lines(char *seen, size_t seen_bytes)
{
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	CHECK_EQ(pipe(ends), 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct progress p;

		dup2(ends[1], STDERR_FILENO);
		message_start("tool");
		progress_start(&p, "packing", "images", 100);
		p.start_ns -= 25 * SECOND; /* as if it had begun 25 seconds ago */
		progress_add(&p, 50, 0, 0);
		for (int i = 0; i < 5; i++)
			progress_tick(&p);
		_exit(0);
	}
	close(ends[1]);
	got = read(ends[0], seen, seen_bytes - 1);
	CHECK(got > 0);
	seen[got] = 0;
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	close(ends[0]);
}

TEST(plain_lines_ten_seconds_apart)
{
	static const char want[] = "tool: packing 50/100 images   50%  2.0/s  ETA 25 s\n";
	static char seen[4096];

	for (int i = 0; i < 10 && strcmp(seen, want); i++) /* on a busy machine it may be 26 seconds by then */
		show_plain_lines(seen, sizeof(seen));
	CHECK_STR(seen, want);
}

TEST_MAIN()
