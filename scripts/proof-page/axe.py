# SPDX-License-Identifier: Apache-2.0
"""axe.py AXE FOLDER PAGE...: what axe-core finds in pages of `profctl flamegraph`, in both themes, with a zoom, a search and a
range, and with the help open. Ends with status 1 where it finds a fault. First it must find one in a page that is
made worse."""
import json, sys
from chromium import Browser, Page

PAINTED = """new Promise((done) => {
    const look = () => requestAnimationFrame(() => (app.view === null ? look() : requestAnimationFrame(() => setTimeout(done))));
    look();
})"""
RUN = """axe.run().then((found) => ({ passes: found.passes.length, faults: [...found.violations, ...found.incomplete].map((fault) =>
    `${fault.id} (${fault.impact}): ${fault.help}: ${fault.nodes.map((node) => node.target.join(" ")).join(", ")}`) }))"""
STATES = {"as it opens": "", "icicle by thread, a range, a search": "&by=thread&view=icicle&range=0.2-0.9&search=main",
          "the help": ""}


def look(page, axe, url, state="as it opens", worse=""):
    page.open(url + STATES[state])
    page.evaluate(PAINTED)
    if state == "the help":
        page.press("?")
    page.evaluate(worse or "0")
    page.evaluate(axe)
    return page.evaluate(RUN)


def main(axe_path, folder, *paths):
    with open(axe_path, encoding="utf-8") as file:
        axe = file.read()
    browser = Browser(folder)
    page = Page(browser)
    worse = look(page, axe, f"file://{paths[0]}#theme=light", worse="document.body.append(document.getElementById('shown')), "
                 "document.getElementById('facts').style.color = '#ddd'")
    found = {fault.split()[0] for fault in worse["faults"]}
    print("in a page that was made worse:", ", ".join(sorted(found)))
    failures = 0 if {"select-name", "color-contrast"} <= found else 1
    for path in paths:
        for theme in ("light", "dark"):
            for state in STATES:
                result = look(page, axe, f"file://{path}#theme={theme}", state)
                failures += len(result["faults"])
                print(f"{path.rsplit('/', 1)[1]}, {theme}, {state}: {result['passes']} rules hold, {len(result['faults'])} faults")
                for fault in result["faults"]:
                    print("   ", fault)
    browser.close()
    return failures > 0


sys.exit(main(*sys.argv[1:]))
