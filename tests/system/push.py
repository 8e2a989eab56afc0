# SPDX-License-Identifier: Apache-2.0
"""What push.sh says: push.py PROFCTL MAKER FOLDER, where FOLDER has cert.pem and other_cert.pem, with their keys."""
import collections, faulthandler, gzip, json, os, re, resource, shutil, signal, socket, subprocess, sys, threading, time
from recording_maker import Recording, SESSION, SYMBOLS, BOOKS, PROCESSES
import otlp_store
from otlp_store import Store, says

PROFCTL, MAKER, FOLDER = sys.argv[1:]
PERIOD_NS = 10101010  # 99 Hz
BEGAN = 1769767200 * 10**9
SECRET = "s3cr3t-Zm9vYmFy-t0k3n"
FUNCTIONS = 40
failures = 0


def complain(what, text):
    global failures
    failures += 1
    print(f"FAIL: {what}: {text}")


def expect(what, found, wanted):
    if found != wanted:
        complain(what, f"has {found}, not {wanted}")


# Beside the clock, in recordings that have other events.
EVENTS = [{"event": "cpu-clock", "unit": "ns"}, {"event": "page-faults", "unit": "faults", "period": 100},
          {"event": "off-cpu", "unit": "ns"}, {"event": "context-switches", "unit": "switches"}, {"event": "never", "unit": "events"}]


def make(path, samples, seconds=60, host="web1", session="s", began=BEGAN, stack=None, kernel=None, events=False):
    """A recording of so many samples over that time, of a service, a container and two programs. With events, behind each
    sample is one of 100 page faults, one of a wait of 1000 ns and one more each time, and one of a switch."""
    recording = Recording()
    boot = 5 * 10**12
    recording.data(SESSION, {"session": session, "host": host, "kernel": "6.1", "created_boot_ns": str(boot),
                             "created_realtime_ns": str(began), "config": {"sample_period_ns": PERIOD_NS},
                             **({"events": EVENTS} if events else {})})
    owners = [{"unit": "nginx.service"}, {"unit": "docker-%s.scope" % ("c" * 64), "container": "c" * 64, "runtime": "docker"}, {}, {}]
    for pid, owner in enumerate(owners, 100):
        recording.name(pid, 0, "program%d" % pid)
        recording.name(pid, pid, "thread%d" % pid)
        recording.module(pid, 1, "/usr/bin/app", "0badcafe", 0x10000, 0x100000)
        recording.data(PROCESSES, {"pid": pid, "boot_ts_ns": "0", "uid": 7, **owner})
    recording.module(0, 1, "[kernel]", None, 0xffffffff80000000, 0x10000)
    recording.data(SYMBOLS, {"build_id": "", "module": "[kernel]", "start": "0x0", "size": 0x10000, "name": "k"})
    for number in range(FUNCTIONS):
        recording.data(SYMBOLS, {"build_id": "0badcafe", "module": "/usr/bin/app", "start": hex(number * 0x100), "size": 0x100,
                                 "name": "f%d" % number})
    step = seconds * 10**9 // samples
    for i in range(samples):
        recording.time_ns = boot + i * step - 1000
        user = stack(i) if stack else [0x10010 + (i % FUNCTIONS) * 0x100, 0x10010]
        recording.stack(100 + i % 4, user, kernel)
        for number, weight in ((1, 1), (2, 1000 + i), (3, 1)) if events else ():
            recording.event(100 + i % 4, number, weight, user, kernel)
    recording.data(BOOKS, {"period_ns": PERIOD_NS, "total": {"expected": samples, "received": samples, "kept": samples}})
    recording.write(MAKER, path)
    if path.endswith(".gz"):
        with open(path, "rb") as file:
            content = file.read()
        with gzip.open(path, "wb", 1) as file:
            file.write(content)
    return path


def push(*arguments, status=0, environment=None, timeout=120):
    """Runs the verb; returns its totals and what it says."""
    done = subprocess.run([PROFCTL, "push", *arguments, "--json"], capture_output=True, text=True, timeout=timeout,
                          env={**{k: v for k, v in os.environ.items() if "proxy" not in k.lower()}, **(environment or {})})
    if done.returncode != status:
        complain(f"push {' '.join(arguments)}", f"status {done.returncode}: {done.stderr}")
    totals = json.loads(done.stdout) if done.stdout else collections.defaultdict(int)
    if done.stdout:
        parts = sum(totals[name + "_samples"] for name in ("accepted", "partly", "rejected", "given_up", "unsent"))
        expect("the totals", parts, totals["samples"])
    return totals, done.stderr


def path_of(name):
    return os.path.join(FOLDER, name)


def check_store(what, store, samples, twice=False):
    expect(f"{what}: samples in the store", store.sample_count(), samples)
    expect(f"{what}: complaints of the store", store.complaints, [])
    if not twice:
        expect(f"{what}: profiles that came twice", store.twice(), [])
    store.close()


def check_plain():
    """Totals, functions, times and services are those of the recording, compressed or not, in each detail."""
    path = make(path_of("plain.fxt"), 6000)
    exported = subprocess.run([PROFCTL, "export", path, "--format", "ndjson"], capture_output=True, check=True).stdout
    rows = [json.loads(line) for line in exported.splitlines()]
    times = sorted(row["time_unix_ns"] for row in rows if row["table"] == "sample")
    for options in ([], ["--no-gzip"], ["--labels", "process"], ["--labels", "thread"], ["--window", "5s"]):
        store = Store()
        totals, said = push(path, "--to", store.url, "--progress", path_of("progress"), *options)
        os.unlink(path_of("progress"))
        expect(f"{options}: accepted", totals["accepted_samples"], 6000)
        expect(f"{options}: says", said, "")
        expect(f"{options}: times", store.times(), times)
        expect(f"{options}: functions", store.leaves(), collections.Counter({"f%d" % i: 150 for i in range(FUNCTIONS)}))
        expect(f"{options}: services", {(p["service"], p["resource"]["host.name"]) for p in store.profiles},
               {("nginx", "web1"), ("c" * 12, "web1"), ("program102", "web1"), ("program103", "web1")})
        expect(f"{options}: bytes", totals["body_bytes"], store.wire_bytes)
        if not options:
            expect("requests of 60 s", store.request_count, 4)
            expect("books", [p["books"].get("cpu_profilerd.ticks.kept") for p in store.profiles].count(6000), 4)
        attributes = {tuple(sorted(s["attributes"])) for p in store.profiles for s in p["samples"]}
        wanted = {"process": {("process.executable.name", "process.pid")},
                  "thread": {("cpu.logical_number", "process.executable.name", "process.pid", "thread.id", "thread.name")}}
        expect(f"{options}: attributes", attributes, wanted.get(options[-1] if options else "", {()}))
        check_store(f"{options}", store, 6000)
    store = Store()
    with open(path, "rb") as file:
        done = subprocess.run([PROFCTL, "push", "-", "--to", store.url], stdin=file, capture_output=True, text=True)
    expect("standard input", (done.returncode, done.stdout[:29]), (0, "6000 samples: 6000 accepted; "))
    check_store("standard input", store, 6000)


def check_moods():
    """A store that cannot, or does not, take everything: what it is asked again for, and what it is not."""
    path = make(path_of("moods.fxt"), 4000)
    retried = [says(429, "slow down", Retry_After="1"), says(503, "later"), otlp_store.closes, says(502), says(500), says(408)]
    store = Store(retried)
    began = time.monotonic()
    totals, said = push(path, "--to", store.url, "--progress", path_of("p1"))
    if time.monotonic() - began < 1:
        complain("Retry-After", "is not honoured")
    expect("after 6 failures", (totals["accepted_samples"], totals["retries"]), (4000, 6))
    for words in ("HTTP 429: slow down; trying again", "HTTP 503: later; trying again", "takes requests again"):
        if words not in said:
            complain("retries", f"do not say {words!r}: {said}")
    check_store("after 6 failures", store, 4000)

    store = Store([otlp_store.hangs(8)])
    totals, said = push(path, "--to", store.url, "--progress", path_of("p2"), "--timeout", "5s")
    expect("a store that hangs", (totals["accepted_samples"], totals["unsure"]), (4000, 1))
    if "timed out" not in said or "profile_id" not in said:
        complain("a store that hangs", said)
    check_store("a store that hangs", store, 4000)

    # It has taken it, and nobody was told: the same profiles come again, and can be told by their ids.
    store = Store([otlp_store.takes_and_closes])
    totals, said = push(path, "--to", store.url, "--progress", path_of("p3"))
    expect("a lost answer", (totals["accepted_samples"], totals["unsure"], len(store.twice())), (4000, 1, 4))
    unique = {p["id"]: sum(len(s["times"]) for s in p["samples"]) for p in store.profiles}
    expect("samples by id", sum(unique.values()), 4000)
    store.close()

    store = Store([None, says(400, "bad labels"), otlp_store.partly])
    totals, said = push(path, "--to", store.url, "--progress", path_of("p4"), status=1)
    expect("400 and a partial success", (totals["rejected_samples"], totals["partly_samples"], totals["rejected_profiles"]),
           (1000, 1000, 1))
    if not re.search(r"moods\.fxt: rejected: a request of 1000 samples from 2026-01-30T10:00:15Z to \S+: HTTP 400: bad labels", said) or \
            not re.search(r"rejected: 1 of 4 profiles of a request of 1000 samples from \S+ to \S+: labels: too many", said):
        complain("400 and a partial success", said)
    expect("samples behind 400", store.sample_count(), 2000 + 750)
    store.close()
    store = Store()
    totals, said = push(path, "--to", store.url, "--progress", path_of("p4"), status=1)
    if "is about another recording or store" not in said:
        complain("another store", said)
    store.close()


def check_resume():
    """A run that ends within leaves the rest to the next, which sends nothing twice; a third has nothing to do."""
    path = make(path_of("resume.fxt"), 4000)
    store = Store([None, None, says(403, "no such tenant")])
    totals, said = push(path, "--to", store.url, status=1)
    expect("until it was refused", (totals["accepted_samples"], totals["unsent_samples"]), (2000, 2000))
    if "HTTP 403: no such tenant" not in said or "trying again" in said:
        complain("a refusal", said)
    store.script = [says(503)] * 50
    totals, said = push(path, "--to", store.url, "--patience", "1s", status=1)
    expect("without patience", (totals["accepted_samples"], totals["unsent_samples"]), (2000, 2000))
    store.script = []
    totals, said = push(path, "--to", store.url)
    expect("the rest", (totals["accepted_samples"], totals["requests"]), (4000, 2))
    if "2000 of 4000 samples were sent before; going on behind them" not in said:
        complain("the rest", said)
    totals, said = push(path, "--to", store.url)
    expect("once more", (totals["accepted_samples"], totals["requests"]), (4000, 0))
    with open(path, "ab") as file:
        shutil.copyfileobj(open(make(path_of("other.fxt"), 10, session="t"), "rb"), file)
    _, said = push(path, "--to", store.url, status=1)
    if "is about another recording" not in said:
        complain("a recording that has grown", said)
    with open(path + ".push", "w") as file:
        file.write("profctl push 1 position -1")
    _, said = push(path, "--to", store.url, status=1)
    if "is not what profctl push writes" not in said:
        complain("a damaged file of progress", said)
    check_store("in two runs", store, 4000)

    # Standard input goes on too, where the same bytes come again.
    path, store = make(path_of("piped.fxt"), 4000), Store([None, says(403, "no such tenant")])
    for status, accepted, requests in ((1, 1000, 2), (0, 4000, 3)):
        with open(path, "rb") as file:
            done = subprocess.run([PROFCTL, "push", "-", "--to", store.url, "--progress", path_of("piped"), "--json"], stdin=file,
                                  capture_output=True, text=True)
        totals = json.loads(done.stdout)
        expect("standard input in two runs", (done.returncode, totals["accepted_samples"], totals["requests"]),
               (status, accepted, requests))
    check_store("standard input in two runs", store, 4000)

    # SIGTERM ends it behind the request at hand.
    reached = threading.Event()

    def slow(handler, request):
        reached.set()
        time.sleep(1)
        return False

    path = make(path_of("stopped.fxt"), 4000)
    store = Store([slow])
    child = subprocess.Popen([PROFCTL, "push", path, "--to", store.url, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reached.wait()
    child.send_signal(signal.SIGTERM)
    totals = json.loads(child.communicate()[0])
    expect("SIGTERM", (child.returncode, totals["accepted_samples"]), (1, 1000))
    totals, _ = push(path, "--to", store.url)
    expect("after SIGTERM", totals["accepted_samples"], 4000)
    check_store("after SIGTERM", store, 4000)


def check_events():
    """Events beside the clock are sent too, in profiles of their own type; a run that ends within them goes on there."""
    count = 4000
    path = make(path_of("events.fxt"), count, events=True)
    wanted = {"samples": count, "page-faults": 100 * count, "off_cpu": sum(range(1000, 1000 + count)), "context-switches": count}
    for refused_at in (None, 0, 3, 6, 15):
        store = Store([] if refused_at is None else [None] * refused_at + [says(403, "no")])
        if refused_at is not None:
            totals, said = push(path, "--to", store.url, status=1)
            expect(f"refused at {refused_at}", (totals["samples"], totals["accepted_samples"]), (4 * count, refused_at * 1000))
        totals, said = push(path, "--to", store.url)
        expect(f"{refused_at}: samples", (totals["samples"], totals["accepted_samples"]), (4 * count, 4 * count))
        expect(f"{refused_at}: types", dict(store.totals()), wanted)
        expect(f"{refused_at}: said", f"{refused_at}000 of 16000 samples were sent before" in said, bool(refused_at))
        os.unlink(path + ".push")
        check_store(f"{refused_at}: events", store, 2 * count)  # the clock's and the switches' have times
    for event, name in (("page-faults", "page-faults"), ("off-cpu", "off_cpu"), ("cs", "context-switches")):
        report = subprocess.run([PROFCTL, "report", "--json", "-n", "0", "--event", event, path], capture_output=True, check=True).stdout
        expect(f"report --event {event}", sum(row["self"] for row in json.loads(report)["rows"]), wanted[name])

    # Of each event 4 windows of 250 samples for each of 4 services, in profiles of 100 at most.
    store = Store()
    folder = path_of("events")
    os.mkdir(folder)
    shutil.copy(path, folder)
    totals, _ = push("--folder", folder, "--to", store.url, "--labels", "thread", "--max-samples", "100")
    expect("a folder", (totals["accepted_samples"], dict(store.totals()), os.listdir(folder)), (4 * count, wanted, []))
    expect("profiles of 100 samples", len(store.profiles), 4 * 4 * 4 * 3)
    check_store("a folder of events", store, 2 * count)
    shutil.copy(path, folder)
    os.utime(os.path.join(folder, "events.fxt"), (1, 1))
    totals, said = push("--folder", folder, "--to", store.url)
    expect("given up", "events.fxt: given up: 16000 of 16000 samples were not sent" in said, True)

    # Standard input is read once.
    store = Store()
    with open(path, "rb") as file:
        done = subprocess.run([PROFCTL, "push", "-", "--to", store.url], stdin=file, capture_output=True, text=True)
    expect("standard input", (done.returncode, dict(store.totals())), (1, {"samples": count}))
    if "cannot be read twice, so samples of page-faults and other events are not sent; name a file" not in done.stderr:
        complain("standard input", done.stderr)
    check_store("standard input", store, count)

    # What is of no event that the session names is said, and no total has it.
    recording = Recording()
    recording.data(SESSION, {"session": "s", "created_boot_ns": "0", "created_realtime_ns": str(BEGAN), "config": {"sample_period_ns": PERIOD_NS},
                             "events": EVENTS[:2]})
    recording.stack(100, [0x10010])
    for number in (1, 2, 2):
        recording.event(100, number, 1, [0x10010])
    recording.write(MAKER, path_of("nameless.fxt"))
    store = Store()
    totals, said = push(path_of("nameless.fxt"), "--to", store.url, status=1)
    expect("nameless", (totals["samples"], totals["accepted_samples"], totals["unsent_samples"]), (4, 2, 2))
    if "2 samples are not sent: they are of no event that the recording names" not in said:
        complain("nameless", said)
    store.close()


def check_names():
    """Services of one name are different profiles, and so are the first requests of two files of one session."""
    recording = Recording()
    recording.data(SESSION, {"session": "s", "created_boot_ns": "0", "created_realtime_ns": str(BEGAN),
                             "config": {"sample_period_ns": PERIOD_NS}})
    for pid, owner in enumerate(({"unit": "dbus.service"}, {"unit": "user@7.service", "user_unit": "dbus.service"}, {"unit": "dbus"}), 1):
        recording.data(PROCESSES, {"pid": pid, "boot_ts_ns": "0", "uid": 7, **owner})
        recording.stack(pid, [0x10010])
    recording.write(MAKER, path_of("names.fxt"))
    recording.lines = [line for line in recording.lines if not line.startswith("stack")]
    for pid in (1, 2, 3):
        recording.stack(pid, [0x10010])
    recording.write(MAKER, path_of("later.fxt"))
    store = Store()
    push(path_of("names.fxt"), path_of("later.fxt"), "--to", store.url)
    expect("services of one name", [p["service"] for p in store.profiles], ["dbus"] * 6)
    check_store("services of one name", store, 6)


def check_limits():
    """Nothing is larger than the store's limits, and with smaller ones it is divided further; all arrives."""
    path = make(path_of("many.fxt"), 68000, seconds=16)  # 17,000 of a service in 16 s
    store = Store()
    totals, _ = push(path, "--to", store.url)
    expect("many samples", totals["accepted_samples"], 68000)
    check_store("many samples", store, 68000)

    distinct = lambda i: [0x10010 + (i * 7 + j * (1 + i // FUNCTIONS)) % FUNCTIONS * 0x100 + (i // FUNCTIONS + j) % 200 for j in range(500)]
    path = make(path_of("long.fxt"), 6000, seconds=10, stack=distinct)
    store = Store()
    totals, _ = push(path, "--to", store.url)
    if store.request_count < 2 or totals["message_bytes"] < 4 << 20:
        complain("long stacks", f"{totals['message_bytes']} bytes were no test of 4 MiB")
    check_store("long stacks", store, 6000)

    deep = [0x10010 + i % FUNCTIONS * 0x100 for i in range(510)]
    path = make(path_of("deep.fxt"), 8, stack=lambda i: deep, kernel=[0xffffffff80000010] * 510)
    store = Store()
    totals, _ = push(path, "--to", store.url)
    expect("deep stacks", totals["cut_stacks"], 8)
    frames = {tuple(s["frames"]) for p in store.profiles for s in p["samples"]}
    expect("frames", {(len(f), f[-1]) for f in frames}, {(1000, "[truncated]")})
    check_store("deep stacks", store, 8)

    def small(handler, request):
        count = sum(len(s["times"]) for p in request for s in p["samples"])
        return handler.answer(413, otlp_store.status("too large")) if count > 300 else False

    path = make(path_of("small.fxt"), 4000)
    store = Store(rule=small)
    totals, _ = push(path, "--to", store.url)
    expect("a store of small requests", totals["accepted_samples"], 4000)
    check_store("a store of small requests", store, 4000)
    # A run that ends within goes on in requests of that size: what is sent again has the same ids.
    store = Store([small, None, lambda handler, request: store.take(request) or child.kill() or time.sleep(1) or True], rule=small)
    child = subprocess.Popen([PROFCTL, "push", path, "--to", store.url, "--progress", path_of("p413")], stderr=subprocess.DEVNULL)
    child.wait()
    totals, _ = push(path, "--to", store.url, "--progress", path_of("p413"))
    unique = {p["id"]: sum(len(s["times"]) for s in p["samples"]) for p in store.profiles}
    expect("a store of small requests, in two runs", (totals["accepted_samples"], sum(unique.values()), len(store.twice()) > 0), (4000, 4000, True))
    store.close()
    store = Store(rule=says(413, "none"))
    totals, said = push(make(path_of("none.fxt"), 3), "--to", store.url, status=1)
    expect("a store of none", (totals["rejected_samples"], said.count("HTTP 413: none")), (3, 3))
    store.close()

    # An hour is as old as the store takes.
    def young(handler, request):
        last = max(t for p in request for s in p["samples"] for t in s["times"])
        return handler.answer(400, otlp_store.status("profile is too old")) if last < BEGAN + 30 * 10**9 else False

    store = Store(rule=young)
    totals, said = push(make(path_of("old.fxt"), 4000), "--to", store.url, status=1)
    expect("old samples", (totals["rejected_samples"], said.count("profile is too old")), (2000, 2))
    check_store("old samples", store, 2000)


def check_tls():
    path = make(path_of("tls.fxt"), 400)
    good, other = ([path_of(f"{name}cert.pem"), path_of(f"{name}key.pem")] for name in ("", "other_"))
    for certificate, options, words in ((good, [], "certificate"), (other, ["--ca", other[0]], "127.0.0.1"),
                                        (other, ["--ca", good[0]], "certificate")):
        store = Store(certificate=certificate)
        totals, said = push(path, "--to", store.url, *options, status=1)
        expect("a wrong certificate", (totals["accepted_samples"], store.request_count), (0, 0))
        if words not in said or "trying again" in said:
            complain("a wrong certificate", said)
        store.close()
    os.path.exists(path + ".push") and os.unlink(path + ".push")
    store = Store(certificate=good)
    push(path, "--to", store.url, "--ca", good[0])
    check_store("https", store, 400)


def check_secrets():
    """A header file is refused if others can read it; what is in it is nowhere else."""
    path = make(path_of("secret.fxt"), 400)
    headers = path_of("headers")
    with open(headers, "w") as file:
        file.write(f"# a comment\n\nAuthorization: Bearer {SECRET}\nX-Scope-OrgID: team\r\n")
    store = Store()
    for mode in (0o644, 0o640, 0o604, 0o660, 0o602):
        os.chmod(headers, mode)
        _, said = push(path, "--to", store.url, "--headers", headers, status=1)
        if f"has the mode {mode:04o}" not in said or SECRET in said:
            complain(f"mode {mode:o}", said)
    # systemd's access list for one user shows as the group's right.
    for mode, status in ((0o404, 1), (0o440, 0)):
        os.chmod(headers, mode)
        push(path, "--to", store.url, "--headers", headers, "--progress", path_of("pc"), status=status,
             environment={"CREDENTIALS_DIRECTORY": FOLDER})
    expect("requests with a credential", store.request_count, 4)
    store.request_count = 0
    store.seen_headers.clear()
    os.chmod(headers, 0o600)
    expect("requests before chmod", store.request_count, 0)
    for text, words in ((f"Authorization {SECRET}", "line 1 is no header"), (f"Host: {SECRET}", "line 1 is a header that profctl"),
                        (f"A: b\nX: \x01{SECRET}", "line 2 has a control"), ("X:", "line 1 has no value"),
                        (f"X: {SECRET}\0", "has a NUL"), ("X: y\n" * 65, "line 65 is one header too many"),
                        ("X: " + "y" * 40000, "is too long"), ("X: " + "y" * 5000, "line 1 is too long")):
        with open(path_of("wrong"), "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(text)
        _, said = push(path, "--to", store.url, "--headers", path_of("wrong"), status=1 if len(text) > 32768 else 2)
        if words not in said or SECRET in said:
            complain(f"headers {text[:20]!r}", said)

    echoes = lambda handler, request: handler.answer(401, otlp_store.status("you said " + handler.headers["Authorization"]))
    flood = lambda handler, request: handler.answer(401, ("x" * 190 + SECRET).encode(), kind="text/plain")
    seen = {}

    def looks(handler, request):
        pid = child.pid
        seen["cmdline"] = open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()
        seen["core"] = open(f"/proc/{pid}/limits").read()
        seen["dumpable"] = os.stat(f"/proc/{pid}/mem").st_uid
        return False

    for step, hidden in ((echoes, "[hidden]"), (flood, "x" * 190)):
        store.script = [step]
        _, said = push(path, "--to", store.url, "--headers", headers, "--progress", path_of("sp"), status=1)
        if any(part in said for part in (SECRET, SECRET[:8])) or hidden not in said:
            complain("an echo of credentials", said)
    # Many of them, which are cut within one.
    long_secret = "".join(chr(97 + i * i % 26) for i in range(3000))
    with open(path_of("long"), "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(f"Authorization: {long_secret}")
    for times in (3, 30):
        store.script = [lambda handler, request: handler.answer(401, (long_secret * times).encode(), kind="text/plain")]
        _, said = push(path, "--to", store.url, "--headers", path_of("long"), "--progress", path_of("sp2"), status=1)
        shown = said.split("HTTP 401", 1)[1].replace("[hidden]", "")
        if any(shown[i:i + 6] in long_secret for i in range(len(shown) - 6)):
            complain("an echo that is cut", said)
    store.script = [looks]
    child = subprocess.Popen([PROFCTL, "push", path, "--to", store.url, "--headers", headers, "--raw", FOLDER],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = b"".join(child.communicate())
    expect("with headers", child.returncode, 0)
    expect("the headers", [(h.get("Authorization"), h.get("X-Scope-OrgID")) for h in store.seen_headers[-1:]],
           [(f"Bearer {SECRET}", "team")])
    if SECRET.encode() in said + seen["cmdline"] or not re.search(r"Max core file size +0 +0 ", seen["core"]):
        complain("credentials", "are where others may look")
    expect("the owner of its memory", seen["dumpable"], 0)
    for root, _, names in os.walk(FOLDER):
        for name in names:
            file = os.path.join(root, name)
            if os.path.isfile(file) and file not in (headers, path_of("wrong"), path_of("long")) and SECRET.encode() in open(file, "rb").read():
                complain("credentials", f"are in {file}")
    # An address with a password is refused, and not repeated; no redirection takes headers elsewhere.
    for option in ("--to", "--proxy"):
        arguments = [option, f"http://user:{SECRET}@127.0.0.1/"] + (["--to", store.url] if option == "--proxy" else [])
        _, said = push(path, *arguments, status=2)
        if SECRET in said or "has a user in it" not in said:
            complain(f"{option} with a password", said)
    elsewhere = Store()
    store.script = [lambda handler, request: handler.answer(307, Location=elsewhere.url + "/v1development/profiles")]
    _, said = push(path, "--to", store.url, "--headers", headers, "--progress", path_of("p5"), status=1)
    if "HTTP 307" not in said or elsewhere.request_count:
        complain("a redirection", said)
    elsewhere.close()
    # What is no store is not taken for one.
    for body, kind in ((b"<html>welcome</html>", "text/html"), (b"", "text/html"), (b'{"error":"no such route"}', "application/json")):
        store.script = [lambda handler, request: handler.answer(200, body, kind=kind)]
        totals, said = push(path, "--to", store.url, "--progress", path_of("p6"), status=1)
        if "the answer is not one of OTLP" not in said or totals["accepted_samples"]:
            complain(f"a page {body}", said)
    store.script = [lambda handler, request: handler.answer(
        200, b'{"partialSuccess":{"rejectedProfiles":"1","errorMessage":"no \\u001b[31m"}}', kind="application/json")]
    totals, said = push(path, "--to", store.url, "--progress", path_of("p7"), status=1)
    if totals["partly_samples"] != 400 // 4 or "\x1b" in said or "no ?[31m" not in said:
        complain("a partial success in JSON", f"{totals} {said!r}")
    store.close()


def check_proxy():
    """A request goes through a proxy: its line has the whole address."""
    path = make(path_of("proxy.fxt"), 40, seconds=1)
    store = Store()
    lines = []

    def serve(listener):
        while True:
            connection, _ = listener.accept()
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536)
            lines.append(head.split(b"\r\n")[0].decode())
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.close()

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    proxy = "http://127.0.0.1:%d" % listener.getsockname()[1]
    push(path, "--to", "http://store.invalid", "--proxy", proxy, "--progress", path_of("pp1"))
    push(path, "--to", "http://store.invalid/api/x", "--progress", path_of("pp2"), environment={"http_proxy": proxy})
    expect("the proxy's requests", lines, ["POST http://store.invalid/v1development/profiles HTTP/1.1",
                                           "POST http://store.invalid/api/x HTTP/1.1"])
    store.close()
    listener.close()


def day(folder, hours=24, samples=500):
    """A folder of a day's recordings, as a schedule leaves them."""
    os.makedirs(folder)
    for hour in range(hours):
        make(os.path.join(folder, "web-20260130T%02d0000Z.fxt.gz" % hour), samples, session="hour%d" % hour,
             began=BEGAN + hour * 3600 * 10**9)
    return folder


def check_folder():
    """A day in fast motion: the store comes and goes; all arrives once, raw copies are there, and the folder is empty."""
    folder, raw = day(path_of("day")), path_of("bucket")
    os.mkdir(raw)
    originals = {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}
    moods = [None, says(503), otlp_store.closes, None, says(429, "slow", Retry_After="1"), None, says(502)]
    store = Store(moods * 3)
    totals, said = push("--folder", folder, "--to", store.url, "--raw", raw)
    expect("a day", (totals["recordings"], totals["accepted_samples"], os.listdir(folder)), (24, 12000, []))
    expect("raw copies", {name: open(os.path.join(raw, "web1", name), "rb").read() for name in os.listdir(os.path.join(raw, "web1"))},
           originals)
    check_store("a day", store, 12000)

    # The process dies within: the next one goes on.
    folder = day(path_of("killed"), 6, 2000)
    reached = threading.Event()

    def reach(handler, request):
        reached.set()
        time.sleep(2)
        handler.close_connection = True
        return True

    store = Store([None] * 6 + [reach])
    child = subprocess.Popen([PROFCTL, "push", "--folder", folder, "--to", store.url], stdout=subprocess.DEVNULL)
    reached.wait()
    child.kill()
    child.wait()
    totals, said = push("--folder", folder, "--to", store.url)
    expect("after SIGKILL", (store.sample_count(), store.twice(), os.listdir(folder)), (12000, [], []))
    store.close()

    # The store is away: what has no room is given up, the oldest first, by name and number; the rest is sent in the end.
    folder = day(path_of("away"), 12)
    sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}
    port = socket.create_server(("127.0.0.1", 0))
    number = port.getsockname()[1]
    port.close()
    keep = sum(list(sizes.values())[5:]) + 100
    child = subprocess.Popen([PROFCTL, "push", "--folder", folder, "--to", f"http://127.0.0.1:{number}", "--keep-bytes", str(keep),
                              "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(os.listdir(folder)) > 8:
        time.sleep(0.05)
    os.rename(make(path_of("late.fxt.gz"), 500, session="late"), os.path.join(folder, "web-20260131T000000Z.fxt.gz"))
    while os.path.exists(os.path.join(folder, list(sizes)[5])):
        time.sleep(0.05)
    store = Store(port=number)
    out, said = child.communicate(timeout=120)
    totals = json.loads(out)
    given = re.findall(r"([\w.-]+): given up: 500 of 500 samples were not sent: \d+ bytes of recordings wait, and (\d+) may; "
                       r"(\d+) recordings with (\d+) samples", said)
    expect("given up", (totals["given_up_recordings"], totals["given_up_samples"], child.returncode), (6, 3000, 0))
    expect("their names", [(name, int(count)) for name, _, count, _ in given], [(name, i + 1) for i, name in enumerate(list(sizes)[:6])])
    tries = [re.sub("[0-9]", "", line) for line in said.splitlines() if "trying again" in line]
    if not tries or any(line == before for before, line in zip(tries, tries[1:])):
        complain("a port without a store", f"is said again and again: {tries}")
    check_store("a store that came back", store, 7 * 500)

    # Too old, not a recording, and files that are none of its business.
    folder = day(path_of("odd"), 3)
    names = sorted(os.listdir(folder))
    os.utime(os.path.join(folder, names[0]), (1, 1))
    for name, content in (("0bad.fxt", b"no recording"), ("notes.txt", b"x"), (".hidden.fxt", b"x"), ("gone.fxt.push", b"x")):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    os.utime(os.path.join(folder, "0bad.fxt"), (time.time() - 601,) * 2)
    store = Store()
    totals, said = push("--folder", folder, "--to", store.url, "--keep-age", "1d")
    expect("odd files", (totals["given_up_recordings"], totals["given_up_samples"], sorted(os.listdir(folder))),
           (2, 500, [".hidden.fxt", "notes.txt"]))
    if f"{names[0]}: given up: 500 of 500 samples were not sent: it is older than 86400 s" not in said:
        complain("an old recording", said)
    check_store("odd files", store, 1000)


def check_folder_faults():
    """What fails by itself keeps no other waiting; a sum is made once; a refusal ends the run, and so does SIGTERM."""
    folder, raw = day(path_of("faults"), 4), path_of("no_bucket")
    names = sorted(os.listdir(folder))
    for name, content in ((names[0], bytes(1024)), (names[1], b"profctl push 2 position 9 accepted")):
        with open(os.path.join(folder, name + ".push"), "wb") as file:
            file.write(content)
    os.mkdir(os.path.join(folder, "folder.fxt"))
    os.mkfifo(os.path.join(folder, "pipe.fxt"))
    store = Store()
    os.utime(os.path.join(folder, "pipe.fxt"), (1, 1))  # older than anything is kept
    totals, said = push("--folder", folder, "--to", store.url, timeout=60)
    expect("damaged files of progress", (totals["accepted_samples"], totals["samples"], sorted(os.listdir(folder))),
           (2000, 2000, ["folder.fxt", "pipe.fxt"]))
    expect("what is said of them", said.count("has a file of what was sent that says nothing; it is sent from its beginning"), 2)
    check_store("damaged files of progress", store, 2000)

    # The bucket is away: all is sent once, and leaves when it is back.
    folder, store = day(path_of("uncopied"), 3), Store()
    child = subprocess.Popen([PROFCTL, "push", "--folder", folder, "--to", store.url, "--raw", raw, "--json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while store.sample_count() < 1500:
        time.sleep(0.05)
    time.sleep(1)
    expect("without a bucket", len([name for name in os.listdir(folder) if name.endswith(".gz")]), 3)
    os.mkdir(raw)
    out, said = child.communicate(timeout=60)
    totals = json.loads(out)
    expect("with it", (totals["samples"], totals["accepted_samples"], totals["recordings"], os.listdir(folder)), (1500, 1500, 3, []))
    expect("no folder", said.count("no folder can be made there"), 1)
    check_store("a bucket that came later", store, 1500)

    # One that the sender may not read is no broken one, and stays.
    folder, store = day(path_of("unreadable"), 2), Store()
    first, second = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    if os.geteuid() == 0:
        os.chmod(first, 0o600)
        os.chown(folder, 65534, 65534)
        os.chmod(FOLDER, 0o755)
        child = subprocess.Popen([PROFCTL, "push", "--folder", folder, "--to", store.url, "--json"], user=65534, group=65534,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while os.path.exists(second):
            time.sleep(0.05)
        time.sleep(1)
        child.send_signal(signal.SIGTERM)
        out, said = child.communicate()
        totals = json.loads(out)
        expect("unreadable", (child.returncode, totals["accepted_samples"], totals["given_up_recordings"], os.path.exists(first)),
               (-signal.SIGTERM, 500, 0, True))
        expect("unreadable: said", (said.count("Permission denied"), "given up" in said), (1, False))
    check_store("unreadable", store, 500 if os.geteuid() == 0 else 0)

    # Another recording comes under the name of one that is sent, of the same size: it is sent too, and copied.
    folder, store = day(path_of("replaced"), 1), Store()
    name = os.listdir(folder)[0]
    other = make(path_of("replacement.fxt.gz"), 500, session="hour9", began=BEGAN + 9 * 3600 * 10**9)

    def replace(handler, request):
        os.rename(other, os.path.join(folder, name))
        return False

    store.script = [replace]
    totals, said = push("--folder", folder, "--to", store.url)
    expect("replaced", (totals["accepted_samples"], os.listdir(folder), len(store.twice())), (500, [], 0))
    expect("both", sorted({p["time_ns"] // 10**9 // 3600 - BEGAN // 10**9 // 3600 for p in store.profiles}), [0, 9])
    check_store("replaced", store, 1000)
    store = Store()
    os.mkdir(path_of("copies"))
    for session, status, words in (("a", 0, ""), ("a", 0, ""), ("b", 1, "there is another file of that name")):
        path = make(path_of("copied.fxt"), 500, session=session)
        _, said = push(path, "--raw", path_of("copies"), status=status)
        expect(f"a copy of {session}", words in said, True)
    store.close()

    # One that is being written is sent when it is whole; what stays cut is sent as far as it goes.
    folder, store = day(path_of("growing"), 2), Store()
    slow, other = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    whole = gzip.decompress(open(slow, "rb").read())
    os.unlink(slow)
    slow = slow[:-3]
    cut = os.path.join(folder, "cut.fxt")
    for path, content in ((slow, whole), (cut, open(make(path_of("to_cut.fxt"), 500, session="cut"), "rb").read())):
        with open(path, "wb") as file:
            file.write(content[:len(content) // 2 + 3])
    os.utime(cut, (time.time() + 3600,) * 2)  # of a clock that was wrong: it is not being written
    child = subprocess.Popen([PROFCTL, "push", "--folder", folder, "--to", store.url, "--json"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    while os.path.exists(other) or os.path.exists(cut):
        time.sleep(0.05)
    time.sleep(1)
    expect("what is being written", os.listdir(folder), [os.path.basename(slow)])
    with open(slow, "ab") as file:
        file.write(whole[len(whole) // 2 + 3:])
    out, said = child.communicate(timeout=60)
    totals = json.loads(out)
    expect("when it is whole", (totals["recordings"], os.listdir(folder)), (3, []))
    expect("its samples", totals["accepted_samples"] > 1000, True)
    expect("what is said of it", (said.count("is not whole; it is left until it is"), said.count("cut.fxt is not whole; sending")), (1, 1))
    check_store("what is being written", store, totals["accepted_samples"])

    folder, store = day(path_of("refused"), 3), Store([None, None, says(403, "no such tenant")])
    totals, said = push("--folder", folder, "--to", store.url, "--max-samples", "50", status=1)
    expect("refused", (totals["accepted_samples"], totals["samples"], store.request_count), (250, 500, 3))
    expect("refused: said", said.count("HTTP 403: no such tenant"), 1)
    totals, _ = push("--folder", folder, "--to", store.url, "--max-samples", "50")
    expect("let in", (totals["accepted_samples"], os.listdir(folder)), (1500, []))
    check_store("refused, then let in", store, 1500)

    # Where it cannot be noted what was sent, nothing is.
    def no_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    store = Store()
    done = subprocess.run([PROFCTL, "push", make(path_of("unnoted.fxt"), 10), "--to", store.url], capture_output=True, text=True, preexec_fn=no_files)
    expect("a full disk", (done.returncode, store.request_count), (1, 0))
    if "unnoted.fxt.push cannot be written: File too large" not in done.stderr:
        complain("a full disk", done.stderr)
    store.close()

    # Two senders of one folder: each request is sent by one of them.
    folder, store = day(path_of("shared"), 12), Store(rule=lambda handler, request: time.sleep(0.02))
    senders = [subprocess.Popen([PROFCTL, "push", "--folder", folder, "--to", store.url, "--json"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL) for _ in range(2)]
    sums = [json.loads(sender.communicate(timeout=60)[0])["accepted_samples"] for sender in senders]
    expect("two senders", (sum(sums), os.listdir(folder)), (6000, []))
    check_store("two senders", store, 6000)


def check_usage():
    path = make(path_of("usage.fxt"), 4)
    for arguments, words in ((["--to", "http://127.0.0.1:1"], "name recordings"), ([path], "name the store's address with --to"),
                             ([path, "--folder", FOLDER, "--to", "http://h"], "name recordings, or with"),
                             ([path, "--to", "ftp://h"], "is no address of http"), ([path, "--to", "http://"], "is no address"),
                             ([path, "--to", "http://h/a b"], "has a space"), ([path, "--to", "http://h", "--window", "2h"], "1s to 1h"),
                             ([path, path, "--to", "http://h", "--progress", "x"], "--progress takes one recording"),
                             ([path, "--to", "http://h", "--max-bytes", "4X"], "no number of bytes"),
                             ([path, "--to", "http://h", "--max-bytes", "2G"], "no number of bytes up to 1G"),
                             ([path, "--to", "http://h", "--timeout", "30d"], "no time from 1s to 1d")):
        _, said = push(*arguments, status=2)
        if words not in said or said.count('"usage":"') != 1:
            complain(f"{arguments}", said)
    recording = Recording()
    recording.sample(1, 0x10)
    recording.write(MAKER, path_of("timeless.fxt"))
    _, said = push(path_of("timeless.fxt"), "--to", "http://127.0.0.1:1", status=1)
    if "does not say what time it was" not in said:
        complain("a recording without a clock", said)
    totals, _ = push(path, "--raw", FOLDER)
    expect("a copy alone", (totals["copied_bytes"], totals["recordings"]), (os.path.getsize(path), 1))
    with open(path_of("web1/usage.fxt"), "ab") as file:
        file.write(b"x")
    _, said = push(path, "--raw", FOLDER, status=1)
    if "there is another file of that name" not in said:
        complain("a copy over another file", said)


faulthandler.dump_traceback_later(200, exit=True)  # where it hangs, before ctest ends it
for check in (check_plain, check_moods, check_resume, check_events, check_names, check_limits, check_tls, check_secrets, check_proxy,
              check_folder, check_folder_faults, check_usage):
    began = time.monotonic()
    check()
    print(f"{check.__name__}: {time.monotonic() - began:.1f} s", flush=True)
sys.exit(failures > 0)
