import type { Plan, PlanCohort } from '../service.ts';
import { bytesText, serversText } from './amounts.ts';

/** How many rejected alternatives a cohort shows before the rest is only counted. */
const ALTERNATIVES_SHOWN = 4;
const NAMES_SHOWN = 3;

/** The plan as a person reads it: who gets what, from where, how, why, and what it costs. Lines end with newlines. */
export function planText(plan: Plan): string {
  const lines = [
    `${serversText(plan.targets)} ${plan.targets === 1 ? 'needs' : 'need'} ${plan.object} version ${plan.version}`,
  ];
  for (const cohort of plan.cohorts) lines.push(...cohortLines(cohort, plan.version));
  lines.push(...totals(plan));
  for (const warning of plan.warnings.slice(0, ALTERNATIVES_SHOWN)) lines.push(`warning: ${warning}`);
  if (plan.warnings.length > ALTERNATIVES_SHOWN)
    lines.push(`and ${plan.warnings.length - ALTERNATIVES_SHOWN} more warnings`);
  return `${lines.join('\n')}\n`;
}

function cohortLines(cohort: PlanCohort, version: number): string[] {
  const lines = [`  ${who(cohort)}: ${what(cohort, version)}`];
  lines.push(`      servers ${names(cohort.servers)}`);
  for (const reason of cohort.reasons) lines.push(`      because ${reason}`);
  for (const { source, switches } of cohort.stripes) lines.push(`      tree    ${source}: ${switches.join(', ')}`);
  if (cohort.predictedSeconds !== null) {
    const { value, unit, source, basis } = cohort.predictedSeconds;
    lines.push(`      takes   about ${value.toPrecision(2)} ${unit} (${source}: ${basis})`);
  }
  for (const { alternative, reason, bytes } of cohort.rejected.slice(0, ALTERNATIVES_SHOWN))
    lines.push(`      not     ${alternative}, ${bytesText(bytes)}: ${reason}`);
  if (cohort.rejected.length > ALTERNATIVES_SHOWN)
    lines.push(`      not     ${cohort.rejected.length - ALTERNATIVES_SHOWN} other alternatives`);
  return lines;
}

function who({ kind, from, servers }: PlanCohort): string {
  const verb = servers.length === 1 ? { have: 'has' } : { have: 'have' };
  const count = String(servers.length);
  if (kind === 'current') return `${count} ${verb.have} it`;
  return kind === 'delta' ? `${count} ${verb.have} version ${from}` : `${count} ${verb.have} nothing to build on`;
}

function what({ kind, payload, mechanism, source, stripes, from, servers }: PlanCohort, version: number): string {
  if (payload === null) return 'nothing is sent';
  const content = kind === 'delta' ? `the ${from}-to-${version} delta` : 'the whole object';
  const senders = [...new Set(stripes.map((stripe) => stripe.source))];
  const inStripes = stripes.length > 1 ? ` in ${stripes.length} stripes` : '';
  return mechanism === 'multicast'
    ? `${content} (${bytesText(payload.sizeBytes)}) multicast once to the ${servers.length} from ${senders.join(' and ')}${inStripes}`
    : `${content} (${bytesText(payload.sizeBytes)}) read by each from ${source}`;
}

function totals({ bytes }: Plan): string[] {
  if (bytes.source === 0) return ['  nothing leaves a source'];
  const line = (name: string, own: number, unicast?: number): string => {
    const against =
      unicast === undefined || own === 0
        ? ''
        : `; by unicast of the whole object ${bytesText(unicast)}, ${(unicast / own).toPrecision(3)} times as much`;
    return `  ${name} ${bytesText(own)}${against}`;
  };
  return [
    line('out of the sources', bytes.source, bytes.unicastSource),
    line('over core links   ', bytes.coreLinks, bytes.unicastCoreLinks),
    line('over host links   ', bytes.hostLinks),
  ];
}

function names(servers: readonly string[]): string {
  return servers.length <= NAMES_SHOWN + 1
    ? servers.join(', ')
    : `${servers.slice(0, NAMES_SHOWN - 1).join(', ')}, ... ${servers.at(-1)}`;
}
