/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_scheduler.c - which worker a process is, by every variable that schedulers and launchers set
 */
#include "tools/shardpack/make/make.h"

#include "tests/test.h"
#include "tools/common/message.h"

static const char *environment; /* "NAME=value NAME=value" */
static char value_room[8][64];
static unsigned value_next;

static char *get(const char *name)
{
	size_t bytes = strlen(name);

	for (const char *at = environment; at && *at; at += strcspn(at, " "), at += *at == ' ')
		if (!strncmp(at, name, bytes) && at[bytes] == '=') {
			char *room = value_room[value_next++ % 8];

			snprintf(room, 64, "%.*s", (int)strcspn(at + bytes + 1, " "), at + bytes + 1);
			return room;
		}
	return NULL;
}

#define HASHED (UINT64_C(1) << 32)

struct row {
	const char *environment;
	uint64_t number, count;
	const char *words, *job;
};

/* clang-format off */
static const struct row found[] = {
	{"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=9 SLURM_ARRAY_TASK_STEP=1 "
	 "SLURM_ARRAY_TASK_COUNT=10 SLURM_ARRAY_JOB_ID=77 SLURM_JOB_ID=80",
	 3, 10, "SLURM_ARRAY_TASK_ID 3 of 0-9", "SLURM_ARRAY_JOB_ID 77"},
	{"SLURM_ARRAY_TASK_ID=203 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=210 SLURM_ARRAY_TASK_COUNT=10 "
	 "SLURM_JOB_ID=80", 203, 211, "SLURM_ARRAY_TASK_ID 203 of 0-210", "SLURM_JOB_ID 80"},
	{"SLURM_ARRAY_TASK_ID=12 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_MAX=16 SLURM_ARRAY_TASK_STEP=4",
	 2, 4, "SLURM_ARRAY_TASK_ID 12 of 4-16", ""},
	{"SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=0 SLURM_ARRAY_TASK_COUNT=1",
	 0, 1, "SLURM_ARRAY_TASK_ID 0", ""},
	{"SLURM_ARRAY_TASK_ID=5", UINT64_MAX, HASHED, "SLURM_ARRAY_TASK_ID 5", ""},
	{"SGE_TASK_ID=1 SGE_TASK_FIRST=1 SGE_TASK_LAST=8 SGE_TASK_STEPSIZE=1 JOB_ID=9",
	 0, 8, "SGE_TASK_ID 1 of 1-8", "JOB_ID 9"},
	{"SGE_TASK_ID=7 SGE_TASK_FIRST=1 SGE_TASK_LAST=7 SGE_TASK_STEPSIZE=3", 2, 3, "SGE_TASK_ID 7 of 1-7", ""},
	{"LSB_JOBINDEX=4 LSB_JOBINDEX_END=4 LSB_JOBID=5", 3, 4, "LSB_JOBINDEX 4 of 1-4", "LSB_JOBID 5"},
	{"LSB_JOBINDEX=5 LSB_JOBINDEX_END=9 LSB_JOBINDEX_STEP=4", 1, 3, "LSB_JOBINDEX 5 of 1-9", ""},
	{"PBS_ARRAY_INDEX=6 PBS_JOBID=12[6].head", UINT64_MAX, HASHED, "PBS_ARRAY_INDEX 6", "PBS_JOBID 12"},
	{"PBS_ARRAYID=6", UINT64_MAX, HASHED, "PBS_ARRAYID 6", ""},
	{"PBS_ARRAYID=6 PBS_ARRAY_INDEX=6", UINT64_MAX, HASHED, "PBS_ARRAY_INDEX 6", ""},
	{"JOB_COMPLETION_INDEX=0", UINT64_MAX, HASHED, "JOB_COMPLETION_INDEX 0", ""},
	{"SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4", 2, 4, "SLURM_PROCID 2 of 4", ""},
	{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=1", 1, 4, "OMPI_COMM_WORLD_RANK 1 of 4", ""},
	{"PMIX_RANK=3 OMPI_COMM_WORLD_RANK=3", UINT64_MAX, HASHED, "OMPI_COMM_WORLD_RANK 3", ""},
	{"PMI_RANK=3 PMI_SIZE=5", 3, 5, "PMI_RANK 3 of 5", ""},
	{"PMIX_RANK=3 PMI_RANK=3 PMI_SIZE=5", 3, 5, "PMI_RANK 3 of 5", ""},
	{"PMIX_RANK=3", UINT64_MAX, HASHED, "PMIX_RANK 3", ""},
	/* mpirun was started by srun on one node of two, and inherits its words */
	{"OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2",
	 5, 8, "OMPI_COMM_WORLD_RANK 5 of 8", ""},
	/* ranks in an array */
	{"SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=3 SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4",
	 7, 12, "SLURM_ARRAY_TASK_ID 2 of 1-3, SLURM_PROCID 3 of 4", ""},
	{"SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=3 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1",
	 1, 3, "SLURM_ARRAY_TASK_ID 2 of 1-3", ""},
	{"JOB_COMPLETION_INDEX=1 PMI_RANK=0 PMI_SIZE=2", UINT64_MAX, HASHED,
	 "JOB_COMPLETION_INDEX 1, PMI_RANK 0 of 2", ""},
};

static const char *const none[] = {
	"",
	"SGE_TASK_ID=undefined SGE_TASK_FIRST=undefined SGE_TASK_LAST=undefined SGE_TASK_STEPSIZE=undefined JOB_ID=9",
	"LSB_JOBINDEX=0 LSB_JOBID=5", "SLURM_ARRAY_TASK_ID=", "PBS_ARRAY_INDEX=",
	"SLURM_PROCID=0", /* a batch script */ "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", /* a shell in an allocation */
	"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "SLURM_JOB_ID=5 SLURM_STEP_NUM_TASKS=8",
	"SLURM_ARRAY_TASK_COUNT=10 SLURM_ARRAY_TASK_MIN=1",
};

static const char *const refused[] = {
	"SLURM_ARRAY_TASK_ID=x", "SLURM_ARRAY_TASK_ID=-1", "SLURM_ARRAY_TASK_ID=1.5", "SLURM_ARRAY_TASK_ID=4x",
	"SLURM_ARRAY_TASK_ID=99999999999999999999", "PBS_ARRAY_INDEX=1000000000", "JOB_COMPLETION_INDEX=0x1",
	"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=2", "SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_MAX=8",
	"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_STEP=0", "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=0",
	"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=3 SLURM_ARRAY_TASK_COUNT=5",
	"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MAX=many", "SGE_TASK_ID=0", "SGE_TASK_ID=9 SGE_TASK_LAST=8",
	"LSB_JOBINDEX=5 LSB_JOBINDEX_END=4", "PBS_ARRAY_INDEX=1 PBS_ARRAYID=2",
	"SLURM_ARRAY_TASK_ID=1 JOB_COMPLETION_INDEX=2", "SLURM_PROCID=4 SLURM_STEP_NUM_TASKS=4",
	"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=0", "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=2",
	"OMPI_COMM_WORLD_RANK=1 PMI_RANK=2", "PMI_RANK=0 PMI_SIZE=none", "PMIX_RANK=rank",
};
/* clang-format on */

TEST(what_is_taken)
{
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		struct scheduler s;

		environment = found[i].environment;
		STORY("%s", environment);
		CHECK_EQ(scheduler_find(&s, get), EXIT_DONE);
		CHECK(s.found);
		CHECK_STR(s.words, found[i].words);
		CHECK_STR(s.job, found[i].job);
		CHECK_EQ(s.count, found[i].count);
		if (found[i].number != UINT64_MAX)
			CHECK_EQ(s.number, found[i].number);
		CHECK(s.number < s.count);
	}
}

TEST(what_is_none)
{
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct scheduler s;

		environment = none[i];
		STORY("%s", environment);
		CHECK_EQ(scheduler_find(&s, get), EXIT_DONE);
		CHECK(!s.found);
	}
}

TEST(what_contradicts_itself)
{
	message_start("test");
	message_level(MESSAGE_QUIET);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct scheduler s;

		environment = refused[i];
		STORY("%s", environment);
		CHECK_EQ(scheduler_find(&s, get), EXIT_USAGE);
		CHECK(!s.found);
	}
}

/* Workers with a count are spread evenly; those without one are spread. */
TEST(where_to_begin)
{
	bool taken[1000] = {false};
	unsigned places = 0;
	char text[64];

	for (unsigned k = 0; k < 10; k++) {
		struct scheduler s = {.number = k, .count = 10};

		CHECK_EQ(scheduler_begin(&s, 1000), k * 100);
		CHECK_EQ(scheduler_begin(&s, 1), 0);
		CHECK(scheduler_begin(&s, 3) < 3);
	}
	for (unsigned k = 0; k < 100; k++) {
		struct scheduler s;

		snprintf(text, sizeof(text), "JOB_COMPLETION_INDEX=%u", k);
		environment = text;
		CHECK_EQ(scheduler_find(&s, get), EXIT_DONE);
		places += !taken[scheduler_begin(&s, 1000)];
		taken[scheduler_begin(&s, 1000)] = true;
	}
	CHECK(places > 80);
}

TEST_MAIN()
