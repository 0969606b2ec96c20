// Times: int64 nanoseconds are BigInt wherever they are absolute. A double holds only pixels and
// fractions of a window.

const FRACTION_BITS = 40n;
const FRACTION = 2 ** 40;

const UNITS = [
  { name: 's', ns: 1000000000n },
  { name: 'ms', ns: 1000000n },
  { name: 'µs', ns: 1000n },
  { name: 'ns', ns: 1n },
];

export const abs = (a) => (a < 0n ? -a : a);
export const minTime = (a, b) => (a < b ? a : b);
export const maxTime = (a, b) => (a > b ? a : b);

/** floor(a / b) for b > 0; BigInt division rounds towards zero. */
export function floorDiv(a, b) {
  const q = a / b;
  return a % b < 0n ? q - 1n : q;
}

/** The edge of pixel i of a window: from + floor(i × (to − from) / width). */
export function edge(window, i) {
  return window.from + floorDiv(BigInt(i) * (window.to - window.from), BigInt(window.width));
}

/** span × fraction, without taking the span through a double. */
export function scale(span, fraction) {
  return (span * BigInt(Math.round(fraction * FRACTION))) >> FRACTION_BITS;
}

/** part / whole as a double: exact enough for pixels, for spans of any length. */
export function ratio(part, whole) {
  const limit = 1n << 52n;
  let a = part, b = whole;
  if (abs(a) < limit && b < limit) return Number(a) / Number(b);
  while (b >= limit) { a >>= 8n; b >>= 8n; }
  return Number(a) / Number(b);
}

/** The pixel in which time t is. */
export function pixelOf(window, t) {
  return ratio((t - window.from) * BigInt(window.width), window.to - window.from);
}

/** Digits after the point that tell apart times that differ by `step`. */
function decimals(unit, step) {
  let digits = 0;
  for (let ns = unit; ns > step && ns > 1n; ns /= 10n) digits++;
  return digits;
}

function fixed(t, unit, digits) {
  const negative = t < 0n;
  const value = negative ? -t : t;
  const whole = value / unit;
  let text = whole.toString();
  if (digits > 0) {
    const width = unit.toString().length - 1;
    text += '.' + (value % unit).toString().padStart(width, '0').slice(0, digits);
  }
  return (negative ? '−' : '') + text;
}

/** A duration in the unit that suits it, exact to the nanosecond: "1.234567 ms". */
export function formatExact(t) {
  const unit = UNITS.find((u) => abs(t) >= u.ns) || UNITS[3];
  const text = fixed(t, unit.ns, unit.ns.toString().length - 1);
  return (text.includes('.') ? text.replace(/\.?0+$/, '') : text) + ' ' + unit.name;
}

/** A duration with four significant digits: "1.235 ms". */
export function formatShort(t) {
  const unit = UNITS.find((u) => abs(t) >= u.ns) || UNITS[3];
  const whole = (abs(t) / unit.ns).toString().length;
  const digits = Math.min(unit.ns.toString().length - 1, Math.max(0, 4 - whole));
  const step = unit.ns / 10n ** BigInt(digits);
  const rounded = (abs(t) + step / 2n) / step * step;
  return (t < 0n ? '−' : '') + fixed(rounded, unit.ns, digits) + ' ' + unit.name;
}

/** The unit for labels of an axis with ticks `step` apart. */
export function axisUnit(step) {
  if (step >= 100000000n) return UNITS[0];
  if (step >= 100000n) return UNITS[1];
  if (step >= 100n) return UNITS[2];
  return UNITS[3];
}

/** An offset along the axis, with as many digits as ticks `step` apart need. */
export function formatOffset(t, step) {
  const unit = axisUnit(step);
  return fixed(t, unit.ns, decimals(unit.ns, step)) + ' ' + unit.name;
}

/** A time since the beginning in seconds with digits grouped by three: "12.345 678 901 s". */
export function formatSeconds(t) {
  const text = fixed(t, 1000000000n, 9);
  const [whole, rest] = text.split('.');
  return whole + '.' + rest.replace(/(\d{3})(?=\d)/g, '$1\u2009') + ' s';
}

/** A whole decimal number → BigInt, or null: for what comes from a URL or a table. */
export function parseWhole(text) {
  return typeof text === 'string' && /^-?\d{1,20}$/.test(text) ? BigInt(text) : null;
}

/** 1, 2 or 5 × a power of ten, the smallest that is at least `least`. */
export function niceStep(least) {
  let power = 1n;
  while (power * 10n <= least) power *= 10n;
  for (const factor of [1n, 2n, 5n, 10n]) {
    if (power * factor >= least) return power * factor;
  }
  return power * 10n;
}

/** 1234567 → "1 234 567" (thin spaces). */
export function formatCount(n) {
  return n.toString().replace(/\B(?=(\d{3})+$)/g, '\u2009');
}
