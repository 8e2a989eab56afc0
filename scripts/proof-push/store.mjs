// SPDX-License-Identifier: Apache-2.0
//
// A store of profiles made of other people's libraries: fastify for HTTP, protobufjs for OTLP. It has the limits of Grafana
// Pyroscope (4 MiB, 16,000 samples a profile, 1,000 frames, an hour of age, so many bytes a second with 429 and
// Retry-After), and says on SIGTERM as JSON what it has taken.
//
//   node store.mjs FOLDER_OF_NODE_MODULES PROTO PORT BYTES_PER_SECOND BURST_BYTES OLDEST_UNIX_MS
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";

const [folder, proto, port, rate, burst, oldest] = process.argv.slice(2);
const require = createRequire(folder + "/");
const protobuf = require("protobufjs");
const server = require("fastify")({ bodyLimit: 256 << 20 });
const Request = protobuf.loadSync(proto).lookupType("test.Request");

const LIMITS = { bytes: 4 << 20, samples: 16000, frames: 1000 };
const taken = { requests: 0, profiles: 0, samples: 0, wire_bytes: 0, message_bytes: 0, refused_429: 0, rejected: {}, twice: 0,
    hosts: {}, services: {}, functions: {} };
const ids = new Set();
let budget = Number(rate) > 1e11 ? Number(burst) : 0; // a slow store begins without
let filled = Date.now();

function partial(count, text) {
    const message = Buffer.concat([Buffer.from([8, count, 18, text.length]), Buffer.from(text)]);
    return Buffer.concat([Buffer.from([10, message.length]), message]);
}

// Why a profile is not taken, or nothing.
function judge(profile, tables) {
    const times = profile.samples.flatMap((sample) => sample.timestampsUnixNano.map(BigInt));
    const last = times.reduce((a, b) => (a > b ? a : b), 0n);
    if (times.length > LIMITS.samples) return "too many samples";
    if (profile.samples.some((sample) => sample.values.length)) return "values";
    if (last / 1000000n < BigInt(oldest)) return "profile is too old";
    const frames = (sample) => tables.stackTable[sample.stackIndex].locationIndices
        .reduce((sum, location) => sum + tables.locationTable[location].lines.length, 0);
    if (profile.samples.some((sample) => frames(sample) > LIMITS.frames)) return "too many frames";
    return "";
}

function count(profile, resource, tables) {
    const text = (name) => resource.attributes.find((a) => a.key === name)?.value.stringValue ?? "";
    const id = Buffer.from(profile.profileId).toString("hex");
    taken.twice += ids.has(id);
    ids.add(id);
    taken.profiles++;
    for (const sample of profile.samples) {
        const n = sample.timestampsUnixNano.length;
        const location = tables.locationTable[tables.stackTable[sample.stackIndex].locationIndices[0]];
        const name = tables.stringTable[tables.functionTable[location.lines[0].functionIndex].nameStrindex];
        taken.samples += n;
        taken.functions[name] = (taken.functions[name] ?? 0) + n;
        taken.hosts[text("host.name")] = (taken.hosts[text("host.name")] ?? 0) + n;
        taken.services[text("service.name")] = (taken.services[text("service.name")] ?? 0) + n;
    }
}

server.addContentTypeParser("application/x-protobuf", { parseAs: "buffer" }, (request, body, done) => done(null, body));
server.post("/v1development/profiles", (request, reply) => {
    const packed = request.body;
    const now = Date.now();
    budget = Math.min(Number(burst), budget + (now - filled) / 1000 * Number(rate));
    filled = now;
    taken.requests++;
    reply.type("application/x-protobuf");
    if (packed.length > budget) {
        taken.refused_429++;
        return reply.code(429).header("Retry-After", "1").send(Buffer.alloc(0));
    }
    budget -= packed.length;
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(packed) : packed;
    if (body.length > LIMITS.bytes) return reply.code(413).send(Buffer.alloc(0));
    const message = Request.toObject(Request.decode(body), { longs: String, defaults: true, arrays: true });
    let rejected = 0;
    let why = "";
    for (const resource of message.resourceProfiles) {
        for (const profile of resource.scopeProfiles.flatMap((scope) => scope.profiles)) {
            const reason = judge(profile, message.dictionary);
            if (reason === "") {
                count(profile, resource.resource, message.dictionary);
            } else {
                rejected++;
                why = reason;
                taken.rejected[reason] = (taken.rejected[reason] ?? 0) +
                    profile.samples.reduce((sum, sample) => sum + sample.timestampsUnixNano.length, 0);
            }
        }
    }
    taken.wire_bytes += packed.length;
    taken.message_bytes += body.length;
    return reply.send(rejected ? partial(rejected, why) : Buffer.alloc(0));
});
process.on("SIGTERM", () => {
    process.stdout.write(JSON.stringify(taken) + "\n", () => process.exit(0));
});
await server.listen({ host: "127.0.0.1", port: Number(port) });
console.log(server.server.address().port);
