/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_common.c - arrays that grow, what ends without memory, and hashes in text
 */
#include "tests/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/child.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"

TEST(an_array_grows_with_its_items)
{
	uint32_t *items = NULL, *before;
	uint64_t capacity = 0;
	size_t moves = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		before = items;
		grow(&items, &capacity, i + 1, sizeof(*items));
		CHECK(capacity > i);
		moves += items != before;
		items[i] = i;
	}
	CHECK(moves <= 12); /* 64 * 2^11 is more than 100,000 */
	for (uint32_t i = 0; i < 100000; i++)
		CHECK_EQ(items[i], i);
	before = items;
	CHECK(!grow_if_room(&items, &capacity, UINT64_C(1) << 62, sizeof(*items)));
	CHECK(!grow_if_room(&items, &capacity, UINT64_MAX, 1));
	CHECK(items == before && capacity >= 100000);
	free(items);
}

static void *ask_product(void *unused)
{
	(void)unused;
	return xcalloc(SIZE_MAX / 2, 3);
}

static void *ask_growth(void *unused)
{
	uint8_t *items = NULL;
	uint64_t capacity = 0;

	(void)unused;
	grow(&items, &capacity, UINT64_MAX, 1);
	return items;
}

static void *ask_text(void *unused)
{
	struct text t = {0};

	(void)unused;
	text_hex(&t, NULL, SIZE_MAX / 8);
	return t.data;
}

/* From another thread, while main() waits with a lock held. */
TEST(without_memory_any_thread_ends_the_program)
{
	static const struct {
		const char *story;
		void *(*ask)(void *);
	} rows[] = {{"a product", ask_product}, {"an array that grows", ask_growth}, {"a text", ask_text}};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char said[4096];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FILE *err = tmpfile();
		pthread_t thread;
		pid_t pid;

		STORY("%s", rows[i].story);
		CHECK(err != NULL);
		if (child_begin(&pid, 60)) {
			dup2(fileno(err), STDERR_FILENO);
			pthread_mutex_lock(&lock);
			pthread_create(&thread, NULL, rows[i].ask, NULL);
			pthread_join(thread, NULL);
			_exit(99);
		}
		CHECK_EQ(WEXITSTATUS(child_end(pid)), EXIT_IO);
		rewind(err);
		said[fread(said, 1, sizeof(said) - 1, err)] = '\0';
		CHECK(strstr(said, "out of memory: the system refused ") && strstr(said, " bytes\n"));
		fclose(err);
	}
}

TEST(a_hash_is_as_long_as_it_must_be)
{
	/* What is behind the shorter text is none of its bytes; the sanitizer looks at the copy. */
	static const char digits[] = "00ff7a";
	uint8_t out[4] = {0};

	for (size_t bytes = 0; bytes <= 6; bytes++) {
		char *in = malloc(bytes + !bytes);

		memcpy(in, digits, bytes);
		CHECK_EQ(text_unhex(in, bytes, out, 3), bytes == 6);
		free(in);
	}
	CHECK(out[0] == 0 && out[1] == 0xff && out[2] == 0x7a);
	CHECK(!text_unhex("00ff7a", 6, out, 2));
	CHECK(!text_unhex("00ff7a00", 8, out, 3));
}

TEST_MAIN()
