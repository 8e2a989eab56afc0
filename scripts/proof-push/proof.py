# SPDX-License-Identifier: Apache-2.0
"""What proof-push.sh says of a recording: proof.py PROFCTL NODE_MODULES FOLDER MACHINES, where FOLDER has a.fxt.gz."""
import concurrent.futures, gzip, json, os, re, resource, subprocess, sys, time

PROFCTL, MODULES, FOLDER, MACHINES = sys.argv[1:4] + [int(sys.argv[4])]
HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(HERE, "../../tests/system/export_otlp.proto")
failures = 0


def expect(what, found, wanted):
    global failures
    print(f"{'ok  ' if found == wanted else 'FAIL'} {what}: {found}" + ("" if found == wanted else f", not {wanted}"))
    failures += found != wanted


class Store:
    def __init__(self, rate=10**12, burst=10**12, oldest=0):
        self.child = subprocess.Popen(["node", os.path.join(HERE, "store.mjs"), MODULES, PROTO, "0", str(rate), str(burst), str(oldest)],
                                      stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.child.stdout.readline())}"

    def end(self):
        self.child.terminate()
        return json.loads(self.child.communicate()[0])


def profctl(*arguments):
    return subprocess.run([PROFCTL, *arguments], capture_output=True, text=True)


def check_one(path):
    report = json.loads(profctl("report", "--json", "-n", "0", path).stdout)
    wanted = {}
    for row in report["rows"]:
        if row["self"]:
            wanted[row["name"]] = wanted.get(row["name"], 0) + row["self"]
    store = Store()
    done = profctl("push", path, "--to", store.url, "--json")
    taken = store.end()
    totals = json.loads(done.stdout)
    expect("samples that protobufjs reads", taken["samples"], report["samples"])
    expect("functions with other counts", sum(taken["functions"].get(name) != n for name, n in wanted.items()), 0)
    expect("bytes sent", totals["body_bytes"], taken["wire_bytes"])
    print(f"     {totals['requests']} requests, {totals['message_bytes']} bytes, {totals['body_bytes']} compressed; "
          f"recording {os.path.getsize(path)} bytes; {len(taken['services'])} services")
    # Slow, and choosy: 429 with Retry-After, and profiles that are too old.
    os.unlink(path + ".push")
    store = Store(rate=totals["body_bytes"] // 3, burst=totals["body_bytes"])
    done = profctl("push", path, "--to", store.url, "--json")
    taken = store.end()
    expect("samples after 429", (taken["samples"], json.loads(done.stdout)["accepted_samples"], taken["twice"]),
           (report["samples"], report["samples"], 0))
    print(f"     {taken['refused_429']} times 429 with Retry-After")
    os.unlink(path + ".push")
    store = Store(oldest=int(time.time() * 1000) + 10**9)
    done = profctl("push", path, "--to", store.url, "--json")
    taken, totals = store.end(), json.loads(done.stdout)
    expect("samples too old, rejected by name", (taken["rejected"].get("profile is too old"), totals["partly_samples"],
                                               "profile is too old" in done.stderr), (report["samples"], report["samples"], True))
    os.unlink(path + ".push")
    return report


def check_sql(path, report):
    rows = os.path.join(FOLDER, "rows.ndjson")
    profctl("export", path, "--format", "ndjson", "-o", rows)
    done = subprocess.run(["node", os.path.join(HERE, "sql.mjs"), MODULES, rows, os.path.join(HERE, "queries.sql")],
                          capture_output=True, text=True)
    print(done.stdout, done.stderr[-2000:])
    expect("SQL's total", re.findall(r"│ +(\d+) │\n +└─", done.stdout)[-1:], [str(report["samples"])])
    top = [row for row in report["rows"] if row["self"]][0]
    expect("SQL's first function", f"{top['name']} " in done.stdout or top["name"] in done.stdout, True)


def check_fleet(path, report):
    content = gzip.decompress(open(path, "rb").read())
    session = re.search(rb'"session":"([0-9a-f]{16})"', content)[1]
    wall = re.search(rb'"created_realtime_ns":"(\d{19})"', content)[1]
    store = Store()

    def machine(number):
        folder = os.path.join(FOLDER, f"machine{number:03}")
        os.makedirs(folder)
        host = b"machine%03d" % number
        for hour in range(24):
            changed = content.replace(b"machine000", host).replace(session, b"%016x" % (number * 24 + hour + 1))
            changed = changed.replace(wall, b"%d" % (int(wall) + hour * 3600 * 10**9))
            with gzip.open(os.path.join(folder, f"web-{hour:02}.fxt.gz"), "wb", 1) as file:
                file.write(changed)
        before = time.monotonic()
        child = subprocess.Popen([PROFCTL, "push", "--folder", folder, "--to", store.url, "--json"], stdout=subprocess.PIPE, text=True)
        totals = json.loads(child.stdout.read())
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0 and not os.listdir(folder)
        return totals, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, time.monotonic() - before

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(machine, range(MACHINES)))
    seconds = time.monotonic() - began
    taken = store.end()
    wanted = report["samples"] * 24 * MACHINES
    expect("samples of the fleet", (taken["samples"], sum(d[0]["accepted_samples"] for d in done), taken["twice"]), (wanted, wanted, 0))
    expect("hosts", (len(taken["hosts"]), set(taken["hosts"].values())), (MACHINES, {report["samples"] * 24}))
    day = [sum(d[0][name] for d in done) / MACHINES for name in ("body_bytes", "message_bytes", "requests")]
    print(f"     a machine and day: {day[0] / 1e3:.0f} kB sent ({day[1] / 1e3:.0f} kB before compression) in {day[2]:.0f} requests, "
          f"{report['samples'] * 24} samples; CPU {sum(d[1] for d in done) / MACHINES:.2f} s, memory at most {max(d[2] for d in done) / 1024:.0f} MiB")
    print(f"     all: {sum(d[0]['body_bytes'] for d in done) / 1e6:.1f} MB, {taken['requests']} requests, {taken['profiles']} profiles, "
          f"{seconds:.0f} s of the clock with 2 senders at a time; load {os.getloadavg()[0]:.1f}")


recording = os.path.join(FOLDER, "a.fxt.gz")
result = check_one(recording)
check_sql(recording, result)
check_fleet(recording, result)
sys.exit(failures > 0)
