/** The times by which replicas live together, in milliseconds of each one's own monotonic clock. */

/** How often a replica raises its own heartbeat, and the holder its lease. */
export const BEAT_MS = 5_000;
/** A heartbeat or a lease that has not changed for this long is nobody's. */
export const SILENCE_MS = 20_000;
/** How long after the beginning of its last raise the holder of the lease leads. Less than SILENCE_MS, by some. */
export const LEAD_MS = 15_000;
/** How often the others and the lease are looked at. */
export const LOOK_MS = 2_000;
/** How soon after a failure the same is tried again. */
export const RETRY_MS = 1_000;
/** Time limit of one request about a variable. */
export const REQUEST_MS = 4_000;
/** How much of a time without looks counts as having watched. */
export const LONGEST_GAP_MS = 3 * LOOK_MS;
/** How long an address that was read is believed. */
export const ADDRESS_MS = 30_000;
/** How long a replica has to be dead until its entry is removed. */
export const FORGET_MS = 60 * 60_000;
