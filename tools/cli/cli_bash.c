/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bash.c - completion for bash 4 and later, from the tables
 *
 * The script is one function: it finds the verb it stands in, then collects either `words`
 * or a kind of `files` to offer.  bash splits words at "=", so that --filter=x is three of
 * them.  Names and choices need no quoting: a test of the tables allows nothing in them that would.
 */
#include "tools/cli/cli_bash.h"

#include <string.h>

static void value_case(FILE *out, const struct cli_verb *verb, const struct cli_option *option)
{
	fprintf(out, "\t\"%s --%s\"", verb->name, option->name);
	if (option->short_name)
		fprintf(out, " | \"%s -%c\"", verb->name, option->short_name);
	fputs(") ", out);
	if (option->kind == CLI_FILE) {
		fputs("files=-f", out);
	} else if (option->kind == CLI_DIR) {
		fputs("files=-d", out);
	} else if (option->kind == CLI_CHOICE) {
		fputs("words=\"", out);
		cli_write_choices(out, option->choices);
		fputc('"', out);
	} else {
		fputs("return", out); /* a number or free text: nothing to offer */
	}
	fputs(" ;;\n", out);
}

/* "-f" or "-d" if a positional argument is a file or a directory, else "" */
static const char *positional_files(const struct cli_verb *verb)
{
	const char *files = "";

	for (const struct cli_option *p = verb->positionals; p && p->name; p++) {
		if (p->kind == CLI_FILE)
			return "-f";
		if (p->kind == CLI_DIR)
			files = "-d";
	}
	return files;
}

static void verb_case(FILE *out, const struct cli_verb *verb)
{
	struct cli_flat flat;

	cli_flatten(verb, &flat);
	fprintf(out, "\t\t\"%s\") words=\"", verb->name);
	for (unsigned i = 0; i < flat.count; i++)
		fprintf(out, "%s--%s", i ? " " : "", flat.option[i]->name);
	fprintf(out, "\" files=%s ;;\n", positional_files(verb));
}

/* Cases for the first words of verbs that have two: what may follow them. */
static void second_words(FILE *out, const struct cli_program *program)
{
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		size_t length = strcspn(verb->name, " ");

		if (!verb->name[length] || !cli_first_of_its_word(program, verb))
			continue;
		fprintf(out, "\t\t\"%.*s\") words=\"", (int)length, verb->name);
		for (const struct cli_verb *other = verb; other->name; other++)
			if (!strncmp(other->name, verb->name, length + 1))
				fprintf(out, "%s%s", other == verb ? "" : " ", other->name + length + 1);
		fputs("\" ;;\n", out);
	}
}

void cli_complete_bash(FILE *out, const struct cli_program *program)
{
	fprintf(out, "# bash completion for %s, written by `%s --print-completion bash`\n_%s()\n{\n", program->name,
		program->name, program->name);
	fputs("\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	      "\tlocal verb=${COMP_WORDS[1]} words=\"\" files=\"\"\n\n"
	      "\tCOMPREPLY=()\n"
	      "\tif [[ $cur == \"=\" ]]; then # --option=, without its value\n"
	      "\t\tcur=\"\"\n"
	      "\telif [[ $prev == \"=\" ]] && ((COMP_CWORD > 2)); then\n"
	      "\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	      "\tfi\n"
	      "\tif ((COMP_CWORD < 2)); then\n"
	      "\t\tverb=\"\"\n"
	      "\telif ((COMP_CWORD > 2)); then\n"
	      "\t\tcase \"$verb ${COMP_WORDS[2]}\" in\n",
	      out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		if (strchr(verb->name, ' '))
			fprintf(out, "\t\t\"%s\") verb=\"%s\" ;;\n", verb->name, verb->name);
	fputs("\t\t*) ;;\n\t\tesac\n\tfi\n\tcase \"$verb $prev\" in\n", out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++) {
		struct cli_flat flat;

		cli_flatten(verb, &flat);
		for (unsigned i = 0; i < flat.count; i++)
			if (flat.option[i]->kind != CLI_FLAG)
				value_case(out, verb, flat.option[i]);
	}
	fputs("\t*)\n\t\tcase \"$verb\" in\n\t\t\"\") words=\"", out);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		if (cli_first_of_its_word(program, verb))
			fprintf(out, "%.*s ", (int)strcspn(verb->name, " "), verb->name);
	fputs("--help --version\" ;;\n", out);
	second_words(out, program);
	for (const struct cli_verb *verb = program->verbs; verb->name; verb++)
		verb_case(out, verb);
	fputs("\t\t*) ;;\n\t\tesac\n"
	      "\t\t[[ $cur == -* ]] && files=\"\"\n\t\t;;\n\tesac\n"
	      "\tif [[ $files ]]; then\n"
	      "\t\tcompopt -o filenames 2>/dev/null\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen \"$files\" -- \"$cur\")\n"
	      "\telse\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "\tfi\n}\n",
	      out);
	fprintf(out, "complete -F _%s %s\n", program->name, program->name);
}
