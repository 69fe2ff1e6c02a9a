const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Decimal units, three digits: `35.2 MB`. */
export function bytesText(value: number): string {
  let unit = 0;
  let scaled = value;
  while (scaled >= 1000 && unit < UNITS.length - 1) {
    scaled /= 1000;
    unit++;
  }
  return unit === 0 ? `${value} B` : `${scaled.toPrecision(3)} ${UNITS[unit]}`;
}

/** `950 Mb/s`. */
export function rateText(bitsPerSecond: number): string {
  const [divisor, unit] = bitsPerSecond >= 1e9 ? [1e9, 'Gb/s'] : bitsPerSecond >= 1e6 ? [1e6, 'Mb/s'] : [1e3, 'kb/s'];
  return `${(bitsPerSecond / divisor).toPrecision(3)} ${unit}`;
}

/** `1.4 %` of a whole. */
export function percentText(part: number, whole: number): string {
  const percent = whole === 0 ? 0 : (100 * part) / whole;
  return `${percent >= 10 || percent === 0 ? Math.round(percent) : percent.toPrecision(2)} %`;
}

export function serversText(count: number): string {
  return count === 1 ? '1 server' : `${count} servers`;
}
