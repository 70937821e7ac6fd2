/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_complete.c - completion in shells, from the tables
 *
 * bash splits words at "=", so that --filter=x is three of them; zsh and fish leave it one.  Names
 * and choices need no quoting: a test of the tables allows nothing in them that would.
 */
#include "tools/common/cli_private.h"

#include <string.h>

/* ---- the scripts; each ! is the program's name ---- */

/* clang-format off */
static const char bash_script[] =
	"# bash completion for !, written by `! --print-completion bash`\n"
	"_!()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} line words=\"\" files=\"\"\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\t[[ $cur == \"=\" ]] && cur=\"\" # --option=, without its value\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t:files) files=-f ;;\n"
	"\t\t:dirs) files=-d ;;\n"
	"\t\t:* | -?[[:blank:]]*) ;; # nothing to offer, or a short option\n"
	"\t\t*) words+=\" ${line%%$'\\t'*}\" ;;\n"
	"\t\tesac\n"
	"\tdone < <(\"${COMP_WORDS[0]/#\\~\\//$HOME/}\" --complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"\tif [[ $files ]]; then\n"
	"\t\tcompopt -o filenames 2>/dev/null\n"
	"\t\tmapfile -t COMPREPLY < <(compgen \"$files\" -- \"$cur\")\n"
	"\telse\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	"\tfi\n"
	"}\n"
	"complete -F _! !\n";

static const char zsh_script[] =
	"#compdef !\n"
	"# zsh completion for !, written by `! --print-completion zsh`\n"
	"_!() {\n"
	"\tlocal line word begun=$PREFIX\n"
	"\tlocal -a lines offers\n"
	"\n"
	"\tlines=(\"${(@f)$(${~words[1]} --complete \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)}\")\n"
	"\tcompset -P '--*=' # what follows is the value of an option\n"
	"\tfor line in $lines; do\n"
	"\t\tword=${${line%%$'\\t'*}#--*=}\n"
	"\t\tcase $line in\n"
	"\t\t(:files) _files; return ;;\n"
	"\t\t(:dirs) _files -/; return ;;\n"
	"\t\t(:value*) _message -e values \"${line#*$'\\t'}\"; return ;;\n"
	"\t\t(-*) [[ $begun == -* ]] || continue ;|\n"
	"\t\t(*) offers+=(\"${word//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t_describe -t offers '!' offers\n"
	"}\n"
	"\n"
	"_! \"$@\"\n";

static const char fish_script[] =
	"# fish completion for !, written by `! --print-completion fish`\n"
	"function __!_offers --description 'what may stand at the cursor'\n"
	"    set -l typed (commandline -opc)\n"
	"    set -l token (commandline -ct)\n"
	"    set -l option (string match -r -- '^--[^=]*=' \"$token\")\n"
	"    set -l value (string replace -r -- '^--[^=]*=' '' \"$token\")\n"
	"    for line in ($typed[1] --complete $typed[2..-1] \"$token\" 2>/dev/null)\n"
	"        switch $line\n"
	"            case :files\n"
	"                string replace -r -- '^' \"$option\" (__fish_complete_path \"$value\")\n"
	"            case :dirs\n"
	"                string replace -r -- '^' \"$option\" (__fish_complete_directories \"$value\")\n"
	"            case ':value*'\n"
	"            case '-*'\n"
	"                string match -q -- '-*' \"$token\"; and printf '%s\\n' $line\n"
	"            case '*'\n"
	"                printf '%s\\n' $line\n"
	"        end\n"
	"    end\n"
	"end\n"
	"complete -c ! -f -a '(__!_offers)'\n";

/* clang-format on */

bool cli_complete_script(FILE *out, const struct cli_program *program, const char *shell)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		if (strcmp(scripts[i].shell, shell))
			continue;
		for (const char *c = scripts[i].script; *c; c++)
			if (*c == '!')
				fputs(program->name, out);
			else
				fputc(*c, out);
		return true;
	}
	return false;
}

/* ---- what a program answers ---- */

/* The option of a word such as "-o", "--out" or "--out=x", or NULL. */
static const struct cli_option *option_of(const struct cli_flat *flat, const char *word)
{
	size_t bytes = strcspn(word, "=");

	for (unsigned i = 0; i < flat->count; i++) {
		const struct cli_option *o = flat->option[i];

		if (word[0] != '-' || !word[1])
			return NULL;
		if (word[1] == '-' ? bytes - 2 == strlen(o->name) && !strncmp(word + 2, o->name, bytes - 2)
				   : word[1] == o->short_name && !word[2])
			return o;
	}
	return NULL;
}

/*
 * Values of an option; of --help they are topics.  `before` is what stands in the same word before
 * the value: "--filter=".
 */
static void offer_values(FILE *out, const struct cli_program *program, const struct cli_verb *verb,
			 const struct cli_option *o, const char *before, int before_bytes)
{
	const char *choice;
	size_t bytes;

	if (o->kind == CLI_HELP) {
		for (const struct cli_topic *t = program->topics; t && t->name; t++)
			if (cli_has_topic(verb, t->name))
				fprintf(out, "%.*s%s\t%s\n", before_bytes, before, t->name, t->summary);
		fprintf(out, "%.*sall\tevery option\n", before_bytes, before);
	} else if (o->kind == CLI_CHOICE) {
		for (unsigned i = 0; (bytes = cli_choice(o->choices, i, &choice)) != 0; i++)
			fprintf(out, "%.*s%.*s\t%s\n", before_bytes, before, (int)bytes, choice, o->help);
	} else if (o->kind == CLI_FILE || o->kind == CLI_DIR) {
		fputs(o->kind == CLI_FILE ? ":files\n" : ":dirs\n", out);
	} else {
		fprintf(out, ":value\t%s\n", cli_arg_name(o));
	}
}

/* Options if one is begun, or if the verb names neither files nor folders; else these. */
static void offer_words(FILE *out, const struct cli_verb *verb, const struct cli_flat *flat, char **word,
			int word_count)
{
	enum cli_kind kind = CLI_FLAG;

	for (const struct cli_option *p = verb->positionals; p && p->name && kind != CLI_FILE; p++)
		if (p->kind == CLI_FILE || p->kind == CLI_DIR)
			kind = p->kind;
	if (word[word_count - 1][0] != '-' && kind != CLI_FLAG) {
		fputs(kind == CLI_FILE ? ":files\n" : ":dirs\n", out);
		return;
	}
	for (unsigned i = 0; i < flat->count; i++) {
		const struct cli_option *o = flat->option[i];
		bool given = false;

		for (int w = 0; w + 1 < word_count && !o->many; w++)
			given = given || option_of(flat, word[w]) == o;
		if (given)
			continue;
		fprintf(out, "--%s\t%s\n", o->name, o->help);
		if (o->short_name)
			fprintf(out, "-%c\t%s\n", o->short_name, o->help);
	}
}

/* True for the first verb in the table that begins with its first word. */
static bool is_first_of_its_word(const struct cli_program *program, const struct cli_verb *verb)
{
	size_t length = strcspn(verb->name, " ");

	for (const struct cli_verb *other = program->verbs; other != verb; other++)
		if (strcspn(other->name, " ") == length && !strncmp(other->name, verb->name, length))
			return false;
	return true;
}

/* The words that may follow `first` in names of verbs; of the first words if that is empty. */
static void offer_verbs(FILE *out, const struct cli_program *program, const char *first)
{
	size_t skip = strlen(first) + (first[0] != '\0');

	for (const struct cli_verb *v = program->verbs; v->name; v++) {
		if (first[0] ? strncmp(v->name, first, skip - 1) || v->name[skip - 1] != ' '
			     : !is_first_of_its_word(program, v))
			continue;
		fprintf(out, "%.*s\t%s\n", (int)strcspn(v->name + skip, " "), v->name + skip,
			cli_text_of(program, v)->summary);
	}
}

void cli_complete(FILE *out, const struct cli_program *program, char **word, int word_count)
{
	const char *last = word_count ? word[word_count - 1] : "", *equals = strchr(last, '=');
	const struct cli_verb *verb;
	const struct cli_option *o = NULL;
	struct cli_flat flat;
	int verb_words, at = word_count - 2;
	bool joined = false; /* the option and its value, by "=" */

	if (word_count < 2) {
		offer_verbs(out, program, "");
		fputs("--help\tprint the verbs and exit\n-h\tprint the verbs and exit\n"
		      "--version\tprint versions and exit\n",
		      out);
		return;
	}
	verb = cli_find_verb(program, word, word_count - 1, &verb_words);
	if (!verb && word_count == 2)
		offer_verbs(out, program, word[0]);
	if (!verb)
		return;
	cli_flatten(verb, &flat);
	if (word_count > verb_words + 1) {
		joined = !strcmp(last, "=") || !strcmp(word[at], "=");
		at -= !strcmp(word[at], "=") && at > verb_words;	       /* of bash: --filter = b */
		o = strchr(word[at], '=') ? NULL : option_of(&flat, word[at]); /* --out=x has its value */
	}
	if (last[0] == '-' && equals) /* --filter=b */
		o = option_of(&flat, last);
	else
		equals = NULL;
	if (o && (cli_arg_name(o) || (o->kind == CLI_HELP && (joined || equals))))
		offer_values(out, program, verb, o, last, equals ? (int)(equals + 1 - last) : 0);
	else
		offer_words(out, verb, &flat, word, word_count);
}
