import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import { createDocument } from '../../lib/api/openapi/document.js';

/** What the strict rules ask and cannot be had: rule and place. */
const EXCEPTIONS = [
  // Their success is an upgrade, 101.
  'operation-2xx-response #/paths/~1runners~1{id}~1websocket/get/responses',
  'operation-2xx-response #/paths/~1runners~1{id}~1session/get/responses',
];

describe('the OpenAPI document', () => {
  for (const peerStatuses of [false, true]) {
    it(`has nothing that the linter finds fault with, api.peerStatuses being ${peerStatuses}`, async () => {
      const document = createDocument({ version: '0.1.0', peerStatuses, maxBodyBytes: 2 ** 26 });
      const config = await createConfig({
        extends: ['recommended-strict'],
        rules: {
          'no-invalid-media-type-examples': 'error',
          'no-invalid-parameter-examples': 'error',
          'no-invalid-schema-examples': 'error',
          'no-unused-components': 'error',
          'operation-description': 'off',
          'operation-operationId-unique': 'error',
          'tag-description': 'error',
          'tags-alphabetical': 'off',
        },
      });
      const problems = await lintFromString({
        source: JSON.stringify(document),
        absoluteRef: 'openapi.json',
        config,
      });
      const told = problems.map(
        ({ ruleId, message, location: [place] }) => `${ruleId} ${place?.pointer} — ${message}`,
      );
      expect(told.filter((line) => !EXCEPTIONS.some((each) => line.startsWith(each)))).to.deep.equal([]);
      expect(told).to.have.length(EXCEPTIONS.length);
    });
  }
});
