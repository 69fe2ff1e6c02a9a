/** What one end of a TLS connection shows and what it trusts, PEM. */
export interface TlsIdentity {
  /** Own certificate, with those between it and an authority, and its private key. */
  readonly certificate?: { readonly chain: Uint8Array; readonly privateKey: Uint8Array };
  /** Certificates of the authorities that the other end's certificate has to come from. */
  readonly authorities?: Uint8Array;
}
