#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the compiler shows to a room of the client: of every other room it sees no header but those in include/, and none
# of a room that comes later in the order (client/CMakeLists.txt). One forbidden include of each room is compiled, with
# the command of one of its sources, and must fail.
. "${0%/*}/lib.sh"
python3 - "$BUILD_DIR/compile_commands.json" <<'PYTHON' || failed=1
import json, pathlib, re, shlex, subprocess, sys

client = pathlib.Path("client").resolve()
order = re.findall(r"^add_subdirectory\((\w+)\)", (client / "CMakeLists.txt").read_text(), re.M)
commands = {}
for entry in json.load(open(sys.argv[1])):
    source = pathlib.Path(entry["file"])
    if source.is_relative_to(client):
        commands.setdefault(source.relative_to(client).parts[0], shlex.split(entry["command"]))

def forbidden_to(room):
    """The headers that its sources must not see, the doors of later rooms first."""
    later = [header for other in order[order.index(room) + 1:] for header in sorted((client / other / "include").glob("*.h"))]
    inside = [header for other in order if other != room for header in sorted((client / other).glob("*.h"))]
    return later + inside

def fails(command, header):
    """Whether an include of the header is an error since there is no such file for that source."""
    flags = [word for word in command[1:] if word.startswith(("-I", "-D", "-std"))]
    result = subprocess.run(["gcc", *flags, "-fsyntax-only", "-x", "c", "-"], input=f'#include "{header.name}"\n',
                            capture_output=True, text=True)
    return result.returncode != 0 and f"{header.name}: No such file or directory" in result.stderr

bad, tried = 0, []
for room in order:
    if room not in commands:
        sys.exit(f"{room}: none of its sources is compiled")
    folders = [pathlib.Path(word[2:]) for word in commands[room] if word.startswith("-I")]
    forbidden = forbidden_to(room)
    for header in forbidden:
        if any((folder / header.name).exists() for folder in folders):
            print(f"{room}: sees {header.relative_to(client)}")
            bad = 1
    if not fails(commands[room], forbidden[0]):
        print(f"{room}: an include of {forbidden[0].relative_to(client)} compiles")
        bad = 1
    tried.append(f"{room} <- {forbidden[0].relative_to(client)}")
print("these includes fail to compile: " + ", ".join(tried))
sys.exit(bad)
PYTHON
exit "$failed"
