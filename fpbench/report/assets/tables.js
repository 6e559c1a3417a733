// Tables that are sorted, filtered, and drawn as far as they are looked at.

const CHUNK = 100;
const MOST_CHOICES = 200;

// columns: { title, value(row), text(row)?, node(row)?, number?, choose?, hint?, first? }
class Table {
  constructor({ caption, columns, rows, open = null, key }) {
    Object.assign(this, { caption, columns, rows, open, key });
    this.order = null; // column, and whether upwards
    this.words = '';
    this.chosen = new Map();
    this.node = el('div', { class: 'tabular', id: key });
    this.filters = el('div', { class: 'filters', role: 'search', 'aria-label': `Filter ${caption}` });
    this.counted = el('span', { class: 'count', 'aria-live': 'polite' });
    this.body = el('tbody');
    this.head = el('thead');
    this.table = el('table', {}, el('caption', { class: 'unseen' }, caption), this.head, this.body);
    this.box = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption }, this.table);
    this.more = el('button', { onclick: () => this.draw(CHUNK * 5) }, 'Show more rows');
    this.foot = el('div', { class: 'more', hidden: true }, this.more);
    this.box.append(this.foot);
    this.box.addEventListener('scroll', () => {
      if (this.box.scrollTop + this.box.clientHeight > this.box.scrollHeight - 300) this.draw(CHUNK);
    }, { passive: true });
    this.body.addEventListener('click', (event) => this.clicked(event));
    this.node.append(el('p', { class: 'about', 'aria-hidden': 'true' }, caption), this.filters, this.box);
    this.arrange();
    this.refresh();
  }

  // Columns have changed: filters and headings are made anew.
  arrange() {
    const search = el('input', { type: 'search', placeholder: 'any words', value: this.words,
      oninput: () => { this.words = search.value; this.soon(); } });
    this.filters.replaceChildren(el('label', {}, 'Search', search));
    for (const column of this.columns.filter((c) => c.choose)) this.filters.append(...this.choices(column));
    this.filters.append(this.counted);
    const cells = this.columns.map((column) => {
      const button = el('button', { type: 'button', title: column.hint ?? null, onclick: () => this.sort(column) }, column.title);
      return el('th', { scope: 'col', class: column.number ? 'number' : null, 'aria-sort': 'none' }, button);
    });
    this.headings = cells;
    this.head.replaceChildren(el('tr', {}, ...cells));
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
    // Numbers start with the greatest, words with the first.
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
    this.body.replaceChildren();
    this.drawn = 0;
    this.box.scrollTop = 0;
    this.draw(CHUNK);
  }

  draw(count) {
    if (this.drawn >= this.shown.length && this.drawn) return;
    const until = Math.min(this.drawn + count, this.shown.length);
    const rows = this.shown.slice(this.drawn, until).map((row) => this.line(row));
    this.body.append(...rows);
    if (!this.shown.length) {
      this.body.append(el('tr', {}, el('td', { colspan: this.columns.length, class: 'none' }, 'Nothing matches these filters.')));
    }
    this.drawn = until;
    const left = this.shown.length - until;
    this.foot.hidden = !left;
    this.more.textContent = `Show more rows (${left.toLocaleString('en')} left)`;
  }

  line(row) {
    const line = el('tr', { class: this.open ? 'opens' : null });
    line.row = row;
    this.columns.forEach((column, i) => {
      const text = this.text(column, row);
      const kind = [column.number ? 'number' : 'label', column.tone?.(row), text === '–' ? 'none' : ''].filter(Boolean).join(' ');
      let inner = column.node ? column.node(row) : text;
      if (i === 0 && this.open) {
        inner = el('button', { class: 'open', type: 'button', 'aria-haspopup': 'dialog',
          'aria-label': `${text}: show where it comes from` }, inner);
      }
      line.append(el('td', { class: kind, title: column.tip ? column.tip(row) : null }, inner));
    });
    return line;
  }

  clicked(event) {
    const line = event.target.closest('tr');
    if (!line || line.row === undefined || !this.open) return;
    if (String(getSelection()).length) return; // somebody copies a number
    const cell = event.target.closest('td');
    const column = cell ? this.columns[[...line.children].indexOf(cell)] : null;
    this.open(line.row, column?.measure ?? null);
  }

  all() {
    this.draw(Infinity);
  }
}

// Ordered by value; what has none comes last either way.
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
