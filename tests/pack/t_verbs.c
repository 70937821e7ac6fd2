/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_verbs.c - the tables of shardpack's own verbs are in order
 *
 * LDFLAGS: -Wl,--wrap=cli_main
 */
#include "tests/pack/cli_check.h"
#include "tests/test.h"

#define main shardpack_main
int shardpack_main(int argc, char **argv);
#include "tools/shardpack/main.c"
#undef main

static char why[256];
static unsigned verb_count;

int __wrap_cli_main(const struct cli_program *program, int argc, char **argv);
int __wrap_cli_main(const struct cli_program *program, int argc, char **argv)
{
	(void)argc, (void)argv;
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		verb_count++;
	return cli_check(program, why, sizeof(why)) ? EXIT_DONE : EXIT_BAD;
}

TEST(tables_of_all_verbs_are_in_order)
{
	char *argv[] = {(char[]){"shardpack"}, NULL};
	int code = shardpack_main(1, argv);

	CHECK_STR(why, "");
	CHECK_EQ(code, EXIT_DONE);
	CHECK_EQ(verb_count, 2 * SOURCE_COUNT + 8); /* six take no source, each other one two verbs */
}

TEST_MAIN()
