import type { Html } from './html.js';
import { html, inline } from './html.js';
import type { DocumentSchema } from './types.js';

/** What a value is, in a few words; a named schema is a link to its table. */
export function typeOf(schema: DocumentSchema): Html {
  const { $ref, type, items, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) ?? '';
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (Array.isArray(schema['enum'])) {
    const values = schema['enum'].map((value) => html`<code>${String(value)}</code> `);
    return html`${values}`;
  }
  const [name = '', orNull = ''] = typeof type === 'string' ? [type] : [type?.[0], ' or null'];
  if (name === 'array' && items) return html`list of ${typeOf(items)}${orNull}`;
  if (name === 'object' && additionalProperties)
    return html`object of ${typeOf(additionalProperties)}${orNull}`;
  return html`${name}${limits(schema)}${orNull}`;
}

function limits({ minimum, maximum, maxLength }: DocumentSchema): string {
  if (typeof minimum === 'number' && typeof maximum === 'number') {
    return maximum >= Number.MAX_SAFE_INTEGER ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`;
  }
  return typeof maxLength === 'number' && maxLength > 1 ? `, at most ${maxLength} characters` : '';
}

/** The fields of an object, one a row. */
export function fieldTable({ properties = {}, required = [] }: DocumentSchema): Html {
  const rows = Object.entries(properties).map(([name, schema]) =>
    row({ name, schema, isRequired: required.includes(name), description: schema.description ?? '' }),
  );
  return table(rows);
}

export interface Row {
  readonly name: string;
  readonly schema: DocumentSchema;
  readonly isRequired: boolean;
  readonly description: string;
}

export function row({ name, schema, isRequired, description }: Row): Html {
  return html`<tr>
    <td><code>${name}</code></td>
    <td>${typeOf(schema)}${isRequired ? '' : html`<br /><span class="note">optional</span>`}</td>
    <td>${inline(description)}</td>
  </tr>`;
}

export function table(rows: readonly Html[]): Html {
  return html`<table>
    <tbody>
      ${rows}
    </tbody>
  </table>`;
}
