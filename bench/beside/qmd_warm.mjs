// Queries of a JSON file asked of a qmd index in one process: node qmd_warm.mjs PACKAGE DATABASE QUERIES
// Prints milliseconds as JSON, a median of each.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , module, database, queriesFile] = process.argv;
const { createStore } = await import(pathToFileURL(`${module}/dist/index.js`));
const queries = JSON.parse(readFileSync(queriesFile, "utf8"));
const store = await createStore({ dbPath: database });
const times = queries.map(() => []);
for (let round = 0; round < 4; round++) {
  for (const [number, query] of queries.entries()) {
    const began = performance.now();
    await store.searchLex(query, { limit: 10 });
    if (round > 0) times[number].push(performance.now() - began); // the first round warms the pages
  }
}
console.log(JSON.stringify(times.map((each) => each.sort((a, b) => a - b)[1])));
process.exit(0);
