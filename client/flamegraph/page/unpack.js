"use strict";

/*
 * Reads what page.c writes: base64 of a zlib stream of sections, each with its length in 8 bytes
 * before it. The first section is JSON; the others are columns of LEB128 numbers.
 */

function decodeBase64(text) {
    if (Uint8Array.fromBase64) {
        return Uint8Array.fromBase64(text);
    }
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) {
        bytes[i] = letters.charCodeAt(i);
    }
    return bytes;
}

/* By a stream of our own: one of a Blob, or a Response, takes a way through another process. */
async function inflate(bytes) {
    const packed = new ReadableStream({
        start(controller) {
            controller.enqueue(bytes);
            controller.close();
        },
    });
    const reader = packed.pipeThrough(new DecompressionStream("deflate")).getReader();
    const pieces = [];
    let size = 0;
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
        pieces.push(value);
        size += value.length;
    }
    const whole = new Uint8Array(size);
    let at = 0;
    for (const piece of pieces) {
        whole.set(piece, at);
        at += piece.length;
    }
    return whole;
}

class Sections {
    constructor(bytes) {
        this.bytes = bytes;
        this.view = new DataView(bytes.buffer);
        this.at = 0;
    }

    next() {
        const size = Number(this.view.getBigUint64(this.at, true));
        const begin = this.at + 8;
        this.at = begin + size;
        return this.bytes.subarray(begin, this.at);
    }

    json() {
        return JSON.parse(new TextDecoder().decode(this.next()));
    }

    /* A column's numbers; `Kind` is the array that holds them, `count` how many there are. */
    numbers(Kind, count) {
        const bytes = this.next();
        const numbers = new Kind(count);
        let at = 0;
        for (let i = 0; i < count; i++) {
            let byte = bytes[at++];
            let value = byte & 127;
            for (let scale = 128; byte > 127; scale *= 128) {
                byte = bytes[at++];
                value += (byte & 127) * scale;
            }
            numbers[i] = value;
        }
        return numbers;
    }

    /* How many numbers the next column has. */
    length() {
        const size = Number(this.view.getBigUint64(this.at, true));
        const begin = this.at + 8;
        let count = 0;
        for (let i = begin; i < begin + size; i++) {
            count += this.bytes[i] < 128 ? 1 : 0;
        }
        return count;
    }
}

/* Turns a CPU's gaps, twice as large and odd below 0, into times. */
function addGaps(times, periodUs) {
    let last = 0;
    for (let i = 0; i < times.length; i++) {
        const value = times[i];
        last += periodUs + (value % 2 === 0 ? value / 2 : -(value + 1) / 2);
        times[i] = last;
    }
    return times;
}

/* Turns gaps of that form into a sum that begins with 0. */
function addSigned(numbers) {
    let last = 0;
    for (let i = 0; i < numbers.length; i++) {
        const value = numbers[i];
        last += value & 1 ? -((value + 1) / 2) : value / 2;
        numbers[i] = last;
    }
    return numbers;
}

/* Turns what is written of a CPU's samples, the place of a frequent node from 1, and 0 for the next of
 * the rare ones, into places in the nodes of both; the CPU's rare ones begin at `rare`. */
function addRare(places, rare) {
    for (let i = 0; i < places.length; i++) {
        places[i] = places[i] === 0 ? rare++ : places[i] - 1;
    }
    return places;
}

/* One column of several. */
function joined(columns) {
    const all = new Uint32Array(columns.reduce((count, column) => count + column.length, 0));
    let at = 0;
    for (const column of columns) {
        all.set(column, at);
        at += column.length;
    }
    return all;
}

function sum(numbers) {
    let total = 0;
    for (const number of numbers) {
        total += number;
    }
    return total;
}

/* A recording's `nodes` are those in which its stacks end, and a CPU's `stacks` say of each sample which
 * of them is its own, its `values` what each stands for (null: 1), and `total` what all do. */
function readRecording(sections, head) {
    const periodUs = Math.floor(head.period_ns / 1000);
    const recording = { ...head, sampleCount: 0, total: 0, endUs: 1 };
    const nodes = [sections.numbers(Uint32Array, sections.length())];
    let nodeCount = nodes[0].length;
    for (const cpu of recording.cpus) {
        cpu.times = addGaps(sections.numbers(Float64Array, cpu.count), periodUs);
        cpu.tasks = addSigned(sections.numbers(Uint32Array, cpu.count));
        cpu.stacks = addRare(sections.numbers(Uint32Array, cpu.count), nodeCount);
        const rare = addSigned(sections.numbers(Uint32Array, sections.length()));
        cpu.values = head.has_values ? sections.numbers(Float64Array, cpu.count) : null;
        recording.total += cpu.values === null ? cpu.count : sum(cpu.values);
        nodes.push(rare);
        nodeCount += rare.length;
        recording.sampleCount += cpu.count;
        recording.endUs = Math.max(recording.endUs, cpu.times[cpu.count - 1] + 1);
    }
    recording.nodes = joined(nodes);
    return recording;
}

/* The recordings of one side as one, whose samples are those of all of them, each since its own first
 * one. `parts` are the recordings. */
function joinSide(parts) {
    if (parts.length === 1) {
        return { ...parts[0], parts };
    }
    const side = {
        ...parts[0],
        name: `${parts.length} recordings`,
        parts,
        cpus: [],
        nodes: joined(parts.map(({ nodes }) => nodes)),
        drops: parts.flatMap(({ drops }) => drops),
        sampleCount: parts.reduce((count, part) => count + part.sampleCount, 0),
        total: parts.reduce((total, part) => total + part.total, 0),
        endUs: Math.max(...parts.map(({ endUs }) => endUs)),
        period_ns: parts.every((part) => part.period_ns === parts[0].period_ns) ? parts[0].period_ns : 0,
    };
    let before = 0;
    for (const { nodes, cpus } of parts) {
        side.cpus.push(...cpus.map((cpu) => ({ ...cpu, stacks: cpu.stacks.map((stack) => before + stack) })));
        before += nodes.length;
    }
    return side;
}

/* Everything that the page has. */
async function unpack(text) {
    const sections = new Sections(await inflate(decodeBase64(text)));
    const head = sections.json();
    const count = sections.length();
    const model = { ...head, nodeCount: count + 1 };
    const gaps = sections.numbers(Uint32Array, count);
    const functions = sections.numbers(Uint32Array, count);
    model.parents = new Uint32Array(count + 1);
    model.nodeFunctions = new Uint32Array(count + 1);
    for (let i = 1; i <= count; i++) {
        model.parents[i] = i - gaps[i - 1];
        model.nodeFunctions[i] = functions[i - 1];
    }
    const recordings = head.recordings.map((recording) => readRecording(sections, recording));
    const sides = [...new Set(recordings.map((recording) => recording.side))].sort();
    model.recordings = sides.map((side) => joinSide(recordings.filter((recording) => recording.side === side)));
    if (model.is_switch) {
        /* Events of one recording have one time. */
        const endUs = Math.max(...model.recordings.map((recording) => recording.endUs));
        model.recordings.forEach((recording) => {
            recording.endUs = endUs;
        });
    }
    return model;
}
