import type { PlacementMetrics, Resources } from './records.js';

/** What Nomad tells of the search for a node where nothing stood against the one there is. */
export const PLACED: PlacementMetrics = {
  AllocationTime: 0,
  ClassExhausted: null,
  ClassFiltered: null,
  CoalescedFailures: 0,
  ConstraintFiltered: null,
  DimensionExhausted: null,
  NodesAvailable: { dc1: 1 },
  NodesEvaluated: 1,
  NodesExhausted: 0,
  NodesFiltered: 0,
  NodesInPool: 1,
  QuotaExhausted: null,
  ResourcesExhausted: null,
  ScoreMetaData: null,
  Scores: null,
};

/** Resources as Nomad writes them, with zero for what is not named. */
export function resources(
  values: Partial<Resources> & { DiskMB: number; Networks: unknown },
): Record<string, unknown> {
  return { CPU: 0, Cores: 0, Devices: null, IOPS: 0, MemoryMB: 0, MemoryMaxMB: 0, ...values };
}
