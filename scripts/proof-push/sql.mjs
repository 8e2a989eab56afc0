// SPDX-License-Identifier: Apache-2.0
//
// Runs queries of ClickHouse (chdb, of npm) over rows that `profctl export --format ndjson` wrote.
//
//   node sql.mjs FOLDER_OF_NODE_MODULES ROWS.ndjson QUERIES.sql     a query ends with a semicolon
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";

const [folder, rows, queries] = process.argv.slice(2);
const require = createRequire(folder + "/");
const { Session } = require("chdb");
const session = new Session(mkdtempSync(tmpdir() + "/chdb-"));
const tables = readFileSync(queries, "utf8").replaceAll("ROWS", rows).split(/;\s*$/m).map((text) => text.trim()).filter(Boolean);
for (const query of tables) {
    const shown = session.query(query, "PrettyCompactMonoBlock");
    if (!/^(CREATE|INSERT)/.test(query.replace(/^(--.*\n)+/, ""))) {
        console.log(query + "\n" + shown);
    }
}
session.cleanup?.();
