#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What each verb prints with --json is what docs/profctl.schema.json says, and has no member that the schema lacks; the same
# holds for its messages. The manual page names each member of the schema.
. "${0%/*}/lib.sh"
use_build release
require_perf
start_daemon
run_in_background "$WORKLOADS/busy" --seconds 60 --rest 3 >/dev/null

# said VERB [ARGUMENT...]: adds what the verb prints, and its messages, each line with what it is.
said() {
    local verb=$1
    shift
    profctl "$verb" --json "$@" >"$WORK/out" 2>"$WORK/err" </dev/null
    # With a command, the result of record is on standard error.
    sed "s/^{\"message\"/message &/; t; s/^/$verb /" "$WORK/err" "$WORK/out" >>"$WORK/said"
}

said stop
said start -F 499
said status
said start
said read -o "$WORK/first.fxt"
said read -o "$WORK/first.fxt"
said stop
said read --append -o "$WORK/first.fxt"
said close
said close
said status
said status now
said record -d 0.2 -F 499 -o "$WORK/second.fxt"
said record -d 0.2 -F 499 -o "$WORK/second.fxt" -- sh -c 'exec "$1" --seconds 0.2 >/dev/null' sh "$WORKLOADS/busy"
said top -n 2 --interval 0.3 --rows 3
said top --wall --event off-cpu -n 2 --interval 0.3 --rows 3
said top -n 0
said record -d 0
echo '{"max_stack_depth": 500, "unwind": "fp"}' >"$WORK/deep.json"
echo '{"frequency": 1}' >"$WORK/wrong.json"
said check "$WORK/deep.json"
said check "$WORK/wrong.json"
said check "$WORK/missing.json"
said dump "$WORK/second.fxt"
# A recording of a busy machine has thousands of records that are alike.
awk '$1 != "dump" || kinds[substr($2, 1, 20)]++ < 50' "$WORK/said" >"$WORK/few" && mv "$WORK/few" "$WORK/said"
said dump "$WORK/missing.fxt"
said report "$WORK/missing.fxt"

python3 - "$WORK/said" "$SOURCE_DIR" <<'PYTHON' || fail "see above"
import json, re, subprocess, sys
import jsonschema

schema = json.load(open(f"{sys.argv[2]}/docs/profctl.schema.json", encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(schema)

def close(part):
    """A member that the schema does not have is one that it lacks, but among counters and in a config."""
    if isinstance(part, dict):
        if "properties" in part and "additionalProperties" not in part:
            part["additionalProperties"] = False
        for value in part.values():
            close(value)
    elif isinstance(part, list):
        for value in part:
            close(value)

close(schema["$defs"])
validators = {kind: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})
              for kind in schema["$defs"]}
counts, wrong = {}, 0
for line in open(sys.argv[1], encoding="utf-8"):
    kind, text = line.split(" ", 1)
    try:
        validators[kind].validate(json.loads(text))
    except (json.JSONDecodeError, jsonschema.ValidationError) as error:
        wrong += 1
        print(f"{kind}: {text.strip()[:300]}: {str(error)[:600]}")
    counts[kind] = counts.get(kind, 0) + 1
print(counts)
missing = set(schema["$defs"]) - {"books"} - set(counts)
if missing:
    sys.exit(f"nothing was said of {missing}")
page = subprocess.run(["groff", "-mdoc", "-Tascii", "-P-cbou", "-rLL=2000n", f"{sys.argv[2]}/man/profctl.1.in"], check=True,
                      capture_output=True, text=True).stdout
page = page[page.index("\nJSON\n"):page.index("\nENVIRONMENT\n")]
for kind in set(schema["$defs"]) - {"dump", "message", "books"}:
    row = next(line for line in page.splitlines() if re.match(rf" +{kind}  ", line))
    for name in schema["$defs"][kind]["properties"]:
        if not re.search(rf"\b{name}\b", row):
            wrong += 1
            print(f"man/profctl.1: {kind} has no {name}")
sys.exit(wrong > 0)
PYTHON
