# SPDX-License-Identifier: Apache-2.0
"""picture.py FOLDER PAGE: how long a headless Chromium takes to open a page of `profctl flamegraph`, and to show another
range of its heat map, as lines `METRIC VALUE`. A thing is shown when the frame after it is painted."""
import statistics, sys, time
from chromium import Browser, Page

VIEWS = ("command", "thread", "process", "unit")
RANGES = 12
PAINTED = """new Promise((done) => {
    const look = () => requestAnimationFrame(() => (app.view === null ? look() : requestAnimationFrame(() => setTimeout(done))));
    look();
})"""


def ms_since(begin):
    return (time.monotonic() - begin) * 1000


def open_page(page, url):
    """The time from the address to the painted page, in a browser that runs."""
    page.send("Page.navigate", url="about:blank")
    page.wait_for("Page.loadEventFired")
    begin = time.monotonic()
    page.send("Page.navigate", url=url)
    page.wait_for("Page.loadEventFired")
    page.evaluate(PAINTED)
    return ms_since(begin)


def range_times(page):
    """Ranges of different lengths, all over the recording, as the mouse's end of a drag sets them."""
    length_us = page.evaluate("heat.rangeOf(0, heat.cellCount - 1)[1]")
    times = []
    for number in range(RANGES):
        first, part = number / RANGES * length_us, (number % 4 + 1) / 5
        last = first + (length_us - first) * part
        times.append(page.evaluate("""new Promise((done) => {
            const begin = performance.now();
            update({ range: [Math.round(%f), Math.round(%f)] });
            requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
        })""" % (first, last)))
    return times


def main(folder, path):
    browser = Browser(folder)
    try:
        page = Page(browser)
        url = f"file://{path}"
        print("open_ms", round(statistics.median(open_page(page, url) for _ in range(3))))
        for by in VIEWS:
            open_page(page, f"{url}#by={by}")
            times = range_times(page)
            print(f"range_{by}_ms", round(statistics.median(times)))
            print(f"range_{by}_worst_ms", round(max(times)))
        if page.problems():
            sys.exit(f"the page has problems: {page.problems()}")
    finally:
        browser.close()


main(sys.argv[1], sys.argv[2])
