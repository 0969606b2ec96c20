// ranks.mjs PACKAGES LAKE QUERIES: questions to DuckDB over the Parquet files of many ranks: wall and CPU seconds of each, and its rows.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, lake, queries] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(pathToFileURL(`${packages}/`))('@duckdb/node-api');
const duck = await (await DuckDBInstance.create(':memory:')).connect();
await duck.run(`SET VARIABLE lake = '${lake.replaceAll("'", "''")}'; SET threads = 2; SET memory_limit = '4GB'`);
await duck.run(readFileSync(`${queries}/tables.sql`, 'utf8'));

async function ask(name, sql) {
  const cpu = process.cpuUsage(), start = performance.now();
  const rows = (await duck.runAndReadAll(sql)).getRows();
  const spent = process.cpuUsage(cpu), wall = (performance.now() - start) / 1000;
  const shown = rows.length ? rows[0].map((v) => (typeof v === 'number' ? v.toPrecision(6) : v)).join(', ') : '';
  console.log(`${`duckdb_${name}`.padEnd(34)} ${wall.toFixed(2).padStart(12)} s wall, ${((spent.user + spent.system) / 1e6).toFixed(2)} s CPU, ${rows.length} rows: ${shown}`);
}

await ask('count', 'SELECT count(*), count(DISTINCT rank) FROM slice');
await ask('group_by_name', 'SELECT name, count(*) AS n, sum(dur) FROM slice GROUP BY name ORDER BY n DESC LIMIT 5');
await ask('percentiles_by_name', 'SELECT name, approx_quantile(dur, 0.99) FROM slice WHERE category = \'kernel\' GROUP BY name ORDER BY name');
for (const name of ['stragglers', 'skew', 'step_percentiles', 'slow_files']) await ask(name, readFileSync(`${queries}/${name}.sql`, 'utf8'));
await ask('who_is_slow', `SELECT rank, count(*) AS n FROM (${readFileSync(`${queries}/stragglers.sql`, 'utf8').replace(/--.*$/gm, '').replace(/;\s*$/, '')}) GROUP BY rank ORDER BY n DESC`);
await ask('one_rank_window', `SELECT count(*), sum(dur) FROM slice WHERE rank = 42 AND ts BETWEEN (SELECT min(ts) FROM step WHERE rank = 42 AND number = 500)
  AND (SELECT max(ts + dur) FROM step WHERE rank = 42 AND number = 501)`);
