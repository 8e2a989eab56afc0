# SPDX-License-Identifier: Apache-2.0
"""
A store of profiles for tests: an HTTP server on 127.0.0.1 that reads OTLP with a decoder of its own, holds what it takes
against the protocol and against the limits of a real store, and can misbehave. A profile counts samples of the clock, each
with its time, or units of another event, where a sample has the sum of them.

Store(script=[...]) answers the first requests as the script says, each by a function (handler, request) -> True: it
answered. Behind it all are taken. `profiles` has what was taken: dictionaries of service, resource, samples, frames, id, type.

As a program, otlp_store.py PORT, it says when it is ready, and on SIGTERM as JSON what it has.
"""
import collections, gzip, http.server, json, signal, ssl, struct, sys, threading, time

MESSAGE_BYTES_MAX, SAMPLES_MAX, FRAMES_MAX, WINDOW_NS = 4 << 20, 16000, 1000, 15 * 10**9


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """Of a message: number -> values in their order; numbers, or bytes."""
    found = collections.defaultdict(list)
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("a field goes on behind its message")
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        found[key >> 3].append(value)
    return found


def numbers(values):
    """Repeated numbers, packed or not."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            found.append(number)
    return found


def fixed(values):
    found = []
    for value in values:
        found += [value] if isinstance(value, int) else [n for n, in struct.iter_unpack("<Q", value)]
    return found


def first(message, number, default=0):
    return message[number][-1] if message[number] else default


def any_value(data):
    message = fields(data)
    return message[1][0].decode() if message[1] else first(message, 3)


def decode(body):
    """The profiles of an ExportProfilesServiceRequest; raises ValueError where it is none."""
    request = fields(body)
    tables = fields(first(request, 2, b""))
    strings = [text.decode() for text in tables[5]]
    mappings, locations, functions, attributes, stacks = ([fields(row) for row in tables[number]] for number in (1, 2, 3, 6, 7))
    if strings[:1] != [""] or any(not table or any(any(v) for v in table[0].values() if v != [b""])
                                  for table in (locations, functions, stacks)):
        raise ValueError("a table does not begin with an empty element")
    names = [strings[first(function, 1)] for function in functions]
    lines = [[names[first(fields(line), 1)] for line in location[3]] for location in locations]
    for location in locations:
        if first(location, 1) >= len(mappings):
            raise ValueError("a location is in no mapping")
    frames = [sum((lines[number] for number in numbers(stack[1])), []) for stack in stacks]
    if max(map(len, frames)) > FRAMES_MAX:
        raise ValueError("too many frames in a stack")
    pairs = [(strings[first(row, 1)], any_value(first(row, 2, b""))) for row in attributes]
    profiles = []
    for resource_profiles in map(fields, request[1]):
        resource = {}
        for attribute in map(fields, fields(first(resource_profiles, 1, b""))[1]):
            resource[first(attribute, 1).decode()] = any_value(first(attribute, 2, b""))
        for scope in map(fields, resource_profiles[2]):
            for profile in map(fields, scope[2]):
                profiles.append(one_profile(profile, resource, strings, frames, pairs))
    return profiles


CLOCK = ("samples", "count")


def one_profile(profile, resource, strings, frames, pairs):
    counted, period_type = (tuple(strings[first(fields(first(profile, number, b"")), part)] for part in (1, 2)) for number in (1, 5))
    period = first(profile, 6)
    if counted == CLOCK:
        is_right = period_type == ("cpu", "nanoseconds") and period > 0
    else:
        is_right = (period_type, period) == (("", ""), 0) if counted[1] == "nanoseconds" else (period_type, period) == (counted, 1)
    if not is_right:
        raise ValueError(f"the profile is of {counted}, period {period} of {period_type}")
    if len(first(profile, 7, b"")) != 16:
        raise ValueError("the profile has no id")
    samples = []
    for sample in map(fields, profile[2]):
        times, values = fixed(sample[5]), numbers(sample[4])
        if bool(times) == bool(values) or times != sorted(times) or len(values) > 1:
            raise ValueError("a sample has times and values, neither of them, or times that are not in order")
        samples.append({"frames": frames[first(sample, 1)], "times": times, "value": sum(values) or len(times),
                        "attributes": dict(pairs[i] for i in numbers(sample[2]))})
    return {"service": resource["service.name"], "resource": resource, "id": first(profile, 7).hex(), "samples": samples,
            "type": counted[0], "period_ns": period, "time_ns": first(profile, 3), "duration_ns": first(profile, 4),
            "books": dict(pairs[i] for i in numbers(profile[11]))}


def text_field(number, text):
    data = text.encode()
    return encode(number << 3 | 2) + encode(len(data)) + data


def encode(number):
    data = b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


def partial_success(rejected, message):
    inner = encode(1 << 3) + encode(rejected) + text_field(2, message)
    return encode(1 << 3 | 2) + encode(len(inner)) + inner


def status(message):
    return text_field(2, message)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body=b"", kind="application/x-protobuf", **headers):
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        return True

    def do_POST(self):
        store = self.server.store
        with store.lock:
            step = store.script.pop(0) if store.script else None
            store.request_count += 1
            store.seen_headers.append(dict(self.headers))
        if step is not None and getattr(step, "before_body", False):
            step(self, None)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        store.wire_bytes += len(body)
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        try:
            request = store.judge(self, body)
        except (ValueError, KeyError, IndexError, UnicodeDecodeError) as error:
            store.complaints.append(f"{type(error).__name__}: {error}")
            self.answer(400, status("it is no request"))
            return
        if (step is not None and step(self, request)) or (step is None and store.rule and store.rule(self, request)):
            return
        store.take(request)
        self.answer(200)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


class Store:
    def __init__(self, script=(), rule=None, certificate=None, port=0):
        self.script, self.rule = list(script), rule
        self.lock = threading.Lock()
        self.profiles, self.complaints, self.seen_headers = [], [], []
        self.request_count = self.wire_bytes = 0
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.store = self
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        self.port = self.server.server_address[1]
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def judge(self, handler, body):
        """What every request has to keep to."""
        if handler.path != "/v1development/profiles" or handler.headers["Content-Type"] != "application/x-protobuf":
            raise ValueError(f"{handler.path} of type {handler.headers['Content-Type']}")
        profiles = decode(body)
        services = [(profile["service"], tuple(sorted(profile["resource"].items()))) for profile in profiles]
        if len(set(services)) != len(services):
            raise ValueError("a service has two profiles")
        if len(body) > MESSAGE_BYTES_MAX:
            raise ValueError(f"{len(body)} bytes")
        times = [t for profile in profiles for sample in profile["samples"] for t in sample["times"]]
        times += [t for profile in profiles for t in (profile["time_ns"], profile["time_ns"] + profile["duration_ns"])]
        if max(times) - min(times) > WINDOW_NS or max(times) // WINDOW_NS != min(times) // WINDOW_NS:
            raise ValueError("samples of more than 15 s")
        for profile in profiles:
            if sum(max(len(sample["times"]), 1) for sample in profile["samples"]) > SAMPLES_MAX:
                raise ValueError("too many samples in a profile")
        return profiles

    def take(self, profiles):
        with self.lock:
            self.profiles += profiles

    # What was taken.
    def sample_count(self):
        return sum(len(sample["times"]) for profile in self.profiles for sample in profile["samples"])

    def totals(self):
        """What there is of each type."""
        found = collections.Counter()
        for profile in self.profiles:
            found[profile["type"]] += sum(sample["value"] for sample in profile["samples"])
        return found

    def leaves(self):
        found = collections.Counter()
        for profile in self.profiles:
            for sample in profile["samples"]:
                found[sample["frames"][0]] += len(sample["times"])
        return found

    def times(self):
        return sorted(t for profile in self.profiles for sample in profile["samples"] for t in sample["times"])

    def twice(self):
        """Ids of profiles that came more than once."""
        return [key for key, count in collections.Counter(p["id"] for p in self.profiles).items() if count > 1]


# Steps of scripts.
def says(code, message="", **headers):
    return lambda handler, request: handler.answer(code, status(message), **headers)


def hangs(seconds):
    def step(handler, request):
        time.sleep(seconds)
        handler.close_connection = True
        return True
    return step


def closes(handler, request):
    """Ends the connection within the body."""
    handler.rfile.read(20)
    handler.close_connection = True
    handler.connection.close()
    return True


closes.before_body = True


def takes_and_closes(handler, request):
    """Takes it, and ends the connection instead of an answer: nobody can know."""
    handler.server.store.take(request)
    handler.close_connection = True
    return True


def partly(handler, request):
    """Takes all but the first profile."""
    handler.server.store.take(request[1:])
    return handler.answer(200, partial_success(1, "labels: too many"))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    alone = Store(port=int(sys.argv[1]))
    print("ready", flush=True)
    signal.sigwait([signal.SIGTERM])
    print(json.dumps({"samples": alone.sample_count(), "twice": alone.twice(), "complaints": alone.complaints,
                      "requests": alone.request_count, "wire_bytes": alone.wire_bytes, "profiles": len(alone.profiles),
                      "tokens": sorted({headers.get("Authorization", "") for headers in alone.seen_headers}),
                      "hosts": sorted({profile["resource"]["host.name"] for profile in alone.profiles})}), flush=True)
