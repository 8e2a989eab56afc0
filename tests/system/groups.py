# SPDX-License-Identifier: Apache-2.0
"""
Continuation records, read from the bytes of FXT files alone: groups.py FILE... Checks the rules of
docs/trace-format.md, over all files together since they are of one session, and prints a JSON object: how
many samples and partials there are, bytes of the files, and how many stacks are complete.
"""
import json
import os
import struct
import sys

PARTIAL, COMPLETION, PID, TID, TIME, USER = (1 << n for n in range(6))
CPU, KERNEL, QUALITY = 1 << 63, 1 << 62, 1 << 61
ORDER = (PARTIAL, COMPLETION, PID, TID, TIME, USER, CPU, KERNEL, QUALITY)
STACKS = (USER, KERNEL)
WHOLE = PID | TID | TIME
MAGIC = 0x0016547846040010


def check(good, what):
    if not good:
        sys.exit("FAIL: " + what)


def read_sample(words):
    """The fields of a SAMPLE blob's words, by bit."""
    sample, at = {"fields": words[0]}, 1
    check(words[0] & ~sum(ORDER) == 0, "unknown fields %#x" % words[0])
    for field in ORDER:
        if words[0] & field:
            count = words[at] if field in STACKS else 0
            sample[field] = list(words[at + 1:at + 1 + count]) if field in STACKS else words[at]
            at += 1 + count
    check(at == len(words), "a sample of %d words has %d" % (at, len(words)))
    return sample


def read_records(data):
    """Yields (segment, sample) for each SAMPLE blob, and (segment, text) for each of books."""
    at, segment, strings = 0, 0, {}
    while at < len(data):
        (header,) = struct.unpack_from("<Q", data, at)
        count = header >> 4 & 4095
        check(count > 0 and at + 8 * count <= len(data), "a record of %d words at %d" % (count, at))
        words = struct.unpack_from("<%dQ" % (count - 1), data, at + 8)
        if header == MAGIC:
            segment, strings = segment + 1, {}
        elif header & 15 == 2:
            strings[header >> 16 & 0x7fff] = data[at + 8:at + 8 + (header >> 32 & 0x7fff)].decode()
        elif header & 15 == 5 and header >> 48 & 255 == 0x80:
            yield segment, read_sample(words)
        elif header & 15 == 5 and strings.get(header >> 16 & 0xffff) == "cpu-profilerd.books":
            yield segment, data[at + 8:at + 8 + (header >> 32 & 0x7fff)].decode()
        at += 8 * count


def check_partial(sample, cpus):
    check(sample["fields"] & ~(USER | KERNEL | QUALITY) == WHOLE | PARTIAL,
          "a partial has fields %#x: it says when and who, and no CPU" % sample["fields"])
    check(sample[PARTIAL] >> 48 in cpus, "id %#x is of no CPU" % sample[PARTIAL])


def complete(partials, completion):
    """The samples of one group."""
    check(completion["fields"] & ~(USER | QUALITY) == COMPLETION,
          "a completion has fields %#x: only what is true of all its partials" % completion["fields"])
    check(len(partials) > 0, "completion %#x has no partials before it" % completion[COMPLETION])
    times = [partial[TIME] for partial in partials]
    check(max(times) - min(times) <= 100_000_000, "a group of %d ns" % (max(times) - min(times)))
    for partial in partials:
        check((QUALITY in partial) != (QUALITY in completion), "one of the two says the quality")
        yield {**completion, **partial, CPU: partial[PARTIAL] >> 48,
               USER: partial.get(USER, []) + completion.get(USER, [])}


def main():
    cpus = set(range(os.sysconf("SC_NPROCESSORS_CONF")))
    samples, closed, last_n, partial_count, size, books = [], set(), {}, 0, 0, None
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            data = file.read()
        size += len(data)
        open_ids, inside = {}, 0
        for segment, record in read_records(data):
            check(segment == inside or not open_ids, "a segment ended with ids open")
            inside = segment
            if isinstance(record, str):
                books = json.loads(record)
            elif PARTIAL in record:
                check_partial(record, cpus)
                check(record[PARTIAL] not in closed, "id %#x came again" % record[PARTIAL])
                open_ids.setdefault(record[PARTIAL], []).append(record)
                partial_count += 1
            elif COMPLETION in record:
                identity = record[COMPLETION]
                check(identity not in closed, "id %#x was completed twice" % identity)
                closed.add(identity)
                cpu, n = identity >> 48, identity & (1 << 48) - 1
                check(n > last_n.get(cpu, 0), "n of CPU %d went from %d to %d" % (cpu, last_n.get(cpu, 0), n))
                last_n[cpu] = n
                samples += complete(open_ids.pop(identity, []), record)
            else:
                check(record["fields"] & ~(USER | KERNEL) == WHOLE | CPU | QUALITY,
                      "a whole sample has fields %#x" % record["fields"])
                samples.append({USER: [], **record})
        check(not open_ids, "%d partials without a completion" % len(open_ids))
    identities = {(s[TIME], s[CPU], s[PID], s[TID]) for s in samples}
    check(len(identities) == len(samples), "a sample came twice")
    check(books is not None, "no books")
    total = books["total"]
    check(len(samples) == total["kept"], "%d samples, and %d were kept" % (len(samples), total["kept"]))
    check(total["received"] == total["kept"] + total["filtered"] + total["dropped"], "the books do not close: %s" % total)
    for cpu in books["cpus"]:
        count = sum(sample[CPU] == cpu["cpu"] for sample in samples)
        check(count == cpu["kept"], "CPU %d: %d samples, and %d were kept" % (cpu["cpu"], count, cpu["kept"]))
    print(json.dumps({
        "samples": len(samples), "partials": partial_count, "groups": len(closed), "bytes": size,
        "complete": sum(sample[QUALITY] & 255 == 1 for sample in samples),
        "frames": sum(len(sample[USER]) for sample in samples),
    }))


main()
