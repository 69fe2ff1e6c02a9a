/**
 * A frame is Ethernet from the destination address to the end of the payload, without FCS. Whoever is handed a frame owns it:
 * the giver does not touch the bytes afterwards, the taker may change them in place.
 */
export type Frame = Uint8Array;

/** One attachment of a device or a host to something that carries frames. */
export interface Port {
  send(frame: Frame): void;
  /** Frames in the transmit queue now. */
  queueDepth(): number;
  /** Called with each frame that arrives. */
  onFrame: ((frame: Frame) => void) | undefined;
}
