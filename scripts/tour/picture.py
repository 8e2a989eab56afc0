# SPDX-License-Identifier: Apache-2.0
"""picture.py PAGE PICTURE FRAGMENT FRAME: a page of `profctl flamegraph` as a headless Chromium shows it, after a click on
the widest frame of that name."""
import json, os, sys, tempfile
from chromium import Browser, Page

PAINTED = """new Promise((done) => {
    const look = () => requestAnimationFrame(() => (app.view === null ? look() : requestAnimationFrame(() => setTimeout(done))));
    look();
})"""
PLACE = """((name) => {
    const frames = graph.rows.flat().filter((at) => describeNode(app.model, app.view, at.node).name === name);
    const frame = frames.sort((a, b) => b.width - a.width)[0];
    const box = document.getElementById("flame").getBoundingClientRect();
    return [box.left + frame.x + frame.width / 2, box.top + graph.rowTop(app.view.depths[frame.node]) - graph.scroll.scrollTop + 9];
})(%s)"""


def main(path, picture, fragment, frame):
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(folder, width=1200, height=760)
        page = Page(browser)
        page.open(f"file://{os.path.abspath(path)}#theme=light&{fragment}")
        page.evaluate(PAINTED)
        page.click(*page.evaluate(PLACE % json.dumps(frame)))
        page.evaluate(PAINTED)
        page.screenshot(picture)
        browser.close()


main(*sys.argv[1:])
