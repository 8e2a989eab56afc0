# SPDX-License-Identifier: Apache-2.0
"""Holds the test data, the examples and docs/session-config.md against schema and parser.

Run from the top of the sources with the path of profctl. Prints what differs; status 1 if anything does.
"""
import json
import pathlib
import re
import subprocess
import sys

import jsonschema

# Refused texts that the schema lets pass, with the reason.
COUNTS_BYTES = "the parser counts bytes, a schema characters"
BEYOND_THE_SCHEMA = {
    "comm_too_long_in_bytes": COUNTS_BYTES,
    "cgroup_too_long_in_bytes": COUNTS_BYTES,
    "cpus_falling": "patterns do not compare numbers",
    "cpus_repeated": "patterns do not compare numbers",
    "cpus_too_high": "patterns do not compare numbers",
}

PROFCTL = sys.argv[1]
DATA = pathlib.Path("tests/data/session_config")
EXAMPLES = pathlib.Path("config/examples")
PAGE = pathlib.Path("docs/session-config.md")
SCHEMA = json.loads(pathlib.Path("config/session.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
failures = 0


def complain(text):
    global failures
    print(text)
    failures += 1


def refuse_repeats(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a member is there twice")
    return dict(pairs)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def suits_the_schema(text):
    """False for what is not JSON as well: a schema speaks of values only."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=refuse_repeats, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return False
    return VALIDATOR.is_valid(value)


def check(path, *options):
    return subprocess.run([PROFCTL, "check", *options, path], capture_output=True, text=True, check=False)


def judge_accepted(path):
    if not suits_the_schema(path.read_bytes()):
        complain(f"{path}: the schema refuses it")
    plain, result = check(path), check(path, "--json")
    if plain.returncode != 0 or result.returncode != 0 or not plain.stdout.startswith(f"{path}: ok\n"):
        complain(f"{path}: profctl check refuses it: {plain.stderr}")
        return
    config = json.loads(result.stdout)["config"]
    for error in VALIDATOR.iter_errors(config):
        complain(f"{path}: the schema refuses what the parser makes of it: {error.message}")
    missing = {name for name, member in SCHEMA["properties"].items() if "default" in member} - set(config)
    if missing - {"frequency_hz", "targets"}:
        complain(f"{path}: profctl check leaves out {missing}")


def judge_refused(path):
    expected = path.with_suffix(".expected").read_text()
    if suits_the_schema(path.read_bytes()) != (path.stem in BEYOND_THE_SCHEMA):
        complain(f"{path}: the schema takes it, or need not be excused")
    plain, result = check(path), check(path, "--json")
    if plain.returncode != 1 or plain.stdout or plain.stderr != f"profctl: {path}: {expected}":
        complain(f"{path}: profctl check says {plain.returncode} {plain.stdout}{plain.stderr}")
    error = json.loads(result.stdout)
    if result.returncode != 1 or error["ok"] or f"{error['error']['member']}: {error['error']['text']}\n" != expected:
        complain(f"{path}: profctl check --json says {result.returncode} {result.stdout}")


def members():
    """What a row of the page must say, by the member's name: type, what is allowed, default or None."""
    for name, member in SCHEMA["properties"].items():
        yield name, member
        for inner, value in member.get("properties", {}).items():
            yield f"{name}.{inner}", value


def allowed(member):
    if "enum" in member:
        return ", ".join(f"`{json.dumps(value)}`" for value in member["enum"])
    if member["type"] == "boolean":
        return "`true`, `false`"
    if member["type"] == "object":
        return ", ".join(f"`{name}`" for name in member["properties"])
    if member["type"] == "array":
        count = f"{member['minItems']:,} to {member['maxItems']:,}"
        if member["items"]["type"] == "string":
            return f"{count} strings of {member['items']['minLength']} to {member['items']['maxLength']} bytes"
        return f"{count} integers from {allowed(member['items'])}"
    if member["type"] == "string":
        return f"`\"0-3,8\"` and the like, {member['maxLength']} characters"
    multiple = f", a multiple of {member['multipleOf']}" if "multipleOf" in member else ""
    return f"{member['minimum']:,} to {member['maximum']:,}{multiple}"


def judge_page():
    rows = {}
    for row in re.findall(r"^\| `([a-z_.]+)` (\|.*)\|$", PAGE.read_text(), re.MULTILINE):
        rows[row[0]] = [cell.strip() for cell in row[1].strip("|").split(" | ")]
    named = dict(members())
    if list(rows) != list(named):
        complain(f"{PAGE}: has the members {list(rows)}, the schema {list(named)}")
        return
    for name, member in named.items():
        kind, ranges, default, meaning, example = rows[name]
        if kind != member["type"] or ranges != allowed(member):
            complain(f"{PAGE}: {name}: is {member['type']}, allowed {allowed(member)}; not {kind}, {ranges}")
        if "default" in member and default != f"`{json.dumps(member['default'])}`":
            complain(f"{PAGE}: {name}: the default is {member['default']}, not {default}")
        if not default or not meaning or not member["description"]:
            complain(f"{PAGE}: {name}: something is left empty")
        value = json.loads(example.strip("`"))
        if not VALIDATOR.is_valid(value) or name.split(".")[0] not in value:
            complain(f"{PAGE}: {name}: the example is none: {example}")


def judge_shown_session():
    """The page's session is what profctl prints."""
    command, shown = re.search(r"^\$ profctl check (.*)\n((?:.*\n)*?)```$", PAGE.read_text(), re.MULTILINE).groups()
    printed = check(command).stdout
    if printed != shown:
        complain(f"{PAGE}: profctl check {command} prints:\n{printed}")


jsonschema.Draft202012Validator.check_schema(SCHEMA)
counts = {}
for folder, judge in (DATA / "accepted", judge_accepted), (EXAMPLES, judge_accepted), (DATA / "refused", judge_refused):
    paths = sorted(folder.glob("*.json"))
    counts[folder] = len(paths)
    for path in paths:
        judge(path)
if min(counts.values()) < 5 or len(list((DATA / "refused").glob("*.expected"))) != counts[DATA / "refused"]:
    complain(f"files are missing: {counts}")
for path in EXAMPLES.glob("*.json"):
    if f"(../{path})" not in PAGE.read_text():
        complain(f"{PAGE}: does not name {path}")
judge_page()
judge_shown_session()
sys.exit(1 if failures else 0)
