/** Seeded randomness. Nothing of ours calls Math.random: a seed reproduces every run. */
export interface Random {
  /** A uniform integer in 0..2^32-1. */
  uint32(): number;
  /** A uniform number in [0, 1). */
  float(): number;
  /** A uniform integer in [0, bound). */
  below(bound: number): number;
  /** Whether an event of probability `p` happens. */
  chance(p: number): boolean;
  /** An independent stream for a named part, so that a new user of randomness does not shift the others' numbers. */
  fork(name: string): Random;
}

/** sfc32 (Chris Doty-Humphrey's Small Fast Counting generator, 128 bits of state) seeded through splitmix32. */
export function createRandom(seed: number | string): Random {
  const text = String(seed);
  let mixer = 0x9e3779b9;
  for (let i = 0; i < text.length; i++) mixer = Math.imul(mixer ^ text.charCodeAt(i), 0x85ebca6b) ^ (mixer >>> 13);
  const split = (): number => {
    mixer = (mixer + 0x9e3779b9) | 0;
    let z = mixer;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return z ^ (z >>> 15);
  };
  let a = split();
  let b = split();
  let c = split();
  let counter = 1;
  const uint32 = (): number => {
    const t = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    c |= 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) uint32();
  const float = (): number => uint32() / 0x1_0000_0000;
  return {
    uint32,
    float,
    below: (bound) => Math.floor(float() * bound),
    chance: (p) => p > 0 && float() < p,
    fork: (name) => createRandom(`${text}/${name}`),
  };
}
