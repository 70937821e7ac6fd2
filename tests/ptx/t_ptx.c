/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ptx.c - the interpreter itself: what opcodes do, and that each of its checks can fail
 */
#include "tests/ptx/ptx.h"
#include "tests/store/fixture.h"

/* A kernel with a parameter {address, 5, -7}, around a body. */
#define HEAD                                                            \
	".version 6.3\n.target sm_75\n.address_size 64\n"               \
	".const .align 8 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 255};\n"  \
	".extern .shared .align 16 .b8 room[];\n.visible .entry k(\n"   \
	".param .align 8 .b8 k_param_0[16]\n)\n.maxntid 64, 1, 1\n{\n"  \
	".reg .pred %p<3>;\n.reg .b16 %rs<3>;\n.reg .b32 %r<9>;\n"      \
	".reg .b64 %rd<9>;\n.reg .f64 %fd<4>;\n"                        \
	"ld.param.u64 %rd1, [k_param_0];\nld.param.v2.u32 {%r1, %r2}, " \
	"[k_param_0+8];\nmov.u32 %r3, %tid.x;\nmul.wide.u32 %rd2, %r3, 8;\nadd.s64 %rd3, %rd1, %rd2;\n"
#define TAIL "ret;\n}\n"
#define GIVE "st.u64 [%rd3], %rd4;\n"
#define AT   UINT64_C(0x7f0000000000)

#define THREADS_MOST 64u

/* The numbers that threads stored, or an error that says why none.  There is room for 8 or more. */
static bool run_threads(const char *body, uint32_t threads, uint64_t out[THREADS_MOST], char error[PTX_ERROR_BYTES])
{
	static uint8_t store[8 * THREADS_MOST], written[8 * THREADS_MOST];
	struct {
		uint64_t to;
		uint32_t five, minus_seven;
	} parameter = {AT, 5, (uint32_t)-7};
	struct ptx_launch l = {.name = "k",
			       .grid = {1, 1},
			       .threads = threads,
			       .shared_bytes = 32,
			       .parameter = &parameter,
			       .region = {{AT, threads < 8 ? 64 : 8 * threads, store, true, false, written}},
			       .region_count = 1,
			       .seed = 5};
	char text[4096];
	struct ptx_program *p;
	bool good;

	snprintf(text, sizeof(text), "%s%s%s", HEAD, body, TAIL);
	memset(written, 0, sizeof(written));
	p = ptx_read(text, error);
	good = p && ptx_run(p, &l, error);
	memcpy(out, store, 8 * THREADS_MOST);
	ptx_free(p);
	return good;
}

/* The number that the first of two threads stored. */
static bool run_body(const char *body, uint64_t *out, char error[PTX_ERROR_BYTES])
{
	uint64_t all[THREADS_MOST];
	bool good = run_threads(body, 2, all, error);

	*out = all[0];
	return good;
}

/* r1 is 5, r2 is -7, rd2 is 8 x the thread; the number goes from rd4 to the thread's place. */
static const struct {
	const char *body;
	uint64_t want;
} computed[] = {
	{"add.s32 %r4, %r1, %r2;\ncvt.u64.u32 %rd4, %r4;\n", 0xfffffffe},
	{"cvt.s64.s32 %rd4, %r2;\n", (uint64_t)-7},
	{"mul.wide.s32 %rd4, %r1, %r2;\n", (uint64_t)-35},
	{"mul.wide.u32 %rd4, %r1, %r2;\n", UINT64_C(0x4ffffffdd)},
	{"mul.hi.u32 %r4, %r1, %r2;\ncvt.u64.u32 %rd4, %r4;\n", 4},
	{"mul.hi.u64 %rd4, %rd1, %rd1;\n", 0x3f010000},
	{"ld.const.u32 %r4, [table+4];\ncvt.u64.u32 %rd4, %r4;\n", 0xff070605},
	{"mov.u64 %rd5, table;\nld.const.u8 %rd4, [%rd5+1];\n", 2},
	{"mad.lo.s32 %r4, %r1, %r2, 40;\ncvt.u64.u32 %rd4, %r4;\n", 5},
	{"div.s32 %r4, %r2, 2;\ncvt.u64.u32 %rd4, %r4;\n", 0xfffffffd},
	{"rem.s32 %r4, %r2, 2;\ncvt.u64.u32 %rd4, %r4;\n", 0xffffffff},
	{"div.u32 %r4, %r2, 2;\ncvt.u64.u32 %rd4, %r4;\n", 0x7ffffffc},
	{"shr.s32 %r4, %r2, 1;\ncvt.u64.u32 %rd4, %r4;\n", 0xfffffffc},
	{"shr.s32 %r4, %r2, 40;\ncvt.u64.u32 %rd4, %r4;\n", 0xffffffff},
	{"shr.u32 %r4, %r2, 32;\ncvt.u64.u32 %rd4, %r4;\n", 0},
	{"shl.b32 %r4, %r1, 31;\ncvt.u64.u32 %rd4, %r4;\n", 0x80000000},
	{"shl.b64 %rd5, %rd1, 64;\nadd.s64 %rd4, %rd5, 1;\n", 1},
	{"min.s32 %r4, %r1, %r2;\ncvt.u64.u32 %rd4, %r4;\n", 0xfffffff9},
	{"min.u32 %r4, %r1, %r2;\ncvt.u64.u32 %rd4, %r4;\n", 5},
	{"prmt.b32 %r4, %r1, %r2, 33360;\ncvt.u64.u32 %rd4, %r4;\n", 0x0000ff05}, /* 0x8250 */
	{"prmt.b32 %r4, %r1, %r2, 50292;\ncvt.u64.u32 %rd4, %r4;\n", 0xfff9fff9}, /* 0xc474 */
	{"mov.u64 %rd5, 255;\nbfi.b64 %rd4, %rd5, 0, 60, 8;\n", UINT64_C(0xf000000000000000)},
	{"bfe.u32 %r4, %r2, 28, 8;\ncvt.u64.u32 %rd4, %r4;\n", 15},
	{"setp.lt.s32 %p1, %r2, %r1;\nselp.b64 %rd4, 1, 2, %p1;\n", 1},
	{"setp.lt.u32 %p1, %r2, %r1;\nselp.b64 %rd4, 1, 2, %p1;\n", 2},
	{"mov.b64 %rd4, {%r1, %r2};\n", UINT64_C(0xfffffff900000005)},
	{"mov.b64 {%r4, %r5}, %rd1;\ncvt.u64.u32 %rd4, %r5;\n", 0x7f00},
	{"cvt.u16.u32 %rs1, %r2;\ncvt.u64.u16 %rd4, %rs1;\n", 0xfff9},
	{"cvt.rn.f64.s32 %fd1, %r2;\nmov.b64 %rd4, %fd1;\n", UINT64_C(0xc01c000000000000)},
	{"cvt.rn.f64.u32 %fd1, %r1;\ndiv.rn.f64 %fd2, %fd1, 0d4008000000000000;\nmov.b64 %rd4, %fd2;\n",
	 UINT64_C(0x3ffaaaaaaaaaaaab)},
	{"mov.f64 %fd1, 0d4004000000000000;\ncvt.rzi.u32.f64 %r4, %fd1;\ncvt.u64.u32 %rd4, %r4;\n", 2}, /* of 2.5 */
	{"mov.f64 %fd1, 0d400C000000000000;\ncvt.rni.u32.f64 %r4, %fd1;\ncvt.u64.u32 %rd4, %r4;\n", 4}, /* of 3.5 */
	{"mov.f64 %fd1, 0dC004000000000000;\ncvt.rzi.s32.f64 %r4, %fd1;\ncvt.u64.u32 %rd4, %r4;\n", 0xfffffffe},
	{"mov.f64 %fd1, 0dC004000000000000;\ncvt.rzi.u32.f64 %r4, %fd1;\ncvt.u64.u32 %rd4, %r4;\n", 0},
	{"mov.f64 %fd1, 0d7FF8000000000000;\nsetp.leu.f64 %p1, %fd1, %fd1;\nsetp.le.f64 %p2, %fd1, %fd1;\n"
	 "selp.b64 %rd4, 1, 2, %p1;\n@%p2 mov.u64 %rd4, 3;\n",
	 1},
	{"mov.u64 %rd4, 0;\n$again:\nadd.s64 %rd4, %rd4, 3;\nsetp.lt.u64 %p1, %rd4, 10;\n@%p1 bra $again;\n", 12},
};

TEST(opcodes_do_what_the_manual_says)
{
	for (size_t i = 0; i < COUNT(computed); i++) {
		char body[1024], error[PTX_ERROR_BYTES] = "";
		uint64_t got;

		STORY("row %zu", i);
		snprintf(body, sizeof(body), "%s%s", computed[i].body, GIVE);
		CHECK_STR(run_body(body, &got, error) ? "" : error, "");
		CHECK_EQ(got, computed[i].want);
	}
}

static const struct {
	const char *story, *body, *error;
} refused[] = {
	{"unknown opcode", "popc.b32 %r4, %r1;\n", "line 21: unknown opcode 'popc.b32'"},
	{"unknown rounding", "add.rz.f64 %fd1, %fd1, %fd1;\n", "line 21: unknown opcode 'add.rz.f64'"},
	{"fused arithmetic", "fma.rn.f64 %fd1, %fd1, %fd1, %fd1;\n", "line 21: unknown opcode 'fma.rn.f64'"},
	{"unknown space", "ld.local.u32 %r4, [%rd1];\n", "line 21: unknown opcode 'ld.local.u32'"},
	{"another width", "add.s32 %rd4, %rd1, %rd1;\n", "line 21: '%rd4' has 64 bits, and 32 are asked for"},
	{"unknown register", "add.s32 %r4, %r99, %r1;\n", "line 21: unknown operand '%r99'"},
	{"unknown label", "bra $nowhere;\n", "line 21: there is no label '$nowhere'"},
	{"operands", "add.s32 %r4, %r1;\n", "line 21: 'add' with 2 operands"},
	{"before the region", "st.u64 [%rd3+-8], %rd1;\n", "bound: nothing is there"},
	{"behind the region", "st.u64 [%rd3+64], %rd1;\n", "bound: nothing is there"},
	{"reads what is to be written", "ld.u64 %rd4, [%rd3];\n", "bound: reads where a launch may only write"},
	{"behind the parameters", "ld.param.u32 %r4, [k_param_0+16];\n", "bound: nothing is there"},
	{"behind shared memory", "ld.shared.u32 %r4, [room+32];\n", "bound: outside shared memory"},
	{"behind a constant", "ld.const.u64 %rd4, [table+8];\n", "bound: nothing is there"},
	{"writes a constant", "st.const.u8 [table], %r1;\n", "line 21: unknown opcode 'st.const.u8'"},
	{"not aligned", "st.u64 [%rd3+4], %rd1;\n", "alignment: no multiple"},
	{"a vector that is not aligned", "ld.shared.v2.u32 {%r4, %r5}, [room+4];\n", "alignment: no multiple"},
	{"stored by both", "st.u32 [%rd1], %r1;\n", "twice: a byte of the output"},
	{"both write", "st.shared.u32 [room], %r1;\n", "race: another thread wrote"},
	{"one writes, all read",
	 "setp.eq.s32 %p1, %r3, 0;\n@%p1 st.shared.u32 [room], %r1;\nld.shared.u32 %r4, [room];\n", "race: another"},
	{"a barrier for one", "setp.eq.s32 %p1, %r3, 0;\n@%p1 bra $end;\nbar.sync 0;\n$end:\n",
	 "barrier: another thread"},
	{"two barriers",
	 "setp.eq.s32 %p1, %r3, 0;\n@%p1 bra $one;\nbar.sync 0;\nbra $end;\n$one:\nbar.sync 0;\n$end:\n",
	 "barrier: another thread"},
	{"division by zero", "mov.u32 %r5, 0;\ndiv.u32 %r4, %r1, %r5;\n", "division by zero"},
	{"no end", "$again:\nbra $again;\n", "a thread does not end"},
};

TEST(what_is_wrong_is_said)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		char error[PTX_ERROR_BYTES] = "";
		uint64_t got;

		STORY("%s", refused[i].story);
		CHECK(!run_body(refused[i].body, &got, error));
		if (!strstr(error, refused[i].error))
			CHECK_STR(error, refused[i].error);
	}
}

/* The same as a story above, with the barrier that was missing. */
TEST(a_barrier_ends_a_race)
{
	char error[PTX_ERROR_BYTES] = "";
	uint64_t got;
	bool good = run_body("setp.eq.s32 %p1, %r3, 0;\n@%p1 st.shared.u32 [room], %r1;\nbar.sync 0;\n"
			     "ld.shared.u32 %r4, [room];\ncvt.u64.u32 %rd4, %r4;\n" GIVE,
			     &got, error);

	CHECK_STR(good ? "" : error, "");
	CHECK_EQ(got, 5);
}

/* ---- shuffles ---- */

#define SHUFFLE "shfl.sync.bfly.b32 %r4|%p1, %r3, "

TEST(a_warp_exchanges_what_it_brings)
{
	static const uint32_t lanes[] = {0, 1, 4, 16, 31};
	uint64_t got[THREADS_MOST];

	for (size_t i = 0; i < COUNT(lanes); i++)
		for (uint32_t threads = PTX_WARP; threads <= THREADS_MOST; threads += PTX_WARP) {
			char body[400], error[PTX_ERROR_BYTES] = "";

			/* The second warp has done one more when both are at the barrier. */
			snprintf(body, sizeof(body), "%s%u, 31, -1;\n%s", SHUFFLE, lanes[i],
				 "setp.lt.u32 %p2, %r3, 32;\n@%p2 bra $end;\n"
				 "shfl.sync.bfly.b32 %r5|%p1, %r4, 3, 31, -1;\nmov.u32 %r4, %r5;\n"
				 "$end:\nbar.sync 0;\ncvt.u64.u32 %rd4, %r4;\n" GIVE);
			STORY("%u lanes, %u threads", lanes[i], threads);
			CHECK_STR(run_threads(body, threads, got, error) ? "" : error, "");
			for (uint32_t t = 0; t < threads; t++)
				CHECK_EQ(got[t], t ^ lanes[i] ^ (t < PTX_WARP ? 0 : 3));
		}
}

static const struct {
	const char *story;
	uint32_t threads;
	const char *body, *error;
} shuffles_refused[] = {
	{"a warp that is not whole", 31, SHUFFLE "1, 31, -1;\n", "shuffle: another thread"},
	{"one has ended", 32, "setp.eq.s32 %p2, %r3, 9;\n@%p2 bra $end;\n" SHUFFLE "1, 31, -1;\n$end:\n",
	 "shuffle: another thread"},
	{"one waits at a barrier", 64,
	 "setp.eq.s32 %p2, %r3, 40;\n@%p2 bra $end;\n" SHUFFLE "1, 31, -1;\n$end:\nbar.sync 0;\n",
	 "shuffle: another thread"},
	{"two shuffles", 32,
	 "setp.lt.u32 %p2, %r3, 16;\n@%p2 bra $one;\n" SHUFFLE "1, 31, -1;\nbra $end;\n$one:\n" SHUFFLE
	 "1, 31, -1;\n$end:\n",
	 "shuffle: another thread"},
	{"of some threads", 32, SHUFFLE "1, 31, 65535;\n", "shuffle: only those of a whole warp"},
	{"of parts of a warp", 32, SHUFFLE "1, 6175, -1;\n", "shuffle: only those of a whole warp"},
	{"under a predicate", 32, "@%p2 " SHUFFLE "1, 31, -1;\n", "line 21: 'shfl' under a predicate"},
	{"of another kind", 32, "shfl.sync.up.b32 %r4|%p1, %r3, 1, 0, -1;\n",
	 "line 21: unknown opcode 'shfl.sync.up.b32'"},
	{"without the predicate", 32, "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;\n",
	 "line 21: 'shfl' with 5 operands is not known"},
};

TEST(other_shuffles_are_refused)
{
	for (size_t i = 0; i < COUNT(shuffles_refused); i++) {
		char error[PTX_ERROR_BYTES] = "";
		uint64_t got[THREADS_MOST];

		STORY("%s", shuffles_refused[i].story);
		CHECK(!run_threads(shuffles_refused[i].body, shuffles_refused[i].threads, got, error));
		if (!strstr(error, shuffles_refused[i].error))
			CHECK_STR(error, shuffles_refused[i].error);
	}
}

TEST(constants_that_are_not_understood_are_refused)
{
	static const char *const lines[][2] = {
		{".const .align 8 .b8 a[2] = {1, 256};", "line 1: byte 1 of 'a' is not known"},
		{".const .align 8 .b8 a[3] = {1, 2};", "line 1: byte 2 of 'a' is not known"},
		{".const .align 8 .b8 a[1] = {1, 2};", "line 1: 'a' has more than 1 bytes"},
		{".const .align 8 .b8 a[1025] = {1, 2};", "line 1: more than one constant, or one of more than"},
		{".const .align 8 .b8 a[1] = {1};\n.const .align 8 .b8 b[1] = {1};", "line 2: more than one constant"},
		{".const .align 8 .b64 a[1] = {1};", "line 1: unknown statement"},
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		char error[PTX_ERROR_BYTES] = "";

		STORY("%s", lines[i][0]);
		CHECK(!ptx_read(lines[i][0], error));
		if (!strstr(error, lines[i][1]))
			CHECK_STR(error, lines[i][1]);
	}
}

TEST_MAIN()
