# SPDX-License-Identifier: Apache-2.0
"""Holds the test data, the example and docs/daemon-config.md against schema and parser.

Run from the top of the sources with the path of cpu-profilerd. Prints what differs; status 1 if anything does.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from config_check import ConfigCheck

DAEMON = sys.argv[1]
DATA = pathlib.Path("tests/data/daemon_config")
PAGE = pathlib.Path("docs/daemon-config.md")
EXAMPLE = pathlib.Path("config/daemon.example.json")
daemon = ConfigCheck(pathlib.Path("config/daemon.schema.json"), PAGE)


def check(text, folder):
    """The answer to a file with this text, and the name it had: in the sources anybody might own it."""
    path = pathlib.Path(folder) / "daemon.json"
    path.write_bytes(text)
    path.chmod(0o644)
    return subprocess.run([DAEMON, "--check", path], capture_output=True, text=True, check=False), path


def ids(config, name):
    """How many a list names, but root."""
    return len([number for number in config.get(name, []) if name == "allowed_gids" or number != 0])


def describe_events(config):
    kinds = ["software", "hardware", "raw"]
    allowed = config.get("allowed_events", kinds[:1])
    shown = ", ".join(kind for kind in kinds if kind in allowed) or "no"
    return f"{shown} events" + ("" if "allowed_events" in config else " (root any)")


def describe(config):
    """The line that must be printed, from the values that the schema gives as defaults."""
    values = {name: member["default"] for name, member in daemon.schema["properties"].items() if "default" in member}
    values.update(config)
    listed = "allowed_uids" in config or "allowed_gids" in config
    copy_bytes = values["max_stack_copy_bytes"]
    parts = [
        f"at most {values['max_frequency_hz']:.0f} Hz" + ("" if "max_frequency_hz" in config else " (root any rate)"),
        f"at most {copy_bytes} bytes of a stack" if copy_bytes else "no copies of stacks",
        f"at most {values['max_duration_s']} s" if "max_duration_s" in values else "any duration",
        f"stopped when unread for {values['max_unread_s']} s",
        "with kernel stacks" if values["allow_kernel_stacks"] else "without kernel stacks",
        describe_events(config),
    ]
    who = "every user that may connect to the socket"
    if listed:
        users, groups = ids(config, "allowed_uids"), ids(config, "allowed_gids")
        who = "root" if users or groups else "root alone"
        if users:
            who += f"{', ' if groups else ' and '}{users} other user{'s' if users > 1 else ''}"
        if groups:
            who += f" and the members of {groups} group{'s' if groups > 1 else ''}"
    return f"{who}; {', '.join(parts)}"


def judge_accepted(path):
    text = path.read_bytes()
    if not daemon.suits_the_schema(text):
        daemon.complain(f"{path}: the schema refuses it")
    result, name = check(text, scratch)
    wanted = f"{name}: ok: {describe(json.loads(text))}\n"
    if result.returncode != 0 or result.stderr or result.stdout != wanted:
        daemon.complain(f"{path}: --check says {result.returncode} {result.stdout}{result.stderr}, not {wanted}")


def judge_refused(path):
    text = path.read_bytes()
    expected = path.with_suffix(".expected").read_text()
    if daemon.suits_the_schema(text):
        daemon.complain(f"{path}: the schema takes it")
    result, name = check(text, scratch)
    if result.returncode != 1 or result.stdout or result.stderr != f"cpu-profilerd: {name}: {expected}":
        daemon.complain(f"{path}: --check says {result.returncode} {result.stdout}{result.stderr}")


def judge_shown_check():
    """What the page shows of --check is what it prints, of the example."""
    shown = re.findall(r"^/etc/cpu-profilerd/daemon\.json: ok: (.*)$", PAGE.read_text(), re.MULTILINE)
    if shown != [describe(json.loads(EXAMPLE.read_text()))]:
        daemon.complain(f"{PAGE}: shows {shown}")
    if f"(../{EXAMPLE})" not in PAGE.read_text():
        daemon.complain(f"{PAGE}: does not name {EXAMPLE}")


with tempfile.TemporaryDirectory() as scratch:
    daemon.judge_folders([(DATA / "accepted", judge_accepted), (DATA / "refused", judge_refused)])
    judge_accepted(EXAMPLE)
daemon.judge_page()
judge_shown_check()
sys.exit(1 if daemon.failures else 0)
