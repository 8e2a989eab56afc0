# SPDX-License-Identifier: Apache-2.0
"""What lines_paths.sh says.  lines_paths.py PROFCTL MAKER FOLDER [UID]"""
import ctypes, json, os, socket, stat, struct, subprocess, sys, threading
from recording_maker import Recording

IN_OPEN, IN_NONBLOCK = 0x20, 0o4000
BUILD_ID = "00112233445566778899aabbccddeeff00112233"
libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Which of some files were opened. O_PATH and stat() do not count."""

    def __init__(self, paths):
        self.fd = libc.inotify_init1(IN_NONBLOCK)
        self.paths = {}
        for path in paths:
            number = libc.inotify_add_watch(self.fd, path.encode(), IN_OPEN)
            assert number >= 0, f"{path}: {os.strerror(ctypes.get_errno())}"
            self.paths[number] = path

    def opened(self):
        try:
            events = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return set()
        found, at = set(), 0
        while at < len(events):
            number, _, _, name_bytes = struct.unpack_from("iIII", events, at)
            found.add(self.paths[number])
            at += 16 + name_bytes
        return found


def build(folder, name, *sections):
    """A program with debugging information, our build-id and sections more."""
    path = f"{folder}/{name}"
    subprocess.run(["gcc", "-O1", "-g", "-x", "c", "-", "-o", path, f"-Wl,--build-id=0x{BUILD_ID}"],
                   input=b"int main(void) { return 0; }", check=True)
    for section, content in sections:
        with open(path + ".section", "wb") as file:
            file.write(content)
        subprocess.run(["objcopy", "--add-section", f"{section}={path}.section", path], check=True)
    return path


def strip(path):
    subprocess.run(["objcopy", "--strip-debug", path], check=True)
    return path


def link(name):
    """A .gnu_debuglink: the name, padding, a checksum that nobody looks at."""
    content = name.encode() + b"\0"
    return ".gnu_debuglink", content + bytes(-len(content) % 4) + b"\1\2\3\4"


def alternate(path):
    return ".gnu_debugaltlink", path.encode() + b"\0" + bytes(range(20))


def report(profctl, recording):
    """State of each module, by its path."""
    done = subprocess.run([profctl, "report", "--lines", "--json", "-n", "0", recording], capture_output=True,
                          timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return {f["module"]: f["state"] for f in json.loads(done.stdout)["debug_files"]}


def make_traps(folder):
    """Files that nothing but a trapped profctl opens."""
    traps = []
    os.mkdir(f"{folder}/.debug")
    for name in ("fifo", "linked", ".debug/linked", "shared"):
        os.mkfifo(f"{folder}/{name}")
        traps.append(f"{folder}/{name}")
    trap = socket.socket(socket.AF_UNIX)
    trap.bind(f"{folder}/socket")
    traps.append(f"{folder}/socket")
    if os.geteuid() == 0:
        os.mknod(f"{folder}/ptmx", stat.S_IFCHR | 0o666, os.makedev(5, 2))
        os.mknod(f"{folder}/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        traps += [f"{folder}/ptmx", f"{folder}/zero"]
    # Regular files, they say. Few programs look at these.
    return traps + [path for path in ("/sys/kernel/uevent_seqnum", "/proc/sys/kernel/ostype") if os.access(path, os.R_OK)]


def main():
    profctl, maker, folder = sys.argv[1:4]
    for uid in map(int, sys.argv[4:]):
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    traps = make_traps(folder)
    good = build(folder, "good")
    os.symlink("good", f"{folder}/symlink")
    os.symlink("fifo", f"{folder}/symlink_to_fifo")
    # libdw looks for the other part of a file by its name.
    subprocess.run(["gcc", "-O1", "-g", "-gsplit-dwarf", "-x", "c", "-c", "-", "-o", "split.o"], cwd=folder, check=True,
                   input=b"int main(void) { return 0; }")
    subprocess.run(["gcc", "split.o", "-o", "split", f"-Wl,--build-id=0x{BUILD_ID}"], cwd=folder, check=True)
    os.unlink(f"{folder}/split.dwo")
    os.mkfifo(f"{folder}/split.dwo")
    traps.append(f"{folder}/split.dwo")
    modules = [*traps, good, f"{folder}/split", f"{folder}/symlink", f"{folder}/symlink_to_fifo", folder, "/dev/ptmx", "/dev/tty",
               strip(build(folder, "links", link("linked"))), build(folder, "shares", alternate(f"{folder}/shared")),
               build(folder, "shares_beside", alternate("shared"))]
    recording = Recording()
    for number, module in enumerate(modules, 1):
        recording.name(number, 0, "test")
        recording.module(number, 1, module, BUILD_ID, 0x400000, 0x100000)
        recording.sample(number, 0x401000)
    recording.write(maker, f"{folder}/p.fxt")

    waiting = threading.Thread(target=lambda: os.close(os.open(f"{folder}/fifo", os.O_WRONLY)), daemon=True)
    waiting.start()
    watch = Watch(traps)
    states = report(profctl, f"{folder}/p.fxt")
    opened = watch.opened()
    # The thread's own open() counts once it has come back, which it must not.
    failed = [f"{path} was opened" for path in sorted(opened)]
    if not waiting.is_alive():
        failed.append("the writer of the FIFO found a reader")
    for module in modules:
        expected = "found" if module in (good, f"{folder}/symlink", f"{folder}/split") else ("no file", "broken")
        if states[module] not in expected:
            failed.append(f"{module} is '{states[module]}'")
    print("\n".join(f"FAIL: {line}" for line in failed) or f"uid {os.geteuid()}: {len(modules)} paths, none of the {len(traps)} traps opened")
    sys.exit(len(failed) > 0)


main()
