// tutorial.mjs TRACE PNG: the viewer's picture of docs/tutorial.md, for tests/install/tutorial.sh with UPDATE=1.
import fs from 'node:fs';
import { open, run } from './harness.mjs';

const [trace, png] = process.argv.slice(2);
await run(async ({ browser, start }) => {
  const viewer = await start(trace), page = await open(browser, viewer.url, { width: 1100, height: 560, scale: 2 });
  const [[from, to]] = await viewer.sql("select min(ts), max(ts + dur) from slice where name in ('step 8', 'step 9', 'step 10', 'step 11')");
  await page.eval((a, b) => window.stave.go(a, b), String(from), String(to));
  await page.idle();
  const { data } = await page.send('Page.captureScreenshot', { format: 'png' });
  fs.writeFileSync(png, Buffer.from(data, 'base64'));
});
