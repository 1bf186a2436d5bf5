// Refuses an empty success of the conformance suite.
//
//   node judge.mjs PACKAGE REVISION EXPECTED_FILE RESULTS_FOLDER
//
// The suite passes a scenario whose checks were all skipped, and keeps quiet about an expected failure
// that never ran. Here each scenario we answer for must have run and succeeded, check by check, and each
// line of the list of expected failures must name a scenario of the set and a failure that happened.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const [suite, revision, expectedFile, results] = process.argv.slice(2);
const yaml = createRequire(`${path.resolve(suite)}/`)('yaml');

const tools = ['simple-text', 'image', 'audio', 'embedded-resource', 'mixed-content', 'error', 'with-progress'].map((kind) => `tools-call-${kind}`);
const both = ['tools-list', ...tools, 'server-sse-multiple-streams', 'dns-rebinding-protection', 'json-schema-2020-12'];
const ours = {
  '2025-11-25': [...both, 'server-initialize', 'ping', 'server-session-lifecycle'],
  '2026-07-28': [...both, 'server-stateless', 'caching', 'input-required-result-unsupported-methods', 'http-header-validation', 'http-custom-header-server-validation'],
}[revision];

// Checks that may stay without a verdict, and why.
const mayBeOpen = new Set([
  'server-sse-streams-functional', // a list is one JSON answer, which the suite notes and accepts
  'sep-2575-server-sends-prompts-list-changed-on-subscription', // there are no prompts
  'sep-2549-resources-read-caching-hints', // there are no resources
]);

function folders(root) {
  return readdirSync(root, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [];
    const inner = path.join(root, entry.name);
    return entry.name === 'unscored' ? folders(inner) : [inner];
  });
}

const ran = new Map();
for (const folder of folders(results)) {
  // `server-tools-list-2026-01-31T12-00-00-000Z`
  const scenario = path.basename(folder).replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
  const checks = JSON.parse(readFileSync(path.join(folder, 'checks.json'), 'utf8'));
  ran.set(scenario, [...(ran.get(scenario) ?? []), ...checks]);
}

const bad = (check) => check.status === 'FAILURE' || check.status === 'WARNING';
const problems = [];
const expected = yaml.parse(readFileSync(expectedFile, 'utf8')).server ?? [];
const required = yaml.parse(readFileSync(path.join(suite, 'requirements', `${revision}.yaml`), 'utf8')).server;

for (const entry of expected) {
  const [scenario, id] = entry.split(':');
  const failed = (ran.get(scenario) ?? []).filter(bad);
  if (!required.includes(scenario)) problems.push(`${entry}: no scenario of ${revision}`);
  else if (id ? !failed.some((check) => check.id === id) : failed.length === 0) problems.push(`${entry}: listed, but it did not fail`);
  if (!id && ours.includes(scenario)) problems.push(`${entry}: a scenario we answer for cannot be excused as a whole`);
}

let succeeded = 0;
for (const scenario of ours) {
  const checks = ran.get(scenario);
  if (!checks?.some((check) => check.status === 'SUCCESS')) {
    problems.push(`${scenario}: nothing of it succeeded`);
    continue;
  }
  for (const check of checks) {
    if (check.status === 'SUCCESS') succeeded += 1;
    else if (bad(check) ? !expected.includes(`${scenario}:${check.id}`) : !mayBeOpen.has(check.id)) {
      problems.push(`${scenario}: ${check.id}: ${check.status}: ${check.errorMessage ?? check.details?.message ?? check.description}`);
    }
  }
}

for (const problem of problems) console.log(`  FAILED ${problem}`);
const offered = required.filter((scenario) => !expected.includes(scenario)).length;
console.log(`${revision}: ${succeeded} checks succeeded in the ${ours.length} scenarios we answer for; ${offered} of ${required.length} required scenarios are not excused, ${expected.length} lines excuse the rest; ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
