// Elements and words. Text is only ever set as text: a label is never read as HTML.

const el = (tag, given = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.className = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

const one = (selector) => document.querySelector(selector);

const say = (text) => { one('#said').textContent = text; };

// Four decimals, as in the terminal; more for a small number, fewer for a large one or if the measure says so.
const short = (value, decimals = 4) => {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'number') return String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (size && size < 1e-12) return (0).toFixed(decimals); // the remainder of a difference of equal numbers
  if (Number.isInteger(value)) return value.toLocaleString('en').replace('-', '−');
  const text = size >= 100 ? value.toLocaleString('en', { maximumFractionDigits: 1 })
    : size < 5e-5 && decimals === 4 ? value.toExponential(2) : value.toFixed(decimals);
  return text.replace('-', '−');
};

// Numbers in one column have the same number of decimals.
const alike = (values) => {
  const broken = values.some((value) => typeof value === 'number' && Number.isFinite(value) && !Number.isInteger(value));
  const large = values.some((value) => Number.isFinite(value) && Math.abs(value) > 1); // which make traces negligible
  const plainly = (value) => typeof value === 'number' && (Number.isInteger(value) ? Math.abs(value) < 100 : large && Math.abs(value) < 5e-5);
  return (value) => (broken && plainly(value) ? value.toFixed(4).replace(/^-/, '−').replace('−0.0000', '0.0000') : short(value));
};

const exact = (value) => (typeof value === 'number' && Number.isFinite(value) ? String(value) : short(value));

const worded = (name) => name.replaceAll('_', ' ');

// Text in which no number is parted from its unit.
const bound = (text) => text.replace(/(\d) (?=(?:%|points?|people|seeds?|of)(?![\w-]))/g, '$1\u00a0');

const many = (count, word) => `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;

const shownValue = (value) => {
  const inner = plain(value);
  if (inner === null || typeof inner !== 'object') return inner === null ? 'none' : String(inner);
  const tidy = (x) => {
    const bare = plain(x);
    if (Array.isArray(bare)) return bare.map(tidy);
    if (bare === null || typeof bare !== 'object') return Number.isFinite(bare) || typeof bare !== 'number' ? bare : String(bare);
    return Object.fromEntries(Object.entries(bare).map(([k, v]) => [k, tidy(v)]));
  };
  return JSON.stringify(tidy(inner));
};

const save = (name, text, type) => {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say(`${name} saved`);
};
