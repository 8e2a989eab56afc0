# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by the DevTools protocol over two pipes: its descriptors 3 and 4, a JSON message each,
ended by NUL. Needs Python's library only."""
import base64, fcntl, json, os, shutil, subprocess

KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, ""), "Backspace": ("Backspace", 8, ""),
        "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowUp": ("ArrowUp", 38, ""), "ArrowRight": ("ArrowRight", 39, ""),
        "ArrowDown": ("ArrowDown", 40, ""), "Home": ("Home", 36, ""), "End": ("End", 35, "")}
SHIFT = 8


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class PageError(Exception):
    pass


class Browser:
    def __init__(self, folder, width=1280, height=900):
        to_it, self.to_it = os.pipe()
        self.from_it, from_it = os.pipe()
        # Above 4, so that neither is in the place of the other.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_it, from_it)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
        self.process = subprocess.Popen(
            [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
             f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
            preexec_fn=place, pass_fds=(3, 4, *high))
        for fd in (to_it, from_it, *high):
            os.close(fd)
        self.answers = os.fdopen(self.from_it, "rb", buffering=0)
        self.rest = b""
        self.number = 0
        self.events = []

    def receive(self):
        while b"\0" not in self.rest:
            piece = self.answers.read(1 << 16)
            if not piece:
                raise PageError("the browser has ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, session=None, **parameters):
        """Calls a method and returns its result; events that come before are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self.to_it, left):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def close(self):
        try:
            self.send("Browser.close")
        except PageError:
            pass
        self.process.wait(timeout=30)
        os.close(self.to_it)
        self.answers.close()


class Page:
    """A tab. `problems` has what went wrong in it: exceptions, refusals of its policy, dialogs, requests to a network."""

    def __init__(self, browser):
        self.browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def problems(self):
        found = []
        for event in self.browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if event.get("sessionId") != self.session:
                continue
            if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"):
                found.append(json.dumps(parameters)[:400])
            elif method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "about:", "data:")):
                found.append(f"asks for {parameters['request']['url']}")
        return found

    def evaluate(self, expression):
        """The value of an expression of JavaScript, of a promise what comes of it."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise PageError(json.dumps(answer["exceptionDetails"])[:400])
        return answer["result"].get("value")

    def wait_for(self, event):
        while True:
            for place, known in enumerate(self.browser.events):
                if known.get("method") == event and known.get("sessionId") == self.session:
                    del self.browser.events[place]
                    return
            self.browser.events.append(self.browser.receive())

    def open(self, url):
        """Goes to an address, also where only its fragment is another, and waits until the page is there."""
        self.send("Page.navigate", url="about:blank")
        self.wait_for("Page.loadEventFired")
        self.send("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def mouse(self, kind, x, y, buttons=0, modifiers=0):
        button = "left" if buttons or kind == "mouseReleased" else "none"
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1, modifiers=modifiers)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)

    def drag(self, begin, end):
        self.mouse("mouseMoved", *begin)
        self.mouse("mousePressed", *begin, 1)
        self.mouse("mouseMoved", *end, 1)
        self.mouse("mouseReleased", *end)

    def press(self, key, modifiers=0):
        name, code, text = KEYS.get(key, (key, ord(key[0].upper()), key))
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=name, windowsVirtualKeyCode=code,
                  modifiers=modifiers, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code, modifiers=modifiers)

    def type(self, text):
        for letter in text:
            self.press(letter)

    def prefer(self, scheme):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def spoken(self):
        """Names of the accessible things, as a screen reader has them: (role, name, value)."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        text = lambda node, member: str(node.get(member, {}).get("value", ""))
        values = lambda node: next((p["value"].get("value") for p in node.get("properties", []) if p["name"] == "valuetext"), None)
        return [(text(node, "role"), text(node, "name"), values(node) or text(node, "value")) for node in nodes if not node.get("ignored")]
