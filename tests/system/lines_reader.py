# SPDX-License-Identifier: Apache-2.0
"""What lines_reader.sh says.  lines_reader.py PROFCTL MAKER FOLDER UID shrinks|hangs|vast...
lines_reader.py PROFCTL MAKER FOLDER UNDER_FILTER useless: where no child can work; /usr/lib/debug may be written to."""
import json, os, shutil, signal, subprocess, sys, time
from recording_maker import Recording, SYMBOLS

START = 0x401000
ENTRIES = 6000000  # of 13 bytes; a reader takes a second for them at least, and 38 s are its limit

# One unit with all of the code, and functions in it that hold nothing that is asked for.
BIG = """
.text
.globl _start
_start: .fill 8192, 1, 0x90
.section .debug_abbrev,"",@progbits
.uleb128 1, 0x11; .byte 1            # compile unit with children: low_pc, high_pc
.uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
.uleb128 2, 0x2e; .byte 0            # subprogram: low_pc, high_pc
.uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
.byte 0
.section .debug_info,"",@progbits
info: .long unit_end - unit_begin
unit_begin: .short 4; .long .debug_abbrev; .byte 8
.uleb128 1; .quad _start; .long 8192
.incbin "entries"
.byte 0
unit_end:
"""


def build_big(folder):
    with open(f"{folder}/entries", "wb") as file:
        file.write((b"\x02" + (0x10).to_bytes(8, "little") + (1).to_bytes(4, "little")) * ENTRIES)
    with open(f"{folder}/big.s", "w", encoding="ascii") as file:
        file.write(BIG)
    subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,--build-id", f"-Wl,-Ttext={START:#x}", "-o", "big", "big.s"],
                   cwd=folder, check=True)
    os.unlink(f"{folder}/entries")
    return f"{folder}/big"


def build_good(folder, name):
    source = (f'const char name[] = "{name}";\n__attribute__((noinline)) int work(int n) {{ return n + name[0]; }}\n'
              "int main(void) { return work(1); }\n")
    subprocess.run(["gcc", "-O1", "-g", "-no-pie", "-Wl,--build-id", "-x", "c", "-", "-o", name],
                   input=source.encode(), cwd=folder, check=True)
    return f"{folder}/{name}"


def build_id(path):
    said = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True).stdout
    return said.split("Build ID: ")[1].split()[0]


def symbol(path, name):
    said = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in said.splitlines() if line.endswith(f" T {name}"))


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            found = [int(word) for word in file.read().split()]
    except OSError:
        return []
    return found + [grandchild for child in found for grandchild in children(child)]


def maps(pid, path):
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            return path in file.read()
    except OSError:
        return False


def find_reader(profctl, path):
    """The process that has the file mapped: profctl itself, or one that it started."""
    while profctl.poll() is None:
        for pid in [profctl.pid, *children(profctl.pid)]:
            if maps(pid, path):
                return pid
    return None


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    while True:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            state = file.read().rsplit(")", 1)[1].split()[0]
        if state in "TtZX":
            return state in "Tt"
        time.sleep(0.001)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def list_folder(path):
    """The empty root is the folder of a process that is gone, and cannot even be listed."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def check_rights(pid, uid, path):
    """What is wrong with the rights of a stopped child."""
    wrong = []
    status = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    expected = {"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapBnd": None, "NoNewPrivs": "1",
                "Seccomp": "2"}
    if uid == 0:
        expected["CapBnd"] = "0000000000000000"
        if status["Uid"].split()[0] == "0" or status["Gid"].split()[0] == "0" or status["Groups"].strip():
            wrong.append(f"the child is uid {status['Uid']}, gid {status['Gid']}, groups {status['Groups']}")
        if list_folder(f"/proc/{pid}/root"):
            wrong.append("the child sees files")
    wrong += [f"the child's {name} is {status[name]}" for name, value in expected.items()
              if value is not None and status[name] != value]
    # Three times /dev/null, its socket, its pipe, the file.
    targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    strange = [t for t in targets if t not in ("/dev/null", path) and not t.startswith(("socket:", "pipe:"))]
    if strange or len(targets) > 6:
        wrong.append(f"the child has descriptors {targets}")
    limit = next(line.split()[3] for line in read(f"/proc/{pid}/limits").splitlines() if line.startswith("Max data size"))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if limit == "unlimited" or int(limit) > max(memory // 2, 512 << 20):
        wrong.append(f"the child may have {limit} bytes of memory")
    if read(f"/proc/{pid}/oom_score_adj").strip() != "1000":
        wrong.append("the child is not the first to go when memory runs out")
    if read(f"/proc/{pid}/environ"):
        wrong.append("the child has an environment")
    return wrong


def run(profctl, uid, recording, path, what):
    """Runs a report as the user; what is done to the reader of `path` is `what`. (report, messages, wrong)"""
    def become():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)

    process = subprocess.Popen([profctl, "report", "--lines", "--json", "-n", "0", recording], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=become if uid != os.getuid() else None)
    wrong = []
    reader = find_reader(process, path) if what != "vast" else None
    if reader is not None:
        if not stop(reader):
            wrong.append("the reader ended before it could be stopped: the file is too small")
        elif reader != process.pid and os.geteuid() == 0:
            wrong += check_rights(reader, uid, path)
        if what == "shrinks":
            # Its owner may, whoever reads it.
            os.truncate(path, 4096)
            os.kill(reader, signal.SIGCONT)
        elif reader == process.pid:
            wrong.append("profctl reads the file itself, and would hang with it")
            process.kill()
    elif what != "vast":
        wrong.append("nobody has mapped the file, so this tests nothing")
    output, messages = process.communicate(timeout=240)
    if process.returncode != 0:
        wrong.append(f"profctl ended with status {process.returncode}")
        return None, messages.decode(), wrong
    return json.loads(output), messages.decode(), wrong


def check(profctl, maker, folder, uid, what):
    os.makedirs(f"{folder}/{what}")
    folder = f"{folder}/{what}"
    big = build_big(folder)
    identity = build_id(big)
    if what == "vast":
        os.truncate(big, 1 << 40)
    # Root's files and the user's, before and after.
    good = [build_good(folder, f"good{i}") for i in range(4)]
    if os.getuid() == 0:
        for path in (big, *good[::2]):
            os.chown(path, uid, uid)
    recording = Recording()
    for number, path in enumerate([*good[:2], big, *good[2:]], 1):
        recording.name(number, 0, "test")
        recording.module(number, 1, path, identity if path == big else build_id(path), 0, 0x800000)
        recording.sample(number, START + 16 if path == big else symbol(path, "work"))
    # With a name for its code, the file is opened once, for its lines.
    recording.data(SYMBOLS, {"build_id": identity, "module": big, "start": START, "size": 8192, "name": "big"})
    recording.write(maker, f"{folder}/p.fxt")
    report, messages, wrong = run(profctl, uid, f"{folder}/p.fxt", big, what)
    states = {f["module"]: f["state"] for f in report["debug_files"]} if report else {}
    wrong += [f"{path} is '{states.get(path)}'" for path in good if states.get(path) != "found"]
    lines = messages.splitlines()
    if what == "vast":
        if states.get(big) not in ("found", "broken") or (lines and states.get(big) == "found"):
            wrong.append(f"{big} is '{states.get(big)}': {messages}")
    else:
        ending = {"shrinks": "was ended by signal 7 (Bus error)", "hangs": "did not answer for"}[what]
        if states.get(big) != "broken":
            wrong.append(f"{big} is '{states.get(big)}'")
        if len(lines) != 1 or big not in messages or ending not in messages:
            wrong.append(f"profctl says: {messages!r}")
    print("\n".join(f"FAIL: {what}: {line}" for line in wrong) or f"uid {uid}: {what}: {messages.strip() or 'ok'}")
    return not wrong


def check_useless(profctl, maker, folder, under_filter):
    """Three modules are lost, though each could be read from two places."""
    good = [build_good(folder, f"good{i}") for i in range(3)]
    recording = Recording()
    for number, path in enumerate(good, 1):
        identity = build_id(path)
        os.makedirs(f"/usr/lib/debug/.build-id/{identity[:2]}", exist_ok=True)
        shutil.copy(path, f"/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug")
        recording.name(number, 0, "test")
        recording.module(number, 1, path, identity, 0, 0x800000)
        recording.sample(number, symbol(path, "work"))
    recording.write(maker, f"{folder}/p.fxt")
    done = subprocess.run([under_filter, "no_filters", profctl, "report", "--lines", "--json", f"{folder}/p.fxt"],
                          capture_output=True, text=True, check=False)
    good = done.returncode == 0 and "system call filter" in done.stderr and "so with 2 more files" in done.stderr
    print(f"{'' if good else 'FAIL: '}useless: {done.stderr.strip()}")
    return good


def main():
    profctl, maker, folder, uid = sys.argv[1:5]
    if sys.argv[5] == "useless":
        sys.exit(not check_useless(profctl, maker, folder, uid))
    results = [check(profctl, maker, folder, int(uid), what) for what in sys.argv[5:]]
    sys.exit(not all(results))


main()
