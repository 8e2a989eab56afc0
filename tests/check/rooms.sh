#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What the compiler shows to a room: of every other room it sees no header but those in include/, and none of a room that
# comes later in the order (daemon/CMakeLists.txt and client/CMakeLists.txt). One forbidden include of each room is
# compiled, with the command of one of its sources, and must fail.
. "${0%/*}/lib.sh"
python3 - "$BUILD_DIR/compile_commands.json" <<'PYTHON' || failed=1
import json, pathlib, re, shlex, subprocess, sys

order = [pathlib.Path(house, room).resolve() for house in ("daemon", "client")
         for room in re.findall(r"^add_subdirectory\((\w+)\)", pathlib.Path(house, "CMakeLists.txt").read_text(), re.M)]
commands = {}
for entry in json.load(open(sys.argv[1])):
    commands.setdefault(pathlib.Path(entry["file"]).parent, shlex.split(entry["command"]))

def forbidden_to(room):
    """The headers that its sources must not see, the doors of later rooms first."""
    later = [header for other in order[order.index(room) + 1:] for header in sorted((other / "include").glob("*.h"))]
    inside = [header for other in order if other != room for header in sorted(other.glob("*.h"))]
    return later + inside

def fails(command, header):
    """Whether an include of the header is an error since there is no such file for that source."""
    flags = [word for word in command[1:] if word.startswith(("-I", "-D", "-std"))]
    result = subprocess.run(["gcc", *flags, "-fsyntax-only", "-x", "c", "-"], input=f'#include "{header.name}"\n',
                            capture_output=True, text=True)
    return result.returncode != 0 and f"{header.name}: No such file or directory" in result.stderr

here = pathlib.Path().resolve()
bad, tried = 0, []
for room in order:
    if not list(room.glob("*.c")):
        continue
    if room not in commands:
        sys.exit(f"{room}: none of its sources is compiled")
    folders = [pathlib.Path(word[2:]) for word in commands[room] if word.startswith("-I")]
    forbidden = forbidden_to(room)
    for header in forbidden:
        if any((folder / header.name).exists() for folder in folders):
            print(f"{room.relative_to(here)}: sees {header.relative_to(here)}")
            bad = 1
    if not fails(commands[room], forbidden[0]):
        print(f"{room.relative_to(here)}: an include of {forbidden[0].relative_to(here)} compiles")
        bad = 1
    tried.append(f"{room.relative_to(here)} <- {forbidden[0].relative_to(here)}")
print("these includes fail to compile: " + ", ".join(tried))
sys.exit(bad)
PYTHON
exit "$failed"
