# SPDX-License-Identifier: Apache-2.0
"""Holds the test data, the examples and docs/session-config.md against schema and parser.

Run from the top of the sources with the path of profctl. Prints what differs; status 1 if anything does.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

from config_check import ConfigCheck

# Refused texts that the schema lets pass, with the reason.
COUNTS_BYTES = "the parser counts bytes, a schema characters"
BEYOND_THE_SCHEMA = {
    "comm_too_long_in_bytes": COUNTS_BYTES,
    "cgroup_too_long_in_bytes": COUNTS_BYTES,
    "cpus_falling": "patterns do not compare numbers",
    "cpus_repeated": "patterns do not compare numbers",
    "cpus_too_high": "patterns do not compare numbers",
    "events_twice": "two names can be of one event",
    "events_two_clocks": "elements are not compared",
    "events_clock_of_programs": "the clock alone takes no modifiers",
    "events_clock_too_fast": "the clock alone has periods of time",
    "events_eight_and_clock": "the clock is one of them",
    "events_followers_twice": "two elements are not compared",
    "events_followers_leader": "two names can be of one event",
    "events_followers_of_clock": "the clock alone leads some only",
    "events_followers_eight": "all are counted together",
    "events_two_rates": "members of members are not compared",
}

PROFCTL = sys.argv[1]
DATA = pathlib.Path("tests/data/session_config")
EXAMPLES = pathlib.Path("config/examples")
PAGE = pathlib.Path("docs/session-config.md")
session = ConfigCheck(pathlib.Path("config/session.schema.json"), PAGE)


def check(path, *options):
    return subprocess.run([PROFCTL, "check", *options, path], capture_output=True, text=True, check=False)


def judge_accepted(path):
    if not session.suits_the_schema(path.read_bytes()):
        session.complain(f"{path}: the schema refuses it")
    plain, result = check(path), check(path, "--json")
    if plain.returncode != 0 and os.geteuid() != 0 and "users other than root may ask for" in plain.stderr:
        return
    if plain.returncode != 0 or result.returncode != 0 or not plain.stdout.startswith(f"{path}: ok\n"):
        session.complain(f"{path}: profctl check refuses it: {plain.stderr}")
        return
    config = json.loads(result.stdout)["config"]
    for error in session.validator.iter_errors(config):
        session.complain(f"{path}: the schema refuses what the parser makes of it: {error.message}")
    missing = {name for name, member in session.schema["properties"].items() if "default" in member} - set(config)
    if missing - {"frequency_hz", "targets"}:
        session.complain(f"{path}: profctl check leaves out {missing}")


def judge_refused(path):
    expected = path.with_suffix(".expected").read_text()
    if session.suits_the_schema(path.read_bytes()) != (path.stem in BEYOND_THE_SCHEMA):
        session.complain(f"{path}: the schema takes it, or need not be excused")
    plain, result = check(path), check(path, "--json")
    if plain.returncode != 1 or plain.stdout or plain.stderr != f"profctl: {path}: {expected}":
        session.complain(f"{path}: profctl check says {plain.returncode} {plain.stdout}{plain.stderr}")
    error = json.loads(result.stdout)
    if result.returncode != 1 or error["ok"] or f"{error['error']['member']}: {error['error']['text']}\n" != expected:
        session.complain(f"{path}: profctl check --json says {result.returncode} {result.stdout}")


def judge_shown_session():
    """The page's session is what profctl prints."""
    command, shown = re.search(r"^\$ profctl check (.*)\n((?:.*\n)*?)```$", PAGE.read_text(), re.MULTILINE).groups()
    printed = check(command).stdout
    if os.geteuid() != 0:
        shown = shown.replace("the daemon's limits for users other than root were not checked\n", "")
    if printed != shown:
        session.complain(f"{PAGE}: profctl check {command} prints:\n{printed}")


session.judge_folders([(DATA / "accepted", judge_accepted), (EXAMPLES, judge_accepted), (DATA / "refused", judge_refused)])
for path in EXAMPLES.glob("*.json"):
    if f"(../{path})" not in PAGE.read_text():
        session.complain(f"{PAGE}: does not name {path}")
session.judge_page()
judge_shown_session()
sys.exit(1 if session.failures else 0)
