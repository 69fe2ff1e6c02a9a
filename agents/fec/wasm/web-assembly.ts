/** The part of the host's WebAssembly interface that is used here: the language's own type library has it only together with the browser's. */
interface Host {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
  /** Sizes in pages of 64 KiB. */
  readonly Memory: new (size: {
    initial: number;
    maximum: number;
  }) => { readonly buffer: ArrayBuffer };
}

const host = (globalThis as unknown as { WebAssembly: Host }).WebAssembly;

export const { Memory } = host;

/**
 * Compiles a module and links it, at once.
 * @typeParam Exports what the module exports; nobody checks that it does
 */
export function instantiate<Exports>(bytes: Uint8Array<ArrayBuffer>, imports: object): Exports {
  return new host.Instance(new host.Module(bytes), imports).exports as Exports;
}
