/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_cli.c - the table-driven command line, as a user of a sample program meets it
 *
 * Each story runs cli_main() in a child process and compares what it printed and its exit
 * code.  The sample's verb prints every value it was given, so that nothing is parsed and
 * lost.  Man page and completion are given to the programs that read them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/pack/cli_check.h"
#include "tests/test.h"
#include "tools/common/signals.h"

struct sample_options {
	const char *source, *out, *report;
	uint64_t resize, shard_bytes, jobs;
	int filter;
	bool replace, dry_run;
	struct cli_amount max_bad;
	struct cli_part part;
	struct cli_strings rest, tags;
};

#define AT(member) .offset = offsetof(struct sample_options, member)

static const struct cli_option source_positionals[] = {
	{.name = "SRC",
	 .kind = CLI_DIR,
	 .required = true,
	 AT(source),
	 .help = "folder with a folder of images per class"},
	{0},
};

static const struct cli_option many_positionals[] = {
	{.name = "SRC", .kind = CLI_FILE, .required = true, AT(source), .help = "what to read"},
	{.name = "MORE", .kind = CLI_STRING, .many = true, AT(rest), .help = "what else to read"},
	{0},
};

static const struct cli_option transform_options[] = {
	{.name = "resize",
	 .kind = CLI_U64,
	 AT(resize),
	 .arg_name = "N",
	 .min = 1,
	 .max = 65500,
	 .help = "shorter side, in pixels"},
	{.name = "filter",
	 .kind = CLI_CHOICE,
	 AT(filter),
	 .arg_name = "NAME",
	 .choices = "bilinear|bicubic|lanczos|box",
	 .default_value = "bilinear",
	 .help = "how pixels are weighted"},
	{0},
};

static const struct cli_option output_options[] = {
	{.name = "out",
	 .short_name = 'o',
	 .kind = CLI_DIR,
	 .required = true,
	 AT(out),
	 .arg_name = "DIR",
	 .help = "the dataset's directory"},
	{.name = "shard-bytes",
	 .kind = CLI_SIZE,
	 AT(shard_bytes),
	 .arg_name = "SIZE",
	 .min = 65536,
	 .max = UINT64_C(1) << 44,
	 .default_value = "256M",
	 .help = "about how large a shard is; it's split 'late' at a [unit]: never inside \\ one"},
	{.name = "jobs",
	 .short_name = 'j',
	 .kind = CLI_U64,
	 AT(jobs),
	 .arg_name = "N",
	 .min = 1,
	 .max = 1024,
	 .default_note = "one per CPU",
	 .help = "threads"},
	{.name = "max-bad",
	 .kind = CLI_COUNT_OR_PERCENT,
	 AT(max_bad),
	 .arg_name = "N|P%",
	 .help = "more bad inputs than this are a failure"},
	{.name = "part", .kind = CLI_PART, AT(part), .arg_name = "k/n", .help = "build this share of the shards only"},
	{.name = "report", .kind = CLI_FILE, AT(report), .arg_name = "FILE", .help = "write a JSON report"},
	{.name = "replace", .short_name = 'r', .kind = CLI_FLAG, AT(replace), .help = "replace what is there"},
	{.name = "dry-run", .short_name = 'n', .kind = CLI_FLAG, AT(dry_run), .help = "print the plan and stop"},
	{0},
};

static const struct cli_key tag_keys[] = {{"red", NULL, "a colour"}, {"size", "N", ".5, or how large it is"}, {0}};

static const struct cli_option topic_options[] = {
	{.name = "resize", .kind = CLI_U64, AT(resize), .arg_name = "N", .topic = "pixels", .help = "any number"},
	{.name = "dry-run", .kind = CLI_FLAG, AT(dry_run), .topic = "pixels", .often = true, .help = "write nothing"},
	{.name = "out",
	 .kind = CLI_DIR,
	 AT(out),
	 .arg_name = "DIR",
	 .required = true,
	 .topic = "words",
	 .help = "folder"},
	{.name = "tag",
	 .kind = CLI_STRING,
	 .many = true,
	 AT(tags),
	 .arg_name = "TAG",
	 .topic = "words",
	 .keys = {tag_keys},
	 .help = "a word"},
	{0},
};

static const struct cli_topic sample_topics[] = {
	{"words", "all about words"}, {"pixels", "all about pixels"}, {"others", "a topic of no verb"}, {0}};

static const struct cli_option few_options[] = {
	{.name = "resize", .kind = CLI_U64, AT(resize), .arg_name = "N", .help = "any number"},
	{.name = "tag", .kind = CLI_STRING, .many = true, AT(tags), .arg_name = "TAG", .help = "a word"},
	{0},
};

static int run_print(const struct cli_args *args)
{
	const struct sample_options *o = args->options;

	printf("%s: source=%s out=%s resize=%" PRIu64 " filter=%d shard_bytes=%" PRIu64 " jobs=%" PRIu64,
	       args->verb->name, o->source ? o->source : "-", o->out ? o->out : "-", o->resize, o->filter,
	       o->shard_bytes, o->jobs);
	printf(" max_bad=%s%" PRIu64, o->max_bad.is_percent ? "ppm " : "",
	       o->max_bad.is_percent ? o->max_bad.parts_per_million : o->max_bad.count);
	printf(" part=%" PRIu64 "/%" PRIu64 " replace=%d dry_run=%d rest=", o->part.idx, o->part.count, o->replace,
	       o->dry_run);
	for (size_t i = 0; i < o->rest.count; i++)
		printf("%s%s", i ? "," : "", o->rest.items[i]);
	for (size_t i = 0; i < o->tags.count; i++)
		printf("%s%s", i ? "," : " tags=", o->tags.items[i]);
	printf(" given=%d%d\n", cli_given(args, "resize"), cli_given(args, "SRC"));
	detail("a detail");
	note("a note");
	return EXIT_DONE;
}

static int run_misuse(const struct cli_args *args)
{
	return cli_misuse(args, "--crop %d: larger than --resize %d", 300, 256);
}

static int run_much(const struct cli_args *args)
{
	(void)args;
	for (int i = 0; i < 100000; i++)
		printf("line %d\n", i);
	return EXIT_DONE;
}

static int run_wait(const struct cli_args *args)
{
	(void)args;
	raise(SIGINT);
	return interrupted() ? fail(EXIT_INTERRUPTED, "interrupted; run again to continue") : EXIT_DONE;
}

static const struct cli_text sample_texts[] = {
	{"sample", "show what a command line can do", "Shows it.", "sample images photos -o ds"},
	{"images", "Pack folders of images into a dataset",
	 "One paragraph, with --resize in it.\n\n.A second one 'begins' with a dot.\n\n"
	 "### Two items\n\n- `.jpg`, as `sample --a-b` has it\n\n- another\n\nThe end.",
	 "sample images photos/train -o ds/train --resize 256"},
	{"plan images", "Write the plan of such a dataset only", "", "sample plan images photos/train -o ds/train"},
	{"plan many", "Take many things", "", "sample plan many a b c\nsample plan many a"},
	{"topics", "Have many options", "", "sample topics -v"},
	{"misuse", "Find fault", "", "sample misuse"},
	{"much", "Print much", "", "sample much"},
	{"wait", "Be interrupted", "", "sample wait"},
	{0},
};

static const struct cli_verb sample_verbs[] = {
	{.name = "images",
	 .positionals = source_positionals,
	 .options = {transform_options, output_options},
	 .options_bytes = sizeof(struct sample_options),
	 .run = run_print},
	{.name = "plan images",
	 .positionals = source_positionals,
	 .options = {transform_options, output_options},
	 .options_bytes = sizeof(struct sample_options),
	 .run = run_print},
	{.name = "plan many",
	 .positionals = many_positionals,
	 .options = {few_options},
	 .options_bytes = sizeof(struct sample_options),
	 .run = run_print},
	{.name = "topics",
	 .options = {topic_options},
	 .options_bytes = sizeof(struct sample_options),
	 .run = run_print},
	{.name = "misuse", .run = run_misuse},
	{.name = "much", .run = run_much},
	{.name = "wait", .run = run_wait},
	{0},
};

static void print_version(FILE *out)
{
	fputs("sample 1.2.3\nlibrary 4.5.6\n", out);
}

static const struct cli_program sample = {.name = "sample",
					  .see_also = "other(1)",
					  .texts = sample_texts,
					  .topics = sample_topics,
					  .verbs = sample_verbs,
					  .print_version = print_version};

struct result {
	int code;
	char out[65536], err[8192];
};

static void read_all(FILE *file, char *text, size_t text_bytes)
{
	size_t length;

	rewind(file);
	length = fread(text, 1, text_bytes - 1, file);
	text[length] = 0;
	fclose(file);
}

/* Run `line`, split at blanks ('_' stands for an empty argument), as a child. */
static struct result *run(const char *line)
{
	static struct result result;
	FILE *out = tmpfile(), *err = tmpfile();
	char copy[1024], *argv[64] = {0};
	int argc = 0, status;
	pid_t pid;

	CHECK(out && err);
	snprintf(copy, sizeof(copy), "sample %s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
		argv[argc++] = word;
		if (!strcmp(word, "_"))
			word[0] = 0;
	}
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(fileno(out), STDOUT_FILENO);
		dup2(fileno(err), STDERR_FILENO);
		exit(cli_main(&sample, argc, argv));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	read_all(out, result.out, sizeof(result.out));
	read_all(err, result.err, sizeof(result.err));
	return &result;
}

TEST(tables_are_in_order)
{
	char why[256] = "";

	if (!cli_check(&sample, why, sizeof(why)))
		printf("%s\n", why);
	CHECK_STR(why, "");
}

#define DEFAULTS " filter=0 shard_bytes=268435456 jobs=0 max_bad=0 part=0/0 replace=0 dry_run=0 rest= given=01\n"

TEST(values_arrive)
{
	static const struct {
		const char *line, *out;
	} rows[] = {
		{"images a -o b", "images: source=a out=b resize=0" DEFAULTS},
		{"images -o b a", "images: source=a out=b resize=0" DEFAULTS},
		{"images --out=b -- a", "images: source=a out=b resize=0" DEFAULTS},
		{"images --out b -- -a", "images: source=-a out=b resize=0" DEFAULTS},
		{"images -ob a", "images: source=a out=b resize=0" DEFAULTS},
		{"images --out=--odd ./-", "images: source=./- out=--odd resize=0" DEFAULTS},
		{"images --out=a=b ./-", "images: source=./- out=a=b resize=0" DEFAULTS},
		{"plan images a -o b", "plan images: source=a out=b resize=0" DEFAULTS},
		{"images a -rnj4 --resize 65500 --filter box --shard-bytes 1GiB --max-bad 2.5% --part 3/4 -o ./-",
		 "images: source=a out=./- resize=65500 filter=3 shard_bytes=1073741824 jobs=4 max_bad=ppm 25000 "
		 "part=3/4 replace=1 dry_run=1 rest= given=11\n"},
		{"images a -nr -j 1024 --resize=1 --filter=lanczos --shard-bytes=64k "
		 "--max-bad=18446744073709551615 --part=0/1 -o b",
		 "images: source=a out=b resize=1 filter=2 shard_bytes=65536 jobs=1024 "
		 "max_bad=18446744073709551615 part=0/1 replace=1 dry_run=1 rest= given=11\n"},
		{"images a -o b --shard-bytes 16T --max-bad 0.0001%",
		 "images: source=a out=b resize=0 filter=0 shard_bytes=17592186044416 jobs=0 max_bad=ppm 1 part=0/0 "
		 "replace=0 dry_run=0 rest= given=01\n"},
		{"plan many a", "plan many: source=a out=- resize=0 filter=0 shard_bytes=0 jobs=0 "
				"max_bad=0 part=0/0 replace=0 dry_run=0 rest= given=01\n"},
		{"plan many a b --resize 18446744073709551615 c -- -d",
		 "plan many: source=a out=- resize=18446744073709551615 filter=0 shard_bytes=0 jobs=0 "
		 "max_bad=0 part=0/0 replace=0 dry_run=0 rest=b,c,-d given=11\n"},
		{"plan many a --tag x b --tag=y,z --tag x",
		 "plan many: source=a out=- resize=0 filter=0 shard_bytes=0 jobs=0 "
		 "max_bad=0 part=0/0 replace=0 dry_run=0 rest=b tags=x,y,z,x given=01\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct result *r = run(rows[i].line);

		STORY("%s", rows[i].line);
		CHECK_STR(r->err, "sample: a note\n");
		CHECK_STR(r->out, rows[i].out);
		CHECK_EQ(r->code, EXIT_DONE);
	}
}

TEST(levels)
{
	CHECK_STR(run("plan many a -q")->err, "");
	CHECK_STR(run("plan many a --verbose")->err, "sample: a detail\nsample: a note\n");
}

#define IMAGES "\ntry 'sample images --help'\n"

TEST(mistakes_are_named)
{
	static const struct {
		const char *line, *err;
	} rows[] = {
		{"", "sample: a verb is missing\ntry 'sample --help'\n"},
		{"ages a", "sample: unknown verb 'ages'\ntry 'sample --help'\n"},
		{"image a", "sample: unknown verb 'image'; did you mean 'images'?\ntry 'sample --help'\n"},
		{"plan imags a",
		 "sample: unknown verb 'plan imags'; did you mean 'plan images'?\ntry 'sample --help'\n"},
		{"plan", "sample: unknown verb 'plan'; did you mean 'plan images'?\ntry 'sample --help'\n"},
		{"frobnicate", "sample: unknown verb 'frobnicate'\ntry 'sample --help'\n"},
		{"--versoin", "sample: unknown option '--versoin'; did you mean '--version'?\ntry 'sample --help'\n"},
		{"-q images",
		 "sample: '-q' is not a verb; write the verb first and its options after it\ntry 'sample --help'\n"},
		{"images a -o b --resise 3", "sample: unknown option '--resise'; did you mean '--resize'?" IMAGES},
		{"images a -o b --res=3", "sample: unknown option '--res'; did you mean '--resize'?" IMAGES},
		{"images a -o b --rezise=3", "sample: unknown option '--rezise'; did you mean '--resize'?" IMAGES},
		{"images a -o b --something", "sample: unknown option '--something'" IMAGES},
		{"images a -o b -x", "sample: unknown option '-x'" IMAGES},
		{"images a -o b -nx4", "sample: unknown option '-x' in '-nx4'" IMAGES},
		{"images a -o b -o c", "sample: -o is given twice" IMAGES},
		{"images a -o b --out=b", "sample: --out is given twice" IMAGES},
		{"images a -o b -nn", "sample: -n is given twice" IMAGES},
		{"images a -o b --dry-run=yes", "sample: --dry-run takes no value, got 'yes'" IMAGES},
		{"images a -o b --resize", "sample: --resize needs a value: --resize N" IMAGES},
		{"images a -o", "sample: -o needs a value: -o DIR" IMAGES},
		{"images a -o --replace", "sample: -o needs a value: -o DIR ('--replace' looks like an option)" IMAGES},
		{"images a -o b --resize 0", "sample: --resize 0: must be 1 to 65500" IMAGES},
		{"images a -o b --resize 65501", "sample: --resize 65501: must be 1 to 65500" IMAGES},
		{"images a -o b --resize 99999999999999999999",
		 "sample: --resize 99999999999999999999: must be 1 to 65500" IMAGES},
		{"images a -o b --resize -5", "sample: --resize -5: must be a whole number, 1 to 65500" IMAGES},
		{"images a -o b --resize 5x", "sample: --resize 5x: must be a whole number, 1 to 65500" IMAGES},
		{"images a -o b --resize 0x10", "sample: --resize 0x10: must be a whole number, 1 to 65500" IMAGES},
		{"images a -o b --resize=", "sample: --resize '': must not be empty" IMAGES},
		{"images a -o _", "sample: -o '': must not be empty" IMAGES},
		{"images _ -o b", "sample: SRC '': must not be empty" IMAGES},
		{"images a -o -",
		 "sample: -o -: must be a folder, not a stream; for a folder of that name type ./-" IMAGES},
		{"images a -o b -j 0", "sample: -j 0: must be 1 to 1024" IMAGES},
		{"images a -o b --shard-bytes 1", "sample: --shard-bytes 1: must be 64K to 16T" IMAGES},
		{"images a -o b --shard-bytes 17T", "sample: --shard-bytes 17T: must be 64K to 16T" IMAGES},
		{"images a -o b --shard-bytes 99999999999T",
		 "sample: --shard-bytes 99999999999T: must be 64K to 16T" IMAGES},
		{"images a -o b --shard-bytes 64MB",
		 "sample: --shard-bytes 64MB: MB may mean a power of 1000 or of 1024; for 1024, write M or MiB" IMAGES},
		{"images a -o b --shard-bytes 64x",
		 "sample: --shard-bytes 64x: must be a number of bytes, which may end in K, M, G or T, such as 64M; "
		 "64K to 16T" IMAGES},
		{"images a -o b --shard-bytes M",
		 "sample: --shard-bytes M: must be a size such as 64M, 64K to 16T" IMAGES},
		{"images a -o b --filter bilnear",
		 "sample: --filter bilnear: must be bilinear, bicubic, lanczos or box; "
		 "did you mean 'bilinear'?" IMAGES},
		{"images a -o b --filter zzz",
		 "sample: --filter zzz: must be bilinear, bicubic, lanczos or box" IMAGES},
		{"images a -o b --max-bad 101%",
		 "sample: --max-bad 101%: must be 0% to 100%, with at most 4 decimals, or a count" IMAGES},
		{"images a -o b --max-bad 100.0001%",
		 "sample: --max-bad 100.0001%: must be 0% to 100%, with at most 4 decimals, or a count" IMAGES},
		{"images a -o b --max-bad 1.%",
		 "sample: --max-bad 1.%: must be 0% to 100%, with at most 4 decimals, or a count" IMAGES},
		{"images a -o b --max-bad few",
		 "sample: --max-bad few: must be a whole number, 0 to 18446744073709551615, "
		 "or a percentage such as 2%" IMAGES},
		{"images a -o b --part 4/4",
		 "sample: --part 4/4: must be k/n with k from 0 to n-1, such as 0/4" IMAGES},
		{"images a -o b --part 1", "sample: --part 1: must be k/n with k from 0 to n-1, such as 0/4" IMAGES},
		{"images a -o b --part 0/99999999999999999999",
		 "sample: --part 0/99999999999999999999: must be k/n with k from 0 to n-1, such as 0/4" IMAGES},
		{"images -o b", "sample: SRC is missing" IMAGES},
		{"images a", "sample: --out DIR is missing" IMAGES},
		{"images a b -o c", "sample: unexpected argument 'b'" IMAGES},
		{"images a -o b -q -v", "sample: --quiet and --verbose exclude each other" IMAGES},
		{"images a -o b --bad\033[2J", "sample: unknown option '--bad\\033[2J'" IMAGES},
		{"misuse", "sample: --crop 300: larger than --resize 256\ntry 'sample misuse --help'\n"},
		{"plan images", "sample: SRC is missing\ntry 'sample plan images --help'\n"},
		{"plan many a --tag b --tag",
		 "sample: --tag needs a value: --tag TAG\ntry 'sample plan many --help'\n"},
		{"plan many a --tag b --tag=", "sample: --tag '': must not be empty\ntry 'sample plan many --help'\n"},
		{"--print-completion tcsh",
		 "sample: --print-completion tcsh: must be bash, zsh or fish\ntry 'sample --help'\n"},
		{"--print-completion",
		 "sample: --print-completion '': must be bash, zsh or fish\ntry 'sample --help'\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct result *r = run(rows[i].line);

		STORY("%s", rows[i].line);
		CHECK_STR(r->err, rows[i].err);
		CHECK_STR(r->out, "");
		CHECK_EQ(r->code, EXIT_USAGE);
	}
}

TEST(help_of_a_verb)
{
	CHECK_STR(run("plan many -h")->out, "Usage: sample plan many SRC [MORE...] [options]\n\nTake many things\n\n"
					    "  SRC             what to read\n"
					    "  MORE            what else to read\n"
					    "      --resize N  any number\n"
					    "      --tag TAG   a word\n"
					    "  -q, --quiet     print warnings and errors only\n"
					    "  -v, --verbose   print more details\n"
					    "  -h, --help      print help and exit\n\n"
					    "Examples:\n  sample plan many a b c\n  sample plan many a\n");
	CHECK_EQ(run("plan many -h")->code, EXIT_DONE);
	CHECK(strstr(run("images --help")->out,
		     "      --filter NAME       how pixels are weighted: bilinear, bicubic, lanczos\n"
		     "                          or box [bilinear]\n"));
	CHECK(strstr(run("images --resize 3 -qh")->out, "  -j, --jobs N            threads [one per CPU]\n"));
	CHECK_STR(run("images --help")->err, "");
}

TEST(help_by_topic)
{
	static const char all_words[] = "\nAll about words:\n"
					"      --out DIR   folder\n"
					"      --tag TAG   a word\n"
					"        red       a colour\n"
					"        size=N    .5, or how large it is\n",
			  all_pixels[] = "\nAll about pixels:\n"
					 "      --resize N  any number\n"
					 "      --dry-run   write nothing\n";
	static const struct {
		const char *line, *err;
	} rows[] = {
		{"topics --help=pixel", "sample: --help=pixel: the topics are words, pixels and all; "
					"did you mean 'pixels'?\ntry 'sample topics --help'\n"},
		{"topics --help=others",
		 "sample: --help=others: the topics are words, pixels and all\ntry 'sample topics --help'\n"},
		{"misuse --help=words", "sample: --help=words: the help of this verb is one page without topics\n"
					"try 'sample misuse --help'\n"},
		{"topics --tag=", "sample: --tag '': must not be empty\ntry 'sample topics --help=words'\n"},
		{"topics --resize x", "sample: --resize x: must be a whole number, 0 to 18446744073709551615\n"
				      "try 'sample topics --help=pixels'\n"},
		{"topics --dry-run=1", "sample: --dry-run takes no value, got '1'\ntry 'sample topics --help'\n"},
		{"topics", "sample: --out DIR is missing\ntry 'sample topics --help'\n"},
		{"--help=words",
		 "sample: --help=words: topics belong to a verb; write the verb first\ntry 'sample --help'\n"},
	};
	char all[1024];

	CHECK_STR(run("topics -h")->out, "Usage: sample topics --out DIR [options]\n\nHave many options\n\n"
					 "      --out DIR   folder\n"
					 "      --dry-run   write nothing\n"
					 "  -q, --quiet     print warnings and errors only\n"
					 "  -v, --verbose   print more details\n"
					 "  -h, --help      print help and exit\n\n"
					 "Defaults are in [brackets].  More options, by topic:\n"
					 "  --help=words   all about words\n"
					 "  --help=pixels  all about pixels\n"
					 "  --help=all     every option\n\n"
					 "Example:\n  sample topics -v\n");
	CHECK_STR(run("topics --help")->out, run("topics -h")->out);
	CHECK_STR(run("topics --help=")->out, run("topics -h")->out);
	CHECK(strstr(run("topics --help=words")->out, all_words));
	CHECK(!strstr(run("topics --help=words")->out, all_pixels));
	snprintf(all, sizeof(all), "%s%s\nMessages and help:\n", all_words, all_pixels);
	CHECK(strstr(run("topics --help=all")->out, all));
	CHECK(strstr(run("plan many --help=all")->out, "      --tag TAG   a word\n"));
	CHECK(strstr(run("--print-man")->out, ".PP\n\\fBAll about words\\fR\n.TP\n\\fB\\-\\-\\fR\\fBout\\fR"));
	CHECK(strstr(run("--print-man")->out,
		     ".RS\n.TP\n\\fBred\\fR\nA colour.\n.TP\n\\fBsize\\fR=\\fIN\\fR\n\\&.5, or how large it is.\n"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("%s", rows[i].line);
		CHECK_EQ(run(rows[i].line)->code, EXIT_USAGE);
		CHECK_STR(run(rows[i].line)->err, rows[i].err);
	}
}

TEST(help_and_version_of_the_program)
{
	CHECK_STR(run("--help")->out, "Usage: sample VERB [options]\n\nsample - show what a command line can do\n\n"
				      "  images       Pack folders of images into a dataset\n"
				      "  plan images  Write the plan of such a dataset only\n"
				      "  plan many    Take many things\n"
				      "  topics       Have many options\n"
				      "  misuse       Find fault\n"
				      "  much         Print much\n"
				      "  wait         Be interrupted\n\n"
				      "'sample VERB --help' explains a verb; 'sample --version' prints versions.\n\n"
				      "Example:\n  sample images photos -o ds\n");
	CHECK_STR(run("--version")->out, "sample 1.2.3\nlibrary 4.5.6\n");
}

/* The controls: cli_check() finds fault, but with the first one. */
TEST(bad_tables_are_noticed)
{
	static const struct cli_option twice[] = {
		{.name = "a", .kind = CLI_FLAG, .help = "x"}, {.name = "a", .kind = CLI_FLAG, .help = "x"}, {0}};
	static const struct cli_option bad_default[] = {
		{.name = "a", .kind = CLI_U64, .min = 3, .default_value = "2", .help = "x"}, {0}};
	static const struct cli_option outside[] = {{.name = "a", .kind = CLI_FLAG, .offset = 8, .help = "x"}, {0}};
	static const struct cli_option no_topic[] = {{.name = "a", .kind = CLI_FLAG, .topic = "word", .help = "x"},
						     {0}};
	static const struct cli_option half[] = {{.name = "a", .kind = CLI_FLAG, .topic = "words", .help = "x"},
						 {.name = "b", .kind = CLI_FLAG, .help = "x"},
						 {0}};
	static const struct cli_option often[] = {{.name = "a", .kind = CLI_FLAG, .often = true, .help = "x"}, {0}};
	static const struct {
		const char *story, *verb, *text;
		const struct cli_option *options;
	} rows[] = {
		{"in order", "verb", "verb", NULL},
		{"an option twice", "verb", "verb", twice},
		{"a default that is refused", "verb", "verb", bad_default},
		{"a value outside the struct", "verb", "verb", outside},
		{"a topic that the program lacks", "verb", "verb", no_topic},
		{"an option with a topic beside one without", "verb", "verb", half},
		{"an often used option without a topic", "verb", "verb", often},
		{"a verb twice", "wait", "wait", NULL},
		{"a verb without a text", "verb", NULL, NULL},
		{"a text without a verb", "verb", "noun", NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cli_verb verbs[] = {
			{.name = "wait", .run = run_wait},
			{.name = rows[i].verb, .options = {rows[i].options}, .options_bytes = 8, .run = run_misuse},
			{0}};
		struct cli_text texts[] = {sample_texts[0], {"wait", "S", "", "e"}, {rows[i].text, "S", "", "e"}, {0}};
		struct cli_program program = {.name = "sample",
					      .verbs = verbs,
					      .texts = texts,
					      .topics = sample_topics,
					      .print_version = print_version};
		char why[256];

		STORY("%s", rows[i].story);
		CHECK_EQ(cli_check(&program, why, sizeof(why)), i == 0);
	}
}

/* Feed `text` to a shell command; its output, which is an error's, is returned. */
static const char *feed(const char *command, const char *text)
{
	static char complaint[4096];
	FILE *out = tmpfile(), *in;
	char line[512];

	CHECK(out);
	snprintf(line, sizeof(line), "%s >/dev/fd/%d 2>&1", command, fileno(out));
	in = popen(line, "w");
	CHECK(in);
	fputs(text, in);
	CHECK_EQ(pclose(in), 0);
	read_all(out, complaint, sizeof(complaint));
	return complaint;
}

TEST(man_page_is_clean_roff)
{
	const char *page = run("--print-man")->out;

	CHECK(strstr(page, ".TH SAMPLE 1 \"\" \"sample 1.2.3\" \"User Commands\"\n"));
	CHECK(strstr(page, "\n\\&.A second one \\(aqbegins\\(aq with a dot.\n"));
	CHECK(strstr(page, "\nOne paragraph, with \\-\\-resize in it.\n"));
	CHECK(strstr(page, "\n.PP\n\\fBTwo items\\fR\n.IP \\(bu 2\n\\fB.jpg\\fR, as \\fBsample \\-\\-a\\-b\\fR has it\n"
			   ".PD 0\n.IP \\(bu 2\nanother\n.PD\n.PP\nThe end.\n"));
	CHECK(strstr(page, "\nAs for \\fBimages\\fR:\n\\fB\\-\\-\\fR\\fBresize\\fR,\n"));
	CHECK(strstr(page, "\nA word.\nMay be given more than once.\n"));
	if (system("command -v groff >/dev/null"))
		SKIP("groff is not installed: the man page is not checked");
	CHECK_STR(feed("groff -man -ww -b -z -Tutf8", page), "");
	CHECK(strlen(feed("groff -man -ww -b -z -Tutf8", ".PP\n.no_such_macro\n")) > 0); /* it can complain */
}

/*
 * Completions offered for a command line, through the very script, one per line and sorted.  There
 * the program is a function that says what it says.
 */
static const char *bash_offers(const char *words, int word_idx)
{
	char script[70000], line[128] = "--complete";
	size_t used = strlen(line);
	int bytes;

	for (const char *at = words + strlen("sample"); *at; at++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s", *at == '\'' ? "" : (char[]){*at, 0});
	if (line[used - 1] == ' ')
		strcpy(line + used, "_");
	bytes = snprintf(script, sizeof(script), "sample() { cat <<'END'\n%sEND\n}\n", run(line)->out);
	snprintf(script + bytes, sizeof(script) - (size_t)bytes,
		 "%s\nCOMP_WORDS=(%s); COMP_CWORD=%d; _sample\nprintf '%%s\\n' \"${COMPREPLY[@]}\" | sort\n",
		 run("--print-completion bash")->out, words, word_idx);
	return feed("bash -u", script);
}

TEST(bash_completes)
{
	if (system("command -v bash >/dev/null"))
		SKIP("bash is not installed: its completion is not checked");
	CHECK_STR(feed("bash -n", run("--print-completion bash")->out), "");
	CHECK_STR(bash_offers("sample ''", 1), "--help\n--version\nimages\nmisuse\nmuch\nplan\ntopics\nwait\n");
	CHECK_STR(bash_offers("sample topics --help = p", 4), "pixels\n");
	CHECK_STR(bash_offers("sample topics --help =", 3), "all\npixels\nwords\n");
	CHECK_STR(bash_offers("sample m", 1), "misuse\nmuch\n");
	CHECK_STR(bash_offers("sample plan ''", 2), "images\nmany\n");
	CHECK_STR(bash_offers("sample plan many --", 3), "--help\n--quiet\n--resize\n--tag\n--verbose\n");
	CHECK_STR(bash_offers("sample images --filter b", 3), "bicubic\nbilinear\nbox\n");
	CHECK_STR(bash_offers("sample plan images --filter = l", 5), "lanczos\n");
	CHECK_STR(bash_offers("sample images --filter =", 3), "bicubic\nbilinear\nbox\nlanczos\n");
	CHECK_STR(bash_offers("sample images --resize ''", 3), "\n"); /* a number: nothing */
	CHECK_STR(bash_offers("sample images -o tests/pa", 3), "tests/pack\n");
	CHECK_STR(bash_offers("sample images --report Makef", 3), "Makefile\n");
	CHECK_STR(bash_offers("sample images tests/pa", 2), "tests/pack\n");
}

TEST(what_the_program_offers)
{
	static const struct {
		const char *story, *line, *out;
	} rows[] = {
		{"no word", "--complete",
		 "images\tPack folders of images into a dataset\nplan\tWrite the plan of such a dataset "
		 "only\ntopics\tHave many options\nmisuse\tFind fault\nmuch\tPrint "
		 "much\n"
		 "wait\tBe interrupted\n--help\tprint the verbs and exit\n-h\tprint the verbs and exit\n"
		 "--version\tprint versions and exit\n"},
		{"second words", "--complete plan _",
		 "images\tWrite the plan of such a dataset only\nmany\tTake many things\n"},
		{"an unknown verb", "--complete image -", ""},
		{"choices", "--complete plan images --filter _",
		 "bilinear\thow pixels are weighted\nbicubic\thow pixels are weighted\n"
		 "lanczos\thow pixels are weighted\nbox\thow pixels are weighted\n"},
		{"choices in the word of their option, as zsh and fish have it", "--complete images --filter=b",
		 "--filter=bilinear\thow pixels are weighted\n--filter=bicubic\thow pixels are weighted\n"
		 "--filter=lanczos\thow pixels are weighted\n--filter=box\thow pixels are weighted\n"},
		{"a number", "--complete images --resize _", ":value\tN\n"},
		{"a folder", "--complete images a -o _", ":dirs\n"},
		{"a file", "--complete images a --report=x", ":files\n"},
		{"behind the value of an option", "--complete images -o a _", ":dirs\n"},
		{"what was given is not offered again, but if it may be given often",
		 "--complete plan many a --tag b --quiet --resize=3 -",
		 "--tag\ta word\n--verbose\tprint more details\n-v\tprint more details\n--help\tprint help and exit\n"
		 "-h\tprint help and exit\n"},
		{"topics of help", "--complete topics --help=",
		 "--help=words\tall about words\n--help=pixels\tall about pixels\n--help=all\tevery option\n"},
		{"a word behind --help is not a topic", "--complete topics --help _",
		 "--resize\tany number\n--dry-run\twrite nothing\n--out\tfolder\n--tag\ta word\n"
		 "--quiet\tprint warnings and errors only\n-q\tprint warnings and errors only\n"
		 "--verbose\tprint more details\n-v\tprint more details\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("%s", rows[i].story);
		CHECK_STR(run(rows[i].line)->out, rows[i].out);
	}
	STORY("help with quotes");
	CHECK(strstr(run("--complete images -")->out, "it's split 'late' at a [unit]: never inside \\ one\n"));
}

TEST(zsh_and_fish_scripts_parse)
{
	CHECK(strstr(run("--print-completion fish")->out, "complete -c sample -f -a '(__sample_offers)'\n"));
	CHECK(strstr(run("--print-completion zsh")->out, "#compdef sample\n"));
	if (!system("command -v fish >/dev/null"))
		CHECK_STR(feed("fish --no-execute", run("--print-completion fish")->out), "");
	if (!system("command -v zsh >/dev/null"))
		CHECK_STR(feed("zsh -n", run("--print-completion zsh")->out), "");
}

/* Run a line with stdout going to `path`; returns the exit code. */
static int run_into(const char *path, const char *line, bool closed)
{
	char copy[128], *argv[8] = {"sample"};
	int argc = 1, status;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		if (!closed)
			open(path, O_WRONLY);
		exit(cli_main(&sample, argc, argv));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(output_that_does_not_arrive)
{
	CHECK_EQ(run_into("/dev/null", "much", false), EXIT_DONE);
	CHECK_EQ(run_into("/dev/full", "much", false), EXIT_IO);
	CHECK_EQ(run_into("/dev/full", "--version", false), EXIT_IO);
	CHECK_EQ(run_into("/dev/full", "images --help", false), EXIT_IO);
	CHECK_EQ(run_into("", "--version", true), EXIT_IO); /* stdout closed by the caller */
	CHECK_EQ(run_into("", "misuse", true), EXIT_USAGE); /* nothing was to be written */
}

TEST(interruption)
{
	CHECK_STR(run("wait")->err, "sample: interrupted; run again to continue\n");
	CHECK_EQ(run("wait")->code, EXIT_INTERRUPTED);
}

TEST_MAIN()
