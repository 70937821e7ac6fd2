/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_guarded.c - a program's own reads of views, keys and provenance, under the guard
 *
 * The control is the same read without it, in a child.
 */
#include <signal.h>

#include "tests/child.h"
#include "tests/store/fixture.h"

static const uint64_t sizes[] = {20, 30};
static struct path folder, shard;

static void make(void)
{
	struct shard_schema s = photo_schema(40, SHARD_RAW);

	new_folder(&folder, "guarded");
	write_dataset(folder.text, &s, sizes, COUNT(sizes));
	tmp(&shard, "guarded.%d/1.shard", (int)getpid());
}

struct look {
	struct shard_view view;
	unsigned sum, runs;
};

static void look_work(void *context)
{
	struct look *l = context;

	for (size_t i = 0; i < l->view.bytes; i++)
		l->sum += ((volatile const uint8_t *)l->view.data)[i];
	l->runs++;
}

enum { VIEW, SMALL_VIEW, KEY, PROVENANCE, KINDS };

/* Of record 25 of the dataset, which is record 5 of its second shard. */
static struct shard_view take(struct shard_reader *r, int kind)
{
	struct shard_view v = {NULL, 0};

	if (kind == KEY)
		CHECK_OK(shard_reader_key(r, 5, &v, &fixture_err));
	else if (kind == PROVENANCE)
		CHECK_OK(shard_reader_provenance(r, &v, &fixture_err));
	else
		CHECK_OK(shard_reader_view(r, kind == SMALL_VIEW, 5, &v, &fixture_err));
	CHECK(v.bytes);
	return v;
}

static struct shard_dataset *open_dataset(uint32_t guard)
{
	struct shard_dataset_options o = {.size = sizeof(o), .guard = guard};
	struct shard_dataset *ds;

	CHECK_OK(shard_dataset_open(&ds, folder.text, &o, &fixture_err));
	return ds;
}

TEST(what_a_program_reads_of_a_dataset_is_an_error_after_a_cut)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct shard_dataset *ds;
		struct shard_reader *r, *whole;
		struct look gone = {.runs = 0}, there = {.runs = 0};

		STORY("kind %d", kind);
		make();
		ds = open_dataset(SHARD_GUARD_ON);
		CHECK_OK(shard_dataset_reader(ds, 0, &whole, &fixture_err));
		CHECK_OK(shard_dataset_reader(ds, 1, &r, &fixture_err));
		gone.view = take(r, kind);
		there.view = take(whole, kind);
		CHECK_OK(shard_dataset_guarded(ds, look_work, &gone, &fixture_err));
		CHECK_EQ(truncate(shard.text, 0), 0);
		for (int i = 0; i < 3; i++) { /* again and again, and the other shard is whole */
			struct shard_error err = {.message = ""};

			CHECK_EQ(shard_dataset_guarded(ds, look_work, &gone, &err), SHARD_E_IO);
			CHECK(strstr(err.message, "/1.shard: its bytes cannot be read any more"));
			CHECK_EQ(shard_reader_guarded(r, look_work, &gone, &err), SHARD_E_IO);
			CHECK_OK(shard_dataset_guarded(ds, look_work, &there, &fixture_err));
			CHECK_OK(shard_reader_guarded(whole, look_work, &there, &fixture_err));
		}
		CHECK_EQ(gone.runs, 1);
		CHECK_EQ(there.runs, 6);
		shard_dataset_close(ds);
	}
	remove_tree(folder.text);
}

/* ---- what must end a process ---- */

static int end_of(uint32_t guard, bool of_dataset)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};
	struct shard_dataset *ds;
	struct shard_reader *r;
	struct look look = {.runs = 0};
	pid_t pid;

	make();
	if (child_begin(&pid, 60)) {
		sigaction(SIGBUS, &plain, NULL); /* neither a sanitizer's nor ours from before */
		ds = open_dataset(guard);
		CHECK_OK(shard_dataset_reader(ds, 1, &r, &fixture_err));
		look.view = take(r, VIEW);
		if (truncate(shard.text, 0))
			_exit(1);
		if (of_dataset)
			_exit(shard_dataset_guarded(ds, look_work, &look, NULL) ? 3 : 4);
		look_work(&look);
		_exit(5);
	}
	return child_end(pid);
}

TEST(without_it_that_is_the_end)
{
	for (int of_dataset = 0; of_dataset < 2; of_dataset++) {
		int status = end_of(SHARD_GUARD_OFF, of_dataset);

		STORY("guard off, %d: status 0x%x", of_dataset, (unsigned)status);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	}
	remove_tree(folder.text);
}

TEST_MAIN()
