// Tables that are sorted, filtered, and drawn as far as they are viewed. A table that is wider than its
// place shows its rows as cards on a phone; elsewhere it is set more tightly, or scrolls in its box.

const CHUNK = 60;
const PHONE = matchMedia('(max-width: 599px)');
const MANY = 100; // rows from which on filters are open
const MOST_CHOICES = 200;

// Meanings of headings that are not measures.
const HEADINGS = {
  '#': 'rank; 1 is best; lines with an = share theirs',
  '95 % interval': 'bootstrap interval of the mean over seeds of the ranking measure; sorted by its lower end',
  '95 % of leak': 'the same for the leak',
  seeds: 'done seeds, of all planned seeds',
  matched: 'checks of a statement that agree with our numbers, of those that were run',
  ours: 'our number, or the least and the greatest of several checks',
  of: 'what our number is, and the stated value',
  seed: 'the number that determines a split, and all other randomness',
  reason: 'why a cell was skipped or failed',
  'strongest attack': 'the adversary and the corrector that get most out of a learner',
  status: 'status of a cell: done, failed, skipped for a reason, or not run',
  guarantee: 'what the guarantee of a model protects',
  'Pareto-optimal': 'whether no other model of the data is at least as good in all measures and better in one',
  'how sure': 'share of bootstrap samples of the seeds in which the model is Pareto-optimal',
};

const fit = (box) => {
  if (!box.clientWidth) return;
  box.classList.remove('cards', 'tight', 'wide');
  box.removeAttribute('tabindex');
  const over = () => box.firstChild.offsetWidth > box.clientWidth + 1;
  if (!over()) return;
  box.classList.add(PHONE.matches ? 'cards' : 'tight');
  if (PHONE.matches || !over()) return;
  box.classList.add('wide');
  box.tabIndex = 0; // it is scrolled by keys, too
};
const fitting = new ResizeObserver((entries) => requestAnimationFrame(() => entries.forEach(({ target }) => {
  if (target.fittedTo === target.clientWidth) return; // only its height has changed
  target.fittedTo = target.clientWidth;
  fit(target);
})));
const boxed = (table) => {
  const box = el('div', { class: 'box' }, table);
  fitting.observe(box);
  return box;
};

// Rows become blocks in cards, which some browsers do not treat as a table, so roles are set.
const cellOf = (tag, given, ...children) => el(tag, { role: tag === 'td' ? 'cell' : given.scope === 'col' ? 'columnheader' : 'rowheader', ...given }, ...children);
const rowOf = (given, ...cells) => el('tr', { role: 'row', ...given }, ...cells);

// columns: { title, value(row), text(row)?, node(row)?, number?, choose?, hint?, first? }
class Table {
  // group: column whose values are written above their rows, as long as rows keep their first order.
  constructor({ caption, columns, rows, open = null, key, group = null, extra = null, first = CHUNK }) {
    Object.assign(this, { caption, columns, rows, open, key, group, extra, first });
    this.order = null; // column, and whether ascending
    this.words = '';
    this.chosen = new Map();
    this.node = el('div', { class: 'tabular', id: key });
    this.filters = el('div', { class: 'filters', role: 'search', 'aria-label': `Filter ${caption}` });
    this.counted = el('span', { class: 'count', 'aria-live': 'polite' });
    this.body = el('tbody', { role: 'rowgroup' });
    this.head = el('thead', { role: 'rowgroup' });
    this.table = el('table', { role: 'table' }, el('caption', { class: 'unseen' }, caption), this.head, this.body);
    this.box = boxed(this.table);
    this.more = el('button', { type: 'button', onclick: () => this.draw(CHUNK * 5) }, 'Show more rows');
    this.foot = el('div', { class: 'more', hidden: true }, this.more);
    this.body.addEventListener('click', (event) => this.clicked(event));
    this.controls = el('details', { class: 'controls', open: rows.length > MANY },
      el('summary', {}, extra ? 'Filter, sort, choose columns' : 'Filter, sort'), this.filters, extra?.());
    this.node.append(el('div', { class: 'above' }, rows.length > 1 ? this.controls : '', this.counted), this.box, this.foot);
    this.arrange();
    this.refresh();
  }

  // Columns have changed: create filters and headings again.
  arrange() {
    const search = el('input', { type: 'search', placeholder: 'any words', value: this.words,
      oninput: () => { this.words = search.value; this.soon(); } });
    this.filters.replaceChildren(el('label', {}, 'Search', search));
    for (const column of this.columns.filter((c) => c.choose)) this.filters.append(...this.choices(column));
    const sorts = el('select', { onchange: () => { if (sorts.value) this.sort(this.columns[Number(sorts.value)]); } },
      el('option', { value: '' }, 'as ranked'), ...this.columns.map((column, i) => el('option', { value: i }, column.title)));
    this.filters.append(el('label', {}, 'Sort by', sorts));
    const cells = this.columns.map((column) => {
      const button = el('button', { type: 'button', title: column.hint ?? HEADINGS[column.title] ?? null, onclick: () => this.sort(column) }, column.title);
      return cellOf('th', { scope: 'col', class: this.kind(column), 'aria-sort': 'none' }, button);
    });
    this.headings = cells;
    this.head.replaceChildren(rowOf({}, ...cells));
  }

  kind(column) {
    return [column.number ? 'number' : 'label', column.first ? 'first' : '', column === this.columns[this.columnOfGroup()] ? 'grouping' : '', column.kind].filter(Boolean).join(' ');
  }

  columnOfGroup() {
    return this.group === null ? -1 : this.columns.findIndex((column) => column.title === this.group);
  }

  choices(column) {
    const found = [...new Set(this.rows.map((row) => column.value(row)))];
    if (found.length < 2 || found.length > MOST_CHOICES) return [];
    const select = el('select', { onchange: () => {
      if (select.value === '*') this.chosen.delete(column.title);
      else this.chosen.set(column.title, found[Number(select.value)]);
      this.refresh();
    } }, el('option', { value: '*' }, 'all'));
    found.forEach((value, i) => select.append(el('option', { value: i }, value === '' || value === null ? 'none' : String(value))));
    return [el('label', {}, column.title, select)];
  }

  soon() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.refresh(), 120);
  }

  sort(column) {
    const [last, up] = this.order ?? [];
    // Numbers start with the greatest, words in alphabetical order.
    this.order = last === column ? [column, !up] : [column, !column.number || Boolean(column.first)];
    this.refresh();
    say(`${this.caption}: sorted by ${column.title}, ${this.order[1] ? 'ascending' : 'descending'}`);
  }

  text(column, row) {
    if (column.text) return column.text(row);
    column.format ??= alike(this.rows.map((each) => column.value(each)));
    return column.format(column.value(row));
  }

  refresh() {
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
    const picked = [...this.chosen].map(([title, value]) => [this.columns.find((c) => c.title === title), value]);
    this.shown = this.rows.filter((row) => picked.every(([c, value]) => !c || c.value(row) === value));
    if (words.length) {
      this.shown = this.shown.filter((row) => {
        const text = this.columns.map((column) => this.text(column, row)).join(' ').toLowerCase();
        return words.every((word) => text.includes(word));
      });
    }
    if (this.order) this.shown = sorted(this.shown, this.order[0].value, this.order[1]);
    this.columns.forEach((column, i) => {
      const mine = this.order && this.order[0] === column;
      const heading = this.headings[i];
      heading.setAttribute('aria-sort', mine ? (this.order[1] ? 'ascending' : 'descending') : 'none');
      heading.firstChild.textContent = column.title + (mine ? (this.order[1] ? ' ▲' : ' ▼') : '');
      heading.firstChild.classList.toggle('sorted', Boolean(mine));
    });
    const all = this.rows.length;
    this.counted.textContent = this.shown.length === all ? many(all, 'row') : `${this.shown.length.toLocaleString('en')} of ${many(all, 'row')}`;
    this.grouped = this.order ? -1 : this.columnOfGroup();
    this.table.classList.toggle('grouped', this.grouped >= 0);
    this.body.replaceChildren();
    this.drawn = 0;
    this.draw(this.first);
  }

  draw(count) {
    if (this.drawn >= this.shown.length && this.drawn) return;
    const until = Math.min(this.drawn + count, this.shown.length);
    for (let i = this.drawn; i < until; i++) this.body.append(...this.lines(i));
    if (!this.shown.length) {
      this.body.append(rowOf({}, cellOf('td', { colspan: this.columns.length, class: 'none' }, 'Nothing matches these filters.')));
    }
    this.drawn = until;
    const left = this.shown.length - until;
    this.foot.hidden = !left;
    this.more.textContent = `Show more rows (${left.toLocaleString('en')} left)`;
    fit(this.box);
  }

  // A row, below the heading of its group if it is the first of one.
  lines(i) {
    const row = this.line(this.shown[i]);
    if (this.grouped < 0) return [row];
    const column = this.columns[this.grouped];
    if (i > 0 && column.value(this.shown[i]) === column.value(this.shown[i - 1])) return [row];
    const words = column.value(this.shown[i]) ? `${column.title} ${column.value(this.shown[i])}` : 'no attack';
    return [rowOf({ class: 'group' }, cellOf('th', { scope: 'rowgroup', colspan: this.columns.length }, words)), row];
  }

  line(row) {
    const line = rowOf({ class: this.open ? 'opens' : null });
    line.row = row;
    this.columns.forEach((column, i) => {
      const text = this.text(column, row);
      const kind = [this.kind(column), column.tone?.(row), text === '–' ? 'none' : ''].filter(Boolean).join(' ');
      let inner = column.node ? column.node(row) : text;
      if (i === 0 && this.open) {
        inner = el('button', { class: 'open', type: 'button', 'aria-haspopup': 'dialog',
          'aria-label': `${text}: show where it comes from` }, inner);
      }
      line.append(cellOf('td', { class: kind, 'data-name': column.title, title: column.tip ? column.tip(row) : null }, inner));
    });
    return line;
  }

  clicked(event) {
    const line = event.target.closest('tr');
    if (!line || line.row === undefined || !this.open) return;
    if (String(getSelection()).length) return; // the user copies a number
    const cell = event.target.closest('td');
    const column = cell ? this.columns[[...line.children].indexOf(cell)] : null;
    this.open(line.row, column?.measure ?? null);
  }

  all() {
    this.draw(Infinity);
  }
}

// A short table, neither sorted nor filtered; heads are pairs of a text and whether its column has numbers.
const simple = (caption, heads, rows) => boxed(el('table', { role: 'table' }, el('caption', { class: 'unseen' }, caption),
  el('thead', { role: 'rowgroup' }, rowOf({}, ...heads.map(([text, number]) => cellOf('th', { scope: 'col', class: number ? 'number' : 'label' }, text || el('span', { class: 'unseen' }, 'verdict'))))),
  el('tbody', { role: 'rowgroup' }, ...rows.map(({ cells, asked, tones = [] }) => rowOf({ class: asked ? 'asked' : null }, ...cells.map((cell, i) =>
    cellOf(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, 'data-name': heads[i][0],
      class: [heads[i][1] ? 'number' : 'label', tones[i]].filter(Boolean).join(' ') }, cell)))))));

// Ordered by value; rows without a value come last in both directions.
const sorted = (rows, value, up) => {
  const keyed = rows.map((row, i) => {
    const found = value(row);
    const empty = found === null || found === undefined || found === '' || Number.isNaN(found);
    return { row, i, empty, key: typeof found === 'boolean' ? Number(found) : found };
  });
  const words = new Intl.Collator('en', { numeric: true });
  const compare = (a, b) => (typeof a === 'number' && typeof b === 'number' ? (a < b ? -1 : Number(a > b)) : words.compare(String(a), String(b)));
  keyed.sort((a, b) => a.empty - b.empty || (a.empty ? 0 : compare(a.key, b.key) * (up ? 1 : -1)) || a.i - b.i);
  return keyed.map((entry) => entry.row);
};
