// SPDX-License-Identifier: Apache-2.0
function fibonacci(n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

class Tree {
    constructor(depth) {
        this.children = depth > 0 ? [new Tree(depth - 1), new Tree(depth - 1)] : [];
    }
    size() {
        return this.children.reduce((sum, child) => sum + child.size(), 1);
    }
}

const text = JSON.stringify([...Array(200).keys()].map(i => ({key: i, value: String(i).repeat(3)})));
for (;;) {
    fibonacci(18);
    new Tree(9).size();
    JSON.parse(text);
    text.replace(/\d+/g, digits => digits + digits);
    [...Array(1000).keys()].sort((a, b) => b - a);
}
