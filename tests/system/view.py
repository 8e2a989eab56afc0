# SPDX-License-Identifier: Apache-2.0
"""What view.sh says: view.py PROFCTL MAKER FOLDER."""
import http.client, os, re, resource, signal, socket, subprocess, sys
from urllib.parse import unquote, urlsplit
from recording_maker import Recording, SESSION, SYMBOLS

failures = 0


def expect(is_so, text):
    global failures
    if not is_so:
        failures += 1
        print(f"FAIL: {text}")


def make(maker, path, function="f"):
    recording = Recording()
    recording.name(100, 0, "app")
    recording.name(100, 100, "app")
    recording.module(100, 1, "/opt/app", "0badcafe00", 0x10000, 0x10000)
    recording.data(SYMBOLS, {"build_id": "0badcafe00", "module": "/opt/app", "start": "0x0", "size": 256, "name": function})
    for _ in range(1000):
        recording.stack(100, [0x10010])
    recording.write(maker, path)


class View:
    """A running `profctl view`, and its address."""

    def __init__(self, profctl, *arguments):
        self.process = subprocess.Popen([profctl, "view", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().rstrip("\n")
        expect(re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", self.url), f"prints {self.url!r}")
        self.port = urlsplit(self.url).port
        self.path = urlsplit(self.url).path

    def ask(self, path, method="GET", host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer, answer.read()

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


def judge(profctl, recording, viewer, file_name):
    """All that one viewer asks."""
    view = View(profctl, recording, "--in", viewer)
    exported = subprocess.run([profctl, "export", recording, "--format", viewer], capture_output=True, check=True).stdout
    page, _ = view.ask(view.path)
    target = page.getheader("Location") or ""
    expect(page.status == 302 and target.startswith("https://"), f"{viewer}: answers {page.status}, {target}")
    expect(unquote(target).endswith(view.url + file_name), f"{viewer}: leads to {target}")
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(target))
    answer, body = view.ask(view.path + file_name)
    expect(answer.status == 200 and body == exported, f"{viewer}: serves {len(body)} bytes, not {len(exported)}")
    expect(answer.getheader("Access-Control-Allow-Origin") == origin, f"{viewer}: may be read by others than {origin}")
    for path, method, host, status in (
            ("/", "GET", None, 404), ("/" + "0" * 32 + "/" + file_name, "GET", None, 404),
            (view.path + file_name, "GET", "evil.example", 403), (view.path + file_name, "POST", None, 405),
            (view.path + file_name, "OPTIONS", None, 204), (view.path + file_name, "HEAD", None, 200)):
        answer, body = view.ask(path, method, host)
        expect(answer.status == status and not body, f"{viewer}: answers {method} {path} with {answer.status}")
    expect(view.end(signal.SIGINT) == 0, f"{viewer}: Ctrl-C is a failure")
    return view


def is_local(port):
    """Whether a port is listened on at 127.0.0.1 only."""
    found = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as table:
            for row in list(table)[1:]:
                fields = row.split()
                if fields[3] == "0A" and int(fields[1].split(":")[1], 16) == port:
                    found.append(fields[1].split(":")[0])
    return found == ["0100007F"]


def judge_once(profctl, recording):
    """Idle and odd connections hold nothing up, and the file is served before the end."""
    view = View(profctl, recording, "--once")
    expect(is_local(view.port), "listens elsewhere")
    idle = [socket.create_connection(("127.0.0.1", view.port)) for _ in range(20)]
    idle[0].sendall(b"GET / HT")
    idle[1].sendall(b"x" * 20000)
    idle[2].close()
    expect(view.process.poll() is None, "--once: has ended before it has served")
    _, body = view.ask(view.path + "profile.json")
    expect(len(body) > 1000, "--once: serves nothing")
    expect(view.process.wait(timeout=30) == 0, "--once: does not end well")
    for connection in idle:
        connection.close()


def judge_page(profctl, recording, folder):
    """The flame graph is served as it is written."""
    page = os.path.join(folder, "page.html")
    subprocess.run([profctl, "flamegraph", recording, "-o", page], check=True)
    view = View(profctl, recording, "--in", "flamegraph", "--once")
    answer, body = view.ask(view.path)
    with open(page, "rb") as file:
        expect(answer.status == 200 and body == file.read(), f"the page is {answer.status}, {len(body)} bytes")
    expect(answer.getheader("Content-Type") == "text/html; charset=utf-8", f"the page is {answer.getheader('Content-Type')}")
    expect(view.process.wait(timeout=30) == 0, "--once: the page does not end well")


def judge_hang(profctl, maker, folder):
    """Of what has no tick our own page has the waits; another viewer's file does not, which is said."""
    path = os.path.join(folder, "hang.fxt")
    recording = Recording()
    recording.data(SESSION, {"session": "s", "events": [{"event": "cpu-clock", "unit": "ns"}, {"event": "off-cpu", "unit": "ns", "period": 1}]})
    recording.event(100, 1, 5, [0x10010])
    recording.write(maker, path)
    for viewer, said in (("flamegraph", "what is shown is off-cpu"), ("firefox", "--event off-cpu has 1")):
        view = View(profctl, path, "--in", viewer)
        expect(view.end(signal.SIGINT) == 0, f"{viewer}: of what hangs: a failure")
        first = view.process.stderr.readline()
        expect(first == f"profctl: {path}: has no sample of the clock; {said}\n", f"{viewer}: of what hangs says {first!r}")


def judge_room(profctl, maker, folder):
    """The temporary file has no room for the last page but one byte, behind which nothing is left that a flush could fail to write."""
    path = os.path.join(folder, "room.fxt")
    exported = lambda: len(subprocess.run([profctl, "export", path, "--format", "speedscope"], capture_output=True, check=True).stdout)
    make(maker, path)
    make(maker, path, "f" * (1 + (1 - exported()) % 4096))
    size_bytes = exported()
    expect(size_bytes % 4096 == 1 and size_bytes > 8192, f"without room: has {size_bytes} bytes")

    def leave_little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes - 4097, size_bytes - 4097))

    process = subprocess.Popen([profctl, "view", path, "--in", "speedscope"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=leave_little_room)
    url = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    expect(url == "" and process.returncode == 1 and "cannot be written to a temporary file" in said, f"without room: serves {url!r}, says {said!r}")


def main():
    profctl, maker, folder = sys.argv[1:]
    recording = os.path.join(folder, "a.fxt")
    make(maker, recording)
    first = judge(profctl, recording, "firefox", "profile.json")
    second = judge(profctl, recording, "speedscope", "profile.speedscope.json")
    expect(first.path != second.path, "has one token twice")
    judge_once(profctl, recording)
    judge_page(profctl, recording, folder)
    judge_hang(profctl, maker, folder)
    judge_room(profctl, maker, folder)
    view = View(profctl, recording)
    expect(view.end(signal.SIGTERM) == 0, "SIGTERM is a failure")
    # The only port that Perfetto's pages may ask is in use, by this test or by another.
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 9001))
            taken.listen()
        except OSError:
            pass
        done = subprocess.run([profctl, "view", recording, "--in", "perfetto"], capture_output=True, text=True)
        expect(done.returncode == 1 and "port 9001 is in use" in done.stderr, f"says {done.stderr!r}")
    done = subprocess.run([profctl, "view", recording, "--in", "hotspot"], capture_output=True, text=True)
    expect(done.returncode == 2 and "--in hotspot: give one of firefox" in done.stderr, f"says {done.stderr!r}")
    sys.exit(1 if failures else 0)


main()
