// compare.mjs PACKAGES STAVE TRACE LEAF: do DuckDB and hyparquet find in the Parquet files of LEAF what `stave query` answers for TRACE? Each table with all of its
// columns, each value with its type. Prints `same TABLE ROWS` or what differs first, and exits 1 then.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, stave, trace, leaf] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(pathToFileURL(`${packages}/`))('@duckdb/node-api');
const { asyncBufferFromFile, parquetReadObjects, parquetMetadataAsync } = await import(pathToFileURL(`${packages}/node_modules/hyparquet/src/node.js`));
const { compressors } = await import(pathToFileURL(`${packages}/node_modules/hyparquet-compressors/src/index.js`));
const duck = await (await DuckDBInstance.create(':memory:')).connect();
await duck.run('SET threads = 1; SET preserve_insertion_order = true');

// Rows as JSON lines; integers stay exact, as {"i": "1"}.
function ask(columns, table) {
  const sql = `SELECT ${columns.map((c) => `"${c}"`).join(', ')} FROM "${table}"`;
  const run = spawnSync(stave, ['query', '-q', trace, sql, '--to', 'jsonl'], { maxBuffer: 1 << 30, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`${table}: ${run.stderr}`);
  const tokens = /("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)/g;
  const exact = (all, text, number) => text ?? (/^-?\d+$/.test(number) ? `{"i":"${number}"}` : number);
  return run.stdout.split('\n').filter(Boolean).map((line) => Object.values(JSON.parse(line.replace(tokens, exact))));
}

// A value of `stave query` in the type of its column: numbers in columns of texts are texts there.
function expected(value, type) {
  if (value !== null && typeof value === 'object') {
    if (type === 'INT64') return BigInt(value.i);
    return type === 'DOUBLE' ? Number(value.i) : value.i;
  }
  if (type === 'INT64' && value !== null) return Number.isInteger(value) ? BigInt(value) : null;
  if (type === 'BYTE_ARRAY' && typeof value === 'number') return String(value);
  return type === 'DOUBLE' && typeof value === 'string' ? null : value;
}

const show = (v) => (typeof v === 'bigint' ? `${v}n` : JSON.stringify(v)?.slice(0, 120));

function differ(table, who, rows, want, columns) {
  if (rows.length !== want.length) return `${table}: ${who} has ${rows.length} rows, stave query ${want.length}`;
  for (let r = 0; r < want.length; r++) {
    for (let c = 0; c < columns.length; c++) {
      const is = rows[r][c] ?? null;
      if (!Object.is(is, want[r][c])) return `${table}: row ${r}, ${columns[c]}: ${who} has ${show(is)}, stave query ${show(want[r][c])}`;
    }
  }
  return null;
}

let failed = 0;
for (const name of readdirSync(leaf).sort()) {
  const table = name.replace(/\.parquet$/, ''), path = `${leaf}/${name}`;
  const file = await asyncBufferFromFile(path);
  const { schema } = await parquetMetadataAsync(file);
  const columns = schema.slice(1).map((c) => c.name), types = schema.slice(1).map((c) => c.type);
  const want = ask(columns, table).map((row) => row.map((v, c) => expected(v, types[c])));
  const by_duck = (await duck.runAndReadAll(`SELECT * FROM read_parquet('${path.replaceAll("'", "''")}', hive_partitioning = false)`)).getRows();
  const by_hyparquet = (await parquetReadObjects({ file, compressors, utf8: true })).map((row) => columns.map((c) => row[c]));
  const wrong = differ(table, 'DuckDB', by_duck, want, columns) ?? differ(table, 'hyparquet', by_hyparquet, want, columns);
  console.log(wrong ?? `same ${table} ${want.length}`);
  if (wrong) failed = 1;
}
process.exit(failed);
