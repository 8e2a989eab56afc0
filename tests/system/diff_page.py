# SPDX-License-Identifier: Apache-2.0
"""What diff_page.sh says: diff_page.py PROFCTL MAKER FOLDER."""
import decimal, json, os, subprocess, sys
import flamegraph
from chromium import Browser
from flamegraph import EVIL, Flames, expect, expect_same, first_number, make

SCALES = ((1, "s"), (1000, "ms"), (1000000, "us"), (1000000000, "ns"))


def fixed(value):
    """Two digits, as JavaScript rounds them."""
    return str(abs(decimal.Decimal(value)).quantize(decimal.Decimal("0.01"), decimal.ROUND_HALF_UP))


def unit_of(result):
    if result["unit"] == "percent":
        return 1, "%"
    whole = max(result[side]["whole"] for side in ("before", "after"))
    return next((scale, name) for scale, name in SCALES if whole * scale >= 1)


def change_text(change, scale):
    margin = "" if change["margin"] is None else f" ± {fixed(change['margin'] * scale)}"
    return ("−" if change["change"] * scale < 0 else "+") + fixed(change["change"] * scale) + margin


def remark_of(row):
    sure = [part for part in ("self", "total") if row[part]["sure"]]
    remarks = [] if not sure else ["sure"] if len(sure) == 2 else [f"{sure[0]} is sure"]
    remarks += ["new"] * (row["total"]["samples_before"] == 0) + ["vanished"] * (row["total"]["samples_after"] == 0)
    return ", ".join(remarks + ["of another build"] * row["unmatched"])


def cells_of(row, result):
    """What the page's table has of a row."""
    scale, _ = unit_of(result)
    first, second = ("total", "self") if result["sort"] == "total" else ("self", "total")
    name = " > ".join(row["stack"]) if "stack" in row else row["name"]
    cells = [name, os.path.basename(row["module"] or ""), remark_of(row)]
    cells += ["–" if row[first][f"samples_{side}"] == 0 else fixed(row[first][side] * scale) for side in ("before", "after")]
    cells.append(change_text(row[first], scale))
    if result["judged"]:
        cells.append("–" if row[first]["visible"] is None else fixed(row[first]["visible"] * scale))
    return cells + [change_text(row[second], scale)]


def shown_rows(flames):
    return flames.page.evaluate("""[...document.querySelectorAll("#rows tr")].map((line) => {
        const name = line.querySelector("th");
        const text = (found) => (found === null ? "" : found.textContent);
        return [name.firstChild.textContent, text(name.querySelector(".module")), text(name.querySelector(".remark")),
            ...[...line.querySelectorAll("td")].map((cell) => cell.textContent)];
    })""")


def compare(profctl, folder, *arguments):
    """The page, the object and the text of one comparison."""
    done = [subprocess.run([profctl, "diff", *arguments, *options], capture_output=True, check=True, text=True, cwd=folder)
            for options in (["-o", "page.html"], ["--json"], ["--wide"])]
    expect_same("-o prints", done[0].stdout, "")
    return json.loads(done[1].stdout), done[2].stdout


def judge_table(flames, what, result, text):
    flames.open()
    expect_same(f"{what}: its rows", shown_rows(flames), [cells_of(row, result) for row in result["rows"]])
    expect(len(result["rows"]) > 0, f"{what}: there are no rows")
    sentences = flames.page.evaluate("[...document.querySelectorAll('#verdict *, #minds *')].map((line) => line.textContent)")
    expect(len(sentences) >= 3, f"{what}: says only {sentences}")
    for sentence in sentences:
        expect(sentence in text, f"{what}: the terminal does not say: {sentence}")
    samples = sum(recording["samples"] for recording in result["after"]["recordings"])
    expect_same(f"{what}: samples", first_number(flames.text("range_text")), samples)
    expect_same(f"{what}: in the heat map", flames.page.evaluate("heat.counts.reduce((sum, count) => sum + count, 0)"), samples)
    colours = flames.page.evaluate("[...document.querySelectorAll('#rows .grew, #rows .shrank')].length")
    expect_same(f"{what}: with a colour", colours, sum(row[part]["sure"] for row in result["rows"] for part in ("self", "total")))


def judge_graph(flames, what, result, words):
    """A frame's text has the value that its function's row has, and its button finds it."""
    scale, name = unit_of(result)
    row = next(row for row in result["rows"] if row["name"] == "render")
    flames.click("render")
    values = [f"{fixed(row['total'][side] * scale)} {name}" for side in ("before", "after")]
    expect(f"{values[0]} → {values[1]} {words}" in flames.text("details"), f"{what}: says {flames.text('details')}, not {values}")
    flames.press_button("unzoom")
    for wanted in (row, next(row for row in result["rows"] if row["name"] == EVIL)):
        press_row(flames, wanted["name"])
        expect_same(f"{what}: finds {wanted['name']}", first_number(flames.text("matched")), wanted["total"]["samples_after"])
    flames.open("#range=20-21")
    expect("of the samples" in flames.text("details"), f"{what}: of a range it says {flames.text('details')}")
    flames.open("#shown=0")
    before = sum(recording["samples"] for recording in result["before"]["recordings"])
    expect_same(f"{what}: before", first_number(flames.text("range_text")), before)


def press_row(flames, name):
    place = flames.page.evaluate("""((name) => {
        const button = [...document.querySelectorAll("#rows button")].find((at) => at.textContent === name);
        button.scrollIntoView({ block: "center" });
        const box = button.getBoundingClientRect();
        return [box.left + 3, box.top + box.height / 2];
    })(%s)""" % json.dumps(name))
    flames.page.click(*place)


def judge_look(flames):
    """In both themes texts can be read, and nothing is wider than a window of 80 columns."""
    for scheme in ("light", "dark"):
        flames.page.prefer(scheme)
        flames.open()
        contrasts = flames.page.evaluate("""(() => {
            const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
            const lightness = (colour) => {
                context.fillStyle = colour;
                context.fillRect(0, 0, 1, 1);
                const parts = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
                const [r, g, b] = parts.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const page = lightness(getComputedStyle(document.body).backgroundColor);
            return [...document.querySelectorAll("#difference :is(p, code, td, th, button, span)")].map((at) => {
                const panel = at.closest("thead") ? lightness(getComputedStyle(at).backgroundColor) : page;
                const [low, high] = [lightness(getComputedStyle(at).color), panel].sort((a, b) => a - b);
                return (high + 0.05) / (low + 0.05);
            });
        })()""")
        expect(len(contrasts) > 20 and min(contrasts) >= 4.5, f"{scheme}: a contrast of {min(contrasts)}")
    flames.page.prefer("light")
    flames.page.send("Emulation.setDeviceMetricsOverride", width=640, height=800, deviceScaleFactor=1, mobile=False)
    flames.open()
    widths = flames.page.evaluate("[document.documentElement.scrollWidth, document.getElementById('row_box').scrollWidth"
                                  " - document.getElementById('row_box').clientWidth]")
    expect(widths[0] <= 640 and widths[1] <= 0, f"in 640 points it is wider than the window, or its table than its box: {widths}")
    flames.page.send("Emulation.clearDeviceMetricsOverride")


def main():
    profctl, maker, folder = sys.argv[1:]
    for name in ("a1", "a2", "a3", "b1", "b2", "b3"):
        make(maker, f"{folder}/{name}.fxt", is_later=name[0] == "b")
    several = ["a1.fxt", "a2.fxt", "a3.fxt", "--with", "b1.fxt", "b2.fxt", "b3.fxt"]
    browser = Browser(folder)
    try:
        flames = Flames(browser, f"{folder}/page.html")
        for options, words in (([], "of the CPU time compared"), (["--per", "time", "--sort", "total"], "of the CPUs' time"),
                               (["--per", "1000,2000"], "for a unit of work")):
            result, text = compare(profctl, folder, *several, "-n", "0", *options)
            expect(result["judged"] and result["sure"] > 0, f"{options}: {result['sure']} are sure")
            judge_table(flames, str(options), result, text)
            judge_graph(flames, str(options), result, words)
        judge_look(flames)
        single, text = compare(profctl, folder, "a1.fxt", "b1.fxt", "-n", "3")
        expect(not single["judged"] and single["row_count"] > 3, "a single one is judged, or has few rows")
        judge_table(flames, "one a side", single, text)
        expect_same("the rest", flames.text("more_rows")[:len("… and N more")], f"… and {single['row_count'] - 3} more")
        for by in ("stack", "module", "command", "thread", "unit"):
            result, text = compare(profctl, folder, *several, "-n", "0", "--by", by)
            judge_table(flames, by, result, text)
            if by == "command":
                press_row(flames, EVIL)
                row = next(row for row in result["rows"] if row["name"] == EVIL)
                expect_same("finds the odd command", first_number(flames.text("matched")), row["total"]["samples_after"])
        expect_same("images", flames.page.evaluate("document.images.length"), 0)
        with open(f"{folder}/page.html", encoding="utf-8") as file:
            expect("onerror" not in file.read(), "a name is in the page's markup")
        expect_same("problems", flames.page.problems(), [])
    finally:
        browser.close()
    sys.exit(1 if flamegraph.failures else 0)


main()
