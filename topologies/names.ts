/** Upper bound for one range: far above any fabric, low enough that a typing error does not fill the memory. */
const MAX_NAMES = 65_536;

const NAME = /^[A-Za-z][A-Za-z0-9._-]{0,62}$/;
const RANGE = /^([^{}]*)\{(\d{1,9})\.\.(\d{1,9})\}([^{}]*)$/;

/**
 * Expands `gpu{01..16}` to gpu01, gpu02 ... gpu16. A number is padded to the width of the range's first one, so `{1..16}` counts 1, 2 ... 16.
 * Text without a range is one name. Names start with a letter and have at most 63 letters, digits and `._-`.
 *
 * @returns the names, or what is wrong with the text
 */
export function expandNames(text: string): { names: string[] } | { problem: string } {
  const range = RANGE.exec(text);
  if (range === null) {
    if (/[{}]/.test(text)) return { problem: `"${text}" is not a name or a range such as gpu{01..16}` };
    return NAME.test(text) ? { names: [text] } : { problem: `"${text}" is not a name` };
  }
  const [, before, first, last, after] = range as unknown as [string, string, string, string, string];
  const from = Number(first);
  const to = Number(last);
  if (to < from) return { problem: `the range "${text}" counts backwards` };
  if (to - from >= MAX_NAMES) return { problem: `the range "${text}" has more than ${MAX_NAMES} names` };
  const names: string[] = [];
  for (let number = from; number <= to; number++)
    names.push(`${before}${String(number).padStart(first.length, '0')}${after}`);
  const wrong = names.find((name) => !NAME.test(name));
  return wrong === undefined ? { names } : { problem: `"${wrong}" is not a name` };
}
