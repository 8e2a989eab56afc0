# SPDX-License-Identifier: Apache-2.0
"""
Packets for Perfetto in a recording, decoded by the pages of both formats and nothing else: records of FXT word by word,
fields of protobuf byte by byte. Perfetto's importer wants what is checked here; what it would drop silently is complained of.
"""
import collections, struct

MAGIC = bytes.fromhex("1000044678541600")
PAYLOAD_MAX = 32752
# Fields of InternedData: what is interned there.
INTERNED = {5: "function", 6: "frame", 7: "callstack", 16: "build_id", 17: "path", 18: "source", 19: "mapping"}

Sample = collections.namedtuple("Sample", "time pid tid cpu mode frames")  # frames: outermost first

complaints = []


def complain(text):
    complaints.append(text)
    print(f"FAIL: {text}")


def bits(word, first, last):
    return word >> first & (1 << last - first + 1) - 1


def records(data):
    """(header, bytes) of each record."""
    at = 0
    while at < len(data):
        head, = struct.unpack_from("<Q", data, at)
        size_bytes = 8 * bits(head, 4, 15)
        if head == 0 or size_bytes == 0 or bits(head, 0, 3) in (3, 15) or at + size_bytes > len(data):
            complain(f"a record at {at} has the header {head:#x}")
            return
        yield head, data[at:at + size_bytes]
        at += size_bytes


def number_at(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a message; of kind 2 the value is bytes."""
    at = 0
    while at < len(data):
        key, at = number_at(data, at)
        if key & 7 == 0:
            value, at = number_at(data, at)
        elif key & 7 == 2:
            size_bytes, at = number_at(data, at)
            value, at = data[at:at + size_bytes], at + size_bytes
            if len(value) != size_bytes:
                complain("a message ends within a field")
        else:
            complain(f"a field has the kind {key & 7}")
            return
        yield key >> 3, value


def message(data):
    """Lists of values by number."""
    found = collections.defaultdict(list)
    for key, value in fields(data):
        found[key].append(value)
    return found


def signed(value, width=64):
    value &= (1 << width) - 1
    return value - (1 << width) if value >> width - 1 else value


class Segment:
    """What one magic number begins."""

    def __init__(self):
        self.strings = set()
        self.packets = 0


class Decoder:
    def __init__(self, data):
        self.native = []       # the records without the packets
        self.trace = b""       # the packets as one trace
        self.samples = []
        self.names = {}        # by ("process", pid) or ("thread", tid): all names in their order
        self.counters = {}     # by name: values in their order, of all tracks of that name
        self.tracks = {}       # of counters, by uuid
        self.labels = {}       # by pid: (time, labels) in their order
        self.labeled = {}      # by pid: the uuid of its track
        self.offsets = set()   # REALTIME less BOOTTIME
        self.late = {}         # (path, build-id, address): a name
        self.blobs = self.late_count = 0
        self.interned = None
        segment = Segment()
        for head, record in records(data):
            if record == MAGIC:
                segment = Segment()
            if bits(head, 0, 3) == 2:
                if bits(head, 16, 30) in segment.strings:
                    complain("a string is defined twice in a segment")
                segment.strings.add(bits(head, 16, 30))
            if bits(head, 0, 3) == 5 and bits(head, 48, 55) == 3:
                self.blob(head, record, segment)
            else:
                self.native.append(record)

    def blob(self, head, record, segment):
        self.blobs += 1
        payload_bytes = bits(head, 32, 46)
        if bits(head, 16, 31) or bits(head, 47, 47) or bits(head, 56, 63) or not 0 < payload_bytes <= PAYLOAD_MAX:
            complain(f"a blob has the header {head:#x}")
        if len(record) != 8 + -(-payload_bytes // 8) * 8 or any(record[8 + payload_bytes:]):
            complain("a blob has other padding")
        payload = record[8:8 + payload_bytes]
        self.trace += payload
        for key, packet in fields(payload):  # whole ones
            if key != 1:
                complain(f"a trace has the field {key}")
            self.packet(message(packet), segment)
            segment.packets += 1

    def packet(self, packet, segment):
        flags, = packet[13] or [0]
        if packet[10] != [1] or packet[58]:
            complain("a packet is of another sequence, or of another clock")
        if flags == 1:
            self.interned = {kind: {} for kind in INTERNED.values()}
        elif flags != 2 or segment.packets == 0:
            complain(f"a segment's packet {segment.packets} has the flags {flags}")
        for data in packet[12]:
            self.intern(data)
        for snapshot in packet[6]:
            clocks = {clock[1][0]: clock[2][0] for clock in map(message, message(snapshot)[1])}
            if set(clocks) != {1, 6}:
                complain(f"a snapshot has the clocks {clocks}")
            self.offsets.add(clocks[1] - clocks[6])
        for tree in packet[2]:
            self.tree(message(tree))
        for sample in packet[66]:
            self.sample(packet, message(sample))
        for track in map(message, packet[60]):
            if track[3]:
                self.label(packet, track)
            else:
                self.tracks[track[1][0]] = track[2][0].decode()
        for event in map(message, packet[11]):
            if event[9] != [4] or not packet[8]:
                complain("an event is not a counter's")
            self.counters.setdefault(self.tracks[event[11][0]], []).append((packet[8][0], signed(event[30][0])))
        for symbols in map(message, packet[61]):
            for address in map(message, symbols[3]):
                line, = map(message, address[2])
                self.late[symbols[1][0].decode(), symbols[2][0], address[1][0]] = line[1][0].decode()
                self.late_count += 1

    def intern(self, data):
        items = [(INTERNED[key], message(item)) for key, item in fields(data)]
        for kind, item in items:
            if not item[1] or item[1][0] in self.interned[kind] or item[1][0] == 0:
                complain(f"a {kind} has the iid {item[1]}")
            self.interned[kind][item[1][0]] = item
        refers = {"frame": ((2, "function"), (3, "mapping"), (5, "source")), "mapping": ((2, "build_id"), (7, "path")),
                  "callstack": ((2, "frame"),)}
        for kind, item in items:
            for key, other in refers.get(kind, ()):
                # A list of numbers that is packed is bytes, and not what the importer takes.
                if any(not isinstance(iid, int) or iid not in self.interned[other] for iid in item[key]):
                    complain(f"a {kind} refers to a {other} that is not there")
            if kind == "frame" and (item[3] in ([], [0]) or not item[4]):
                complain("a frame is in no mapping")

    def tree(self, tree):
        for process in map(message, tree[1]):
            self.names.setdefault(("process", signed(process[1][0])), []).append(process[3][0].decode())
        for thread in map(message, tree[2]):
            self.names.setdefault(("thread", signed(thread[1][0])), []).append(thread[2][0].decode())

    def label(self, packet, track):
        """A process's track. The importer takes another one of the same pid for another process."""
        process = message(track[3][0])
        pid = signed(process[1][0], 32)
        if self.labeled.setdefault(pid, track[1][0]) != track[1][0] or len(set(self.labeled.values())) != len(self.labeled):
            complain(f"the process {pid} has the track {track[1]}")
        if ("process", pid) not in self.names or not packet[8]:
            complain(f"the process {pid} has labels, and no name or time")
        self.labels.setdefault(pid, []).append((packet[8][0], tuple(label.decode() for label in process[8])))

    def labels_at(self, pid, time):
        """Labels replace earlier ones by their places. In the order of time, which the importer brings packets into."""
        told = {}
        for since, labels in sorted(self.labels.get(pid, []), key=lambda row: row[0]):
            if since <= time:
                told.update(enumerate(labels))
        return tuple(told.values())

    def frame(self, iid):
        """Name, path, build-id and address; the name is put in at the end, since it may come late."""
        frame = self.interned["frame"][iid]
        mapping = self.interned["mapping"][frame[3][0]]
        path, = (self.interned["path"][part][2][0].decode() for part in mapping[7])
        build_id = self.interned["build_id"][mapping[2][0]][2][0] if mapping[2] else b""
        name = self.interned["function"][frame[2][0]][2][0].decode()
        return name, path if path.startswith("/") else "/" + path, build_id, frame[4][0]

    def sample(self, packet, sample):
        pid = signed(sample[2][0], 32)
        if ("process", pid) not in self.names:
            complain(f"the process {pid} has no name yet")
        stack = self.interned["callstack"].get(sample[4][0])
        if stack is None or not stack[2]:
            complain("a sample has no stack")
            return
        self.samples.append(Sample(packet[8][0], pid, signed(sample[3][0], 32), sample[1][0], sample[5][0],
                                   [self.frame(iid) for iid in stack[2]]))

    def stacks(self):
        """Of each sample its time, tid, CPU, and the names of its frames, outermost first."""
        return [(s.time, s.tid, s.cpu, tuple(self.late.get(frame[1:], frame[0]) for frame in s.frames)) for s in self.samples]
