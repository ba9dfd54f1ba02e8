import type { ProgramSignal } from '../base/program-signals.js';
import type { OwnedBy } from './ownership.js';
import { ownership, OWNERSHIP } from './ownership.js';
import { assignment } from './quote.js';
import { script } from './script.js';

/**
 * Sends a signal to every process of an execution in a runner (whose is which: ownership.ts).
 *
 * A terminal's own characters would not do: they are input to a program in raw mode, and there may be no terminal.
 *
 * Each process gets the signal once, hence there is one look only: what a handler starts meanwhile is not to be hit.
 * Parents come before their children, so that a shell does not go on with its next command because the one that it
 * waits for was the first to die. Only SIGSTOP is repeated until no new process is found. SIGKILL is not for here:
 * kill-tree.ts lets none escape.
 *
 * Where a tool stays as a parent (run-command.ts), neither it nor the shell that it starts is part of the command. They
 * are known by their place below the root, which no program can take: a child of the root that runs as we do is the
 * tool, its child the shell; else the shell is the root's child itself.
 */
const SIGNAL_TREE = script(`
serai_scan
serai_skip=
if [ -n "$serai_stays" ]; then
  for serai_p in $serai_left; do
    eval "serai_x=\\$serai_parent_$serai_p"
    eval "serai_r=\\$serai_root_$serai_x"
    [ "$serai_r" = target ] || continue
    serai_skip="$serai_skip $serai_p"
    serai_user_of "$serai_p"
    [ "$serai_u" = "$serai_me" ] || continue
    for serai_y in $serai_left; do
      eval "serai_x=\\$serai_parent_$serai_y"
      [ "$serai_x" != "$serai_p" ] || serai_skip="$serai_skip $serai_y"
    done
  done
fi
serai_rest=
for serai_p in $serai_left; do
  case "$serai_skip " in *" $serai_p "*) ;; *) serai_rest="$serai_rest $serai_p" ;; esac
done
serai_sent=0 serai_failed=0
while [ -n "$serai_rest" ]; do
  serai_later= serai_now=
  for serai_p in $serai_rest; do
    eval "serai_x=\\$serai_parent_$serai_p"
    case "$serai_rest " in
      *" $serai_x "*) serai_later="$serai_later $serai_p" ;;
      *) serai_now="$serai_now $serai_p" ;;
    esac
  done
  # Numbers that were given anew between two reads may look like a circle.
  [ -n "$serai_now" ] || serai_now=$serai_rest serai_later=
  for serai_p in $serai_now; do
    if kill -"$serai_signal" "$serai_p"; then
      serai_sent=$((serai_sent + 1))
    elif [ -d "/proc/$serai_p" ]; then
      serai_failed=$((serai_failed + 1))
    fi
  done
  serai_rest=$serai_later
done
if [ "$serai_signal" = STOP ]; then
  serai_scan
  while [ -n "$serai_new" ]; do
    kill -STOP $serai_new
    serai_scan
  done
fi
printf 'S %s %s\\n' "$serai_sent" "$serai_failed"
`);

export interface SignalRequest {
  readonly allocationId: string;
  readonly target: OwnedBy;
  readonly signal: Exclude<ProgramSignal, 'SIGKILL'>;
  /** The command runs below a tool that stays as a parent. */
  readonly toolStays: boolean;
}

export function signalScript({ allocationId, target, signal, toolStays }: SignalRequest): string {
  return [
    ownership({ allocationId, target, others: [], sweep: false }),
    assignment('serai_signal', signal.slice('SIG'.length)),
    assignment('serai_stays', toolStays ? '1' : ''),
    OWNERSHIP + SIGNAL_TREE,
  ].join('\n');
}

export interface SignalResult {
  /** Processes that got the signal. */
  readonly sent: number;
  /** Processes that may not be sent one, and live on. */
  readonly failed: number;
}

/** Undefined unless the script came to its end. */
export function parseSignalResult(output: string): SignalResult | undefined {
  const match = /^S (\d+) (\d+)$/m.exec(output);
  return match ? { sent: Number(match[1]), failed: Number(match[2]) } : undefined;
}
