# SPDX-License-Identifier: Apache-2.0
"""What `profctl dump --json` says of a recording with events beside the clock: waits are two of them."""
import json


def read_dump(path):
    """Returns the samples of events, each with its whole "stack", the last data of each name, and the lines of threads."""
    samples, stacks, data, lines = [], {}, {}, []
    with open(path, encoding="utf-8") as file:
        for text in file:
            record = json.loads(text)
            if record["record"] == "data" and record["name"] == "cpu-profilerd.threads":
                lines.append(record["value"])
            elif record["record"] == "data":
                data[record["name"].partition(".")[2]] = record["value"]
            elif record["record"] == "sample":
                if "continuation_completion" in record:
                    stacks[record["continuation_completion"]] = record.get("user_stack", [])
                if record.get("event", 0) > 0:
                    samples.append(record)
    for sample in samples:
        rest = stacks.get(sample.get("continuation"), [])
        sample["stack"] = [int(word, 16) for word in sample.get("user_stack", []) + rest]
    return samples, data, lines
