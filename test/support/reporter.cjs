/** Mocha's spec reporter, closed by one plain line that any machine can read: `N passed, N failed[, N skipped]`. */
const { reporters } = require('mocha');

module.exports = class PlainSummary extends reporters.Spec {
  epilogue() {
    super.epilogue();
    const { passes = 0, failures = 0, pending = 0 } = this.stats;
    console.log(`${passes} passed, ${failures} failed${pending > 0 ? `, ${pending} skipped` : ''}`);
  }
};
