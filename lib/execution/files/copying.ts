import { ServiceError } from '../../base/errors.js';
import { stagedPath } from '../../shell/copy-files.js';
import { LineReader } from '../line-reader.js';
import type { SourceFile } from './api.js';
import type { Member } from './archive.js';
import { archive } from './archive.js';
import type { FilePlan } from './plan.js';
import type { Tool } from './tool.js';

/** What the archive of a plan holds, in order. */
export function membersOf(plan: FilePlan, files: readonly SourceFile[]): Member[] {
  return files.flatMap(({ bytes, sizeBytes = 0 }, index) => {
    const staged = plan.staged(index);
    return staged ? [{ path: stagedPath(staged.step, staged.file), sizeBytes, bytes }] : [];
  });
}

/** Sends the archive while the call prints what failed. Resolves with a line for each path that could not be written. */
export async function copy(tool: Tool, plan: FilePlan, members: readonly Member[]): Promise<string[]> {
  const failures: string[] = [];
  let isDone = false;
  const lines = new LineReader((line) => {
    const failed = /^F (\d+) (\d+) (.*)$/.exec(line);
    if (failed) {
      failures.push(`tar: ${plan.pathOf(Number(failed[1]), Number(failed[2]))}: Cannot open: ${failed[3]}`);
    } else if (line === 'D') isDone = true;
  });
  const sending = send(tool, members);
  for await (const chunk of tool.output) lines.push(chunk);
  const exitCode = await tool.exitCode;
  await sending;
  if (!isDone) {
    throw new ServiceError('EXECUTION_FAILED', `the files could not be copied (exit code ${exitCode})`);
  }
  return failures;
}

/** Never rejects: where the content cannot be had, the tool is given up and says so. */
async function send(tool: Tool, members: readonly Member[]): Promise<void> {
  if (members.length === 0) return;
  try {
    for await (const chunk of archive(members)) {
      if (!(await tool.write(chunk))) return;
    }
  } catch (error) {
    tool.giveUp(
      error instanceof ServiceError
        ? error
        : new ServiceError('EXECUTION_FAILED', 'the files could not be sent to the runner', { cause: error }),
    );
  }
}
