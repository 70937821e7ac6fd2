# SPDX-License-Identifier: Apache-2.0
"""The index of messages: every sentence of an error or a warning, taken from the source.

A message of ours names the thing, its value, the limit and what to do.  So the index is made of the
formats in the code, and nothing is typed twice.  What stands here are the kinds of errors: the exception
in Python, the exit code of a command, and what they have in common.
"""

import ast
import importlib.util
import os
import re

GAP = "…"  # what a message has in the place of a value

# kind: (exception in Python, exit code of a command, what it means and what to do)
KINDS = {
    "argument": ("ArgumentError", "2", "The call or the command cannot be done as it was given, and nothing was "
                 "begun. The message names the option, its value and its limits. Change that and call again."),
    "type": ("TypeError", "", "A value has a type that the call does not take, or an option is not there. The "
             "message shows the value and says what to give. `help(libshard.Loader)` and the like say more."),
    "record": ("RecordError", "", "A record does not fit the schema. It was not written, and a `Writer` can go on "
               "with the next one. Change the record, or the schema: docs/PYTHON.md has the types."),
    "attribute": ("AttributeError", "", "A name that other libraries have. The message says what is here instead."),
    "key": ("KeyError, IndexError", "", "There is no such field, item, key or number. The message says which there are."),
    "closed": ("ClosedError", "", "The dataset or loader was closed before. Open it again."),
    "memory": ("OutOfMemoryError", "3", "The system gives no more memory. Ask for less: smaller batches, fewer of "
               "them, fewer workers."),
    "storage": ("StorageError, NotFoundError", "3", "The system refused to read or write. The end of the message is the "
                "system's reason. Look at the path, its permissions, the disk's room and its health."),
    "exists": ("ExistsError", "3", "Something else has that name. Nothing was touched. Choose another name, or "
               "remove what is there."),
    "corrupt": ("CorruptError", "1", "Bytes break the format, or are not the ones that were written. Trying again does not "
                "help. Take another copy of the file, or pack it again; `shardcat verify` finds all such places."),
    "mismatch": ("MismatchError", "5", "Everything is sound, but not what was expected: another dataset, another order, "
                 "or a shard that the manifest does not know. Use the dataset and the options of before."),
    "unsupported": ("UnsupportedError", "4", "The data is right, and needs a newer or fuller build of libshard, or "
                    "another kernel. The message names what is missing."),
    "device": ("DeviceError", "3", "The GPU's driver refused, or there is no driver or GPU. `shardcat doctor` says what "
               "this machine has."),
    "input": ("", "1", "An input of `shardpack` is left out, or ends the command, as `--on-error` says. The "
              "message names the file and the place in it. docs/PACKING.md says how bad input is handled, and "
              "docs/MIGRATING.md what `python -m libshard.convert` refuses."),
    "stopped": ("", "75", "Work is left, and nothing is lost: run the same command again."),
    "run": ("RuntimeError, ImportError and others", "", "The program around libshard: threads, forks, or a package that is not "
            "installed. The message says what to change."),
    "other": ("", "", "One of the kinds above: the call that failed decides which."),
    "warning": ("UserWarning", "0", "Work goes on. The message says what may not be as you want it."),
}  # fmt: skip

# The calls in C that have messages, and the kind of these if no argument says it.
CALLS = {
    "error_set": None, "MUST": "corrupt", "MUST_OR": "corrupt", "invariant_broken": "corrupt", "error_os": "storage", "cuda_refused": "device", "fail": None,
    "cli_misuse": "argument", "shelf_refuse": "storage", "fail_argument": "argument", "fail_record": "record",
    "fail_type": "type", "fail_memory": "memory", "fail_index": "key", "fail_closed": "closed", "fail_os": "storage",
    "PyErr_SetString": None, "PyErr_Format": None, "warn": "warning", "scan_warn": "warning", "PyErr_WarnFormat": "warning",
    "PyErr_WarnEx": "warning", "refuse": "input", "bad": "input", "bad_input": "input", "decode_bad": "input",
    "bad_shape": "input", "bad_row": "input", "wrong": "input", "field_verdict_bad": "input", "verdict_set": "input",
    "scan_absent": "input", "say": "input",
}  # fmt: skip
STATUS = {
    "SHARD_E_ARGUMENT": "argument", "SHARD_E_MEMORY": "memory", "SHARD_E_IO": "storage", "SHARD_E_CORRUPT": "corrupt",
    "SHARD_E_UNSUPPORTED": "unsupported", "SHARD_E_MISMATCH": "mismatch", "SHARD_E_EXISTS": "exists",
    "SHARD_E_DEVICE": "device", "SHARD_E_CANCELLED": "stopped", "SHARD_E_TIMEOUT": "stopped", "EXIT_USAGE": "argument",
    "EXIT_BAD": "input", "EXIT_IO": "storage", "EXIT_UNSUPPORTED": "unsupported", "EXIT_MISMATCH": "mismatch",
    "EXIT_STOPPED": "stopped", "EXIT_INTERRUPTED": "stopped", "PyExc_TypeError": "type", "PyExc_KeyError": "key",
    "PyExc_IndexError": "key", "PyExc_AttributeError": "attribute", "PyExc_BufferError": "run", "PyExc_ValueError": "argument",
    "PyExc_RuntimeError": "run", "PyExc_ImportError": "run", "PyExc_StopIteration": "run", "PyExc_MemoryError": "memory",
}  # fmt: skip
COMPOSED = ("python/core/write/", "tools/common/cli_value.c")  # where snprintf() writes messages, too
OPTIONS = ("tools/shardpack/images/image_options.c", "tools/shardpack/plan/field.c")  # whose refuse() is about options
PYTHON = {
    "ArgumentError": "argument", "RecordError": "record", "ClosedError": "closed", "OutOfMemoryError": "memory",
    "StorageError": "storage", "NotFoundError": "storage", "ExistsError": "exists", "CorruptError": "corrupt",
    "MismatchError": "mismatch", "UnsupportedError": "unsupported", "DeviceError": "device", "TypeError": "type",
    "KeyError": "key", "IndexError": "key", "AttributeError": "attribute", "ValueError": "argument", "RuntimeError": "run",
    "ImportError": "run", "NotImplementedError": "run", "StopIteration": "run", "SystemExit": "run", "exit": "run",
    "fail": "argument", "warn": "warning", "refuse": "argument", "ConvertError": "input", "note": "warning",
}  # fmt: skip

ANSWERS = "_ELSEWHERE|_RECORDS|_OF_"  # tables of words of other libraries, and what is here instead

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*|\'(?:[^\'\\]|\\.)+\'|\w+|[^\w\s]', re.S)
FORMAT = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?([diouxXcspfgeEaARUSV%])")


def enough(text):
    """Does a format have words of its own?"""
    return len(re.findall(r"[A-Za-z]{2,}", text.replace(GAP, " "))) >= 2


def of_c(path, text, macros):
    """(kind, message) of a file in C."""
    tokens = [macros.get(t, t) for t in TOKEN.findall(text) if not t.startswith(("/*", "//"))]
    for i, name in enumerate(tokens[:-1]):
        known = name in CALLS or name == "snprintf" and path.startswith(COMPOSED)
        if not known or tokens[i + 1] != "(" or "#define" in "".join(tokens[max(0, i - 2) : i]):
            continue
        kind, depth, runs, is_open, at = CALLS.get(name), 0, [], False, i + 1
        for token in tokens[i + 1 :]:
            depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
            if not depth:
                break
            if token.startswith('"'):
                runs = runs + [""] if not is_open else runs
                runs[-1] += ast.literal_eval(re.sub(r"\\\n", "", token))
                is_open = True
            elif token.startswith("PRI") and is_open:
                runs[-1] += "u"  # the letter behind the % of a number
            else:
                is_open = False
                kind = STATUS.get(token, kind) if at < i + 12 else kind
            at += 1
        if path.startswith("python/core") and name in ("refuse", "snprintf"):
            kind = "record"
        elif name == "refuse" and path in OPTIONS:
            kind = "argument"
        rule = [i for i, run in enumerate(runs) if re.fullmatch(r"[A-Z]\d+", run)] if "MUST" in name or "broken" in name else []
        if rule:  # its number stands before the text
            runs = [f"{runs[rule[0]]}: {run}" for run in runs[rule[0] + 1 :]]
        for run in runs:
            yield kind or "other", FORMAT.sub(lambda m: "%" if m[1] == "%" else GAP, run)


def texts(node, known):
    """The sentences that an expression of Python may have; ``known`` are those of names."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else [GAP]
    if isinstance(node, ast.Name):
        return known.get(node.id, [GAP])
    if isinstance(node, ast.JoinedStr):
        out = [""]
        for part in node.values:
            ends = texts(getattr(part, "value", part) if isinstance(part, ast.FormattedValue) else part, known)
            out = [begin + end for begin in out for end in ends][:16]
        return out
    if isinstance(node, ast.IfExp):
        return texts(node.body, known) + texts(node.orelse, known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [a + b for a in texts(node.left, known) for b in texts(node.right, known)][:16]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):  # text, if something is so
        return [*texts(node.left, known), ""]
    return [GAP]


def assigned(node, known):
    """The sentences that names have in a function or a module."""
    out = dict(known)
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Assign, ast.AugAssign)):
            name = getattr(getattr(inner, "target", None) or inner.targets[0], "id", None)
            said = texts(inner.value, known)
            if name and said != [GAP]:
                before = out.get(name, []) if name not in known else []
                more = [b + s for b in before or [GAP] for s in said] if isinstance(inner, ast.AugAssign) else said
                out[name] = list(dict.fromkeys(before + more))[:16]
    return out


def of_python(path, text):
    """(kind, message) of a file in Python: what is raised or warned, and what a table answers to a word."""
    converts = os.path.basename(path).startswith(("convert", "_convert", "_from_"))  # what is wrong with files of other loaders
    tree = ast.parse(text)
    shared = assigned(ast.Module([n for n in tree.body if isinstance(n, ast.Assign)], []), {})
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for scope in (*functions, tree):
        known = assigned(scope, shared) if scope is not tree else shared
        for node in ast.walk(scope):
            name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if name in PYTHON and node.args:
                message = node.args[-1 if converts else 0]  # source.fail(path, message)
                kind = "input" if converts and name == "fail" else PYTHON[name]
                yield from ((kind, said) for said in texts(message, known))
    for node in tree.body:
        name = getattr(node.targets[0], "id", "") if isinstance(node, ast.Assign) else ""
        if isinstance(getattr(node, "value", None), ast.Dict) and re.match(ANSWERS, name):
            kind = "type" if name == "_ELSEWHERE" else "attribute"
            yield from ((kind, f"{GAP}: {said}") for value in node.value.values for said in texts(value, shared))


def names_in_python(root):
    """Changes the library's names of options to those of Python, as exceptions do."""
    spec = importlib.util.spec_from_file_location("errors", os.path.join(root, "python/libshard/_errors.py"))
    errors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(errors)
    return lambda text: errors._NAMES.sub(lambda m: errors._IN_PYTHON[m[0]], text.removeprefix("options: "))


def macros_of(root):
    """{name: "text"} of macros that are texts."""
    out = {}
    for top in ("libshard", "tools", "python/core", "include"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in (n for n in names if n.endswith((".c", ".h"))):
                with open(os.path.join(folder, name)) as f:
                    out |= dict(re.findall(r'^#define (\w+)\s+("(?:[^"\\\n]|\\.)*")$', f.read(), re.M))
    return out


def messages(root):
    """{message: kind} of the whole tree."""
    found, rename, macros = {}, names_in_python(root), macros_of(root)
    for top in ("libshard", "tools", "python"):
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if not name.endswith((".c", ".py")) or "build" in path.split(os.sep) or path == "python/setup.py":
                    continue
                with open(os.path.join(root, path)) as f:
                    text = f.read()
                for kind, said in of_c(path, text, macros) if name.endswith(".c") else of_python(path, text):
                    said = re.sub(rf"({GAP}|\s)*\n\s*", " ", said).strip()
                    for one in {said, rename(said)} if top == "libshard" else {said}:
                        if enough(one):
                            found[one] = found.get(one) or kind
    return found


def finder(found):
    """A function that says which message a sentence is."""
    patterns = []
    for message in sorted(found, key=lambda m: -len(m.replace(GAP, ""))):
        parts = [re.escape(part) for part in message.strip(GAP + " ").split(GAP)]
        longest = max(message.split(GAP), key=len)
        patterns.append((longest, re.compile(".*?".join(parts), re.S), message))
    return lambda text: next((m for part, p, m in patterns if part in text and p.search(text)), None)


def page(root):
    """The page of all messages, in Markdown."""
    out = ["# Messages", "", "Every message of an error or a warning, by the kind of it. Search this page, by the browser, for a "
           f"part of the sentence that has no value of yours: {GAP} stands for a value. A message names the thing, "
           "its value, the limit and what to do; what all messages of a kind have in common stands above them.",
           "", "In Python each exception but those of Python itself is a `libshard.Error`. A command prints its "
           "name before the message, and ends with the exit code.", ""]
    found = messages(root)
    for kind, (exception, code, text) in KINDS.items():
        named = ", ".join([f"`{name}`" if " " not in name else name for name in filter(None, exception.split(", "))])
        told = " and ".join(filter(None, [f"{named} in Python" if named else "", f"exit code {code}" if code else ""]))
        own = sorted((m for m in found if found[m] == kind), key=lambda m: re.sub(r"^\W+", "", m.lower()))
        title = exception or {"input": "Bad input", "stopped": "Stopped", "other": "Others"}[kind]
        text = re.sub(r"docs/(\w+)\.md", r"[\1](../docs/\1.md)", text)
        out += [f"## {title}", "", f"*{told}.* {text}" if told else text, ""]
        out += [f"- ``{m}``" if "`" not in m else f"- `` {m} ``" for m in own] + [""]
    return "\n".join(out)
