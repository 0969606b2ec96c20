// sql.mjs PACKAGES LAKE FILE…: runs DuckDB's SQL in the files one after the other, with the variable `lake`; prints the rows of the last statement as CSV.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, lake, ...files] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(pathToFileURL(`${packages}/`))('@duckdb/node-api');
const duck = await (await DuckDBInstance.create(':memory:')).connect();
await duck.run(`SET VARIABLE lake = '${lake.replaceAll("'", "''")}'`);
let result;
for (const file of files) result = await duck.runAndReadAll(readFileSync(file, 'utf8'));
console.log(result.columnNames().join(','));
for (const row of result.getRows()) console.log(row.map((v) => v ?? '').join(','));
