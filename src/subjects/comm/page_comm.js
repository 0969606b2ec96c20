// Collectives on the page of ranks: who arrives last, what it costs, where ranks differ. The
// numbers of `stave report comm`.

import { Bars, figures, ns } from './charts.js';
import { el } from './dom.js';
import { leading, legend, numbers, section, share, tableSection, words } from './page_parts.js';
import { formatCount } from './time.js';

const BEFORE = [['compute', 2], ['io', 3], ['loader', 1], ['copy', 0], ['comm', 4], ['other', 7],
  ['run_queue', 6], ['idle', 'idle'], ['unknown', 'untraced']].map(([name, colour]) =>
    ({ name: name === 'io' ? 'I/O' : name.replace('_', ' '), key: `before_${name}_ns`, colour }));
const DOUBTS = { missing: 'ranks missing', unfinished: 'unfinished', differs: 'kinds differ',
  clocks: 'within the error', unrelated: 'no clocks', broken: 'left too early' };

function jump(pages, c) {
  return pages.jump({ from: BigInt(c.ts_ns), to: BigInt(c.end_ns) });
}

/** How much later than the first rank each call of a collective began. */
export const LATE = `select c.slice_id as id, c.ts, c.dur, c.skew_ns - c.wait_ns as weight, t.rank
  from collective c join track t on t.id = c.track_id where c.skew_ns is not null`;

function arrivals(pages, rank) {
  return pages.instances(`Arrivals of rank ${rank}`,
    `select * from (${LATE}) where rank = ${rank}`);
}

/** What could be compared and what not. */
function head(summary) {
  const doubts = Object.keys(DOUBTS).filter((key) => summary[key] > 0);
  return figures('comm-figures', [
    ['Collectives', formatCount(summary.collectives), `${formatCount(summary.compared)} compared`],
    summary.skew_median_ns !== undefined && ['Skew', ns(summary.skew_median_ns), 'median'],
    summary.transfer_median_ns !== undefined && ['Transfer', ns(summary.transfer_median_ns),
      'median'], ['Waited', ns(summary.wait_ns), 'all ranks'],
      ['Slow ranks', summary.slow ?? 'none'], summary.slow_hosts
      && ['Slow hosts', summary.slow_hosts],
    doubts.length && ['Cannot tell',
      doubts.map((key) => `${formatCount(summary[key])} ${DOUBTS[key]}`).join(', ')],
  ]);
}

/** What each rank did before the collectives that it was last in. */
function before(app, late) {
  const parts = BEFORE.filter((p) => late.some((r) => r[p.key] > 0));
  if (!parts.length) return null;
  return section('Before they arrived last', 'Time of those ranks since the collective before', [],
    legend(app, parts), new Bars(app, {
    title: 'Before they arrived last', height: 160, testid: 'comm-before', n: late.length, parts,
    value: (i, p) => late[i][parts[p].key] ?? 0, label: (i) => String(late[i].rank),
    tip: (i) => [`Rank ${late[i].rank}`, `last in ${formatCount(late[i].last)}`,
      ...parts.map((p) => `${p.name} ${ns(late[i][p.key] ?? 0)}`)],
  }).canvas);
}

/** The sections on collectives; none where the report has nothing. */
export function commSections(pages, report) {
  if (!report) return [];
  const { app } = pages, { summary, rank, collective, difference } = report,
    late = rank.filter((r) => r.last > 0);
  return [
    section('Collectives', 'As stave report comm has them', [], head(summary),
      ...summary.verdict.split('\n')
        .map((text) => el('p', { class: 'verdict', 'data-testid': 'comm-verdict', text }))),
    difference.length && tableSection(app, 'Where ranks differ', 'comm-differences',
      [leading('collective', (d) => `${d.op} ${d.seq}`,
        (d) => pages.jump({ from: BigInt(d.ts_ns), to: BigInt(d.ts_ns) + 1000000n })),
          words('group', (d) => d.group), words('difference', (d) => d.kind),
            words('ranks', (d) => d.ranks), words('waiting', (d) => d.waiting),
            words('in words', (d) => d.text)], difference),
    tableSection(app, 'Arrivals by rank', 'comm-ranks',
      [leading('rank', (r) => String(r.rank), (r) => arrivals(pages, r.rank),
        { number: true, key: (r) => r.rank }),
          ...numbers('collectives:calls, judged, last, expected, '
            + 'lost:lost_ns, median:lead_median_ns'),
            share(app, 'of the time', (r) => r.lost_share, 6), ...numbers('waits:wait_ns'),
            words('verdict', (r) => r.verdict)], rank,
          { aside: 'Lost: how much earlier collectives would have begun without it. A rank '
          + 'leads to its latest arrival' }),
    late.length && before(app, late),
    tableSection(app, 'Collectives by skew', 'comm-collectives',
      [leading('collective', (c) => `${c.op} ${c.seq}`, (c) => jump(pages, c)),
        words('group', (c) => c.group),
          ...numbers('bytes, ranks, skew:skew_ns, transfer:transfer_ns, error:error_ns'),
          words('last', (c) => c.last), ...numbers('by:lead_ns'),
          words('cannot tell', (c) => c.cannot_tell)], collective,
      { aside: collective.length >= 500 ? 'The first 500' : '' }),
  ].filter(Boolean);
}
