/**
 * The page for people: the OpenAPI document as HTML.
 *
 * It is one text without scripts and without anything to load, so its policy can forbid both; its style sheet is allowed
 * by its hash. Everything on it comes from the document.
 */
import { createHash } from 'node:crypto';
import { Html, html, inline, prose } from './html.js';
import { fieldTable, row, table } from './page-schema.js';
import { PAGE_STYLE } from './page-style.js';
import type { OpenApiDocument, OperationObject, ResponseObject } from './types.js';

/** In one piece: white space around the sheet would change its hash. */
const styleElement = new Html(`<style>${PAGE_STYLE}</style>`);
const styleHash = createHash('sha256').update(PAGE_STYLE).digest('base64');

/** For the header `Content-Security-Policy`. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export function renderPage(document: OpenApiDocument): string {
  const { info, tags, servers } = document;
  const groups = tags.map((tag) => ({ ...tag, operations: operationsOf(document, tag.name) }));
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${info.title} ${info.version}: API</title>
        ${styleElement}
      </head>
      <body>
        <nav>
          ${groups.map(
            ({ name, operations }) =>
              html`<h2>${name}</h2>
                <ul>
                  ${operations.map(
                    ({ operation }) =>
                      html`<li><a href="#${operation.operationId}">${operation.summary}</a></li>`,
                  )}
                </ul>`,
          )}
          <h2>Schemas</h2>
          <ul>
            ${Object.keys(document.components.schemas).map(
              (name) => html`<li><a href="#schema-${name}">${name}</a></li>`,
            )}
          </ul>
        </nav>
        <main>
          <h1>${info.title} <span class="note">${info.version}</span></h1>
          <p>
            ${info.summary} Machines read <a href="${servers[0]?.url ?? ''}/openapi.json">openapi.json</a>.
          </p>
          ${prose(info.description)}
          <h2>Tokens</h2>
          ${table(
            Object.values(document.components.securitySchemes).map(
              (scheme) =>
                html`<tr>
                  <td>
                    <code>${scheme.type === 'apiKey' ? `${scheme.name}: …` : 'Authorization: Bearer …'}</code>
                  </td>
                  <td>${inline(scheme.description)}</td>
                </tr>`,
            ),
          )}
          ${groups.map(
            ({ name, description, operations }) =>
              html`<section>
                <h2>${name}</h2>
                ${prose(description)}${operations.map(article)}
              </section>`,
          )}
          <h2>Schemas</h2>
          ${Object.entries(document.components.schemas).map(
            ([name, schema]) =>
              html`<section id="schema-${name}">
                <h3>${name}</h3>
                ${fieldTable(schema)}
              </section>`,
          )}
        </main>
      </body>
    </html> `;
  return page.text;
}

interface Placed {
  readonly path: string;
  readonly method: string;
  readonly operation: OperationObject;
}

function operationsOf({ paths, servers }: OpenApiDocument, tag: string): Placed[] {
  const base = servers[0]?.url ?? '';
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.tags.includes(tag))
      .map(([method, operation]) => ({ path: base + path, method: method.toUpperCase(), operation })),
  );
}

function article({ path, method, operation }: Placed): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  return html`<article id="${operationId}">
    <h3><span class="method">${method}</span><code>${path}</code></h3>
    <p><strong>${summary}.</strong> <span class="note">${accessText(operation)}</span></p>
    ${description === undefined ? '' : prose(description)}
    ${
      parameters.length === 0
        ? ''
        : html`<h4>Parameters</h4>
            ${table(
              parameters.map(({ name, schema, required, description: told }) =>
                row({ name, schema, isRequired: required, description: told }),
              ),
            )}`
    }
    ${
      requestBody
        ? html`<h4>Body</h4>
            ${bodies(requestBody.content)}`
        : ''
    }
    <h4>Answers</h4>
    ${table(Object.entries(responses).map(([status, response]) => responseRow(status, response)))}
  </article> `;
}

function accessText({ security }: OperationObject): string {
  const [first] = security;
  if (!first) return 'Needs no token.';
  const [scopes = []] = Object.values(first);
  return scopes.length === 0 ? 'Needs a token.' : `Needs a token with the scope ${scopes.join(', ')}.`;
}

function responseRow(status: string, { description, headers = {}, content = {} }: ResponseObject): Html {
  const names = Object.entries(headers).map(
    ([name, header]) => html`<p class="note"><code>${name}</code> ${inline(header.description)}</p>`,
  );
  return html`<tr>
    <td><code>${status}</code></td>
    <td>${prose(description)}${names}${bodies(content)}</td>
  </tr>`;
}

function bodies(content: NonNullable<ResponseObject['content']>): Html {
  return html`${Object.entries(content).map(([type, { schema, example, examples = {} }]) => {
    const ref = schema?.$ref?.split('/').at(-1);
    const shown = [
      ...(example === undefined ? [] : [['Example', example] as const]),
      ...Object.entries(examples).map(
        ([name, { value }]) => [`Example: ${name.replaceAll('-', ' ')}`, value] as const,
      ),
    ];
    return html`<p class="note">
        <code>${type}</code>${ref === undefined ? '' : html` <a href="#schema-${ref}">${ref}</a>`}
      </p>
      ${shown.map(
        ([name, value]) =>
          html`<details>
            <summary>${name}</summary>
            <pre>${JSON.stringify(value, undefined, 2)}</pre>
          </details>`,
      )}`;
  })}`;
}
