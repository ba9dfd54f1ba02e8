/** HTML that is safe to send: made by `html` only, which escapes every text that is put into it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Html | readonly Html[];

/** A template whose texts are escaped and whose Html is not. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const pieces = strings.map((piece, index) => piece + written(parts[index] ?? ''));
  return new Html(pieces.join(''));
}

function written(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return escape(String(part));
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** The little of Markdown that the document's descriptions use: paragraphs, lists of lines with `- `, and code. */
export function prose(text: string): Html {
  return html`${text.split('\n\n').map((block) => {
    const lines = block.split('\n');
    if (!lines.every((line) => line.startsWith('- '))) return html`<p>${inline(lines.join(' '))}</p>`;
    return html`<ul>
      ${lines.map((line) => html`<li>${inline(line.slice(2))}</li>`)}
    </ul>`;
  })}`;
}

/** One line of such a text. */
export function inline(text: string): Html {
  return html`${text
    .split('`')
    .map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : html`${piece}`))}`;
}
