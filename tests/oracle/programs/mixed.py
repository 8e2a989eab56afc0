# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import re
import sqlite3
import zlib


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Tree:
    def __init__(self, depth):
        self.children = [Tree(depth - 1) for _ in range(2)] if depth else []

    def __len__(self):
        return 1 + sum(len(child) for child in self.children)


database = sqlite3.connect(":memory:")
database.create_function("py", 1, lambda x: fibonacci(x % 8))
database.execute("create table t (a integer, b text)")
database.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(500)))
text = json.dumps([{"key": i, "value": [str(i)] * 3} for i in range(100)])
while True:
    fibonacci(14)
    len(Tree(8))
    json.loads(text)
    json.dumps(json.loads(text), indent=1)
    re.sub(r"(\d+)", lambda m: m.group(1) * 2, text)
    sorted(range(500), key=lambda x: -x)
    zlib.compress(text.encode())
    hashlib.sha256(text.encode() * 20).digest()
    database.execute("select sum(py(a)), max(b) from t group by a % 7").fetchall()
