// compare.mjs PACKAGES STAVE TRACE LEAF [CHDB LIBRARY]: do DuckDB and hyparquet (with the program CHDB also ClickHouse's library) find in the Parquet files of LEAF what `stave query` answers for TRACE? Each table with all of its
// columns, each value with its type. Prints `same TABLE ROWS` or what differs first, and exits 1 then.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, stave, trace, leaf, chdb, library] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(pathToFileURL(`${packages}/`))('@duckdb/node-api');
const { asyncBufferFromFile, parquetReadObjects, parquetMetadataAsync } = await import(pathToFileURL(`${packages}/node_modules/hyparquet/src/node.js`));
const { compressors } = await import(pathToFileURL(`${packages}/node_modules/hyparquet-compressors/src/index.js`));
const duck = await (await DuckDBInstance.create(':memory:')).connect();
await duck.run('SET threads = 1; SET preserve_insertion_order = true');

// The rows of all tables, asked in one go: [columns, table] → JSON lines; integers stay exact, as {"i": "1"}.
function ask(tables) {
  const sql = tables.map(([columns, table]) => `SELECT '${table}' AS "#"; SELECT ${columns.map((c) => `"${c}"`).join(', ')} FROM "${table}";`).join('\n');
  const run = spawnSync(stave, ['query', '-q', trace, sql, '--to', 'jsonl'], { maxBuffer: 1 << 30, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(run.stderr);
  const tokens = /("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)/g;
  const exact = (all, text, number) => text ?? (/^-?\d+$/.test(number) ? `{"i":"${number}"}` : number);
  const answers = {};
  let rows;
  for (const line of run.stdout.split('\n').filter(Boolean)) {
    const row = JSON.parse(line.replace(tokens, exact));
    if ('#' in row) rows = answers[row['#']] = [];
    else rows.push(Object.values(row));
  }
  return answers;
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

// The statistics of each row group against its values: readers leave out whole groups by them.
async function wrong_statistics(table, path, want, columns, types) {
  const found = (await duck.runAndReadAll(`SELECT row_group_id, path_in_schema, row_group_num_rows, stats_null_count, stats_min_value, stats_max_value
    FROM parquet_metadata('${path.replaceAll("'", "''")}')`)).getRows();
  const starts = [0], known = { INT64: 0, DOUBLE: 0, BYTE_ARRAY: 0 };
  for (const [group, , n] of found) starts[Number(group) + 1] = starts[Number(group)] + Number(n);
  const order = (type) => (a, b) => (type === 'BYTE_ARRAY' ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : a < b ? -1 : a > b ? 1 : 0);
  for (const [group, column, , nulls, min, max] of found) {
    const c = columns.indexOf(column), type = types[c], all = want.slice(starts[group], starts[Number(group) + 1]).map((row) => row[c]);
    const values = all.filter((v) => v !== null), before = order(type);
    if (Number(nulls) !== all.length - values.length) return `${table}: ${column}: the file says ${nulls} NULLs`;
    if (min === null) continue;
    const [least, most] = values.reduce(([a, b], v) => [before(v, a) < 0 ? v : a, before(v, b) > 0 ? v : b], [values[0], values[0]]);
    const same = (text, v) => (type === 'INT64' ? BigInt(text) === v : type === 'DOUBLE' ? Number(text) === Number(v) : text === v);
    // DuckDB shows texts with zero bytes in another form.
    if (!(type === 'BYTE_ARRAY' && /[\0]/.test(least + most)) && !(same(min, least) && same(max, most))) return `${table}: ${column}: from ${show(min)} to ${show(max)} says the file, it is ${show(least)} to ${show(most)}`;
    known[type]++;
  }
  // Where there are integers there are ranges.
  const has_ints = want.some((row) => row.some((v) => typeof v === 'bigint'));
  return has_ints && known.INT64 === 0 ? `${table}: there are no statistics` : null;
}

function by_clickhouse(path, columns, types) {
  const sql = `SELECT ${columns.map((c) => `\`${c}\``).join(', ')} FROM file('${path.replaceAll("'", "\\'")}', Parquet)
    SETTINGS output_format_json_quote_64bit_integers = 1, max_threads = 1, input_format_parquet_preserve_order = 1, use_hive_partitioning = 0`;
  const run = spawnSync(chdb, [library, sql], { maxBuffer: 1 << 30, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(run.stderr);
  return run.stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line).map((v, c) => (types[c] === 'INT64' && v !== null ? BigInt(v) : v)));
}

const tables = [];
for (const name of readdirSync(leaf).sort()) {
  const path = `${leaf}/${name}`, file = await asyncBufferFromFile(path);
  const schema = (await parquetMetadataAsync(file)).schema.slice(1);
  tables.push({ table: name.replace(/\.parquet$/, ''), path, file, columns: schema.map((c) => c.name), types: schema.map((c) => c.type) });
}
const answers = ask(tables.map(({ columns, table }) => [columns, table]));
let failed = 0;
for (const { table, path, file, columns, types } of tables) {
  const want = answers[table].map((row) => row.map((v, c) => expected(v, types[c])));
  const by_duck = (await duck.runAndReadAll(`SELECT * FROM read_parquet('${path.replaceAll("'", "''")}', hive_partitioning = false)`)).getRows();
  const by_hyparquet = (await parquetReadObjects({ file, compressors, utf8: true })).map((row) => columns.map((c) => row[c]));
  const wrong = differ(table, 'DuckDB', by_duck, want, columns) ?? differ(table, 'hyparquet', by_hyparquet, want, columns)
    ?? await wrong_statistics(table, path, want, columns, types)
    ?? (chdb ? differ(table, 'ClickHouse', by_clickhouse(resolve(path), columns, types), want, columns) : null);
  console.log(wrong ?? `same ${table} ${want.length}`);
  if (wrong) failed = 1;
}
process.exit(failed);
