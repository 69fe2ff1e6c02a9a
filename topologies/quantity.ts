/** Quantities in a topology carry their unit: `4 Gb/s`, `10 us`, `256 frames`, `9000 B`. */
export interface Quantity {
  /** What one of each unit is in the base unit. */
  readonly units: Readonly<Record<string, number>>;
  readonly minimum: number;
  readonly maximum: number;
  readonly example: string;
}

/** To bits per second. */
export const RATE: Quantity = {
  units: { 'b/s': 1, 'kb/s': 1e3, 'Mb/s': 1e6, 'Gb/s': 1e9, 'Tb/s': 1e12 },
  minimum: 1e3,
  maximum: 1e13,
  example: '1 Gb/s',
};

/** To microseconds. */
export const DELAY: Quantity = { units: { us: 1, ms: 1e3, s: 1e6 }, minimum: 0, maximum: 6e7, example: '10 us' };

/** To frames. */
export const QUEUE: Quantity = { units: { frames: 1 }, minimum: 1, maximum: 1_000_000, example: '256 frames' };

/** To bytes. The least that IPv4 promises, and the most that its length field can say. */
export const MTU: Quantity = { units: { B: 1 }, minimum: 576, maximum: 65_535, example: '9000 B' };

/** @returns the value in the base unit, a whole number, or what is wrong with the text */
export function parseQuantity(text: string, quantity: Quantity): { value: number } | { problem: string } {
  const expected = `a number and a unit (${Object.keys(quantity.units).join(', ')}), such as "${quantity.example}"`;
  const match = /^(\d+(?:\.\d+)?)\s*(\S+)$/.exec(text.trim());
  const factor = match === null || !Object.hasOwn(quantity.units, match[2]!) ? undefined : quantity.units[match[2]!];
  if (match === null || factor === undefined) return { problem: `"${text}" is not ${expected}` };
  const value = Number(match[1]) * factor;
  const rounded = Math.round(value);
  if (Math.abs(value - rounded) > 1e-6 * Math.max(1, value))
    return { problem: `"${text}" is no whole number of ${Object.keys(quantity.units)[0]}` };
  if (rounded < quantity.minimum || rounded > quantity.maximum)
    return {
      problem: `"${text}" is outside ${quantity.minimum}..${quantity.maximum} ${Object.keys(quantity.units)[0]}`,
    };
  return { value: rounded };
}
