/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_claims_simulation.c - a thousand workers that claim shards, in simulated time, with the code
 * of shardpack itself: claim.c, claims.c, scheduler.c, output.c
 *
 *   prog_claims_simulation SHARDS WORKERS SEED [mute | together]
 *
 * Workers differ in speed and shards in size.  30 % of the workers are killed at random moments,
 * a tenth of them with all of their machine; half of these come back.  After a third of the work
 * 30 % leave when they are asked to, and after two thirds 60 % more come.  5 % are stopped, some
 * for longer than it takes to be replaced, and go on.  All machines cache what they see for a
 * minute.  Somebody asks for the status now and then.
 *
 * It prints a line of names and numbers; calls are those of one shard.  Exit 1 if a shard is missing
 * or wrong, or if a worker fails.
 *
 * Two negative controls: `mute`, where signs of life are lost, so that workers take the living for
 * dead; and `together`, where all begin at the first shard.
 *
 * LDFLAGS: -Wl,--wrap=clock_gettime,--wrap=nanosleep,--wrap=pthread_create,--wrap=pthread_join
 * LDFLAGS: -Wl,--wrap=pthread_mutex_init,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock
 * LDFLAGS: -Wl,--wrap=pthread_cond_timedwait,--wrap=pthread_cond_signal
 * LDFLAGS: -Wl,--wrap=lstat64,--wrap=opendir,--wrap=readdir64,--wrap=closedir,--wrap=access
 * LDFLAGS: -Wl,--wrap=open64,--wrap=read,--wrap=pwrite64,--wrap=fsync,--wrap=close,--wrap=unlink
 * LDFLAGS: -Wl,--wrap=shard_publish,--wrap=kill,--wrap=getrandom
 * LDFLAGS: -Wl,--wrap=claim_self,--wrap=interrupted,--wrap=asked_to_stop,--wrap=fail
 */
#include "shard.h"
#include "tests/pack/sim_folder.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/make/make.h"
#include "tools/shardpack/plan/plan.h"

#define HOST_WORKERS  8
#define AHEAD	      3	 /* CLAIM_AHEAD of build.c */
#define SHARD_SECONDS 30 /* the median */

struct worker {
	struct sim_process process; /* first, so that a process is found in it */
	struct scheduler place;
	struct job job;
	double speed;
	uint64_t task_id;
	uint64_t building, since_ns; /* UINT64_MAX: no shard; the one it builds, and since when */
};

static struct {
	uint64_t shard_count, worker_count, seed;
	struct plan plan;
	struct worker **worker;
	uint64_t started, alive, killed, stopped, came_back, left;
	double work, useful; /* seconds of workers; useful: of builds that gave a shard its name */
	uint64_t builds, repeats, two_owners;
	uint8_t *builders; /* [shard_count] how many build it now */
	uint64_t waited_ns, looks;
	bool *todo;
	bool together, failed;
} job_state;

/* ---- what shardpack asks of its process ---- */

WRAPPED(bool, interrupted, void)
{
	return sim_is_dead();
}

WRAPPED(bool, asked_to_stop, void)
{
	return sim.task && sim.task->process->asked_to_stop;
}

WRAPPED(int, fail, int code, const char *fmt, ...)
{
	va_list ap;

	if (sim_is_dead())
		return code;
	job_state.failed = true;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	return code;
}

WRAPPED(void, claim_self, struct claim_owner *self, const char *job)
{
	const struct sim_process *p = sim.task->process;

	*self = (struct claim_owner){.pid = SIM_PID_FIRST + p->idx, .start = 1};
	snprintf(self->host, sizeof(self->host), "node%" PRIu64, p->host);
	snprintf(self->boot, sizeof(self->boot), "boot%" PRIu64, p->host);
	snprintf(self->space, sizeof(self->space), "pid:[1]");
	snprintf(self->job, sizeof(self->job), "%s", job);
}

/* ---- a worker, as build.c makes it ---- */

static uint64_t content_of(uint64_t idx)
{
	return (idx + job_state.seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static double seconds_of(uint64_t idx)
{
	uint64_t kept = sim.random;
	double seconds;

	sim.random = content_of(idx);
	seconds = sim_lognormal(SHARD_SECONDS, 0.6);
	sim.random = kept;
	return seconds;
}

static void stop_building(struct worker *w, bool useful)
{
	double seconds = (double)(sim.now_ns - w->since_ns) / 1e9;

	if (w->building == UINT64_MAX)
		return;
	job_state.builders[w->building]--;
	job_state.work += seconds;
	job_state.useful += useful ? seconds : 0;
	w->building = UINT64_MAX;
}

static void build_shard(struct worker *w, struct claims *c, uint64_t idx)
{
	bool ours;

	w->building = idx;
	w->since_ns = sim.now_ns;
	job_state.two_owners += job_state.builders[idx]++ > 0;
	sim_sleep((uint64_t)(seconds_of(idx) / w->speed * 1e9));
	if (w->process.dead)
		return;
	ours = folder_publish_shard(idx, content_of(idx));
	if (w->process.dead)
		return;
	job_state.builds++;
	job_state.repeats += !ours;
	stop_building(w, ours);
	claims_ended(c, idx, true);
}

static int fill(struct worker *w, struct claims *c)
{
	uint64_t idx[AHEAD], claimed = 0, built = 0;
	int code = EXIT_DONE;

	while (code == EXIT_DONE) {
		bool got = true;

		while (got && !w->process.asked_to_stop && claimed < built + AHEAD) {
			code = claims_next(c, &idx[claimed % AHEAD], &got);
			if (code != EXIT_DONE || !got)
				break;
			claimed++;
		}
		if (code != EXIT_DONE || built == claimed)
			break;
		if (w->process.asked_to_stop)
			return EXIT_STOPPED;
		build_shard(w, c, idx[built++ % AHEAD]);
	}
	return code;
}

static int wait_for_more(struct claims *c, bool *more)
{
	uint64_t begin_ns = sim.now_ns;
	int code = claims_wait(c, more);

	job_state.waited_ns += sim.now_ns - begin_ns;
	return code;
}

static void *work(void *context)
{
	struct worker *w = context;
	struct claims *c;
	bool more, is_complete = false;
	int code = claims_open(&c, &w->job);

	if (code == EXIT_DONE)
		code = claims_mark_open(c, job_state.todo);
	if (code == EXIT_DONE)
		code = wait_for_more(c, &more);
	while (code == EXIT_DONE && more) {
		uint64_t missing = 0; /* all are asked, as build.c does */

		for (uint64_t k = 0; k < job_state.shard_count; k++)
			missing += claims_is_missing(c, k);
		job_state.failed |= !missing;
		code = fill(w, c);
		if (code == EXIT_DONE)
			code = wait_for_more(c, &more);
	}
	if (code == EXIT_DONE)
		code = claims_tell(c, &is_complete);
	claims_close(c);
	w->process.ended = true;
	if (w->process.dead)
		return NULL;
	job_state.alive--;
	/* One that is asked to stop may find all done first. */
	if (code != (is_complete ? EXIT_DONE : EXIT_STOPPED) || !(is_complete || w->process.asked_to_stop)) {
		fprintf(stderr, "worker %" PRIu64 " ended with %d\n", w->process.idx, code);
		job_state.failed = true;
	}
	return NULL;
}

/* ---- workers come and go ---- */

static uint64_t asking_task;

static char *environment(const char *name)
{
	static char id[24], last[24];

	if (!strcmp(name, "SLURM_ARRAY_TASK_ID")) {
		snprintf(id, sizeof(id), "%" PRIu64, asking_task);
		return id;
	}
	snprintf(last, sizeof(last), "%" PRIu64, job_state.worker_count * 2);
	return !strcmp(name, "SLURM_ARRAY_TASK_MIN")   ? "0"
	       : !strcmp(name, "SLURM_ARRAY_TASK_MAX") ? last
	       : !strcmp(name, "SLURM_ARRAY_JOB_ID")   ? "77"
						       : NULL;
}

static void start_worker(uint64_t task_id, uint64_t at_ns)
{
	struct worker *w = calloc(1, sizeof(*w));
	uint64_t idx = job_state.started++, hosts = folder.host_count - 1;

	if (!w || idx == 4 * job_state.worker_count)
		abort();
	job_state.alive++;
	asking_task = task_id;
	if (scheduler_find(&w->place, environment) != EXIT_DONE)
		abort();
	if (job_state.together)
		w->place.number = 0;
	w->process = (struct sim_process){.idx = idx, .host = idx / HOST_WORKERS % hosts};
	w->job = (struct job){.plan = &job_state.plan, .out_dir = SIM_OUT, .worker = &w->place};
	snprintf(w->job.state_dir, sizeof(w->job.state_dir), SIM_OUT "/.shardpack");
	w->speed = sim_lognormal(1, 0.25);
	w->task_id = task_id;
	w->building = UINT64_MAX;
	job_state.worker[idx] = w;
	folder.process[idx] = &w->process;
	folder.process_count = idx + 1;
	sim_start(&w->process, work, w, at_ns);
}

/* One that works, by chance; NULL if there is none. */
static struct worker *any_worker(void)
{
	for (uint64_t i = 0; job_state.alive && i < 100000; i++) {
		struct worker *w = job_state.worker[sim_random() % job_state.started];

		if (!w->process.dead && !w->process.ended && !w->process.asked_to_stop)
			return w;
	}
	return NULL;
}

static void kill_one(struct worker *w)
{
	if (w->process.dead || w->process.ended)
		return;
	stop_building(w, false);
	w->process.dead = true;
	job_state.alive--;
	job_state.killed++;
	if (sim_random() % 2) { /* the scheduler starts it again */
		start_worker(w->task_id, sim.now_ns + 60 * SIM_SECOND + sim_random() % (600 * SIM_SECOND));
		job_state.came_back++;
	}
}

/* Alone, or with all of its machine. */
static void kill_some(uint64_t most)
{
	struct worker *w = any_worker();
	bool machine = sim_random() % (10 * HOST_WORKERS) == 0;
	uint64_t before = job_state.killed, started = job_state.started;

	if (!w)
		return;
	kill_one(w);
	for (uint64_t i = 0; machine && i < started && job_state.killed - before < most; i++)
		if (job_state.worker[i]->process.host == w->process.host)
			kill_one(job_state.worker[i]);
}

static void stop_one(void)
{
	struct worker *w = any_worker();

	if (!w)
		return;
	w->process.stopped_until = sim.now_ns + 50 * SIM_SECOND + sim_random() % (2000 * SIM_SECOND);
	job_state.stopped++;
}

/* By how much of the work is done: so nothing depends on how long it takes. */
static void *direct(void *context)
{
	uint64_t workers = job_state.worker_count, kills = workers * 16 / 10 * 3 / 10, stops = workers / 20;
	bool left = false, more = false;

	(void)context;
	while (job_state.alive) {
		double done = (double)folder.in_order / (double)job_state.shard_count;

		while (job_state.killed < kills && sim_share() < done * (double)kills - (double)job_state.killed)
			kill_some(kills - job_state.killed);
		while (job_state.stopped < stops && (double)job_state.stopped < done * (double)stops)
			stop_one();
		for (; !left && done > 1.0 / 3 && job_state.left < workers * 3 / 10; job_state.left++)
			any_worker()->process.asked_to_stop = true;
		left = left || job_state.left;
		for (uint64_t i = 0; !more && done > 2.0 / 3 && i < workers * 6 / 10; i++)
			start_worker(workers + i, sim.now_ns + sim_random() % (60 * SIM_SECOND));
		more = more || done > 2.0 / 3;
		sim_sleep(SIM_SECOND);
	}
	return NULL;
}

/* As cmd_status.c looks at claims: it changes nothing. */
static void *observe(void *context)
{
	bool *claimed = context;
	struct claim_owner self;

	claim_self(&self, "");
	while (job_state.alive) {
		memset(claimed, 0, job_state.shard_count);
		if (claim_list(SIM_OUT "/.shardpack", job_state.shard_count, claimed) != EXIT_DONE)
			abort();
		for (uint64_t k = 0; k < job_state.shard_count; k++) {
			struct claim_view v;
			char path[4400];

			if (!claimed[k])
				continue;
			if (claim_path(path, SIM_OUT "/.shardpack", k) != EXIT_DONE ||
			    claim_look(path, &v) != EXIT_DONE)
				abort();
			job_state.failed |= v.there && !v.nonce[0]; /* no claim is seen half written */
			claim_is_dead(&v, &self);
		}
		job_state.looks++;
		sim_sleep(1000 * SIM_SECOND);
	}
	free(claimed);
	return NULL;
}

/* ---- all of it ---- */

static void judge(void)
{
	for (uint64_t k = 0; k < job_state.shard_count; k++)
		if (!folder.published_ns[k] || folder.content[k] != content_of(k)) {
			fprintf(stderr, "shard %" PRIu64 " is missing or wrong\n", k);
			job_state.failed = true;
			break;
		}
	if (folder.in_order != job_state.shard_count || job_state.builds - job_state.repeats != job_state.shard_count)
		job_state.failed = true;
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void tell(double code_seconds)
{
	const struct sim_calls *c = &folder.calls;
	double n = (double)job_state.shard_count;

	printf("seed %" PRIu64 " shards %" PRIu64 " workers %" PRIu64 " started %" PRIu64 " killed %" PRIu64
	       " came_back %" PRIu64 " left %" PRIu64 " stopped %" PRIu64 " status %" PRIu64 " hours %.2f",
	       job_state.seed, job_state.shard_count, job_state.worker_count, job_state.started, job_state.killed,
	       job_state.came_back, job_state.left, job_state.stopped, job_state.looks, (double)sim.now_ns / 3.6e12);
	printf(" repeated_percent %.4f repeats %" PRIu64 " two_owners %" PRIu64 " idle_percent %.2f",
	       100 * (job_state.work / job_state.useful - 1), job_state.repeats, job_state.two_owners,
	       100 * (double)job_state.waited_ns / 1e9 / job_state.work);
	printf(" names %.1f lists %.5f lstats %.2f opens %.2f absent %.2f publishes %.4f unlinks %.4f beats %.3f "
	       "code_ms %.4f\n",
	       (double)c->names / n, (double)c->lists / n, (double)c->lstats / n, (double)c->opens / n,
	       (double)c->absent / n, (double)c->publishes / n, (double)c->unlinks / n, (double)c->beats / n,
	       code_seconds / n * 1e3);
}

int main(int argc, char **argv)
{
	static struct sim_process director, observer;
	uint64_t hosts;
	double begin;

	if (argc != 4 && argc != 5)
		return 2;
	folder.is_mute = argc == 5 && !strcmp(argv[4], "mute");
	job_state.together = argc == 5 && !strcmp(argv[4], "together");
	job_state.shard_count = job_state.plan.shard_count = strtoull(argv[1], NULL, 10);
	job_state.worker_count = strtoull(argv[2], NULL, 10);
	job_state.seed = sim.random = strtoull(argv[3], NULL, 10);
	message_start("simulation");
	message_level(MESSAGE_QUIET);
	hosts = (job_state.worker_count + HOST_WORKERS - 1) / HOST_WORKERS + 1;
	folder_open(job_state.shard_count, hosts);
	sim.now_ns = SIM_SECOND; /* 0 means never */
	job_state.worker = calloc(4 * job_state.worker_count, sizeof(*job_state.worker));
	folder.process = calloc(4 * job_state.worker_count, sizeof(*folder.process));
	job_state.builders = calloc(job_state.shard_count, 1);
	job_state.todo = calloc(job_state.shard_count, 1);
	if (!job_state.worker || !folder.process || !job_state.builders || !job_state.todo)
		abort();
	for (uint64_t i = 0; i < job_state.worker_count; i++)
		start_worker(i, sim.now_ns + sim_random() % (60 * SIM_SECOND));
	director.host = observer.host = hosts - 1;
	sim_start(&director, direct, NULL, sim.now_ns);
	sim_start(&observer, observe, calloc(job_state.shard_count, 1), sim.now_ns);
	begin = cpu_seconds();
	sim_run();
	begin = cpu_seconds() - begin;
	judge();
	tell(begin);
	for (uint64_t i = 0; i < job_state.started; i++)
		free(job_state.worker[i]);
	free(job_state.worker);
	free(folder.process);
	free(job_state.builders);
	free(job_state.todo);
	free(sim.event);
	folder_close();
	return job_state.failed;
}
