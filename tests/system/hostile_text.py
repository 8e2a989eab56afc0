# SPDX-License-Identifier: Apache-2.0
"""What hostile_text.sh says.

made PROFCTL MAKER FOLDER: a recording with hostile names, a daemon that answers with them, configs and names of files.
real PROFCTL RECORDING OUTPUT: a recording of a hostile program, and what recording it printed.
"""
import array, json, os, re, socket, subprocess, sys, threading, unicodedata
from recording_maker import Recording, SESSION, SYMBOLS, BOOKS, PROCESSES

# Whatever is in one of these ranges is obeyed by terminals, or moves what stands around it.
RANGES = [(0x00, 0x1F), (0x7F, 0x9F), (0x61C, 0x61C), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x206F),
          (0xFEFF, 0xFEFF)]
DANGEROUS = "".join(chr(c) for first, last in RANGES for c in range(first, last + 1))
NO_NUL = DANGEROUS.replace("\0", "")
HOSTILE = "x" + NO_NUL + "y"
# A file's name may be no UTF-8 at all; a path of the kernel has at most 255 bytes a part.
FILE_NAME = b"f\x1b[2J\xc2\x9b1m\xc2\x85\x7f\xe2\x80\xae\xe2\x80\xa8\xff\r\n"
failures = 0


def complain(what, text):
    global failures
    failures += 1
    print(f"FAIL: {what}: {text}")


def check(what, output):
    """Output is lines of UTF-8 without anything from RANGES."""
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError as error:
        complain(what, f"is not UTF-8: {error}")
        return
    found = sorted({c for c in text if c in DANGEROUS and c != "\n"})
    if found:
        complain(what, "prints " + " ".join(f"U+{ord(c):04X}" for c in found))


def run(profctl, *arguments, environment=None, status=None, input=None):
    """Runs profctl, checks all that it prints, and returns its output."""
    done = subprocess.run([profctl, *arguments], capture_output=True, timeout=120, input=input,
                          env={**os.environ, **(environment or {})})
    shown = " ".join(a if isinstance(a, str) else repr(a) for a in arguments)[:160].encode("unicode_escape").decode()
    check(f"profctl {shown}: standard output", done.stdout)
    check(f"profctl {shown}: standard error", done.stderr)
    if status is not None and done.returncode != status:
        complain(f"profctl {shown}", f"ended with status {done.returncode}, not {status}: {done.stderr!r}")
    return done.stdout


def parse(what, output):
    try:
        return json.loads(output)
    except ValueError as error:
        complain(what, f"is not JSON: {error}")
        return None


def check_reading(profctl, path):
    """All verbs that read a recording."""
    for by in ("function", "line", "module", "process", "command", "thread", "unit", "container", "user", "cpu"):
        run(profctl, "report", path, "-n", "0", "--by", by, status=0)
        parse("report --json", run(profctl, "report", path, "-n", "0", "--by", by, "--json", status=0))
    run(profctl, "report", path, "-n", "0", "--per-second", status=0)
    for view in (["--tree"], ["--tree", "--inverted"], ["--callers", "*"], ["--callees", "*"], ["--processes"], ["--callers", FILE_NAME]):
        status = 1 if FILE_NAME in view else 0
        run(profctl, "report", path, "--min", "0", *view, status=status)
        run(profctl, "report", path, "--min", "0", "--wide", *view, status=status)
        if status == 0:
            parse("report --json", run(profctl, "report", path, "--min", "0", "--json", *view, status=0))
    for detail in ("--inline", "--lines", "--no-demangle"):
        run(profctl, "report", path, "-n", "0", detail, status=0)
        parse("report --json", run(profctl, "report", path, "-n", "0", detail, "--json", status=0))
        run(profctl, "export", path, "--format", "folded", detail, status=0)
    folded = run(profctl, "export", path, "--format", "folded", status=0).decode()
    for line in folded.split("\n")[:-1]:
        if not re.fullmatch(r"[^;]*(;[^;]*)+ [0-9]+", line):
            complain("folded", f"is no stack: {line!r}")
    parse("speedscope", run(profctl, "export", path, "--format", "speedscope", status=0))
    run(profctl, "export", path, "--format", "callgrind", status=0)
    for by in ("stack", "unit"):
        run(profctl, "diff", path, path, "-n", "0", "--by", by, status=0)
        parse("diff --json", run(profctl, "diff", path, path, "-n", "0", "--by", by, "--json", status=0))
    run(profctl, "dump", path, status=0)
    lines = run(profctl, "dump", "--json", path, status=0).split(b"\n")
    return [parse("dump --json", line) or {} for line in lines if line]


def make_recording(maker, path):
    recording = Recording("p" + NO_NUL[:40])
    recording.string(1000, HOSTILE)
    recording.data(SESSION, {"session": HOSTILE, "sample_period_ns": 1000000, HOSTILE: [HOSTILE]})
    # Text that is no JSON, and JSON with what it allows to stand between its values.
    recording.data(SYMBOLS, "no JSON " + NO_NUL.replace("\n", ""))
    recording.data(SYMBOLS, "\t{ \r\"" + NO_NUL[31:] + "\"\t:\r 1 }\r")
    for pid, text in enumerate([HOSTILE, b"bad \xff\xc2 utf-8 \x9b", *NO_NUL], 100):
        path_text = b"/" + (text if isinstance(text, bytes) else text.encode())
        recording.name(pid, 0, text)
        recording.name(pid, pid, text)
        recording.module(pid, 1, path_text, f"{pid:08x}", 0x1000, 0x1000)
        recording.sample(pid, 0x1010)
        recording.sample(pid, 0x1810)
        if isinstance(text, str):
            recording.data(PROCESSES, {"pid": pid, "boot_ts_ns": "0", HOSTILE: HOSTILE, **{
                name: text for name in ("cgroup", "unit", "user_unit", "container", "runtime", "pod", "uid")}})
        if isinstance(text, str):
            recording.data(SYMBOLS, {"build_id": f"{pid:08x}", "module": path_text.decode(), "start": 0, "size": 0x100,
                                     "name": text})
    for pid, text in enumerate([HOSTILE, *NO_NUL], 100):
        recording.data("cpu-profilerd.threads", {
            "pid": pid, "tid": pid, "name": text, "boot_ts_ns": "0", HOSTILE: HOSTILE, "source": HOSTILE, "wall_ns": 1 << 60,
            "running_ns": -(1 << 60), "waiting_ns": 1 << 62, "blocked_ns": HOSTILE})
    recording.data(BOOKS, {"period_ns": 1000000, "idle_source": HOSTILE, HOSTILE: HOSTILE,
                           "total": {"expected": 7}, "cpus": [{"cpu": 0, "expected": 7, HOSTILE: 1}]})
    recording.write(maker, path)


def check_recording(profctl, maker, folder):
    path = os.path.join(os.fsencode(folder), FILE_NAME)
    make_recording(maker, path)
    records = check_reading(profctl, path)
    for width in ("40", "400"):
        run(profctl, "report", "--threads", "-n", "0", path, status=0, environment={"COLUMNS": width})
    threads = parse("report --threads", run(profctl, "report", "--threads", "-n", "0", "--json", path, status=0))
    if not any(thread["name"] == HOSTILE for thread in threads["threads"]):
        complain("report --threads", "a name is not what it was")
    if not any(r.get("name") == HOSTILE for r in records):
        complain("dump --json", "a name is not what it was")
    if not any(r.get("value", {}).get("idle_source") == HOSTILE for r in records if isinstance(r.get("value"), dict)):
        complain("dump --json", "JSON of the recording is not what it was")
    report = json.loads(run(profctl, "report", path, "-n", "0", "--json"))
    if not any(row["name"] == HOSTILE for row in report["rows"]) or report["books"]["idle_source"] != HOSTILE:
        complain("report --json", "a name is not what it was")
    # What is cut off is complained about, with its path.
    with open(path, "rb") as whole, open(path + b"cut", "wb") as cut:
        cut.write(whole.read()[:-8])
    for verb in (["report"], ["dump"], ["dump", "--json"], ["export", "--format", "folded"]):
        run(profctl, *verb, path + b"cut", status=1)
        run(profctl, *verb, path + b"missing", status=1)
        run(profctl, *verb, path, path, status=2)
    run(profctl, "export", "--format", "folded", path, "-o", path + b"out", status=0)
    run(profctl, "export", "--format", "folded", path, "-o", path + b"/no/folder", status=1)
    with open(path + b"out", "rb") as output:
        check("export -o FILE", output.read())
    return path


def check_words(profctl, path):
    """What is wrong on the command line is quoted."""
    for verb in ("record", "start", "stop", "read", "close", "report", "diff", "export", "dump", "status", "events", "check"):
        run(profctl, verb, b"--" + FILE_NAME, status=2)
        run(profctl, verb, "--socket", path, environment={"CPU_PROFILERD_SOCKET": "/nowhere"})
    run(profctl, FILE_NAME, status=2)
    run(profctl, "report", path, "--by", FILE_NAME, status=2)
    run(profctl, "report", path, "-n", FILE_NAME, status=2)
    run(profctl, "record", "-F", FILE_NAME, status=2)
    run(profctl, "record", "-p", FILE_NAME, status=2)
    run(profctl, "record", "-u", FILE_NAME, status=2)
    run(profctl, "export", path, "--format", FILE_NAME, status=2)


def check_configs(profctl, path):
    for config in ({HOSTILE: 1}, {"unwind": HOSTILE}, {"cpus": HOSTILE}, {"targets": {"comms": [HOSTILE]}},
                   {"targets": {"comms": ["x\u009b\u202e\u2028"]}}, {"targets": {"cgroups": ["/x\u009b\u202e"]}},
                   {"targets": {HOSTILE: []}}, HOSTILE):
        for text in (json.dumps(config), json.dumps(config, ensure_ascii=False)):
            with open(path + b"config", "w", encoding="utf-8") as file:
                file.write(text)
            run(profctl, "check", path + b"config")
            parse("check --json", run(profctl, "check", "--json", path + b"config"))
            run(profctl, "record", "--config", path + b"config", "-o", path + b"none", status=1,
                environment={"CPU_PROFILERD_SOCKET": "/nowhere"})


class Daemon(threading.Thread):
    """Answers every call, with HOSTILE wherever a text may be; with `is_error`, with that error."""

    def __init__(self, path, error=None):
        super().__init__(daemon=True)
        self.error = error
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(16)

    def reply(self, method):
        if self.error is not None and not method.endswith("Status"):
            return {"error": self.error,
                    "parameters": {"text": HOSTILE, "member": HOSTILE, "state": HOSTILE, "owner_uid": 0, "age_ms": 1}}
        session = {"session": HOSTILE, "state": HOSTILE, "owner_uid": 0, "detached": True, "age_s": 1,
                   "config": {HOSTILE: HOSTILE, "max_duration_s": 10, "sample_period_ns": 1000000},
                   "books": {"idle_source": HOSTILE, HOSTILE: HOSTILE}, "buffer_bytes": 10, "buffer_used_bytes": 0,
                   HOSTILE: HOSTILE, "own": HOSTILE, "list": [HOSTILE]}
        replies = {
            "Create": {"session": HOSTILE, "holds_s": 3},
            "Attach": {"session": HOSTILE, "state": HOSTILE},
            "Start": {}, "Close": {},
            "Stop": {"stopped_by": HOSTILE},
            "Read": {"fd": -1, "size_bytes": 0, "sequence": 0, "end": True},
            "Events": {"events": [{"event": HOSTILE, "kind": HOSTILE, "unit": HOSTILE, "available": True},
                                  {"event": HOSTILE, "why": HOSTILE}, HOSTILE, 1]},
            "Status": {"status": {"daemon": {"version": HOSTILE, HOSTILE: HOSTILE}, "kernel": {"release": HOSTILE},
                                  "session": session}},
        }
        return {"parameters": replies[method.rsplit(".", 1)[1]]}

    def serve(self, peer):
        text = b""
        while chunk := peer.recv(65536):
            text += chunk
            while b"\0" in text:
                message, text = text.split(b"\0", 1)
                reply = self.reply(json.loads(message)["method"])
                peer.sendall(json.dumps(reply, ensure_ascii=False).encode() + b"\0")

    def run(self):
        while True:
            peer, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=[peer], daemon=True).start()


def check_daemons(profctl, folder, path):
    interface = "io.cpuprofilerd.Sampler."
    errors = [None, "x" + HOSTILE, interface + HOSTILE] + [interface + name for name in (
        "AlreadyExists", "BadState", "InvalidArgs", "PermissionDenied", "NotSupported", "Failed")]
    for number, error in enumerate(errors):
        # In the name of the socket too, as long as that may be.
        address = os.path.join(os.fsencode(folder), b"s%d\xc2\x9b\x1b" % number)
        Daemon(address, error).start()
        environment = {b"CPU_PROFILERD_SOCKET": address}
        status = 0 if error is None else 1
        for verb in (["start"], ["stop"], ["close"], ["status"], ["events"], ["read", "-o", path + b"r"],
                     ["record", "-d", "0.1", "-o", path + b"w"]):
            # Status is given whatever the other calls are answered; a read or a recording of nothing is none.
            run(profctl, *verb, environment=environment,
                status=None if verb[0] in ("status", "events", "read", "record") else status)
            output = run(profctl, *verb, "--json", environment=environment)
            if output:
                parse(f"{verb[0]} --json", output)
    run(profctl, "status", environment={b"CPU_PROFILERD_SOCKET": path + b"missing"}, status=1)
    run(profctl, "status", environment={b"CPU_PROFILERD_SOCKET": path + b"/" + 200 * b"\x9b"}, status=1)


def main():
    if sys.argv[1] == "made":
        profctl, maker, folder = sys.argv[2:]
        path = check_recording(profctl, maker, folder)
        check_words(profctl, path)
        check_configs(profctl, path)
        check_daemons(profctl, folder, path)
    else:
        profctl, path, said = sys.argv[2:]
        records = check_reading(profctl, path)
        with open(said, "rb") as file:
            check("record", file.read())
        names = {r.get("name") for r in records}
        for start in ("n\u009b\x1b\x7f\u0085x",):
            if start not in names:
                complain("dump --json", f"the name {start!r} is not in the recording, so this tests nothing")
        report = json.loads(run(profctl, "report", path, "-n", "0", "--json"))
        if not any(row["name"].startswith("evil\u009b") for row in report["rows"]):
            complain("report --json", "the function is not in the recording, so this tests nothing")
    sys.exit(failures > 0)


main()
