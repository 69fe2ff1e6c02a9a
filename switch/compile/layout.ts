import type { Header, HeaderField, Program } from '../bmv2/program.ts';
import { type Code, code, name } from './code.ts';
import type { Usage } from './usage.ts';

export interface WordRange {
  readonly start: number;
  readonly end: number;
}

/** Places in the vector of what the program asks for before a packet's pass through a pipeline is over. */
export interface Requests {
  /** One more than the bytes that are sent at most. */
  readonly truncate: number | undefined;
  /** One more than the session. */
  readonly clone: number | undefined;
  /** The id of the field list that the clone keeps. */
  readonly cloneKeeps: number | undefined;
  /** The id of the learn list. */
  readonly digest: number | undefined;
  /** The id of the field list that is kept. */
  readonly resubmit: number | undefined;
  readonly recirculate: number | undefined;
}

/**
 * Where everything lives in the packet header vector, one Uint32Array. A field of W bits takes ceil(W / 32) words, the least
 * significant first. Fields that nothing touches have no place.
 *
 * A header has one word of validity: 0 invalid; 1 valid, all of it in the vector; n >= 2 valid and extracted from byte n - 2 of
 * the frame, where the fields that are not live still stand.
 */
export class Layout {
  readonly usage: Usage;
  /** The length that packet_length will show in egress; `undefined` when the program never looks. */
  readonly lengthWord: number | undefined;
  /** What a packet is to become, 0 if nothing: simple_switch's packet registers. Words that nothing sets are not there. */
  readonly requests: Requests;
  readonly requestWords: WordRange;
  /** The live fields of all metadata. */
  readonly metadataWords: WordRange;
  readonly words: number;
  private readonly validity = new Map<Header, number>();
  private readonly places = new Map<HeaderField, number>();

  constructor(program: Program, usage: Usage) {
    this.usage = usage;
    let words = 0;
    for (const header of program.headers) if (!header.metadata) this.validity.set(header, words++);
    this.lengthWord = usage.live.has(program.standardMetadata.packetLength) ? words++ : undefined;
    const request = (used: boolean): number | undefined => (used ? words++ : undefined);
    const firstRequest = words;
    this.requests = {
      truncate: request(usage.truncates || usage.clones),
      clone: request(usage.clones),
      cloneKeeps: request(usage.clones),
      digest: request(usage.digests),
      resubmit: request(usage.resubmits),
      recirculate: request(usage.recirculates),
    };
    this.requestWords = { start: firstRequest, end: words };
    const [metadata, headers] = [true, false].map((wanted) =>
      program.headers.filter((header) => header.metadata === wanted),
    ) as [Header[], Header[]];
    const firstMetadata = words;
    words = this.placeFields(metadata, words);
    this.metadataWords = { start: firstMetadata, end: words };
    words = this.placeFields(headers, words);
    for (const { next } of program.stacks) words = this.placeField(next, words);
    this.words = words;
  }

  private placeFields(headers: readonly Header[], first: number): number {
    let words = first;
    for (const header of headers) {
      for (const field of header.fields) {
        words = this.placeField(field, words);
        if (field.length !== undefined) words = this.placeField(field.length, words);
      }
    }
    return words;
  }

  private placeField(field: HeaderField, place: number): number {
    if (!this.usage.live.has(field)) return place;
    this.places.set(field, place);
    return place + wordCount(field.widthBits);
  }

  isLive(field: HeaderField | undefined): field is HeaderField {
    return field !== undefined && this.places.has(field);
  }

  /** The field's first word. */
  place(field: HeaderField): number {
    const place = this.places.get(field);
    if (place === undefined) throw new RangeError(`field ${field.header.name}.${field.name} has no place`);
    return place;
  }

  word(field: HeaderField, index = 0): Code {
    return phv(this.place(field) + index);
  }

  validityWord(header: Header): Code {
    return phv(this.validityPlace(header));
  }

  validityPlace(header: Header): number {
    const place = this.validity.get(header);
    if (place === undefined) throw new RangeError(`metadata ${header.name} has no validity`);
    return place;
  }

  /** How many bytes of a packet the header takes while it is valid. */
  bytes(header: Header): Code {
    const fixed = header.widthBits / 8;
    return header.varbit === undefined ? code`${fixed}` : code`(${fixed} + (${this.word(header.varbit.length!)} >> 3))`;
  }

  isValid(header: Header): Code {
    return header.metadata ? code`true` : code`(${this.validityWord(header)} !== 0)`;
  }
}

export function phv(word: number): Code {
  return code`${name('phv')}[${word}]`;
}

export function wordCount(widthBits: number): number {
  return Math.ceil(widthBits / 32);
}

/** The largest number of `bits` bits; at most 53. */
export function maskOf(bits: number): number {
  return 2 ** bits - 1;
}
