// Colours: Okabe and Ito's hues in lightnesses on which dark text is readable, for both themes, and
// the tables that the raster needs.

// the last variant is faint, if it is grey: a thread that sleeps
export const VARIANTS = 6, HUES = 5;
export const SHADES = 64;
// how much of its own colour a pixel keeps that many slices share: 0 all, 3 little
export const CALM = 4;
export const STYLE = SHADES * CALM; // entries of the table per style: calm × SHADES + shade
const CALM_MIX = [0, 0.3, 0.52, 0.7];

// sky blue, orange, green, yellow, purple, blue, vermilion, grey: the order of `colour` in the
// protocol
const LIGHT = ['#8fcdf0', '#f3bd55', '#5fc4a1', '#ece36f', '#dda5c4', '#7fb0dc',
  '#ee9468', '#bfc5cc'];
const DARK = ['#67b2dd', '#d9a23c', '#3fae8a', '#d3c95a', '#c88bad', '#6497cb',
  '#dc7d50', '#8d959e'];

const THEMES = {
  light: {
    slices: LIGHT, neutral: '#aab6c2', background: '#ffffff', line: '#eceff2', group: '#f3f5f8',
    label: '#14181d', text: '#1b2026', muted: '#57606a',
    accent: '#0b57c2', area: 'rgba(11, 87, 194, 0.10)', grid: 'rgba(20, 30, 45, 0.055)',
    hatch: 'rgba(176, 42, 24, 0.55)', hover: 'rgba(10, 20, 30, 0.75)',
    select: '#10151b', counter: '#2c7fb8', odd: '#c0392b', mark: '#7a2fa0',
    selectGlow: 'rgba(255, 255, 255, 0.9)', dim: 'rgba(255, 255, 255, 0.62)',
  },
  dark: {
    slices: DARK, neutral: '#66717d', background: '#14171b', line: '#20252b', group: '#1b1f25',
    label: '#0b0e11', text: '#e7eaee', muted: '#a3adb8',
    accent: '#7db4ff', area: 'rgba(125, 180, 255, 0.14)', grid: 'rgba(255, 255, 255, 0.05)',
    hatch: 'rgba(255, 130, 110, 0.6)', hover: 'rgba(255, 255, 255, 0.85)',
    select: '#ffffff', counter: '#67b2dd', odd: '#ff7b66', mark: '#d79bf2',
    selectGlow: 'rgba(10, 12, 15, 0.9)', dim: 'rgba(20, 23, 27, 0.62)',
  },
};

function rgb(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, n >> 8 & 255, n & 255];
}

const pack = (c) => (255 << 24 | c[2] << 16 | c[1] << 8 | c[0]) >>> 0;
const mix = (a, b, t) => a.map((v, i) => Math.round(v + (b[i] - v) * t));
export const css = (c) => `rgb(${c[0]}, ${c[1]}, ${c[2]})`;

/** Slight changes of lightness, so that neighbours of one hue can be told apart. */
function vary(colour, variant, dark) {
  const amounts = [0, 0.22, -0.1, 0.11, -0.05];
  const amount = amounts[variant] ?? 0;
  if (amount >= 0) return mix(colour, dark ? [235, 240, 245] : [255, 255, 255],
    dark ? amount * 0.75 : amount);
  return mix(colour, [0, 0, 0], -amount);
}

/** How strong a pixel is that is covered by `cover` of 255: 5 % are faint but visible. */
function strength(cover) {
  return cover <= 0 ? 0 : 0.26 + 0.74 * Math.pow(cover, 0.75);
}

export function makePalette(name) {
  const theme = THEMES[name];
  const background = rgb(theme.background);
  const table = new Uint32Array(8 * VARIANTS * STYLE), neutral = rgb(theme.neutral);
  const solid = [];
  for (let colour = 0; colour < 8; colour++) {
    for (let variant = 0; variant < VARIANTS; variant++) {
      const style = colour * VARIANTS + variant;
      const own = vary(rgb(theme.slices[colour]), variant, name === 'dark');
      const full = variant === HUES && colour === 7 ? mix(own, background, 0.72) : own;
      solid.push(css(full));
      for (let at = 0; at < STYLE; at++) {
        const toned = mix(full, neutral, CALM_MIX[Math.floor(at / SHADES)]);
        table[style * STYLE + at] =
          pack(mix(background, toned, strength(at % SHADES / (SHADES - 1))));
      }
    }
  }
  const counter = rgb(theme.counter);
  return {
    ...theme, name, table, solid,
    packed: {
      background: pack(background), line: pack(rgb(theme.line)), group: pack(rgb(theme.group)),
      counterFill: pack(mix(background, counter, 0.22)),
      counterRange: pack(mix(background, counter, 0.55)), counterLine: pack(counter),
      odd: pack(rgb(theme.odd)),
    },
  };
}

const KEY = 'stave.theme';

/** The theme: what the user chose, else what the system prefers. */
export class Theme {
  constructor(changed) {
    this.media = matchMedia('(prefers-color-scheme: dark)');
    this.chosen = localStorage.getItem(KEY);
    this.changed = changed;
    this.media.addEventListener('change', () => this.apply());
    this.apply();
  }

  get name() {
    if (this.chosen === 'dark' || this.chosen === 'light') return this.chosen;
    return this.media.matches ? 'dark' : 'light';
  }

  toggle() {
    this.chosen = this.name === 'dark' ? 'light' : 'dark';
    localStorage.setItem(KEY, this.chosen);
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.name;
    this.palette = makePalette(this.name);
    this.changed();
  }
}
