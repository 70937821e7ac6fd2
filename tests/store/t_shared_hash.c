/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_shared_hash.c - SHA-256 by threads that help each other: the same digests as alone, also in a forked child
 *
 * LDFLAGS: -Wl,--wrap=sha256_update_pair
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshard/store/shared_hash.h"
#include "tests/test.h"

enum { THREADS = 5, ROUNDS = 60, LIMIT = 3 << 20 };

static uint8_t *data;
static atomic_uint_fast64_t paired_bytes; /* of one of two streams */

void __real_sha256_update_pair(struct sha256 *s, const void *a, struct sha256 *t, const void *b, size_t data_bytes);
void __wrap_sha256_update_pair(struct sha256 *s, const void *a, struct sha256 *t, const void *b, size_t data_bytes);

void __wrap_sha256_update_pair(struct sha256 *s, const void *a, struct sha256 *t, const void *b, size_t data_bytes)
{
	paired_bytes += data_bytes;
	__real_sha256_update_pair(s, a, t, b, data_bytes);
}

struct stream {
	pthread_t thread;
	uint32_t random;
	unsigned wrong;
	bool portable;
};

static uint32_t random32(struct stream *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random;
}

/* Streams of any length in pieces of any size: some threads have no instructions, and so must not wait for others. */
static void *hash_streams(void *context)
{
	struct stream *s = context;

	for (int round = 0; round < ROUNDS; round++) {
		size_t total = random32(s) % LIMIT, done = 0;
		const uint8_t *p = data + random32(s) % 64;
		uint8_t ours[SHA256_BYTES], alone[SHA256_BYTES];
		struct sha256 shared, one;

		sha256_init(&shared);
		sha256_init(&one);
		if (s->portable) {
			shared.blocks = sha256_blocks_portable;
			shared.pair = NULL;
		}
		for (size_t n; done < total; done += n) {
			n = random32(s) % (random32(s) % 4 ? 300000 : 2 << 20);
			n = n < total - done ? n : total - done;
			shared_hash_update(&shared, p + done, n);
		}
		sha256_update(&one, p, total);
		sha256_final(&shared, ours);
		sha256_final(&one, alone);
		s->wrong += memcmp(ours, alone, SHA256_BYTES) != 0;
	}
	return NULL;
}

static void start(struct stream *s, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		s[i] = (struct stream){.random = (uint32_t)(7 * i + 1), .portable = i + 1 == THREADS};
		CHECK_EQ(pthread_create(&s[i].thread, NULL, hash_streams, &s[i]), 0);
	}
}

static void join(struct stream *s, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		CHECK_EQ(pthread_join(s[i].thread, NULL), 0);
		CHECK_EQ(s[i].wrong, 0);
	}
}

static void make_data(void)
{
	struct stream s = {.random = 99};

	data = malloc(LIMIT + 64);
	CHECK(data != NULL);
	for (size_t i = 0; i < LIMIT + 64; i += 4) {
		uint32_t v = random32(&s);

		memcpy(data + i, &v, sizeof(v));
	}
}

TEST(threads_have_the_digests_that_one_has)
{
	struct stream s[THREADS];

	make_data();
	start(s, THREADS);
	join(s, THREADS);
	CHECK(!sha256_pair_ni() || paired_bytes > LIMIT); /* they did meet */
	free(data);
}

#if !defined(__SANITIZE_THREAD__) /* which takes threads that a child does not have for threads that it forgot */
/* A child is forked while threads hash: none of them is there to host it or to be waited for. */
TEST(a_forked_child_waits_for_nobody)
{
	struct stream s[2];

	make_data();
	start(s, 2);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status = 0;

		CHECK(child >= 0);
		if (!child) {
			struct stream own = {.random = 5};

			alarm(60);
			hash_streams(&own);
			_exit(own.wrong != 0);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}
	join(s, 2);
	free(data);
}
#endif

TEST_MAIN()
