# SPDX-License-Identifier: Apache-2.0
"""What flamegraph.sh says: flamegraph.py PROFCTL MAKER FOLDER."""
import collections, json, os, re, subprocess, sys, xml.etree.ElementTree
from chromium import Browser, Page, SHIFT
from recording_maker import BOOKS, PROCESSES, Recording, SESSION, SYMBOLS

EVIL = "</script><img src=x onerror=alert(1)>"
FUNCTIONS = ["_start", "main", "parse", "burst", "render", EVIL, "a<b>&amp;\"c"]
KERNEL = 1 << 63
TIMES = 40  # seconds
failures = 0


def expect(is_so, text):
    global failures
    if not is_so:
        failures += 1
        print(f"FAIL: {text}")


def expect_same(what, found, expected):
    expect(found == expected, f"{what}: {found!r}, not {expected!r}")


def address(name):
    return 0x10000 + 0x100 * FUNCTIONS.index(name) + 8


def begin(path, build_id):
    recording = Recording()
    for pid, tid, name in ((100, 0, "app"), (100, 100, "app"), (100, 101, "worker"), (200, 0, EVIL), (200, 200, EVIL)):
        recording.name(pid, tid, name)
    for pid in (100, 200):
        recording.module(pid, 1, path, build_id, 0x10000, 0x10000)
    recording.module(0, 9, "[kernel]", None, KERNEL, KERNEL, KERNEL)
    recording.data(SYMBOLS, *({"build_id": build_id, "module": path, "start": hex(0x100 * place), "size": 256, "name": name}
                              for place, name in enumerate(FUNCTIONS)),
                   {"build_id": "", "module": "[kernel]", "start": "0xffffffff81000000", "size": 4096, "name": "do_read"})
    recording.data(PROCESSES, {"pid": 100, "boot_ts_ns": 0, "cgroup": "/system.slice/app.service", "unit": "app.service"})
    return recording


def stacks_of(number, second, is_later):
    """The functions of sample `number`, outermost first, and whether the kernel is on top."""
    if second == 20:
        return ["_start", "main", "burst"], False
    if number % 5 == 4:
        return ["_start", EVIL], False
    if number % 7 == 3:
        return ["_start", "main", "parse", "a<b>&amp;\"c"], False
    if number % 11 == 5 and is_later:
        return ["_start", "main", "render", "burst"], False
    return ["_start", "main", "render"], number % 3 == 0


def make(maker, path, is_later=False, is_whole=False):
    """40 seconds with 500 samples each, on two CPUs, not at regular times: of the ten in a cell of the heat map the first is
    where it begins, and the last a nanosecond before it ends. What is later is another build, in another folder."""
    recording = begin(*(("/home/v2/app", "0badcafe01") if is_later else ("/opt/app", "0badcafe00")))
    if is_whole:
        recording.data(SESSION, {"session": "a", "host": "web1", "kernel": "6.1", "created_boot_ns": str(10**12),
                                 "created_realtime_ns": "1764133455000000000", "config": {}})
    for number in range(TIMES * 500):
        second = number // 500
        stack, is_kernel = stacks_of(number, second, is_later)
        pid = 200 if EVIL in stack else 100
        late_ns = {0: 0, 9: 1_999_999}.get(number % 10, (number * 7919) % 1_900_001)
        recording.time_ns = 10**12 - 1000 + number * 2_000_000 + late_ns
        recording.stack(pid, [address(name) for name in reversed(stack)], [0xffffffff81000008] if is_kernel else None,
                        tid=101 if pid == 100 and number % 4 == 0 else pid, cpu=number % 2, quality=2 if number % 100 == 99 else 1)
    recording.drops(1, 10**12 + 5 * 10**9, 10**12 + 6 * 10**9, 77)
    expected = 21077 if is_later else 40077
    total = {"expected": expected, "received": 20107, "lost": 0, "throttled": 0, "missed": 500, "idle": expected - 20607,
             "unexplained": 0, "kept": 20000, "filtered": 30, "dropped": 77}
    recording.data(BOOKS, {"period_ns": 2000000, "cpus": [{"cpu": cpu, "expected": 20000} for cpu in range(3)], "total": total})
    recording.write(maker, path)


class Flames:
    """The page, and what a person sees and does there."""

    def __init__(self, browser, path):
        self.page = Page(browser)
        self.url = f"file://{path}"

    def open(self, fragment=""):
        """Waits until it is painted too: before that Chromium takes no input."""
        self.page.open(self.url + fragment)
        self.page.evaluate("""new Promise((done) => {
            const look = () => requestAnimationFrame(() => (app.view === null ? look() : requestAnimationFrame(done)));
            look();
        })""")

    def text(self, name):
        return self.page.evaluate(f"document.getElementById({json.dumps(name)}).textContent")

    def fragment(self):
        return self.page.evaluate("location.hash")

    def find(self, name):
        """The middle of the widest frame of that name."""
        return self.page.evaluate("""((name) => {
            const frames = graph.rows.flat().filter((at) => describeNode(app.model, app.view, at.node).name === name);
            const frame = frames.sort((a, b) => b.width - a.width)[0];
            const box = document.getElementById("flame").getBoundingClientRect();
            return frame && [box.left + frame.x + frame.width / 2,
                box.top + graph.rowTop(app.view.depths[frame.node]) - graph.scroll.scrollTop + 9];
        })(%s)""" % json.dumps(name))

    def click(self, name):
        place = self.find(name)
        expect(place is not None, f"no frame {name} is drawn")
        if place:
            self.page.click(*place)

    def press_button(self, name):
        self.page.click(*self.page.evaluate(f"""(() => {{
            const box = document.getElementById({json.dumps(name)}).getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }})()"""))

    def cell(self, cell):
        """The middle of a cell of the heat map."""
        return self.page.evaluate(f"""(() => {{
            const box = document.getElementById("heat").getBoundingClientRect();
            const [column, row] = [Math.floor({cell} / heat.rows), {cell} % heat.rows];
            return [box.left + (column + 0.5) * heat.width / heat.columns, box.top + heat.height - (row + 0.5) * heat.height / heat.rows];
        }})()""")

    def search(self, text):
        """Types a text into the search, and returns how many samples it finds."""
        self.page.evaluate("document.getElementById('search').select()")
        self.press_button("search")
        self.page.evaluate("document.getElementById('search').select()")
        self.page.send("Input.insertText", text=text)
        return first_number(self.text("matched"))


def first_number(text):
    found = re.search(r"([\d,]+) samples?", text)
    return int(found[1].replace(",", "")) if found else None


def report(profctl, path, *options):
    done = subprocess.run([profctl, "report", path, "--json", "-n", "0", *options], capture_output=True, check=True)
    return json.loads(done.stdout)


def totals_of(rows):
    totals = collections.Counter()
    for row in rows["rows"]:
        totals[row["name"]] += row["total"]
    return totals


def expression(name):
    return "/^" + re.sub(r"[/\\^$.*+?()\[\]{}|]", lambda sign: "\\" + sign[0], name) + "$/"


def judge_counts(flames, profctl, path, *options):
    """Each function counts in the page what it counts in the report."""
    rows = report(profctl, path, *options)
    totals = totals_of(rows)
    expect(len(totals) >= 2, f"{options}: only {totals} are judged")
    for name, total in totals.items():
        expect_same(f"{options}: {name}", flames.search(expression(name)), total)
    flames.search("x" if flames.text("matched") == "" else "")
    flames.search("")
    expect_same(f"{options}: all", first_number(flames.text("range_text")), rows["samples"])


def judge_zoom(flames, profctl, path):
    flames.open()
    totals = totals_of(report(profctl, path))
    app = report(profctl, path, "--comm", "app")
    expect("20,000 samples" in flames.text("facts"), f"says {flames.text('facts')}")
    expect(flames.text("cells").startswith("A column is 1 s; its 50 rows are the 50 times 20 ms of that, from below upward;"),
           f"says of cells {flames.text('cells')}")
    kinds = ["user", "kernel", "inlined", "not known", "first frame", "found"]
    expect(all(kind in flames.text("legend") for kind in kinds), f"the legend is {flames.text('legend')}")
    expect("Of 40,077 ticks of the timer 20,000 have a sample in the recording; the others: 30 filtered "
           "(other programs, and the profiler itself), 77 dropped, 500 missed, 19,470 idle"
           in flames.text("warnings"), f"says of the ticks {flames.text('warnings')}")
    expect("77 samples found the buffer full: at 5" in flames.text("warnings"),
           f"warns of {flames.text('warnings')}")
    flames.click("parse")
    expect("zoom=" in flames.fragment(), f"a click zooms not: {flames.fragment()}")
    expect_same("the zoom", first_number(flames.text("details")), totals["parse"])
    share = 100 * totals["parse"] / 20000
    expect(f"100.00 % of the zoom · {share:.2f} % of the whole" in flames.text("details"), f"says {flames.text('details')}")
    flames.page.evaluate("history.back()")
    flames.page.evaluate("new Promise((done) => setTimeout(done, 50))")
    expect_same("back", flames.fragment(), "")
    flames.click("app")
    expect_same("the command", first_number(flames.text("details")), app["samples"])
    flames.press_button("unzoom")
    place = flames.find("render")
    flames.page.mouse("mouseMoved", *place)
    expect(flames.text("details").startswith("render (/opt/app)"), f"hovers {flames.text('details')}")
    expect_same("the hover", first_number(flames.text("details")), flames.page.evaluate(
        "app.totals[0][app.hovered]"))


def judge_range(flames, profctl, path):
    """A range of the heat map filters to the sample, and its address says which it is."""
    flames.open()
    for first, last in ((20 * 50 + 3, 21 * 50 + 17), (7, 7), (1999, 1500), (100, 1888)):
        flames.page.drag(flames.cell(first), flames.cell(last))
        range_of = re.search(r"range=([\d.]+)-([\d.]+)", flames.fragment())
        low, high = min(first, last) * 0.02, (max(first, last) + 1) * 0.02
        expect(range_of is not None and abs(float(range_of[1]) - low) < 1e-9 and abs(float(range_of[2]) - high) < 1e-9,
               f"cells {first} to {last} are {flames.fragment()}")
        if range_of:
            judge_counts(flames, profctl, path, "--from", range_of[1], "--to", range_of[2])
    flames.press_button("whole")
    expect_same("the whole again", first_number(flames.text("range_text")), 20000)
    judge_counts(flames, profctl, path)


def judge_permalink(flames):
    flames.open("#by=thread&view=icicle&range=19.5-22.25&search=burst&theme=dark")
    flames.click("main")
    seen = [flames.text(name) for name in ("details", "range_text", "matched")]
    link = flames.fragment()
    expect("zoom=" in link and "by=thread" in link and "range=19.5-22.25" in link, f"the link is {link}")
    flames.open(link)
    expect_same("the link shows", [flames.text(name) for name in ("details", "range_text", "matched")], seen)
    expect_same("the link's theme", flames.page.evaluate("document.documentElement.dataset.theme"), "dark")
    flames.open("#by=thread")
    expect(flames.find("worker-100/101") is not None, "no thread is a first frame")
    for fragment in ("#zoom=99999999&range=9-1&by=evil&shown=7", "#zoom=-1&range=x", "#%%%"):
        flames.open(fragment)
        expect_same(f"{fragment} shows", first_number(flames.text("range_text")), 20000)


def judge_views(flames, profctl, path):
    for by, options in (("unit", ["unit"]), ("command", ["command"]), ("process", ["process"]), ("thread", ["thread"])):
        flames.open(f"#by={by}")
        expected = sorted(row["total"] for row in report(profctl, path, "--by", *options)["rows"])
        found = flames.page.evaluate("[...childrenOf(app.model, app.view, 0)].map((node) => app.totals[0][node])")
        expect_same(f"by {by}", sorted(found), expected)


def judge_keys(flames, profctl, path):
    """The same without a mouse."""
    page = flames.page
    flames.open()
    page.press("Tab")
    expect_same("Tab leads to", page.evaluate("document.activeElement.id"), "heat")
    page.press("ArrowRight")
    page.press("ArrowUp")
    page.press("ArrowUp", SHIFT)
    expect_same("the keys' range", flames.fragment(), "#range=1.02-1.06")
    expect_same("its samples", first_number(flames.text("range_text")),
                report(profctl, path, "--from", "1.02", "--to", "1.06")["samples"])
    page.press("Escape")
    expect_same("after Escape", flames.fragment(), "")
    page.press("/")
    page.type("burst")
    expect_same("the keys' search", first_number(flames.text("matched")), totals_of(report(profctl, path))["burst"])
    for _ in range(12):
        page.press("Tab")
        if page.evaluate("document.activeElement.id") == "flame":
            break
    expect_same("Tabs lead to", page.evaluate("document.activeElement.id"), "flame")
    for _ in range(3):
        page.press("ArrowUp")
    said = [name for role, name, _ in page.spoken() if role == "treeitem"]
    expect(len(said) == 1 and said[0].startswith("main, /opt/app: "), f"a screen reader hears {said}")
    page.press("Enter")
    expect("zoom=" in flames.fragment() and "search=burst" in flames.fragment(), f"Enter leads to {flames.fragment()}")
    page.press("Backspace")
    page.press("Escape")
    expect_same("Escape leaves", flames.fragment(), "#search=burst")
    page.press("Escape")
    expect_same("and then", flames.fragment(), "")
    page.press("i")
    expect_same("i makes", flames.fragment(), "#view=icicle")
    page.press("?")
    expect(page.evaluate("document.getElementById('help').open"), "there is no help")
    page.press("Escape")
    spoken = page.spoken()
    for role in ("slider", "tree"):
        expect(any(r == role and name for r, name, _ in spoken), f"no {role} has a name")
    nameless = [(role, value) for role, name, value in spoken if role in ("button", "combobox", "searchbox", "slider", "tree") and not name]
    expect_same("without a name are", nameless, [])


def judge_copy(flames, browser):
    browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    flames.open("#range=20-21")
    flames.click("main")
    flames.page.press("c")
    flames.page.evaluate("new Promise((done) => setTimeout(done, 100))")
    copied = flames.page.evaluate("navigator.clipboard.readText()")
    for line in ("from 20 s to 21 s", "  100.00 ", "called by all > app"):
        expect(line in copied, f"copies {copied!r}, without {line!r}")
    expect(re.search(r"^ +\d+\.\d\d +\d+   burst$", copied, re.M), f"copies {copied!r}")


def judge_themes(flames, folder):
    """Both themes are others, and texts in them can be read."""
    pictures = []
    for scheme in ("light", "dark"):
        flames.page.prefer(scheme)
        flames.open()
        pictures.append(flames.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        contrasts = flames.page.evaluate("""(() => {
            const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
            const lightness = (colour) => {
                context.fillStyle = colour;
                context.fillRect(0, 0, 1, 1);
                const parts = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
                const [r, g, b] = parts.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const contrast = (one, other) => {
                const [low, high] = [lightness(one), lightness(other)].sort((a, b) => a - b);
                return (high + 0.05) / (low + 0.05);
            };
            const fills = [foundColour(isDark())];
            for (let kind = 0; kind < 5; kind++) {
                for (let name = 0; name < 40; name++) {
                    fills.push(frameColour({ kind, module: "", name: `f${name}` }, isDark()));
                }
            }
            for (let change = -10; change <= 10; change++) {
                fills.push(changeColour(change / 10, isDark()));
            }
            const style = getComputedStyle(document.documentElement);
            const page = getComputedStyle(document.body).backgroundColor;
            const texts = ["title", "facts", "warnings", "legend"].map((id) => getComputedStyle(document.getElementById(id)).color);
            return [...fills.map((fill) => contrast(fill, textColour())), ...texts.map((text) => contrast(text, page))];
        })()""")
        expect(min(contrasts) >= 4.5, f"{scheme}: a contrast of {min(contrasts)}")
    expect(pictures[0] != pictures[1], "both themes look the same")
    flames.press_button("theme")
    expect_same("the button makes", flames.page.evaluate("getComputedStyle(document.body).backgroundColor"), pictures[0])
    flames.page.prefer("light")


def judge_names(flames):
    """Names are text, and the page's policy would stop a script in one."""
    flames.open()
    expect(flames.find(EVIL) is not None, "the odd command is not drawn")
    flames.click(EVIL)
    expect(flames.text("details").startswith(EVIL), f"says {flames.text('details')}")
    expect_same("images", flames.page.evaluate("document.images.length"), 0)
    with open(flames.url[len("file://"):], encoding="utf-8") as file:
        expect("onerror" not in file.read(), "a name is in the page's markup")
    expect_same("problems", flames.page.problems(), [])
    for attack in ("image.setAttribute('onerror', 'window.attacked = true'); image.src = 'data:,'",
                   "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.attacked = true' }))",
                   "fetch('https://example.org/')"):
        refused = flames.page.evaluate("""new Promise((done) => {
            addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective), { once: true });
            const image = document.createElement("img");
            document.body.append(image);
            %s;
            setTimeout(() => done("nothing"), 2000);
        })""" % attack.replace("fetch('https://example.org/')", "fetch('https://example.org/').catch(() => 0)"))
        expect(refused != "nothing", f"the policy lets pass: {attack}")
    expect_same("attacked", flames.page.evaluate("window.attacked"), None)
    flames.page.browser.events.clear()


def judge_shares(flames, totals, wholes, words):
    flames.click("render")
    changes = [f"{100 * total['render'] / whole:.2f} %" for total, whole in zip(totals, wholes)]
    expect(f"{changes[0]} → {changes[1]} {words}" in flames.text("details"), f"says {flames.text('details')}, not {changes}")
    flames.press_button("unzoom")


def judge_narrow(flames):
    """Nothing is wider than a telephone."""
    flames.page.send("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    flames.open()
    width = flames.page.evaluate("document.documentElement.scrollWidth")
    expect(width <= 400, f"at 400 px the page is {width} px wide")
    flames.page.send("Emulation.clearDeviceMetricsOverride")


def judge_difference(browser, profctl, maker, before, after, folder):
    path = os.path.join(folder, "difference.html")
    subprocess.run([profctl, "flamegraph", before, after, "-o", path], check=True)
    flames = Flames(browser, path)
    flames.open()
    totals = [totals_of(report(profctl, recording)) for recording in (before, after)]
    expect("Both: 40 → 40 CPU-seconds (+0 %)" in flames.text("range_text"), f"of both it says {flames.text('range_text')}")
    judge_shares(flames, totals, [20000, 20000], "of the CPU time compared")
    flames.open("#shown=0&range=20-21")
    expect_same("the first one's range", first_number(flames.text("range_text")),
                report(profctl, before, "--from", "20", "--to", "21")["samples"])
    expect_same("problems of two", flames.page.problems(), [])
    whole = [os.path.join(folder, name) for name in ("whole1.fxt", "whole2.fxt")]
    for number, name in enumerate(whole):
        make(maker, name, is_later=number == 1, is_whole=True)
    subprocess.run([profctl, "flamegraph", *whole, "-o", f"{folder}/whole.html"], check=True)
    wholes = Flames(browser, f"{folder}/whole.html")
    wholes.open()
    said = wholes.text("facts")
    expect(re.match(r"web1 \(Linux 6\.1\), 2025-11-2[56] \d\d:04:1\d [+-]\d\d:\d\d: the whole machine; 20,000 samples in 40 s, 3 CPUs, .*; web1 ",
                    said), f"says {said}")
    # Ticks that were seen: expected less missed and dropped ones.
    judge_shares(wholes, totals, [39500, 20500], "of the CPUs' time")
    change = lambda name: wholes.page.evaluate("""((name) => {
        const frame = graph.rows.flat().find((at) => describeNode(app.model, app.view, at.node).name === name);
        return app.changes.of(frame.node);
    })(%s)""" % json.dumps(name))
    expect(change("render") > 0, f"render is {change('render')}")


EVENTS = [{"event": "cpu-clock", "unit": "ns", "period": 1000000, "asked": False},
          {"event": "off-cpu", "unit": "ns", "period": 1, "asked": True}, {"event": "page-faults", "unit": "faults", "period": 10, "asked": True},
          {"event": "preempted", "unit": "ns", "period": 1, "asked": True}]


def make_events(maker, path):
    """4 s in which a program computes, waits for 3 ms each 10 ms, and for 40 ms each 100 ms in another process, has faults, and
    is ready for 2 ms each 20 ms."""
    recording = begin("/opt/app", "0badcafe00")
    recording.data(SESSION, {"session": "s", "config": {"sample_period_ns": 1000000}, "events": EVENTS})
    stack = lambda name: [address(name), address("main"), address("_start")]
    for number in range(4000):
        recording.time_ns = 10**12 + number * 10**6
        recording.stack(100, stack("render"), cpu=number % 2)
        if number % 10 == 0:
            recording.event(100, 1, 3 * 10**6, stack("parse"))
        if number % 100 == 50:
            recording.event(200, 1, 40 * 10**6 + number, stack("burst"), cpu=1)
        if number % 7 == 0:
            recording.event(100, 2, 1 + number % 3, stack("render"))
        if number % 20 == 5:
            recording.event(100, 3, 2 * 10**6, stack("render"))
    recording.write(maker, path)


def judge_events(browser, profctl, maker, folder):
    """The page of a recording with waits has all of them, and of an event what its samples stand for."""
    path, page = (os.path.join(folder, name) for name in ("events.fxt", "events.html"))
    make_events(maker, path)
    for event, hint in ((), "profctl: the page compares time on CPUs; --event off-cpu compares what threads waited for\n"), (("--event", "off-cpu"), ""):
        done = subprocess.run([profctl, "flamegraph", path, path, *event, "-o", page], capture_output=True, text=True, check=True)
        expect_same("beside a comparison", done.stderr, hint)
    subprocess.run([profctl, "flamegraph", path, "-o", page], check=True)
    flames = Flames(browser, page)
    totals = {event: totals_of(report(profctl, path, "--event", event)) for event in ("cpu-clock", "off-cpu", "page-faults", "preempted")}
    flames.open("#by=none")
    expect_same("on the CPU", first_number(flames.text("range_text")), 4000)
    expect("440 samples of off-cpu, 2.8 s blocked" in flames.text("facts"), f"says {flames.text('facts')}")
    expect_same("the switch", flames.page.evaluate("[...document.getElementById('shown').options].map((option) => option.text)"),
                ["time running", "time blocked", "time ready"])
    flames.open("#by=none&range=1-2")
    flames.page.evaluate("(() => { const list = document.getElementById('shown'); list.value = '1'; list.dispatchEvent(new Event('change')); })()")
    expect("shown=1" in flames.fragment() and "range=1-2" in flames.fragment(), f"the switch leads to {flames.fragment()}")
    # A range that begins and ends amid waits has what lies in it of them.
    part = totals_of(report(profctl, path, "--event", "off-cpu", "--from", "1.028", "--to", "1.979"))
    for options, expected in (("#by=none&shown=1&range=1.028-1.979", part), ("#by=none&shown=2", totals["preempted"]),
                              ("#by=none&shown=1", totals["off-cpu"])):
        flames.open(options)
        for name, total in expected.items():
            found = flames.page.evaluate("""((name) => {
                const node = graph.rows.flat().find((at) => describeNode(app.model, app.view, at.node).name === name)?.node;
                return node === undefined ? 0 : app.totals[app.state.shown][node];
            })(%s)""" % json.dumps(name))
            expect_same(f"{options}: off the CPU in {name}", found, total)
    flames.open("#by=none&shown=1")
    expect_same("in a cell", flames.page.evaluate("heat.counts.reduce((sum, value) => sum + value, 0)"), totals["off-cpu"]["main"])
    expect_same("cells that do not have what a range of their time has", flames.page.evaluate("""
        Array.from(heat.counts, (ns, cell) => ns - countWaits(app.model.recordings[1], app.view.stacks[1],
            [cell * heat.cellUs, (cell + 1) * heat.cellUs]).reduce((sum, value) => sum + value, 0)).filter((ns, cell) => cell > 0 && ns !== 0)"""), [])
    expect("2.8 s blocked" in flames.text("details"), f"says {flames.text('details')}")
    expect("200 samples of preempted, 400 ms ready" in flames.text("facts"), f"says {flames.text('facts')}")
    expect_same("no comparison", flames.page.evaluate("app.changes"), None)
    subprocess.run([profctl, "flamegraph", path, "--event", "page-faults", "-o", page], check=True)
    flames.open("#by=none")
    faults = totals["page-faults"]["main"]
    expect(f"{faults:,} faults" in flames.text("range_text"), f"says {flames.text('range_text')}")
    expect("samples of page-faults" in flames.text("facts") and "CPU time" not in flames.text("details"), f"says {flames.text('facts')}")
    # Waits of 1 ns each have no values of their own in the page.
    recording = begin("/opt/app", "0badcafe00")
    recording.data(SESSION, {"session": "s", "config": {"sample_period_ns": 1000000}, "events": EVENTS})
    for number in range(3):
        recording.time_ns = 10**12 + number * 10**6
        recording.event(100, 1, 1, [address("parse")])
    recording.write(maker, path)
    subprocess.run([profctl, "flamegraph", path, "--event", "off-cpu", "-o", page], check=True)
    for fragment in ("#by=none", "#by=none&range=0.001-0.002"):
        flames.open(fragment)
        expect_same(f"{fragment}: a wait of 1 ns a cell", flames.page.evaluate("heat.counts.reduce((sum, value) => sum + value, 0)"), 3)
    expect_same("problems of events", flames.page.problems(), [])


def make_hang(maker, path, is_alone):
    """200 waits of what has no tick; beside it, where it is not alone, a process that computes."""
    recording = begin("/opt/app", "0badcafe00")
    recording.data(SESSION, {"session": "s", "config": {"sample_period_ns": 1000000}, "events": EVENTS})
    for number in range(200):
        recording.time_ns = 10**12 + number * 10**7
        recording.event(100, 1, 9 * 10**6, [address("parse"), address("main")])
        recording.event(100, 3, 10**6, [address("render"), address("main")])
        if not is_alone:
            recording.stack(200, [address("burst")])
    kept = 0 if is_alone else 200
    recording.data(BOOKS, {"period_ns": 1000000, "total": {"expected": 4000, "received": 4000, "kept": kept, "filtered": 4000 - kept}})
    recording.write(maker, path)


def judge_hang(browser, profctl, maker, folder):
    """What has no tick is shown by its waits, or these are named; so is a part of a recording that has none."""
    path, page = (os.path.join(folder, name) for name in ("hang.fxt", "hang.html"))
    run = lambda *options: subprocess.run([profctl, *options], capture_output=True, text=True, check=False)
    flames = Flames(browser, page)
    for is_alone, selected, said in ((True, (), "has no sample of the clock"), (False, ("-p", "100"), "no sample of the clock is selected")):
        make_hang(maker, path, is_alone)
        done = run("flamegraph", path, *selected, "-o", page)
        expect(done.returncode == 0 and done.stderr.startswith(f"profctl: {path}: {said}; what is shown is off-cpu\n"), f"of what hangs: {done}")
        flames.open("#by=none")
        expect("1.8 s blocked" in flames.text("range_text"), f"begins with {flames.text('range_text')}")
        expect_same("the switch", flames.page.evaluate("[...document.getElementById('shown').options].map((option) => option.text)"),
                    ["time blocked", "time ready"])
        remarks = flames.page.evaluate("[...document.getElementById('warnings').children].map((item) => item.textContent)")
        expect_same("says of ticks", [text.partition(":")[0] for text in remarks if "tick" in text],
                    ["No tick of the timer has a sample in the recording"] * is_alone)
        done = run("flamegraph", path, *selected, "-o", f"{folder}/hang.svg")
        expect(f"{said}; what is shown is off-cpu\n" in done.stderr, f"the picture: {done}")
        with open(f"{folder}/hang.svg", encoding="utf-8") as file:
            expect("200 samples of off-cpu, 1.800 s blocked" in file.read(), "the picture has no waits")
        for verb in (("report",), ("export", "--format", "folded")):
            done = run(*verb, path, *selected)
            expect(done.returncode == (0 if is_alone else 1) and f"profctl: {path}: {said}; --event off-cpu has 200\n" in done.stderr, f"{verb}: {done}")
        expect_same("the clock is wanted", "off-cpu" in run("export", "--format", "folded", "--event", "cpu-clock", path, *selected).stderr, False)
    expect("off-cpu" not in run("report", path, "-p", "300").stderr, "an event is named that has nothing either")
    recording = begin("/opt/app", "0badcafe00")
    recording.data(SESSION, {"session": "s", "config": {"sample_period_ns": 1000000}, "events": EVENTS})
    threads = ""
    for lines in ((), ({"pid": 100, "tid": 100, "boot_ts_ns": "1000", "wall_ns": 5, "blocked_ns": 5},)):
        if lines:
            recording.data("cpu-profilerd.threads", *lines)
            threads = "; profctl report --threads has the times of its threads"
        recording.write(maker, path)
        for verb in (("report",), ("export", "--format", "folded"), ("flamegraph", "-o", page)):
            for options, event in (((), "the clock"), (("--event", "off-cpu"), "off-cpu")):
                done = run(*verb, path, *options)
                expect_same(f"{verb} of nothing", (done.returncode, done.stderr), (0, f"profctl: {path}: has no sample of {event}{threads}\n"))
    expect_same("problems of what hangs", flames.page.problems(), [])


def judge_picture(browser, profctl, path, folder):
    picture = os.path.join(folder, "picture.svg")
    subprocess.run([profctl, "flamegraph", path, "-o", picture], check=True)
    root = xml.etree.ElementTree.parse(picture).getroot()
    place = "{http://www.w3.org/2000/svg}"
    widths = collections.Counter()
    samples = collections.Counter()
    for frame in root.iter(place + "g"):
        title = frame.find(place + "title").text
        name, count = re.fullmatch(r"(.*?)(?: in \S+)?(?:, kernel|, inlined)?: (\d+) samples?(?:, [\d.]+ %)?", title).groups()
        widths[name] += float(frame.find(place + "rect").get("width"))
        samples[name] += int(count)
    totals = totals_of(report(profctl, path))
    for name in ("main", "burst", "parse", "do_read"):
        # What is narrower than a point, 17 samples, is left out.
        expect(0 <= totals[name] - samples[name] < 17, f"the picture's {name}: {samples[name]}, not {totals[name]}")
        expect(abs(widths[name] - 1180 * samples[name] / 20000) < 0.1, f"{name} is {widths[name]} wide")
    expect(EVIL in samples, f"the picture has {list(samples)}")
    page = Page(browser)
    page.open(f"file://{picture}")
    expect_same("the picture's problems", page.problems(), [])


def judge_verb(profctl, path, folder):
    """What the verb writes where, and what it refuses."""
    run = lambda *options, **more: subprocess.run([profctl, "flamegraph", *options], capture_output=True, text=True, cwd=folder, **more)
    done = run(path)
    expect(done.returncode == 0 and done.stdout == "flamegraph.html\n" and os.path.exists(f"{folder}/flamegraph.html"), f"says {done}")
    expect_same("over an older one", run(path).stdout, "flamegraph.html, in place of an older one\n")
    expect_same("the page's mode", os.stat(f"{folder}/flamegraph.html").st_mode & 0o777, 0o600)
    for options, said in (((path, "-o", "a.png"), "ends neither in .html nor in .svg"), ((path, "-o", path + ".html", "--by", "cpu"), "give one of"),
                          ((path, path, "-o", "a.svg"), "are compared in a page"), ((path, path, path), "two recordings at most"),
                          ((path, "-o", "-", "--open"), "--open needs a file"), ((), "name a recording")):
        done = run(*options)
        expect(done.returncode == 2 and said in done.stderr, f"{options}: {done}")
    link = os.path.join(folder, "link.html")
    os.symlink(path, link)
    done = run(path, "-o", link)
    expect(done.returncode == 2 and "is the recording itself" in done.stderr, f"over itself: {done}")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([profctl, "flamegraph", path, "-o", "-"], stdout=full, stderr=subprocess.PIPE, text=True)
    expect(done.returncode == 1 and "No space left" in done.stderr, f"a full disk: {done}")
    judge_open(run, path, folder)


def judge_open(run, path, folder):
    opened = os.path.join(folder, "opened")
    os.mkfifo(opened)
    browser = os.path.join(folder, "browser")
    with open(browser, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" >'{opened}'\n")
    os.chmod(browser, 0o755)
    environment = {**os.environ, "BROWSER": browser}
    done = run(path, "-o", "$(touch evil) -x.html", "--open", env=environment)
    with open(opened, encoding="utf-8") as file:
        expect_same("the browser gets", file.read(), f"1\n{os.path.realpath(folder)}/$(touch evil) -x.html\n")
    expect_same("--open", (done.returncode, done.stderr), (0, ""))
    # A list: what is not there is left out, the words of a command are divided by spaces, and no shell reads them.
    page = f"{os.path.realpath(folder)}/a b.html"
    for commands, words in ((f"no-such-browser %s::{browser}  --new 100%%", ("--new", "100%", page)),
                            (f"{browser} --url=%s $HOME;x:no-such-browser", (f"--url={page}", "$HOME;x")),
                            (f"{browser} %s %s", (page, page))):
        done = run(path, "-o", "a b.html", "--open", env={**environment, "BROWSER": commands})
        expect_same(f"{commands}", (done.returncode, done.stderr), (0, ""))
        if done.returncode == 0:
            with open(opened, encoding="utf-8") as file:
                expect_same(f"{commands} gets", file.read(), "".join(f"{word}\n" for word in (len(words), *words)))
    done = run(path, "-o", "a b.html", "--open", env={**environment, "BROWSER": "no-such-browser:nor-this %s"})
    expect(done.returncode == 1 and "no-such-browser:nor-this %s does not start: No such file" in done.stderr, f"none starts: {done}")
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        environment.pop(name, None)
    done = run(path, "-o", "b.html", "--open", env=environment)
    expect(done.returncode == 0 and "there is no browser here; open" in done.stderr and os.path.exists(f"{folder}/b.html"), f"without one: {done}")


def main():
    profctl, maker, folder = sys.argv[1:]
    path, later = (os.path.join(folder, name) for name in ("a.fxt", "b.fxt"))
    make(maker, path)
    make(maker, later, is_later=True)
    subprocess.run([profctl, "flamegraph", path, "-o", f"{folder}/a.html"], check=True)
    judge_verb(profctl, path, folder)
    browser = Browser(folder)
    try:
        flames = Flames(browser, f"{folder}/a.html")
        judge_zoom(flames, profctl, path)
        judge_range(flames, profctl, path)
        judge_permalink(flames)
        judge_views(flames, profctl, path)
        judge_keys(flames, profctl, path)
        judge_copy(flames, browser)
        judge_themes(flames, folder)
        judge_narrow(flames)
        expect_same("problems", flames.page.problems(), [])
        judge_names(flames)
        judge_difference(browser, profctl, maker, path, later, folder)
        judge_picture(browser, profctl, path, folder)
        judge_events(browser, profctl, maker, folder)
        judge_hang(browser, profctl, maker, folder)
    finally:
        browser.close()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
