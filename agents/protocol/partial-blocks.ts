import type { ParitySymbol } from '../fec/reed-solomon.ts';

/** Incomplete blocks at a time; each takes some hundred bytes besides its parity. */
const MAX_BLOCKS = 65_536;

interface HeldParity extends ParitySymbol {
  readonly buffer: Uint8Array;
}

/** What is held of a block that is not complete: which source symbols, which stand at their place already, and parity. */
export class PartialBlock {
  readonly block: number;
  private low = 0;
  private high = 0;
  private sources = 0;
  readonly parity: HeldParity[] = [];

  constructor(block: number) {
    this.block = block;
  }

  /** Source and parity symbols. */
  get held(): number {
    return this.sources + this.parity.length;
  }

  /** Source symbols. */
  get sourcesHeld(): number {
    return this.sources;
  }

  /** @param symbol a source symbol, 0..63 */
  has(symbol: number): boolean {
    return symbol < 32 ? (this.low & (1 << symbol)) !== 0 : (this.high & (1 << (symbol - 32))) !== 0;
  }

  hasParity(symbol: number): boolean {
    for (const held of this.parity) if (held.symbol === symbol) return true;
    return false;
  }

  /** @param symbol a source symbol, 0..63, that is not held */
  note(symbol: number): void {
    if (symbol < 32) this.low |= 1 << symbol;
    else this.high |= 1 << (symbol - 32);
    this.sources++;
  }
}

/** The blocks that something is held of, and the parity symbols: bounded, since source symbols go to their place at once. */
export class PartialBlocks {
  private readonly blocks = new Map<number, PartialBlock>();
  private readonly symbolBytes: number;
  private readonly maxParity: number;
  private readonly free: Uint8Array[] = [];
  private parityHeld = 0;
  /** Packets of one block mostly come one after the other. */
  private last: PartialBlock | undefined;

  /** @param bufferBytes bound on all parity symbols */
  constructor(symbolBytes: number, bufferBytes: number) {
    this.symbolBytes = symbolBytes;
    this.maxParity = Math.max(2, Math.floor(bufferBytes / symbolBytes));
  }

  get(block: number): PartialBlock | undefined {
    if (this.last?.block !== block) this.last = this.blocks.get(block);
    return this.last;
  }

  begin(block: number): PartialBlock {
    this.last = new PartialBlock(block);
    this.blocks.set(block, this.last);
    return this.last;
  }

  /** Copies a parity symbol that is not held. */
  addParity(partial: PartialBlock, symbol: number, bytes: Uint8Array): void {
    const buffer = this.free.pop() ?? new Uint8Array(this.symbolBytes);
    buffer.set(bytes);
    partial.parity.push({ symbol, buffer, bytes: buffer.subarray(0, bytes.length) });
    this.parityHeld++;
  }

  end(block: number): void {
    const partial = this.get(block);
    if (partial === undefined) return;
    this.last = undefined;
    this.blocks.delete(block);
    this.parityHeld -= partial.parity.length;
    for (const { buffer } of partial.parity) this.free.push(buffer);
  }

  /** The block to give up before another begins: the one begun first. Undefined while there is room. */
  get oldestTooMany(): number | undefined {
    return this.blocks.size < MAX_BLOCKS ? undefined : this.blocks.keys().next().value;
  }

  /** The same before another parity symbol is added: the one begun first of those that hold any. */
  get oldestWithTooMuchParity(): number | undefined {
    if (this.parityHeld < this.maxParity) return undefined;
    for (const { block, parity } of this.blocks.values()) if (parity.length > 0) return block;
    return undefined;
  }
}
