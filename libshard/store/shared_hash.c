/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_hash.c - SHA-256 by threads that help each other
 *
 * Who comes first is the host and hashes alone, looking up now and then.  Who comes while there is a host becomes its
 * guest and sleeps: from then on the host hashes both, until one of them has no more.  A guest that is left with a rest
 * goes on with it itself.  There is one host with one guest in a process; a third thread hashes alone.
 */
#include "libshard/store/shared_hash.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "libshard/base/bytes.h"

#define LOOK_BYTES ((size_t)64 << 10) /* the host hashes alone between two looks for a guest */

struct party {
	struct sha256 *sha;
	const uint8_t *data;
	size_t left;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t told;  /* with lock: `guest` was set free */
	bool hosted;	      /* lock: there is a host */
	pid_t pid;	      /* lock: its process; a child that was forked meanwhile has a copy of this, and no host */
	struct party *guest;  /* lock: the host's to change while it is set; only the host sets it free */
} here = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};

static void advance(struct party *p, size_t bytes)
{
	p->data += bytes;
	p->left -= bytes;
}

/* With the lock: hash as a host until `me` has no more. */
static void be_host(struct party *me)
{
	here.hosted = true;
	here.pid = getpid();
	while (me->left) {
		struct party *guest = here.guest;
		size_t n = guest ? min_u64(me->left, guest->left) : min_u64(me->left, LOOK_BYTES);

		pthread_mutex_unlock(&here.lock);
		if (guest) {
			sha256_update_pair(me->sha, me->data, guest->sha, guest->data, n);
			advance(guest, n);
		} else {
			sha256_update(me->sha, me->data, n);
		}
		advance(me, n);
		pthread_mutex_lock(&here.lock);
		if (guest && (!guest->left || !me->left)) {
			here.guest = NULL;
			pthread_cond_broadcast(&here.told);
		}
	}
	if (here.guest) { /* it came when the last bytes were hashed */
		here.guest = NULL;
		pthread_cond_broadcast(&here.told);
	}
	here.hosted = false;
}

void shared_hash_update(struct sha256 *s, const uint8_t *data, size_t data_bytes)
{
	struct party me = {s, data, data_bytes};

	/* Not waiting for the lock: in a child forked from a thread's midst nobody would ever give it back. */
	while (s->pair && me.left && pthread_mutex_trylock(&here.lock) == 0) {
		bool ours = here.hosted && here.pid == getpid();

		if (!ours) {
			here.guest = NULL;
			be_host(&me);
		} else if (!here.guest) {
			here.guest = &me;
			while (here.guest == &me)
				pthread_cond_wait(&here.told, &here.lock);
		} else {
			pthread_mutex_unlock(&here.lock);
			break;
		}
		pthread_mutex_unlock(&here.lock);
	}
	sha256_update(s, me.data, me.left);
}
