CREATE DATABASE IF NOT EXISTS p;
CREATE TABLE p.sample (recording String, time DateTime64(9), host LowCardinality(String), cpu UInt16, pid Nullable(UInt64),
    tid Nullable(UInt64), command LowCardinality(String), thread LowCardinality(Nullable(String)), unit LowCardinality(Nullable(String)),
    container Nullable(String), stack UInt32, rooted LowCardinality(String), event LowCardinality(String), weight UInt64,
    value Nullable(UInt64)) ENGINE = MergeTree ORDER BY (host, time);
CREATE TABLE p.stack (recording String, stack UInt32, frames Array(UInt32)) ENGINE = MergeTree ORDER BY (recording, stack);
CREATE TABLE p.frame (recording String, frame UInt32, name String, module Nullable(String), build_id Nullable(String), kernel Bool)
    ENGINE = MergeTree ORDER BY (recording, frame);
INSERT INTO p.sample SELECT recording, fromUnixTimestamp64Nano(assumeNotNull(time_unix_ns)), host, cpu, pid, tid, command, thread,
    unit, container, stack, rooted, event, weight, value
    FROM file('ROWS', JSONEachRow, 'table String, recording String, time_unix_ns Nullable(Int64), host String, cpu UInt16,
    pid Nullable(UInt64), tid Nullable(UInt64), command String, thread Nullable(String), unit Nullable(String),
    container Nullable(String), stack UInt32, rooted String, event String, weight UInt64, value Nullable(UInt64)')
    WHERE table = 'sample' SETTINGS input_format_skip_unknown_fields = 1;
INSERT INTO p.stack SELECT recording, stack, frames FROM file('ROWS', JSONEachRow,
    'table String, recording String, stack UInt32, frames Array(UInt32)') WHERE table = 'stack'
    SETTINGS input_format_skip_unknown_fields = 1;
INSERT INTO p.frame SELECT recording, frame, name, module, build_id, kernel FROM file('ROWS', JSONEachRow,
    'table String, recording String, frame UInt32, name String, module Nullable(String), build_id Nullable(String), kernel Bool')
    WHERE table = 'frame' SETTINGS input_format_skip_unknown_fields = 1;
-- CPU seconds of each program.
SELECT command, count() AS samples, round(sum(weight * value) / 1e9, 3) AS cpu_s FROM p.sample
    GROUP BY command ORDER BY samples DESC, command LIMIT 5;
-- Functions by their own time.
SELECT f.name, count() AS self FROM p.sample s JOIN p.stack k USING (recording, stack)
    JOIN p.frame f ON f.recording = s.recording AND f.frame = k.frames[1] GROUP BY f.name ORDER BY self DESC, f.name LIMIT 5;
-- Functions by the time below them, each once a stack.
SELECT f.name, count() AS total FROM (SELECT s.recording AS r, arrayJoin(arrayDistinct(k.frames)) AS frame
    FROM p.sample s JOIN p.stack k USING (recording, stack)) x JOIN p.frame f ON f.recording = x.r AND f.frame = x.frame
    GROUP BY f.name ORDER BY total DESC, f.name LIMIT 5;
-- The busiest quarter of a second of each CPU.
SELECT cpu, argMax(slot, n) AS from_ms, max(n) AS samples FROM (SELECT cpu, intDiv(toUnixTimestamp64Milli(time) -
    (SELECT min(toUnixTimestamp64Milli(time)) FROM p.sample), 250) * 250 AS slot, count() AS n FROM p.sample GROUP BY cpu, slot)
    GROUP BY cpu ORDER BY cpu;
-- How much of it is in the kernel, and how many stacks reach their root.
SELECT round(100 * countIf(f.kernel) / count(), 1) AS kernel_percent, round(100 * countIf(s.rooted = 'complete') /
    countIf(s.rooted != 'none'), 1) AS complete_percent, count() AS samples FROM p.sample s
    JOIN p.stack k USING (recording, stack) JOIN p.frame f ON f.recording = s.recording AND f.frame = k.frames[1];
