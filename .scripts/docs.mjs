/** Writes the pages of docs/ that are made from the code. test/style/docs.test.ts fails while they are out of date. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { documentConfig } from '../dist/config/document.js';

writeFileSync(path.join(import.meta.dirname, '../docs/configuration.md'), documentConfig());
